"""Norm balls, polytopes of few entries, and the thresholds that project onto sums."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from driftwolfe.domains.base import LMO, Domain, unit_vector
from driftwolfe.points import checks, norm
from driftwolfe.points.devices import HOST, device_of, namespace
from driftwolfe.points.kinds import Array, Indices, Point, Shape, compiled

kernels = compiled("driftwolfe.domains.set_kernels")

#: Values of more times the cap have lost the digits that tell where between 0 and the cap to be.
_FAR = 1e6


def load_kernels(domain: Any) -> None:
    """Load the compiled threshold of the projection: the `warm_up` of sets that use it."""
    kernels("nearest_rows")


def threshold_to_sum(values: Any, total: float, simplex: bool = False) -> Any:
    r"""Project onto :math:`\sum_i |s_i| \le total`, or the simplex of that sum, along the last axis.

    On the simplex the answer is :math:`\max(values - \theta, 0)`, and theta the largest of
    :math:`\theta_S = (\sum_{i \in S} values_i - total)/|S|` over sets S of entries. Dropping entries
    below the :math:`\theta_S` of those that are left finds it (Michelot 1986).
    """
    device, rows, ball = device_of(values), values.reshape(-1, values.shape[-1]), not simplex
    if device is HOST:
        return kernels().nearest_rows(np.ascontiguousarray(rows), total, ball).reshape(values.shape)
    xp, sizes = device.xp, abs(rows) if ball else rows
    shifted = sizes - sizes.amax(1, True)
    falling = xp.sort(shifted, dim=1, descending=True)[0]
    excess = xp.cumsum(falling, 1) - total
    ranks = device.put(np.arange(1.0, falling.shape[1] + 1))
    kept = (falling * ranks > excess).sum(1, True)
    nearest = (shifted - excess.gather(1, kept - 1) / kept).clip(0.0)
    if ball:
        inside = sizes.sum(1, True) <= total
        nearest = xp.where(inside, rows, xp.sign(rows) * nearest)
    return nearest.reshape(values.shape)


def project_capped_sums(values: Array, total: float, cap: float) -> Array:
    r"""Project each row onto :math:`\{0 \le s \le cap, \sum_i s_i = total\}`.

    The answer is :math:`\mathrm{clip}(values - \theta, 0, cap)` with one theta per row; `total` is from 0 to n cap.
    The sum falls with theta along straight pieces between `values - cap` and `values`, which are sorted.
    """
    n = values.shape[1]
    if values.size and max(values.max(), -values.min()) > _FAR * cap:
        # With the k-th largest value for 0, k = total/cap rounded up, theta lies between -cap and 0,
        # and what is farther away than 2 cap is clipped in any case.
        level = np.sort(values, axis=1)[:, -min(n, max(1, math.ceil(total / cap)))]
        with np.errstate(over="ignore"):  # infinitely far away is far away
            values = np.clip(values - level[:, None], -2.0 * cap, 2.0 * cap)
    lowered = values - cap
    breaks = np.concatenate([lowered, values], axis=1)
    order = np.argsort(breaks, axis=1)
    breaks = np.take_along_axis(breaks, order, axis=1)
    # Passing `value - cap` sets an entry free to fall; passing `value` pins it at 0.
    free_entries = np.cumsum(np.where(order < n, 1, -1), axis=1)
    falls = np.cumsum(free_entries[:, :-1] * np.diff(breaks, axis=1), axis=1)
    pieces = np.count_nonzero(n * cap - falls >= total, axis=1)
    start = np.take_along_axis(breaks, pieces[:, None], axis=1)
    # Measured from the start of the piece, no free entry exceeds `cap`, so no digits are lost.
    shifted = values - start
    full = lowered > start
    free = (shifted > 0) & ~full
    surplus = np.where(free, shifted, 0.0).sum(axis=1, keepdims=True)
    surplus += cap * np.count_nonzero(full, axis=1, keepdims=True) - total
    rest = surplus / np.maximum(np.count_nonzero(free, axis=1, keepdims=True), 1)
    projected: Array = np.clip(shifted - rest, 0.0, cap)
    return projected


def group_labels(groups: Any, name: str) -> Indices:
    """Return the number of each coordinate's group, counted from 0; labels in sorted order."""
    checks.refuse_masked(groups, name)
    items = list(groups)
    dimensions = set(map(np.ndim, items))
    if dimensions == {0}:
        labels = np.asarray(items)
        if labels.dtype.kind in "fcmM" and (labels != labels).any():  # NaN and NaT
            raise ValueError(f"{name} has labels that are missing (NaN)")
        return np.unique(labels, return_inverse=True)[1]
    members = np.concatenate(items) if dimensions == {1} and all(map(len, items)) else np.zeros(0)
    if members.dtype.kind not in "iu" or (np.sort(members) != np.arange(members.size)).any():
        raise ValueError(
            f"{name} must be one label per coordinate, or lists of whole numbers, none empty, that "
            "together hold each of 0, 1, ..., n - 1 exactly once"
        )
    return np.repeat(np.arange(len(items)), [*map(len, items)])[np.argsort(members)]


class NormBall(Domain):
    """The points whose norm `_norm` is at most `scale`.

    `scale` is also the Euclidean radius; `scale` / `width` is the radius of a Euclidean ball inside.
    """

    def __init__(self, shape: Shape, radius: float, width: float, device: str = "cpu") -> None:
        self.scale = checks.positive(radius, "radius")
        super().__init__(shape, self.scale, inner_radius=self.scale / width, stack_device=device)

    @abstractmethod
    def _norm(self, x: Point) -> float: ...

    def _contains(self, x: Point, slack: float) -> bool:
        return self._norm(x) <= self.scale + slack

    def _gauge(self, y: Point) -> float:
        return self._norm(y) / self.scale

    def _filled(self, atoms: list[Point], norms: Array) -> tuple[list[Point], Array]:
        """Return points of norm `scale` and weights; `norms`, which may be none, add up to that of the mean."""
        weights = norms / self.scale if norms.size else np.zeros(1)
        # What the norm leaves goes to an atom and its opposite in equal parts, which add up to 0.
        spare = max(0.0, 1.0 - float(weights.sum()))
        weights[0] += 0.5 * spare
        return [*atoms, -1.0 * atoms[0]], np.append(weights, 0.5 * spare)


class L1Ball(NormBall):
    r"""Sparse points: :math:`\{x : \sum_i |x_i| \le radius\}`.

    The oracle returns one signed, scaled unit vector in O(n); the projection soft-thresholds.

    Parameters
    ----------
    n, radius
        Number of coordinates, or a shape, and the bound, which is also the Euclidean radius.
    device
        Where ensembles keep experts' points: ``"cpu"``, ``"cuda"`` or ``"auto"``, the quicker one.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> ball = dw.L1Ball(3, radius=2.0)
    >>> ball.lmo([1.0, -3.0, 2.0]), ball.project([3.0, -1.0, 0.0])
    (array([0., 2., 0.]), array([2., 0., 0.]))
    """

    _made_from = (("n", "shape"), ("radius", "scale"))
    warm_up = load_kernels

    def __init__(self, n: int | Shape, radius: float = 1.0, *, device: str = "cpu") -> None:
        shape = checks.shape(n, "n")
        super().__init__(shape, radius, math.sqrt(math.prod(shape)), device)

    def _lmo(self, direction: Array) -> Array:
        largest = np.abs(direction).argmax()
        return self._at(largest, -math.copysign(self.scale, direction.flat[largest]))

    def _norm(self, x: Array) -> float:
        return float(np.abs(x).sum())

    def project_many(self, stack: Array) -> Array:
        rows = stack.reshape(-1, math.prod(self.shape))
        return threshold_to_sum(rows, self.scale).reshape(stack.shape)

    _project: Any = project_many  # a point is a stack of one row

    def _gauge_subgradient(self, y: Array) -> Array:
        return np.sign(y) / self.scale

    def _decompose(self, x: Array, tolerance: float, lmo: LMO) -> tuple[list[Point], Array]:
        places = np.flatnonzero(x)
        sizes = x.flat[places]
        signed = zip(places, np.copysign(self.scale, sizes), strict=True)
        return self._filled([self._at(i, v) for i, v in signed] or [lmo(x)], np.abs(sizes))


class L2Ball(NormBall):
    r"""Short vectors: :math:`\{x : \lVert x\rVert \le radius\}`.

    The oracle and the projection each scale one vector, in O(n).

    Parameters
    ----------
    n, radius
        Number of coordinates, or a shape, and the bound.
    device
        Where ensembles keep experts' points: ``"cpu"``, ``"cuda"`` or ``"auto"``, the quicker one.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> ball = dw.L2Ball(2, radius=5.0)
    >>> ball.lmo([-3.0, 4.0]), ball.project([6.0, 8.0])
    (array([ 3., -4.]), array([3., 4.]))
    """

    _made_from = (("n", "shape"), ("radius", "scale"))

    def __init__(self, n: int | Shape, radius: float = 1.0, *, device: str = "cpu") -> None:
        super().__init__(checks.shape(n, "n"), radius, 1.0, device)

    def _lmo(self, direction: Array) -> Array:
        return unit_vector(direction) * -self.scale

    def _norm(self, x: Array) -> float:
        return norm(x)

    def project_many(self, stack: Any) -> Any:
        rows = stack.reshape(len(stack), -1)
        if isinstance(stack, np.ndarray):
            near = kernels().clipped_rows(np.ascontiguousarray(rows), self.scale)
            return near.reshape(stack.shape)
        lengths = namespace(stack).linalg.vector_norm(rows, axis=1)
        factors = (self.scale / lengths).clip(None, 1.0)
        return stack * factors.reshape(-1, *(1 for _ in self.shape))

    def _project(self, y: Array) -> Array:
        length = norm(y)
        return y.copy() if length <= self.scale else y * (self.scale / length)

    def _gauge_subgradient(self, y: Array) -> Array:
        return y / (norm(y) * self.scale)


class Ellipsoid(NormBall):
    r"""A ball stretched along the axes: :math:`\{x : \sum_i (x_i/axes_i)^2 \le 1\}`.

    The oracle scales two vectors, in O(n); the projection also solves an equation in one unknown.

    Parameters
    ----------
    axes
        Half the lengths of the principal axes, positive, one for each coordinate; of any shape.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> dish = dw.Ellipsoid([4.0, 3.0])
    >>> dish.lmo([3.0, 4.0]), dish.project([8.0, 0.0])
    (array([-2.8284..., -2.1213...]), array([4., 0.]))
    """

    _made_from = (("axes", "axes"),)

    def __init__(self, axes: Any) -> None:
        self.axes = checks.finite_array(axes, "axes").copy()
        if self.axes.ndim == 0 or not (self.axes.size and self.axes.min() > 0):
            raise ValueError("axes must be an array of positive numbers, one for each coordinate")
        longest, shortest = float(self.axes.max()), float(self.axes.min())
        super().__init__(self.axes.shape, longest, longest / shortest)

    def _lmo(self, direction: Array) -> Array:
        return unit_vector(self.axes * unit_vector(direction)) * -self.axes

    def _norm(self, x: Array) -> float:
        return norm(x / self.axes) * self.scale

    def _project(self, y: Array) -> Array:
        if self._norm(y) <= self.scale:
            return y.copy()
        # x = b^2 y/(b^2 + t), with t such that |w| = 1 for w = b y/(b^2 + t): Newton's method for 1/|w|,
        # which rises nearly along a straight line and never passes the answer. In units of the longest axis.
        b, v = self.axes / self.scale, y / self.scale
        t = max(0.0, norm(b * v) - 1.0)
        for _ in range(100):
            w = b * v / (b * b + t)
            length = norm(w)
            # Times 1 + t, which may be huge.
            slope = float((w * w * ((1.0 + t) / (b * b + t))).sum())
            step = (length - 1.0) * length**2 * ((1.0 + t) / slope)
            t += max(0.0, step)
            if not step > 1e-15 * t:
                break
        x: Array = self.axes * w
        return x / max(1.0, length)

    def _gauge_subgradient(self, y: Array) -> Array:
        return unit_vector(y / self.axes) / self.axes

    def _decompose(self, x: Array, tolerance: float, lmo: LMO) -> tuple[list[Point], Array]:
        end, share = unit_vector(x / self.axes) * self.axes, min(1.0, norm(x / self.axes))
        return [end, -end], np.array([0.5 + 0.5 * share, 0.5 - 0.5 * share])


class GroupLassoBall(NormBall):
    r"""Few groups at a time: :math:`\{x : \sum_g \lVert x_g\rVert \le radius\}`.

    The groups g partition the coordinates. The oracle returns one group's scaled direction in O(n);
    the projection soft-thresholds the norms of the groups.

    Parameters
    ----------
    n, radius
        Number of coordinates, and the bound, which is also the Euclidean radius.
    groups
        A label for each coordinate, or a list of lists of indices that partition ``range(n)``.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> ball = dw.GroupLassoBall(4, groups=[[0, 1], [2, 3]], radius=5.0)
    >>> ball.lmo([3.0, -4.0, 1.0, 1.0]), ball.project([6.0, 8.0, 1.0, 0.0])
    (array([-3.,  4.,  0.,  0.]), array([3., 4., 0., 0.]))
    """

    _made_from = (("n", "_size"), ("groups", "_labels"), ("radius", "scale"))
    warm_up = load_kernels

    def __init__(self, n: int, groups: Any, radius: float = 1.0) -> None:
        self._size = checks.count(n, "n")
        self._labels = group_labels(groups, "groups")
        if (covered := self._labels.size) != self._size:
            raise ValueError(f"groups must cover the n = {self._size} coordinates, got {covered}")
        self._n_groups = int(self._labels.max()) + 1
        super().__init__((self._size,), radius, math.sqrt(self._n_groups))

    def _lmo(self, direction: Array) -> Array:
        group = np.flatnonzero(self._labels == self._norms(direction).argmax())
        return self._at(group, unit_vector(direction[group]) * -self.scale)

    def _norm(self, x: Array) -> float:
        return float(self._norms(x).sum())

    def _project(self, y: Array) -> Array:
        norms = self._norms(y)
        return self._rescaled(y, threshold_to_sum(norms, self.scale), norms)

    def _gauge_subgradient(self, y: Array) -> Array:
        return self._rescaled(y, 1 / self.scale, self._norms(y))

    def _rescaled(self, y: Array, wanted: Any, norms: Array) -> Array:
        """Return y with `wanted` norms of its groups; groups of 0 stay 0."""
        factors = np.divide(wanted, norms, out=np.zeros(norms.shape), where=norms > 0)
        return y * factors[self._labels] + 0.0

    def _norms(self, x: Array) -> Array:
        # Scaled by the largest entry, so that squares neither over- nor underflow.
        largest = float(np.abs(x).max()) or 1.0
        squares = np.bincount(self._labels, (x / largest) ** 2, self._n_groups)
        return largest * np.sqrt(squares)


class KSparsePolytope(Domain):
    r"""The hull of vectors with k entries :math:`\pm radius` and zeros elsewhere.

    That is :math:`\{x : \lVert x\rVert_\infty \le radius, \lVert x\rVert_1 \le k\,radius\}`: the L1
    ball for k = 1, the L-infinity ball for k = n. The oracle selects the k largest entries in O(n);
    the projection clips and soft-thresholds in O(n log n).

    Parameters
    ----------
    n
        Number of coordinates, or a shape.
    k, radius
        Number of non-zero entries of a vertex, from 1 to n, and their size: the Euclidean radius over sqrt(k).

    Examples
    --------
    >>> import driftwolfe as dw
    >>> polytope = dw.KSparsePolytope(4, k=2)
    >>> polytope.lmo([1.0, -3.0, 2.0, 0.5]), polytope.project([3.0, 0.75, 0.75, 0.0])
    (array([ 0.,  1., -1.,  0.]), array([1. , 0.5, 0.5, 0. ]))
    """

    _made_from = (("n", "shape"), ("k", "k"), ("radius", "scale"))

    def __init__(self, n: int | Shape, k: int, radius: float = 1.0) -> None:
        shape = checks.shape(n, "n")
        size = math.prod(shape)
        self.scale = checks.positive(radius, "radius")
        self.k = checks.count(k, "k")
        if self.k > size:
            raise ValueError(f"k must be at most the number of coordinates, {size}, got {k}")
        inner = self.scale * min(1.0, self.k / math.sqrt(size))
        super().__init__(shape, self.scale * math.sqrt(self.k), inner_radius=inner)

    def _lmo(self, direction: Array) -> Array:
        sizes = np.abs(direction).ravel()
        largest = np.argpartition(sizes, sizes.size - self.k)[-self.k :]
        return self._at(largest, -np.copysign(self.scale, direction.flat[largest]))

    def _contains(self, x: Array, slack: float) -> bool:
        largest, total = np.abs(x).max(), np.abs(x).sum()
        return bool(largest <= self.scale + slack and total <= self.k * self.scale + slack)

    def _project(self, y: Array) -> Array:
        clipped = np.clip(y, -self.scale, self.scale)
        total = self.k * self.scale
        if np.abs(clipped).sum() <= total:
            return clipped
        sizes = project_capped_sums(np.abs(y).reshape(1, -1), total, self.scale)
        # Adding 0 turns the -0. of a negative entry that is cut to nothing into 0.
        return np.copysign(sizes.reshape(self.shape), y) + 0.0

    def _gauge(self, y: Array) -> float:
        sizes = np.abs(y)
        return float(max(sizes.max(), sizes.sum() / self.k) / self.scale)

    def _gauge_subgradient(self, y: Array) -> Array:
        sizes = np.abs(y)
        if sizes.sum() >= self.k * sizes.max():
            return np.sign(y) / (self.k * self.scale)
        largest = sizes.argmax()
        return self._at(largest, math.copysign(1 / self.scale, y.flat[largest]))

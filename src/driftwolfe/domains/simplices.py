"""The simplex and the k-sparse polytope."""

from __future__ import annotations

import math

import numpy as np

from driftwolfe.domains.base import Domain
from driftwolfe.domains.thresholds import load_kernels, project_capped_sums, project_nonnegative_sum
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Shape


class NonnegativePolytope(Domain):
    r"""A polytope :math:`\{x \ge 0\} \cap` an affine space, with a centre of positive entries.

    Its gauge is :math:`\max(0, 1 - \min_i y_i / c_i)`.
    """

    _center: Array

    def _contains(self, x: Array, slack: float) -> bool:
        return bool(x.min() >= -slack) and self._offset(x) <= slack

    def _gauge(self, y: Array) -> float:
        if self._outside_hull(y):
            return math.inf
        return max(0.0, 1.0 - float((y / self._center).min()))

    def _gauge_subgradient(self, y: Array) -> Array:
        slope, lowest = np.zeros(self.shape), (y / self._center).argmin()
        slope.flat[lowest] = -1.0 / self._center.flat[lowest]
        return self.tangent(slope)


class Simplex(NonnegativePolytope):
    r"""Weights: :math:`\{x \ge 0 : \sum_i x_i = radius\}`.

    The oracle returns one scaled unit vector in O(n); the projection shifts and cuts at 0 in
    O(n log n). The centre is the uniform point. The gauge is infinite where the sum is not `radius`
    (more than 1e-9 of the size away); its subgradients have sum 0.

    Parameters
    ----------
    n
        Number of coordinates, at least 2, or a shape.
    radius
        The sum. The Euclidean radius is ``radius * sqrt(1 - 1 / n)``.
    device
        Where ensembles keep experts' points: ``"cpu"``, ``"cuda"`` or ``"auto"``, the quicker one.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> simplex = dw.Simplex(4)
    >>> simplex.lmo([1.0, -3.0, 2.0, 0.0])
    array([0., 1., 0., 0.])
    >>> simplex.project([1.0, 0.6, 0.0, -2.0])
    array([0.7, 0.3, 0. , 0. ])
    >>> simplex.center
    array([0.25, 0.25, 0.25, 0.25])
    """

    _made_from = (("n", "shape"), ("radius", "scale"))
    warm_up = load_kernels

    def __init__(self, n: int | Shape, radius: float = 1.0, *, device: str = "cpu") -> None:
        shape = checks.shape(n, "n")
        self.scale = checks.positive(radius, "radius")
        self._size = math.prod(shape)
        if self._size < 2:
            raise ValueError(f"n must be at least 2, got {n!r}: with one weight nothing can move")
        super().__init__(
            shape,
            self.scale * math.sqrt(1 - 1 / self._size),
            diameter=self.scale * math.sqrt(2),
            center=np.full(shape, self.scale / self._size),
            inner_radius=self.scale / math.sqrt(self._size * (self._size - 1)),
            stack_device=device,
        )

    def tangent(self, direction: Array) -> Array:
        return direction - direction.sum() / self._size

    def _lmo(self, direction: Array) -> Array:
        vertex = np.zeros(self.shape)
        vertex.flat[direction.argmin()] = self.scale
        return vertex

    def project_many(self, stack: Array) -> Array:
        flat = stack.reshape(len(stack), -1)
        return project_nonnegative_sum(flat, self.scale).reshape(stack.shape)

    def _project(self, y: Array) -> Array:
        return self.project_many(y[None])[0]


class KSparsePolytope(Domain):
    r"""The hull of vectors with k entries :math:`\pm radius` and zeros elsewhere.

    That is :math:`\{x : \lVert x\rVert_\infty \le radius, \lVert x\rVert_1 \le k\,radius\}`: the L1
    ball for k = 1, the L-infinity ball for k = n. The oracle selects the k largest entries in O(n);
    the projection clips and soft-thresholds in O(n log n).

    Parameters
    ----------
    n
        Number of coordinates, or a shape.
    k
        Number of non-zero entries of a vertex, from 1 to n.
    radius
        Size of those entries; the Euclidean radius is sqrt(k) times as large.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> polytope = dw.KSparsePolytope(4, k=2)
    >>> polytope.lmo([1.0, -3.0, 2.0, 0.5])
    array([ 0.,  1., -1.,  0.])
    >>> polytope.project([3.0, 0.75, 0.75, 0.0])
    array([1. , 0.5, 0.5, 0. ])
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
        vertex = np.zeros(self.shape)
        vertex.flat[largest] = -np.copysign(self.scale, direction.flat[largest])
        return vertex

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
        subgradient = np.zeros(self.shape)
        largest = sizes.argmax()
        subgradient.flat[largest] = math.copysign(1 / self.scale, y.flat[largest])
        return subgradient

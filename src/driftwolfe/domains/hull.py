"""Convex hulls of given points: projections on them, and decompositions into vertices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.domains.base import LMO, Domain
from driftwolfe.points import checks, norm
from driftwolfe.points.kinds import Array, Indices, Shape

_ROUNDING = float(np.finfo(np.float64).eps)


class Hull:
    r"""A convex combination :math:`x = \sum_i w_i a_i` of atoms, moved to the point nearest to a target.

    Wolfe's method (1976): steps to the minimiser over an affine hull, cut short where a weight would turn negative,
    each an exact line search in a descent direction: so the distance never grows. With m atoms of n entries, `add`
    costs O(m n), a step of `correct` O(m n + m^3). Rows are relative to the first atom, so no digits are lost.
    """

    def __init__(self, first_atom: Array) -> None:
        self._shape: Shape = first_atom.shape
        self._base = np.array(first_atom, dtype=np.float64).ravel()
        self._unit = 1.0
        self._count = 1
        self._rows = np.zeros((16, self._base.size))  # room for more atoms than there are
        self._gram = np.zeros((16, 16))
        self._weights = np.ones(1)

    @property
    def point(self) -> Array:
        """The combination x, a new array."""
        travel = self._weights @ self._rows[: self._count]
        return (self._base + self._unit * travel).reshape(self._shape)

    @property
    def atoms(self) -> tuple[list[Array], Array]:
        """The atoms and their weights, new arrays."""
        rows = self._base + self._unit * self._rows[: self._count]
        return [row.reshape(self._shape) for row in rows], self._weights.copy()

    def add(self, vertex: Array) -> None:
        """Hold one more atom, with weight 0."""
        here, offset = self._count, vertex.ravel() - self._base
        if here == len(self._rows):
            self._rows = np.pad(self._rows, ((0, here), (0, 0)))
            self._gram = np.pad(self._gram, (0, here))
        if here == 1 and not self._rows[0].any():  # else what is held has its unit already
            # A power of two, which changes no digit: products stay in range on sets of any size.
            self._unit = 2.0 ** min(1023, int(np.frexp(np.abs(offset).max(initial=0.0))[1]))
        self._rows[here] = offset / self._unit
        products = self._rows[: here + 1] @ self._rows[here]
        self._gram[here, : here + 1] = self._gram[: here + 1, here] = products
        self._weights = np.append(self._weights, 0.0)
        self._count += 1

    def correct(self, y: Array) -> Array:
        """Move to the point of the hull nearest to y, drop idle atoms, return the point."""
        target = (y.ravel() - self._base) / self._unit
        support: Indices = np.flatnonzero(self._weights)
        before = np.inf
        while True:  # major cycles: each adds the atom of largest gain
            support, residual = self._settle(support, target)
            distance, gains = float(residual @ residual), self._gains(residual)
            gains[support] = -np.inf
            entering = gains.argmax()
            if distance >= before or gains[entering] <= self._noise(residual):
                break
            support, before = np.append(support, entering), distance
        if (count := len(support)) < self._count:
            kept = np.sort(support)
            self._rows[:count] = self._rows[kept]
            self._gram[:count, :count] = self._gram[np.ix_(kept, kept)]
            self._weights, self._count = self._weights[kept], count
        return self.point

    def _gains(self, residual: Array) -> Array:
        """Return the first-order gain of moving from x to each atom: <a_i - x, y - x>."""
        products: Array = self._rows[: self._count] @ residual
        return products - self._weights @ products

    def _noise(self, residual: Array) -> float:
        """The size below which a gain is rounding."""
        largest = self._gram.diagonal()[: self._count].max()
        return 16 * _ROUNDING * float(np.sqrt(largest * (residual @ residual)))

    def _settle(self, support: Indices, target: Array) -> tuple[Indices, Array]:
        """Minor cycles: reach the affine minimiser of some subset of `support`, weights > 0."""
        residual = target - self._weights @ self._rows[: self._count]
        full_steps = 0  # one step is exact; the second one repairs the rounding of the first
        while len(support) > 1 and full_steps < 2:
            gains = self._gains(residual)[support]
            if np.abs(gains).max() <= self._noise(residual):
                break
            move = self._affine_move(support, gains)
            travel = move @ self._rows[support]
            slope, square = float(travel @ residual), float(travel @ travel)
            if slope <= 0 or square == 0:  # which may underflow
                break
            length, held = slope / square, self._weights[support]
            falling = np.flatnonzero(move < 0)
            limits = held[falling] / -move[falling]
            most = limits.min()  # beyond it, a weight would be negative
            moved = np.maximum(held + min(length, most) * move, 0.0)
            if length < most:
                full_steps += 1
            else:
                moved[falling[limits.argmin()]] = 0.0
            self._weights[:] = 0.0
            self._weights[support] = moved / moved.sum()
            support = support[self._weights[support] > 0]
            residual = target - self._weights @ self._rows[: self._count]
        return support, residual

    def _affine_move(self, support: Indices, gains: Array) -> Array:
        """Change of weights, of sum 0, from x to the minimiser over the atoms' affine hull."""
        pivot = int(self._weights[support].argmax())
        others = np.delete(np.arange(len(support)), pivot)
        chosen, heaviest = support[others], support[pivot]
        column = self._gram[chosen, heaviest]
        differences = self._gram[np.ix_(chosen, chosen)] - column[:, None] - column
        differences += self._gram[heaviest, heaviest]
        # Rounding in `differences` is that of the Gram entries, which may be far larger.
        rounding = len(support) * _ROUNDING * float(self._gram[support, support].max())
        move, values, ridge, failed = np.empty(len(support)), gains[others] - gains[pivot], 0.0, 1
        while failed:  # a ridge steps in where the matrix is singular
            regular = differences + ridge * np.eye(len(others))
            _, solution, failed = scipy.linalg.lapack.dposv(regular, values)
            ridge = max(16 * ridge, rounding)
        move[others] = solution
        move[pivot] = -solution.sum()
        return move


def approach(lmo: LMO, y: Any, start: Any, near: float = -1.0, far: float = math.inf) -> Hull:
    """Return the hull of some points of a set, given by its `lmo`, moved as near to y as the set comes.

    Fully corrective Frank-Wolfe from the point `start` of the set. It ends within `near` of y, where a half-space
    shows that the set is farther than `far` from y, or where a step comes no nearer, by rounding.
    """
    hull, before = Hull(start), math.inf
    while True:
        away = hull.correct(y) - y
        distance = norm(away)
        if distance <= near or distance >= before:
            return hull
        vertex, before = lmo(away), distance
        if float(np.vdot(away, vertex - y)) > far * distance:
            return hull
        hull.add(vertex)


def comes_near(lmo: LMO, x: Array, start: Array, tolerance: float) -> bool:
    """Whether a set given by its `lmo` comes within `tolerance` of x; `start` is a point of it."""
    allowed = max(tolerance, 16 * _ROUNDING * max(norm(x), norm(start)))
    return norm(approach(lmo, x, start, allowed, allowed).point - x) <= allowed


def peel(lmo: LMO, x: Array) -> tuple[list[Array], Array]:
    r"""Return vertices and weights of a point of :math:`\{x \ge 0 : A x = b\}`, from heavy to light.

    The vertices are multiples of 0/1 vectors. One that is 0 where x is comes off with the largest weight
    that leaves x >= 0, and the rest is a point of the set scaled down, with a zero more.
    """
    vertices, weights, rest = list[Array](), list[float](), x.copy()
    least = 1e-13 * float(np.abs(x).max())  # below that, rounding
    for _ in range(x.size):
        empty = rest <= least
        rest[empty] = 0.0
        vertex = lmo(np.where(empty, rest.sum(), -rest))
        used = vertex > 0
        weight = float((rest[used] / vertex[used]).min())
        if weight <= 0:
            break
        vertices.append(vertex)
        weights.append(weight)
        rest -= weight * vertex
    return vertices or [lmo(-x)], np.array(weights or [1.0])


def sweep(fractions: Array, starts: Any = 0.0) -> tuple[Array, Array]:
    r"""Return 0/1 vectors, as rows, and weights whose mean is `fractions`, between 0 and 1.

    Fractions lie end to end on a line; `starts` says where each begins. For an offset :math:`\theta` from 0
    to 1, a vector has a 1 for each fraction that covers some :math:`\theta + j`, j whole; it changes where
    fractions end. So fractions of one part that add up to a whole number k have k of them chosen.
    """
    ends = starts + fractions
    offsets = np.unique(np.concatenate(([0.0, 1.0], np.mod(np.append(starts, ends), 1.0))))
    weights = np.diff(offsets)
    kept = weights > 1e-14  # the others are rounding
    middle = (offsets[:-1] + 0.5 * weights)[kept, None]
    return np.ceil(ends - middle) - np.ceil(starts - middle), weights[kept]


class ConvexHull(Domain):
    r"""Mixtures of given points: :math:`\{\sum_i w_i p_i : w \ge 0, \sum_i w_i = 1\}`.

    The oracle compares all N points in O(N n). Projection (Wolfe's min-norm-point method) and membership
    take some tens of such calls. The centre is the mean of the points.

    Parameters
    ----------
    points
        The points along the first axis, ``(N, ...)``; not all the same.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> triangle = dw.ConvexHull([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    >>> triangle.lmo([-1.0, 1.0]), triangle.project([2.0, 1.0])
    (array([2., 0.]), array([1.5, 0.5]))
    """

    cheap_projection = cheap_membership = False  # they take many calls of `lmo`
    _made_from = (("points", "points"),)

    def __init__(self, points: Any) -> None:
        self.points = checks.finite_array(points, "points").copy()
        shape = self.points.shape
        if len(shape) < 2:
            raise ValueError(f"points must list points along its first axis, got shape {shape}")
        if not shape[0] or (self.points == self.points[0]).all():
            raise ValueError("points must hold at least two different points")
        self.points.flags.writeable = False
        center = self.points.mean(axis=0)
        radius = max(norm(point - center) for point in self.points)
        super().__init__(center.shape, radius, center=center)
        self._rows = self.points.reshape(len(self.points), -1)

    def _lmo(self, direction: Array) -> Array:
        return np.array(self.points[(self._rows @ direction.ravel()).argmin()])

    def _contains(self, x: Array, slack: float) -> bool:
        return comes_near(self._lmo, x, self._lmo(self.center - x), slack)

    def _project(self, y: Array) -> Array:
        return approach(self._lmo, y, self._lmo(self.center - y)).point

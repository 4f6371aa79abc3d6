"""Frank-Wolfe that re-optimises over the atoms it holds."""

from __future__ import annotations

import math

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.domains.hull import Hull
from driftwolfe.domains.thresholds import threshold_to_sum
from driftwolfe.oracles.frank_wolfe import (
    COLLAPSE,
    InfeasibleProjection,
    Pair,
    Stopping,
    collapse,
    cut_short,
    give_up,
    slice_off,
    stay,
)
from driftwolfe.points import FactoredMatrix, norm
from driftwolfe.points.decompositions import svd
from driftwolfe.points.devices import device_of, namespace
from driftwolfe.points.kinds import Array, Point


class Span:
    r"""Row and column spaces of what has been found, and the nearest point to y inside them.

    With orthonormal bases L and R of the spaces, the nearest matrix to y among
    :math:`\{L C R^\top : \lVert C\rVert_* \le radius\}` is :math:`L\,P(L^\top y R)\,R^\top`, P the
    projection of a small matrix. Directions that it does not use are forgotten.
    """

    def __init__(self, x: Point, y: Point, radius: float) -> None:
        self._radius = radius
        self._dense = isinstance(y, np.ndarray)
        start = x if isinstance(x, FactoredMatrix) else FactoredMatrix.from_dense(x)
        start = start.low_rank.recompress()
        self._left, self._right = start.U, start.V
        self._image = y @ self._right  # y R, extended by one column per atom
        self._y = y

    def add(self, atom: Point) -> None:
        """Widen the spaces by those of a rank-one atom."""
        u, v = _factors(atom)
        self._left = _widen(self._left, u)
        old = self._right.shape[1]
        self._right = _widen(self._right, v)
        fresh = self._y @ self._right[:, old:]
        self._image = namespace(fresh).concat((self._image, fresh), axis=1)

    def correct(self, y: Point) -> Point:
        """Return the nearest point to y inside the spaces."""
        device = device_of(self._left)
        U, s, Vt = svd(device.host(self._left.T @ self._image))
        kept = threshold_to_sum(s, self._radius)
        rank = int(np.count_nonzero(kept))
        turn = device.put(Vt[:rank].T)
        self._left, self._right = self._left @ device.put(U[:, :rank]), self._right @ turn
        self._image = self._image @ turn
        if self._dense:
            return (self._left * kept[:rank]) @ self._right.T
        return FactoredMatrix(self._left, kept[:rank], self._right)


def _widen(basis: Array, vector: Array) -> Array:
    """The basis and the part of a vector outside it, if there is one beyond rounding."""
    rest = vector - basis @ (basis.T @ vector)
    rest -= basis @ (basis.T @ rest)
    size = norm(rest)
    if size <= 1e-12 * norm(vector):
        return basis
    return namespace(basis).concat((basis, (rest / size)[:, None]), axis=1)


def _factors(atom: Point) -> tuple[Array, Array]:
    """Column and row directions of a rank-one matrix."""
    if isinstance(atom, FactoredMatrix):
        return atom.U[:, 0], atom.V[:, 0]
    sizes = np.abs(atom).max(axis=0)
    heaviest = int(sizes.argmax())
    column = atom[:, heaviest] / (sizes[heaviest] or 1.0)  # products stay in range
    return column, atom.T @ column


METHOD = "corrective"


def corrective(domain: Domain, x: Point, y: Point, stop: Stopping) -> InfeasibleProjection:
    r"""Project infeasibly by fully corrective Frank-Wolfe.

    After every oracle call x becomes the nearest point to y in everything found so far: the convex
    hull of x and the vertices (Wolfe's min-norm-point method), or, on a trace-norm ball, all
    matrices of the ball whose row and column spaces lie in those of x and the atoms, where the
    nearest one is a small singular value decomposition away. The distance falls at least as fast as
    with line search, so every bound on the calls stays; on polytopes the end is finite.
    """
    found: Span | Hull
    if domain.rank_one_atoms:
        found = Span(x, y, domain.radius)
    elif isinstance(y, np.ndarray):
        found = Hull(np.asarray(x))
    else:
        raise ValueError(
            f'method "corrective" needs dense points or a TraceNormBall, got {type(y).__name__}; '
            'use method="halfspace"'
        )
    hint = 0.1 * math.sqrt(stop.tolerance) / domain.radius
    pair, calls = Pair(x, y), 0
    while not stop.near(pair):
        vertex, error = domain.lmo_with_error(pair.direction(), hint)
        calls += 1
        gap = pair.gap_at(vertex) + error
        if stop.collapses(pair.squared, gap):
            return collapse(pair, calls, gap, METHOD)
        if stop.slices(pair.squared, gap):
            return slice_off(pair, calls, gap, METHOD)
        found.add(vertex)
        nearer = Pair(found.correct(y), y)
        if stop.spent(calls) and (stop.accuracy is not None or gap > COLLAPSE * pair.squared):
            nearest = nearer if nearer.squared < pair.squared else pair
            return cut_short(nearest, stop, calls, 2 * domain.radius, METHOD)
        if stop.spent(calls) or not nearer.squared < pair.squared:
            return give_up(pair, stop, calls, gap, METHOD)
        pair = nearer
    return stay(pair, calls, pair.distance * 2 * domain.radius, METHOD)

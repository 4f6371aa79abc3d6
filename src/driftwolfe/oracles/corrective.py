"""`corrective`: Frank-Wolfe that re-optimises over all vertices found."""

from __future__ import annotations

import math

import numpy as np

from driftwolfe.domains.hull import Hull
from driftwolfe.domains.thresholds import threshold_to_sum
from driftwolfe.oracles.frank_wolfe import InfeasibleProjection, Pair, Run
from driftwolfe.points import FactoredMatrix, norm
from driftwolfe.points.devices import device_of, namespace, svd
from driftwolfe.points.kinds import Array, Point


def corrective(run: Run) -> InfeasibleProjection:
    r"""Project infeasibly by fully corrective Frank-Wolfe.

    After every LMO call x becomes the nearest point to y in everything found so far: the convex hull
    of x and the vertices (Wolfe's min-norm-point method) or, on a trace-norm ball, all matrices of
    the ball whose row and column spaces lie in those of x and the vertices. The distance falls at
    least as fast as with line search, so every bound on the calls holds; on polytopes it is finite.
    """
    domain, x, y = run.domain, run.pair.x, run.pair.y
    found: Span | Hull
    if domain.rank_one_atoms:
        found = Span(x, y, domain.radius)
    elif isinstance(y, np.ndarray):
        found = Hull(x)
    else:
        raise ValueError(
            f'method "corrective" needs dense points or a TraceNormBall, got {type(y).__name__}; '
            'use method="halfspace"'
        )
    hint = 0.1 * math.sqrt(run.stop.tolerance) / domain.radius
    while not run.near():
        if (vertex := run.known()) is None:
            if run.spent():
                break
            vertex, gap = run.ask(run.hint(hint))
            if (result := run.accept(gap)) is not None:
                return result
        found.add(vertex)
        corrected = Pair(found.correct(y), y)
        if corrected.squared < run.pair.squared:
            run.pair = corrected
        elif run.atoms is not None:  # a cached vertex, or one that is now: ask the LMO again
            run.atoms = None
        elif not run.spent():
            return run.give_up(gap)
    return run.stay()


class Span:
    r"""Row and column spaces of the matrices found, and the nearest point to y inside them.

    With orthonormal bases L and R of the spaces, the nearest matrix to y among
    :math:`\{L C R^\top : \lVert C\rVert_* \le radius\}` is :math:`L\,P(L^\top y R)\,R^\top`, P the
    projection of a small matrix. Directions that it does not use are dropped.
    """

    def __init__(self, x: Point, y: Point, radius: float) -> None:
        start = x if isinstance(x, FactoredMatrix) else FactoredMatrix.from_dense(x)
        start = start.low_rank.recompress()
        self._y, self._radius = y, radius
        self._left, self._right = start.U, start.V
        self._image = y @ self._right  # y R, extended by one column per vertex

    def add(self, vertex: Point) -> None:
        """Extend the spaces by those of a rank-one matrix."""
        if isinstance(vertex, FactoredMatrix):
            u, v = vertex.U[:, 0], vertex.V[:, 0]
        else:
            sizes = np.abs(vertex).max(axis=0)
            largest = int(sizes.argmax())
            u = vertex[:, largest] / (sizes[largest] or 1.0)  # products stay in range
            v = vertex.T @ u
        known = self._right.shape[1]
        self._left, self._right = _extended(self._left, u), _extended(self._right, v)
        fresh = self._y @ self._right[:, known:]
        self._image = namespace(fresh).concat((self._image, fresh), axis=1)

    def correct(self, y: Point) -> Point:
        """Return the nearest point to y inside the spaces."""
        device = device_of(self._left)
        U, s, Vt = svd(device.host(self._left.T @ self._image))
        kept = threshold_to_sum(s, self._radius)
        rank = int(np.count_nonzero(kept))
        rotation = device.put(Vt[:rank].T)
        self._left, self._right = self._left @ device.put(U[:, :rank]), self._right @ rotation
        self._image = self._image @ rotation
        if isinstance(y, np.ndarray):
            return (self._left * kept[:rank]) @ self._right.T
        return FactoredMatrix(self._left, kept[:rank], self._right)


def _extended(basis: Array, vector: Array) -> Array:
    """The orthonormal basis and the part of a vector outside it, if that is more than rounding."""
    rest = vector - basis @ (basis.T @ vector)
    rest -= basis @ (basis.T @ rest)
    size = norm(rest)
    if size <= 1e-12 * norm(vector):
        return basis
    return namespace(basis).concat((basis, (rest / size)[:, None]), axis=1)

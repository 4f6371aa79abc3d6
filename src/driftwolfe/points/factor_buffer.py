"""`FactorBuffer`: factors with free columns, to which rank-one matrices are added in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.kinds import Point
from driftwolfe.points.ops import inner


class FactorBuffer:
    """Factors U and V that end in free columns, so that rank-one matrices are added without a copy.

    Matrices that share a buffer differ in their values s only: sums and differences cost as much as
    those of two vectors. A column is written once, while no matrix has a value there, so earlier
    matrices never change. `used` counts the columns that are taken.
    """

    __slots__ = ("U", "V", "used")

    def __init__(self, U: Any, V: Any, used: int) -> None:
        self.U, self.V, self.used = U, V, used

    @classmethod
    def holding(
        cls, matrices: Sequence[FactoredMatrix], room: int
    ) -> tuple[FactorBuffer, list[FactoredMatrix]]:
        """Return a buffer with `room` free columns, and the same matrices with factors in it."""
        used = sum(A.rank for A in matrices)
        device = matrices[0].device
        U, V = (device.zeros((size, used + room)) for size in matrices[0].shape)
        held, first = [], 0
        for A in matrices:
            here = slice(first, first + A.rank)
            U[:, here], V[:, here] = A.U, A.V
            s = np.zeros(used + room)
            s[here] = A.s
            held.append(FactoredMatrix._of(U, s, V, A.sparse))
            first += A.rank
        return cls(U, V, used), held

    @property
    def room(self) -> int:
        """Free columns."""
        return self.U.shape[1] - self.used

    def holds(self, point: Point) -> bool:
        """Whether a point is a matrix with factors in this buffer."""
        return isinstance(point, FactoredMatrix) and point.U is self.U and point.V is self.V

    def inner(self, atom: Point, *points: Point) -> list[float]:
        """Return the inner products of one point with several: one pass if it has rank one."""
        if not (_rank_one(atom) and all(map(self.holds, points))):
            return [inner(point, atom) for point in points]
        used = self.used
        products = (atom.U[:, 0] @ self.U)[:used] * (atom.V[:, 0] @ self.V)[:used]
        products = atom.device.host(products) * atom.s[0]
        return [float(A.s[:used] @ products) + A.stored_inner(atom) for A in points]

    def mix(self, rest: float, x: Point, share: float, atom: Point) -> Point:
        """Return rest * x + share * atom, in the buffer where x is in it and there is room."""
        if not (_rank_one(atom) and self.holds(x) and self.room):
            return rest * x + share * atom
        here, self.used = self.used, self.used + 1
        self.U[:, here], self.V[:, here] = atom.U[:, 0], atom.V[:, 0]
        s = rest * x.s
        s[here] = share * atom.s[0]
        return FactoredMatrix._of(self.U, s, self.V, (rest * x).sparse)


def _rank_one(point: Point) -> bool:
    return isinstance(point, FactoredMatrix) and point.rank == 1 and not point.nnz


def without_idle_columns(matrix: FactoredMatrix) -> FactoredMatrix:
    """Return the same matrix without columns whose value is 0, outside any buffer."""
    used = np.flatnonzero(matrix.s)
    return FactoredMatrix._of(matrix.U[:, used], matrix.s[used], matrix.V[:, used], matrix.sparse)

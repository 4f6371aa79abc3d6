"""`FactorBuffer`: factors that grow in place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.kinds import Array, Point
from driftwolfe.points.ops import inner


class FactorBuffer:
    """Factors U and V that end in free columns, so that rank-one matrices are added without a copy.

    Matrices on one shelf differ in their values only: sums and differences cost no more than those
    of two vectors. A column is written once, while no matrix has a value there, so those made
    earlier never change.

    Attributes
    ----------
    U, V
        The columns.
    used
        How many are taken.

    Examples
    --------
    >>> e = np.eye(2)[:, :1]
    >>> shelf, (x,) = Shelf.holding([FactoredMatrix(e, [1.0], e)], room=1)
    >>> y = shelf.mix(0.5, x, 2.0, FactoredMatrix(e[::-1], [1.0], e))
    >>> (y - x).toarray(), (y - x).U is shelf.U, shelf.room
    (array([[-0.5,  0. ],
           [ 2. ,  0. ]]), True, 0)
    """

    __slots__ = ("U", "V", "used")

    def __init__(self, U: Array, V: Array, used: int) -> None:
        self.U, self.V, self.used = U, V, used

    @classmethod
    def holding(
        cls, matrices: Sequence[FactoredMatrix], room: int
    ) -> tuple[FactorBuffer, list[FactoredMatrix]]:
        """A shelf with so many free columns, and the matrices put on it."""
        used = sum(A.rank for A in matrices)
        device = matrices[0].device
        U, V = (device.zeros((size, used + room)) for size in matrices[0].shape)
        placed, first = [], 0
        for A in matrices:
            here = slice(first, first + A.rank)
            U[:, here], V[:, here] = A.U, A.V
            s = np.zeros(used + room)
            s[here] = A.s
            placed.append(FactoredMatrix._of(U, s, V, A.sparse))
            first += A.rank
        return cls(U, V, used), placed

    @property
    def room(self) -> int:
        """Free columns."""
        return self.U.shape[1] - self.used

    def holds(self, point: Point) -> bool:
        """Whether a point is a matrix on this shelf."""
        return isinstance(point, FactoredMatrix) and point.U is self.U and point.V is self.V

    def inner(self, atom: Point, *points: Point) -> list[float]:
        """Inner products of one point with several, in one pass for a rank-one matrix and these."""
        if not (_rank_one(atom) and all(map(self.holds, points))):
            return [inner(atom, point) for point in points]
        used = self.used
        looks = (atom.U[:, 0] @ self.U)[:used] * (atom.V[:, 0] @ self.V)[:used]
        looks = atom.device.host(looks) * atom.s[0]
        return [float(A.s[:used] @ looks) + A.stored_inner(atom) for A in points]

    def mix(self, rest: float, x: Point, share: float, atom: Point) -> Point:
        """Return rest * x + share * atom, on the shelf where x is, and room for the atom."""
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
    """The same matrix, off its shelf."""
    used = np.flatnonzero(matrix.s)
    return FactoredMatrix._of(matrix.U[:, used], matrix.s[used], matrix.V[:, used], matrix.sparse)

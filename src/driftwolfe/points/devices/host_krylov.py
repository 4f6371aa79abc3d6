"""`HostKrylov`: Lanczos steps by a compiled loop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from driftwolfe.points.devices.base import Krylov
from driftwolfe.points.kinds import Array

#: Rounding of a number.
_EXACT = float(np.finfo(np.float64).eps)


class HostKrylov(Krylov):
    """One matrix after the other: on the host there is nothing to gain by taking them together."""

    def __init__(self, matrices: Sequence[Any], starts: Sequence[Array], most: int) -> None:
        pairs = zip(matrices, starts, strict=True)
        self._spaces = [_Space(matrix, start, most) for matrix, start in pairs]

    def grow(self, size: int) -> tuple[Array, Array]:
        """Take steps until there are so many; return all diagonals and off-diagonals so far."""
        self.size = size
        if len(self._spaces) == 1:
            inside, rest = self._spaces[0].grow(size)
            return inside[None], rest[None]
        grown = [space.grow(size) for space in self._spaces]
        return np.stack([inside for inside, _ in grown]), np.stack([rest for _, rest in grown])

    def combine(self, turns: Sequence[Array]) -> list[tuple[Array, Array]]:
        """Return the image A v and the vector v with these coordinates in each basis."""
        return [space.combine(turn) for space, turn in zip(self._spaces, turns, strict=True)]


class _Space:
    """The normal product is one compiled pass over the factors and the stored entries.

    That is half of what A and its transpose in turn would read. It needs V^T q for every vector q of
    the basis, which is kept up by subtraction; what is wrong in that grows where little is left, and
    is put right before it is too much.
    """

    def __init__(self, matrix: Any, start: Array, most: int) -> None:
        self._matrix = matrix
        self._basis = np.empty((most + 1, start.size))
        self._looks = np.empty((most + 1, matrix.rank))
        self._images = np.empty((most, matrix.shape[0]))
        self._basis[0], self._looks[0] = start, start @ matrix.V
        self._inside, self._rest = np.zeros(most), np.zeros(most)
        self._doubt = self._older = _EXACT  # in the last two looks
        self._size = 0

    def grow(self, size: int) -> tuple[Array, Array]:
        from driftwolfe.points import kernels  # numba, loaded on first use

        A = self._matrix
        parts = (A.U, A.s, A.V, *A.stored_arrays, self._basis, self._looks, self._images)
        for k in range(self._size, size):
            inside, rest = kernels.lanczos_step(*parts, k)
            before = self._rest[k - 1] if k else 0.0
            self._inside[k], self._rest[k] = inside, rest
            drift = (inside * self._doubt + before * self._older) / rest if rest > 0 else 1.0
            self._doubt, self._older = drift, self._doubt
            if drift > math.sqrt(_EXACT):
                self._looks[k + 1], self._doubt = self._basis[k + 1] @ A.V, _EXACT
        self._size = max(self._size, size)
        return self._inside[:size], self._rest[:size]

    def combine(self, turn: Array) -> tuple[Array, Array]:
        k = turn.size
        return turn @ self._images[:k], turn @ self._basis[:k]

"""`Device`: what the two array libraries do not spell alike."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from driftwolfe.points.kinds import Array, Shape

#: An array of this device: NumPy's, or a tensor.
Here = Any


class Krylov(ABC):
    """The Krylov spaces of some matrices' normal operators, grown one vector at a time, side by side.

    Attributes
    ----------
    size
        Steps taken.
    """

    size: int = 0

    @abstractmethod
    def grow(self, size: int) -> tuple[Array, Array]:
        """Take steps until there are so many; return all diagonals and off-diagonals so far.

        A row for each matrix.
        """

    @abstractmethod
    def combine(self, turns: Sequence[Array]) -> list[tuple[Here, Here]]:
        """Return the image A v and the vector v with these coordinates in the basis, for each matrix."""


class Device(ABC):
    """A place where large arrays live, and the operations on them that are its own.

    Large arrays (factors, entries) stay there; what is as small as the rank of a matrix, such as
    singular values, lives on the host, where all decisions are made.

    Attributes
    ----------
    name
        As users write it: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"torch"``.
    xp
        The library: numpy or torch. Only functions that both have, called alike.
    workers
        Threads beyond which more only wait for each other.
    """

    name: str
    xp: Any
    workers: float = math.inf

    # -- moving ------------------------------------------------------------------------------

    @abstractmethod
    def put(self, array: Any) -> Here:
        """Bring an array here, from wherever it is."""

    @abstractmethod
    def host(self, array: Here) -> Any:
        """Bring an array of this device to the host."""

    @abstractmethod
    def finite(self, value: Any, name: str, shape: Shape | None = None) -> Here:
        """Return a checked array of finite float64 numbers, here and contiguous by rows."""

    def beside(self) -> AbstractContextManager[None]:
        """Return a context for one thread's work, beside that of others, on what is here by now.

        Made by the thread that hands out the work, entered by the one that does it. All that is done
        in it is done when the next work of the first thread starts.
        """
        return nullcontext()

    def rough(self) -> AbstractContextManager[None]:
        """Return a context in which products in single precision may be as rough as they are quick."""
        return nullcontext()

    # -- making ------------------------------------------------------------------------------

    @abstractmethod
    def zeros(self, shape: Shape) -> Here:
        """An array of zeros."""

    @abstractmethod
    def unit(self, size: int) -> Here:
        """The unit matrix of that size."""

    @abstractmethod
    def normal(self, rng: np.random.Generator, shape: Shape) -> Here:
        """Random numbers, the same for the same state of the generator on the same device."""

    @abstractmethod
    def by_rows(self, array: Here) -> Here:
        """The same numbers, contiguous by rows."""

    @abstractmethod
    def single(self, array: Here) -> Here:
        """The same numbers in single precision."""

    @abstractmethod
    def double(self, array: Here) -> Here:
        """The same numbers in double precision."""

    # -- measuring ---------------------------------------------------------------------------

    @abstractmethod
    def largest(self, array: Here) -> float:
        """The largest absolute value; 0 where there is none."""

    @abstractmethod
    def stored_largest(self, stored: Any) -> float:
        """The largest absolute value of a sparse matrix's entries."""

    @abstractmethod
    def stored_length(self, stored: Any) -> float:
        """The Frobenius norm of a sparse matrix."""

    @abstractmethod
    def summed(self, table: Here, groups: Here, number: int) -> Here:
        """The sums of a table's columns over groups, by their numbers."""

    @abstractmethod
    def lengths(self, block: Here) -> Here:
        """The Euclidean length of every column."""

    @abstractmethod
    def unit_columns(self, block: Here) -> Here:
        """The same columns at unit length, but for those that are zero."""

    # -- decomposing -------------------------------------------------------------------------

    @abstractmethod
    def inverse_cholesky(self, gram: Here) -> Here | None:
        """The inverse of the upper Cholesky factor; None, or what is not finite, where it has none."""

    @abstractmethod
    def eigh(self, symmetric: Here) -> tuple[Array, Here]:
        """The eigenvalues of a symmetric matrix, falling and on the host, and its vectors."""

    @abstractmethod
    def svd(self, tall: Here) -> tuple[Here, Array, Here]:
        """The thin decomposition U, s, Vt of a tall matrix, s on the host."""

    # -- entries -----------------------------------------------------------------------------

    @abstractmethod
    def entries(self, U: Here, s: Here, V: Here, rows: Here, cols: Here) -> Here:
        """The entries of U diag(s) V^T at pairs (rows[k], cols[k])."""

    @abstractmethod
    def stored(self, rows: Here, cols: Here, values: Here, shape: Shape) -> Any:
        """A sparse matrix of checked entries, by rows; those given twice add up."""

    @abstractmethod
    def canonical(self, sparse: Any, shape: Shape) -> Any:
        """A sparse matrix of whatever kind, checked, brought here and by rows."""

    @abstractmethod
    def added(self, one: Any, other: Any) -> Any:
        """The sum of two sparse matrices."""

    @abstractmethod
    def scaled(self, stored: Any, factor: float) -> Any:
        """A multiple of a sparse matrix, which shares its places."""

    @abstractmethod
    def add_stored(self, stored: Any, rows: Here, cols: Here, values: Here) -> None:
        """Add the stored entries at these pairs to `values`."""

    @abstractmethod
    def stored_inner(self, stored: Any, U: Here, s: Here, V: Here) -> float:
        """The inner product of a sparse matrix with U diag(s) V^T."""

    @abstractmethod
    def stored_product(self, one: Any, other: Any) -> float:
        """The inner product of two sparse matrices."""

    @abstractmethod
    def krylov(self, matrices: Sequence[Any], starts: Sequence[Here], most: int) -> Krylov:
        """The Krylov spaces of factored matrices from unit vectors, with room for `most` steps."""

    def __repr__(self) -> str:
        return f"Device({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        # One object for each place: copies of what lives there live there too.
        from driftwolfe.points.devices.find import device_named

        return device_named, (self.name,)

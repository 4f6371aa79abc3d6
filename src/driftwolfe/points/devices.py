"""Devices: where arrays live and are computed on."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.points import checks
from driftwolfe.points import decompositions as dense
from driftwolfe.points import stored as places
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

        return device_named, (self.name,)


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
        from driftwolfe.points import sparse_kernels  # numba, loaded on first use

        A = self._matrix
        parts = (A.U, A.s, A.V, *A.stored_arrays, self._basis, self._looks, self._images)
        for k in range(self._size, size):
            inside, rest = sparse_kernels.lanczos_step(*parts, k)
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


class HostDevice(Device):
    """The host."""

    name = "cpu"
    xp = np

    def put(self, array: Any) -> Any:
        """Bring an array here, from wherever it is."""
        if type(array) is np.ndarray:
            return array
        checks.refuse_masked(array, "an array")
        if isinstance(array, np.ndarray):
            return array

        return to_host(array)

    def host(self, array: Any) -> Any:
        """Return the array."""
        return array

    def finite(self, value: Any, name: str, shape: Shape | None = None) -> Array:
        """Return a checked array of finite float64 numbers, contiguous by rows."""
        return np.ascontiguousarray(checks.finite_array(self.put(value), name, shape))

    def zeros(self, shape: Shape) -> Array:
        """An array of zeros."""
        return np.zeros(shape)

    def unit(self, size: int) -> Array:
        """The unit matrix of that size."""
        return np.eye(size)

    def normal(self, rng: np.random.Generator, shape: Shape) -> Array:
        """Random numbers."""
        return rng.standard_normal(shape)

    def by_rows(self, array: Any) -> Any:
        """The same numbers, contiguous by rows."""
        return np.ascontiguousarray(array)

    def single(self, array: Any) -> Any:
        """The same numbers in single precision."""
        return array.astype(np.float32)

    def double(self, array: Any) -> Any:
        """The same numbers in double precision."""
        return array.astype(np.float64)

    def largest(self, array: Any) -> float:
        """The largest absolute value; 0 where there is none."""
        return float(max(array.max(), -array.min())) if array.size else 0.0

    def stored_largest(self, stored: Any) -> float:
        """The largest absolute value of a sparse matrix's entries."""
        return self.largest(stored.data)

    def stored_length(self, stored: Any) -> float:
        """The Frobenius norm of a sparse matrix."""
        return float(np.linalg.norm(stored.data))

    def summed(self, table: Any, groups: Any, number: int) -> Any:
        """The sums of a table's columns over groups, by their numbers."""
        return np.stack([np.bincount(groups, row, number) for row in table])

    def lengths(self, block: Any) -> Any:
        """The Euclidean length of every column."""
        return np.sqrt(np.einsum("ij,ij->j", block, block))

    def unit_columns(self, block: Any) -> Any:
        """The same columns at unit length, but for those that are zero."""
        lengths = self.lengths(block)
        return block / np.where(lengths > 0, lengths, 1.0)

    def inverse_cholesky(self, gram: Array) -> Array | None:
        """The inverse of the upper Cholesky factor; None where it has none."""
        try:
            upper = scipy.linalg.cholesky(gram, check_finite=False)
        except scipy.linalg.LinAlgError:
            return None
        inverse: Array = scipy.linalg.lapack.dtrtri(upper)[0]
        return inverse

    def eigh(self, symmetric: Array) -> tuple[Array, Array]:
        """The eigenvalues of a symmetric matrix, falling, and its vectors."""
        values, vectors = dense.eigh(symmetric)
        return values[::-1], vectors[:, ::-1]

    def svd(self, tall: Array) -> tuple[Array, Array, Array]:
        """The thin decomposition U, s, Vt."""
        return dense.svd(tall)

    def entries(self, U: Array, s: Array, V: Array, rows: Any, cols: Any) -> Array:
        """The entries of U diag(s) V^T at pairs (rows[k], cols[k])."""
        from driftwolfe.points import sparse_kernels  # numba, loaded on first use

        values: Array = sparse_kernels.low_rank_entries(U, s, V, rows, cols)
        return values

    def stored(self, rows: Any, cols: Any, values: Array, shape: Shape) -> Any:
        """A sparse matrix of checked entries."""
        return places.stored_entries(rows, cols, values, shape)

    def canonical(self, sparse: Any, shape: Shape) -> Any:
        """A sparse matrix of whatever kind, checked and by rows."""
        return places.canonical(sparse.on_host() if hasattr(sparse, "on_host") else sparse, shape)

    def added(self, one: Any, other: Any) -> Any:
        """The sum of two sparse matrices."""
        return places.added(one, other)

    def scaled(self, stored: Any, factor: float) -> Any:
        """A multiple of a sparse matrix, which shares its places."""
        return places.with_data(stored, stored.data * factor)

    def add_stored(self, stored: Any, rows: Any, cols: Any, values: Array) -> None:
        """Add the stored entries at these pairs to `values`."""
        from driftwolfe.points import sparse_kernels  # numba, loaded on first use

        sparse_kernels.add_sparse_entries(
            stored.indptr, stored.indices, stored.data, rows, cols, values
        )

    def stored_inner(self, stored: Any, U: Array, s: Array, V: Array) -> float:
        """The inner product of a sparse matrix with U diag(s) V^T."""
        from driftwolfe.points import sparse_kernels  # numba, loaded on first use

        return float(
            sparse_kernels.stored_inner(stored.indptr, stored.indices, stored.data, U, s, V)
        )

    def stored_product(self, one: Any, other: Any) -> float:
        """The inner product of two sparse matrices."""
        return places.product(one, other)

    def krylov(self, matrices: Sequence[Any], starts: Sequence[Array], most: int) -> Krylov:
        """The Krylov spaces of factored matrices from unit vectors."""
        return HostKrylov(matrices, starts, most)


#: NumPy, SciPy and compiled loops.
HOST: Device = HostDevice()


def device_of(array: Any) -> Device:
    """Return where an array lives; what is no tensor lives, or will live, on the host."""
    if isinstance(array, np.ndarray) or not _is_tensor(array):
        return HOST
    return _torch_device(_name_at(array.device))


def namespace(array: Any) -> Any:
    """Return the library of an array: numpy or torch."""
    return np if isinstance(array, np.ndarray) else device_of(array).xp


def is_array(value: Any) -> bool:
    """Return whether a value is an array of any device: NumPy's, or a tensor."""
    return isinstance(value, np.ndarray) or _is_tensor(value)


def to_host(array: Any) -> Any:
    """Return an array as NumPy's; anything else as it is."""
    if isinstance(array, np.ndarray) or not _is_tensor(array):
        return array
    return device_of(array).host(array)


def device_named(name: Any) -> Device:
    """Return the device of a name, or say which there are.

    ``"cpu"`` is NumPy on the host, ``"torch"`` PyTorch on the host, and ``"cuda"``, ``"cuda:1"``, ...
    are PyTorch's GPUs.

    >>> device_named("cpu")
    Device('cpu')
    """
    if name is None or name == "cpu":
        return HOST
    if not (isinstance(name, str) and re.fullmatch(r"torch|cuda(:\d{1,3})?", name)):
        raise ValueError(f'device must be "cpu", "cuda", "cuda:1" or the like, got {name!r}')
    return _torch_device("cuda" if name == "cuda:0" else name)


def best_device() -> Device:
    """Return the GPU where PyTorch is installed and finds one, else the host."""
    try:
        return device_named("cuda")
    except ValueError:
        return HOST


@cache
def _torch_device(name: str) -> Device:
    try:
        from driftwolfe.points.torch_device import TorchDevice
    except ImportError:
        raise ValueError(
            f'device "{name}" needs PyTorch: pip install "driftwolfe[gpu]", or use device="cpu"'
        ) from None
    return TorchDevice(name)


def _is_tensor(value: Any) -> bool:
    return type(value).__module__.startswith("torch") and hasattr(value, "layout")


@cache
def _name_at(place: Any) -> str:
    """What users call one of PyTorch's places."""
    name = "torch" if place.type == "cpu" else str(place.type)
    return device_named(f"{name}:{place.index}" if place.index else name).name


__all__ = [
    "HOST",
    "Device",
    "Krylov",
    "best_device",
    "device_named",
    "device_of",
    "is_array",
    "namespace",
    "to_host",
]

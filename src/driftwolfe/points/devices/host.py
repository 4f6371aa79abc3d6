"""`HostDevice`: NumPy, SciPy and compiled loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.points import checks
from driftwolfe.points import decompositions as dense
from driftwolfe.points import stored as places
from driftwolfe.points.devices.base import Device, Krylov
from driftwolfe.points.devices.host_krylov import HostKrylov
from driftwolfe.points.kinds import Array, Shape


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
        from driftwolfe.points.devices.find import to_host

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
        from driftwolfe.points import kernels  # numba, loaded on first use

        values: Array = kernels.low_rank_entries(U, s, V, rows, cols)
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
        from driftwolfe.points import kernels  # numba, loaded on first use

        kernels.add_sparse_entries(stored.indptr, stored.indices, stored.data, rows, cols, values)

    def stored_inner(self, stored: Any, U: Array, s: Array, V: Array) -> float:
        """The inner product of a sparse matrix with U diag(s) V^T."""
        from driftwolfe.points import kernels  # numba, loaded on first use

        return float(kernels.stored_inner(stored.indptr, stored.indices, stored.data, U, s, V))

    def stored_product(self, one: Any, other: Any) -> float:
        """The inner product of two sparse matrices."""
        return places.product(one, other)

    def krylov(self, matrices: Sequence[Any], starts: Sequence[Array], most: int) -> Krylov:
        """The Krylov spaces of factored matrices from unit vectors."""
        return HostKrylov(matrices, starts, most)

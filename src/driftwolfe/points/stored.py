"""Sparse parts and lists of entries, checked and in one form."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Indices, Shape

#: Sizes from which indices would need 64 bits.
_INT32_LIMIT = 1 << 31
#: Entries up to which scipy's conversions cost more than the work itself.
_FEW_ENTRIES = 10_000


def canonical(sparse: Any, shape: Shape) -> Any:
    """A csr_array of float64 with sorted, unique indices."""
    if not scipy.sparse.issparse(sparse):
        raise TypeError(
            f"sparse must be a scipy sparse matrix or None, got {type(sparse).__name__}"
        )
    if sparse.shape != shape:
        raise ValueError(f"sparse must have shape {shape}, got {sparse.shape}")
    stored = scipy.sparse.csr_array(sparse, dtype=np.float64)
    stored.sum_duplicates()
    stored.indices = stored.indices.astype(np.int32, copy=False)  # a third less to read
    stored.indptr = stored.indptr.astype(np.int32, copy=False)
    if not np.isfinite(stored.data).all():
        raise ValueError("sparse has entries that are not finite")
    return stored


def stored_entries(rows: Indices, cols: Indices, values: Array, shape: Shape) -> Any:
    """A csr_array of checked entries; those given twice add up."""
    if rows.size > _FEW_ENTRIES:
        return canonical(scipy.sparse.coo_array((values, (rows, cols)), shape=shape), shape)
    from driftwolfe.points import sparse_kernels  # numba, loaded on first use

    indptr = np.zeros(shape[0] + 1, dtype=np.int32)
    indices, data = np.empty(rows.size, dtype=np.int32), np.empty(rows.size)
    size = sparse_kernels.sum_entries(rows, cols, values, indptr, indices, data)
    return scipy.sparse.csr_array((data[:size], indices[:size], indptr), shape=shape)


def added(one: Any, other: Any) -> Any:
    """The sum of two canonical sparse matrices, in one pass."""
    from driftwolfe.points import sparse_kernels  # numba, loaded on first use

    most = one.nnz + other.nnz
    indptr, indices = np.empty_like(one.indptr), np.empty(most, dtype=np.int32)
    data = np.empty(most)
    size = sparse_kernels.add_stored(*_parts(one), *_parts(other), indptr, indices, data)
    if not checks.all_finite(data[:size]):
        raise ValueError("sparse has entries that are not finite")
    stored = scipy.sparse.csr_array((data[:size], indices[:size], indptr), shape=one.shape)
    stored.has_canonical_format = True
    return stored


def with_data(stored: Any, data: Any) -> Any:
    """The same places with other values, without scipy's checks of what is known to fit."""
    if not scipy.sparse.issparse(stored):
        return stored.with_data(data)
    other = copy.copy(stored)
    other.data = data
    return other


def product(one: Any, other: Any) -> float:
    """The inner product of two canonical sparse matrices."""
    from driftwolfe.points import sparse_kernels  # numba, loaded on first use

    return float(sparse_kernels.stored_product(*_parts(one), *_parts(other)))


def _parts(stored: Any) -> tuple[Indices, Indices, Array]:
    return stored.indptr, stored.indices, stored.data


def as_factors(stored: Any, most: int) -> tuple[Array, Array] | None:
    """U and V with U V^T the sparse matrix: a column for each row, or column, that holds entries.

    Lines are taken along the shorter side. None where there are more than `most`.
    """
    if stored.shape[0] > stored.shape[1]:
        flipped = as_factors(stored.T.tocsr(), most)
        return None if flipped is None else flipped[::-1]
    lines = np.flatnonzero(np.diff(stored.indptr))
    if lines.size > most:
        return None
    places = np.zeros((stored.shape[0], lines.size))
    places[lines, np.arange(lines.size)] = 1.0
    return places, stored[lines].toarray().T


def matrix_shape(shape: Any) -> tuple[int, int]:
    """Both sizes of a matrix, checked."""
    sizes = checks.shape(shape)
    if len(sizes) != 2:
        raise ValueError(f"a matrix has two sizes, got shape {sizes}")
    if max(sizes) >= _INT32_LIMIT:
        raise ValueError(f"a matrix has less than {_INT32_LIMIT:,} rows and columns, got {sizes}")
    return sizes[0], sizes[1]


def entry_indices(rows: Any, cols: Any, shape: Shape) -> tuple[Indices, Indices]:
    """Index arrays of one length, in range; negative indices do not wrap around."""
    pair = []
    for name, given, size in (("rows", rows, shape[0]), ("cols", cols, shape[1])):
        checks.refuse_masked(given, name)
        index = np.asarray(given)
        if index.ndim != 1 or not (np.issubdtype(index.dtype, np.integer) or index.size == 0):
            raise ValueError(f"{name} must be a one-dimensional array of whole numbers")
        if index.size and not (index.min() >= 0 and index.max() < size):
            bad = index.min() if index.min() < 0 else index.max()
            raise ValueError(f"{name} must lie in 0..{size - 1}, got {bad}")
        pair.append(np.ascontiguousarray(index, dtype=np.int64))
    if pair[0].size != pair[1].size:
        raise ValueError(
            f"rows and cols must have one length, got {pair[0].size} and {pair[1].size}"
        )
    return pair[0], pair[1]

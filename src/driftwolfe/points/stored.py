"""Sparse parts of factored matrices: scipy's `csr_array` with sorted, unique 32-bit indices."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.points import checks
from driftwolfe.points.compiled import compiled
from driftwolfe.points.kinds import Array, Indices, Shape

_kernels = compiled("driftwolfe.points.sparse_kernels")
#: Entries up to which scipy's conversions cost more than the work itself.
_FEW_ENTRIES = 10_000


def canonical(sparse: Any, shape: Shape) -> Any:
    """Return a csr_array of float64 with sorted, unique indices."""
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
    return _finite(stored)


def stored_entries(rows: Indices, cols: Indices, values: Array, shape: Shape) -> Any:
    """Return a csr_array of checked entries; entries given twice add up."""
    if rows.size > _FEW_ENTRIES:
        return canonical(scipy.sparse.coo_array((values, (rows, cols)), shape=shape), shape)
    indptr = np.zeros(shape[0] + 1, dtype=np.int32)
    indices, data = np.empty(rows.size, dtype=np.int32), np.empty(rows.size)
    size = _kernels().sum_entries(rows, cols, values, indptr, indices, data)
    return scipy.sparse.csr_array((data[:size], indices[:size], indptr), shape=shape)


def added(one: Any, other: Any) -> Any:
    """Return the sum of two canonical sparse matrices, in one pass."""
    most = one.nnz + other.nnz
    indptr, indices = np.empty_like(one.indptr), np.empty(most, dtype=np.int32)
    data = np.empty(most)
    size = _kernels().add_stored(*parts(one), *parts(other), indptr, indices, data)
    stored = scipy.sparse.csr_array((data[:size], indices[:size], indptr), shape=one.shape)
    stored.has_canonical_format = True
    return _finite(stored)


def _finite(stored: Any) -> Any:
    if not checks.all_finite(stored.data):
        raise ValueError("sparse has entries that are not finite")
    return stored


def with_data(stored: Any, data: Any) -> Any:
    """Return the same indices with other values, without scipy's checks of what is known to fit."""
    if not scipy.sparse.issparse(stored):
        return stored.with_data(data)
    other = copy.copy(stored)
    other.data = data
    return other


def parts(stored: Any) -> tuple[Any, Any, Any]:
    """Return `indptr`, `indices` and `data`."""
    return stored.indptr, stored.indices, stored.data


def as_factors(stored: Any, most: int) -> tuple[Array, Array] | None:
    """Return U and V with U V^T the sparse matrix: a column for each row that holds entries.

    For each column along the shorter side, where that is theirs. None for more than `most`.
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

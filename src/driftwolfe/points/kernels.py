"""Compiled loops over entries of matrices.

Serial and without the GIL: parallelism comes from threads that each hold an expert, so these loops
and BLAS never compete for cores. Sparse products are scipy's, which measured faster than the same
loops here.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

_jit = numba.njit(cache=True, nogil=True, error_model="numpy")


@_jit
def low_rank_entries(U: Any, s: Any, V: Any, rows: Any, cols: Any) -> Any:
    """Return sum_k s_k U[i, k] V[j, k] for each pair (i, j)."""
    out = np.empty(rows.size)
    for e in range(rows.size):
        i, j = rows[e], cols[e]
        total = 0.0
        for k in range(s.size):
            total += U[i, k] * s[k] * V[j, k]
        out[e] = total
    return out


@_jit
def add_sparse_entries(indptr: Any, indices: Any, data: Any, rows: Any, cols: Any, out: Any) -> Any:
    """Add the stored entry at each pair (i, j), if there is one, to `out`; indices are sorted."""
    for e in range(rows.size):
        i, j = rows[e], cols[e]
        low, high = indptr[i], indptr[i + 1]
        while low < high:
            middle = (low + high) // 2
            if indices[middle] < j:
                low = middle + 1
            else:
                high = middle
        if low < indptr[i + 1] and indices[low] == j:
            out[e] += data[low]

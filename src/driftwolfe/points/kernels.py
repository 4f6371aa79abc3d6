"""Compiled loops over entries of matrices.

Serial and without the GIL: parallelism comes from threads that each hold an expert, so these loops
and BLAS never compete for cores. Indices are made unsigned: numba tests signed ones for Python's
counting from the end, which took half of the time. Products of sparse matrices with blocks are
scipy's, which measured as fast.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

_jit = numba.njit(cache=True, nogil=True, error_model="numpy")
#: For sums that may be reordered, so that they run on vector units.
_fast_jit = numba.njit(
    cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"}
)


@_fast_jit
def low_rank_entries(U: Any, s: Any, V: Any, rows: Any, cols: Any) -> Any:
    """Return sum_k s_k U[i, k] V[j, k] for each pair (i, j)."""
    out = np.empty(rows.size)
    for e in range(rows.size):
        u, v = U[np.uint64(rows[e])], V[np.uint64(cols[e])]
        total = 0.0
        for k in range(s.size):
            total += u[k] * s[k] * v[k]
        out[e] = total
    return out


@_fast_jit
def normal_product(
    U: Any,
    s: Any,
    V: Any,
    indptr: Any,
    indices: Any,
    data: Any,
    q: Any,
    Vq: Any,
    out: Any,
    Vout: Any,
) -> Any:
    """Set out to A^T A q and Vout to V^T out, for A = U diag(s) V^T + S and given Vq = V^T q.

    Row i of A q is used for A^T A q as soon as it is known, so that U, V and S are read once.
    """
    rank = np.uint64(s.size)
    right = s * Vq
    left = np.zeros(s.size)
    out[:] = 0.0
    Vout[:] = 0.0
    for i in range(np.uint64(U.shape[0])):
        row, total = U[i], 0.0
        first, last = np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])
        for k in range(rank):
            total += row[k] * right[k]
        for p in range(first, last):
            total += data[p] * q[np.uint64(indices[p])]
        for k in range(rank):
            left[k] += total * row[k]
        for p in range(first, last):
            out[np.uint64(indices[p])] += data[p] * total
    left *= s
    for j in range(np.uint64(V.shape[0])):
        row, total = V[j], out[j]
        for k in range(rank):
            total += row[k] * left[k]
        out[j] = total
        for k in range(rank):
            Vout[k] += total * row[k]


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

"""Compiled loops over sparse and factored matrices, and of losses."""

from __future__ import annotations

import math

import numba
import numpy as np

from driftwolfe.points.compiling import (
    NEW_NUMBERS,
    NEW_TABLE,
    NUMBER,
    NUMBERS,
    PLACES,
    TABLE,
    WHOLE,
    fast_jit,
    jit,
)

_INDICES = numba.types.Array(numba.int32, 1, "C", readonly=True)
#: S by rows (indptr, indices, data), and U, s, V.
_STORED = numba.types.Tuple((_INDICES, _INDICES, NUMBERS))  # type: ignore[no-untyped-call]
_LOW_RANK = numba.types.Tuple((TABLE, NUMBERS, TABLE))  # type: ignore[no-untyped-call]


@fast_jit(TABLE, NUMBERS, TABLE, PLACES, PLACES, NEW_NUMBERS, allocates=False)
def low_rank_entries(U, s, V, rows, cols, out):
    """Fill in sum_k s_k U[i, k] V[j, k] for each pair (i, j)."""
    for e in range(rows.size):
        u, v = U[np.uint64(rows[e])], V[np.uint64(cols[e])]
        total = 0.0
        for k in range(s.size):
            total += u[k] * s[k] * v[k]
        out[e] = total


@fast_jit(allocates=False)
def _pass_over(factor, rank, weights, totals, sums):
    """Add factor @ weights to `totals`, then totals @ factor to `sums`, reading each row once."""
    # The first `rank` columns; four rows at a time, which share the loads of `weights` and `sums`.
    size = factor.shape[0]
    whole = size - size % 4
    for i in range(0, whole, 4):
        a, b, c, d = factor[i], factor[i + 1], factor[i + 2], factor[i + 3]
        ta, tb, tc, td = totals[i], totals[i + 1], totals[i + 2], totals[i + 3]
        for k in range(rank):
            w = weights[k]
            ta += a[k] * w
            tb += b[k] * w
            tc += c[k] * w
            td += d[k] * w
        totals[i], totals[i + 1], totals[i + 2], totals[i + 3] = ta, tb, tc, td
        for k in range(rank):
            sums[k] += ta * a[k] + tb * b[k] + tc * c[k] + td * d[k]
    for i in range(whole, size):
        total = totals[i]
        for k in range(rank):
            total += factor[i, k] * weights[k]
        totals[i] = total
        for k in range(rank):
            sums[k] += total * factor[i, k]


@jit(fastmath=False, allocates=False)
def _row_times(data, indices, first, last, q):
    """Return the product of a sparse row with a vector."""
    # Four sums by hand, and not the caller's leave to reorder them: with that the compiler gathers entries of q
    # by instructions that take three times as long on some processors.
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = last - (last - first) % np.uint64(4)
    for p in range(first, whole, np.uint64(4)):
        a += data[p] * q[np.uint64(indices[p])]
        b += data[p + np.uint64(1)] * q[np.uint64(indices[p + np.uint64(1)])]
        c += data[p + np.uint64(2)] * q[np.uint64(indices[p + np.uint64(2)])]
        d += data[p + np.uint64(3)] * q[np.uint64(indices[p + np.uint64(3)])]
    for p in range(whole, last):
        a += data[p] * q[np.uint64(indices[p])]
    return (a + b) + (c + d)


@fast_jit(_LOW_RANK, _STORED, *[NEW_TABLE] * 4, WHOLE, allocates=False)
def lanczos_step(low_rank, stored, basis, inner, images, work, k):
    """Take one step of Lanczos on A^T A, A = U diag(s) V^T + S; return diagonal and off-diagonal.

    Row k of `basis` becomes row k of `images`, A q, and row k + 1, orthogonal to all before; `inner` holds V^T q.
    """
    (U, s, V), (indptr, indices, data) = low_rank, stored
    q, image, product, inner_product = basis[k], images[k], basis[k + 1], inner[k + 1]
    rank = s.size
    while rank > 0 and s[rank - 1] == 0.0:
        rank -= 1
    right, left = work[0], work[1]
    for c in range(s.size):
        right[c], left[c], inner_product[c] = s[c] * inner[k, c], 0.0, 0.0
    for j in range(product.size):
        product[j] = 0.0
    for row in range(np.uint64(image.size)):
        first, last = np.uint64(indptr[row]), np.uint64(indptr[row + np.uint64(1)])
        image[row] = _row_times(data, indices, first, last, q)
    _pass_over(U, rank, right, image, left)
    for row in range(np.uint64(image.size)):
        total = image[row]
        for p in range(np.uint64(indptr[row]), np.uint64(indptr[row + np.uint64(1)])):
            product[np.uint64(indices[p])] += data[p] * total
    for c in range(s.size):
        left[c] *= s[c]
    _pass_over(V, rank, left, product, inner_product)
    diagonal = 0.0
    for _ in range(2):
        inside = 0.0
        for j in range(k + 1):
            held, inner_held, inside = basis[j], inner[j], 0.0
            for i in range(product.size):
                inside += held[i] * product[i]
            for i in range(product.size):
                product[i] -= inside * held[i]
            for c in range(s.size):
                inner_product[c] -= inside * inner_held[c]
        diagonal += inside
    square = 0.0
    for j in range(product.size):
        square += product[j] * product[j]
    length = np.sqrt(square)
    factor = 1.0 / length if length > 0.0 else 1.0
    for j in range(product.size):
        product[j] *= factor
    for c in range(s.size):
        inner_product[c] *= factor
    return diagonal, length


@fast_jit(TABLE, NUMBERS, NUMBERS, NUMBER, *[NEW_NUMBERS] * 2, NEW_TABLE, allocates=False)
def squared_distances(points, target, weights, factor, mean, values, gradients):
    """Do `SquaredDistance.stacked_round` for points that are rows of a table; return the value at the mean."""
    n, d = points.shape
    for i in range(n):
        point, gradient, squared = points[i], gradients[i], 0.0
        for j in range(d):
            offset = point[j] - target[j]
            squared += offset * offset
            mean[j] += weights[i] * offset
            gradient[j] = 2.0 * factor * offset
        values[i] = factor * squared
    squared = 0.0
    for j in range(d):
        squared += mean[j] * mean[j]
    return factor * squared


@fast_jit()
def _add(total, factor, values, number):
    for c in range(number):
        total[c] += factor * values[c]


@fast_jit()
def _softmax(scores, first, classes, label, weight):
    """Return the weighted negative log probability of the label; scores become its slopes."""
    last, total, top = first + classes, 0.0, scores[first]
    for c in range(first + 1, last):
        top = max(top, scores[c])
    behind = top - scores[first + label]
    for c in range(first, last):
        scores[c] = math.exp(scores[c] - top)
        total += scores[c]
    for c in range(first, last):
        scores[c] *= weight / total
    scores[first + label] -= weight
    return (math.log(total) + behind) * weight


@fast_jit(TABLE, NUMBERS, TABLE, PLACES, NUMBER, NEW_NUMBERS, NEW_TABLE)
def logistic_round(points, weights, features, labels, scale, values, gradients):
    """Do `MulticlassLogistic.stacked_round`; return the value at the mean."""
    # Points and gradients have one row per feature, with all classes of all points side by side.
    width, n = points.shape[0], weights.size
    mean = points.shape[1]  # its scores come last
    classes = mean // n
    scores, value = np.empty(mean + classes), 0.0
    for k in range(features.shape[0]):
        scores[:] = 0.0
        for j in range(width):
            _add(scores, features[k, j], points[j], mean)
        for i in range(n):
            for c in range(classes):
                scores[mean + c] += weights[i] * scores[i * classes + c]
        for i in range(n):
            values[i] += _softmax(scores, i * classes, classes, labels[k], scale)
        value += _softmax(scores, mean, classes, labels[k], scale)
        for j in range(width):
            _add(gradients[j], features[k, j], scores, mean)
    return value

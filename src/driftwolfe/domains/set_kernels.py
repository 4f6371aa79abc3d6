"""Compiled loops over points."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftwolfe.points.compiling import ANSWER, NUMBER, STACK, TABLE, fast_jit, jit


@fast_jit()
def _sum(values: Any, less: float) -> float:
    """Return the sum of the values, each less a number."""
    total = 0.0
    for j in range(values.size):
        total += values[j] - less
    return total


@jit()
def _largest(values: Any) -> float:
    """Return the largest value; of four at a time, since a comparison waits for the one before."""
    a = b = c = d = values[0]
    for j in range(3, values.size, 4):
        a = values[j - 3] if values[j - 3] > a else a
        b = values[j - 2] if values[j - 2] > b else b
        c = values[j - 1] if values[j - 1] > c else c
        d = values[j] if values[j] > d else d
    for j in range(values.size // 4 * 4, values.size):
        a = max(a, values[j])
    return max(max(a, b), max(c, d))


@jit()
def _threshold(values: Any, total: float, left: Any) -> Any:
    """Return the largest value, and the threshold, less that, above which values sum to `total`.

    The threshold of any of the values is a lower bound: at first that of all, or of the largest alone, then that
    of those kept so far. `left`, as long as the values, is for these.
    """
    top, count, within = _largest(values), 0, 0.0
    bound = max((_sum(values, top) - total) / values.size, -total)
    for value in values:
        if value - top >= bound:
            left[count] = value - top
            within += left[count]
            count += 1
            bound = max(bound, (within - total) / count)
    while True:
        theta = (_sum(left[:count], 0.0) - total) / count
        kept = 0
        for j in range(count):
            value = left[j]
            left[kept] = value  # written over unless it counts, which is faster than to ask first
            kept += value > theta
        if kept == count:
            return top, theta
        count = kept


@jit(TABLE, NUMBER, ANSWER)
def nearest_rows(values: Any, total: float, ball: bool) -> Any:
    """Return the nearest rows >= 0 of this sum; for a ball, of at most this sum of absolute values."""
    nearest = np.empty(values.shape)
    sizes, left = np.empty(values.shape[1]), np.empty(values.shape[1])
    for i in range(values.shape[0]):
        for j in range(sizes.size):
            nearest[i, j] = values[i, j]
            sizes[j] = abs(values[i, j]) if ball else values[i, j]
        if ball and _sum(sizes, 0.0) <= total:
            continue
        top, theta = _threshold(sizes, total, left)
        for j in range(sizes.size):
            # In this order, not less top + theta: sizes may be huge beside theta.
            size = max((sizes[j] - top) - theta, 0.0)
            nearest[i, j] = 0.0 - size if ball and values[i, j] < 0.0 else size  # no -0
    return nearest


@jit(TABLE, NUMBER)
def clipped_rows(rows: Any, radius: float) -> Any:
    """Return the rows, those that are longer shortened to that length."""
    found = np.empty(rows.shape)
    for i in range(rows.shape[0]):
        squared = 0.0
        for j in range(rows.shape[1]):
            squared += rows[i, j] * rows[i, j]
        length = math.sqrt(squared)
        if not 1e-150 < length < 1e150:  # squares have under- or overflowed, or soon will
            largest = np.abs(rows[i]).max()
            length = largest * np.sqrt(((rows[i] / largest) ** 2).sum()) if largest > 0.0 else 0.0
        share = radius / max(length, radius)
        for j in range(rows.shape[1]):
            found[i, j] = share * rows[i, j]
    return found


@fast_jit(STACK)
def sums_of_row_norms(matrices: Any) -> Any:
    """Return the sum of the Euclidean norms of its rows for every matrix of a stack."""
    sums = np.empty(matrices.shape[0])
    for i in range(matrices.shape[0]):
        sums[i] = 0.0
        for row in range(matrices.shape[1]):
            squared = 0.0
            for j in range(matrices.shape[2]):
                squared += matrices[i, row, j] * matrices[i, row, j]
            sums[i] += math.sqrt(squared)
    return sums

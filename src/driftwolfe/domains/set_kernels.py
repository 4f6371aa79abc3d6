"""Compiled loops over points."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftwolfe.points.compiling import ANSWER, NUMBER, STACK, TABLE, fast_jit, jit


@fast_jit()
def _sum(values: Any) -> float:
    total = 0.0
    for j in range(values.size):
        total += values[j]
    return total


@jit()
def _threshold(values: Any, total: float) -> Any:
    """Return the largest value, and the threshold, less that, above which values sum to `total`."""
    top = values[0]
    for value in values:
        top = max(top, value)
    left, count = np.empty(values.size), 0
    for value in values:
        if value - top > -total:  # the threshold of the largest value alone
            left[count] = value - top
            count += 1
    while True:
        theta = (_sum(left[:count]) - total) / count
        kept = 0
        for j in range(count):
            if left[j] > theta:
                left[kept] = left[j]
                kept += 1
        if kept == count:
            return top, theta
        count = kept


@jit(TABLE, NUMBER, ANSWER)
def nearest_rows(values: Any, total: float, ball: bool) -> Any:
    """Return the nearest rows >= 0 of this sum; for a ball, of at most this sum of absolute values."""
    nearest, sizes = np.empty(values.shape), np.empty(values.shape[1])
    for i in range(values.shape[0]):
        for j in range(sizes.size):
            nearest[i, j] = values[i, j]
            sizes[j] = abs(values[i, j]) if ball else values[i, j]
        if ball and _sum(sizes) <= total:
            continue
        top, theta = _threshold(sizes, total)
        for j in range(sizes.size):
            # In this order, not less top + theta: sizes may be huge beside theta.
            size = max((sizes[j] - top) - theta, 0.0)
            nearest[i, j] = -size if ball and size > 0.0 and values[i, j] < 0.0 else size
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

"""Projection of a tall, narrow matrix onto a trace-norm ball, in plain loops.

For a handful of columns that is several times quicker than calls of LAPACK, and compiles in a tenth
of the time that numba takes for those.
"""

# mypy: allow-untyped-decorators
from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftwolfe.points.jit import NEW_TABLE, NUMBER, NUMBERS, TABLE, WHOLE, fast_jit, jit

#: Sweeps of Jacobi's method; it converges quadratically, so about six are needed.
_SWEEPS = 40


@jit(NEW_TABLE, NEW_TABLE, WHOLE, WHOLE)
def _rotate(matrix: Any, vectors: Any, p: int, q: int) -> None:
    """Turn a symmetric matrix such that its entry at p, q becomes 0."""
    theta = (matrix[q, q] - matrix[p, p]) / (2.0 * matrix[p, q])
    t = math.copysign(1.0, theta) / (abs(theta) + math.sqrt(theta * theta + 1.0))
    cosine = 1.0 / math.sqrt(t * t + 1.0)
    sine = t * cosine
    for k in range(matrix.shape[0]):
        left, right = matrix[k, p], matrix[k, q]
        matrix[k, p] = cosine * left - sine * right
        matrix[k, q] = sine * left + cosine * right
        left, right = vectors[k, p], vectors[k, q]
        vectors[k, p] = cosine * left - sine * right
        vectors[k, q] = sine * left + cosine * right
    for k in range(matrix.shape[0]):
        upper, lower = matrix[p, k], matrix[q, k]
        matrix[p, k] = cosine * upper - sine * lower
        matrix[q, k] = sine * upper + cosine * lower


@jit(NEW_TABLE, NEW_TABLE)
def eigen(matrix: Any, vectors: Any) -> None:
    """Turn a symmetric matrix into the diagonal one of its eigenvalues (Jacobi 1846).

    The eigenvectors stand in columns, in the same order.
    """
    n = matrix.shape[0]
    for p in range(n):
        for q in range(n):
            vectors[p, q] = 1.0 if p == q else 0.0
    for _ in range(_SWEEPS):
        rest, whole = 0.0, 0.0
        for p in range(n):
            whole += matrix[p, p] * matrix[p, p]
            for q in range(p + 1, n):
                rest += matrix[p, q] * matrix[p, q]
        if not rest > 1e-32 * whole:
            return
        for p in range(n):
            for q in range(p + 1, n):
                if abs(matrix[p, q]) > 1e-300:
                    _rotate(matrix, vectors, p, q)


@jit(NUMBERS, NUMBER)
def threshold(values: Any, total: float) -> float:
    """Return theta such that the values less theta, where positive, sum to `total` (Michelot 1986).

    The values are positive or 0, and sum to more.
    """
    theta, number = 0.0, 0
    while True:
        above, kept = 0.0, 0
        for k in range(values.size):
            if values[k] > theta:
                above += values[k]
                kept += 1
        if kept == number or kept == 0:
            return theta
        theta, number = (above - total) / kept, kept


@fast_jit(NUMBERS, NUMBERS)
def _inner(left: Any, right: Any) -> float:
    total = 0.0
    for j in range(left.size):
        total += left[j] * right[j]
    return total


@jit(TABLE, TABLE, NUMBERS, NUMBER)
def _shrink(lines: Any, vectors: Any, values: Any, theta: float) -> Any:
    """Return lines with their singular values lowered by theta: V diag(1 - theta/s) V^T lines."""
    n, width = lines.shape
    shrunk = np.zeros((n, width))
    for p in range(n):
        for q in range(n):
            factor = 0.0
            for k in range(n):
                if values[k] > theta:
                    factor += vectors[p, k] * vectors[q, k] * (1.0 - theta / values[k])
            for j in range(width):
                shrunk[p, j] += factor * lines[q, j]
    return shrunk


@jit(NEW_TABLE, WHOLE, WHOLE, WHOLE, NUMBER)
def project_columns(table: Any, rows: int, first: int, columns: int, radius: float) -> Any:
    """Project some columns of a table, `rows` long, onto the ball.

    Returns their trace norm and their squared Frobenius norm then.

    As `TraceNormBall.project`, from the eigenvalues of the Gram matrix: singular values below 1e-8
    of the largest are lost.
    """
    lines = np.empty((columns, rows))
    for j in range(rows):
        for p in range(columns):
            lines[p, j] = table[j, first + p]
    gram, vectors = np.empty((columns, columns)), np.empty((columns, columns))
    for p in range(columns):
        for q in range(p + 1):
            gram[p, q] = gram[q, p] = _inner(lines[p], lines[q])
    eigen(gram, vectors)
    values, norm, squared = np.empty(columns), 0.0, 0.0
    for k in range(columns):
        values[k] = math.sqrt(max(gram[k, k], 0.0))
        norm += values[k]
        squared += gram[k, k]
    if norm <= radius:
        return norm, squared
    theta, squared = threshold(values, radius), 0.0
    for k in range(columns):
        squared += max(values[k] - theta, 0.0) ** 2
    shrunk = _shrink(lines, vectors, values, theta)
    for j in range(rows):
        for p in range(columns):
            table[j, first + p] = shrunk[p, j]
    return radius, squared

"""Compiled loops of squared distances."""

from __future__ import annotations

from driftwolfe.points.compiling import NEW_NUMBERS, NEW_TABLE, NUMBER, NUMBERS, TABLE, fast_jit


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

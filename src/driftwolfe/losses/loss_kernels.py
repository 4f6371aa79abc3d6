"""Compiled loops of losses."""

from __future__ import annotations

import math

import numpy as np

from driftwolfe.points.compiling import (
    NEW_NUMBERS,
    NEW_TABLE,
    NUMBER,
    NUMBERS,
    PLACES,
    TABLE,
    fast_jit,
)


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

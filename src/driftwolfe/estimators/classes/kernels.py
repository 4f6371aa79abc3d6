"""Compiled loops of `ClassExperts`: all experts see a row, are weighed by it, and take their step."""

# mypy: allow-untyped-decorators
from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftwolfe.estimators.classes.projection_kernels import project_columns
from driftwolfe.points.jit import (
    NEW_NUMBERS,
    NEW_TABLE,
    NUMBER,
    NUMBERS,
    PLACES,
    TABLE,
    WHOLE,
    jit,
)

#: Classes up to which plain loops project quicker than LAPACK.
FEW_CLASSES = 16


@jit(NEW_NUMBERS, NUMBER, NUMBERS, WHOLE)
def _add(total: Any, factor: float, values: Any, number: int) -> None:
    for c in range(number):
        total[c] += factor * values[c]


@jit(PLACES, NUMBERS, WHOLE, WHOLE, TABLE, NEW_NUMBERS)
def _score(places: Any, values: Any, first: int, last: int, points: Any, scores: Any) -> None:
    """Score a row by all classes of all experts."""
    scores[:] = 0.0
    for e in range(first, last):
        _add(scores, values[e], points[places[e]], scores.size)


@jit(NEW_NUMBERS, WHOLE, WHOLE)
def _softmax(scores: Any, first: int, classes: int) -> float:
    """Turn scores into probabilities; return the logarithm of what they were divided by."""
    top, total = scores[first], 0.0
    for c in range(first + 1, first + classes):
        top = max(top, scores[c])
    for c in range(first, first + classes):
        scores[c] = math.exp(scores[c] - top)
        total += scores[c]
    for c in range(first, first + classes):
        scores[c] /= total
    return top + math.log(total)


@jit(PLACES, PLACES, NUMBERS, TABLE, NUMBERS, NEW_TABLE)
def probabilities(
    starts: Any, places: Any, values: Any, points: Any, weights: Any, out: Any
) -> None:
    """Mix the experts' probabilities for every row."""
    classes = out.shape[1]
    scores = np.empty(points.shape[1])
    for k in range(out.shape[0]):
        _score(places, values, starts[k], starts[k + 1], points, scores)
        total = 0.0
        for i in range(weights.size):
            _softmax(scores, i * classes, classes)
            for c in range(classes):
                out[k, c] += weights[i] * scores[i * classes + c]
        for c in range(classes):
            total += out[k, c]
        for c in range(classes):
            out[k, c] /= total


@jit(NEW_NUMBERS, NUMBERS, NUMBER, NUMBER)
def _reweigh(weights: Any, logs: Any, part: float, share: float) -> None:
    """Multiply weights by likelihoods to the power `part`; spread a share of them evenly."""
    n, total, top = weights.size, 0.0, logs.max()
    for i in range(n):
        weights[i] *= math.exp(part * (logs[i] - top))
        total += weights[i]
    for i in range(n):
        weights[i] = (1.0 - share) * weights[i] / total + share / n


@jit()
def _note_step(
    scores: Any,
    slopes: Any,
    first: int,
    classes: int,
    step: float,
    squared: float,
    norms: Any,
) -> None:
    """Follow the norms of a matrix that takes a step: a bound on its trace norm, and ||Y||^2.

    The step has rank one, so its norm is its trace norm; and the trace norm of any matrix is at
    most ||Y|| times the root of its number of columns.
    """
    length, inner = 0.0, 0.0
    for c in range(first, first + classes):
        length += slopes[c] * slopes[c]
        inner += slopes[c] * scores[c]
    length *= squared
    norms[1] = max(norms[1] - 2.0 * step * inner + step * step * length, 0.0)
    norms[0] = min(norms[0] + step * math.sqrt(length), math.sqrt(classes * norms[1]))


@jit(
    WHOLE,
    WHOLE,
    PLACES,
    PLACES,
    NUMBERS,
    PLACES,
    NUMBERS,
    NUMBERS,
    NUMBERS,
    NUMBERS,
    NUMBER,
    NEW_TABLE,
    NEW_NUMBERS,
    NEW_TABLE,
)
def learn_rows(
    row: int,
    width: int,
    starts: Any,
    places: Any,
    values: Any,
    labels: Any,
    parts: Any,
    shares: Any,
    steps: Any,
    radii: Any,
    slack: float,
    points: Any,
    weights: Any,
    norms: Any,
) -> int:
    """Learn rows one by one: weigh the experts, let them take their steps, project where needed.

    Points have one row per feature, `width` of them, with all classes of all experts side by side.
    Norms have a row of bounds on their trace norms, and one of their squared Frobenius norms.
    Begins with number `row`. Returns how many rows are learned: all, unless there are so many
    classes that an expert is to be projected elsewhere.
    """
    n, scores = weights.size, np.empty(points.shape[1])
    classes, slopes = scores.size // n, np.empty(scores.size)
    logs = np.empty(n)
    for k in range(row, labels.size):
        first, last, squared = starts[k], starts[k + 1], 0.0
        for e in range(first, last):
            squared += values[e] * values[e]
        _score(places, values, first, last, points, scores)
        slopes[:] = scores
        for i in range(n):
            own = i * classes + labels[k]
            logs[i] = scores[own] - _softmax(slopes, i * classes, classes)
            slopes[own] = math.expm1(logs[i])  # p - 1, also where p is nearly 1
        _reweigh(weights, logs, parts[k], shares[k])
        for i in range(n):
            step = parts[k] * steps[i]
            _note_step(scores, slopes, i * classes, classes, step, squared, norms[:, i])
            for c in range(i * classes, (i + 1) * classes):
                slopes[c] *= -step
        for e in range(first, last):
            _add(points[places[e]], values[e], slopes, slopes.size)
        passed = False
        for i in range(n):
            if norms[0, i] > (1.0 + slack) * radii[i]:
                passed = True
                if classes <= FEW_CLASSES:
                    norms[0, i], norms[1, i] = project_columns(
                        points, width, i * classes, classes, radii[i]
                    )
        if passed and classes > FEW_CLASSES:
            return k + 1
    return labels.size

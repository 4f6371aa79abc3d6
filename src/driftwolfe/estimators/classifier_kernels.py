"""Compiled loops of the classifier."""

from __future__ import annotations

import math

import numpy as np

from driftwolfe.estimators.map_kernels import MAP as _MAP
from driftwolfe.estimators.map_kernels import map_row as _map_row
from driftwolfe.estimators.map_kernels import present as _present
from driftwolfe.estimators.weight_kernels import reweigh
from driftwolfe.points.compiling import (
    NEW_NUMBERS,
    NEW_TABLE,
    NUMBER,
    NUMBERS,
    PLACES,
    TABLE,
    WHOLE,
    direct,
    fast_jit,
    jit,
)

#: Rows, as `Rows` holds them.
_ROWS = (PLACES, PLACES, NUMBERS)


@fast_jit(TABLE)
def _gram(rows):
    """Return the lower half of the inner products of rows; a matrix product takes longer for few."""
    n = rows.shape[0]
    gram = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            own, other, total = rows[i], rows[j], 0.0
            for k in range(rows.shape[1]):
                total += own[k] * other[k]
            gram[i, j] = total
    return gram


@jit(NEW_TABLE, WHOLE, WHOLE, NUMBER)
def project_columns(table, first, columns, radius):
    """Project some columns of a table onto the ball; return their trace norm and squared norm."""
    own = table[:, first : first + columns].T.copy()
    # From the Gram matrix: singular values below 1e-8 of the largest are lost.
    squares, vectors = np.linalg.eigh(_gram(own))
    values = np.sqrt(np.maximum(squares, 0.0))  # rising
    norm = values.sum()
    if norm <= radius:
        return norm, (values * values).sum()
    above, theta = 0.0, 0.0  # the positive parts of values - theta shall sum to the radius
    for k in range(columns - 1, -1, -1):
        above += values[k]
        theta = max(theta, (above - radius) / (columns - k))
    kept = np.maximum(values - theta, 0.0)
    shrunk = ((vectors * (kept / np.maximum(values, theta))) @ vectors.T) @ own
    for j in range(table.shape[0]):  # as one assignment it would compile for seconds
        for c in range(columns):
            table[j, first + c] = shrunk[c, j]
    return radius, (kept * kept).sum()


@jit(NEW_TABLE, PLACES, WHOLE, WHOLE)
def copy_experts(points, sources, first, classes):
    """Copy the columns of some experts to those of as many from the expert `first` on.

    An expert that is both is copied to itself, so none is overwritten before it is copied.
    """
    for j in range(points.shape[0]):
        row = points[j]
        for k in range(sources.size):
            source, target = sources[k] * classes, (first + k) * classes
            for c in range(classes):
                row[target + c] = row[source + c]


@jit(NEW_NUMBERS, NUMBER, NUMBERS)
def _add(total, factor, values):
    for c in range(values.size):
        total[c] += factor * values[c]


@jit(PLACES, NUMBERS, WHOLE, WHOLE, TABLE, NEW_NUMBERS)
def _score(places, values, first, last, points, scores):
    """Score a row by all classes of all experts."""
    scores[:] = 0.0
    for e in range(first, last):
        _add(scores, values[e], points[places[e]])


@jit(NEW_NUMBERS, WHOLE, WHOLE)
def _softmax(scores, first, classes):
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


@jit(*_ROWS, TABLE, NUMBERS, NEW_TABLE)
def probabilities(starts, places, values, points, weights, out):
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


@jit(*_ROWS, PLACES, *[NUMBERS] * 4, NUMBER, NEW_TABLE, NEW_NUMBERS, NEW_TABLE)
def learn_rows(
    starts, places, values, labels, parts, shares, steps, radii, slack, points, weights, norms
):
    """Learn rows: weigh the experts, take their steps, and project those too far outside their ball."""
    n, scores = weights.size, np.empty(points.shape[1])
    classes, logs = scores.size // n, np.empty(n)
    for k in range(labels.size):
        first, last, squared = starts[k], starts[k + 1], 0.0
        for e in range(first, last):
            squared += values[e] * values[e]
        _score(places, values, first, last, points, scores)
        slopes = scores.copy()
        for i in range(n):
            own = i * classes + labels[k]
            logs[i] = scores[own] - _softmax(slopes, i * classes, classes)
            slopes[own] = math.expm1(logs[i])  # p - 1, also where p is nearly 1
        reweigh(weights, logs, parts[k], shares[k])
        for i in range(n):
            step, length, inner = parts[k] * steps[i], 0.0, 0.0
            for c in range(i * classes, (i + 1) * classes):
                length += slopes[c] * slopes[c]
                inner += slopes[c] * scores[c]
                slopes[c] *= -step
            length *= squared
            # The step has rank one, so its norm is its trace norm; and the trace norm of any matrix is
            # at most its norm times the root of its number of columns.
            norms[1, i] = max(norms[1, i] - 2.0 * step * inner + step * step * length, 0.0)
            norms[0, i] += step * math.sqrt(length)
            norms[0, i] = min(norms[0, i], math.sqrt(classes * norms[1, i]))
        for e in range(first, last):
            _add(points[places[e]], values[e], slopes)
        for i in range(n):
            if norms[0, i] > (1.0 + slack) * radii[i]:
                norms[0, i], norms[1, i] = project_columns(points, i * classes, classes, radii[i])


@jit(PLACES, NUMBERS, NUMBER, NUMBER, _MAP, TABLE, NUMBERS, WHOLE)
def predict_one(places, values, largest, smallest, state, points, weights, classes):
    """Return the probabilities for one row; none if a value is out of range."""
    own, known, sound = _present(places, values, largest, smallest)
    if not sound:
        return np.empty(0)
    starts, mapped, out = _map_row(own, known, np.empty(0), state)
    told = np.zeros((1, classes))
    probabilities(starts, mapped, out, points, weights, told)
    return told[0]


@jit(
    *(PLACES, NUMBERS, NUMBER, NUMBER, _MAP, WHOLE, NUMBER, NUMBERS, NUMBERS, NUMBER),
    *(NEW_TABLE, NEW_NUMBERS, NEW_TABLE),
)
def learn_one(
    places,
    values,
    largest,
    smallest,
    state,
    label,
    share,
    steps,
    radii,
    slack,
    points,
    weights,
    norms,
):
    """Learn one row of weight 1; return whether all values are in range, otherwise nothing changes."""
    own, known, sound = _present(places, values, largest, smallest)
    if sound:
        parts = np.ones(1)
        starts, mapped, out = _map_row(own, known, parts, state)
        labels, shares = np.array([label]), np.array([share])
        learn_rows(
            starts, mapped, out, labels, parts, shares, steps, radii, slack, points, weights, norms
        )
    return sound


#: Quicker to call; all arguments must be of the right types.
learn_one_row, predict_one_row = direct(learn_one), direct(predict_one)

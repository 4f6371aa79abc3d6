"""Compiled loops of the classifier."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from driftwolfe.estimators.map_kernels import MAP as _MAP
from driftwolfe.estimators.map_kernels import divisor, full_rows
from driftwolfe.estimators.map_kernels import map_row as _map_row
from driftwolfe.estimators.map_kernels import present as _present
from driftwolfe.estimators.weight_kernels import reweigh
from driftwolfe.points.compiling import (
    NEW_NUMBERS,
    NEW_PLACES,
    NEW_TABLE,
    NUMBER,
    NUMBERS,
    PLACES,
    TABLE,
    WHOLE,
    fast_jit,
    jit,
)

#: Rows, as `Rows` holds them.
_tuple: Any = numba.types.Tuple
_alike: Any = numba.types.UniTuple
_ROW = _tuple((NEW_PLACES, NEW_PLACES, NEW_NUMBERS))
NEW_INDICES = numba.int64[:, ::1]


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


@jit(NEW_TABLE, NUMBERS, NUMBERS, WHOLE)
def average_experts(points, weights, rates, classes):
    """Move the last experts, one for each rate, towards the weighted mean of those before them."""
    mean = np.empty(classes)
    for j in range(points.shape[0]):
        row, used = points[j], False
        for c in range(row.size):
            used |= row[c] != 0.0
        if not used:  # as most leaves of ferns are at first
            continue
        mean[:] = 0.0
        for i in range(weights.size):
            for c in range(classes):
                mean[c] += weights[i] * row[i * classes + c]
        for k in range(rates.size):
            first = (weights.size + k) * classes
            for c in range(classes):
                row[first + c] += rates[k] * (mean[c] - row[first + c])


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


#: Experts are in four views: linear, linear with doubts about labels, waves, ferns; a table of points each.
POINTS = _alike(NEW_TABLE, 4)
#: Rows as these see them: the first two alike.
_SIGHTS = _alike(_ROW, 3)
#: The second view takes a label for drawn at random with this probability.
NOISE = 0.1
#: Smaller probabilities count as this where views are weighed.
LEAST = 1e-300


@jit()
def _number_of(points, weights):
    """Return the number of classes."""
    columns = 0
    for table in points:
        columns += table.shape[1]
    return columns // weights.size


@jit(_SIGHTS, POINTS, PLACES, NUMBERS, NUMBERS, NEW_TABLE)
def probabilities(sights, points, rests, credits, weights, out):
    """Mix the probabilities of the experts of views that do not rest, for every row."""
    classes = out.shape[1]
    for k in range(out.shape[0]):
        first, total = 0, 0.0
        for v in range(credits.size):
            table, (starts, places, values) = points[v], sights[max(v - 1, 0)]
            number, noise = table.shape[1] // classes, NOISE if v == 1 else 0.0
            if rests[v] == 0:
                scores = np.empty(table.shape[1])
                _score(places, values, starts[k], starts[k + 1], table, scores)
                for i in range(number):
                    _softmax(scores, i * classes, classes)
                    for c in range(classes):
                        told = (1.0 - noise) * scores[i * classes + c] + noise / classes
                        out[k, c] += credits[v] * weights[first + i] * told
            first += number
        for c in range(classes):
            total += out[k, c]
        for c in range(classes):
            out[k, c] /= total


@jit()
def _judge(sight, k, label, noise, classes, points, scores, slopes, logs):
    """Compute the scores, slopes and log probabilities of the experts of one view."""
    starts, places, values = sight
    _score(places, values, starts[k], starts[k + 1], points, scores)
    for c in range(scores.size):  # as one assignment it would compile for seconds
        slopes[c] = scores[c]
    for i in range(logs.size):
        own = i * classes + label
        logs[i] = scores[own] - _softmax(slopes, i * classes, classes)
        slopes[own] = math.expm1(logs[i])  # p - 1, also where p is nearly 1
        if noise > 0.0:
            # The slope of -log((1 - noise) p + noise/classes): less for labels that are probably wrong.
            sure = (1.0 - noise) * math.exp(logs[i])
            logs[i] = math.log(sure + noise / classes)
            for c in range(i * classes, (i + 1) * classes):
                slopes[c] *= sure / (sure + noise / classes)


@jit()
def _descend(sight, k, part, classes, steps, radii, slack, points, scores, slopes, norms):
    """Take the steps of the experts of one view, and project those too far outside their ball."""
    starts, places, values = sight
    first, last, squared = starts[k], starts[k + 1], 0.0
    for e in range(first, last):
        squared += values[e] * values[e]
    for i in range(steps.size):
        step, length, inner = part * steps[i], 0.0, 0.0
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
    for i in range(steps.size):
        if norms[0, i] > (1.0 + slack) * radii[i]:
            norms[0, i], norms[1, i] = project_columns(points, i * classes, classes, radii[i])


@jit(
    *(_SIGHTS, PLACES, *[NUMBERS] * 4, NUMBER, POINTS, PLACES),
    *(NEW_NUMBERS, NEW_NUMBERS, NEW_TABLE),
)
def learn_rows(
    sights, labels, parts, shares, steps, radii, slack, points, rests, credits, weights, norms
):
    """Learn rows: weigh the views and their experts, and let those that do not rest take their steps."""
    n, views, classes = weights.size, credits.size, _number_of(points, weights)
    scores, slopes = np.empty(n * classes), np.empty(n * classes)
    logs, gains = np.empty(n), np.empty(views)
    for k in range(labels.size):
        first, awake, mixed = 0, 0.0, 0.0
        for v in range(views):
            last = first + points[v].shape[1] // classes
            if rests[v] == 0:
                own = slice(first * classes, last * classes)
                noise, told = NOISE if v == 1 else 0.0, 0.0
                _judge(
                    *(sights[max(v - 1, 0)], k, labels[k], noise, classes, points[v]),
                    *(scores[own], slopes[own], logs[first:last]),
                )
                for i in range(first, last):
                    told += weights[i] * math.exp(logs[i])
                gains[v] = math.log(max(told, LEAST))
                awake += credits[v]
                mixed += credits[v] * told
                reweigh(weights[first:last], logs[first:last], parts[k], shares[k])
                _descend(
                    *(sights[max(v - 1, 0)], k, parts[k], classes, steps[first:last]),
                    *(radii[first:last], slack, points[v], scores[own], slopes[own]),
                    norms[:, first:last],
                )
            first = last
        for v in range(views):
            if rests[v] != 0:  # it says what the others say, so its weight stays
                gains[v] = math.log(max(mixed / awake, LEAST))
        reweigh(credits, gains, parts[k], shares[k])


#: What random features are: of waves the features looked at, their slopes, the offsets and the map; of
#: ferns the features tested, the cuts, the weights of leaves, and totals as in a map.
_RANDOM = _tuple(
    (
        *(NEW_INDICES, NEW_TABLE, NEW_NUMBERS, _MAP),
        *(NEW_INDICES, NEW_TABLE, NEW_NUMBERS, NEW_NUMBERS),
    )
)


@jit()
def _places(n, width):
    """Return 0, ..., width - 1 for each of n rows; remainders would take longer."""
    out = np.empty(n * width, np.int64)
    for k in range(n):
        for j in range(width):
            out[k * width + j] = j
    return out


@jit()
def _wave_rows(z, parts, waves):
    """Return rows of decorrelated cosines, followed by z."""
    looks, slopes, offsets, state = waves
    constant, _, totals, seen, mean, moments, _, centre, table = state
    n, number = z[0].size - 1, offsets.size
    width = z[0][1] if n > 0 else 0
    told = np.empty(n * number)
    for k in range(n):
        row = z[2][k * width : (k + 1) * width]
        for m in range(number):
            angle = offsets[m]
            for j in range(looks.shape[1]):
                angle += slopes[m, j] * row[looks[m, j]]
            told[k * number + m] = math.cos(angle)
    cosines = np.empty(n * (number + 1))
    full_rows(
        *(np.arange(n + 1) * number, _places(n, number), told, parts, constant, totals, seen),
        *(mean, moments, centre, table, cosines),
    )
    # Each entry has the same variance in the end.
    both = number + 1 + width
    ours, linear = math.sqrt((number + 1.0) / both), math.sqrt(width / both)
    out = np.empty(n * both)
    for k in range(n):
        for m in range(number + 1):
            out[k * both + m] = ours * cosines[k * (number + 1) + m]
        for j in range(width):
            out[k * both + number + 1 + j] = linear * z[2][k * width + j]
    return np.arange(n + 1) * both, _places(n, both), out


@jit()
def _fern_rows(given, parts, features, ferns):
    """Return rows with one entry for each fern: that of its leaf, larger for rare ones."""
    (starts, places, values), (tests, cuts, counts, totals) = given, ferns
    n, number, learning = starts.size - 1, tests.shape[0], parts.size > 0
    row, leaves, out = np.empty(features), np.empty(n * number, np.int64), np.empty(n * number)
    for k in range(n):
        row[:] = 0.0
        for e in range(starts[k], starts[k + 1]):
            row[places[e]] = values[e]
        part, squared = parts[k] if learning else 0.0, 0.0
        totals[0] += part
        for f in range(k * number, (k + 1) * number):
            own, leaf = f - k * number, 1
            for j in range(tests.shape[1]):
                leaf = 2 * leaf + (row[tests[own, j]] > cuts[own, j])
            leaf += (own - 1) << tests.shape[1]
            counts[leaf] += part
            # The fourth root of its frequency: chosen on the streams of benchmarks/nonlinear.py.
            square = math.sqrt((totals[0] + 1.0) / (counts[leaf] + 1.0))
            leaves[f], out[f] = leaf, math.sqrt(square)
            squared += square
        length = divisor(totals, squared, part)
        for f in range(k * number, (k + 1) * number):
            out[f] /= length
    return np.arange(n + 1) * number, leaves, out


@jit(_ROW, _ROW, NUMBERS, WHOLE, _RANDOM, PLACES)
def see(given, z, parts, features, random, rests):
    """Return rows as the views see them, those that do not rest; count those with weights `parts`."""
    looks, slopes, offsets, state, tests, cuts, counts, totals = random
    none = np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    waves = none if rests[2] != 0 else _wave_rows(z, parts, (looks, slopes, offsets, state))
    ferns = (
        none if rests[3] != 0 else _fern_rows(given, parts, features, (tests, cuts, counts, totals))
    )
    return z, waves, ferns


@jit(PLACES, NUMBERS, NUMBER, NUMBER, _MAP, _RANDOM, POINTS, PLACES, NUMBERS, NUMBERS)
def predict_one(places, values, largest, smallest, state, random, points, rests, credits, weights):
    """Return the probabilities for one row; none if a value is out of range."""
    own, known, sound = _present(places, values, largest, smallest)
    if not sound:
        return np.empty(0)
    parts, features = np.empty(0), state[3].size
    z = _map_row(own, known, parts, state)
    given = np.array([0, own.size]), own, known
    told = np.zeros((1, _number_of(points, weights)))
    sights = see(given, z, parts, features, random, rests)
    probabilities(sights, points, rests, credits, weights, told)
    return told[0]


@jit(
    *(PLACES, NUMBERS, NUMBER, NUMBER, _MAP, _RANDOM, WHOLE, NUMBER, NUMBERS, NUMBERS, NUMBER),
    *(POINTS, PLACES, NEW_NUMBERS, NEW_NUMBERS, NEW_TABLE),
)
def learn_one(
    places,
    values,
    largest,
    smallest,
    state,
    random,
    label,
    share,
    steps,
    radii,
    slack,
    points,
    rests,
    credits,
    weights,
    norms,
):
    """Learn one row of weight 1; return whether all values are in range, otherwise nothing changes."""
    own, known, sound = _present(places, values, largest, smallest)
    if sound:
        parts = np.ones(1)
        z = _map_row(own, known, parts, state)
        given = np.array([0, own.size]), own, known
        sights = see(given, z, parts, state[3].size, random, rests)
        labels, shares = np.array([label]), np.array([share])
        learn_rows(
            *(sights, labels, parts, shares, steps, radii, slack),
            *(points, rests, credits, weights, norms),
        )
    return sound


@jit(PLACES, NUMBERS, NUMBER, NUMBER, _MAP, NEW_TABLE, NUMBERS)
def predict_linear(places, values, largest, smallest, state, points, weights):
    """Return the same where the first view is all there is."""
    own, known, sound = _present(places, values, largest, smallest)
    if not sound:
        return np.empty(0)
    starts, seen, entries = _map_row(own, known, np.empty(0), state)
    scores, classes, total = np.empty(points.shape[1]), points.shape[1] // weights.size, 0.0
    _score(seen, entries, starts[0], starts[1], points, scores)
    told = np.zeros(classes)
    for i in range(weights.size):
        _softmax(scores, i * classes, classes)
        for c in range(classes):
            told[c] += weights[i] * scores[i * classes + c]
    for c in range(classes):
        total += told[c]
    for c in range(classes):
        told[c] /= total
    return told


@jit(
    *(PLACES, NUMBERS, NUMBER, NUMBER, _MAP, WHOLE, NUMBER, NUMBERS, NUMBERS, NUMBER),
    *(NEW_TABLE, NEW_NUMBERS, NEW_TABLE),
)
def learn_linear(
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
    """Learn one row where the first view is all there is."""
    own, known, sound = _present(places, values, largest, smallest)
    if sound:
        z = _map_row(own, known, np.ones(1), state)
        n, classes = weights.size, points.shape[1] // weights.size
        scores, slopes, logs = np.empty(n * classes), np.empty(n * classes), np.empty(n)
        _judge(z, 0, label, 0.0, classes, points, scores, slopes, logs)
        reweigh(weights, logs, 1.0, share)
        # A part of the norms, as `learn_rows` passes it: the same code serves both.
        _descend(z, 0, 1.0, classes, steps, radii, slack, points, scores, slopes, norms[:, 0:n])
    return sound

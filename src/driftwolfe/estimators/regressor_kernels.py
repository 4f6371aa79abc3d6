"""Compiled loops of the regressor."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np

from driftwolfe.estimators.map_kernels import MAP, map_row, present
from driftwolfe.estimators.weight_kernels import reweigh
from driftwolfe.points.compiling import (
    NEW_NUMBERS,
    NEW_PLACES,
    NEW_TABLE,
    NUMBER,
    NUMBERS,
    PLACES,
    TABLE,
    fast_jit,
    jit,
)

#: Rows that the windows look back, by exponential forgetting; the last forgets nothing.
WINDOWS = (8.0, 32.0, 128.0, 512.0, math.inf)
#: The first window with random features.
FIRST_WIDE = 2
#: Experts besides those in balls: the last target; of every window its mean, its ridge regression and that
#: of changes; and with random features.
PLAIN = 1 + 4 * len(WINDOWS) - FIRST_WIDE
#: Rows' worth of uncorrelated data in ridge regressions.
RIDGE = 1.0
#: Standardised features are clipped at this before random features are computed.
CLIP = 4.0
#: Scales up to this share of a mean are rounding.
ROUNDING = 1e-12
#: Rate of the weights per unit of loss; the unit over the running mean of errors; rows that this looks back.
RATE, UNIT, MEMORY = 0.8, 1.33, 512.0
#: Largest error of the mean prediction, in units: one wild row does not decide which expert is best.
LARGEST_ERROR = 4.0
#: Predictions may leave the range of targets so far by this share of it.
BEYOND = 0.25
#: By which share the trace norm may pass the radius before an expert is projected.
SLACK = 0.5
#: Rows of `State.targets`.
LOW, HIGH, LAST, ERROR, SQUARES = range(5)


class State(NamedTuple):
    """All that is learned, but for the feature map. A window k + len(WINDOWS) is window k of changes."""

    clock: Any  # rows learned
    targets: Any  # lowest, highest, last; mean error; squared deviations: a column for each output
    weights: Any  # of experts: a row for each output
    points: Any  # experts in balls: a row for each mapped feature, outputs within experts
    norms: Any  # bounds on their trace norms; squared Frobenius norms
    row: Any  # the last one
    directions: Any  # of random features: a column for each
    offsets: Any
    totals: Any  # by window: sum of the weights of its rows
    ages: Any  # rows since the last fit
    means: Any  # of features, random ones last
    centres: Any  # means of targets
    moments: Any  # of features about their means, lower triangles
    cross: Any  # of features and targets
    narrow: Any  # coefficients without random features
    wide: Any  # with them


_STACK = numba.float64[:, :, ::1]
_group: Any = numba.types.NamedTuple
_HEAD = (NEW_PLACES, *[NEW_TABLE] * 4, NEW_NUMBERS, NEW_TABLE, NEW_NUMBERS)
STATE = _group((*_HEAD, NEW_NUMBERS, NEW_PLACES, NEW_TABLE, NEW_TABLE, *[_STACK] * 4), State)
#: Rows as they are, with the range of their numbers, and what the map knows.
_GIVEN = (PLACES, PLACES, NUMBERS, NUMBER, NUMBER, MAP)


@jit()
def _inverse_scales(state, window, inverse):
    """Compute the inverse standard deviations of features, 0 where they are constant."""
    total, means, moments = state.totals[window], state.means[window], state.moments[window]
    for i in range(inverse.size):
        deviation = math.sqrt(max(moments[i, i], 0.0) / total) if total > 0.0 else 0.0
        inverse[i] = 1.0 / deviation if deviation > ROUNDING * abs(means[i]) else 0.0


@jit()
def _features(places, values, state, inverse, features, change):
    """Compute a row's features, random ones last, and its change from the row before."""
    features[:] = 0.0
    d = change.size
    if d == 0:
        return
    for e in range(places.size):
        features[places[e]] = values[e]
    means = state.means[len(WINDOWS) - 1]
    _inverse_scales(state, len(WINDOWS) - 1, inverse[:d])
    for r in range(state.offsets.size):
        features[d + r] = state.offsets[r]
    for i in range(d):
        change[i] = features[i] - state.row[i]
        scaled = min(max((features[i] - means[i]) * inverse[i], -CLIP), CLIP)
        if scaled != 0.0:
            for r in range(state.offsets.size):
                features[d + r] += scaled * state.directions[i, r]
    for r in range(state.offsets.size):
        features[d + r] = math.cos(features[d + r])


@fast_jit()
def _product(values, means, coefficients, size, output):
    total = 0.0
    for i in range(size):
        total += (values[i] - means[i]) * coefficients[i, output]
    return total


@jit()
def _ask(places, values, state, features, change, told):
    """Compute every expert's prediction, clipped, a row for each output; return the scores in balls."""
    outputs, d, windows = len(told), change.size, len(WINDOWS)
    scores, weight = np.zeros(state.points.shape[1]), state.totals[windows - 1]
    for e in range(places.size):
        point = state.points[places[e]]
        for g in range(scores.size):
            scores[g] += values[e] * point[g]
    for o in range(outputs):
        own, last = told[o], state.targets[LAST, o]
        own[0], n = last, 1
        for k in range(windows):
            level, means = state.centres[k, o], state.means[k]
            own[n] = level
            own[n + 1] = level + _product(features, means, state.narrow[k], d, o)
            n += 2
            if k >= FIRST_WIDE:
                own[n] = level + _product(features, means, state.wide[k], features.size, o)
                n += 1
            other = windows + k
            moved = _product(change, state.means[other], state.narrow[other], d, o)
            own[n] = last + state.centres[other, o] + moved
            n += 1
        scale = math.sqrt(state.targets[SQUARES, o] / weight) if weight > 0.0 else 0.0
        for g in range(o, scores.size, outputs):
            own[n] = state.centres[windows - 1, o] + scale * scores[g]
            n += 1
        room = BEYOND * (state.targets[HIGH, o] - state.targets[LOW, o])
        low, high = state.targets[LOW, o] - room, state.targets[HIGH, o] + room
        for i in range(own.size):
            # A NaN, from infinite terms, becomes the last target.
            own[i] = min(max(own[i], low), high) if own[i] == own[i] else last
    return scores


@jit()
def _mix(weights, told):
    total = 0.0
    for i in range(weights.size):
        total += weights[i] * told[i]
    return total


@jit()
def _weigh(state, told, target, part, slopes):
    """Weigh the experts; return the slopes of Huber's loss of every output, in the units of its errors."""
    t, gains = state.clock[0], np.empty(told.shape[1])
    for o in range(target.size):
        own, error = state.targets[:, o], _mix(state.weights[o], told[o]) - target[o]
        own[ERROR] += min(part, 1.0) * (abs(error) - own[ERROR]) * max(1.0 / t, 1.0 / MEMORY)
        unit = max(UNIT * own[ERROR], abs(error) / LARGEST_ERROR)
        slopes[o] = 0.0
        if unit <= ROUNDING * max(abs(own[LOW]), abs(own[HIGH])):
            continue
        slopes[o] = 1.0 / unit
        for i in range(gains.size):
            size = abs(told[o, i] - target[o]) / unit
            gains[i] = -(0.5 * size * size if size < 1.0 else size - 0.5)
        reweigh(state.weights[o], gains, part * RATE, min(part, 1.0) / (t + 1.0))


@jit()
def _descend(places, values, state, scores, target, part, units, steps, radii):
    """Take the steps of the experts in balls; return whether one is too far outside."""
    outputs, windows = target.size, len(WINDOWS)
    squared, weight = 0.0, state.totals[windows - 1]
    for e in range(values.size):
        squared += values[e] * values[e]
    slopes, outside = np.zeros(scores.size), False
    for g in range(radii.size):
        step, length, inner = part * steps[g], 0.0, 0.0
        for o in range(outputs):
            scale, c = math.sqrt(state.targets[SQUARES, o] / weight), g * outputs + o
            error = (state.centres[windows - 1, o] + scale * scores[c] - target[o]) * units[o]
            slope = min(max(error, -1.0), 1.0) if scale > 0.0 else 0.0
            length += slope * slope
            inner += slope * scores[c]
            slopes[c] = -step * slope
        length *= squared
        # The step has rank one, so its norm is its trace norm; and the trace norm of any matrix is
        # at most its norm times the root of its number of columns.
        norms = state.norms[:, g]
        norms[1] = max(norms[1] - 2.0 * step * inner + step * step * length, 0.0)
        norms[0] = min(norms[0] + step * math.sqrt(length), math.sqrt(outputs * norms[1]))
        outside = outside or norms[0] > (1.0 + SLACK) * radii[g]
    for e in range(places.size):
        point = state.points[places[e]]
        for c in range(scores.size):
            point[c] += values[e] * slopes[c]
    return outside


@fast_jit()
def _fit(moments, cross, inverse, size, top, narrow, wide, factor, solved):
    """Fit ridge regressions with the first `size` and with the first `top` features, by one factor."""
    outputs = cross.shape[1]
    for i in range(top):
        row = factor[i]
        for j in range(i + 1):
            total = moments[i, j] * inverse[i] * inverse[j]
            for k in range(j):
                total -= row[k] * factor[j, k]
            row[j] = total / factor[j, j] if j < i else math.sqrt(max(total + RIDGE, 0.5 * RIDGE))
        for o in range(outputs):
            total = cross[i, o] * inverse[i]
            for k in range(i):
                total -= row[k] * solved[k, o]
            solved[i, o] = total / row[i]
    _substitute(factor, solved, inverse, size, narrow)
    if top > size:
        _substitute(factor, solved, inverse, top, wide)


@fast_jit()
def _substitute(factor, solved, inverse, size, found):
    """Solve with the transpose of the leading rows of a factor."""
    for o in range(found.shape[1]):
        for i in range(size):
            found[i, o] = solved[i, o]
        for i in range(size - 1, -1, -1):
            found[i, o] /= factor[i, i]
            for k in range(i):
                found[k, o] -= factor[i, k] * found[i, o]
        for i in range(size):
            found[i, o] *= inverse[i]


@jit()
def _count(values, target, part, state, window, decay, size):
    """Count a row in a window: means and moments about them, as in Welford (1962)."""
    state.totals[window] = decay * state.totals[window] + part
    share = part / state.totals[window]
    means, centres = state.means[window], state.centres[window]
    moments, cross = state.moments[window], state.cross[window]
    before, after = np.empty(size), np.empty(size)
    for o in range(target.size):
        centres[o] += share * (target[o] - centres[o])
    for i in range(size):
        before[i] = values[i] - means[i]
        means[i] += share * before[i]
        after[i] = values[i] - means[i]
    for i in range(size):
        factor, row = part * before[i], moments[i]
        for j in range(i + 1):
            row[j] = decay * row[j] + factor * after[j]
        for o in range(target.size):
            cross[i, o] = decay * cross[i, o] + factor * (target[o] - centres[o])


@jit()
def _count_all(features, change, target, part, state, inverse, factor, solved):
    """Count a row in all windows, and fit those where it is time."""
    d, windows, t = change.size, len(WINDOWS), state.clock[0]
    moved = np.empty(target.size)
    for o in range(target.size):
        moved[o] = target[o] - state.targets[LAST, o]
        ahead = target[o] - state.centres[windows - 1, o]
        total = state.totals[windows - 1]
        state.targets[SQUARES, o] += part * total / (total + part) * ahead * ahead
    for k in range(windows - 1, -1, -1):
        decay = 1.0 - 1.0 / WINDOWS[k]
        top = features.size if k >= FIRST_WIDE else d
        _count(features, target, part, state, k, decay, top)
        if t > 0:
            _count(change, moved, part, state, windows + k, decay, d)
    for first in (0, windows):
        if first > 0 and t == 0:
            continue
        _inverse_scales(state, first + windows - 1, inverse)
        for k in range(windows):
            window = first + k
            top = features.size if k >= FIRST_WIDE and first == 0 else d
            state.ages[window] += 1
            # One factor takes the time of many rows where there are many features.
            rows = state.totals[window]
            if state.ages[window] >= min(max(top * top / 512.0, rows / 64.0), rows / 8.0):
                state.ages[window] = 0
                _fit(
                    *(state.moments[window], state.cross[window], inverse, d, top),
                    *(state.narrow[window], state.wide[window], factor, solved),
                )


@jit()
def _spare(state):
    """Return working memory."""
    outputs, experts = state.weights.shape
    width = state.means.shape[1]
    return (
        *(np.empty(width), np.empty(state.row.size), np.empty(width)),
        *(np.empty((outputs, experts)), np.empty(outputs)),
    )


@jit(*_GIVEN, TABLE, NUMBERS, STATE, NUMBERS, NUMBERS)
def learn(starts, places, values, largest, smallest, scales, targets, parts, state, steps, radii):
    """Learn rows of weights `parts`, until a number is out of range or an expert too far outside its ball.

    Return the number of rows learned, below 0 if an expert is to be projected before the next.
    """
    features, change, inverse, told, units = _spare(state)
    width = state.means.shape[1]
    factor, solved = np.empty((width, width)), np.empty((width, units.size))
    target, part = np.empty(units.size), np.empty(1)
    for n in range(parts.size):
        own = slice(starts[n], starts[n + 1])
        row, known, sound = present(places[own], values[own], largest, smallest)
        for o in range(target.size):
            target[o] = targets[n, o]
            sound = sound and abs(target[o]) <= largest
        if not sound:
            return n
        part[0], outside, t = parts[n], False, state.clock[0]
        _, mapped, weights = map_row(row, known, part, scales)
        _features(row, known, state, inverse, features, change)
        if t > 0:
            scores = _ask(mapped, weights, state, features, change, told)
            _weigh(state, told, target, part[0], units)
            outside = _descend(mapped, weights, state, scores, target, part[0], units, steps, radii)
        _count_all(features, change, target, part[0], state, inverse, factor, solved)
        for o in range(target.size):
            ends = state.targets[:, o]
            ends[LOW] = min(ends[LOW], target[o]) if t > 0 else target[o]
            ends[HIGH] = max(ends[HIGH], target[o]) if t > 0 else target[o]
            ends[LAST] = target[o]
        for i in range(change.size):
            state.row[i] = features[i]
        state.clock[0] += 1
        if outside:
            return -n - 1
    return parts.size


@jit(*_GIVEN, STATE, NEW_TABLE)
def predict(starts, places, values, largest, smallest, scales, state, told):
    """Predict rows; return whether all numbers are in range."""
    features, change, inverse, answers, _ = _spare(state)
    for n in range(starts.size - 1):
        own = slice(starts[n], starts[n + 1])
        row, known, sound = present(places[own], values[own], largest, smallest)
        if not sound:
            return False
        _, mapped, weights = map_row(row, known, np.empty(0), scales)
        _features(row, known, state, inverse, features, change)
        _ask(mapped, weights, state, features, change, answers)
        for o in range(told.shape[1]):
            told[n, o] = _mix(state.weights[o], answers[o])
    return True

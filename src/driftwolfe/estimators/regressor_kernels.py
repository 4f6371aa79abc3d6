"""Compiled loops of the regressor."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
import numpy as np

from driftwolfe.estimators.map_kernels import MAP, NEGLIGIBLE, WILD, divisor, map_row, present
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


@jit()
def _inverse(moment, total, mean):
    """Compute an inverse standard deviation, 0 if it is that of a constant."""
    deviation = math.sqrt(max(moment, 0.0) / total) if total > 0.0 else 0.0
    return 1.0 / deviation if deviation > ROUNDING * abs(mean) else 0.0


@fast_jit()
def _product(features, first, size, means, coefficients, window, output):
    """Multiply features, about their means in a window, by its coefficients."""
    total = 0.0
    for i in range(size):
        total += (features[first + i] - means[window, i]) * coefficients[window, i, output]
    return total


@fast_jit()
def _fit(moments, cross, inverse, window, size, top, narrow, wide, factor, solved):
    """Fit ridge regressions with the first `size` and with the first `top` features, by one factor."""
    outputs = cross.shape[2]
    for i in range(top):
        for j in range(i + 1):
            total = moments[window, i, j] * inverse[i] * inverse[j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            if j < i:
                factor[i, j] = total / factor[j, j]
            else:
                factor[i, i] = math.sqrt(max(total + RIDGE, 0.5 * RIDGE))
        for o in range(outputs):
            total = cross[window, i, o] * inverse[i]
            for k in range(i):
                total -= factor[i, k] * solved[k, o]
            solved[i, o] = total / factor[i, i]
    found, number = narrow, size
    while True:  # solve with the transpose of the leading rows of the factor
        for o in range(outputs):
            for i in range(number):
                found[window, i, o] = solved[i, o]
            for i in range(number - 1, -1, -1):
                found[window, i, o] /= factor[i, i]
                for k in range(i):
                    found[window, k, o] -= factor[i, k] * found[window, i, o]
            for i in range(number):
                found[window, i, o] *= inverse[i]
        if number == top:
            return
        found, number = wide, top


def _loop(full):
    """Return the loop for a full map, or for many features, which have no ridge regressions."""

    @jit(PLACES, PLACES, NUMBERS, NUMBER, NUMBER, MAP, TABLE, NUMBERS, STATE, NUMBERS, NUMBERS, NEW_TABLE)
    def follow(
        starts, places, values, largest, smallest, scales, targets, parts, state, steps, radii, told
    ):
        """Learn rows of weights `parts`, or without any predict rows, until a number is out of range.

        Return the number of rows done, below 0 if an expert is to be projected before the next.
        """
        constant, _, counts, seen, average, spread, _, origin, table = scales
        clock, ends, weights, points, norms, before, directions, offsets = state[:8]
        totals, ages, means, centres, moments, cross, narrow, wide = state[8:]
        d, width, windows, random = before.size, means.shape[1], totals.size // 2, offsets.size
        outputs, experts, columns = weights.shape[0], weights.shape[1], points.shape[1]
        learning, everything = parts.size > 0, windows - 1  # the window of all rows
        features = np.empty(width + d)  # known, random, and changes
        ahead, after, inverse = np.empty(width), np.empty(width), np.empty(width)
        factor, solved = np.empty((width, width)), np.empty((width, outputs))
        guesses, scores, units = np.empty(experts), np.empty(columns), np.empty(outputs)
        z, size = np.empty(d + 1), d + 1  # the mapped row
        for n in range(starts.size - 1):
            part, t, outside = parts[n] if learning else 0.0, clock[0], False
            for o in range(targets.shape[1]):
                if not abs(targets[n, o]) <= largest:
                    return n
            if full:
                for i in range(d):
                    features[i] = 0.0
                for e in range(starts[n], starts[n + 1]):
                    if not abs(values[e]) <= largest:
                        return n
                    if places[e] >= 0 and abs(values[e]) >= smallest:
                        features[places[e]] = values[e]
                # As `map_row`, which is for both kinds of maps and takes longer to compile.
                counts[0] += part
                squared = constant * constant
                for i in range(d):
                    z[i + 1] = 0.0
                for j in range(d):
                    distance = features[j] - origin[j]
                    for i in range(d):
                        z[i + 1] += distance * table[j, i]
                for i in range(1, size):
                    z[i] = min(max(z[i], -WILD), WILD)
                    squared += z[i] * z[i]
                length = divisor(counts, squared, part)
                z[0] = constant
                for i in range(size):
                    z[i] /= length
            else:
                entries = slice(starts[n], starts[n + 1])
                row, known, sound = present(places[entries], values[entries], largest, smallest)
                if not sound:
                    return n
                _, mapped, z = map_row(row, known, parts[n : n + 1], scales)
                size = z.size
            # Random features, and changes from the row before.
            for r in range(random):
                features[d + r] = offsets[r]
            for i in range(d):
                features[width + i] = features[i] - before[i]
                scale = _inverse(moments[everything, i, i], totals[everything], means[everything, i])
                scaled = (features[i] - means[everything, i]) * scale
                scaled = min(max(scaled, -CLIP), CLIP)
                if scaled != 0.0:
                    for r in range(random):
                        features[d + r] += scaled * directions[i, r]
            for r in range(random):
                features[d + r] = math.cos(features[d + r])
            # Scores in balls.
            for c in range(columns):
                scores[c] = 0.0
            squared = 0.0
            for e in range(size):
                place = e if full else mapped[e]
                squared += z[e] * z[e]
                for c in range(columns):
                    scores[c] += z[e] * points[place, c]
            weight = totals[everything]
            for o in range(outputs):
                # The experts' predictions, clipped, and their mean.
                last, level = ends[LAST, o], centres[everything, o]
                guesses[0], g = last, 1
                for k in range(windows):
                    guesses[g] = centres[k, o]
                    guesses[g + 1] = centres[k, o] + _product(features, 0, d, means, narrow, k, o)
                    g += 2
                    if k >= FIRST_WIDE:
                        guesses[g] = centres[k, o] + _product(features, 0, width, means, wide, k, o)
                        g += 1
                    other = windows + k
                    moved = _product(features, width, d, means, narrow, other, o)
                    guesses[g] = last + centres[other, o] + moved
                    g += 1
                scale = math.sqrt(ends[SQUARES, o] / weight) if weight > 0.0 else 0.0
                for c in range(o, columns, outputs):
                    guesses[g] = level + scale * scores[c]
                    g += 1
                room, mean = BEYOND * (ends[HIGH, o] - ends[LOW, o]), 0.0
                low, high = ends[LOW, o] - room, ends[HIGH, o] + room
                for i in range(experts):
                    # A NaN, from infinite terms, becomes the last target.
                    guess = min(max(guesses[i], low), high) if guesses[i] == guesses[i] else last
                    mean += weights[o, i] * guess
                    guesses[i] = guess
                if not learning:
                    told[n, o] = mean
                    continue
                target = targets[n, o]
                if t > 0:
                    # Weigh the experts by Huber's loss, in units of the mean's errors.
                    error = abs(mean - target)
                    ends[ERROR, o] += (
                        min(part, 1.0) * (error - ends[ERROR, o]) * max(1.0 / t, 1.0 / MEMORY)
                    )
                    unit = max(UNIT * ends[ERROR, o], error / LARGEST_ERROR)
                    units[o], top, total = 0.0, -math.inf, 0.0
                    if unit > ROUNDING * max(abs(ends[LOW, o]), abs(ends[HIGH, o])):
                        units[o] = 1.0 / unit
                        for i in range(experts):
                            error = abs(guesses[i] - target) / unit
                            guesses[i] = -(0.5 * error * error if error < 1.0 else error - 0.5)
                            top = max(top, guesses[i])
                        rate, share = part * RATE, min(part, 1.0) / (t + 1.0)
                        for i in range(experts):
                            weights[o, i] *= math.exp(rate * (guesses[i] - top))
                            total += weights[o, i]
                        for i in range(experts):
                            weights[o, i] = (1.0 - share) * weights[o, i] / total + share / experts
            if not learning:
                continue
            if t > 0:
                # Take the steps of the experts in balls.
                for g in range(radii.size):
                    step, length, inner = part * steps[g], 0.0, 0.0
                    for o in range(outputs):
                        scale, c = math.sqrt(ends[SQUARES, o] / weight), g * outputs + o
                        error = (centres[everything, o] + scale * scores[c] - targets[n, o]) * units[o]
                        slope = min(max(error, -1.0), 1.0) if scale > 0.0 else 0.0
                        length += slope * slope
                        inner += slope * scores[c]
                        scores[c] = -step * slope
                    length *= squared
                    # The step has rank one, so its norm is its trace norm; and the trace norm of any
                    # matrix is at most its norm times the root of its number of columns.
                    frobenius = max(norms[1, g] - 2.0 * step * inner + step * step * length, 0.0)
                    bound = min(norms[0, g] + step * math.sqrt(length), math.sqrt(outputs * frobenius))
                    norms[0, g], norms[1, g] = bound, frobenius
                    outside = outside or bound > (1.0 + SLACK) * radii[g]
                for e in range(size):
                    place = e if full else mapped[e]
                    for c in range(columns):
                        points[place, c] += z[e] * scores[c]
            for o in range(outputs):
                error = targets[n, o] - centres[everything, o]
                ends[SQUARES, o] += part * weight / (weight + part) * error * error
            for window in range(2 * windows - 1 if t > 0 else everything, -1, -1):
                # Count the row: means and moments about them, as in Welford (1962).
                k, first = (window, 0) if window < windows else (window - windows, width)
                top = width if FIRST_WIDE <= window < windows else d
                decay = 1.0 - 1.0 / WINDOWS[k]
                total = decay * totals[window] + part
                share, totals[window] = part / total, total
                for o in range(outputs):
                    target = targets[n, o] - ends[LAST, o] if window >= windows else targets[n, o]
                    centres[window, o] += share * (target - centres[window, o])
                    units[o] = target - centres[window, o]
                for i in range(top):
                    ahead[i] = features[first + i] - means[window, i]
                    means[window, i] += share * ahead[i]
                    after[i] = features[first + i] - means[window, i]
                for i in range(top):
                    change = part * ahead[i]
                    for j in range(i + 1):
                        moments[window, i, j] = decay * moments[window, i, j] + change * after[j]
                    for o in range(outputs):
                        cross[window, i, o] = decay * cross[window, i, o] + change * units[o]
                if k == everything:
                    for i in range(top):
                        inverse[i] = _inverse(moments[window, i, i], total, means[window, i])
                ages[window] += 1
                # One factor takes the time of many rows where there are many features.
                if ages[window] >= min(max(top * top / 512.0, total / 64.0), total / 8.0):
                    ages[window] = 0
                    _fit(moments, cross, inverse, window, d, top, narrow, wide, factor, solved)
            for o in range(outputs):
                target = targets[n, o]
                ends[LOW, o] = min(ends[LOW, o], target) if t > 0 else target
                ends[HIGH, o] = max(ends[HIGH, o], target) if t > 0 else target
                ends[LAST, o] = target
            # The map has the same means and moments.
            for i in range(d):
                average[i] = means[everything, i]
                usual = spread[i, i] + counts[0] * average[i] * average[i]
                if counts[0] * features[i] * features[i] > NEGLIGIBLE * NEGLIGIBLE * usual:
                    seen[i] += part
                for j in range(i + 1):
                    spread[i, j] = moments[everything, i, j]
                before[i] = features[i]
            clock[0] += 1
            if outside:
                return -n - 1
        return starts.size - 1

    return follow


#: For up to 256 features, and for more.
follow_full, follow_many = _loop(True), _loop(False)

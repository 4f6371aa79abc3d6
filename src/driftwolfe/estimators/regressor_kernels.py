"""Compiled loops of the regressor."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba
from numba.np.arrayobj import make_array

from driftwolfe.estimators.map_kernels import MAP, NEGLIGIBLE, WILD, divisor, map_row, present
from driftwolfe.points.compiling import (
    NEW_NUMBERS,
    NEW_TABLE,
    NUMBER,
    NUMBERS,
    PLACES,
    TABLE,
    WHOLE,
    fast_jit,
    jit,
    numbers_at,
    places_at,
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


#: Rows as they are, with the range of their numbers.
_GIVEN = (PLACES, PLACES, NUMBERS, NUMBER, NUMBER)


@numba.extending.intrinsic
def _from(_, given, first):
    """Return the pointer to an element of an array, or of what a pointer points to."""

    def code(context, builder, signature, values):
        pointer = values[0]
        if isinstance(given, numba.types.Array):
            pointer = make_array(given)(context, builder, pointer).data
        return builder.gep(pointer, [values[1]])

    return numba.types.CPointer(given.dtype)(given, WHOLE), code


@jit()
def _inverse(moment, total, mean):
    """Compute an inverse standard deviation, 0 if it is that of a constant."""
    deviation = math.sqrt(max(moment, 0.0) / total) if total > 0.0 else 0.0
    return 1.0 / deviation if deviation > ROUNDING * abs(mean) else 0.0


#: For pointers.
_divisor = jit()(divisor.py_func)


@fast_jit()
def _product(values, means, coefficients, size, outputs):
    """Multiply values, about their means, by the coefficients of an output."""
    total = 0.0
    for i in range(size):
        total += (values[i] - means[i]) * coefficients[i * outputs]
    return total


@jit()
def _weigh(guesses, weights, experts, target, unit, rate, share):
    """Weigh experts by Huber's loss of their predictions, then share the weights a little."""
    top, total = -math.inf, 0.0
    for i in range(experts):
        miss = abs(guesses[i] - target) / unit
        gain = -(0.5 * miss * miss if miss < 1.0 else miss - 0.5)
        top = max(top, gain)
        guesses[i] = gain
    for i in range(experts):
        weights[i] *= math.exp(rate * (guesses[i] - top))
        total += weights[i]
    for i in range(experts):
        weights[i] = (1.0 - share) * weights[i] / total + share / experts


@fast_jit()
def _fit(moments, cross, inverse, width, outputs, top, factor, solved):
    """Compute the factor of a ridge regression with the first `top` features, and solve with it."""
    for i in range(top):
        row, scale = _from(factor, i * width), inverse[i]
        for j in range(i + 1):
            other, total = _from(factor, j * width), moments[i * width + j] * scale * inverse[j]
            for k in range(j):
                total -= row[k] * other[k]
            row[j] = total / other[j] if j < i else math.sqrt(max(total + RIDGE, 0.5 * RIDGE))
        for o in range(outputs):
            own, total = _from(solved, o * width), cross[i * outputs + o] * scale
            for k in range(i):
                total -= row[k] * own[k]
            own[i] = total / row[i]


@fast_jit()
def _substitute(factor, solved, inverse, width, outputs, size, work, found):
    """Solve with the transpose of the leading rows of a factor."""
    for o in range(outputs):
        for i in range(size):
            work[i] = solved[o * width + i]
        for i in range(size - 1, -1, -1):
            row = _from(factor, i * width)
            value = work[i] / row[i]
            for k in range(i):
                work[k] -= row[k] * value
            found[i * outputs + o] = value * inverse[i]


def _loop(full):
    """Return the loop for a full map, or for many features, which have no ridge regressions."""

    @jit(*_GIVEN, numba.none if full else MAP, TABLE, NUMBERS, PLACES, NEW_TABLE, NEW_NUMBERS)
    def follow(
        starts, places, values, largest, smallest, scales, targets, parts, given, told, spare
    ):
        """Learn rows of weights `parts`, or without any predict rows, until a number is out of range.

        Return the number of rows done, below 0 if an expert is to be projected before the next.
        """
        # Pointers are compiled in less time than arrays, and many are handed over in less time.
        at, windows, learning = _from(given, 0), len(WINDOWS), parts.size > 0
        d, random, outputs, experts, balls = at[0], at[1], at[2], at[3], at[4]
        clock, lows, weights = places_at(at[5]), numbers_at(at[6]), numbers_at(at[7])
        points, bounds, before = numbers_at(at[8]), numbers_at(at[9]), numbers_at(at[10])
        directions, offsets, totals = numbers_at(at[11]), numbers_at(at[12]), numbers_at(at[13])
        ages, means, centres = places_at(at[14]), numbers_at(at[15]), numbers_at(at[16])
        moments, cross, narrow = numbers_at(at[17]), numbers_at(at[18]), numbers_at(at[19])
        wide, counts, seen = numbers_at(at[20]), numbers_at(at[21]), numbers_at(at[22])
        mean, spread, centre = numbers_at(at[23]), numbers_at(at[24]), numbers_at(at[25])
        table, steps, radii = numbers_at(at[26]), numbers_at(at[27]), numbers_at(at[28])
        highs, lasts = _from(lows, outputs), _from(lows, LAST * outputs)
        errors, squares = _from(lows, ERROR * outputs), _from(lows, SQUARES * outputs)
        width, every, columns, norms = (
            d + random,
            windows - 1,
            balls * outputs,
            _from(bounds, balls),
        )
        area, wider, size, number = width * width, width * outputs, d + 1, starts.size - 1
        all_means, all_moments = _from(means, every * width), _from(moments, every * area)
        levels, features, z = (
            _from(centres, every * outputs),
            _from(spare, 0),
            _from(spare, width + d),
        )
        change, guesses = _from(features, width), _from(z, size)
        scores = _from(guesses, experts)
        units = _from(scores, columns)
        ahead = _from(units, outputs)
        after, inverse, factor = (
            _from(ahead, width),
            _from(ahead, 2 * width),
            _from(ahead, 3 * width),
        )
        solved = _from(factor, area)
        for n in range(number):
            part, weight, t = parts[n] if learning else 0.0, totals[every], clock[0]
            squared, outside = 0.0, False
            if full:
                for i in range(d):
                    features[i] = 0.0
                for e in range(starts[n], starts[n + 1]):
                    entry, place = values[e], places[e]
                    if not abs(entry) <= largest:
                        return n
                    if place >= 0 and abs(entry) >= smallest:
                        features[place] = entry
                for i in range(d):  # the change from the row before, random features, and the map
                    known, expected = features[i], all_means[i]
                    change[i] = known - before[i]
                    scaled = _inverse(all_moments[i * width + i], weight, expected)
                    scaled = min(max((known - expected) * scaled, -CLIP), CLIP)
                    for r in range(random):
                        cosine = features[d + r] if i else offsets[r]
                        features[d + r] = cosine + scaled * directions[i * random + r]
                    known -= centre[i]
                    for j in range(d):
                        z[j + 1] = (z[j + 1] if i else 0.0) + known * table[i * d + j]
                for r in range(d, width):
                    features[r] = math.cos(features[r])
                squared, z[0] = 1.0, 1.0
                for i in range(1, size):
                    z[i] = min(max(z[i], -WILD), WILD)
                    squared += z[i] * z[i]
                counts[0] += part
                length = _divisor(counts, squared, part)
                squared = 0.0
            else:
                entries = slice(starts[n], starts[n + 1])
                own, known, sound = present(places[entries], values[entries], largest, smallest)
                if not sound:
                    return n
                _, mapped, z = map_row(own, known, parts[n : n + 1], scales)
                size, length = z.size, 1.0
            for e in range(size):
                z[e] /= length
                point = (e if full else mapped[e]) * columns
                squared += z[e] * z[e]
                for c in range(columns):
                    scores[c] = (scores[c] if e else 0.0) + z[e] * points[point + c]
            for o in range(outputs):
                # The experts' predictions, clipped, and their mean.
                low, high, last, answer = lows[o], highs[o], lasts[o], 0.0
                guesses[0], g = last, 1
                for k in range(windows):
                    guesses[g] = centres[k * outputs + o]
                    for kind in range(
                        3
                    ):  # ridge regressions: plain, with random features, of changes
                        if kind == 1 and k < FIRST_WIDE:
                            continue
                        window = k + windows if kind == 2 else k
                        told_by = _from(wide if kind == 1 else narrow, window * wider + o)
                        row, top = change if kind == 2 else features, width if kind == 1 else d
                        found = _product(row, _from(means, window * width), told_by, top, outputs)
                        level = centres[window * outputs + o]
                        g += 1
                        guesses[g] = (last + level if kind == 2 else level) + found
                    g += 1
                deviation = math.sqrt(squares[o] / weight) if weight > 0.0 else 0.0
                for c in range(balls):
                    guesses[g + c] = levels[o] + deviation * scores[c * outputs + o]
                room, own_weights = BEYOND * (high - low), _from(weights, o * experts)
                for i in range(experts):
                    guess = guesses[i]
                    # A NaN, from infinite terms, becomes the last target.
                    guess = min(max(guess, low - room), high + room) if guess == guess else last
                    answer += own_weights[i] * guess
                    guesses[i] = guess
                if not learning:
                    told[n, o] = answer
                elif t > 0:
                    trust, error, miss = min(part, 1.0), errors[o], abs(answer - targets[n, o])
                    error += trust * (miss - error) * max(1.0 / t, 1.0 / MEMORY)
                    errors[o], unit = error, max(UNIT * error, miss / LARGEST_ERROR)
                    units[o] = 0.0  # slopes of Huber's loss are in the units of errors
                    if unit > ROUNDING * max(abs(low), abs(high)):
                        units[o], share = 1.0 / unit, trust / (t + 1.0)
                        rate, target = part * RATE, targets[n, o]
                        _weigh(guesses, own_weights, experts, target, unit, rate, share)
            if not learning:
                continue
            if t > 0:
                # The steps of the experts in balls.
                for g in range(balls):
                    step, length, inner = part * steps[g], 0.0, 0.0
                    for o in range(outputs):
                        c, deviation = g * outputs + o, math.sqrt(squares[o] / weight)
                        miss = (levels[o] + deviation * scores[c] - targets[n, o]) * units[o]
                        slope = min(max(miss, -1.0), 1.0) if deviation > 0.0 else 0.0
                        length += slope * slope
                        inner += slope * scores[c]
                        scores[c] = -step * slope
                    length *= squared
                    # A step has rank one, so its norm is its trace norm; and the trace norm of any
                    # matrix is at most its norm times the root of its number of columns.
                    norm = max(norms[g] - 2.0 * step * inner + step * step * length, 0.0)
                    bound = min(bounds[g] + step * math.sqrt(length), math.sqrt(outputs * norm))
                    norms[g], bounds[g] = norm, bound
                    outside = outside or bound > (1.0 + SLACK) * radii[g]
                for e in range(size):
                    point = (e if full else mapped[e]) * columns
                    for c in range(columns):
                        points[point + c] += z[e] * scores[c]
            for window in range(2 * windows - 1 if t > 0 else every, -1, -1):
                # Count the row in a window: means and moments about them, as in Welford (1962).
                place, decay = window * wider, 1.0 - 1.0 / WINDOWS[window % windows]
                total = decay * totals[window] + part
                share, totals[window] = part / total, total
                for o in range(outputs):
                    target = targets[n, o] - (lasts[o] if window >= windows else 0.0)
                    level = centres[window * outputs + o]
                    miss = target - level
                    level += share * miss
                    centres[window * outputs + o], units[o] = level, target - level
                    if window == every:
                        squares[o] += part * weight / (weight + part) * miss * miss
                        lows[o] = min(lows[o], target) if t > 0 else target
                        highs[o] = max(highs[o], target) if t > 0 else target
                        lasts[o] = target
                row, own_means = (
                    change if window >= windows else features,
                    _from(means, window * width),
                )
                own_moments, own_cross = _from(moments, window * area), _from(cross, place)
                top = width if FIRST_WIDE <= window < windows else d
                for i in range(top):
                    value, expected = row[i], own_means[i]
                    ahead[i] = value - expected
                    expected += share * ahead[i]
                    own_means[i], after[i] = expected, value - expected
                for i in range(top):
                    step, own_row = part * ahead[i], _from(own_moments, i * width)
                    for j in range(i + 1):
                        own_row[j] = decay * own_row[j] + step * after[j]
                    for o in range(outputs):
                        c = i * outputs + o
                        own_cross[c] = decay * own_cross[c] + step * units[o]
                    if window % windows == every:
                        inverse[i] = _inverse(own_row[i], total, own_means[i])
                age = ages[window] + 1
                # One factor takes the time of many rows where there are many features.
                if age >= min(max(top * top / 512.0, total / 64.0), total / 8.0):
                    age = 0
                    _fit(own_moments, own_cross, inverse, width, outputs, top, factor, solved)
                    for kind in range(1 + (top > d)):
                        found, last_one = _from(wide if kind else narrow, place), top if kind else d
                        _substitute(factor, solved, inverse, width, outputs, last_one, after, found)
                ages[window] = age
            # The map has the same means and moments.
            for i in range(d):
                entry, expected, own_row = features[i], all_means[i], _from(spread, i * d)
                usual = own_row[i] + counts[0] * expected * expected
                if counts[0] * entry * entry > NEGLIGIBLE * NEGLIGIBLE * usual:
                    seen[i] += part
                mean[i], before[i] = expected, entry
                for j in range(i + 1):
                    own_row[j] = all_moments[i * width + j]
            clock[0] = t + 1
            if outside:
                return -n - 1
        return number

    return follow


#: For up to 256 features, and for more.
follow_full, follow_many = _loop(True), _loop(False)

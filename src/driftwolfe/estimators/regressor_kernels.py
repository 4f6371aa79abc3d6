"""Compiled loops of the regressor."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numba

from driftwolfe.estimators.core.row_kernels import MAP, NEGLIGIBLE, WILD, divisor, map_row, present
from driftwolfe.estimators.core.weight_kernels import reweigh
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


#: Where the loops find sizes (features, random ones, outputs, experts, those in balls, a row of working
#: memory) and the addresses of the arrays of `State`, of the map, and of the balls.
_D, _RANDOM, _OUTPUTS, _EXPERTS, _BALLS, _ROW = range(6)
_CLOCK, _TARGETS, _WEIGHTS, _POINTS, _NORMS, _BEFORE, _DIRECTIONS, _OFFSETS = range(6, 14)
_TOTALS, _AGES, _MEANS, _CENTRES, _MOMENTS, _CROSS, _NARROW, _WIDE = range(14, 22)
_COUNTS, _SEEN, _AVERAGE, _SPREAD, _CENTRE, _TABLE, _STEPS, _RADII = range(22, 30)


def _element(_: Any, given: Any, first: Any) -> Any:
    """Return the pointer to an element: pointers are compiled and handed over in less time than arrays."""

    def code(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer = values[0]
        if isinstance(given, numba.types.Array):
            pointer = context.make_array(given)(context, builder, pointer).data
        return builder.gep(pointer, [values[1]])

    kind: Any = numba.types.CPointer
    return kind(given.dtype)(given, WHOLE), code


_from: Any = numba.extending.intrinsic(_element)


@jit()
def _inverse(moment, total, mean):
    """Compute an inverse standard deviation, 0 if it is that of a constant."""
    deviation = math.sqrt(max(moment, 0.0) / total) if total > 0.0 else 0.0
    return 1.0 / deviation if deviation > ROUNDING * abs(mean) else 0.0


_divisor = jit()(divisor.py_func)  # for pointers


@jit()
def _map(at, spare, part):
    """Compute random features, changes, and a mapped row; return what it is to be divided by."""
    d, random, row = at[_D], at[_RANDOM], at[_ROW]
    features, change, z, width = spare, _from(spare, row), _from(spare, 2 * row), d + random
    windows, counts, totals = len(WINDOWS), numbers_at(at[_COUNTS]), numbers_at(at[_TOTALS])
    means = _from(numbers_at(at[_MEANS]), (windows - 1) * width)
    moments = _from(numbers_at(at[_MOMENTS]), (windows - 1) * width * width)
    before, centre, table = numbers_at(at[_BEFORE]), numbers_at(at[_CENTRE]), numbers_at(at[_TABLE])
    directions, offsets = numbers_at(at[_DIRECTIONS]), numbers_at(at[_OFFSETS])
    for i in range(d):
        value, mean = features[i], means[i]
        change[i] = value - before[i]
        scaled = (value - mean) * _inverse(moments[i * width + i], totals[windows - 1], mean)
        scaled = min(max(scaled, -CLIP), CLIP)
        for r in range(random):
            other = features[d + r] if i else offsets[r]
            features[d + r] = other + scaled * directions[i * random + r]
        value -= centre[i]
        for j in range(d):
            z[j + 1] = (z[j + 1] if i else 0.0) + value * table[i * d + j]
    for r in range(d, width):
        features[r] = math.cos(features[r])
    squared, z[0] = 1.0, 1.0
    for i in range(1, d + 1):
        z[i] = min(max(z[i], -WILD), WILD)
        squared += z[i] * z[i]
    counts[0] += part
    return _divisor(counts, squared, part)


@fast_jit()
def _product(values, means, coefficients, size, outputs):
    """Multiply values, about their means, by the coefficients of an output."""
    total = 0.0
    for i in range(size):
        total += (values[i] - means[i]) * coefficients[i * outputs]
    return total


@jit()
def _ask(at, spare, o):
    """Compute the experts' predictions for an output, clipped; return their mean."""
    d, outputs, experts, balls, row = at[_D], at[_OUTPUTS], at[_EXPERTS], at[_BALLS], at[_ROW]
    width, windows, ends = d + at[_RANDOM], len(WINDOWS), _from(numbers_at(at[_TARGETS]), o)
    guesses, scores, answer = _from(spare, 3 * row), _from(spare, 4 * row), 0.0
    means, centres = numbers_at(at[_MEANS]), _from(numbers_at(at[_CENTRES]), o)
    low, high, last = ends[LOW * outputs], ends[HIGH * outputs], ends[LAST * outputs]
    guesses[0], g = last, 1
    for k in range(windows):
        guesses[g] = centres[k * outputs]
        for kind in range(3):  # ridge regressions: plain, with random features, of changes
            if kind == 1 and k < FIRST_WIDE:
                continue
            window, size = k + windows if kind == 2 else k, width if kind == 1 else d
            own, values = at[_WIDE if kind == 1 else _NARROW], _from(spare, row if kind == 2 else 0)
            own = _from(numbers_at(own), window * width * outputs + o)
            found = _product(values, _from(means, window * width), own, size, outputs)
            level = centres[window * outputs]
            g += 1
            guesses[g] = (last + level if kind == 2 else level) + found
        g += 1
    weight = numbers_at(at[_TOTALS])[windows - 1]
    scale = math.sqrt(ends[SQUARES * outputs] / weight) if weight > 0.0 else 0.0
    for c in range(balls):
        guesses[g + c] = centres[(windows - 1) * outputs] + scale * scores[c * outputs + o]
    room, weights = BEYOND * (high - low), _from(numbers_at(at[_WEIGHTS]), o * experts)
    for i in range(experts):
        guess = guesses[i]
        # A NaN, from infinite terms, becomes the last target.
        guess = min(max(guess, low - room), high + room) if guess == guess else last
        answer += weights[i] * guess
        guesses[i] = guess
    return answer


@jit()
def _weigh(at, spare, o, answer, target, part):
    """Weigh experts by Huber's loss, in units of the errors of their mean; return the inverse unit."""
    outputs, experts, t = at[_OUTPUTS], at[_EXPERTS], places_at(at[_CLOCK])[0]
    guesses, weights = _from(spare, 3 * at[_ROW]), _from(numbers_at(at[_WEIGHTS]), o * experts)
    ends, trust, miss = _from(numbers_at(at[_TARGETS]), o), min(part, 1.0), abs(answer - target)
    error = ends[ERROR * outputs]
    error += trust * (miss - error) * max(1.0 / t, 1.0 / MEMORY)
    ends[ERROR * outputs], unit = error, max(UNIT * error, miss / LARGEST_ERROR)
    if unit <= ROUNDING * max(abs(ends[LOW * outputs]), abs(ends[HIGH * outputs])):
        return 0.0
    for i in range(experts):
        miss = abs(guesses[i] - target) / unit
        guesses[i] = -(0.5 * miss * miss if miss < 1.0 else miss - 0.5)
    reweigh(weights, guesses, 0, experts, part * RATE, trust / (t + 1.0))
    return 1.0 / unit


@jit()
def _descend(at, spare, target, squared, part):
    """Replace the scores of experts in balls by their steps; return whether one is too far outside."""
    outputs, balls, row = at[_OUTPUTS], at[_BALLS], at[_ROW]
    scores, units, outside = _from(spare, 4 * row), _from(spare, 5 * row), False
    squares, steps = numbers_at(at[_TARGETS] + 8 * SQUARES * outputs), numbers_at(at[_STEPS])
    levels = _from(numbers_at(at[_CENTRES]), (len(WINDOWS) - 1) * outputs)
    bounds, weight = numbers_at(at[_NORMS]), numbers_at(at[_TOTALS])[len(WINDOWS) - 1]
    for g in range(balls):
        step, length, inner = part * steps[g], 0.0, 0.0
        for o in range(outputs):
            c, scale = g * outputs + o, math.sqrt(squares[o] / weight)
            miss = (levels[o] + scale * scores[c] - target[o]) * units[o]
            slope = min(max(miss, -1.0), 1.0) if scale > 0.0 else 0.0
            length += slope * slope
            inner += slope * scores[c]
            scores[c] = -step * slope
        length *= squared
        # The step has rank one, so its norm is its trace norm; and the trace norm of any matrix is
        # at most its norm times the root of its number of columns.
        norm = max(bounds[balls + g] - 2.0 * step * inner + step * step * length, 0.0)
        bound = min(bounds[g] + step * math.sqrt(length), math.sqrt(outputs * norm))
        bounds[g], bounds[balls + g] = bound, norm
        outside = outside or bound > (1.0 + SLACK) * numbers_at(at[_RADII])[g]
    return outside


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


@jit()
def _count(at, spare, target, part):
    """Count a row in all windows, and fit those where it is time."""
    d, outputs, row, t = at[_D], at[_OUTPUTS], at[_ROW], places_at(at[_CLOCK])[0]
    width, windows, totals = d + at[_RANDOM], len(WINDOWS), numbers_at(at[_TOTALS])
    ends, ages, all_means = numbers_at(at[_TARGETS]), places_at(at[_AGES]), numbers_at(at[_MEANS])
    away, ahead, after = _from(spare, 5 * row), _from(spare, 6 * row), _from(spare, 7 * row)
    inverse, factor = _from(spare, 8 * row), _from(spare, 9 * row)
    solved, count = _from(factor, width * width), numbers_at(at[_COUNTS])[0]
    for window in range(2 * windows - 1 if t > 0 else windows - 1, -1, -1):
        decay, before = 1.0 - 1.0 / WINDOWS[window % windows], totals[window]
        total = decay * before + part
        share, totals[window] = part / total, total
        centres = _from(numbers_at(at[_CENTRES]), window * outputs)
        for o in range(outputs):
            own = _from(ends, o)
            aim = target[o] - (own[LAST * outputs] if window >= windows else 0.0)
            miss = aim - centres[o]
            centres[o] += share * miss
            away[o] = aim - centres[o]
            if window == windows - 1:
                own[SQUARES * outputs] += part * before / (before + part) * miss * miss
                own[LOW * outputs] = min(own[LOW * outputs], aim) if t > 0 else aim
                own[HIGH * outputs] = max(own[HIGH * outputs], aim) if t > 0 else aim
                own[LAST * outputs] = aim
        # Means, and moments about them, as in Welford (1962).
        top, place = width if FIRST_WIDE <= window < windows else d, window * width * outputs
        means, cross = _from(all_means, window * width), _from(numbers_at(at[_CROSS]), place)
        moments = _from(numbers_at(at[_MOMENTS]), window * width * width)
        values = _from(spare, row if window >= windows else 0)
        for i in range(top):
            value, mean = values[i], means[i]
            ahead[i] = value - mean
            mean += share * ahead[i]
            means[i], after[i] = mean, value - mean
        for i in range(top):
            step, own = part * ahead[i], _from(moments, i * width)
            for j in range(i + 1):
                own[j] = decay * own[j] + step * after[j]
            for o in range(outputs):
                cross[i * outputs + o] = decay * cross[i * outputs + o] + step * away[o]
            if window % windows == windows - 1:
                inverse[i] = _inverse(own[i], total, means[i])
            if window == windows - 1 and i < d:  # the map has the same means and moments
                value, mean, kept = values[i], means[i], _from(numbers_at(at[_SPREAD]), i * d)
                if count * value * value > NEGLIGIBLE**2 * (kept[i] + count * mean * mean):
                    numbers_at(at[_SEEN])[i] += part
                numbers_at(at[_AVERAGE])[i], numbers_at(at[_BEFORE])[i] = mean, value
                for j in range(i + 1):
                    kept[j] = own[j]
        age = ages[window] + 1
        # One factor takes the time of many rows where there are many features.
        if age >= min(max(top * top / 512.0, total / 64.0), total / 8.0):
            age = 0
            _fit(moments, cross, inverse, width, outputs, top, factor, solved)
            for kind in range(1 + (top > d)):
                found, size = at[_WIDE if kind else _NARROW] + 8 * place, top if kind else d
                found = numbers_at(found)
                _substitute(factor, solved, inverse, width, outputs, size, after, found)
        ages[window] = age


_ROWS, _NEW, none = (PLACES, PLACES, NUMBERS), (NEW_TABLE, NEW_NUMBERS), numba.none


def _loop(full: bool) -> Any:
    """Return the loop for a full map, or for many features, which have no ridge regressions."""

    @jit(*_ROWS, NUMBER, NUMBER, none if full else MAP, TABLE, NUMBERS, PLACES, *_NEW)
    def follow(
        starts, places, values, largest, smallest, scales, targets, parts, given, told, spare
    ):
        """Learn rows of weights `parts`, or without any predict rows, until a number is out of range.

        Return the number of rows done, below 0 if an expert is to be projected before the next.
        """
        at, features, learning, outside = _from(given, 0), _from(spare, 0), parts.size > 0, False
        outputs, balls, row, size, n = at[_OUTPUTS], at[_BALLS], at[_ROW], at[_D] + 1, 0
        columns, points, clock = outputs * balls, numbers_at(at[_POINTS]), places_at(at[_CLOCK])
        z, scores, units = _from(spare, 2 * row), _from(spare, 4 * row), _from(spare, 5 * row)
        while n < starts.size - 1 and not outside:
            part, squared, length = parts[n] if learning else 0.0, 0.0, 1.0
            if full:
                for i in range(size - 1):
                    features[i] = 0.0
                for e in range(starts[n], starts[n + 1]):
                    value, place = values[e], places[e]
                    if not abs(value) <= largest:
                        return n
                    if place >= 0 and abs(value) >= smallest:
                        features[place] = value
                length = _map(at, features, part)
            else:
                entries = slice(starts[n], starts[n + 1])
                own, known, sound = present(places[entries], values[entries], largest, smallest)
                if not sound:
                    return n
                _, mapped, z = map_row(own, known, parts[n : n + 1], scales)
                size = z.size
            for e in range(size):
                z[e] /= length
                squared += z[e] * z[e]
                point = (e if full else mapped[e]) * columns
                for c in range(columns):
                    scores[c] = (scores[c] if e else 0.0) + z[e] * points[point + c]
            for o in range(outputs):
                answer = _ask(at, features, o)
                if not learning:
                    told[n, o] = answer
                elif clock[0] > 0:
                    units[o] = _weigh(at, features, o, answer, targets[n, o], part)
            if learning:
                target = _from(targets, n * outputs)
                if clock[0] > 0:
                    outside = _descend(at, features, target, squared, part)
                    for e in range(size):
                        point = (e if full else mapped[e]) * columns
                        for c in range(columns):
                            points[point + c] += z[e] * scores[c]
                _count(at, features, target, part)
                clock[0] += 1
            n += 1
        return -n if outside else n

    return follow


#: For up to 256 features, and for more.
follow_full, follow_many = _loop(True), _loop(False)

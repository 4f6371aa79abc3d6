"""Compiled loops of the regressor."""

from __future__ import annotations

import math

from driftwolfe.estimators.core.models import BLOCK
from driftwolfe.estimators.core.shared_kernels import (
    HELD,
    NEGLIGIBLE,
    RATE,
    ROUNDING,
    UNIT,
    WILD,
    add,
    clip,
    count_changes,
    descend,
    divisor,
    fill,
    mean_error,
    replace_by_cosines,
    reweigh,
)
from driftwolfe.points.compiling import (
    NEW_NUMBERS,
    NEW_TABLE,
    NUMBERS,
    PLACES,
    TABLE,
    WHOLE,
    fast_jit,
    jit,
    numbers_at,
    places_at,
    pointer,
)

#: Rows that the windows look back, by exponential forgetting; the last forgets nothing.
WINDOWS = (8.0, 32.0, 128.0, 512.0, math.inf)
#: The first window with random features.
FIRST_WIDE = 2
#: Experts besides those in balls: the last target; of every window its mean, its ridge regression and that
#: of changes; and with random features.
PLAIN = 1 + 4 * len(WINDOWS) - FIRST_WIDE
#: Rows' worth of uncorrelated data in ridge regressions; those of a window with less weight are fitted so many
#: times more rarely.
RIDGE, IDLE, PATIENCE = 1.0, 0.001, 4.0
#: Standardised features are clipped at this before random ones are computed; rows that the mean error looks back.
CLIP, MEMORY = 4.0, 512.0
#: Largest error of the mean prediction, in units: one wild row does not decide which expert is best.
LARGEST_ERROR = 4.0
#: Predictions may leave the range of targets so far by this fraction of it.
BEYOND = 0.25
#: Rows of `RegressionState.targets`.
LOW, HIGH, LAST, ERROR, SQUARES = range(5)

#: Where the loops find sizes (features, random ones, outputs, experts, those in balls, a row of working
#: memory) and the addresses of the arrays of `regressor.RegressionState`, of the map, and of the balls.
_D, _RANDOM, _OUTPUTS, _EXPERTS, _BALLS, _ROW, _FULL = range(7)
_CLOCK, _TARGETS, _WEIGHTS, _POINTS, _NORMS, _DIRECTIONS, _OFFSETS = range(7, 14)
_TOTALS, _AGES, _MEANS, _CENTRES, _MOMENTS, _CROSS, _NARROW, _WIDE, _LOSSES = range(14, 23)
_COUNTS, _SEEN, _AVERAGE, _SPREAD, _CENTRE, _TABLE, _LAST = range(23, 30)
_STEPS, _LIMITS = _COUNTS + HELD, _COUNTS + HELD + 1


@jit(allocates=False)
def _inverse(moment, total, mean):
    """Compute an inverse standard deviation, 0 if it is that of a constant."""
    deviation = math.sqrt(moment / total) if total > 0.0 and moment > 0.0 else 0.0
    return 1.0 / deviation if deviation > ROUNDING * abs(mean) else 0.0


@jit(allocates=False)
def _map(at, spare, part):
    """Compute random features, changes, and a mapped row; return what it is to be divided by."""
    d, random, row = at[_D], at[_RANDOM], at[_ROW]
    features, change, z = spare, pointer(spare, row), pointer(spare, 2 * row)
    width = d + random
    windows, counts, totals = len(WINDOWS), numbers_at(at[_COUNTS]), numbers_at(at[_TOTALS])
    means = pointer(numbers_at(at[_MEANS]), (windows - 1) * width)
    moments = pointer(numbers_at(at[_MOMENTS]), (windows - 1) * width * width)
    before, centre, table = numbers_at(at[_LAST]), numbers_at(at[_CENTRE]), numbers_at(at[_TABLE])
    directions, offsets = numbers_at(at[_DIRECTIONS]), numbers_at(at[_OFFSETS])
    for i in range(d):
        value, mean = features[i], means[i]
        change[i] = value - before[i]
        scaled = (value - mean) * _inverse(moments[i * width + i], totals[windows - 1], mean)
        scaled = clip(scaled, -CLIP, CLIP)
        for r in range(random):
            other = features[d + r] if i else offsets[r]
            features[d + r] = other + scaled * directions[i * random + r]
        value -= centre[i]
        for j in range(d):
            z[j + 1] = (z[j + 1] if i else 0.0) + value * table[i * d + j]
    replace_by_cosines(pointer(features, d), random)
    squared, z[0] = 1.0, 1.0
    for i in range(1, d + 1):
        z[i] = clip(z[i], -WILD, WILD)
        squared += z[i] * z[i]
    counts[0] += part
    return divisor(counts, squared, part)


@fast_jit(allocates=False)
def _product(values, means, coefficients, size, outputs):
    """Multiply values, about their means, by the coefficients of an output."""
    total = 0.0
    for i in range(size):
        total += (values[i] - means[i]) * coefficients[i * outputs]
    return total


@jit(allocates=False)
def _ask(at, spare, o):
    """Compute the experts' predictions for an output, clipped; return their mean."""
    d, outputs, experts = at[_D], at[_OUTPUTS], at[_EXPERTS]
    balls, row = at[_BALLS], at[_ROW]
    width, windows, ends = d + at[_RANDOM], len(WINDOWS), pointer(numbers_at(at[_TARGETS]), o)
    guesses, scores, answer = pointer(spare, 3 * row), pointer(spare, 4 * row), 0.0
    means, centres = numbers_at(at[_MEANS]), pointer(numbers_at(at[_CENTRES]), o)
    low, high, last = ends[LOW * outputs], ends[HIGH * outputs], ends[LAST * outputs]
    guesses[0], g = last, 1
    for k in range(windows):
        guesses[g] = centres[k * outputs]
        for kind in range(3):  # ridge regressions: plain, with random features, of changes
            if kind == 1 and k < FIRST_WIDE:
                continue
            window, size = k + windows if kind == 2 else k, width if kind == 1 else d
            table = numbers_at(at[_WIDE if kind == 1 else _NARROW])
            values = pointer(spare, row if kind == 2 else 0)
            own = pointer(table, window * width * outputs + o)
            found = _product(values, pointer(means, window * width), own, size, outputs)
            level = centres[window * outputs]
            g += 1
            guesses[g] = (last + level if kind == 2 else level) + found
        g += 1
    weight = numbers_at(at[_TOTALS])[windows - 1]
    scale = math.sqrt(ends[SQUARES * outputs] / weight) if weight > 0.0 else 0.0
    for c in range(balls):
        guesses[g + c] = centres[(windows - 1) * outputs] + scale * scores[c * outputs + o]
    room, weights = BEYOND * (high - low), pointer(numbers_at(at[_WEIGHTS]), o * experts)
    for i in range(experts):
        guess = guesses[i]
        # A NaN, from infinite terms, becomes the last target.
        guess = clip(guess, low - room, high + room) if guess == guess else last
        answer += weights[i] * guess
        guesses[i] = guess
    return answer


@jit(allocates=False)
def _loss(at, o, miss):
    """Return the loss of an error: that itself, or, of several outputs, one without a unit."""
    outputs, weight = at[_OUTPUTS], numbers_at(at[_TOTALS])[len(WINDOWS) - 1]
    if outputs == 1 or miss == 0.0:
        return miss
    squares = numbers_at(at[_TARGETS])[SQUARES * outputs + o]
    return miss / (miss + (math.sqrt(squares / weight) if weight > 0.0 else 0.0))


@jit(allocates=False)
def _weigh(at, spare, o, answer, target, part):
    """Weigh experts by Huber's loss, in units of the errors of their mean; return the inverse unit."""
    outputs, experts, t = at[_OUTPUTS], at[_EXPERTS], places_at(at[_CLOCK])[0]
    guesses, weights = pointer(spare, 3 * at[_ROW]), pointer(numbers_at(at[_WEIGHTS]), o * experts)
    ends, trust = pointer(numbers_at(at[_TARGETS]), o), part if part < 1.0 else 1.0
    error, miss = ends[ERROR * outputs], abs(answer - target)
    error = mean_error(error, miss, trust, t, MEMORY)
    ends[ERROR * outputs], unit, least = error, UNIT * error, miss / LARGEST_ERROR
    unit, low = unit if unit > least else least, abs(ends[LOW * outputs])
    if unit <= ROUNDING * low or unit <= ROUNDING * abs(ends[HIGH * outputs]):
        return 0.0
    for i in range(experts):
        miss = abs(guesses[i] - target) / unit
        guesses[i] = -(0.5 * miss * miss if miss < 1.0 else miss - 0.5)
    reweigh(weights, guesses, 0, experts, part * RATE, trust / (t + 1.0))
    return 1.0 / unit


@jit(allocates=False)
def _descend(at, spare, target, squared, part):
    """Compute the steps of experts in balls from their scores; return whether one is too far outside."""
    outputs, balls, row = at[_OUTPUTS], at[_BALLS], at[_ROW]
    scores, units, outside = pointer(spare, 4 * row), pointer(spare, 5 * row), False
    squares, steps = numbers_at(at[_TARGETS] + 8 * SQUARES * outputs), numbers_at(at[_STEPS])
    levels = pointer(numbers_at(at[_CENTRES]), (len(WINDOWS) - 1) * outputs)
    norms, limits = numbers_at(at[_NORMS]), numbers_at(at[_LIMITS])
    weight = numbers_at(at[_TOTALS])[len(WINDOWS) - 1]
    for g in range(balls):
        own, slopes = pointer(scores, g * outputs), pointer(spare, 6 * row + g * outputs)
        for o in range(outputs):
            scale = math.sqrt(squares[o] / weight)
            miss = (levels[o] + scale * own[o] - target[o]) * units[o]
            slopes[o] = clip(miss, -1.0, 1.0) if scale > 0.0 else 0.0
        bound = descend(norms, g, balls, own, slopes, outputs, part * steps[g], squared)
        outside = outside or bound > limits[g]
    return outside


@fast_jit(allocates=False)
def _fit(moments, cross, inverse, width, outputs, top, factor, solved, panel, length):
    """Factorise with the first `top` features, and solve; `panel` has inverse pivots, and then four columns."""
    for i in range(top):
        row, own, scale = pointer(factor, i * width), pointer(moments, i * width), inverse[i]
        for j in range(i + 1):
            row[j] = own[j] * (scale * inverse[j])
    one, two = pointer(panel, length), pointer(panel, 2 * length)
    three, four = pointer(panel, 3 * length), pointer(panel, 4 * length)
    for first in range(0, top, 4):
        last = first + 4 if first + 4 < top else top
        for i in range(first, top):
            row = pointer(factor, i * width)
            for j in range(first, last if last <= i else i + 1):
                other, total = pointer(factor, j * width), row[j]
                for k in range(first, j):
                    total -= row[k] * other[k]
                if j < i:
                    row[j] = total * panel[j]
                else:
                    row[j] = math.sqrt(total + RIDGE if total > -0.5 * RIDGE else 0.5 * RIDGE)
                    panel[j] = 1.0 / row[j]
            if i >= last:
                a, b, c, d = row[first], row[first + 1], row[first + 2], row[first + 3]
                one[i], two[i], three[i], four[i] = a, b, c, d
                for j in range(last, i + 1):
                    row[j] -= (a * one[j] + b * two[j]) + (c * three[j] + d * four[j])
    for i in range(top):
        row = pointer(factor, i * width)
        for o in range(outputs):
            own, total = pointer(solved, o * width), cross[i * outputs + o] * inverse[i]
            for k in range(i):
                total -= row[k] * own[k]
            own[i] = total * panel[i]


@fast_jit(allocates=False)
def _substitute(factor, solved, inverse, width, outputs, size, work, found):
    """Solve with the transpose of the leading rows of a factor."""
    for o in range(outputs):
        for i in range(size):
            work[i] = solved[o * width + i]
        for i in range(size - 1, -1, -1):
            row = pointer(factor, i * width)
            value = work[i] / row[i]
            for k in range(i):
                work[k] -= row[k] * value
            found[i * outputs + o] = value * inverse[i]


@jit(allocates=False)
def _matters(at, window):
    """Whether the ridge regressions of a window have weight for an output."""
    experts, weights, k = at[_EXPERTS], numbers_at(at[_WEIGHTS]), window % len(WINDOWS)
    ridge = 2 + 3 * k + (k - FIRST_WIDE if k > FIRST_WIDE else 0)  # then that with random features
    first, last = ridge, ridge + 1 + (k >= FIRST_WIDE)
    if window >= len(WINDOWS):
        first, last = last, last + 1
    for o in range(at[_OUTPUTS]):
        for i in range(o * experts + first, o * experts + last):
            if weights[i] > IDLE:
                return True
    return False


@jit(allocates=False)
def _count(at, spare, target, part):
    """Count a row in all windows, and fit those where it is time."""
    d, outputs, row = at[_D], at[_OUTPUTS], at[_ROW]
    t = places_at(at[_CLOCK])[0]
    width, windows, totals = d + at[_RANDOM], len(WINDOWS), numbers_at(at[_TOTALS])
    ends, ages, all_means = numbers_at(at[_TARGETS]), places_at(at[_AGES]), numbers_at(at[_MEANS])
    away, ahead, after = pointer(spare, 5 * row), pointer(spare, 6 * row), pointer(spare, 7 * row)
    inverse, factor = pointer(spare, 8 * row), pointer(spare, 9 * row)
    solved, count = pointer(factor, width * width), numbers_at(at[_COUNTS])[0]
    count_changes(spare, d, part, t > 0, pointer(at, _COUNTS))
    for window in range(2 * windows - 1 if t > 0 else windows - 1, -1, -1):
        decay, before = 1.0 - 1.0 / WINDOWS[window % windows], totals[window]
        total = decay * before + part
        fraction, totals[window] = part / total, total
        centres = pointer(numbers_at(at[_CENTRES]), window * outputs)
        for o in range(outputs):
            own = pointer(ends, o)
            aim = target[o] - (own[LAST * outputs] if window >= windows else 0.0)
            miss = aim - centres[o]
            centres[o] += fraction * miss
            away[o] = aim - centres[o]
            if window == windows - 1:
                own[SQUARES * outputs] += part * before / (before + part) * miss * miss
                if t == 0 or aim < own[LOW * outputs]:
                    own[LOW * outputs] = aim
                if t == 0 or aim > own[HIGH * outputs]:
                    own[HIGH * outputs] = aim
                own[LAST * outputs] = aim
        # Means, and moments about them, as in Welford (1962).
        top, place = width if FIRST_WIDE <= window < windows else d, window * width * outputs
        means, cross = pointer(all_means, window * width), pointer(numbers_at(at[_CROSS]), place)
        moments = pointer(numbers_at(at[_MOMENTS]), window * width * width)
        values = pointer(spare, row if window >= windows else 0)
        for i in range(top):
            value, mean = values[i], means[i]
            ahead[i] = value - mean
            mean += fraction * ahead[i]
            means[i], after[i] = mean, value - mean
        for i in range(top):
            step, own = part * ahead[i], pointer(moments, i * width)
            for j in range(i + 1):
                own[j] = decay * own[j] + step * after[j]
            for o in range(outputs):
                cross[i * outputs + o] = decay * cross[i * outputs + o] + step * away[o]
            if window % windows == windows - 1:
                inverse[i] = _inverse(own[i], total, means[i])
            if window == windows - 1 and i < d:  # the map has the same means and moments
                value, mean, kept = values[i], means[i], pointer(numbers_at(at[_SPREAD]), i * d)
                if count * value * value > NEGLIGIBLE * NEGLIGIBLE * (
                    kept[i] + count * mean * mean
                ):
                    numbers_at(at[_SEEN])[i] += part
                numbers_at(at[_AVERAGE])[i] = mean
                for j in range(i + 1):
                    kept[j] = own[j]
        age = ages[window] + 1
        # One factor takes the time of many rows where there are many features; without weight it can wait.
        due = age if _matters(at, window) else age / PATIENCE
        if due >= total / 8.0 or (due >= total / 64.0 and due >= top * top / 512.0):
            age = 0
            panel = pointer(spare, 3 * row)  # until the next row
            _fit(moments, cross, inverse, width, outputs, top, factor, solved, panel, row)
            for kind in range(1 + (top > d)):
                size, own = top if kind else d, numbers_at(at[_WIDE if kind else _NARROW])
                found = pointer(own, place)
                _substitute(factor, solved, inverse, width, outputs, size, after, found)
        ages[window] = age


@jit(
    *(PLACES, PLACES, NUMBERS, TABLE, NUMBERS, WHOLE, WHOLE, NEW_TABLE, NEW_NUMBERS),
    allocates=False,
)
def follow(starts, places, values, targets, parts, begin, where, out, spare):
    """Learn rows of weights `parts` from the row `begin` on, or without any predict rows.

    Return the number of rows done, below 0 if an expert is to be projected before the next. It stops at a number
    out of range. Rows of many features are mapped already, and have no ridge regressions.
    """
    at, features, learning = places_at(where), pointer(spare, 0), parts.size > 0
    d, outputs, balls = at[_D], at[_OUTPUTS], at[_BALLS]
    row, outside = at[_ROW], False
    columns, points, clock = outputs * balls, numbers_at(at[_POINTS]), places_at(at[_CLOCK])
    scores, units = pointer(spare, 4 * row), pointer(spare, 5 * row)
    steps = pointer(spare, 6 * row)
    for n in range(begin, starts.size - 1):
        part, squared, length, loss = parts[n] if learning else 0.0, 0.0, 1.0, 0.0
        own, z = pointer(places, starts[n]), pointer(values, starts[n])
        size = starts[n + 1] - starts[n]
        if at[_FULL]:
            work = pointer(spare, 5 * row)
            if not fill(own, z, size, features, d, pointer(at, _COUNTS), work):
                return n
            length, z, size = _map(at, features, part), pointer(spare, 2 * row), d + 1
        for c in range(columns):
            scores[c] = 0.0
        for e in range(size):
            z[e] /= length
            squared += z[e] * z[e]
            point = (e if at[_FULL] else own[e]) * columns
            add(scores, z[e], pointer(points, point), columns)
        for o in range(outputs):
            answer = _ask(at, features, o)
            if not learning:
                out[n, o] = answer
                continue
            loss += _loss(at, o, abs(answer - targets[n, o])) / outputs
            if clock[0] > 0:
                units[o] = _weigh(at, features, o, answer, targets[n, o], part)
        if learning:
            target = pointer(targets, n * outputs)
            if clock[0] > 0:
                outside = _descend(at, features, target, squared, part)
                for e in range(size):
                    point = (e if at[_FULL] else own[e]) * columns
                    add(pointer(points, point), z[e], steps, columns)
            _count(at, features, target, part)
            numbers_at(at[_LOSSES])[clock[0] % BLOCK] = loss
            clock[0] += 1
            if outside:
                return -n - 1
    return starts.size - 1

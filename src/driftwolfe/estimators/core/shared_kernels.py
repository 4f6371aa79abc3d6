"""Compiled loops that several estimators share: rows of features, weights, errors, and steps in a ball."""

from __future__ import annotations

import math

from driftwolfe.points.compiling import (
    NEW_NUMBERS,
    NEW_PLACES,
    NUMBERS,
    PLACES,
    jit,
    numbers_at,
    pointer,
)

#: Largest norm of a mapped row, in units of their root mean square.
LONGEST = 2.0
#: A row counts for that mean with at most this many times its present value, so that one wild row
#: does not make all others small.
CAP = 9.0
#: Largest mapped entry, so that squares do not overflow.
WILD = 1e70
#: Entries up to this fraction of the root mean square of their feature are rounding and count as 0.
NEGLIGIBLE = 1e-12
#: Larger features are refused, smaller ones count as 0: their squares could overflow.
LARGEST, SMALLEST = 1e100, 1e-100
#: Rate of the weights of experts, per unit of loss; the unit of errors, over their running mean.
RATE, UNIT = 0.8, 1.33
#: Mean errors and scales up to this fraction of the largest number are rounding: nothing is learned from them.
ROUNDING = 1e-12


# Conditions in place of `min` and `max`, and working memory that is handed over: each kind of either that numba
# knows would be compiled too.


@jit(allocates=False)
def clip(value, low, high):
    """Return the nearest number in a range."""
    value = value if value > low else low
    return value if value < high else high


@jit(allocates=False)
def add(total, factor, values, number):
    """Add a multiple of values to others."""
    for c in range(number if factor != 0.0 else 0):  # many are 0
        total[c] += factor * values[c]


@jit(allocates=False)
def reweigh(weights, gains, first, last, rate, share):
    """Multiply some weights by exp(rate * gain) and normalise; then spread a fixed share of them evenly."""
    total, top = 0.0, gains[first]
    for i in range(first, last):
        top = gains[i] if gains[i] > top else top
    for i in range(first, last):
        weights[i] *= math.exp(rate * (gains[i] - top))
        total += weights[i]
    for i in range(first, last):
        weights[i] = (1.0 - share) * weights[i] / total + share / (last - first)


@jit(allocates=False)
def mean_error(mean, error, part, count, memory):
    """Return the running mean of errors, over about so many, after the one that makes `count`."""
    return mean + part * (error - mean) * clip(1.0 / count, 1.0 / memory, 1.0)


@jit(allocates=False)
def descend(norms, i, experts, scores, slopes, columns, step, squared):
    """Replace the slopes of the scores of expert i by the step of its matrix; return a bound on its trace norm.

    The row that was scored has this squared norm. `norms` are the bounds of all experts, then squared norms.
    """
    length, inner = 0.0, 0.0
    for c in range(columns):
        slope = slopes[c]
        length += slope * slope
        inner += slope * scores[c]
        slopes[c] = slope * -step
    length *= squared
    # The step has rank one, so its norm is its trace norm; and the trace norm of any matrix is at most its
    # norm times the root of its number of columns.
    square = norms[experts + i] - 2.0 * step * inner + step * step * length
    square = square if square > 0.0 else 0.0
    bound, most = norms[i] + step * math.sqrt(length), math.sqrt(columns * square)
    bound = bound if bound < most else most
    norms[i], norms[experts + i] = bound, square
    return bound


@jit(allocates=False)
def divisor(totals, squared, part):
    """Count a squared norm with weight `part`, and return what its row is to be divided by."""
    earlier, length = totals[0] - part, math.sqrt(squared) / LONGEST
    if part > 0.0:
        most = CAP * totals[1] / earlier if earlier > 0.0 else squared
        totals[1] += part * (squared if squared < most else most)
    mean = math.sqrt(totals[1] / totals[0]) if totals[1] > 0.0 else 1.0
    return mean if mean > length else length


#: Where loops find the arrays of `FeatureMap.held`, from their first on.
TOTALS, SEEN, MEAN, MOMENTS, CENTRE, TABLE, LAST, CHANGES = range(8)
#: How many arrays these are.
HELD = 8
#: Times that what is missing is computed from the rest, one feature after the other.
SWEEPS = 8


@jit(allocates=False)
def fill(places, values, entries, x, width, at, work):
    """Write a row to x, 0 for values too small or of unknown places; return whether all are in range.

    The place of what is missing is -2 less that of its feature. `at` holds the addresses of the map's arrays.
    """
    missing = 0
    for i in range(width):
        x[i] = 0.0
    for e in range(entries):
        value, place = values[e], places[e]
        if not abs(value) <= LARGEST:
            return False
        if place >= 0 and abs(value) >= SMALLEST:
            x[place] = value
        missing += 1 if place < -1 else 0
    if missing > 0:
        _complete(places, entries, x, width, at, work)
    return True


#: Half turns per unit; a half turn, and what it is short of; what rounds small numbers when it is added; the
#: largest angle that is reduced so.
HALF_TURNS, HALF_TURN, REST = 1.0 / math.pi, math.pi, 1.2246467991473532e-16
ROUNDS, PLAIN_ANGLE = 1.5 * 2.0**52, 1e6
#: Taylor's coefficients of the cosine.
_C2, _C4, _C6, _C8, _C10, _C12, _C14, _C16, _C18 = (
    (-1) ** k / math.factorial(2 * k) for k in range(1, 10)
)


@jit(allocates=False)
def replace_by_cosines(values, number):
    """Replace angles by their cosines, up to 1e-9: several at a time, which those of the system are not."""
    for m in range(number):
        if not abs(values[m]) <= PLAIN_ANGLE:
            values[m] = math.acos(math.cos(values[m]))
    for m in range(number):
        turns = (values[m] * HALF_TURNS + ROUNDS) - ROUNDS
        odd = turns - 2.0 * ((0.5 * turns + ROUNDS) - ROUNDS)
        angle = (values[m] - turns * HALF_TURN) - turns * REST
        s = angle * angle
        high = _C10 + s * (_C12 + s * (_C14 + s * (_C16 + s * _C18)))
        found = 1.0 + s * (_C2 + s * (_C4 + s * (_C6 + s * (_C8 + s * high))))
        values[m] = found * (1.0 - 2.0 * abs(odd))


@jit(allocates=False)
def _expected(at, width, i):
    """What the last row and the mean say of a feature: between both, by its correlation with the row before."""
    mean, moment = numbers_at(at[MEAN])[i], numbers_at(at[MOMENTS])[i * width + i]
    ratio = 1.0 - 0.5 * numbers_at(at[CHANGES])[i] / moment if moment > 0.0 else 0.0
    return mean + clip(ratio, 0.0, 1.0) * (numbers_at(at[LAST])[i] - mean)


@jit(allocates=False)
def _complete(places, entries, x, width, at, work):
    """Fill in what is missing: it makes A (x - expected) as short as possible, A^T the table of the map."""
    table = numbers_at(at[TABLE])
    for e in range(entries):
        if places[e] < -1:
            x[-2 - places[e]] = _expected(at, width, -2 - places[e])
    for i in range(width):
        work[i] = 0.0
    for j in range(width):
        add(work, x[j] - _expected(at, width, j), pointer(table, j * width), width)
    for _ in range(SWEEPS):
        for e in range(entries):
            if places[e] < -1:
                j, inner, squared = -2 - places[e], 0.0, 0.0
                own = pointer(table, j * width)
                for i in range(width):
                    inner += own[i] * work[i]
                    squared += own[i] * own[i]
                step = -inner / squared if squared > 0.0 else 0.0
                if abs(x[j] + step) <= LARGEST:  # and so no NaN
                    x[j] += step
                    add(work, step, own, width)


@jit(allocates=False)
def count_changes(x, width, part, begun, at):
    """Count by how much a row differs from the one before, if there is one, and keep it."""
    last, changes = numbers_at(at[LAST]), numbers_at(at[CHANGES])
    for i in range(width):
        change = x[i] - last[i] if begun else 0.0
        changes[i] += part * change * change
        last[i] = x[i]


@jit(allocates=False)
def map_row(x, width, part, factor, at, work, out):
    """Map a row to factor (1, A (x - centre)) / length, A^T the table; count it, if it has a weight `part`.

    `at` holds the addresses of the arrays of `FeatureMap.held`.
    """
    totals, seen, mean = numbers_at(at[TOTALS]), numbers_at(at[SEEN]), numbers_at(at[MEAN])
    moments, centre, table = numbers_at(at[MOMENTS]), numbers_at(at[CENTRE]), numbers_at(at[TABLE])
    mapped, squared = pointer(out, 1), 1.0
    if part > 0.0:
        count_changes(x, width, part, totals[0] > 0.0, at)
        totals[0] += part
        for i in range(width):  # means, and moments about them, as in Welford (1962)
            mapped[i] = x[i] - mean[i]
            mean[i] += part / totals[0] * mapped[i]
            work[i] = x[i] - mean[i]
        for i in range(width):
            moment, weighed = pointer(moments, i * width), part * mapped[i]
            usual = moment[i] + totals[0] * mean[i] * mean[i]
            if totals[0] * x[i] * x[i] > NEGLIGIBLE * NEGLIGIBLE * usual:
                seen[i] += part
            if weighed != 0.0:
                for j in range(i + 1):
                    moment[j] += weighed * work[j]
    for i in range(width):
        mapped[i] = 0.0
    for j in range(width):
        work[j] = x[j] - centre[j]
    for j in range(0, width - 3, 4):  # four at a time: fewer sums are written and read again
        one, two = pointer(table, j * width), pointer(table, (j + 1) * width)
        three, four = pointer(table, (j + 2) * width), pointer(table, (j + 3) * width)
        a, b, c, d = work[j], work[j + 1], work[j + 2], work[j + 3]
        for i in range(width):
            mapped[i] += (a * one[i] + b * two[i]) + (c * three[i] + d * four[i])
    for j in range(width - width % 4, width):
        add(mapped, work[j], pointer(table, j * width), width)
    for i in range(width):
        value = mapped[i]
        if not abs(value) <= WILD:
            mapped[i] = math.copysign(WILD, value)
        squared += mapped[i] * mapped[i]
    length = divisor(totals, squared, part)
    out[0] = factor * (1.0 / length)
    for i in range(width):
        mapped[i] = factor * (mapped[i] / length)


@jit(*(PLACES, PLACES, NUMBERS, NUMBERS), *[NEW_NUMBERS] * 3, *[NEW_PLACES] * 2, NEW_NUMBERS)
def diagonal_rows(starts, places, values, parts, totals, seen, squares, ends, mapped, out):
    """Map rows to (1, x / scale) / length; count them if they have weights `parts`.

    Values too small, or of unknown places, are left out. Return False, and do nothing, if one is too large.
    """
    ends[0], n = 0, 0
    for e in range(values.size):
        if not abs(values[e]) <= LARGEST:
            return False
    for k in range(starts.size - 1):
        part, squared, first = parts[k] if parts.size > 0 else 0.0, 1.0, n
        totals[0] += part
        for e in range(starts[k], starts[k + 1]):
            j, value = places[e], values[e]
            if j < 0 or abs(value) < SMALLEST:
                continue
            if part > 0.0 and value * value * seen[j] >= NEGLIGIBLE * NEGLIGIBLE * squares[j]:
                seen[j] += part
                squares[j] += part * (value * value)
            value = value / math.sqrt(squares[j] / seen[j]) if squares[j] > 0.0 else 0.0
            n += 1
            mapped[n], out[n] = j + 1, min(max(value, -WILD), WILD)
            squared += out[n] * out[n]
        length = divisor(pointer(totals, 0), squared, part)
        mapped[first], out[first] = 0, 1.0 / length
        for e in range(first + 1, n + 1):
            out[e] /= length
        n += 1
        ends[k + 1] = n
    return True

"""Compiled loops that rescale rows of features: those of `FeatureMap`."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from driftwolfe.points.compiling import (
    ANSWER,
    NEW_NUMBERS,
    NEW_TABLE,
    NUMBER,
    NUMBERS,
    PLACES,
    TABLE,
    jit,
)

#: Rows, as `Rows` holds them.
_ROWS = (PLACES, PLACES, NUMBERS)
#: Largest norm of a mapped row, in units of their root mean square.
LONGEST = 2.0
#: A row counts for that mean with at most this many times its present value, so that one wild row
#: does not make all others small.
CAP = 9.0
#: Largest mapped entry, so that squares do not overflow.
WILD = 1e70
#: Entries up to this share of the root mean square of their feature are rounding and count as 0.
NEGLIGIBLE = 1e-12
#: A feature whose scale is at most this share of its mean is constant: what varies is rounding.
CONSTANT = 1e-12
_TINY = float(np.finfo(np.float64).tiny)


@jit(NEW_NUMBERS, NUMBER, NUMBER)
def divisor(totals, squared, part):
    """Count a squared norm with weight `part`, and return what its row is to be divided by."""
    if part > 0.0:
        earlier = totals[0] - part
        counted = min(squared, CAP * totals[1] / earlier) if earlier > 0.0 else squared
        totals[1] += part * counted
    mean = math.sqrt(totals[1] / totals[0]) if totals[1] > 0.0 else 1.0
    return max(mean, math.sqrt(squared) / LONGEST)


@jit(*_ROWS, NUMBERS, NUMBER, *[NEW_NUMBERS] * 3, NEW_TABLE, NUMBERS, TABLE, NEW_NUMBERS)
def full_rows(
    starts, places, values, parts, constant, totals, seen, mean, moments, centre, table, out
):
    """Map rows to (constant, A (x - centre)) / length, A^T the table; count those with weights `parts`."""
    width, learning = centre.size, parts.size > 0
    row, mapped, before, after = np.empty(width), np.empty(width), np.empty(width), np.empty(width)
    for k in range(starts.size - 1):
        row[:] = 0.0
        mapped[:] = 0.0
        for e in range(starts[k], starts[k + 1]):
            row[places[e]] = values[e]
        part = parts[k] if learning else 0.0
        if learning:
            totals[0] += part
            for i in range(width):  # means, and moments about them, as in Welford (1962)
                before[i] = row[i] - mean[i]
                if constant > 0.0:
                    mean[i] += part / totals[0] * before[i]
                after[i] = row[i] - mean[i]
            for i in range(width):
                usual = moments[i, i] + totals[0] * mean[i] * mean[i]
                if totals[0] * row[i] * row[i] > NEGLIGIBLE * NEGLIGIBLE * usual:
                    seen[i] += part
                factor = part * before[i]
                if factor != 0.0:
                    for j in range(i + 1):
                        moments[i, j] += factor * after[j]
        squared = constant * constant
        for j in range(width):
            ahead = row[j] - centre[j]
            for i in range(width):
                mapped[i] += ahead * table[j, i]
        for i in range(width):
            mapped[i] = min(max(mapped[i], -WILD), WILD)
            squared += mapped[i] * mapped[i]
        length = divisor(totals, squared, part)
        first = k * (width + 1)
        out[first] = constant / length
        for i in range(width):
            out[first + 1 + i] = mapped[i] / length


@jit(NUMBER, *[NEW_NUMBERS] * 2, NEW_TABLE)
def full_scales(weight, seen, mean, moments):
    """Return the scales of features, 0 if unknown."""
    out = np.empty(mean.size)
    for i in range(mean.size):
        total = moments[i, i]
        # The zeros of a feature are at the distance |mean| from the mean.
        others = max(total - (weight - seen[i]) * mean[i] * mean[i], 0.0)
        out[i] = math.sqrt(max(total / weight, others / max(seen[i], _TINY)))
    return out


@jit(NUMBER, *[NEW_NUMBERS] * 2, NEW_TABLE)
def correlations(weight, seen, mean, moments):
    """Return the features that vary, what each is multiplied by to have scale 1, and their correlations."""
    scales, number = full_scales(weight, seen, mean, moments), 0
    known, factors = np.empty(mean.size, np.int64), np.empty(mean.size)
    for i in range(mean.size):
        width = max(CONSTANT * abs(mean[i]), _TINY)
        trust = min((scales[i] - width) / width, 1.0)
        if trust > 0.0:
            known[number], factors[number] = i, trust / scales[i]
            number += 1
    out = np.eye(number)
    # A rare feature has a larger scale than its deviation. The rest of its variance counts as noise of
    # its own, or whitening would blow it up after all: so ones on the diagonal.
    for i in range(number):
        for j in range(i):
            moment = moments[known[i], known[j]] / weight
            out[i, j] = out[j, i] = moment * factors[i] * factors[j]
    return known[:number], factors[:number], out


@jit(*_ROWS, NUMBERS, NUMBER, *[NEW_NUMBERS] * 4)
def diagonal_rows(starts, places, values, parts, constant, totals, seen, squares, out):
    """Map rows to (constant, x / scale) / length; count them if they have weights `parts`."""
    learning = parts.size > 0
    for k in range(starts.size - 1):
        part = parts[k] if learning else 0.0
        totals[0] += part
        squared = constant * constant
        shift = k + 1  # every row is one entry longer: the constant
        for e in range(starts[k], starts[k + 1]):
            j = places[e]
            square = values[e] * values[e]
            if learning and square * seen[j] >= NEGLIGIBLE * NEGLIGIBLE * squares[j]:
                seen[j] += part
                squares[j] += part * square
            known = squares[j] > 0.0
            mapped = values[e] / math.sqrt(squares[j] / seen[j]) if known else 0.0
            mapped = min(max(mapped, -WILD), WILD)
            out[e + shift] = mapped
            squared += mapped * mapped
        length = divisor(totals, squared, part)
        out[starts[k] + k] = constant / length
        for e in range(starts[k], starts[k + 1]):
            out[e + shift] /= length


#: What a feature map knows: constant, whether correlations are removed, and its arrays.
_tuple: Any = numba.types.Tuple
MAP = _tuple((NUMBER, ANSWER, *[NEW_NUMBERS] * 3, NEW_TABLE, NEW_NUMBERS, NEW_NUMBERS, NEW_TABLE))


@jit()
def present(places, values, largest, smallest):
    """Return the entries that are known and not 0, and whether all values are in range."""
    kept = 0
    for e in range(values.size):
        if not abs(values[e]) <= largest:
            return np.empty(0, np.int64), np.empty(0), False
        kept += places[e] >= 0 and abs(values[e]) >= smallest
    own_places, own_values, n = np.empty(kept, np.int64), np.empty(kept), 0
    for e in range(values.size):
        if places[e] >= 0 and abs(values[e]) >= smallest:
            own_places[n], own_values[n] = places[e], values[e]
            n += 1
    return own_places, own_values, True


@jit()
def map_row(places, values, parts, state):
    """Map one row; return it as `Rows`."""
    constant, full, totals, seen, mean, moments, squares, centre, table = state
    # Arrays from lists, and sums of arrays, would compile for seconds.
    starts = np.zeros(2, np.int64)
    starts[1] = places.size
    out = np.empty(1 + (centre.size if full else places.size))
    mapped = np.zeros(out.size, np.int64)
    if full:
        full_rows(
            starts, places, values, parts, constant, totals, seen, mean, moments, centre, table, out
        )
    else:
        diagonal_rows(starts, places, values, parts, constant, totals, seen, squares, out)
    for e in range(1, out.size):
        mapped[e] = e if full else places[e - 1] + 1
    starts[1] = out.size
    return starts, mapped, out

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
#: Larger features are refused, smaller ones count as 0: their squares could overflow.
LARGEST, SMALLEST = 1e100, 1e-100


# Conditions in place of `min` and `max`, and working memory that is handed over: each kind of either that numba
# knows would be compiled too.


@jit(allocates=False)
def divisor(totals, squared, part):
    """Count a squared norm with weight `part`, and return what its row is to be divided by."""
    earlier, length = totals[0] - part, math.sqrt(squared) / LONGEST
    if part > 0.0:
        most = CAP * totals[1] / earlier if earlier > 0.0 else squared
        totals[1] += part * (squared if squared < most else most)
    mean = math.sqrt(totals[1] / totals[0]) if totals[1] > 0.0 else 1.0
    return mean if mean > length else length


@jit(allocates=False)
def map_rows(x, parts, factor, state, work, out):
    """Map rows to factor (constant, A (x - centre)) / length, A^T the table; count those with weights `parts`."""
    constant, _, totals, seen, mean, moments, _, centre, table = state
    width, mapped, after = x.shape[1], work[0], work[1]
    for k in range(x.shape[0]):
        part, squared, row = 0.0, constant * constant, x[k]
        if parts.size > 0:
            part = parts[k]
            totals[0] += part
            for i in range(width):  # means, and moments about them, as in Welford (1962)
                mapped[i] = row[i] - mean[i]
                if constant > 0.0:
                    mean[i] += part / totals[0] * mapped[i]
                after[i] = row[i] - mean[i]
            for i in range(width):
                moment, weighed = moments[i], part * mapped[i]
                usual = moment[i] + totals[0] * mean[i] * mean[i]
                if totals[0] * row[i] * row[i] > NEGLIGIBLE * NEGLIGIBLE * usual:
                    seen[i] += part
                if weighed != 0.0:
                    for j in range(i + 1):
                        moment[j] += weighed * after[j]
        for i in range(width):
            mapped[i] = 0.0
        for j in range(width):
            ahead, entries = row[j] - centre[j], table[j]
            for i in range(width):
                mapped[i] += ahead * entries[i]
        for i in range(width):
            value = mapped[i]
            if not abs(value) <= WILD:
                mapped[i] = math.copysign(WILD, value)
            squared += mapped[i] * mapped[i]
        length = divisor(totals, squared, part)
        out[k, 0] = factor * (constant / length)
        for i in range(width):
            out[k, 1 + i] = factor * (mapped[i] / length)


@jit(allocates=False)
def fill(starts, places, values, x):
    """Write rows to a table, 0 for values too small or of unknown places; return whether all are in range."""
    for e in range(values.size):
        if not abs(values[e]) <= LARGEST:
            return False
    for k in range(x.shape[0]):
        row = x[k]
        for j in range(row.size):
            row[j] = 0.0
        for e in range(starts[k], starts[k + 1]):
            if places[e] >= 0 and abs(values[e]) >= SMALLEST:
                row[places[e]] = values[e]
    return True


@jit(*_ROWS, NUMBERS, NUMBER, *[NEW_NUMBERS] * 3, numba.int64[:, ::1], NEW_TABLE)
def diagonal_rows(starts, places, values, parts, constant, totals, seen, squares, mapped, out):
    """Map rows to (constant, x / scale) / length, and places to `mapped`; count them if they have weights `parts`.

    Values too small, or of unknown places, are left out. Return False, and do nothing, if one is too large.
    """
    for e in range(values.size):
        if not abs(values[e]) <= LARGEST:
            return False
    for k in range(starts.size - 1):
        part, squared, n = parts[k] if parts.size > 0 else 0.0, constant * constant, 0
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
            mapped[k, n], out[k, n] = j + 1, min(max(value, -WILD), WILD)
            squared += out[k, n] * out[k, n]
        length = divisor(totals, squared, part)
        out[k, 0] = constant / length
        for e in range(1, n + 1):
            out[k, e] /= length
    return True


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
    constant, full, totals, seen, _, _, squares, centre, _ = state
    # Arrays from lists, and sums of arrays, would compile for seconds.
    out = np.empty((1, 1 + (centre.size if full else places.size)))
    starts, mapped = np.zeros(2, np.int64), np.zeros(out.shape, np.int64)
    starts[1] = places.size
    if full:
        x, work = np.empty((1, centre.size)), np.empty((2, centre.size))
        fill(starts, places, values, x)
        map_rows(x, parts, 1.0, state, work, out)
        for e in range(out.size):
            mapped[0, e] = e
    else:
        diagonal_rows(starts, places, values, parts, constant, totals, seen, squares, mapped, out)
    starts[1] = out.size
    return starts, mapped[0], out[0]

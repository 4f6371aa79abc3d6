"""Compiled loops of `FeatureMap`: row by row, each first counted and then mapped."""

# mypy: allow-untyped-decorators
from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftwolfe.points.jit import (
    ANSWER,
    NEW_NUMBERS,
    NEW_TABLE,
    NUMBER,
    NUMBERS,
    PLACES,
    TABLE,
    jit,
)

#: No mapped row is longer than this, in units of their root mean square.
LONGEST = 2.0
#: A row counts for that mean with at most this many times its present value, so that one wild row
#: does not make all others small.
CAP = 9.0
#: No entry is mapped to more, so that squares stay in the range of numbers.
WILD = 1e70
#: Entries up to this share of the root mean square of their feature count as 0: they are rounding.
NEGLIGIBLE = 1e-12


@jit(NEW_NUMBERS, NUMBER, NUMBER)
def divisor(totals: Any, squared: float, part: float) -> float:
    """Count a squared norm, where `part` > 0, and return what its row is to be divided by.

    Totals are the weight of all rows and the sum of their squared norms.
    """
    if part > 0.0:
        earlier = totals[0] - part
        counted = min(squared, CAP * totals[1] / earlier) if earlier > 0.0 else squared
        totals[1] += part * counted
    mean = math.sqrt(totals[1] / totals[0]) if totals[1] > 0.0 else 1.0
    return max(mean, math.sqrt(squared) / LONGEST)


@jit(NUMBERS, NUMBER, ANSWER, NUMBER, NEW_NUMBERS, NEW_NUMBERS, NEW_TABLE)
def _count_full(
    row: Any, part: float, centred: bool, weight: float, mean: Any, seen: Any, moments: Any
) -> None:
    """Count a row for the means and the second moments about them (Welford 1962)."""
    before = row - mean
    if centred:
        mean += part / weight * before
    after = row - mean
    for i in range(row.size):
        usual = moments[i, i] + weight * mean[i] * mean[i]
        if weight * row[i] * row[i] > NEGLIGIBLE * NEGLIGIBLE * usual:
            seen[i] += part
        factor = part * before[i]
        if factor != 0.0:
            for j in range(i + 1):
                moments[i, j] += factor * after[j]


@jit(
    PLACES,
    PLACES,
    NUMBERS,
    NUMBERS,
    ANSWER,
    NUMBER,
    NEW_NUMBERS,
    NEW_NUMBERS,
    NEW_NUMBERS,
    NEW_TABLE,
    NUMBERS,
    TABLE,
    NEW_NUMBERS,
)
def full_rows(
    starts: Any,
    places: Any,
    values: Any,
    parts: Any,
    learning: bool,
    constant: float,
    totals: Any,
    seen: Any,
    mean: Any,
    moments: Any,
    centre: Any,
    table: Any,
    out: Any,
) -> None:
    """Map rows to (constant, A (x - centre)), divided by their length; count them where learning.

    The table holds A transposed.
    """
    width = centre.size
    row, mapped = np.empty(width), np.empty(width)
    for k in range(starts.size - 1):
        row[:] = 0.0
        mapped[:] = 0.0
        for e in range(starts[k], starts[k + 1]):
            row[places[e]] = values[e]
        part = parts[k] if learning else 0.0
        if learning:
            totals[0] += part
            _count_full(row, part, constant > 0.0, totals[0], mean, seen, moments)
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


@jit(
    PLACES,
    PLACES,
    NUMBERS,
    NUMBERS,
    ANSWER,
    NUMBER,
    NEW_NUMBERS,
    NEW_NUMBERS,
    NEW_NUMBERS,
    NEW_NUMBERS,
)
def diagonal_rows(
    starts: Any,
    places: Any,
    values: Any,
    parts: Any,
    learning: bool,
    constant: float,
    totals: Any,
    seen: Any,
    squares: Any,
    out: Any,
) -> None:
    """Map rows to (constant, x / scale), divided by their length; count them where learning."""
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

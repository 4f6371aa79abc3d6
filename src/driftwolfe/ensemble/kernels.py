"""Compiled loops over experts: a dozen or two of them, too few for array operations to pay.

Points are rows of tables.
"""

# mypy: allow-untyped-decorators
from __future__ import annotations

import math
from typing import Any

from driftwolfe.points.jit import (
    ANSWERS,
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


@fast_jit(TABLE)
def largest_norm(gradients: Any) -> Any:
    """Return the largest Euclidean norm of a row; what is not finite is not lost."""
    largest = 0.0
    for i in range(gradients.shape[0]):
        squared = 0.0
        for j in range(gradients.shape[1]):
            squared += gradients[i, j] * gradients[i, j]
        if not squared <= largest:
            largest = squared
    return math.sqrt(largest)


@jit(TABLE, TABLE, TABLE, PLACES, PLACES, NUMBERS, ANSWERS, NUMBER, NEW_PLACES, NEW_TABLE)
def block_ends(
    y: Any,
    sums: Any,
    gradients: Any,
    clocks: Any,
    blocks: Any,
    etas: Any,
    skip: Any,
    scale: float,
    due: Any,
    targets: Any,
) -> Any:
    """Find the experts whose block ends with this round, and where their steps end.

    There is one gradient for each expert, or one for all. Returns how many experts these are, and
    the sum of all entries of their targets.
    """
    number, total = 0, 0.0
    for i in range(y.shape[0]):
        if (clocks[i] + 1) % blocks[i] != 0 or skip[i]:
            continue
        own = i if gradients.shape[0] > 1 else 0
        eta = scale * etas[i]
        for j in range(y.shape[1]):
            target = y[i, j] - eta * (sums[i, j] + gradients[own, j])
            targets[number, j] = target
            total += target
        due[number] = i
        number += 1
    return number, total


@jit(NEW_TABLE, NEW_TABLE, NEW_TABLE, NUMBERS, WHOLE)
def restart(x: Any, y: Any, sums: Any, start: Any, number: int) -> None:
    """Put the first experts at a point, with no gradients behind them."""
    for i in range(number):
        for j in range(x.shape[1]):
            x[i, j] = start[j]
            y[i, j] = start[j]
            sums[i, j] = 0.0


@jit(NEW_TABLE, NEW_TABLE, NEW_TABLE, TABLE, NEW_PLACES, PLACES, TABLE, TABLE)
def close_round(
    x: Any, y: Any, sums: Any, gradients: Any, clocks: Any, due: Any, new_x: Any, new_y: Any
) -> None:
    """Add the gradients, let a round pass, and move the experts that are due."""
    n, d = x.shape
    for i in range(n):
        clocks[i] += 1
        own = i if gradients.shape[0] > 1 else 0
        for j in range(d):
            sums[i, j] += gradients[own, j]
    for k in range(due.size):
        i = due[k]
        for j in range(d):
            x[i, j] = new_x[k, j]
            y[i, j] = new_y[k, j]
            sums[i, j] = 0.0

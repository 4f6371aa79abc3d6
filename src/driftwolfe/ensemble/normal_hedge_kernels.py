"""Compiled loops of `AdaNormalHedge`: over a dozen or two experts, too few for arrays to pay."""

# mypy: allow-untyped-decorators
from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftwolfe.ensemble.meta import ROUNDING
from driftwolfe.points.jit import ANSWER, NEW_NUMBERS, NUMBER, NUMBERS, jit


@jit(NUMBERS, NUMBERS)
def weights(regrets: Any, movements: Any) -> Any:
    """Return the weights, of sum 1."""
    n, top, total = regrets.size, 0.0, 0.0
    found = np.empty(n)
    for i in range(n):
        upper = max(regrets[i] + 1.0, 0.0)
        found[i] = upper * upper / (3.0 * movements[i] + 3.0)  # log Phi(R + 1, C + 1)
        top = max(top, found[i])
    for i in range(n):
        # Phi(R+1) - Phi(R-1) is Phi(R+1) (1 - exp(-gap)), and (R+1)^2 - (R-1)^2 = 4R exactly.
        beyond = regrets[i] > 1.0
        gap = 4.0 * regrets[i] / (3.0 * movements[i] + 3.0) if beyond else found[i]
        found[i] = -math.exp(found[i] - top) * math.expm1(-gap)
        total += found[i]
    for i in range(n):
        found[i] = found[i] / total if total > 0.0 else 1.0 / n
    return found


@jit(NEW_NUMBERS, NEW_NUMBERS, NUMBER, NUMBERS, NUMBER, ANSWER)
def update(
    regrets: Any, movements: Any, learner: float, losses: Any, scale: float, learned: bool
) -> Any:
    """Update R and C; return B, which grows to the largest difference if learned, and the latter."""
    largest, size, shrink = 0.0, abs(learner), 1.0
    for i in range(losses.size):
        largest = max(largest, abs(learner - losses[i]))
        size = max(size, abs(losses[i]))
    if learned and largest > max(scale, ROUNDING * size):
        shrink, scale = scale / largest, largest
    for i in range(losses.size):
        ahead = (learner - losses[i]) / scale if scale > 0.0 else 0.0
        regrets[i] = regrets[i] * shrink + ahead
        movements[i] = movements[i] * shrink + abs(ahead)
    return scale, largest

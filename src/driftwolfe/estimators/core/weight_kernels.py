"""Compiled loops that update the weights of experts."""

from __future__ import annotations

import math

from driftwolfe.points.compiling import NEW_NUMBERS, NUMBER, NUMBERS, jit


@jit(NEW_NUMBERS, NUMBERS, NUMBER, NUMBER)
def reweigh(weights, gains, rate, share):
    """Multiply weights by exp(rate * gain) and normalise; then spread a fixed share of them evenly."""
    n, total, top = weights.size, 0.0, gains[0]
    for i in range(n):
        top = max(top, gains[i])
    for i in range(n):
        weights[i] *= math.exp(rate * (gains[i] - top))
        total += weights[i]
    for i in range(n):
        weights[i] = (1.0 - share) * weights[i] / total + share / n

"""The compiled loop that updates the weights of experts."""

from __future__ import annotations

import math

from driftwolfe.points.compiling import jit


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

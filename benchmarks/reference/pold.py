"""POLD, Algorithm 3 of the paper: exponential weights over experts in a list."""

from __future__ import annotations

import math

import numpy as np


def experiment_steps(horizon):
    """The dimensionless steps of the paper's experiments: 2^(i-1) T^(-3/4), as far as 1."""
    number = math.ceil(0.75 * math.log2(1 + 4 * horizon / 7)) + 1
    steps = [2**i * horizon**-0.75 for i in range(number)]
    return [h for h in steps if h <= 1]


class POLD:
    """Weighs the experts with rate sqrt(8/T) / B, B the largest range of their losses so far."""

    def __init__(self, experts, horizon):
        self.experts = experts
        self.horizon = horizon
        self.totals = [0.0] * len(experts)
        self.scale = 0.0

    def weights(self):
        """The prior 1/(i(i+1)) times the exponential of the losses, of sum 1."""
        rate = math.sqrt(8 / self.horizon) / self.scale if self.scale > 0 else 0.0
        least = min(self.totals)
        weights = [
            math.exp(-rate * (total - least)) / (i * (i + 1))
            for i, total in enumerate(self.totals, start=1)
        ]
        return np.array(weights) / sum(weights)

    @property
    def decision(self):
        """The weighted mean of the experts' points."""
        return sum(w * expert.x for w, expert in zip(self.weights(), self.experts, strict=True))

    def update(self, loss):
        """Suffer the loss at the mean, weigh the experts by theirs, let each learn."""
        suffered = loss.value(self.decision)
        losses = [expert.update(loss) for expert in self.experts]
        self.scale = max(self.scale, max(losses) - min(losses))
        self.totals = [total + each for total, each in zip(self.totals, losses, strict=True)]
        return suffered

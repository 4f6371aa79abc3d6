"""Discounted normal predictors, in a chain."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from scipy.special import erf

from driftwolfe.ensemble.weights import HORIZON, ROUNDING, Number
from driftwolfe.points.kinds import Array
from driftwolfe.state import Field, Size, Stateful
from driftwolfe.storage import require


@dataclass(eq=False)
class NormalPredictors(Stateful):
    """Weights by a chain of discounted normal predictors: the i-th mixes expert i with all before it.

    For experts on shorter and shorter time scales; `docs/theory/benign.md` says what they promise.
    """

    scale: Size  # the largest range of the losses in a round so far
    size: Number
    horizon: Annotated[int, HORIZON]
    deviations: Annotated[Array, Field(np.float64, ("experts",))] = field(init=False)

    def __post_init__(self) -> None:
        self.deviations = np.zeros(self.size)
        self.derive()

    def derive(self) -> None:
        self.lengths = self.horizon * 0.5 ** np.arange(self.size)
        self.limits = np.sqrt(16.0 * self.lengths * math.log(max(2, self.horizon)))

    @property
    def shares(self) -> Array:
        """The share of each expert against all before it; 1 for the first."""
        x, n = np.clip(self.deviations, 0.0, self.limits), self.lengths
        root = np.sqrt(math.pi * n / 32.0) * erf(x / np.sqrt(8.0 * n))
        shares = np.minimum(1.0, root * np.exp(x * x / (16.0 * n)) / self.horizon)
        return np.append(1.0, shares[1:])

    @property
    def weights(self) -> Array:
        """The weights for the coming round."""
        shares = self.shares
        return shares * np.cumprod(np.append(1.0, 1.0 - shares[:0:-1]))[::-1]

    def check(self) -> None:
        require(bool((abs(self.deviations) <= self.limits + 1.0).all()), "weights")

    def update(self, losses: Array) -> None:
        """Take the losses of the experts: what each gains on those before it, over the range so far."""
        x, shares, mixed = self.deviations, self.shares, float(losses[0])
        gains, spread = np.zeros(self.size), float(np.ptp(losses))
        for i in range(1, self.size):
            gains[i] = mixed - losses[i]
            mixed -= shares[i] * gains[i]
        if spread <= ROUNDING * float(abs(losses).max()):
            spread, gains = 0.0, 0.0 * gains
        bits = np.clip(gains / self.scale, -1.0, 1.0) if self.scale > 0.0 else 0.0 * gains
        settled = ((x < 0.0) & (bits < 0.0)) | ((shares == 1.0) & (bits > 0.0))
        x = x - x / self.lengths + np.where(settled, 0.0, bits)
        grown = max(self.scale, spread)
        self.deviations, self.scale = x * (self.scale / grown if grown > 0.0 else 1.0), grown

"""POLA, Algorithm 4 of the paper: an expert for every dyadic interval, one object each."""

from __future__ import annotations

import math

from benchmarks.reference.bogd_ip import BOGDIP


class IntervalExpert(BOGDIP):
    """BOGD_IP on one interval, with its regret R and the size C of its differences."""

    def __init__(self, start, length, last, c, project):
        super().__init__(start, length**-0.75, c, project)
        self.last = last
        self.regret = 0.0
        self.movement = 0.0

    def weight(self):
        """AdaNormalHedge: half of Phi(R + 1, C + 1) - Phi(R - 1, C + 1)."""
        width = 3 * (self.movement + 1)
        upper = max(self.regret + 1, 0) ** 2 / width
        lower = max(self.regret - 1, 0) ** 2 / width
        return (math.exp(upper) - math.exp(lower)) / 2


class POLA:
    """Adds an expert for every 2^k that divides t, to live for 2^k rounds from the point played.

    Differences of losses are divided by the largest so far; when that grows, R and C shrink.
    """

    def __init__(self, origin, c, project):
        self.c = c
        self.project = project
        self.t = 0
        self.scale = 0.0
        self.experts = []
        self._open(origin)

    def weights(self):
        """The weights of the experts, of sum 1; equal where all are 0."""
        weights = [expert.weight() for expert in self.experts]
        total = sum(weights)
        return [w / total if total > 0 else 1 / len(weights) for w in weights]

    @property
    def decision(self):
        """The weighted mean of the experts' points."""
        return sum(w * expert.x for w, expert in zip(self.weights(), self.experts, strict=True))

    def update(self, loss):
        """Suffer the loss at the mean, hold it against each expert, let those that stay learn."""
        played = self.decision
        suffered = loss.value(played)
        looks = [loss.value_and_gradient(expert.x) for expert in self.experts]
        self._weigh([suffered - value for value, _ in looks])
        self.t += 1
        pairs = list(zip(self.experts, looks, strict=True))
        for expert, (_, gradient) in pairs:
            if expert.last > self.t:
                expert.learn(gradient)
        self.experts = [expert for expert in self.experts if expert.last > self.t]
        self._open(played)
        return suffered

    def _weigh(self, differences):
        largest = max(abs(difference) for difference in differences)
        if largest > self.scale:
            shrink, self.scale = self.scale / largest, largest
            for expert in self.experts:
                expert.regret *= shrink
                expert.movement *= shrink
        if self.scale > 0:
            for expert, difference in zip(self.experts, differences, strict=True):
                expert.regret += difference / self.scale
                expert.movement += abs(difference) / self.scale

    def _open(self, start):
        coming, length = self.t + 1, 1
        while coming % length == 0:
            self.experts.append(self._expert(start, length))
            length *= 2

    def _expert(self, start, length):
        return IntervalExpert(start, length, self.t + length, self.c, self.project)

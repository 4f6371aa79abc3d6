"""Descent experts whose points are factored matrices or products, one by one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.ensemble.descent import Descent, Oracle
from driftwolfe.ensemble.gradient_sum import GradientSum
from driftwolfe.ensemble.scores import Scores, stack, weighted_sum
from driftwolfe.losses import Loss
from driftwolfe.points.kinds import Array, Point


class _Round(NamedTuple):
    x: list[Point]
    y: list[Point]
    sums: list[GradientSum]
    largest_gradient: float
    largest_distance: float
    projections: int


class ListDescent(Descent):
    """Experts in a list: their points do not stack, and their mean is formed only when asked for."""

    def __init__(self, domain: Domain, oracle: Oracle, step_scale: float | None) -> None:
        super().__init__(domain, oracle, step_scale)
        self.x: list[Point] = []  # feasible, played
        self.y: list[Point] = []  # infeasible
        self.sums: list[GradientSum] = []  # gradients of the current block

    def point(self, i: int) -> Point:
        """What expert i plays."""
        return self.x[i]

    def mean(self, weights: Array) -> Point:
        """The weighted mean of what the experts play: factors side by side, never dense."""
        return weighted_sum(weights, self.x)

    def look(self, loss: Loss) -> Scores:
        """What the loss sees of every expert."""
        return stack([loss.scores(x) for x in self.x])

    def prepare(self, loss: Loss, slopes: Any, shared: bool, skip: Any = None) -> _Round:
        """Work out the coming round."""
        each = [slopes] * self.size if shared else slopes
        grown = [s.plus(loss, g, x) for s, g, x in zip(self.sums, each, self.x, strict=True)]
        x, y, sums = list(self.x), list(self.y), [longer for longer, _ in grown]
        largest = max(self.largest_gradient, *(size for _, size in grown))
        due = self.due(skip)
        farthest = self.largest_distance
        for number, i in enumerate(due):
            step = self.scale_for(largest) * self.steps[i]
            result = self.project(int(i), x[i], y[i] - step * sums[i].total(x[i]), number)
            x[i], y[i], sums[i] = result.feasible, result.infeasible, GradientSum()
            if not result.converged:
                farthest = max(farthest, result.distance)
        return _Round(x, y, sums, largest, farthest, self.projections + due.size)

    def commit(self, prepared: _Round) -> None:
        """Carry out what `prepare` worked out."""
        self.x, self.y, self.sums = prepared.x, prepared.y, prepared.sums
        self.largest_gradient = prepared.largest_gradient
        self.largest_distance = prepared.largest_distance
        self.projections = prepared.projections
        self.clocks = self.clocks + 1

    def _add_points(self, start: Point, number: int) -> None:
        self.x = self.x + [start] * number
        self.y = self.y + [start] * number
        self.sums = self.sums + [GradientSum() for _ in range(number)]

    def _keep_points(self, stay: Any) -> None:
        kept = np.flatnonzero(stay)
        self.x = [self.x[i] for i in kept]
        self.y = [self.y[i] for i in kept]
        self.sums = [self.sums[i] for i in kept]

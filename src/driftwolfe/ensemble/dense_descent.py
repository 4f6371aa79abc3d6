"""Descent experts whose points are dense arrays, stacked."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.ensemble.descent import Descent, Oracle
from driftwolfe.ensemble.scores import Scores
from driftwolfe.losses import Loss
from driftwolfe.points.kinds import Array, Point


class _Round(NamedTuple):
    x: Array
    y: Array
    sums: Array
    largest_gradient: float
    projections: int


class DenseDescent(Descent):
    """Experts stacked along the first axis: one call of the loss serves them all."""

    def __init__(self, domain: Domain, oracle: Oracle, step_scale: float | None) -> None:
        super().__init__(domain, oracle, step_scale)
        self.x: Array = np.empty((0, *domain.shape))  # feasible, played
        self.y: Array = np.empty((0, *domain.shape))  # infeasible
        self.sums: Array = np.empty((0, *domain.shape))  # gradients of the current block

    def point(self, i: int) -> Array:
        """What expert i plays, a copy."""
        return self.x[i].copy()

    def mean(self, weights: Array) -> Array:
        """The weighted mean of what the experts play."""
        return np.tensordot(weights, self.x, axes=1)

    def look(self, loss: Loss) -> Scores:
        """What the loss sees of every expert."""
        return loss.stacked_scores(self.x)

    def prepare(self, loss: Loss, slopes: Any, shared: bool, skip: Any = None) -> _Round:
        """Work out the coming round."""
        if shared:
            gradients = loss.pull_back(slopes, self.x[0])[None]
        else:
            gradients = loss.stacked_pull_back(slopes, self.x)
        flat = gradients.reshape(len(gradients), -1)
        largest = float(np.sqrt(np.einsum("ij,ij->i", flat, flat).max()))
        before, self.largest_gradient = (
            self.largest_gradient,
            max(self.largest_gradient, largest),
        )
        try:
            x, y, sums = self.x, self.y, self.sums + gradients
            due = self.due(skip)
            if due.size:
                x, y = x.copy(), y.copy()
            for number, i in enumerate(due):
                target = y[i] - (self.scale * self.steps[i]) * sums[i]
                result = self.project(int(i), x[i], target, number)
                x[i], y[i], sums[i] = result.feasible, result.infeasible, 0.0
            return _Round(x, y, sums, self.largest_gradient, self.projections + due.size)
        finally:
            self.largest_gradient = before

    def commit(self, prepared: _Round) -> None:
        """Carry out what `prepare` worked out."""
        self.x, self.y, self.sums, self.largest_gradient, self.projections = prepared
        self.clocks = self.clocks + 1

    def _add_points(self, start: Point, number: int) -> None:
        fresh = np.broadcast_to(start, (number, *self.domain.shape))
        self.x = np.concatenate((self.x, fresh))
        self.y = np.concatenate((self.y, fresh))
        self.sums = np.concatenate((self.sums, np.zeros(fresh.shape)))

    def _keep_points(self, stay: Any) -> None:
        self.x, self.y, self.sums = self.x[stay], self.y[stay], self.sums[stay]

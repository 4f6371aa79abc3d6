"""Descent experts whose points are dense arrays, stacked."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.ensemble.descent import Descent, Oracle
from driftwolfe.ensemble.scores import Scores
from driftwolfe.losses import Loss
from driftwolfe.points.kinds import Array, Indices, Point


class _Round(NamedTuple):
    x: Array
    y: Array
    sums: Array
    largest_gradient: float
    largest_distance: float
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
        return (weights @ self.x.reshape(self.size, -1)).reshape(self.domain.shape)

    def look(self, loss: Loss) -> Scores:
        """What the loss sees of every expert."""
        return loss.stacked_scores(self.x)

    def prepare(self, loss: Loss, slopes: Any, shared: bool, skip: Any = None) -> _Round:
        """Work out the coming round."""
        gradients = self._gradients(loss, slopes, shared)
        largest = max(self.largest_gradient, largest_norm(gradients))
        x, y, sums = self.x, self.y, self.sums + gradients
        due = self.due(skip)
        farthest = self.largest_distance
        if due.size:
            x, y = x.copy(), y.copy()
            etas = (self.scale_for(largest) * self.steps[due]).reshape(-1, *[1] * (x.ndim - 1))
            targets = y[due] - etas * sums[due]
            sums[due] = 0.0
            if self.exact:
                x[due] = y[due] = self._project_exactly(targets)
            else:
                farthest = max(farthest, self._project_each(due, targets, x, y))
        return _Round(x, y, sums, largest, farthest, self.projections + due.size)

    def _project_exactly(self, targets: Array) -> Array:
        if not np.isfinite(targets).all():
            raise ValueError("a gradient step left the range of numbers; use a smaller step_scale")
        return self.domain.project_many(targets)

    def _project_each(self, due: Indices, targets: Array, x: Array, y: Array) -> float:
        """Project one by one into x and y; the largest distance of those that were cut off."""
        farthest = 0.0
        for number, (i, target) in enumerate(zip(due, targets, strict=True)):
            result = self.project(int(i), x[i], target, number)
            x[i], y[i] = result.feasible, result.infeasible
            if not result.converged:
                farthest = max(farthest, result.distance)
        return farthest

    def commit(self, prepared: _Round) -> None:
        """Carry out what `prepare` worked out."""
        self.x, self.y, self.sums = prepared.x, prepared.y, prepared.sums
        self.largest_gradient = prepared.largest_gradient
        self.largest_distance = prepared.largest_distance
        self.projections = prepared.projections
        self.clocks = self.clocks + 1

    def _gradients(self, loss: Loss, slopes: Any, shared: bool) -> Array:
        """A gradient for every expert, or a single one that all share."""
        if shared:
            return loss.pull_back(slopes, self.x[0])[None]
        return loss.stacked_pull_back(slopes, self.x)

    def _add_points(self, start: Point, number: int) -> None:
        fresh = np.broadcast_to(start, (number, *self.domain.shape))
        self.x = np.concatenate((self.x, fresh))
        self.y = np.concatenate((self.y, fresh))
        self.sums = np.concatenate((self.sums, np.zeros(fresh.shape)))

    def _keep_points(self, stay: Any) -> None:
        self.x, self.y, self.sums = self.x[stay], self.y[stay], self.sums[stay]


def largest_norm(gradients: Array) -> float:
    """The largest Euclidean norm along the first axis."""
    flat = gradients.reshape(len(gradients), -1)
    return math.sqrt(float(np.einsum("ij,ij->i", flat, flat).max()))

"""Descent experts whose points are dense arrays, stacked."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.ensemble.descent import Descent, Oracle
from driftwolfe.ensemble.scores import Scores
from driftwolfe.losses import Loss
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Indices, Point


class _Round(NamedTuple):
    gradients: Array  # one for each expert, or one for all
    due: Indices
    x: Array  # the new points of those due
    y: Array
    largest_gradient: float
    largest_distance: float


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
        due = self.due(skip)
        x = y = self._targets(due, gradients, self.scale_for(largest))
        farthest = self.largest_distance
        if due.size and self.exact:
            x = y = self._project_exactly(y)
        elif due.size:
            x, y, cut_off = self._project_each(due, y)
            farthest = max(farthest, cut_off)
        return _Round(gradients, due, x, y, largest, farthest)

    def commit(self, prepared: _Round) -> None:
        """Carry out what `prepare` worked out: in place, since most points stay as they are."""
        due = prepared.due
        self.sums += prepared.gradients
        self.sums[due] = 0.0
        self.x[due], self.y[due] = prepared.x, prepared.y
        self.largest_gradient = prepared.largest_gradient
        self.largest_distance = prepared.largest_distance
        self.projections += due.size
        self.clocks += 1

    def _gradients(self, loss: Loss, slopes: Any, shared: bool) -> Array:
        """A gradient for every expert, or a single one that all share."""
        points, each = (self.x[:1], slopes[None]) if shared else (self.x, slopes)
        gradients = loss.stacked_pull_back(each, points)
        if gradients.shape != points.shape:  # `commit` must not be the one to fail
            raise ValueError(
                f"{type(loss).__name__} gave gradients of shape {gradients.shape} "
                f"at points stacked in shape {points.shape}"
            )
        return gradients

    def _targets(self, due: Indices, gradients: Array, scale: float) -> Array:
        """Where the gradient steps of the experts that are due end, feasible or not."""
        steps = self.sums.take(due, axis=0)
        steps += gradients if len(gradients) == 1 else gradients.take(due, axis=0)
        np.multiply(steps.T, -scale * self.steps[due], out=steps.T)
        steps += self.y.take(due, axis=0)
        return steps

    def _project_exactly(self, targets: Array) -> Array:
        if not checks.all_finite(targets):
            raise ValueError("a gradient step left the range of numbers; use a smaller step_scale")
        return self.domain.project_many(targets)

    def _project_each(self, due: Indices, targets: Array) -> tuple[Array, Array, float]:
        """Project one by one: x, y, and the largest distance of those that were cut off."""
        x, y, farthest = np.empty_like(targets), np.empty_like(targets), 0.0
        for number, (i, target) in enumerate(zip(due, targets, strict=True)):
            result = self.project(int(i), self.x[i], target, number)
            x[number], y[number] = result.feasible, result.infeasible
            if not result.converged:
                farthest = max(farthest, result.distance)
        return x, y, farthest

    def _add_points(self, start: Point, number: int) -> None:
        fresh = np.stack([start] * number)
        self.x = np.concatenate((self.x, fresh))
        self.y = np.concatenate((self.y, fresh))
        self.sums = np.concatenate((self.sums, np.zeros(fresh.shape)))

    def _keep_points(self, stay: Any) -> None:
        self.x, self.y, self.sums = self.x[stay], self.y[stay], self.sums[stay]

    def _restart_points(self, number: int, start: Point) -> None:
        self.x[:number] = self.y[:number] = start
        self.sums[:number] = 0.0


def largest_norm(gradients: Array) -> float:
    """The largest Euclidean norm along the first axis."""
    flat = gradients.reshape(len(gradients), -1)
    return math.sqrt(np.vecdot(flat, flat).max())

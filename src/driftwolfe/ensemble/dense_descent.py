"""Descent experts whose points are dense arrays, stacked."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.domains.saved_points import require_feasible
from driftwolfe.ensemble.descent import Descent, Projections
from driftwolfe.ensemble.plan import Oracle
from driftwolfe.ensemble.scores import Scores, require_finite
from driftwolfe.losses import Loss
from driftwolfe.points import checks
from driftwolfe.points.compiled import compiled
from driftwolfe.points.kinds import Array, Indices, Point
from driftwolfe.storage.state import require

kernels = compiled("driftwolfe.ensemble.kernels")
#: Of the losses that experts are likely to meet: on all points, and on matrices.
loss_kernels = (
    compiled("driftwolfe.losses.distance_kernels"),
    compiled("driftwolfe.losses.logistic_kernels"),
)


class _Round(NamedTuple):
    gradients: Array  # one for each expert, or one for all
    due: Indices
    x: Array  # the new points of those due
    y: Array
    largest_gradient: float
    projections: Projections


class DenseDescent(Descent):
    """Experts stacked along the first axis: one call of the loss serves them all.

    They are kept as the rows of tables, which compiled loops go through.
    """

    STATE: ClassVar[tuple[str, ...]] = ("_x", "_y", "_sums")

    def __init__(self, domain: Domain, oracle: Oracle, step_scale: float | None) -> None:
        super().__init__(domain, oracle, step_scale)
        for load in (kernels, *loss_kernels[: len(domain.shape)]):
            load()  # now, not in a round
        self._shape, self._exact = domain.shape, self.exact
        size = math.prod(domain.shape)
        self._x: Array = np.empty((0, size))  # feasible, played
        self._y: Array = np.empty((0, size))  # infeasible
        self._sums: Array = np.empty((0, size))  # gradients of the current block

    def check_state(self) -> None:
        """As `Descent.check_state`; a row for each expert, as the compiled loops expect it."""
        super().check_state()
        for table in (self._x, self._y, self._sums):
            require(len(table) == self.size and table.flags.c_contiguous, "points of experts")
        require_feasible(self.domain, self.x)

    @property
    def x(self) -> Array:
        """What the experts play; a view."""
        return self._stacked(self._x)

    @property
    def y(self) -> Array:
        """The infeasible points beside those; a view."""
        return self._stacked(self._y)

    @property
    def sums(self) -> Array:
        """The gradients of the current blocks; a view."""
        return self._stacked(self._sums)

    def point(self, i: int) -> Array:
        """What expert i plays, a copy."""
        return self.x[i].copy()

    def mean(self, weights: Array) -> Array:
        """The weighted mean of what the experts play."""
        return weights.dot(self._x).reshape(self._shape)

    def look(self, loss: Loss) -> Scores:
        """What the loss sees of every expert."""
        return loss.stacked_scores(self.x)

    def prepare(self, loss: Loss, slopes: Any, shared: bool, skip: Any = None) -> _Round:
        """Work out the coming round."""
        gradients, largest = self._gradients(loss, slopes, shared)
        due, x = self._block_ends(gradients, skip, self.scale_for(largest))
        y, projections = x, Projections([], self.atoms)
        if due.size and self._exact:
            x = y = self.domain.project_many(y)
        elif due.size:
            projections = self.project_in_turn(due, y, skip)
            x = np.stack([result.feasible for result in projections.results])
            y = np.stack([result.infeasible for result in projections.results])
        return _Round(gradients, due, x, y, largest, projections)

    def commit(self, prepared: _Round) -> None:
        """Carry out what `prepare` worked out: in place, since most points stay as they are."""
        gradients, due, x, y, self.largest_gradient, projections = prepared
        kernels().close_round(
            self._x,
            self._y,
            self._sums,
            gradients,
            self.clocks,
            due,
            self._table(x),
            self._table(y),
        )
        self.projections += due.size
        self.largest_distance = max(self.largest_distance, projections.farthest)
        self.settle(projections)

    def _gradients(self, loss: Loss, slopes: Any, shared: bool) -> tuple[Array, float]:
        """A table with a gradient for every expert, or one that all share; the largest norm so far."""
        gradients = slopes
        if shared:
            gradients = loss.stacked_pull_back(np.asarray(slopes)[None], self.x[:1])
        if gradients.shape != (1 if shared else self.size, *self._shape):
            raise ValueError(  # now, since `commit` must not be the one to fail
                f"{type(loss).__name__} gave gradients of shape {gradients.shape[1:]} "
                f"for points of shape {self._shape}"
            )
        table = self._table(gradients)
        norm = kernels().largest_norm(table)
        if not math.isfinite(norm):
            require_finite(table)
        return table, max(self.largest_gradient, norm)

    def _block_ends(self, gradients: Array, skip: Any, scale: float) -> tuple[Indices, Array]:
        """The experts whose block ends, and where their gradient steps do, feasible or not."""
        skipped = np.zeros(self.size, dtype=np.bool_) if skip is None else skip
        due, targets = np.empty(self.size, dtype=np.int64), np.empty(self._y.shape)
        number, total = kernels().block_ends(
            self._y,
            self._sums,
            gradients,
            self.clocks,
            self.blocks,
            self.steps,
            skipped,
            scale,
            due,
            targets,
        )
        due, targets = due[:number], targets[:number]
        if not (math.isfinite(total) or checks.all_finite(targets)):
            raise ValueError("a gradient step left the range of numbers; use a smaller step_scale")
        return due, self._stacked(targets)

    def _add_points(self, start: Point, number: int) -> None:
        fresh = np.stack([start.ravel()] * number)
        self._x = np.concatenate((self._x, fresh))
        self._y = np.concatenate((self._y, fresh))
        self._sums = np.concatenate((self._sums, np.zeros(fresh.shape)))

    def _keep_points(self, stay: Any) -> None:
        self._x, self._y, self._sums = self._x[stay], self._y[stay], self._sums[stay]

    def _restart_points(self, number: int, start: Point) -> None:
        kernels().restart(self._x, self._y, self._sums, start.ravel(), number)

    def _stacked(self, table: Array) -> Array:
        """The rows of a table as points."""
        return table if len(self._shape) == 1 else table.reshape(len(table), *self._shape)

    def _table(self, stack: Array) -> Array:
        """The points of a stack as rows of a table."""
        return np.ascontiguousarray(stack, np.float64).reshape(len(stack), self._x.shape[1])

"""Descent experts whose points are dense arrays, stacked."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.domains.saved_points import require_feasible
from driftwolfe.ensemble.descent import Descent, Projections
from driftwolfe.ensemble.plan import Oracle
from driftwolfe.ensemble.rows import rows_on
from driftwolfe.ensemble.scores import Scores, require_finite
from driftwolfe.losses import Loss
from driftwolfe.points.compiled import compiled
from driftwolfe.points.devices import HOST, Device, device_of, is_array, to_host
from driftwolfe.points.kinds import Array, Indices, Point
from driftwolfe.storage.state import require

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
    projections: Projections | None  # none where they are exact


class DenseDescent(Descent):
    """Experts stacked along the first axis: one call of the loss serves them all.

    They are kept as the rows of tables, where the set says: on the host, or on a device, where the
    points are large. What they play is handed out on the host.
    """

    STATE: ClassVar[tuple[str, ...]] = ("_x", "_y", "_sums")
    #: Whether the tables may live where the set says.
    ON_DEVICES: ClassVar[bool] = True

    def __init__(self, domain: Domain, oracle: Oracle, step_scale: float | None) -> None:
        super().__init__(domain, oracle, step_scale)
        self._shape, self._exact = domain.shape, self.exact
        # Without exact projections points go to the host and back.
        away = self.ON_DEVICES and (self._exact or not domain.stack_chosen)
        self._work_on(domain.stack_device if away else HOST)
        empty = self._device.zeros((0, math.prod(domain.shape)))
        self._x: Any = empty  # feasible, played
        self._y: Any = empty  # infeasible
        self._sums: Any = empty  # gradients of the current block

    def check_state(self) -> None:
        """As `Descent.check_state`; a row for each expert, as the compiled loops expect it."""
        super().check_state()
        for table in (self._x, self._y, self._sums):
            require(len(table) == self.size and table.flags.c_contiguous, "points of experts")
        require_feasible(self.domain, self.x)
        put = self._device.put
        self._x, self._y, self._sums = put(self._x), put(self._y), put(self._sums)

    @property
    def x(self) -> Any:
        """What the experts play; a view."""
        return self._stacked(self._x)

    @property
    def y(self) -> Any:
        """The infeasible points beside those; a view."""
        return self._stacked(self._y)

    @property
    def sums(self) -> Any:
        """The gradients of the current blocks; a view."""
        return self._stacked(self._sums)

    def point(self, i: int) -> Array:
        """What expert i plays, a copy on the host."""
        return np.array(to_host(self.x[i]))

    def mean(self, weights: Array) -> Array:
        """The weighted mean of what the experts play, on the host."""
        if self._device is HOST:
            return weights.dot(self._x).reshape(self._shape)
        mean: Array = to_host(self._device.put(weights) @ self._x)
        return mean.reshape(self._shape)

    def look(self, loss: Loss) -> Scores:
        """What the loss sees of every expert."""
        return loss.stacked_scores(self._seen_by(loss))

    def round_of(self, loss: Loss, weights: Array) -> tuple[Array, Any, float]:
        """Values and gradients at every expert, and the value at the mean; see `Loss.stacked_round`."""
        if self._device is HOST:
            return loss.stacked_round(self.x, weights)
        values, gradients, value = loss.stacked_round(self._seen_by(loss), weights)
        return to_host(values), self._device.put(gradients), value

    def _seen_by(self, loss: Loss) -> Any:
        """The points, on the host for a loss that cannot look at them elsewhere."""
        if loss.on_devices or self._device is HOST:
            return self.x
        if self.domain.stack_chosen:  # copies in every round cost more than the device saves
            self._x, self._y, self._sums = map(to_host, (self._x, self._y, self._sums))
            self._work_on(HOST)
        return to_host(self.x)

    def _work_on(self, device: Device) -> None:
        self._device, self._rows = device, rows_on(device)
        if device is HOST:
            for load in loss_kernels[: len(self._shape)]:
                load()  # now, not in a round

    def prepare(self, loss: Loss, slopes: Any, shared: bool, skip: Any = None) -> _Round:
        """Work out the coming round."""
        gradients, largest = self._gradients(loss, slopes, shared)
        due, x = self._block_ends(gradients, skip, self.scale_for(largest))
        y, projections = x, None if self._exact else Projections([], self.atoms)
        if due.size and self._exact:
            x = y = self.domain.project_many(y)
        elif due.size:
            projections = self.project_in_turn(due, to_host(y), skip)
            put = self._device.put
            x = put(np.stack([result.feasible for result in projections.results]))
            y = put(np.stack([result.infeasible for result in projections.results]))
        return _Round(gradients, due, x, y, largest, projections)

    def commit(self, prepared: _Round) -> None:
        """Carry out what `prepare` worked out: in place, since most points stay as they are."""
        gradients, due, x, y, self.largest_gradient, projections = prepared
        new_x, new_y = self._table(x), self._table(y)
        self._rows.close_round(
            self._x, self._y, self._sums, gradients, self.clocks, due, new_x, new_y
        )
        self.projections += due.size
        if projections is not None:
            self.largest_distance = max(self.largest_distance, projections.farthest)
            self.settle(projections)

    def _gradients(self, loss: Loss, slopes: Any, shared: bool) -> tuple[Array, float]:
        """A table with a gradient for every expert, or one that all share; the largest norm so far."""
        gradients = slopes
        if shared:
            like = self._seen_by(loss)[:1]
            slope = device_of(like).put(slopes if is_array(slopes) else np.asarray(slopes))
            gradients = self._device.put(loss.stacked_pull_back(slope[None], like))
        if tuple(gradients.shape) != (1 if shared else self.size, *self._shape):
            raise ValueError(  # now, since `commit` must not be the one to fail
                f"{type(loss).__name__} gave gradients of shape {tuple(gradients.shape[1:])} "
                f"for points of shape {self._shape}"
            )
        table = self._table(gradients)
        norm = self._rows.largest_norm(table)
        if not math.isfinite(norm):
            require_finite(table)
        return table, max(self.largest_gradient, norm)

    def _block_ends(self, gradients: Array, skip: Any, scale: float) -> tuple[Indices, Array]:
        """The experts whose block ends, and where their gradient steps do, feasible or not."""
        due, targets, finite = self._rows.block_ends(
            self._y, self._sums, gradients, self.clocks, self.blocks, self.steps, skip, scale
        )
        if not finite:
            raise ValueError("a gradient step left the range of numbers; use a smaller step_scale")
        return due, self._stacked(targets)

    def _add_points(self, start: Point, number: int) -> None:
        concat = self._device.xp.concat
        fresh = self._device.put(np.stack([start.ravel()] * number))
        self._x, self._y = concat((self._x, fresh)), concat((self._y, fresh))
        self._sums = concat((self._sums, self._device.zeros(tuple(fresh.shape))))

    def _keep_points(self, stay: Any) -> None:
        kept = self._device.put(stay)
        self._x, self._y, self._sums = self._x[kept], self._y[kept], self._sums[kept]

    def _restart_points(self, number: int, start: Point) -> None:
        self._rows.restart(self._x, self._y, self._sums, start.ravel(), number)

    def _stacked(self, table: Any) -> Any:
        """The rows of a table as points."""
        return table if len(self._shape) == 1 else table.reshape(len(table), *self._shape)

    def _table(self, stack: Any) -> Any:
        """The points of a stack as rows of a table."""
        if isinstance(stack, np.ndarray):
            stack = np.ascontiguousarray(stack, np.float64)
        return stack.reshape(len(stack), self._x.shape[1])

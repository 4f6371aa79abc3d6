"""Experts whose points are rows of one array."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.domains.base import in_ball, require_feasible, require_kind
from driftwolfe.ensemble.descent import Descent
from driftwolfe.ensemble.evaluate import Evaluation, Scores, require_finite, weighted_sum
from driftwolfe.ensemble.plan import ProjectionConfig
from driftwolfe.losses import Loss
from driftwolfe.oracles import gauge_by_bisection
from driftwolfe.points import FactoredMatrix, checks, clip_to_ball, inner
from driftwolfe.points.devices import HOST, Device, device_of, is_array, to_host
from driftwolfe.points.kinds import Array, Indices, Point, compiled
from driftwolfe.points.ops import trimmed
from driftwolfe.points.rounding import TIE
from driftwolfe.storage import require

kernels = compiled("driftwolfe.ensemble.expert_kernels")
#: Of the losses that experts are likely to meet: on all points, and on matrices.
loss_kernels = [compiled(f"driftwolfe.losses.{name}_kernels") for name in ("loss", "logistic")]


class HostRows:
    """The arithmetic of a round in compiled loops: experts are too few for array operations.

    Points, infeasible points and sums of gradients are rows of tables; there is a gradient for each
    expert, or one for all. `DeviceRows` does the same on a device.
    """

    def __init__(self) -> None:
        loops = kernels()
        self.largest_norm, self.restart = loops.largest_norm, loops.restart
        self.close_round, self._block_ends = loops.close_round, loops.block_ends

    def block_ends(
        self, y: Array, sums: Array, gradients: Array, experts: Descent, leaving: Any, scale: float
    ) -> tuple[Indices, Array, bool]:
        """Return the experts whose block ends, where their steps end, and whether that is finite."""
        skip = np.zeros(len(y), dtype=np.bool_) if leaving is None else leaving
        due, targets = np.empty(len(y), dtype=np.int64), np.empty(y.shape)
        number, total = self._block_ends(
            y,
            sums,
            gradients,
            experts.clocks,
            experts.blocks,
            experts.steps,
            skip,
            scale,
            due,
            targets,
        )
        due, targets = due[:number], targets[:number]
        return due, targets, math.isfinite(total) or checks.all_finite(targets)


class DeviceRows:
    """The arithmetic of a round in array operations, for points so large that they pay."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def largest_norm(self, gradients: Any) -> float:
        """Return the largest Euclidean norm of a row; what is not finite is not lost."""
        return float(self._device.xp.linalg.vector_norm(gradients, axis=1).max())

    def block_ends(
        self, y: Any, sums: Any, gradients: Any, experts: Descent, leaving: Any, scale: float
    ) -> tuple[Indices, Any, bool]:
        """Return the experts whose block ends, where their steps end, and whether that is finite."""
        due = experts.due(leaving)
        here = self._device.put(due)
        own = gradients[here] if len(gradients) > 1 else gradients
        etas = self._device.put(scale * experts.steps[due])[:, None]
        targets = y[here] - etas * (sums[here] + own)
        return due, targets, bool(self._device.xp.isfinite(targets).all())

    def close_round(
        self,
        x: Any,
        y: Any,
        sums: Any,
        gradients: Any,
        clocks: Indices,
        due: Indices,
        new_x: Any,
        new_y: Any,
    ) -> None:
        """Add the gradients to their sums, advance the clocks, move the experts that are due."""
        clocks += 1
        sums += gradients
        if due.size:
            here = self._device.put(due)
            x[here], y[here], sums[here] = new_x, new_y, 0.0

    def restart(self, x: Any, y: Any, sums: Any, start: Any, number: int) -> None:
        """Put the first experts at a point, with empty sums of gradients."""
        first = self._device.put(start)
        x[:number], y[:number], sums[:number] = first, first, 0.0


class DenseDescent(Descent):
    """Experts stacked along the first axis: one call of the loss serves them all.

    The tables live where the set says: on the host, or on a device where points are large. What the
    experts play is returned on the host.
    """

    STATE: ClassVar[tuple[str, ...]] = ("_x", "_y", "_sums")
    #: Whether the tables may live where the set says.
    ON_DEVICES: ClassVar[bool] = True

    def __init__(self, domain: Domain, oracle: ProjectionConfig, step_scale: float | None) -> None:
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
        super().check_state()
        for table in (self._x, self._y, self._sums):
            require(len(table) == self.size and table.flags.c_contiguous, "points of experts")
        require_feasible(self.domain, self.x)
        self._x, self._y, self._sums = map(self._device.put, (self._x, self._y, self._sums))

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
        """Return a copy of what expert i plays, on the host."""
        return np.array(to_host(self.x[i]))

    def mean(self, weights: Array) -> Array:
        """Return the weighted mean of what the experts play, on the host."""
        if self._device is HOST:
            return weights.dot(self._x).reshape(self._shape)
        mean: Array = to_host(self._device.put(weights) @ self._x)
        return mean.reshape(self._shape)

    def restart_point(self, weights: Array, heaviest: Callable[[Array], int]) -> Array:
        """Return the weighted mean."""
        return self.mean(weights)

    def scores(self, loss: Loss) -> Scores:
        """Return the scores of every expert under a loss."""
        return loss.stacked_scores(self._points_for(loss))

    def evaluate(self, loss: Loss, weights: Array, linear: bool) -> Evaluation:
        """Evaluate a loss, or its linearisation, at every expert and at their weighted mean."""
        if linear:
            return super().evaluate(loss, weights, linear)
        losses, gradients, value = loss.stacked_round(self._points_for(loss), weights)
        if self._device is not HOST:
            losses, gradients = to_host(losses), self._device.put(gradients)
        require_finite(value, losses)
        return Evaluation(value, value, losses, gradients, False)

    def step(self, loss: Loss, evaluation: Evaluation, leaving: Any = None) -> None:
        """Add each expert's gradient; where its block ends, take a step and project."""
        gradients, largest = self._gradients(loss, evaluation)
        due, x, finite = self._rows.block_ends(
            self._y, self._sums, gradients, self, leaving, self.scale_for(largest)
        )
        if not finite:
            raise ValueError("a gradient step left the range of numbers; use a smaller step_scale")
        y = x
        if self._exact and due.size:
            x = y = self._table(self.domain.project_many(self._stacked(x)))
            self.projections += due.size
        elif not self._exact:
            results = self.project_in_turn(due, to_host(self._stacked(x)), leaving)
            if results:
                x, y = (
                    self._device.put(self._table(np.stack(points)))
                    for points in zip(*((r.feasible, r.infeasible) for r in results), strict=True)
                )
        # All that can fail is done. In place, since most points stay as they are.
        self._rows.close_round(self._x, self._y, self._sums, gradients, self.clocks, due, x, y)
        self.largest_gradient = largest

    def _gradients(self, loss: Loss, evaluation: Evaluation) -> tuple[Any, float]:
        """A table with a gradient for every expert, or one for all, and the largest norm so far."""
        gradients, shared = evaluation.slopes, evaluation.shared
        if shared:
            like = self._points_for(loss)[:1]
            slope = device_of(like).put(gradients if is_array(gradients) else np.array(gradients))
            gradients = self._device.put(loss.stacked_pull_back(slope[None], like))
        if tuple(gradients.shape) != (1 if shared else self.size, *self._shape):
            raise ValueError(
                f"{type(loss).__name__} gave gradients of shape {tuple(gradients.shape[1:])} "
                f"for points of shape {self._shape}"
            )
        table = self._table(gradients)
        norm = self._rows.largest_norm(table)
        if not math.isfinite(norm):
            require_finite(table)
        return table, max(self.largest_gradient, norm)

    def _points_for(self, loss: Loss) -> Any:
        """The points, on the host for a loss that cannot be evaluated elsewhere."""
        if loss.on_devices or self._device is HOST:
            return self.x
        if self.domain.stack_chosen:  # copies in every round cost more than the device saves
            self._x, self._y, self._sums = map(to_host, (self._x, self._y, self._sums))
            self._work_on(HOST)
        return to_host(self.x)

    def _work_on(self, device: Device) -> None:
        self._device = device
        self._rows = HostRows() if device is HOST else DeviceRows(device)
        if device is HOST:
            for load in loss_kernels[: len(self._shape)]:
                load()  # compiled now, not in a round

    def _add_points(self, start: Point, number: int) -> None:
        concat = self._device.xp.concat
        fresh = self._device.put(np.stack([start.ravel()] * number))
        self._x, self._y = concat((self._x, fresh)), concat((self._y, fresh))
        self._sums = concat((self._sums, self._device.zeros(tuple(fresh.shape))))

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


class GaugeDescent(DenseDescent):
    r"""Gradient descent on the ball R B, reduced to the set by its gauge.

    Expert i holds u in the ball around the centre c and plays :math:`w = c + (u - c)/\max(1, \gamma)`,
    :math:`\gamma = gauge(u)`. With g the gradient at w and s a subgradient of the gauge at u, it steps
    along

    .. math:: \tilde g = g - 1\{\gamma > 1, \langle g, u - c\rangle < 0\}\,\langle g, w - c\rangle\, s

    for which :math:`\langle g, w - z\rangle \le \langle\tilde g, u - z\rangle` for all z in K, and
    :math:`\lVert\tilde g\rVert \le (1 + R/r) G`.

    Parameters
    ----------
    domain
        A set with a gauge, a subgradient of it, and a known inner radius r.
    step_scale
        c in eta = c h; None: D over (1 + R/r) times the largest gradient norm so far.
    bisection
        Accuracy of the gauge by bisection on membership, or None for the set's own gauge.
    """

    STATE = ("gauges",)
    ON_DEVICES = False  # a gauge at a time, on the host

    def __init__(
        self,
        domain: Domain,
        oracle: ProjectionConfig,
        step_scale: float | None,
        bisection: float | None,
    ) -> None:
        super().__init__(domain, oracle, step_scale)
        self.bisection = bisection
        self.gauges: Array = np.empty(0)

    def check_state(self) -> None:
        super().check_state()
        require(self.gauges.size == self.size and (self.gauges >= 0.0).all(), "gauges of experts")

    @property
    def gradient_factor(self) -> float:
        """How much longer surrogate gradients may be than those of the losses: 1 + R/r."""
        return 1.0 + self.domain.radius / self.domain.inner_radius

    def scale_for(self, largest_gradient: float) -> float:
        """Return the factor c in eta = c h once gradients up to that norm have been seen."""
        return super().scale_for(largest_gradient * self.gradient_factor)

    def step(self, loss: Loss, evaluation: Evaluation, leaving: Any = None) -> None:
        """Step in the ball along the surrogate gradient, then scale into the set."""
        table, largest = self._gradients(loss, evaluation)
        gradients, center = self._stacked(table), self.domain.center
        x, y, gauges = self.x.copy(), self.y.copy(), self.gauges.copy()
        for i in range(self.size):
            if leaving is not None and leaving[i]:
                continue
            g = self.domain.tangent(gradients[i if len(gradients) > 1 else 0])
            target = y[i] - self.scale_for(largest) * self.steps[i] * self._surrogate(i, g)
            y[i] = clip_to_ball(target, center, self.domain.radius)
            gauges[i] = gauge = self._gauge(y[i])
            c = 0.0 if center is None else center
            x[i] = y[i] if gauge <= 1.0 else c + (y[i] - c) / gauge
        self._x, self._y, self.gauges = self._table(x), self._table(y), gauges
        self.largest_gradient = largest
        self.clocks = self.clocks + 1

    def _surrogate(self, i: int, g: Array) -> Array:
        c = self.domain.center
        inside, outside = (v if c is None else v - c for v in (self.x[i], self.y[i]))
        # Clipped to a ball that touches the set, u has the gauge 1 but for rounding, which must not
        # decide; so near to it, w is u.
        if self.gauges[i] <= 1.0 + TIE or np.vdot(g, outside) >= 0:
            return g
        return g - np.vdot(g, inside) * self.domain.gauge_subgradient(self.y[i])

    def _gauge(self, u: Array) -> float:
        if self.bisection is None:
            return self.domain.gauge(u)
        if self.domain.contains(u, atol=1e-12):
            return 1.0  # at most; its value inside does not matter
        return gauge_by_bisection(self.domain, u, self.bisection)

    def _add_points(self, start: Point, number: int) -> None:
        super()._add_points(start, number)
        self.gauges = np.concatenate((self.gauges, np.ones(number)))

    def _restart_points(self, number: int, start: Point) -> None:
        super()._restart_points(number, start)
        self.gauges[:number] = 1.0


#: Columns from which a factored point is recompressed.
_TOO_MANY_COLUMNS = 65


class BallExperts:
    r"""Experts :math:`y_i \leftarrow P(y_i - \eta_i g)`, P the projection on the ball around the set.

    They make no oracle calls: a step costs a vector operation.

    Parameters
    ----------
    domain
        The set; its ball has the centre c and the radius R.
    steps
        Their steps, relative to each other.
    start
        Where all start, in the ball.

    Attributes
    ----------
    points
        The :math:`y_i`.
    """

    STATE: ClassVar[tuple[str, ...]] = ("steps", "points")

    def __init__(self, domain: Domain, steps: Array, start: Point) -> None:
        self.domain = domain
        self.steps = steps
        self.points: list[Point] = [start] * steps.size

    def check_state(self) -> None:
        """Refuse a state, read from a file, whose parts do not fit together."""
        require(len(self.points) == self.steps.size, "experts")
        require((self.steps > 0.0).all(), "steps of experts")
        require_kind(self.domain, self.points, "points of experts")
        require(all(in_ball(self.domain, point) for point in self.points), "points of experts")

    def losses(self, gradient: Point) -> Array:
        """Return the linear loss of each expert."""
        return np.array([inner(gradient, point) for point in self.points])

    def mean(self, weights: Array) -> Point:
        """Return the weighted mean of the points."""
        return trimmed(weighted_sum(weights, self.points), _TOO_MANY_COLUMNS)

    def step(self, gradient: Point, scale: float) -> None:
        """Take gradient steps of `scale` times each expert's own, and clip to the ball."""
        center, radius = self.domain.center, self.domain.radius
        ends = (y + (-scale * h) * gradient for h, y in zip(self.steps, self.points, strict=True))
        inside = (trimmed(clip_to_ball(end, center, radius), _TOO_MANY_COLUMNS) for end in ends)
        # Experts must not share the entries of one gradient: files could not tell.
        self.points = [y.copy() if isinstance(y, FactoredMatrix) else y for y in inside]

"""Experts whose points are rows of one array."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.domains.base import in_ball, require_feasible, require_kind
from driftwolfe.ensemble.descent import Descent, Projections
from driftwolfe.ensemble.evaluate import Scores, require_finite, weighted_sum
from driftwolfe.ensemble.plan import ProjectionConfig
from driftwolfe.losses import Loss
from driftwolfe.oracles import gauge_by_bisection
from driftwolfe.points import FactoredMatrix, checks, clip_to_ball, inner
from driftwolfe.points.compiled import compiled
from driftwolfe.points.devices import HOST, Device, device_of, is_array, to_host
from driftwolfe.points.kinds import Array, Indices, Point
from driftwolfe.points.ops import trimmed
from driftwolfe.points.rounding import TIE
from driftwolfe.storage import require

kernels = compiled("driftwolfe.ensemble.expert_kernels")


class HostRows:
    """Compiled loops: a dozen or two of experts are too few for array operations to pay.

    Points, infeasible points and sums of gradients are rows of tables; there is a gradient for each
    expert, or one for all. See `DeviceRows` for what they do.
    """

    def __init__(self) -> None:
        loops = kernels()
        self.largest_norm, self.restart = loops.largest_norm, loops.restart
        self.close_round, self._block_ends = loops.close_round, loops.block_ends

    def block_ends(
        self,
        y: Array,
        sums: Array,
        gradients: Array,
        clocks: Indices,
        blocks: Indices,
        steps: Array,
        skip: Any,
        scale: float,
    ) -> tuple[Indices, Array, bool]:
        """Return the experts whose block ends, where their steps do, and whether that is finite."""
        skipped = np.zeros(len(y), dtype=np.bool_) if skip is None else skip
        due, targets = np.empty(len(y), dtype=np.int64), np.empty(y.shape)
        number, total = self._block_ends(
            y, sums, gradients, clocks, blocks, steps, skipped, scale, due, targets
        )
        due, targets = due[:number], targets[:number]
        return due, targets, math.isfinite(total) or checks.all_finite(targets)


class DeviceRows:
    """The same by array operations, for points so large that they pay."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def largest_norm(self, gradients: Any) -> float:
        """Return the largest Euclidean norm of a row; what is not finite is not lost."""
        return float(self._device.xp.linalg.vector_norm(gradients, axis=1).max())

    def block_ends(
        self,
        y: Any,
        sums: Any,
        gradients: Any,
        clocks: Indices,
        blocks: Indices,
        steps: Array,
        skip: Any,
        scale: float,
    ) -> tuple[Indices, Any, bool]:
        """Return the experts whose block ends, where their steps do, and whether that is finite."""
        ends = (clocks + 1) % blocks == 0
        due = np.flatnonzero(ends if skip is None else ends > skip)
        here = self._device.put(due)
        own = gradients[here] if len(gradients) > 1 else gradients
        etas = self._device.put(scale * steps[due])[:, None]
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
        """Add the gradients to their sums, let a round pass, and move the experts that are due."""
        clocks += 1
        sums += gradients
        if due.size:
            here = self._device.put(due)
            x[here], y[here], sums[here] = new_x, new_y, 0.0

    def restart(self, x: Any, y: Any, sums: Any, start: Any, number: int) -> None:
        """Put the first experts at a point, with no gradients behind them."""
        first = self._device.put(start)
        x[:number], y[:number], sums[:number] = first, first, 0.0


def rows_on(device: Device) -> HostRows | DeviceRows:
    """Return what suits a device."""
    return HostRows() if device is HOST else DeviceRows(device)


#: Of the losses that experts are likely to meet: on all points, and on matrices.
loss_kernels = (
    compiled("driftwolfe.losses.loss_kernels"),
    compiled("driftwolfe.losses.loss_kernels"),
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

    def evaluate(self, loss: Loss) -> Scores:
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


class _GaugeRound(NamedTuple):
    x: Array
    y: Array
    gauges: Array
    largest_gradient: float


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

    @property
    def kappa(self) -> float:
        """R / r, the aspect ratio of the set."""
        return self.domain.radius / self.domain.inner_radius

    def scale_for(self, largest_gradient: float) -> float:
        """The factor c in eta = c h once gradients up to that norm have been seen."""
        return super().scale_for(largest_gradient * (1.0 + self.kappa))

    def prepare(self, loss: Loss, slopes: Any, shared: bool, skip: Any = None) -> Any:
        """Work out the coming round."""
        table, largest = self._gradients(loss, slopes, shared)
        gradients = self._stacked(table)
        x, y, gauges = self.x.copy(), self.y.copy(), self.gauges.copy()
        for i in self._playing_on(skip):
            g = self.domain.tangent(gradients[i if len(gradients) > 1 else 0])
            step = self.scale_for(largest) * self.steps[i]
            target = y[i] - step * self._surrogate(i, g)
            y[i] = clip_to_ball(target, self.domain.center, self.domain.radius)
            gauges[i] = self._gauge(y[i])
            x[i] = self._pulled_in(y[i], gauges[i])
        return _GaugeRound(x, y, gauges, largest)

    def commit(self, prepared: Any) -> None:
        """Carry out what `prepare` worked out."""
        self.x[:], self.y[:], self.gauges, self.largest_gradient = prepared
        self.clocks = self.clocks + 1

    def _playing_on(self, skip: Any) -> list[int]:
        return [i for i in range(self.size) if skip is None or not skip[i]]

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
            return 1.0  # at most; what it is inside does not matter
        return gauge_by_bisection(self.domain, u, self.bisection)

    def _pulled_in(self, u: Array, gauge: float) -> Array:
        if gauge <= 1.0:
            return u
        c = self.domain.center
        return u / gauge if c is None else c + (u - c) / gauge

    def check_state(self) -> None:
        """As `DenseDescent.check_state`."""
        super().check_state()
        require(self.gauges.size == self.size and (self.gauges >= 0.0).all(), "gauges of experts")

    def _add_points(self, start: Point, number: int) -> None:
        super()._add_points(start, number)
        self.gauges = np.concatenate((self.gauges, np.ones(number)))

    def _keep_points(self, stay: Any) -> None:
        super()._keep_points(stay)
        self.gauges = self.gauges[stay]

    def _restart_points(self, number: int, start: Point) -> None:
        super()._restart_points(number, start)
        self.gauges[:number] = 1.0


#: Columns from which a factored point is rid of those that it does not need.
_COLUMNS = 65


class BallExperts:
    r"""Experts :math:`y_i \leftarrow P(y_i - \eta_i g)`, P the projection on the ball that holds the set.

    They never ask the set anything: a step costs a vector operation.

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
        """What a linear loss costs each of them."""
        return np.array([inner(gradient, point) for point in self.points])

    def moved(self, gradient: Point, scale: float) -> list[Point]:
        """Where a gradient leads them, with steps of `scale` times their own."""
        center, radius = self.domain.center, self.domain.radius
        ends = (y + (-scale * h) * gradient for h, y in zip(self.steps, self.points, strict=True))
        inside = (trimmed(clip_to_ball(end, center, radius), _COLUMNS) for end in ends)
        # Entries of one gradient would be shared, which no file could tell.
        return [y.copy() if isinstance(y, FactoredMatrix) else y for y in inside]


def combined(weights: Array, points: Sequence[Point]) -> Point:
    """The weighted mean of points in the ball."""
    return trimmed(weighted_sum(weights, points), _COLUMNS)

"""Experts whose points are rows of one array."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.domains.base import require_feasible
from driftwolfe.ensemble.descent import Descent
from driftwolfe.ensemble.experts import (
    Evaluation,
    Scores,
    SelfConfident,
    require_finite,
    require_in_range,
)
from driftwolfe.ensemble.plan import ADAPTIVE, LAZY, OPTIMISTIC, VERTEX, Plan, ProjectionConfig
from driftwolfe.ensemble.weights import Totals
from driftwolfe.losses import Loss
from driftwolfe.oracles.infeasible_projection import gauge_by_bisection
from driftwolfe.points import checks, norm
from driftwolfe.points.devices import HOST, Device, device_of, is_array, to_host
from driftwolfe.points.kinds import Array, Indices, Point, compiled
from driftwolfe.points.ops import TIE, clip_to_ball
from driftwolfe.state import Field, Size

kernels = compiled("driftwolfe.ensemble.expert_kernels")
set_kernels = compiled("driftwolfe.domains.set_kernels")
#: Of the losses that experts are likely to meet: on all points, and on matrices.
loss_kernels = compiled("driftwolfe.points.kernels")

TABLE = Field(np.float64, ("experts", "numbers"))
#: The rules of the experts of `POLAR`, by their kinds.
RULES = {"whole": LAZY, "lazy": LAZY, "origin": LAZY, "agile": OPTIMISTIC, "vertex": VERTEX}
RULES |= {"adaptive": ADAPTIVE, "whole adaptive": ADAPTIVE}


class DenseDescent(Descent):
    """Experts as rows of tables: one call of the loss serves them all.

    Tables are on the host, with compiled loops, or, where points are large, on the set's device.
    """

    _x: Annotated[Any, TABLE]  # feasible, played
    _y: Annotated[Any, TABLE]  # infeasible
    _sums: Annotated[Any, TABLE]  # gradients of the current block
    ON_DEVICES: ClassVar[bool] = True  # whether the tables may live where the set says

    def __init__(self, domain: Domain, oracle: ProjectionConfig, step_scale: float | None) -> None:
        super().__init__(domain, oracle, step_scale)
        self._shape = domain.shape
        # Without exact projections points go to the host and back.
        away = self.ON_DEVICES and (self.exact or not domain.stack_chosen)
        self._work_on(domain.stack_device if away else HOST)
        self._x = self._y = self._sums = self._device.zeros((0, math.prod(domain.shape)))

    def derive(self) -> None:
        super().derive()
        tables = map(np.ascontiguousarray, (self._x, self._y, self._sums))
        self._x, self._y, self._sums = map(self._device.put, tables)

    def check(self) -> None:
        super().check()
        require_feasible(self.domain, to_host(self.x))

    def undoable(self, before: Mapping[str, Any]) -> bool:
        return self.clocks is before["clocks"]

    @property
    def x(self) -> Any:
        """What the experts play; a view."""
        return self._stacked(self._x)

    @property
    def y(self) -> Any:
        """The infeasible points beside those; a view."""
        return self._stacked(self._y)

    def point(self, i: int) -> Array:
        return np.array(to_host(self.x[i]))

    def mean(self, weights: Array) -> Array:
        if self._device is HOST:  # `dot` takes half the time of `@` for a few points
            return weights.dot(self._x).reshape(self._shape)
        mean: Array = to_host(self._device.put(weights) @ self._x)
        return mean.reshape(self._shape)

    def restart_point(self, weights: Array, heaviest: Callable[[Array], int]) -> Array:
        return self.mean(weights)

    def scores(self, loss: Loss) -> Scores:
        return loss.stacked_scores(self._points_for(loss))

    def evaluate(
        self, loss: Loss, weights: Array, linear: bool, tangent: bool = False
    ) -> Evaluation:
        if linear:
            return super().evaluate(loss, weights, True)
        losses, gradients, value = loss.stacked_round(self._points_for(loss), weights)
        if self._device is not HOST:
            losses, gradients = to_host(losses), self._device.put(gradients)
        require_finite(value, losses)
        if not tangent:
            return Evaluation(value, value, losses, gradients, False)
        found = super().evaluate(loss, weights, True)
        return found._replace(value=value, slopes=gradients, shared=False)

    def step(self, loss: Loss, slopes: Any, shared: bool = False) -> None:
        """Add each expert's gradient; where its block ends, take a step and project."""
        gradients, largest = self._gradients(loss, slopes, shared)
        due, ends, finite = self._targets(gradients, self._etas(self.scale_for(largest)))
        if not finite:
            raise ValueError("a gradient step left the range of numbers; use a smaller step_scale")
        if self.cut is not None and due.size:
            moved = [self.cut.into(target) for target in to_host(self._stacked(ends))]
            ends = self._device.put(self._table(np.stack(moved)))
        x = y = ends
        if self.exact and due.size:
            x = y = self._table(self.domain.project_many(self._stacked(ends)))
            self.projections += due.size
        elif not self.exact:
            results = self.project_in_turn(due, to_host(self._stacked(ends)))
            if results:
                pairs = zip(*((r.feasible, r.infeasible) for r in results), strict=True)
                x, y = (self._device.put(self._table(np.stack(points))) for points in pairs)
        y = self._bases(due, ends, y)
        # All that can fail is done. In place, since most points stay as they are.
        self.clocks = self.clocks.copy()  # which tells `undoable`
        if self._device is HOST:
            tables = (self._x, self._y, self._sums)
            kernels().close_round(*tables, gradients, self.clocks, due, x, y, self.lazy)
        else:
            self._sums += gradients
            self.clocks += 1
            here = self._device.put(due)
            self._x[here] = x
            agile = ~self.lazy[due]
            here = self._device.put(due[agile])
            self._y[here], self._sums[here] = y[self._device.put(agile)], 0.0
        self.largest_gradient = largest

    def _gradients(self, loss: Loss, gradients: Any, shared: bool) -> tuple[Any, float]:
        """A table with a gradient for every expert, or one for all, and the largest norm so far."""
        if shared:
            like = self._points_for(loss)[:1]
            slope = device_of(like).put(gradients if is_array(gradients) else np.array(gradients))
            gradients = self._device.put(loss.stacked_pull_back(slope[None], like))
        if tuple(gradients.shape) != (1 if shared else self.size, *self._shape):
            raise ValueError(
                f"{type(loss).__name__} gave gradients of shape {tuple(gradients.shape[1:])} "
                f"for points of shape {self._shape}"
            )
        table = self._table(self.domain.tangent_many(gradients))
        if self._device is HOST:
            longest = kernels().largest_norm(table)
        else:
            longest = float(self._device.xp.linalg.vector_norm(table, axis=1).max())
        if not math.isfinite(longest):
            require_finite(table)
        require_in_range(longest, self.diameter)
        return table, max(self.largest_gradient, longest)

    def _etas(self, scale: float) -> Array:
        """The step of each expert."""
        return scale * self.steps

    def _bases(self, due: Indices, ends: Any, y: Any) -> Any:
        """Where the next steps of the experts that are due begin."""
        return y

    def _targets(self, gradients: Any, etas: Array) -> tuple[Indices, Any, bool]:
        """The experts that are due, where their steps end, and whether that is finite."""
        if self._device is HOST:
            tables, plans = (self._y, self._sums), (self.clocks, self.blocks, self.lifetimes)
            ended, ends = np.empty(self.size, np.int64), np.empty(self._y.shape)
            number, total = kernels().block_ends(*tables, gradients, *plans, etas, ended, ends)
            ends = ends[:number]
            return ended[:number], ends, math.isfinite(total) or checks.all_finite(ends)
        due = self.due()
        here = self._device.put(due)
        own = gradients[here] if len(gradients) > 1 else gradients
        along = self._device.put(etas[due])[:, None] * (self._sums[here] + own)
        targets = self._y[here] - along
        return due, targets, bool(self._device.xp.isfinite(targets).all())

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
        if device is HOST:
            for load in (kernels, set_kernels, loss_kernels):
                load()  # compiled now, not in a round

    def _new_expert(self, start: Point) -> dict[str, Any]:
        row = self._device.put(start.ravel())
        return {"clocks": 0, "_x": row, "_y": row, "_sums": 0.0}

    def _stacked(self, table: Any) -> Any:
        """The rows of a table as points."""
        return table if len(self._shape) == 1 else table.reshape(len(table), *self._shape)

    def _table(self, stack: Any) -> Any:
        """The points of a stack as rows of a table."""
        if isinstance(stack, np.ndarray):
            stack = np.ascontiguousarray(stack, np.float64)
        return stack.reshape(len(stack), self._x.shape[1])


class PoolDescent(DenseDescent):
    """Experts that move by the rules of their plans: `POLAR` has the formulas, in which D is the `reach`.

    Where there are vertex experts, and projections are neither exact nor certified, D is twice the distance from
    the centre of the farthest vertex that they have met: the set may be long in directions that no loss points to.
    """

    squares: Totals  # of gradients, since the epoch of each began
    expected: Annotated[float, Field(float, least=0.0, most=1.0)]  # phi
    agreement: Annotated[Array, Field(np.float64, (2,))]  # the sums of <g', g> and of <g', g'>
    _last: Annotated[Array, Field(np.float64, ("numbers",))]  # the last gradient of that expert
    farthest: Size  # distance from the centre of a vertex seen, where there are vertex experts

    def __init__(self, domain: Domain, oracle: ProjectionConfig, step_scale: float | None) -> None:
        super().__init__(domain, oracle, step_scale)
        self.squares, self.expected, self.agreement = np.empty(0), 0.0, np.zeros(2)
        self._last, self.farthest = np.zeros(self._x.shape[1]), 0.0
        self._vertices: Any = None  # of the round

    def set_rules(self, rules: Sequence[int]) -> None:
        super().set_rules(rules)
        self._adaptive, self._optimistic, self._vertex = (
            np.flatnonzero(self.rules == rule) for rule in (ADAPTIVE, OPTIMISTIC, VERTEX)
        )

    def step(self, loss: Loss, slopes: Any, shared: bool = False) -> None:
        """Let each expert step by its rule."""
        super().step(loss, slopes, shared)
        if self._vertex.size:
            here, shares = map(self._device.put, (self._vertex, self.steps[self._vertex, None]))
            self._x[here] += shares * (self._device.put(self._vertices) - self._x[here])
            self._vertices = None

    def _gradients(self, loss: Loss, gradients: Any, shared: bool) -> tuple[Any, float]:
        """The gradients, and what the rules learn from them."""
        table, largest = super()._gradients(loss, gradients, shared)
        if self._adaptive.size:
            own = np.vecdot(table, table) if self._device is HOST else (table * table).sum(1)
            self.squares = self.squares + to_host(own)
        if (
            self._optimistic.size
        ):  # how much of a gradient to expect again, by the first such expert
            first = int(self._optimistic[0]) if len(table) > 1 else 0
            last, self._last = self._last, to_host(table[first]).copy()
            self.agreement = self.agreement + np.array([last @ self._last, last @ last])
            along, square = self.agreement.tolist()
            self.expected = min(1.0, max(0.0, along / square)) if square > 0.0 else 1.0
        if self._vertex.size:
            held, center = to_host(self._stacked(table)), self.domain.origin()
            found = [self.domain.lmo(g) for g in (held[self._vertex] if len(held) > 1 else held)]
            self._vertices = self._table(np.stack(found))
            self.farthest = max(self.farthest, *(norm(v - center) for v in found))
        return table, largest

    @property
    def reach(self) -> float:
        """The length D that steps are measured by."""
        # Bounds need steps that never grow: they are for exact projections and the certified tuning.
        seen = 0.0 if self.exact or self.oracle.by_gap else self.farthest
        return 2.0 * min(self.domain.radius, seen or self.domain.radius)

    def scale_for(self, largest_gradient: float) -> float:
        return super().scale_for(largest_gradient) * self.reach / (2.0 * self.domain.radius)

    def _etas(self, scale: float) -> Array:
        etas = scale * self.steps
        if (which := self._adaptive).size:
            roots = np.sqrt(self.squares[which])
            reach = self.reach * self.steps[which]
            etas[which] = np.divide(reach, roots, out=np.zeros_like(roots), where=roots > 0.0)
        if self.expected:
            etas[self._optimistic] *= 1.0 + self.expected
        return etas

    def _bases(self, due: Indices, ends: Any, y: Any) -> Any:
        """Optimistic experts take back that part of the step which expected the gradient again."""
        if not self.expected or not (which := np.isin(due, self._optimistic)).any():
            return y
        here, before = map(self._device.put, (np.flatnonzero(which), due[which]))
        part, bases = self.expected / (1.0 + self.expected), self._device.put(np.array(to_host(y)))
        bases[here] += part * (self._y[before] - ends[here])
        return bases

    def _new_expert(self, start: Point) -> dict[str, Any]:
        return {**super()._new_expert(start), "squares": 0.0}


class GaugeDescent(DenseDescent):
    r"""Gradient descent on the ball R B, reduced to the set by its gauge.

    Expert i holds u in the ball around the centre c and plays :math:`w = c + (u - c)/\max(1, \gamma)`,
    :math:`\gamma = gauge(u)`. With g the gradient at w and s a subgradient of the gauge at u, it steps along

    .. math:: \tilde g = g - 1\{\gamma > 1, \langle g, u - c\rangle < 0\}\,\langle g, w - c\rangle\, s

    for which :math:`\langle g, w - z\rangle \le \langle\tilde g, u - z\rangle` for all z in K. An agile expert
    steps from u, a lazy one from where it started, by the sum of all :math:`\tilde g` so far.
    """

    gauges: Totals
    ON_DEVICES = False  # a gauge at a time, on the host

    def __init__(
        self,
        domain: Domain,
        oracle: ProjectionConfig,
        step_scale: float | None,
        bisection: float | None,  # accuracy, on membership; None for the set's own gauge
        leaders: bool = False,  # whether experts are lazy: then y is where they started
    ) -> None:
        super().__init__(domain, oracle, step_scale)
        self.leaders, self.bisection, self.gauges = leaders, bisection, np.empty(0)
        self.gradient_factor = 1.0 + domain.radius / domain.inner_radius

    def step(self, loss: Loss, slopes: Any, shared: bool = False) -> None:
        """Step in the ball along the surrogate gradient, then scale into the set."""
        table, largest = self._gradients(loss, slopes, shared)
        gradients, scale, domain = self._stacked(table), self.scale_for(largest), self.domain
        c = self._center
        x, y, gauges = self.x.copy(), self.y.copy(), self.gauges.copy()
        sums = self._stacked(self._sums).copy()
        for i in np.flatnonzero(~self.leaving).tolist():
            g = self._surrogate(i, gradients[i if len(gradients) > 1 else 0])
            sums[i] += g
            u = clip_to_ball(y[i] - scale * self.steps[i] * sums[i], domain.center, domain.radius)
            if self.bisection is None:
                gauges[i] = domain.gauge(u)
            else:  # inside the set, its value does not matter
                inside = domain.contains(u, atol=1e-12)
                gauges[i] = 1.0 if inside else gauge_by_bisection(domain, u, self.bisection)
            x[i] = c + (u - c) / gauges[i] if gauges[i] > 1.0 else u
            if not self.leaders:
                y[i], sums[i] = u, 0.0
        self._x, self._y, self._sums = map(self._table, (x, y, sums))
        self.gauges, self.largest_gradient, self.clocks = gauges, largest, self.clocks + 1

    @property
    def _center(self) -> Any:
        return 0.0 if self.domain.center is None else self.domain.center

    def in_ball(self, i: int) -> Array:
        """The point u of an expert."""
        if not self.leaders:
            return np.asarray(self.y[i])
        c = self._center
        return np.asarray(c + max(1.0, float(self.gauges[i])) * (self.x[i] - c))

    def _surrogate(self, i: int, g: Array) -> Array:
        c, u = self._center, self.in_ball(i)
        # Clipped to a ball that touches the set, u has the gauge 1 but for rounding, which must not
        # decide; so near to it, w is u.
        if self.gauges[i] <= 1.0 + TIE or np.vdot(g, u - c) >= 0:
            return g
        return g - np.vdot(g, self.x[i] - c) * self.domain.gauge_subgradient(u)

    def _new_expert(self, start: Point) -> dict[str, Any]:
        return {**super()._new_expert(start), "gauges": 1.0}


class SelfConfidentDescent(SelfConfident, DenseDescent):
    """Experts with steps from their own gradients: D is the diameter, or where projections are inexact 2 R."""

    a, k = math.sqrt(1.0 / 6.0), 1.5

    def __init__(
        self, oracle: ProjectionConfig, domain: Domain, plans: Sequence[Plan], start: Point
    ) -> None:
        super().__init__(domain, oracle, None)
        self.reach = domain.diameter if self.exact else 2.0 * domain.radius
        self.step_scale = self.a * self.reach
        self.squares, self.worst = np.empty((2, 0))
        self.add(start, plans)

    def _gradients(self, loss: Loss, gradients: Any, shared: bool) -> tuple[Any, float]:
        table, largest = super()._gradients(loss, gradients, shared)
        held = to_host(table)
        self.set_steps(np.vecdot(held, held), largest)
        return table, largest

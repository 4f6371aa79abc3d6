"""Experts on the ball around a set, of whose points only the mean is projected."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Annotated, Any, NamedTuple, cast

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.domains.base import in_ball, require_feasible, same_kind
from driftwolfe.ensemble.descent import TOO_MANY_COLUMNS, GradientSum
from driftwolfe.ensemble.experts import (
    Evaluation,
    Experts,
    SelfConfident,
    require_finite,
    require_in_range,
    weighted_sum,
)
from driftwolfe.ensemble.plan import Plan, ProjectionConfig
from driftwolfe.ensemble.weights import Totals
from driftwolfe.losses import Loss
from driftwolfe.oracles import infeasible_projection
from driftwolfe.points import FactoredMatrix, inner, norm
from driftwolfe.points.devices import device_of, is_array
from driftwolfe.points.kinds import Array, Point, compiled
from driftwolfe.points.ops import POINTS, clip_to_ball, trimmed
from driftwolfe.state import POINT, POSITIVE, Count, Field, Size, State, Stateful
from driftwolfe.storage import require

kernels = compiled("driftwolfe.ensemble.expert_kernels")
set_kernels = compiled("driftwolfe.domains.set_kernels")

#: Distance from the set, in radii, up to which a point counts as inside: the direction to a nearer one
#: is rounding.
INSIDE = 1e-7


class PointRows(Stateful):
    """Points as a list, or, where they are arrays, as the rows of one array, which is never written into."""

    _given: Annotated[Any, Field((list, np.float64), items=Field(POINTS))]

    def __init__(self, given: list[Point] | Array) -> None:
        self._given = given
        if isinstance(given, list):
            shapes = {each.shape if isinstance(each, np.ndarray) else None for each in given}
            if len(shapes) == 1 and None not in shapes:  # a damaged file may have several
                self._given = np.stack(given)

    @property
    def held(self) -> Any:
        """The list, or the array."""
        return self._given


class BallExperts(Stateful):
    r"""Experts :math:`y_i \leftarrow P(y_i - \eta_i g)`, P the projection on the ball around the set."""

    steps: Annotated[Array, Field(np.float64, ("experts",), POSITIVE)]  # relative to each other
    _rows: PointRows

    def __init__(self, domain: Domain, steps: Array, start: Point) -> None:
        set_kernels("clipped_rows")  # compiled now, not in a round
        self.domain, self.steps = domain, steps
        self._rows = PointRows([start] * steps.size)

    def derive(self) -> None:
        like = self.kept(self.domain.origin())
        if is_array(like):  # a file holds arrays of the host
            self._rows = PointRows([device_of(like).put(point) for point in self._rows.held])

    def check(self) -> None:
        like, points = self.kept(self.domain.origin()), self._rows.held
        fit = all(same_kind(point, like) and in_ball(self.domain, point) for point in points)
        require(fit and len(points) == self.steps.size, "points of experts")

    def kept(self, point: Point) -> Point:
        """Return a point as experts keep theirs."""
        return point

    def losses(self, gradient: Point) -> Array:
        """Return the linear loss of each expert, of arrays from the centre: far away, all else is rounding."""
        center, points = self.domain.center, self._rows.held
        if isinstance(gradient, np.ndarray):
            return _flat(points if center is None else points - center).dot(gradient.ravel())
        return np.array([inner(gradient, point) for point in points])

    def combined(self, weights: Array) -> Point:
        """Return the weighted mean of the points."""
        points = self._rows.held
        if isinstance(points, np.ndarray):
            return weights.dot(_flat(points)).reshape(points.shape[1:])
        return trimmed(weighted_sum(weights, points), TOO_MANY_COLUMNS)

    def move(self, gradient: Point, scale: float) -> None:
        """Take gradient steps of `scale` times each expert's own, and clip to the ball."""
        self._rows = PointRows(self.moved(self._rows.held, gradient, scale))

    def moved(self, points: Any, gradient: Any, scale: float) -> Any:
        """Return points, a list or a table, after each expert's step along a gradient, or along its own row."""
        etas = scale * self.steps
        if isinstance(points, np.ndarray):
            return self.confined(points - etas.reshape(-1, *(1,) * (points.ndim - 1)) * gradient)
        pairs = zip(points, etas.tolist(), strict=True)
        inside = self.confined([y + (-eta) * gradient for y, eta in pairs])
        # Experts must not share the entries of one gradient: files could not tell.
        return [y.copy() if isinstance(y, FactoredMatrix) else y for y in inside]

    def confined(self, ends: Any) -> Any:
        """Return a list or a table of points clipped to the ball."""
        center, radius = self.domain.center, self.domain.radius
        if isinstance(ends, list):
            return [trimmed(clip_to_ball(y, center, radius), TOO_MANY_COLUMNS) for y in ends]
        away = ends if center is None else ends - center
        inside: Array = set_kernels().clipped_rows(_flat(away), radius)
        inside = inside.reshape(ends.shape)
        return inside if center is None else center + inside


def surrogate(gradient: Point, away: Point) -> Point:
    """Return a gradient at x less its part along `away` = y - x, if a step would lengthen that."""
    along, length = inner(gradient, away), norm(away)  # <away, away> would cancel near x
    if along >= 0 or length == 0:
        return gradient
    return gradient - (along / length / length) * away


class NearPoint(NamedTuple):
    """A feasible point near y."""

    x: Point
    away: Point  # y - x
    outside: bool  # whether y is surely outside the set, and x is near its projection
    error: float  # what a unit of gradient may lose by x: at most the distance from y


def approach(
    domain: Domain,
    oracle: ProjectionConfig,
    x: Point,
    y: Point,
    tolerance: float,
    limit: int | None,
    rng: Sequence[int],
    accuracy: float | None = None,
) -> NearPoint:
    """Project y from x, to a point of the kind of x; the Frank-Wolfe gap says how nearly."""
    target, gap = y, 0.0
    if oracle.method == "exact" and isinstance(x, np.ndarray):  # nothing to choose or to check
        found: Point = domain.project(y)
    else:
        if is_array(y) and isinstance(x, FactoredMatrix):
            by_block = oracle.method in ("auto", "block") and not domain.cheap_projection
            target = y if by_block else FactoredMatrix._all_stored(y)
        how = tolerance, oracle.method, accuracy or oracle.accuracy, limit
        result = infeasible_projection(domain, x, target, *how, rng=rng)
        found, gap = result.feasible, max(0.0, result.gap)
    away = y - found
    apart = norm(away)
    certified = gap / apart if apart > 0 else 0.0
    outside = apart * apart > max(tolerance, (INSIDE * domain.radius) ** 2) and certified < apart
    found = found.copy() if found is target else found
    return NearPoint(found, away, outside, certified if outside else apart)


class BallDescent(BallExperts, Experts):
    r"""Experts on the ball around a set, and x, the projection of their mean y, which is played.

    All learn from one gradient g at x, less its part along y - x where :math:`\langle g, y - x\rangle < 0`. Where
    the set has factored points, not too large to be projected exactly, y and the experts' points are arrays: sums
    of sparse gradients and of projections soon have full rank.
    """

    x: Annotated[Point, POINT]
    away: Annotated[Point, Field(POINTS)]  # y - x
    outside: Annotated[bool, Field(bool)]
    tolerance: Size  # the smallest of the plans
    largest_distance: Size  # of the errors above the tolerance of their round
    projections: Count
    LEARNED = ("largest_gradient", "largest_distance", "projections", "x")

    def __init__(
        self,
        oracle: ProjectionConfig,
        step_scale: float | None,
        domain: Domain,
        plans: Sequence[Plan],
        start: Point,
    ) -> None:
        Experts.__init__(self, domain, step_scale)
        self.oracle = oracle
        self.x = domain.origin()
        self.as_arrays = isinstance(self.x, FactoredMatrix) and domain.affordable_projection
        BallExperts.__init__(self, domain, np.empty(0), start)
        self.away, self.outside = 0.0 * self.kept(start), False
        self.tolerance = 4.0 * domain.radius**2
        self.largest_distance, self.projections = 0.0, 0
        self.add(start, plans)

    @property
    def size(self) -> int:
        return int(self.steps.size)

    @property
    def diameter(self) -> float:
        return 2.0 * self.domain.radius

    def kept(self, point: Point) -> Point:
        arrays = self.as_arrays and isinstance(point, FactoredMatrix)
        return point.toarray() if arrays else point

    def point(self, i: int) -> Point:
        return cast(Point, self._rows.held[i])

    def add(self, start: Point, plans: Sequence[Plan]) -> None:
        self.steps = np.concatenate((self.steps, [plan.step for plan in plans]))
        self._rows = PointRows([*self._rows.held, *[self.kept(start)] * len(plans)])
        self.tolerance = min([self.tolerance, *(plan.tolerance for plan in plans)])

    def restart(self, which: slice, start: Point, keep: Collection[str] = ()) -> None:
        points, start = self._rows.held.copy(), self.kept(start)
        points[which] = [start] * len(points[which]) if isinstance(points, list) else start
        self._rows = PointRows(points)

    def evaluate(
        self, loss: Loss, weights: Array, linear: bool = True, tangent: bool = False
    ) -> Evaluation:
        """Evaluate a loss at x, and its linearisation, without what it says beside K, at all experts."""
        value, slope = loss.value_and_slope_at(loss.scores(self.x))
        require_finite(value, slope)
        gradients, size = GradientSum().plus(loss, slope, self.x, self.domain)
        require_finite(size)
        require_in_range(size, self.diameter)
        self.largest_gradient = max(self.largest_gradient, size)
        gradient = self.kept(gradients.total(self.x))
        if self.outside:
            gradient = surrogate(gradient, self.away)
        losses = self.losses(gradient)
        return Evaluation(float(value), float(weights @ losses), losses, gradient, True)

    def step(self, loss: Loss, slopes: Any, shared: bool = False) -> None:
        self.move(slopes, self.scale_for(self.largest_gradient))

    def settle(self, weights: Array) -> None:
        y = self.combined(weights)
        tolerance, accuracy, oracle = self.tolerance, None, self.oracle
        if oracle.accuracy is None and oracle.method in ("auto", "corrective", "block"):
            # As ||y - x|| <= D, the gap is then at most sqrt(tolerance) ||y - x||.
            accuracy = math.sqrt(tolerance) / self.diameter or None
        how = tolerance, oracle.max_lmo_calls, (oracle.seed, self.projections), accuracy
        near = approach(self.domain, oracle, self.x, y, *how)
        self.projections += 1
        self.x, self.away, self.outside = near.x, near.away, near.outside
        if isinstance(self.away, FactoredMatrix):
            self.away = self.away.copy()  # it may share arrays with x: files could not tell
        if near.error**2 > (1.0 + 1e-9) * tolerance:
            self.largest_distance = max(self.largest_distance, near.error)

    def mean(self, weights: Array) -> Point:
        """Return what is played: the projection of the mean."""
        return self.x.copy()

    def restart_point(self, weights: Array, heaviest: Any) -> Point:
        """Return the mean, which need not be feasible."""
        return self.combined(weights)

    def derive(self) -> None:
        super().derive()
        if is_array(kept := self.kept(self.x)):
            self.away = device_of(kept).put(self.away)

    def check(self) -> None:
        super().check()
        require_feasible(self.domain, [self.x])
        most = 2.0 * (1.0 + 1e-6) * self.domain.radius
        require(same_kind(self.away, self.kept(self.x)) and norm(self.away) <= most, "points")


class SelfConfidentBall(SelfConfident, BallDescent):
    """Experts on the ball around a set, with steps from the gradient that all learn from."""

    a, k = math.sqrt(1.0 / 8.0), 4.0

    def __init__(
        self, oracle: ProjectionConfig, domain: Domain, plans: Sequence[Plan], start: Point
    ) -> None:
        self.squares, self.worst = np.empty((2, 0))
        self.reach = 2.0 * domain.radius
        super().__init__(oracle, self.a * self.reach, domain, plans, start)

    @property
    def tolerances(self) -> Array:
        """Those of the plans, of which the smallest decides."""
        return np.full(self.size, self.tolerance)

    def step(self, loss: Loss, slopes: Any, shared: bool = False) -> None:
        size = norm(slopes)
        self.set_steps(size * size, self.largest_gradient)
        super().step(loss, slopes, shared)


class OptimisticDescent(BallDescent):
    r"""Optimistic gradient descent, each with its own step, from one gradient for all: `Sword`.

    Projections are on the set (``each``), or rescale to the ball around it, and then the mean of all y is
    projected, as in `BallDescent`. `costs` has the sums of :math:`\min(\tfrac{\eta}{2} q_t^2,\, D q_t)`,
    :math:`q_t = \lVert g_t - m_t\rVert`. A `correction` c charges each expert
    :math:`c\lVert y_t - y_{t-1}\rVert^2` in its losses and its hints, and `costs` with what that adds; all of a
    gradient is then expected again.
    """

    _bases: PointRows  # the points from which steps start
    last: Annotated[Point, Field(POINTS)]  # gradient
    kept_fraction: Annotated[float, Field(float, None, 0.0, 1.0)]  # of that, expected again
    #: Of gradients with those before, and squares.
    products: Annotated[Array, Field(np.float64, (2,))]
    scale: Size  # the factor c on the steps that led to y
    moves: Totals  # squared moves of the last step, if charged
    costs: Annotated[Array, Field(np.float64, ("experts",))]

    def __init__(
        self,
        oracle: ProjectionConfig,
        step_scale: float | None,
        correction: float,
        each: bool,
        domain: Domain,
        plans: Sequence[Plan],
        start: Point,
    ) -> None:
        self.correction, self.each = correction, each
        self.scale = 0.0
        self.moves, self.costs = np.empty((2, 0))
        super().__init__(oracle, step_scale, domain, plans, start)
        self.last = 0.0 * self.kept(domain.origin())
        self.kept_fraction, self.products = 0.0, np.zeros(2)

    @property
    def diameter(self) -> float:
        return self.domain.diameter if self.each else super().diameter

    def kept(self, point: Point) -> Point:
        return point if self.each else super().kept(point)

    def add(self, start: Point, plans: Sequence[Plan]) -> None:
        super().add(start, plans)
        self._bases = PointRows([*self._rows.held])  # its own: files could not tell
        self.moves, self.costs = np.zeros((2, self.size))

    def losses(self, gradient: Point) -> Array:
        return super().losses(gradient) + self.correction * self.moves

    def hints(self) -> Array:
        """Return what the experts will lose if the hint is right."""
        return self.losses(self.hint)

    def charge(self, weights: Array, gradient: Any) -> None:
        """Add what this round costs each expert beside its step's distance terms."""
        moved = self.correction * (self.moves - weights.dot(self.moves))
        self.costs = self.costs + self._costs_of_hint(gradient) + moved

    def _costs_of_hint(self, gradient: Any) -> Array:
        hint = self.hint
        # Where nothing was expected, y is where the step starts, and that may be the new one.
        scale = self.scale if norm(hint) > 0.0 else self.scale_for(self.largest_gradient)
        error = norm(gradient - hint)
        return np.minimum(0.5 * scale * error**2 * self.steps, self.diameter * error)

    def move(self, gradient: Any, scale: float) -> None:
        self.kept_fraction = 1.0  # where losses are smooth, and as long as nothing is known
        along, square = self.products
        if (length := norm(self.last)) > 0.0:
            along, square = along + inner(self.last, gradient), square + length * length
        if square > 0.0 and self.correction == 0.0:
            self.products = np.array([along, square])
            self.kept_fraction = float(min(1.0, max(0.0, along / square)))
        self.last, self.scale = gradient, scale
        self._step(gradient, self.hint, scale)

    def _step(self, gradient: Any, hint: Any, scale: float) -> None:
        """Step along a gradient and expect the hint: one of each for all experts, or a row for each."""
        bases, before = self.moved(self._bases.held, gradient, scale), self._rows.held
        points = self.moved(bases, hint, scale)
        self._bases, self._rows = PointRows(bases), PointRows(points)
        if self.correction > 0.0 and isinstance(points, np.ndarray):
            steps = _flat(points - before)
            self.moves = np.vecdot(steps, steps)
        elif self.correction > 0.0:
            pairs = zip(points, before, strict=True)
            self.moves = np.array([norm(now - then) ** 2 for now, then in pairs])

    @property
    def hint(self) -> Point:
        """What is expected of the next gradient."""
        return self.kept_fraction * self.last

    def confined(self, ends: Any) -> Any:
        if not self.each:
            return super().confined(ends)
        several = self.domain.project_each if isinstance(ends, list) else self.domain.project_many
        return several(ends)

    def settle(self, weights: Array) -> None:
        if self.each:  # the mean is in the set
            self.x = self.combined(weights)
        else:
            super().settle(weights)

    def check(self) -> None:
        super().check()
        like, bases = self.kept(self.domain.origin()), self._bases.held
        fit = all(same_kind(each, like) for each in (self.last, *bases))
        require(fit and len(bases) == self.size, "experts")
        if self.each:
            require_feasible(self.domain, [*self._rows.held, *bases])


class OwnOptimisticDescent(OptimisticDescent):
    """Optimistic gradient descent on arrays, each expert from the gradients at its own points.

    Weights follow the gradient at the mean. `lasts`, `expected` and `agreements` have, first for the mean and then
    for each expert, what `last`, `hint` and `products` are where one gradient serves all.
    """

    lasts: State[Array]
    expected: State[Array]
    agreements: State[Array]

    def add(self, start: Point, plans: Sequence[Plan]) -> None:
        super().add(start, plans)
        self.lasts = np.zeros((1 + self.size, *self.domain.shape))
        self.expected, self.agreements = self.lasts, np.zeros((1 + self.size, 2))

    @property
    def hint(self) -> Point:
        return self.expected[0]

    def evaluate(
        self, loss: Loss, weights: Array, linear: bool = True, tangent: bool = False
    ) -> Evaluation:
        """Evaluate a loss at x, and linearised at all experts; its slopes are gradients there and at these."""
        points = np.concatenate((self.x[None], self._rows.held))
        scores = loss.stacked_scores(points)
        value = float(loss.value_at(scores[0]))
        slopes = loss.stacked_pull_back(loss.slope_at(scores), points)
        along = self.domain.tangent_many(np.asarray(slopes))
        gradients: Array = np.ascontiguousarray(along, dtype=np.float64)
        longest = kernels().largest_norm(_flat(gradients))
        require_finite(value)
        if not math.isfinite(longest):
            require_finite(gradients)
        require_in_range(longest, self.diameter)
        self.largest_gradient = max(self.largest_gradient, longest)
        losses = self.losses(gradients[0])
        return Evaluation(value, float(weights @ losses), losses, gradients, True)

    def _costs_of_hint(self, gradient: Any) -> Array:
        rows = _flat(gradient)[1:], _flat(self.expected)[1:], self.steps
        scales = self.scale, self.scale_for(self.largest_gradient)
        costs: Array = kernels().costs_of_hints(*rows, *scales, self.diameter)
        return costs

    def move(self, gradient: Any, scale: float) -> None:
        found = kernels().expect_again(self.agreements, _flat(self.lasts), _flat(gradient))
        self.lasts, self.scale, self.agreements = gradient, scale, found[0]
        # Where losses are smooth, all of it is expected.
        self.expected = gradient if self.correction > 0.0 else found[1].reshape(gradient.shape)
        self._step(gradient[1:], self.expected[1:], scale)

    def check(self) -> None:
        super().check()
        number, lasts, expected = 1 + self.size, self.lasts, self.expected
        require(lasts.shape == expected.shape == (number, *self.domain.shape), "experts")
        fraction = (np.abs(expected) <= np.abs(lasts)) & (expected * lasts >= 0.0)
        require(fraction.all() and len(self.agreements) == number, "experts")


def _flat(rows: Array) -> Array:
    return rows.reshape(len(rows), -1)

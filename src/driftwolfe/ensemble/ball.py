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
    require_finite,
    require_in_range,
    weighted_sum,
)
from driftwolfe.ensemble.plan import ONE_GRADIENT, Plan, ProjectionConfig
from driftwolfe.ensemble.weights import Totals
from driftwolfe.losses import Loss
from driftwolfe.oracles import infeasible_projection
from driftwolfe.points import FactoredMatrix, clip_to_ball, inner, norm
from driftwolfe.points.devices import device_of, is_array
from driftwolfe.points.kinds import Array, Point, compiled
from driftwolfe.points.ops import POINTS, trimmed
from driftwolfe.state import POINT, POSITIVE, Count, Field, Size, Stateful
from driftwolfe.storage import require

kernels = compiled("driftwolfe.domains.set_kernels")

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
    def stack(self) -> bool:
        """Whether the points are arrays."""
        return isinstance(self._given, np.ndarray)

    @property
    def points(self) -> list[Point]:
        """The list."""
        return list(self._given)

    @property
    def table(self) -> Array:
        """The array."""
        return cast(Array, self._given)


class BallExperts(Stateful):
    r"""Experts :math:`y_i \leftarrow P(y_i - \eta_i g)`, P the projection on the ball around the set."""

    steps: Annotated[Array, Field(np.float64, ("experts",), POSITIVE)]  # relative to each other
    _rows: PointRows

    def __init__(self, domain: Domain, steps: Array, start: Point) -> None:
        kernels("clipped_rows")  # compiled now, not in a round
        self.domain, self.steps = domain, steps
        self.points = [start] * steps.size

    @property
    def points(self) -> list[Point]:
        """The point of each expert."""
        return self._rows.points

    @points.setter
    def points(self, points: list[Point]) -> None:
        self._rows = PointRows(points)

    def derive(self) -> None:
        like = self.kept(self.domain.origin())
        if is_array(like):  # a file holds arrays of the host
            self.points = [device_of(like).put(point) for point in self.points]

    def check(self) -> None:
        like = self.kept(self.domain.origin())
        require(len(self.points) == self.steps.size, "points of experts")
        require(all(same_kind(point, like) for point in self.points), "points of experts")
        require(all(in_ball(self.domain, point) for point in self.points), "points of experts")

    def kept(self, point: Point) -> Point:
        """Return a point as experts keep theirs."""
        return point

    def losses(self, gradient: Point) -> Array:
        """Return the linear loss of each expert, of arrays from the centre: far away, all else is rounding."""
        if isinstance(gradient, np.ndarray):
            center, table = self.domain.center, self._rows.table
            table = table if center is None else table - center
            return table.reshape(self.steps.size, -1).dot(gradient.ravel())
        return np.array([inner(gradient, point) for point in self.points])

    def combined(self, weights: Array) -> Point:
        """Return the weighted mean of the points."""
        if self._rows.stack:
            table = self._rows.table
            return weights.dot(table.reshape(len(table), -1)).reshape(table.shape[1:])
        return trimmed(weighted_sum(weights, self.points), TOO_MANY_COLUMNS)

    def move(self, gradient: Point, scale: float) -> None:
        """Take gradient steps of `scale` times each expert's own, and clip to the ball."""
        if isinstance(gradient, np.ndarray):
            self._rows = PointRows(self.moved(self._rows.table, gradient, scale))
        else:
            self.points = self.moved(self.points, gradient, scale)

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
        inside: Array = kernels().clipped_rows(away.reshape(len(ends), -1), radius)
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
    target, near = y, max(tolerance, (INSIDE * domain.radius) ** 2)
    if oracle.method == "exact" and isinstance(x, np.ndarray):  # nothing to choose or to check
        nearest = domain.project(y)
        away = y - nearest
        apart = norm(away)
        outside = apart * apart > near
        return NearPoint(nearest, away, outside, 0.0 if outside else apart)
    if is_array(y) and isinstance(x, FactoredMatrix):
        by_block = oracle.method in ("auto", "block") and not domain.cheap_projection
        target = y if by_block else FactoredMatrix._all_stored(y)
    how = tolerance, oracle.method, accuracy or oracle.accuracy, limit
    result = infeasible_projection(domain, x, target, *how, rng=rng)
    away = y - result.feasible
    apart = norm(away)
    certified = max(0.0, result.gap) / apart if apart > 0 else 0.0
    outside = apart * apart > near and certified < apart
    found = result.feasible.copy() if result.feasible is target else result.feasible
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
        return self.points[i]

    def add(self, start: Point, plans: Sequence[Plan]) -> None:
        """Add an expert for each plan, all starting at a point of the ball."""
        self.steps = np.concatenate((self.steps, [plan.step for plan in plans]))
        self.points = self.points + [self.kept(start)] * len(plans)
        self.tolerance = min([self.tolerance, *(plan.tolerance for plan in plans)])

    def restart(self, which: slice, start: Point, keep: Collection[str] = ()) -> None:
        """Restart some experts at a point of the ball, with their plans."""
        start = self.kept(start)
        if isinstance(start, np.ndarray):
            table = self._rows.table.copy()
            table[which] = start
            self._rows = PointRows(table)
            return
        points = list(self.points)
        points[which] = [start] * len(points[which])
        self.points = points

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
        rng = oracle.seed, self.projections
        limit = oracle.max_lmo_calls
        near = approach(self.domain, oracle, self.x, y, tolerance, limit, rng, accuracy)
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
        require(same_kind(self.away, self.kept(self.x)), "points")
        require(norm(self.away) <= 2.0 * (1.0 + 1e-6) * self.domain.radius, "points")


class SelfConfidentBall(BallDescent):
    r"""Experts on the ball around a set with steps from the gradients so far.

    .. math:: \eta_t = \frac{2 R}{\sqrt{32 G^2 + 8\Gamma_t}}, \qquad
              \Gamma_t = \sum_{s \le t}\lVert\tilde g_s\rVert^2

    since the expert started; `worst` has the largest :math:`\Gamma` of each, or of any in its place before.
    """

    squares: Totals
    worst: Totals
    confidence = ONE_GRADIENT

    def __init__(
        self, oracle: ProjectionConfig, domain: Domain, plans: Sequence[Plan], start: Point
    ) -> None:
        self.squares, self.worst = np.empty((2, 0))
        self.reach = 2.0 * domain.radius
        super().__init__(oracle, self.confidence.a * self.reach, domain, plans, start)

    @property
    def tolerances(self) -> Array:
        """Those of the plans, of which the smallest decides."""
        return np.full(self.size, self.tolerance)

    def add(self, start: Point, plans: Sequence[Plan]) -> None:
        super().add(start, plans)
        new = np.zeros(len(plans))
        self.squares, self.worst = (np.append(each, new) for each in (self.squares, self.worst))

    def restart(self, which: slice, start: Point, keep: Collection[str] = ()) -> None:
        super().restart(which, start, keep)
        self.squares = self.squares.copy()
        self.squares[which] = 0.0

    def step(self, loss: Loss, slopes: Any, shared: bool = False) -> None:
        size = norm(slopes)
        self.squares = self.squares + size * size
        self.worst = np.maximum(self.worst, self.squares)
        if self.largest_gradient > 0.0:
            self.steps = self.confidence.steps(self.largest_gradient, self.squares)
        super().step(loss, slopes, shared)

    def check(self) -> None:
        super().check()
        require((self.worst >= self.squares).all(), "experts")

"""The best fixed point in hindsight, to a certified gap, and the solvers that find it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftwolfe import oracles
from driftwolfe.domains import Domain, Simplex, TraceNormBall
from driftwolfe.losses import HuberEntries, Loss
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.oracles.minimise import checked_start
from driftwolfe.points import FactoredMatrix, checks, inner, norm
from driftwolfe.points.kinds import Array, Point
from driftwolfe.regret.objective import Objective, Tangent, pool

#: Twice as many gradients of a user's own functions are tried before the bundle method takes over.
_TRIAL = 10


@dataclass(frozen=True, slots=True)
class OfflineMinimum:
    """The minimum of a sum of losses over a set, with its certificate.

    Attributes
    ----------
    point, value, gap, iterations
        A point of the set, the sum there, how much less the minimum may be, in units of the loss, and
        gradients of the sum that were evaluated.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> best = offline_minimum(dw.L1Ball(2), [dw.losses.LinearLoss([1.0, 0.0])] * 3)
    >>> best.point, best.value, best.gap < 1e-12
    (array([-1.,  0.]), -3.0, True)
    """

    point: Point
    value: float
    gap: float
    iterations: int


def offline_minimum(
    domain: Domain, losses: Sequence[Loss], start: Any = None, tolerance: float = 1e-6
) -> OfflineMinimum:
    r"""Minimise a sum of losses over a set: :math:`\min_{x \in K} \sum_t f_t(x)`.

    Losses of one class are joined first: a thousand rounds cost one matrix product per evaluation.
    Then, whichever fits: one LMO call for linear losses; Newton steps over the set, for up to 256
    entries, and accelerated projected gradient steps (Nesterov 2005, Smooth minimization of non-smooth
    functions), where projections are cheap; else fully corrective Frank-Wolfe (Jaggi 2013, Revisiting
    Frank-Wolfe). Absolute and hinge losses are smoothed, less and less; your own functions go on with
    a bundle method where gradient steps do not reach the tolerance.

    The certificate, one LMO call on a tangent, holds whether or not the tolerance was reached.

    Parameters
    ----------
    domain, losses, start
        The set K, the losses :math:`f_t`, and a point of K to start from, else `domain.origin()`.
    tolerance
        Gap to stop at, relative to the larger of the absolute minimum and sum at the origin. After 2,000
        gradients of the sum the gap may be larger.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> targets = np.array([[2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
    >>> losses = [dw.losses.SquaredDistance(target) for target in targets]
    >>> best = offline_minimum(dw.L1Ball(2, radius=2.0), losses)
    >>> best.point, round(best.value, 6), best.gap < 1e-6
    (array([1., 1.]), 3.0, True)
    """
    origin = domain.origin()
    first = origin if start is None else checked_start(domain, start)
    if not losses:
        raise ValueError("losses must hold at least one loss, got none")
    for loss in losses:
        loss.check_shape(domain.shape)
    objective, accuracy = pool(losses), checks.nonnegative(tolerance, "tolerance")
    scale = abs(objective.value(origin))
    bracket = Bracket(domain, accuracy, scale, lower=objective.lower_bound)
    minimise(objective, first, bracket)
    return OfflineMinimum(bracket.point, bracket.value, bracket.gap, bracket.evaluations)


def minimise(objective: Objective, start: Point, bracket: Bracket) -> None:
    """Narrow a new bracket around the minimum of an objective until it has no more work."""
    # Losses of matrix entries are minimised on the rows and columns that they use: neither taking a
    # submatrix nor filling up with zeros raises the trace norm or the losses.
    domain, factored = bracket.domain, isinstance(bracket.domain.origin(), FactoredMatrix)
    losses = [term.loss for term in objective.terms if isinstance(term.loss, EntryLoss)]
    smaller = None
    by_entries = losses and len(losses) == len(objective.terms) and not objective.unknown
    if by_entries and domain.rank_one_atoms:
        rows = np.unique(np.concatenate([loss.rows for loss in losses]))
        cols = np.unique(np.concatenate([loss.cols for loss in losses]))
        if rows.size * cols.size <= 0.7 * math.prod(domain.shape):
            sides = rows.size, cols.size
            smaller = TraceNormBall(sides, domain.radius, representation="dense")
    if smaller is None:
        _run_solvers(objective, start, bracket)
        if factored and isinstance(bracket.point, np.ndarray):
            bracket.point = FactoredMatrix.from_dense(bracket.point)
        return
    terms = []
    for term, loss in zip(objective.terms, losses, strict=True):
        indices = np.searchsorted(rows, loss.rows), np.searchsorted(cols, loss.cols)
        width = (loss.width,) if isinstance(loss, HuberEntries) else ()
        terms.append(term._replace(loss=type(loss)(*indices, loss.targets, *width)))
    places = np.ix_(rows, cols)
    if isinstance(start, FactoredMatrix):
        flat = (index.ravel() for index in np.broadcast_arrays(*places))
        start = start.entries(*flat).reshape(smaller.shape)
    else:
        start = start[places]
    bracket.domain = smaller
    _run_solvers(Objective(terms, objective.constant), start, bracket)
    bracket.domain, found = domain, bracket.point
    if factored:
        found = FactoredMatrix.from_dense(found)
        U, V = (np.zeros((size, found.rank)) for size in domain.shape)
        U[rows], V[cols] = found.U, found.V
        bracket.point = FactoredMatrix(U, found.s, V)
    else:
        bracket.point = np.zeros(domain.shape)
        bracket.point[places] = found


def _run_solvers(objective: Objective, x: Any, bracket: Bracket) -> None:
    """Run the solvers that fit, on less and less smoothed objectives."""
    domain, limit = bracket.domain, bracket.limit
    bracket.offer(x, objective.value(x))
    if objective.unknown:  # it may have kinks, at which gradient steps stall
        bracket.limit = min(limit, bracket.evaluations + _TRIAL)
    if domain.affordable_projection or objective.unknown:
        x = _dense(x)
    smoothing = 0.3  # of the natural size of the scores, by which kinks are smoothed
    while True:
        bracket.settled = False
        smooth = objective.smoothed(smoothing)
        if smooth.linear:
            _, x = bracket.gap_at(smooth, x, smooth.evaluate(x))
            bracket.offer(x, smooth.value(x))
        else:
            solve = accelerated if domain.affordable_projection else corrective
            if solve is accelerated and smooth.has_hessian(math.prod(domain.shape)):
                x = x if smooth.quadratic else newton(smooth, x, bracket)
            x = solve(smooth, x, bracket)
            if objective.unknown:
                first, bracket.limit = bracket.gap, min(limit, bracket.evaluations + _TRIAL)
                x = solve(smooth, x, bracket)
                if bracket.gap < 0.5 * first:  # no kinks so far
                    bracket.limit = min(limit, bracket.evaluations + 200)
                    x = solve(smooth, x, bracket)
        smoothing *= 0.25
        if not (bracket.is_open() and objective.kinked and smoothing > 1e-11):
            break
    bracket.limit = limit
    if objective.unknown and bracket.is_open():
        bundle(objective, _dense(bracket.point), bracket)


def _dense(x: Point) -> Point:
    return x.toarray() if isinstance(x, FactoredMatrix) else x


@dataclass(eq=False)
class Bracket:
    r"""The best point found, and the lower bound proved, :math:`F(x) + \min_{v \in K} \langle g, v - x\rangle`."""

    domain: Domain
    tolerance: float = 0.0
    scale: float = 0.0
    absolute: float = 0.0
    target: float = math.inf  # the search ends once the minimum is known to be at least this,
    limit: int = 2000  # or after that many evaluations
    lower: float = -math.inf
    value: float = math.inf
    point: Point = None
    evaluations: int = 0
    settled: bool = False  # whether only less smoothing can help

    @property
    def gap(self) -> float:
        return max(0.0, self.value - self.lower)

    @property
    def allowed(self) -> float:
        size = 0.0 if self.point is None else abs(self.value)
        return self.tolerance * max(size, self.scale) + self.absolute

    def is_open(self) -> bool:
        """Whether it is still too wide, and evaluations are left."""
        done = self.gap <= self.allowed or self.lower >= self.target
        return not done and self.evaluations < self.limit

    def has_work(self) -> bool:
        """Whether more evaluations of the objective at hand will help."""
        return self.is_open() and not self.settled

    def offer(self, x: Point, value: float) -> None:
        """Keep x if its value is the lowest so far."""
        if value < self.value:
            self.point, self.value = x, value

    def gap_at(self, objective: Objective, x: Point, here: Tangent) -> tuple[float, Point]:
        """Update both ends by an evaluation at x; return its Frank-Wolfe gap and vertex."""
        self.evaluations += 1
        value = here.value if objective.exact is None else objective.exact.value(x)
        self.offer(x, value)
        vertex, error = self.domain.lmo_with_error(here.gradient)
        at_x, at_vertex = inner(here.gradient, x), inner(here.gradient, vertex)
        noise = 2.0**-48 * (abs(here.value) + abs(here.slack) + abs(at_x) + abs(at_vertex))
        gap = max(0.0, at_x - at_vertex) + error + noise
        tangent = here.value + here.slack
        self.lower = max(self.lower, tangent - gap)
        self.settled = gap <= 0.5 * (value - tangent)  # of which smoothing is the rest
        return gap, vertex


def accelerated(objective: Objective, x: Array, bracket: Bracket) -> Array:
    """Minimise by accelerated projected gradient steps (Auslender and Teboulle 2006) that never leave the set.

    Momentum is dropped whenever it points uphill (O'Donoghue and Candès 2015).
    """
    relax = 0.8  # factor by which the curvature estimate falls after a step that it allowed
    if not bracket.has_work():
        return x
    here = objective.evaluate(x)
    move = bracket.gap_at(objective, x, here)[1] - x
    # The change of the gradient on the way to the vertex below x, exact for squared distances.
    change = norm(objective.evaluate(x + move).gradient - here.gradient)
    curvature = change / norm(move) if change > 0.0 else 1.0
    z, theta = x, 1.0
    while bracket.has_work():
        y = (1.0 - theta) * x + theta * z
        here = objective.evaluate(y)
        bracket.gap_at(objective, y, here)
        if not bracket.has_work():
            return y
        before, noise = curvature, 1e-13 * abs(here.value)  # rounding error
        for _ in range(60):  # until the curvature bounds F between y and the next x, or at a kink
            next_z = bracket.domain.project(z - here.gradient / (theta * curvature))
            next_x = (1.0 - theta) * x + theta * next_z
            move = next_x - y
            model = here.value + inner(here.gradient, move) + 0.5 * curvature * inner(move, move)
            if objective.value(next_x) <= model + noise:
                break
            curvature *= 2.0
        if theta == 1.0 and (next_x == y).all():
            return y
        if inner(here.gradient, next_x - x) > 0.0:
            x, z, theta = next_x, next_x, 1.0
            continue
        x, z = next_x, next_z
        theta = 2.0 / (1.0 + math.sqrt(1.0 + 4.0 * relax * curvature / (theta**2 * before)))
        curvature *= relax
    return x


def newton(objective: Objective, x: Array, bracket: Bracket) -> Array:
    """Minimise by quadratic models over the set: 5 to 10 steps where gradients need thousands."""
    last_gap, last_value = math.inf, math.inf
    accuracy = 0.1  # gap of the quadratic model, as a fraction of the gap at x
    while bracket.has_work():
        here = objective.evaluate(x)
        gap, _ = bracket.gap_at(objective, x, here)
        noise = 1e-14 * abs(here.value)
        gained = here.value < last_value - noise
        if not bracket.has_work() or not (gained or gap < 0.5 * last_gap):
            break
        if last_gap < math.inf:  # a falling fraction keeps the convergence superlinear
            accuracy = min(0.03, 0.1 * gap / last_gap)
        last_gap, last_value = gap, here.value
        hessian = objective.hessian(x)
        goal = minimise_quadratic(bracket.domain, here.gradient, hessian, x, accuracy * gap)
        slope, step = inner(here.gradient, goal - x), 1.0
        while step > 1e-8 and slope < 0.0:  # the longest of 1, 1/2, 1/4, ... that gains enough
            ahead = x + step * (goal - x)
            if objective.value(ahead) <= here.value + 0.1 * step * slope + noise:
                x = ahead
                break
            step *= 0.5
    return x


def minimise_quadratic(
    domain: Domain, gradient: Array, hessian: Array, x: Array, accuracy: float
) -> Array:
    """Minimise a quadratic function, badly conditioned perhaps, to a Frank-Wolfe gap (ADMM: Boyd et al. 2011)."""
    values, vectors = np.linalg.eigh(hessian)
    values = np.maximum(values, 0.0)
    if values[-1] == 0.0:
        return np.asarray(domain.lmo_with_error(gradient)[0])
    penalty = np.sqrt(values[-1] * values.mean()) / 10
    linear = gradient.ravel() - hessian @ x.ravel()
    point, multiplier = x, np.zeros(x.shape)
    for sweep in range(1, 1001):
        pulled = penalty * (point - multiplier).ravel() - linear
        free = (vectors @ ((vectors.T @ pulled) / (values + penalty))).reshape(x.shape)
        before, point = point, domain.project(free + multiplier)
        multiplier = multiplier + free - point
        if sweep % 10 == 0:
            slope = (linear + hessian @ point.ravel()).reshape(x.shape)
            vertex, _ = domain.lmo_with_error(slope)
            if np.vdot(slope, point - vertex) <= accuracy:
                break
            apart = np.linalg.norm(free - point) * np.linalg.norm(multiplier)
            moving = np.linalg.norm(point - before) * np.linalg.norm(point)
            # The penalty keeps the two residuals within a factor of 5.
            factor = 2.0 if apart > 5.0 * moving else 0.5 if moving > 5.0 * apart else 1.0
            penalty, multiplier = penalty * factor, multiplier / factor
    return point


def corrective(objective: Objective, x: Point, bracket: Bracket) -> Point:
    """Minimise by fully corrective Frank-Wolfe; every evaluation is a certificate."""

    def told(x: Point) -> tuple[float, Point]:
        here = objective.evaluate(x)
        bracket.gap_at(objective, x, here)
        if not bracket.has_work():
            raise StopIteration
        return here.value, here.gradient

    if bracket.has_work():
        # It ends when the bracket says so, not at a gap of its own.
        options: dict[str, Any] = {"method": "corrective", "max_lmo_calls": bracket.limit}
        with suppress(StopIteration):
            oracles.minimise(told, bracket.domain, math.ulp(0.0), start=x, **options)
    return bracket.point


def bundle(objective: Objective, x: Array, bracket: Bracket) -> Array:
    r"""Minimise by proximal steps on the model :math:`\max_i c_i + \langle g_i, z\rangle` of all tangents.

    At a kink a mixture of slopes gives the certificate (Kiwiel 1990, Proximity control in bundle methods).
    """

    def nearest(weights: Array) -> Array:
        """Return the minimiser over the set of the step with this mixture of cuts."""
        y = x - length * (weights @ slopes).reshape(x.shape)
        if domain.can("project"):
            return domain.project(y)
        how: dict[str, Any] = {"method": "corrective", "accuracy": 1e-8}
        near = 1e-16 * domain.radius**2
        return oracles.infeasible_projection(domain, domain.origin(), y, near, **how).feasible

    def dual(weights: Array) -> Tangent:
        """Return minus the dual of the step, whose minimum is the gain that the step predicts."""
        point = nearest(weights)
        cuts, move = offsets - value + slopes @ point.ravel(), point - x
        gain = -float(weights @ cuts) - float(np.vdot(move, move)) / (2.0 * length)
        return Tangent(gain, -cuts)

    domain, here = bracket.domain, objective.evaluate(x)
    value, ahead = here.value, x
    offsets, slopes, weights = np.empty(0), np.empty((0, x.size)), np.empty(0)
    length = bracket.gap / max(float(np.vdot(here.gradient, here.gradient)), 1e-300)
    while bracket.is_open():
        # The tangent at the last point evaluated is a new cut.
        offsets = np.append(offsets, here.value - np.vdot(here.gradient, ahead))
        slopes = np.vstack((slopes, here.gradient.reshape(1, -1)))
        # From the last weights, half of them on the new cut.
        weights = np.append(0.5 * weights, 0.5) if weights.size else np.ones(1)
        if (number := len(offsets)) > 1:  # to 5 % of the gain that the model predicts
            absolute = 0.05 * bracket.allowed
            inside = Bracket(Simplex(number), 0.05, absolute=absolute, limit=300)
            accelerated(_Dual(dual), weights, inside)
            weights = np.asarray(inside.point)
        ahead, mixed = nearest(weights), weights @ slopes
        tangent = float(weights @ offsets + mixed @ x.ravel())
        bracket.gap_at(objective, x, Tangent(value, mixed.reshape(x.shape), tangent - value))
        predicted = value - float((offsets + slopes @ ahead.ravel()).max())
        if predicted <= 0.0 or not bracket.is_open():
            break
        here = objective.evaluate(ahead)
        bracket.offer(ahead, here.value)
        held = np.argsort(weights)[::-1][:100]
        held = held[weights[held] > 1e-10]
        offsets, slopes = offsets[held], slopes[held]
        weights = weights[held] / weights[held].sum()
        if here.value <= value - 0.1 * predicted:  # enough to move the centre
            length *= 1.5 if here.value <= value - 0.5 * predicted else 1.0
            x, value = ahead, here.value
        elif here.value - value > predicted:
            length *= 0.7
    return x


class _Dual(Objective):
    """A function of the weights of cuts, and its gradient."""

    def __init__(self, evaluate: Callable[[Array], Tangent]) -> None:
        self._evaluate = evaluate

    def evaluate(self, x: Array) -> Tangent:
        return self._evaluate(x)

    def value(self, x: Array) -> float:
        return self._evaluate(x).value

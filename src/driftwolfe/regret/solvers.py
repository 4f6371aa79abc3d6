"""Solvers for offline minima: accelerated, corrective, Newton, bundle."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from driftwolfe.domains import Domain, Simplex
from driftwolfe.points import inner, norm
from driftwolfe.points.kinds import Array, Point
from driftwolfe.regret.objective import Evaluation, Objective

#: What rounding may do to a sum of products, in units of its terms.
_ROUNDING = 16 * float(np.finfo(np.float64).eps)


class LinearGap(NamedTuple):
    r"""What one linear minimisation told.

    Attributes
    ----------
    gap
        The Frank-Wolfe gap of the function at hand: it is within this of its minimum.
    vertex
        The minimiser of the linearised function.
    """

    gap: float
    vertex: Point


class Bracket:
    r"""The best point found and the best lower bound proved.

    For convex F with slope g at x and v a minimiser of :math:`\langle g, \cdot\rangle` over K,

    .. math:: \min_K F \ge F(x) - \langle g, x - v\rangle,

    so every look at a point of K moves one end or both.

    Parameters
    ----------
    domain
        The set K.
    tolerance, scale, allowed
        The bracket is narrow enough at ``tolerance * max(|value|, scale) + allowed``.
    floor
        A lower bound known from the start.
    target
        The search may end once the minimum is known to be at least this.
    limit
        Most looks before giving up.
    """

    def __init__(
        self,
        domain: Domain,
        *,
        tolerance: float = 0.0,
        scale: float = 0.0,
        allowed: float = 0.0,
        floor: float = -math.inf,
        target: float = math.inf,
        limit: int = 2000,
    ) -> None:
        self.domain = domain
        self.point: Point = None
        self.value = math.inf
        self.lower = floor
        self.looks = 0
        self.limit = limit
        self._settled = False
        self._tolerance, self._scale, self._allowed = tolerance, scale, allowed
        self._target = target

    def over(self, domain: Domain) -> Bracket:
        """Return a bracket with the same aims and no point yet, for the same problem on another set."""
        return Bracket(
            domain,
            tolerance=self._tolerance,
            scale=self._scale,
            allowed=self._allowed,
            floor=self.lower,
            target=self._target,
            limit=self.limit - self.looks,
        )

    def take(self, other: Bracket, point: Point) -> None:
        """Take over what another bracket of the same problem has found, with its point as `point`."""
        self.looks += other.looks
        self.lower = max(self.lower, other.lower)
        self.offer(point, other.value)

    @property
    def gap(self) -> float:
        """Width of the bracket."""
        return max(0.0, self.value - self.lower)

    @property
    def allowed(self) -> float:
        """The width that will do."""
        size = 0.0 if self.point is None else abs(self.value)
        return self._tolerance * max(size, self._scale) + self._allowed

    def is_open(self) -> bool:
        """Whether there is work left and looks to do it with."""
        done = self.gap <= self.allowed or self.lower >= self._target
        return not done and self.looks < self.limit

    def has_work(self) -> bool:
        """Whether more looks at the objective at hand will help."""
        return self.is_open() and not self._settled

    def gap_at(self, objective: Objective, x: Point, seen: Evaluation) -> LinearGap:
        """Learn from the objective's evaluation at a point of the set, with one call of the oracle.

        A smoothed objective settles once its gap is below half its blur: then only less smoothing
        can help.
        """
        self.looks += 1
        true = objective.true_value(x, seen)
        self.offer(x, true)
        vertex, error = self.domain.lmo_with_error(seen.gradient)
        here, there = inner(seen.gradient, x), inner(seen.gradient, vertex)
        noise = _ROUNDING * (abs(seen.value) + abs(seen.slack) + abs(here) + abs(there))
        gap = max(0.0, here - there) + error + noise
        tangent = seen.value + seen.slack
        self.lower = max(self.lower, tangent - gap)
        self._settled = gap <= 0.5 * (true - tangent)
        return LinearGap(gap, vertex)

    def unsettle(self) -> None:
        """Get ready for the next objective."""
        self._settled = False

    def offer(self, x: Point, value: float) -> None:
        """Keep x if its value is the lowest so far."""
        if value < self.value:
            self.point, self.value = x, value


#: Factor by which the curvature estimate falls after a step that it allowed.
_RELAX = 0.8
#: Error of a sum of losses that backtracking must not take for curvature, relative to it.
_ACCELERATED_ROUNDING = 1e-13
#: Doublings after which a step is no longer tried to be explained by curvature: there is a kink.
_MOST_DOUBLINGS = 60


def accelerated(objective: Objective, x: Array, bracket: Bracket) -> Array:
    r"""Minimise by accelerated projected gradient steps, with backtracking and restarts.

    The scheme of Auslender and Teboulle (2006): with :math:`y = (1-\theta) x + \theta z`,

    .. math::

        z^+ = \Pi_K\big(z - \nabla F(y)/(\theta L)\big), \qquad x^+ = (1-\theta) x + \theta z^+

    Unlike in other schemes no point leaves the set, so functions need not be defined outside it and
    every evaluation is a certificate. Momentum is dropped whenever it points uphill (O'Donoghue and
    Candès 2015). One projection, one oracle call and two looks at the data a step. Ends when the
    bracket has no more work or when no step moves; returns the last point.
    """
    if not bracket.has_work():
        return x
    z, theta = x, 1.0
    curvature = _first_curvature(objective, x, bracket)
    while bracket.has_work():
        y = (1.0 - theta) * x + theta * z
        seen = objective.evaluate(y)
        bracket.gap_at(objective, y, seen)
        if not bracket.has_work():
            return y
        before = curvature
        curvature, after, ahead = _step(objective, bracket, x, z, y, seen, theta, curvature)
        if theta == 1.0 and (ahead == y).all():
            return y
        if inner(seen.gradient, ahead - x) > 0.0:
            x, z, theta = ahead, ahead, 1.0
            continue
        x, z = ahead, after
        theta = 2.0 / (1.0 + math.sqrt(1.0 + 4.0 * _RELAX * curvature / (theta**2 * before)))
        curvature *= _RELAX
    return x


def _step(
    objective: Objective,
    bracket: Bracket,
    x: Array,
    z: Array,
    y: Array,
    seen: Evaluation,
    theta: float,
    curvature: float,
) -> tuple[float, Array, Array]:
    """Return a curvature that bounds the function between y and the next x, the next z and x."""
    for _ in range(_MOST_DOUBLINGS):
        after = bracket.domain.project(z - seen.gradient / (theta * curvature))
        ahead = (1.0 - theta) * x + theta * after
        move = ahead - y
        model = seen.value + inner(seen.gradient, move) + 0.5 * curvature * inner(move, move)
        if objective.value(ahead) <= model + _ACCELERATED_ROUNDING * abs(seen.value):
            break
        curvature *= 2.0
    return curvature, after, ahead


def _first_curvature(objective: Objective, x: Array, bracket: Bracket) -> float:
    """The change of the gradient on the way to the vertex below x, exact for squared distances."""
    seen = objective.evaluate(x)
    move = bracket.gap_at(objective, x, seen).vertex - x
    length = norm(move)
    if length == 0.0:
        return 1.0
    size = norm(objective.evaluate(x + move).gradient - seen.gradient) / length
    return size if size > 0.0 else 1.0


_SWEEPS = 1000
_SWEEPS_PER_CHECK = 10
#: Ratio of the two residuals beyond which the penalty is doubled or halved.
_IMBALANCE = 5.0


def minimise_quadratic(
    domain: Domain, gradient: Array, hessian: Array, x: Array, accuracy: float
) -> Array:
    r"""Return a point of the set near the minimum of :math:`\langle g, z - x\rangle + \frac12 (z-x)^\top H (z-x)`.

    The alternating direction method of multipliers: a linear system that is diagonal in the basis
    of H's eigenvectors, then a projection. The penalty follows the residuals, so that badly
    conditioned H, where projected gradient steps crawl, cost a few hundred projections.

    Parameters
    ----------
    domain
        The set.
    gradient, hessian
        g, of the points' shape, and H, positive semidefinite, for points flattened.
    x
        The point of the set that the quadratic is expanded at, and the start.
    accuracy
        Frank-Wolfe gap of the quadratic at which to stop.

    References
    ----------
    Boyd et al. (2011), Distributed optimization and statistical learning via the alternating
    direction method of multipliers, section 3.4.1.
    """
    values, vectors = np.linalg.eigh(hessian)
    values = np.maximum(values, 0.0)
    if values[-1] == 0.0:
        return np.asarray(domain.lmo_with_error(gradient)[0])
    penalty = np.sqrt(values[-1] * values.mean()) / 10
    linear = gradient.ravel() - hessian @ x.ravel()
    point, multiplier = x, np.zeros(x.shape)
    for sweep in range(1, _SWEEPS + 1):
        pulled = penalty * (point - multiplier).ravel() - linear
        free = (vectors @ ((vectors.T @ pulled) / (values + penalty))).reshape(x.shape)
        before, point = point, domain.project(free + multiplier)
        multiplier = multiplier + free - point
        if sweep % _SWEEPS_PER_CHECK == 0:
            slope = (linear + hessian @ point.ravel()).reshape(x.shape)
            vertex, _ = domain.lmo_with_error(slope)
            if np.vdot(slope, point - vertex) <= accuracy:
                break
            factor = _penalty_factor(free, point, before, multiplier)
            penalty *= factor
            multiplier = multiplier / factor
    return point


def _penalty_factor(free: Array, point: Array, before: Array, multiplier: Array) -> float:
    """2 where the copies disagree more than they still move, 1/2 the other way round."""
    apart = np.linalg.norm(free - point) * np.linalg.norm(multiplier)
    moving = np.linalg.norm(point - before) * np.linalg.norm(point)
    if apart > _IMBALANCE * moving:
        return 2.0
    return 0.5 if moving > _IMBALANCE * apart else 1.0


#: Share of the linear prediction that a step must gain, and the shortest step tried.
_ARMIJO, _SHORTEST = 0.1, 1e-8
#: Gap of the quadratic model, as a share of the gap at x: the first, and the largest later on.
_FIRST_ACCURACY, _MODEL_ACCURACY = 0.1, 0.03
#: Error of a sum of losses, relative to it.
_NEWTON_ROUNDING = 1e-14


def newton(objective: Objective, x: Array, bracket: Bracket) -> Array:
    r"""Minimise by quadratic models, each minimised over the set, with a line search.

    Every step costs one Hessian, one eigendecomposition and some hundred projections of small
    points, but only one or two looks at the data: 5 to 10 steps from a cold start where gradient
    methods need thousands. Ends when the bracket has no more work or when rounding stops the
    progress; returns the last point.
    """
    last_gap, last_value, accuracy = math.inf, math.inf, _FIRST_ACCURACY
    while bracket.has_work():
        seen = objective.evaluate(x)
        gap = bracket.gap_at(objective, x, seen).gap
        gained = seen.value < last_value - _NEWTON_ROUNDING * abs(seen.value)
        if not bracket.has_work() or not (gained or gap < 0.5 * last_gap):
            break
        if last_gap < math.inf:
            # A falling share keeps the convergence superlinear.
            accuracy = min(_MODEL_ACCURACY, 0.1 * gap / last_gap)
        last_gap, last_value = gap, seen.value
        curvature = objective.hessian(x)
        goal = minimise_quadratic(bracket.domain, seen.gradient, curvature, x, accuracy * gap)
        step = _line_search(objective, x, goal - x, seen)
        x = x + step * (goal - x)
    return x


def _line_search(objective: Objective, x: Array, move: Array, seen: Evaluation) -> float:
    """The longest of 1, 1/2, 1/4, ... that gains enough, up to rounding; 0 if none does."""
    slope = inner(seen.gradient, move)
    noise = _NEWTON_ROUNDING * abs(seen.value)
    step = 1.0
    while step > _SHORTEST and slope < 0.0:
        if objective.value(x + step * move) <= seen.value + _ARMIJO * step * slope + noise:
            return step
        step *= 0.5
    return 0.0


#: Gap over the found vertices, as a share of the last gap over the set.
_INNER_ACCURACY = 0.1
_INNER_LOOKS = 100
#: Weight below which a vertex is forgotten.
_IDLE = 1e-12


def corrective(objective: Objective, x: Point, bracket: Bracket) -> Point:
    r"""Minimise by fully corrective Frank-Wolfe.

    Every oracle answer joins the vertices found so far, and x becomes a minimiser over their convex
    hull: a problem in as many weights, over a simplex. Needs nothing of the set but its oracle, and
    far fewer calls of it than line search. Ends like the other methods; returns the last point.
    """
    atoms, weights = [x], np.ones(1)
    while bracket.has_work():
        seen = objective.evaluate(x)
        look = bracket.gap_at(objective, x, seen)
        if not bracket.has_work():
            break
        atoms.append(look.vertex)
        mixture = Mixture(objective, atoms)
        weights = _best_weights(mixture, np.append(weights, 0.0), bracket, look.gap)
        if not mixture.value(weights) < seen.value:
            break
        atoms = [atom for atom, weight in zip(atoms, weights, strict=True) if weight > _IDLE]
        weights = weights[weights > _IDLE] / weights[weights > _IDLE].sum()
        x = mix(atoms, weights)
    return x


def _best_weights(mixture: Mixture, weights: Array, bracket: Bracket, gap: float) -> Array:
    """The minimiser over the hull, to a share of the gap over the set; its looks count as well."""
    inside = Bracket(Simplex(len(weights)), allowed=_INNER_ACCURACY * gap, limit=_INNER_LOOKS)
    if mixture.has_hessian(len(weights)):
        weights = newton(mixture, weights, inside)
    accelerated(mixture, weights, inside)
    bracket.looks += inside.looks
    return np.asarray(inside.point)


def mix(atoms: Sequence[Point], weights: Array) -> Point:
    """Return the combination of the points with these weights."""
    parts = (atom * float(weight) for atom, weight in zip(atoms, weights, strict=True))
    return functools.reduce(operator.add, parts)


class Mixture(Objective):
    """An objective as a function of the weights of some points."""

    def __init__(self, objective: Objective, atoms: Sequence[Point]) -> None:
        super().__init__(objective.terms, objective.constant)
        self._objective = objective
        self._atoms = atoms

    def has_hessian(self, size: int) -> bool:
        """Whether the objective has one for the points themselves."""
        first = self._atoms[0]
        return isinstance(first, np.ndarray) and self._objective.has_hessian(first.size)

    def value(self, x: Array) -> float:
        """Return the value at the combination with weights x."""
        return self._objective.value(mix(self._atoms, x))

    def evaluate(self, x: Array) -> Evaluation:
        """Return value and gradient, as a function of the weights."""
        seen = self._objective.evaluate(mix(self._atoms, x))
        gradient = np.array([inner(seen.gradient, atom) for atom in self._atoms])
        return Evaluation(seen.value, gradient, 0.0)

    def hessian(self, x: Array) -> Array:
        """Return the second derivatives by the weights."""
        rows = np.array([atom.ravel() for atom in self._atoms])
        product: Array = rows @ self._objective.hessian(mix(self._atoms, x)) @ rows.T
        return product

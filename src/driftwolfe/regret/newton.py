"""Newton's method over a set, for points with few entries."""

from __future__ import annotations

import math

from driftwolfe.points import inner
from driftwolfe.points.kinds import Array
from driftwolfe.regret.bracket import Bracket
from driftwolfe.regret.objective import Evaluation, Objective
from driftwolfe.regret.quadratic import minimise_quadratic

#: Share of the linear prediction that a step must gain, and the shortest step tried.
_ARMIJO, _SHORTEST = 0.1, 1e-8
#: Gap of the quadratic model, as a share of the gap at x: the first, and the largest later on.
_FIRST_ACCURACY, _MODEL_ACCURACY = 0.1, 0.03
#: Error of a sum of losses, relative to it.
_ROUNDING = 1e-14


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
        gap = bracket.look(objective, x, seen).gap
        gained = seen.value < last_value - _ROUNDING * abs(seen.value)
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
    noise = _ROUNDING * abs(seen.value)
    step = 1.0
    while step > _SHORTEST and slope < 0.0:
        if objective.value(x + step * move) <= seen.value + _ARMIJO * step * slope + noise:
            return step
        step *= 0.5
    return 0.0

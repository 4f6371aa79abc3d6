"""Newton's method over a set, for points with few entries."""

from __future__ import annotations

import numpy as np

from driftwolfe.points import inner
from driftwolfe.points.kinds import Array
from driftwolfe.regret.bracket import Bracket
from driftwolfe.regret.objective import Evaluation, Objective
from driftwolfe.regret.quadratic import minimise_quadratic

#: Share of the linear prediction that a step must gain, and the shortest step tried.
_ARMIJO, _SHORTEST = 0.1, 1e-8
#: Gap, as a share of the last one, to which the quadratic model is minimised.
_MODEL_ACCURACY = 0.03


def newton(objective: Objective, x: Array, bracket: Bracket) -> Array:
    r"""Minimise by quadratic models, each minimised over the set, with a line search.

    Every step costs one Hessian, one eigendecomposition and some hundred projections of small
    points, but only one or two looks at the data: 5 to 10 steps from a cold start where gradient
    methods need thousands. Ends when the bracket has no more work or when rounding stops the
    progress; returns the last point.
    """
    domain = bracket.domain
    before = np.inf
    while bracket.working:
        seen = objective.evaluate(x)
        look = bracket.look(objective, x, seen)
        if not bracket.working:
            break
        # A model solved to a falling share of the gap keeps the convergence superlinear.
        share = min(_MODEL_ACCURACY, look.gap / (10 * before)) if before < np.inf else 0.1
        before = look.gap
        goal = minimise_quadratic(domain, seen.gradient, objective.hessian(x), x, share * look.gap)
        step = _line_search(objective, x, goal - x, seen)
        if step == 0.0:
            break
        x = x + step * (goal - x)
    return x


def _line_search(objective: Objective, x: Array, move: Array, seen: Evaluation) -> float:
    """The longest of 1, 1/2, 1/4, ... that gains enough; 0 if none does."""
    slope = inner(seen.gradient, move)
    step = 1.0
    while step > _SHORTEST and slope < 0:
        if objective.value(x + step * move) <= seen.value + _ARMIJO * step * slope:
            return step
        step *= 0.5
    return 0.0

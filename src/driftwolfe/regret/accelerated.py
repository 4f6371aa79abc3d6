"""Accelerated projected gradient steps."""

from __future__ import annotations

import math

from driftwolfe.points import inner, norm
from driftwolfe.points.kinds import Array
from driftwolfe.regret.bracket import Bracket
from driftwolfe.regret.objective import Evaluation, Objective

#: Factor by which the curvature estimate falls after a step that it allowed.
_RELAX = 0.8
#: Error of a sum of losses that backtracking must not take for curvature, relative to it.
_ROUNDING = 1e-13
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
        bracket.look(objective, y, seen)
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
        if objective.value(ahead) <= model + _ROUNDING * abs(seen.value):
            break
        curvature *= 2.0
    return curvature, after, ahead


def _first_curvature(objective: Objective, x: Array, bracket: Bracket) -> float:
    """The change of the gradient on the way to the vertex below x, exact for squared distances."""
    seen = objective.evaluate(x)
    move = bracket.look(objective, x, seen).vertex - x
    length = norm(move)
    if length == 0.0:
        return 1.0
    size = norm(objective.evaluate(x + move).gradient - seen.gradient) / length
    return size if size > 0.0 else 1.0

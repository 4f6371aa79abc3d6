r"""Plans for experts that may make only so many linear minimisations a round.

With one run of Frank-Wolfe for each projection (`halfspace`), tolerance tol costs at most
:math:`c D^2/tol` calls of an exact oracle, c = 2.6. An expert with blocks of K rounds and b calls a round can so
afford :math:`tol = c D^2/(b K)`, and its regret, in units of G D, is at most

.. math:: \sqrt{c/(bK)}\,T + v/h + r h K T/2, \qquad v = v_0 + P/(2D)

where r, the drag, is 1 where all calls are made when a block ends, and 3 where they are spread over
the block that follows. The best K is :math:`(c/(b r^2 h^2))^{1/3}`, and the best h then
:math:`(2v)^{3/4} (c r)^{-1/4} b^{1/4} T^{-3/4}`, which gives
:math:`4 v/h = 3.021\, (r v/b)^{1/4} T^{3/4}`: a budget costs only its fourth root.
`docs/theory/budget.md` has the proofs.
"""

from __future__ import annotations

import math

from driftwolfe.ensemble.hedge import ader_prior
from driftwolfe.ensemble.plan import Plan
from driftwolfe.oracles.halfspace import CALLS
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array
from driftwolfe.points.rounding import whole_above, whole_below

#: Factor on the step term of the bound: calls when a block ends, or spread over the next.
AT_ONCE, SPREAD = 1.0, 3.0


def grid_shares(number: int) -> Array:
    r"""Return each expert's share of a grid's budget, :math:`(1 + 1/N)/(i(i+1))`: they sum to 1.

    >>> grid_shares(3)
    array([0.66666667, 0.22222222, 0.11111111])
    """
    return ader_prior(number)


def cover_share(length: int) -> float:
    r"""Return the share of intervals of length :math:`2^k`: :math:`1/((k+1)(k+2))`, of sum 1.

    >>> cover_share(1), cover_share(2)
    (0.5, 0.16666666666666666)
    """
    k = checks.count(length, "length").bit_length() - 1
    return 1.0 / ((k + 1) * (k + 2))


def budgeted_step(rounds: int, v: float, budget: float, drag: float = AT_ONCE) -> float:
    r"""Return the best dimensionless step, :math:`(2v)^{3/4} (c r)^{-1/4} b^{1/4} T^{-3/4}`.

    >>> round(budgeted_step(10_000, 0.125, 1.0), 6)
    0.000278
    """
    return float((2.0 * v / rounds) ** 0.75 * (budget / (CALLS * drag)) ** 0.25)


def budgeted_grid(horizon: int, v0: float, budget: float, drag: float = AT_ONCE) -> list[Plan]:
    r"""Return the experts of POLD with a budget, in units of D = 1.

    :math:`N = \lfloor \tfrac34 \log_2(1 + (T-1)/(2 v_0)) \rfloor + 1` of them; expert i has the share
    :math:`b_i` of the budget and the step :math:`2^{i-1}` times the best one for :math:`v_0`, so that
    every path length has its best step within a factor 2 above one of them.

    >>> [(plan.block, round(plan.share, 3)) for plan in budgeted_grid(100, 0.5, 1.0)]
    [(21, 0.6), (23, 0.2), (21, 0.1), (17, 0.06), (13, 0.04)]
    """
    number = whole_below(0.75 * math.log2(1.0 + (horizon - 1) / (2.0 * v0))) + 1
    plans = []
    for i, share in enumerate(budget * grid_shares(number)):
        h = 2.0**i * budgeted_step(horizon, v0, share, drag)
        plans.append(budgeted_plan(h, float(share), drag))
    return plans


def budgeted_plan(h: float, budget: float, drag: float = AT_ONCE) -> Plan:
    r"""Return the block and the tolerance that a step and a budget ask for, in units of D = 1.

    :math:`K = \lceil (c/(b r^2 h^2))^{1/3} \rceil` and :math:`tol = \min(1, c/(b K))`.

    >>> plan = budgeted_plan(0.01, 1.0)
    >>> plan.block, round(plan.tolerance, 3)
    (30, 0.087)
    """
    block = max(1, whole_above((CALLS / (budget * (drag * h) ** 2)) ** (1.0 / 3.0)))
    tolerance = min(1.0, CALLS / (budget * block))
    return Plan(h, block, tolerance, budget)

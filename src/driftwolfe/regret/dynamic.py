"""Regret against comparators that move."""

from __future__ import annotations

import math
from collections.abc import Sequence

from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Point
from driftwolfe.regret.certified import Regret
from driftwolfe.regret.offline import offline_minimum
from driftwolfe.regret.record import Record, check_record


def dynamic_regret(history: Record, comparators: Sequence[Point] | Array) -> Regret:
    r"""Return the regret against a sequence of comparators.

    .. math:: \sum_{t=1}^T f_t(x_t) - \sum_{t=1}^T f_t(u_t)

    Parameters
    ----------
    history
        A game with its losses kept.
    comparators
        The points :math:`u_t` of the set, one a round: a sequence of points, or an array with the
        rounds along its first axis.

    Returns
    -------
    Regret
        Exact up to rounding: its `gap` is 0.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> losses = [dw.losses.LinearLoss([sign, 0.0]) for sign in (1.0, -1.0, 1.0)]
    >>> history = dw.play(dw.OGD(dw.L1Ball(2), horizon=3, lipschitz=1.0), losses)
    >>> regret = dw.regret.dynamic_regret(history, [[-1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    >>> round(regret, 4)
    4.1547
    """
    rounds = check_record(history)
    if len(comparators) != rounds:
        raise ValueError(
            f"comparators must hold one point for each of {rounds} rounds, got {len(comparators)}"
        )
    points = tuple(history.domain.check_point(point, "a comparator") for point in comparators)
    compared = [loss.value(u) for loss, u in zip(history.functions, points, strict=True)]
    return Regret(math.fsum(history.losses) - math.fsum(compared), 0.0, (0, rounds), points)


def worst_case_dynamic_regret(history: Record, tolerance: float = 1e-4) -> Regret:
    r"""Return the regret against the minimiser of every single round.

    .. math:: \sum_{t=1}^T f_t(x_t) - \sum_{t=1}^T \min_{x \in K} f_t(x)

    No sequence of comparators is harder; where losses are noisy, none is less telling. Every round
    is one minimisation, started from the last one's minimiser.

    Parameters
    ----------
    history
        A game with its losses kept.
    tolerance
        Relative gap of every round's minimum; see `offline_minimum`.

    Returns
    -------
    Regret
        The regret against the points found, its `comparators`; the true one is at most `gap` larger.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> losses = [dw.losses.LinearLoss([sign, 0.0]) for sign in (1.0, -1.0, 1.0)]
    >>> history = dw.play(dw.OGD(dw.L1Ball(2), horizon=3, lipschitz=1.0), losses)
    >>> round(dw.regret.worst_case_dynamic_regret(history), 4)
    4.1547
    """
    rounds = check_record(history)
    tolerance = checks.nonnegative(tolerance, "tolerance")
    points, values, gaps = [], [], []
    start = None
    for function in history.functions:
        best = offline_minimum(history.domain, [function], start, tolerance)
        start = best.point
        points.append(best.point)
        values.append(best.value)
        gaps.append(best.gap)
    suffered = math.fsum(history.losses)
    return Regret(suffered - math.fsum(values), math.fsum(gaps), (0, rounds), tuple(points))

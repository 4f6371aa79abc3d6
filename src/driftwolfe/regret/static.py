"""Regret against the best fixed point."""

from __future__ import annotations

import math

from driftwolfe.regret.certified import Regret
from driftwolfe.regret.offline import offline_minimum
from driftwolfe.regret.record import Record, check_record


def static_regret(history: Record, tolerance: float = 1e-6) -> Regret:
    r"""Return the regret against the best fixed point in hindsight.

    .. math:: \sum_{t=1}^T f_t(x_t) - \min_{x \in K} \sum_{t=1}^T f_t(x)

    Parameters
    ----------
    history
        A game with its losses kept.
    tolerance
        Relative gap of the offline minimum; see `offline_minimum`.

    Returns
    -------
    Regret
        The regret against the point found (the only one of its `comparators`); the true one is at
        most `gap` larger.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> losses = [dw.losses.LinearLoss([sign, 0.0]) for sign in (1.0, -1.0, 1.0)]
    >>> history = dw.play(dw.OGD(dw.L1Ball(2), horizon=3, lipschitz=1.0), losses)
    >>> history.losses.round(4)
    array([0.    , 1.    , 0.1547])
    >>> regret = dw.regret.static_regret(history)
    >>> round(regret, 4), regret.comparators[0], regret.gap < 1e-9
    (2.1547, array([-1.,  0.]), True)
    """
    rounds = check_record(history)
    best = offline_minimum(history.domain, history.functions, tolerance=tolerance)
    suffered = math.fsum(history.losses)
    return Regret(suffered - best.value, best.gap, (0, rounds), (best.point,))

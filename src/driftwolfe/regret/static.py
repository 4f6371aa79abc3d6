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
    >>> import numpy as np, driftwolfe as dw
    >>> from driftwolfe.game import History
    >>> losses = [dw.losses.LinearLoss([sign, 0.0]) for sign in (1.0, -1.0, 1.0)]
    >>> none = np.zeros(3)
    >>> history = History(dw.L1Ball(2), none, none, none, none, none, losses)  # always played 0
    >>> static_regret(history)
    Regret(1, gap=0, window=(0, 3))
    """
    rounds = check_record(history)
    best = offline_minimum(history.domain, history.functions, tolerance=tolerance)
    suffered = math.fsum(history.losses)
    return Regret(suffered - best.value, best.gap, (0, rounds), (best.point,))

"""Regret on the worst window."""

from __future__ import annotations

from collections.abc import Sequence

from driftwolfe.points import checks
from driftwolfe.regret.certified import Regret
from driftwolfe.regret.record import Record, check_record
from driftwolfe.regret.search import WindowSearch
from driftwolfe.regret.windows import AnyLength, OneLength


def adaptive_regret(history: Record, tau: int, tolerance: float = 1e-4) -> Regret:
    r"""Return the largest regret on any window of `tau` rounds, against its own best fixed point.

    .. math:: \max_{1 \le s \le T-\tau+1} \Big(\sum_{t=s}^{s+\tau-1} f_t(x_t)
              - \min_{x \in K} \sum_{t=s}^{s+\tau-1} f_t(x)\Big)

    All :math:`T - \tau + 1` windows are covered, though few are solved: a certified minimum over the
    rounds that many windows share bounds them all, and sets of windows that cannot hold the maximum
    are never looked into (`WindowSearch`). That works best where the regret has a peak, as after an
    abrupt change; a plateau costs a minimisation for each of its windows.

    Parameters
    ----------
    history
        A game with its losses kept.
    tau
        Length of the windows, in rounds.
    tolerance
        Gap to stop at, relative to the larger of the regret and the absolute losses on its window.

    Returns
    -------
    Regret
        The regret on `window` against the point found there; the maximum over all windows is at
        most `gap` larger.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> slopes = [1.0] * 20 + [-1.0] * 20
    >>> losses = [dw.losses.LinearLoss([slope, 0.0]) for slope in slopes]
    >>> history = dw.play(dw.OGD(dw.L1Ball(2), horizon=40, lipschitz=1.0), losses)
    >>> regret = dw.regret.adaptive_regret(history, tau=10)
    >>> round(regret, 3), regret.window, regret.gap < 1e-2
    (7.359, (20, 30), True)

    References
    ----------
    Daniely, Gonen, Shalev-Shwartz (2015), Strongly adaptive online learning.
    """
    rounds = check_record(history)
    length = checks.count(tau, "tau")
    if length > rounds:
        raise ValueError(f"tau must be at most the {rounds} rounds of the history, got {tau}")
    search = WindowSearch(history, checks.nonnegative(tolerance, "tolerance"))
    return search.run([OneLength(length, 0, rounds - length)], (length,))


def weak_adaptive_regret(
    history: Record, lengths: str | Sequence[int] = "all", tolerance: float = 1e-4
) -> Regret:
    r"""Return the largest regret on any window, against its own best fixed point.

    .. math:: \max_{1 \le s \le e \le T} \Big(\sum_{t=s}^{e} f_t(x_t)
              - \min_{x \in K} \sum_{t=s}^{e} f_t(x)\Big)

    By default this is the maximum over all T (T + 1) / 2 windows, certified by `gap`, found as in
    `adaptive_regret`: sets of windows with starts and ends in two ranges are bounded together. With
    `lengths` the maximum, and its certificate, are only over windows of those lengths, which is
    faster and can only be smaller.

    Parameters
    ----------
    history
        A game with its losses kept.
    lengths
        ``"all"``; ``"geometric"`` for 1, 2, 4, ... and T; or some lengths, in rounds.
    tolerance
        Gap to stop at, relative to the larger of the regret and the absolute losses on its window.

    Returns
    -------
    Regret
        The regret on `window` against the point found there; the maximum over all windows of the
        `lengths` that it names is at most `gap` larger.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> slopes = [1.0] * 20 + [-1.0] * 20
    >>> losses = [dw.losses.LinearLoss([slope, 0.0]) for slope in slopes]
    >>> history = dw.play(dw.OGD(dw.L1Ball(2), horizon=40, lipschitz=1.0), losses)
    >>> regret = dw.regret.weak_adaptive_regret(history)
    >>> round(regret, 3), regret.lengths
    (7.359, range(1, 41))
    >>> dw.regret.weak_adaptive_regret(history, lengths="geometric").lengths
    [1, 2, 4, 8, 16, 32, 40]

    References
    ----------
    Hazan, Seshadhri (2009), Efficient learning algorithms for changing environments.
    """
    rounds = check_record(history)
    search = WindowSearch(history, checks.nonnegative(tolerance, "tolerance"))
    if isinstance(lengths, str) and lengths == "all":
        return search.run([AnyLength((0, rounds - 1), (1, rounds))], range(1, rounds + 1))
    chosen = _lengths(lengths, rounds)
    return search.run([OneLength(length, 0, rounds - length) for length in chosen], chosen)


def _lengths(lengths: str | Sequence[int], rounds: int) -> list[int]:
    """The lengths asked for, without repeats, in order."""
    if isinstance(lengths, str):
        if lengths != "geometric":
            raise ValueError(
                f'lengths must be "all", "geometric" or some numbers of rounds, got {lengths!r}'
            )
        return sorted({*(2**k for k in range(rounds.bit_length())), rounds})
    chosen = sorted({checks.count(length, "every length") for length in lengths})
    if not chosen or chosen[-1] > rounds:
        raise ValueError(f"lengths must be some numbers from 1 to {rounds}, got {lengths!r}")
    return chosen

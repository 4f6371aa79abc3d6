r"""Geometric grids of step sizes, in the dimensionless unit :math:`h = \eta G/D`.

For experts that run blocked gradient descent, h also sets the block length (`block_length`) and
the accuracy of the infeasible projection (`projection_eps`): :math:`\eta = (D/G) h`,
:math:`K = h^{-2/3}`, :math:`\epsilon = D^2 h^{2/3}`.
"""

from __future__ import annotations

import math

import numpy as np

from driftwolfe.points import checks
from driftwolfe.points.kinds import Array
from driftwolfe.points.rounding import WHOLE, whole_above, whole_below

#: 3 / (sqrt(3) + 1/2): minimises (sqrt(3) + 1/2) T h^(1/3) + v/h, the bound on one expert.
_POLD_FACTOR = 1.344


def pold_grid(horizon: int, v0: float = 0.5) -> Array:
    r"""Return the grid with the tightest bound for POLD.

    .. math:: h_i = 2^{i-1} (1.344\, v_0/T)^{3/4}, \qquad
              N = \lfloor \tfrac34 \log_2(1 + (T-1)/(2 v_0)) \rfloor + 1

    Every path length P from 0 to (T-1) D has its best step,
    :math:`(1.344 (v_0 + P/(2D))/T)^{3/4}`, within a factor 2 above some :math:`h_i`.

    Parameters
    ----------
    horizon
        Number T of rounds.
    v0
        1/2 for experts that start anywhere, 1/8 for experts that start at the centre.

    Examples
    --------
    >>> pold_grid(100).round(4)
    array([0.0235, 0.0469, 0.0939, 0.1878, 0.3755])
    """
    rounds = checks.count(horizon, "horizon")
    start = checks.positive(v0, "v0")
    number = whole_below(0.75 * math.log2(1.0 + (rounds - 1) / (2.0 * start))) + 1
    return _doubling((_POLD_FACTOR * start / rounds) ** 0.75, number)


def paper_grid(horizon: int) -> Array:
    r"""Return POLD's grid as the paper has it.

    .. math:: h_i = 2^{i-1} (7/(2T))^{3/4}, \qquad
              N = \lceil \tfrac34 \log_2(1 + 4T/7) \rceil + 1

    without the steps h > 1, which no block can be short enough for; [1] if none is left (T < 4).

    Parameters
    ----------
    horizon
        Number T of rounds.

    Examples
    --------
    >>> paper_grid(100).round(4)
    array([0.0809, 0.1618, 0.3237, 0.6474])
    """
    rounds = checks.count(horizon, "horizon")
    return _at_most_one((3.5 / rounds) ** 0.75, _paper_number(rounds))


def experiment_grid(horizon: int) -> Array:
    r"""Return the grid of the paper's experiments: :math:`h_i = 2^{i-1} T^{-3/4} \le 1`.

    The number of steps is that of `paper_grid`; the paper's factor c is the guess of D/G.

    Parameters
    ----------
    horizon
        Number T of rounds.

    Examples
    --------
    >>> experiment_grid(100).round(4)
    array([0.0316, 0.0632, 0.1265, 0.253 , 0.506 ])
    """
    rounds = checks.count(horizon, "horizon")
    return _at_most_one(rounds**-0.75, _paper_number(rounds))


def ader_grid(horizon: int) -> Array:
    r"""Return Ader's grid.

    .. math:: h_i = 2^{i-1} \sqrt{7/(2T)}, \qquad N = \lceil \tfrac12 \log_2(1 + 4T/7) \rceil + 1

    Parameters
    ----------
    horizon
        Number T of rounds.

    Examples
    --------
    >>> ader_grid(100).round(4)
    array([0.1871, 0.3742, 0.7483, 1.4967])

    References
    ----------
    Zhang, Lu and Zhou (2018), Adaptive online learning in dynamic environments, NeurIPS.
    """
    rounds = checks.count(horizon, "horizon")
    number = whole_above(0.5 * math.log2(1.0 + 4.0 * rounds / 7.0)) + 1
    return _doubling(math.sqrt(3.5 / rounds), number)


def block_length(h: float) -> int:
    r"""Return :math:`K = \max(1, \lfloor h^{-2/3} \rfloor)`, the rounds in one block.

    Parameters
    ----------
    h
        The dimensionless step :math:`\eta G/D`.

    Examples
    --------
    >>> block_length(100**-0.75), block_length(3.0)
    (10, 1)
    """
    # With room: h = T^(-3/4) with T a square gives sqrt(T), and not one less.
    return max(1, whole_below(math.pow(checks.positive(h, "h"), -2.0 / 3.0)))


def projection_eps(h: float) -> float:
    r"""Return :math:`\epsilon = h^{2/3}`, the oracle's accuracy in units of :math:`D^2`.

    Parameters
    ----------
    h
        The dimensionless step :math:`\eta G/D`.

    Examples
    --------
    >>> round(projection_eps(100**-0.75), 12)
    0.1
    """
    return math.pow(checks.positive(h, "h"), 2.0 / 3.0)


def _paper_number(rounds: int) -> int:
    return whole_above(0.75 * math.log2(1.0 + 4.0 * rounds / 7.0)) + 1


def _doubling(first: float, number: int) -> Array:
    steps: Array = np.ldexp(first, np.arange(number))
    return steps


def _at_most_one(first: float, number: int) -> Array:
    steps = _doubling(first, number)
    small = steps[steps <= 1.0 + WHOLE]
    return small if small.size else np.ones(1)

"""Which experts there are: grids of steps, covers of time, blocks, and parts of an LMO budget."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from driftwolfe.oracles.frank_wolfe import CALLS
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array
from driftwolfe.points.ops import WHOLE, whole_above, whole_below
from driftwolfe.state import Count, Stateful
from driftwolfe.storage import require

#: Frank-Wolfe reaches a gap of delta^2 within so many times D^2/delta^2 LMO calls, from any start.
CERTAIN_CALLS = 6.75
#: More rounds than any game has.
FOREVER = 1 << 61
#: How an expert moves: by the gradients of its block; by the sum of all its gradients; by that with steps from
#: their sizes; by expecting the last gradient again; and towards the vertex that its gradient points to.
AGILE, LAZY, ADAPTIVE, OPTIMISTIC, VERTEX = range(5)
KEEPS_SUM = np.array([False, True, True, False, False])


class Plan(NamedTuple):
    """The parameters of one expert."""

    step: float  # dimensionless h; the step taken is `step_scale` * h
    block: int  # rounds between two projections
    tolerance: float  # squared distance allowed between the feasible and the infeasible point
    reserved: float = 0.0  # LMO calls per round that are its own, where there is a budget for all
    lifetime: int = FOREVER  # rounds that it plays
    rule: int = AGILE  # how it moves


@dataclass(frozen=True, slots=True)
class ProjectionConfig:
    """How experts project: the options of `infeasible_projection`, and the budget of LMO calls."""

    method: str = "auto"
    accuracy: float | None = None
    max_lmo_calls: int | None = None
    seed: int = 0
    budget: float | None = None  # LMO calls per round for all experts together; None for no limit
    pooled: bool = False  # whether experts may use what others leave of the budget
    even: bool = False  # whether calls are spread over the rounds, not made when blocks end
    cached_vertices: int = 0  # vertices to cache and to try before the LMO is called
    by_gap: bool = False  # whether the tolerances of lazy experts are gaps to stop at


# -- grids of step sizes -------------------------------------------------------------------------


def pold_grid(horizon: int, v0: float = 0.5) -> Array:
    r"""Return the grid with the tightest bound for POLD.

    .. math:: h_i = 2^{i-1} (1.344\, v_0/T)^{3/4}, \quad N = \lfloor \tfrac34 \log_2(1 + (T-1)/(2 v_0)) \rfloor + 1

    Every path length P from 0 to (T-1) D has its best step,
    :math:`(1.344 (v_0 + P/(2D))/T)^{3/4}`, within a factor 2 above some :math:`h_i`.

    Parameters
    ----------
    horizon, v0
        Rounds T; 1/2 for experts that start anywhere, 1/8 for experts that start at the centre.

    Examples
    --------
    >>> pold_grid(100).round(4)
    array([0.0235, 0.0469, 0.0939, 0.1878, 0.3755])
    """
    rounds, start = checks.count(horizon, "horizon"), checks.positive(v0, "v0")
    # 1.344 = 3 / (sqrt(3) + 1/2) minimises (sqrt(3) + 1/2) T h^(1/3) + v/h, the bound on one expert.
    number = whole_below(0.75 * math.log2(1.0 + (rounds - 1) / (2.0 * start))) + 1
    return _doubling((1.344 * start / rounds) ** 0.75, number)


def paper_grid(horizon: int) -> Array:
    r"""Return POLD's grid as the paper has it, without steps above 1, for which no block is short enough.

    .. math:: h_i = 2^{i-1} (7/(2T))^{3/4}, \qquad N = \lceil \tfrac34 \log_2(1 + 4T/7) \rceil + 1
    """
    return _at_most_one((3.5 / horizon) ** 0.75, horizon)


def experiment_grid(horizon: int) -> Array:
    r"""Return :math:`h_i = 2^{i-1} T^{-3/4} \le 1`, as in the paper's experiments, whose c is a guess of D/G."""
    return _at_most_one(horizon**-0.75, horizon)


def ader_grid(horizon: int) -> Array:
    r"""Return the grid of Ader (Zhang, Lu and Zhou 2018).

    .. math:: h_i = 2^{i-1} \sqrt{7/(2T)}, \qquad N = \lceil \tfrac12 \log_2(1 + 4T/7) \rceil + 1

    Parameters
    ----------
    horizon
        Rounds T.

    Examples
    --------
    >>> ader_grid(100).round(4)
    array([0.1871, 0.3742, 0.7483, 1.4967])
    """
    rounds = checks.count(horizon, "horizon")
    number = whole_above(0.5 * math.log2(1.0 + 4.0 * rounds / 7.0)) + 1
    return _doubling(math.sqrt(3.5 / rounds), number)


def ader_prior(size: int) -> Array:
    r"""Return the prior :math:`(1 + 1/N)/(i(i+1))`, i = 1..N: small steps weigh most, the sum is 1."""
    i = np.arange(1.0, size + 1.0)
    prior: Array = (1.0 + 1.0 / size) / (i * (i + 1.0))
    return prior


def block_length(h: float) -> int:
    r"""Return :math:`K = \max(1, \lfloor h^{-2/3} \rfloor)`, the rounds in one block, for :math:`h = \eta G/D`."""
    # With room: h = T^(-3/4) with T a square gives sqrt(T), and not one less.
    return max(1, whole_below(math.pow(h, -2.0 / 3.0)))


def projection_eps(h: float) -> float:
    r"""Return :math:`\epsilon = h^{2/3}`, the oracle's accuracy in units of :math:`D^2`."""
    return math.pow(h, 2.0 / 3.0)


def _doubling(first: float, number: int) -> Array:
    steps: Array = np.ldexp(first, np.arange(number))
    return steps


def _at_most_one(first: float, rounds: int) -> Array:
    """As many steps as the paper has, without those above 1."""
    steps = _doubling(first, whole_above(0.75 * math.log2(1.0 + 4.0 * rounds / 7.0)) + 1)
    small = steps[steps <= 1.0 + WHOLE]
    return small if small.size else np.ones(1)


# -- intervals of time ---------------------------------------------------------------------------


class GeometricCover:
    r"""All intervals :math:`[i 2^k, (i+1) 2^k - 1]`, i >= 1, k >= 0 (Daniely et al. 2015).

    In round t one starts for every k with :math:`2^k | t`, and :math:`\lfloor\log_2 t\rfloor + 1`
    are active. Every interval splits into two runs of these whose lengths at least halve outwards, which
    turns a bound on these into one on all intervals (`docs/theory/bounds.md`).

    Examples
    --------
    >>> cover = GeometricCover()
    >>> cover.starting(12), cover.created(4)
    ([1, 2, 4], 7)
    >>> cover.active(6)
    [(6, 6), (6, 7), (4, 7)]
    """

    def starting(self, t: int) -> list[int]:
        """Return the lengths of the intervals that start in round t: 1, 2, 4, ..."""
        now = checks.count(t, "t")
        return [1 << k for k in range((now & -now).bit_length())]

    def active(self, t: int) -> list[tuple[int, int]]:
        """Return the first and last rounds of the intervals that hold round t, shortest first."""
        now = checks.count(t, "t")
        return [(now >> k << k, (now >> k << k) + (1 << k) - 1) for k in range(now.bit_length())]

    def created(self, t: int) -> int:
        r"""Return :math:`\sum_k \lfloor t/2^k \rfloor`, how many intervals start in rounds 1 to t."""
        now = checks.count(t, "t", least=0)
        return 2 * now - now.bit_count()


# -- budgets of LMO calls ------------------------------------------------------------------------


def cover_part(length: int) -> float:
    r"""Return the part of a budget for intervals of length :math:`2^k`: :math:`1/((k+1)(k+2))`, of sum 1."""
    k = length.bit_length() - 1
    return 1.0 / ((k + 1) * (k + 2))


def budgeted_step(rounds: int, v: float, budget: float, delay_factor: float = 1.0) -> float:
    r"""Return the best dimensionless step, :math:`(2v)^{3/4} (c r)^{-1/4} b^{1/4} T^{-3/4}`."""
    return float((2.0 * v / rounds) ** 0.75 * (budget / (CALLS * delay_factor)) ** 0.25)


def budgeted_grid(horizon: int, v0: float, budget: float, delay_factor: float = 1.0) -> list[Plan]:
    r"""Return the experts of POLD with a budget, in units of D = 1.

    As many as in `pold_grid`; expert i has its part :math:`b_i` of the budget, by `ader_prior`, and the
    step :math:`2^{i-1}` times the best one for :math:`v_0` and that part.
    """
    parts = budget * ader_prior(pold_grid(horizon, v0).size)
    best = (2.0**i * budgeted_step(horizon, v0, part, delay_factor) for i, part in enumerate(parts))
    return [budgeted_plan(*each, delay_factor) for each in zip(best, parts.tolist(), strict=True)]


def budgeted_plan(h: float, budget: float, delay_factor: float = 1.0) -> Plan:
    r"""Return the block and the tolerance that a step and a budget ask for, in units of D = 1.

    :math:`K = \lceil (c/(b r^2 h^2))^{1/3} \rceil` and :math:`tol = \min(1, c/(b K))`.
    """
    block = max(1, whole_above((CALLS / (budget * (delay_factor * h) ** 2)) ** (1.0 / 3.0)))
    return Plan(h, block, min(1.0, CALLS / (budget * block)), budget)


@dataclass
class LMOBudget(Stateful):
    """At most `rate` LMO calls per round in total, after every round.

    Some calls are reserved; unused ones are pooled. Every expert saves its own in each round of its
    block. When the block ends it may spend its savings and all calls that are not reserved.
    """

    rate: float
    rounds: Count = 0  # with the one being played
    spent: Count = 0

    def next_round(self) -> LMOBudget:
        """Return the budget of the next round, of which nothing is spent yet."""
        return replace(self, rounds=self.rounds + 1)

    def limit(self, reserved: float) -> int:
        """Return the calls that may be made now if so many are reserved for others."""
        left = self.rate * self.rounds - self.spent
        # Sums of parts that should be whole numbers may fall short by rounding.
        return max(0, min(math.floor(left - reserved + 1e-9), math.floor(left)))

    def arriving(self) -> int:
        """Return the whole calls that this round brings, where none can be saved."""
        return math.floor(self.rate * self.rounds) - math.floor(self.rate * (self.rounds - 1))

    def check(self) -> None:
        require(self.spent <= self.rate * self.rounds, "calls and rounds")

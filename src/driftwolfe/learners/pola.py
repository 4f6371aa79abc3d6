"""POLA: projection-free online learning with adaptive regret."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Unpack

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.ensemble import AdaNormalHedge, GeometricCover, SleepingMeta
from driftwolfe.ensemble.descent import Descent
from driftwolfe.ensemble.experts import Evaluation
from driftwolfe.ensemble.plan import Plan, budgeted_step, cover_share
from driftwolfe.learners import bounds
from driftwolfe.learners.base import Learner, as_loss
from driftwolfe.learners.options import EnsembleOptions, Options, make_options
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Indices, Point
from driftwolfe.points.rounding import near_largest
from driftwolfe.storage import require


class CoverLearner(Learner):
    """An expert for every interval of a geometric cover of time, and weights for sleeping experts.

    `plan` says which expert is for an interval of so many rounds, `meta` holds the weights, and `experts`
    makes the experts of some plans on the counted set, at a point; by default gradient descents. New ones
    start at the point played last, or, where points are factored and the mean would pile up factors, at
    the heaviest expert's (of several as heavy, that of the longest interval), or at the centre.
    """

    STATE: ClassVar[tuple[str, ...]] = ("_experts", "_meta", "_ends", "_lengths")
    PARTS = ("_experts", "_meta")
    options: Options
    _unit = "round"  # what lengths count

    def __init__(
        self,
        domain: Domain,
        options: Options,
        plan: Callable[[int], Plan],
        meta: SleepingMeta,
        start: str = "current",
        experts: Callable[[Domain, Sequence[Plan], Point], Any] | None = None,
    ) -> None:
        super().__init__(domain)
        checks.one_of(start, "start", ("current", "origin"))
        self.options = options
        self.start = start
        self._plan = plan
        self._cover = GeometricCover()
        self._meta = meta
        self._experts = (experts or options.experts)(self._counted, [], domain.origin())
        self._ends: Indices = np.empty(0, dtype=np.int64)  # last round of each expert
        self._lengths: list[int] = []  # rounds of its interval
        self._add(self._cover.starting(1), domain.origin())
        self._weights = self._meta.weights  # of the coming round

    def update(self, loss: Any, ticket: Any = None) -> float:
        """Play the mean of the experts awake; weigh them by their losses; step; wake and retire."""
        f, weights = as_loss(loss), self._weights
        evaluation = self._experts.evaluate(f, weights, self.options.linear)
        if self.start == "origin":
            start = self.domain.origin()
        else:
            start = self._experts.restart_point(weights, self._heaviest)
        over = self._interval_over(evaluation)
        self._meta.update(evaluation.played, evaluation.losses)
        self._experts.step(f, evaluation)
        self.t += 1
        if over:
            self._turn_over(start)
        self._weights = self._meta.weights
        self._experts.settle(self._weights)
        return evaluation.value

    def _interval_over(self, evaluation: Evaluation) -> bool:
        """Whether the shortest interval ends with this round: here they all are one round long."""
        return True

    @property
    def _interval(self) -> int:
        """Which of the shortest intervals the coming round is in, from 1."""
        return self.t + 1

    def _turn_over(self, start: Point) -> None:
        """Let experts of intervals that begin now start at a point."""
        # The shortest intervals end and others of the same lengths follow: these experts restart in
        # place. Now and then a longer one comes.
        now = self._interval
        starting = self._cover.starting(now)
        number = min(len(starting), len(self._lengths))
        self._experts.restart(slice(number), start)
        self._meta.restart(slice(number))
        self._ends = self._ends.copy()
        self._ends[:number] = [now - 1 + length for length in starting[:number]]
        if longer := starting[number:]:
            self._add(longer, start)

    @property
    def decision(self) -> Point:
        """The weighted mean of the experts that are awake."""
        return self._experts.mean(self._weights)

    @property
    def expert_ends(self) -> Indices:
        """The last round, or interval, of each expert that is awake, in the order of `expert_weights`."""
        return self._ends.copy()

    @property
    def expert_names(self) -> list[str]:
        """The lengths of their intervals."""
        return [f"{n:,} {self._unit}{'s' if n > 1 else ''}" for n in self._lengths]

    @property
    def lipschitz(self) -> float:
        """G: the larger of what was given and the largest gradient norm seen."""
        return max(self.options.lipschitz or 0.0, self._experts.largest_gradient)

    def check_state(self) -> None:
        super().check_state()
        sizes = {self._experts.size, self._meta.size, self._ends.size, len(self._lengths)}
        require(len(sizes) == 1, "experts and intervals")
        require(all(type(length) is int for length in self._lengths), "intervals")
        # The cover says which experts are awake: no file can make them more.
        awake = sorted((each.end, each.length) for each in self._cover.active(self._interval))
        held = sorted(zip(self._ends.tolist(), self._lengths, strict=True))
        require(held == awake, "intervals and rounds")
        if isinstance(self._experts, Descent):  # older files of some learners lack them
            plans = [self._plan(length) for length in self._lengths]
            self._experts.lifetimes = np.array([plan.lifetime for plan in plans])
        self._weights = self._meta.weights

    def _heaviest(self, weights: Array) -> int:
        """The expert of the largest weight; of several, that of the longest interval."""
        return max(near_largest(weights).tolist(), key=self._lengths.__getitem__)

    def _add(self, lengths: list[int], start: Point) -> None:
        self._experts.add(start, [self._plan(length) for length in lengths])
        self._meta.add(lengths)
        self._lengths = self._lengths + lengths
        self._ends = np.concatenate((self._ends, self._interval - 1 + np.array(lengths)))

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        """On all windows of tau rounds, or on the whole game."""
        rounds = self.t if tau is None else min(tau, self.t)
        # No comparators of the set have a longer path.
        path_length = min(path_length, max(0, rounds - 1) * self.domain.diameter)
        if tau is not None:
            return bounds.over_windows(rounds, self._level_bound, self._level_price, path_length)
        return bounds.over_game(rounds, self._level_bound, self._level_price, path_length)

    def _level_bound(self, k: int) -> float:
        """The static regret on an interval of length 2^k: its expert's, and that of the weights."""
        return self._expert_bound(1 << k) + bounds.weighing(self._meta, 1 << k, self.t)

    def _level_price(self, k: int) -> float:
        """What a unit of path inside an interval of length 2^k adds: the expert's bound is affine."""
        D = self.options.D
        return (self._expert_bound(1 << k, D) - self._expert_bound(1 << k)) / D

    def _expert_bound(self, length: int, path_length: float = 0.0) -> float:
        return self.options.expert_bound(
            self._plan(length), self._experts, self.lipschitz, length, path_length, bounds.ANYWHERE
        )


class POLA(CoverLearner):
    r"""Projection-free learning with small regret on every interval of time; nothing to tune.

    POLA plays the weighted mean of experts that live for intervals of time. In round t an expert starts
    for every k with :math:`2^k \mid t` and plays for :math:`2^k` rounds, so that on every interval some
    expert is about as old as the interval is long, and :math:`\lfloor\log_2 t\rfloor + 1` experts are
    awake:

    .. math:: x_t = \sum_i w_t^i x_t^i \quad\text{over the experts } i \text{ that are awake}

    The expert of an interval of length L is a `BOGDIP`: it sums gradients over a block of rounds, takes
    one step :math:`y - c L^{-3/4} \sum g` with c = D/G, and replaces the projection onto the set by an
    infeasible projection, which needs only linear minimisations (LMO calls). `AdaNormalHedge` weighs the
    experts by how much less than POLA each has lost since it started.

    POLA is anytime: it needs neither the number of rounds nor a step size. Per round it takes
    O(log t) gradients (one with linear feedback) and on average O(log t) LMO calls, or as few as
    `lmo_budget` says.

    Parameters
    ----------
    horizon
        Accepted so that all learners share a signature; not used.
    {options}

    Notes
    -----
    On every interval of length tau the regret is at most

    .. math:: 1.745\, a\, G D \tau^{3/4} + 3.415\, B \sqrt{3 c(T) \tau}, \quad
              a = \sqrt3 + \tfrac12 + v_0, \quad c(T) = O(\log T)

    and against comparators of path length P inside the interval
    :math:`O(\tau^{3/4}(1 + P/D)^{1/4})`, up to a logarithm, for the whole game too;
    ``bound(path_length=..., tau=...)`` evaluates them with all constants. Where B is learned they are
    conditional, see `AdaNormalHedge`.

    Here D is twice the radius of the set, G bounds gradient norms, B the range of losses over the set in
    one round, and :math:`v_0 = 1/2`.

    With a budget b, intervals of length :math:`2^k` share :math:`b_k = b/((k+1)(k+2))` of it, and in
    the certified tuning regret on such an I is at most :math:`3.021\, G D\, (v_0/b_k)^{1/4} |I|^{3/4}`,
    or :math:`3^{1/4}` times that with the even schedule, and smaller terms (`docs/theory/budget.md`). With
    b = 1, experts on fewer than 256 rounds (even: 2048) never call the LMO.

    References
    ----------
    Wang et al. (2024), Non-stationary projection-free online learning with dynamic and adaptive
    regret guarantees, AAAI, Algorithm 3, Theorems 3 and 4; `docs/theory/errata.md` lists what is
    different here.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.POLA(dw.L1Ball(2), lipschitz=1.0)
    >>> for t in range(200):
    ...     suffered = learner.update(dw.losses.LinearLoss([1.0 if t < 100 else -1.0, 0.0]))
    >>> learner.decision.round(2)
    array([1., 0.])
    """

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        start: str = "current",
        **options: Unpack[EnsembleOptions],
    ) -> None:
        checked = make_options(domain, horizon, lipschitz, **options)
        meta = AdaNormalHedge(checked.loss_scale)
        super().__init__(domain, checked, partial(_plan, checked), meta, start)


def _plan(options: Options, length: int) -> Plan:
    """BOGD_IP for an interval of that length, with its share of the budget."""
    share = (options.oracle.budget or 0.0) * cover_share(length)
    h = float(length) ** -0.75
    if options.planned:
        h = budgeted_step(length, bounds.ANYWHERE, share, options.delay_factor)
    return options.plan(h, share, length)

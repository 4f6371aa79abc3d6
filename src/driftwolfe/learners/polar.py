"""POLAR: projection-free online learning by agile experts and restarted leaders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.ensemble import AdaHedge, AdaNormalHedge
from driftwolfe.ensemble.plan import CERTAIN_CALLS, FOREVER, Plan
from driftwolfe.learners import bounds
from driftwolfe.learners.base import Learner, as_loss
from driftwolfe.learners.options import EnsembleOptions, Options, make_options, one_of
from driftwolfe.points import FactoredMatrix
from driftwolfe.points.kinds import Point
from driftwolfe.points.rounding import near_largest
from driftwolfe.storage import require

KINDS = ("lazy", "origin", "agile")
#: Rounds of the shortest epochs, and where points are factored and projections dear.
SHORTEST, SHORTEST_FACTORED = 8, 64
#: With a budget, the first steps are those of an epoch that has so many calls: with fewer, a step is to
#: one vertex, and may be far off.
FIRST_CALLS = 16
#: Share of a budget that is divided evenly; the rest goes to experts by their weights.
EVEN_SHARE = 0.2


class Member(NamedTuple):
    """An expert of the pool: its kind, and the rounds of its epochs."""

    kind: str  # one of `KINDS`, or "whole"
    length: int

    @property
    def restarts(self) -> bool:
        return self.kind in ("lazy", "origin")


class POLAR(Learner):
    r"""Leaders that restart after 8, 16, 32, ... rounds, weighted by AdaHedge: the learner to start with.

    A *lazy* expert for epochs of L rounds plays the projection of
    :math:`x_0 - \eta\sum g`, the sum of all its gradients since its epoch began at :math:`x_0`, with
    :math:`\eta = c/\sqrt L`, c = D/G. Experts of other kinds are ``"origin"``, lazy from the centre of
    the set, not from the point then played, and ``"agile"``, which step from their last projection and
    never restart. One more lazy expert never restarts. Longer epochs join as the game goes on, so
    there is no horizon and no step size to tune. Weights see the losses linearised at the decision.

    O(log t) gradients per round (one with linear feedback). Where the set's projection is cheap, each
    expert projects in every round; elsewhere in every :math:`\lfloor\sqrt L\rfloor`-th, or twice as often
    where points are dense or calls are limited, by LMO calls.

    Parameters
    ----------
    horizon
        Accepted so that all learners share a signature; not used.
    experts
        Some of ``"lazy"``, ``"origin"`` and ``"agile"``; by default ``("lazy",)``, and
        ``("lazy", "origin")`` where points are factored. With agile ones regret against comparators
        that move a little in every round is provably smaller.
    weights
        ``"share"``: `AdaHedge`, scale-free, better where measured; ``"sleeping"``: `AdaNormalHedge`,
        with a guarantee on every interval.
    {options}

    Notes
    -----
    With exact projections, regret against comparators of path length P is
    :math:`O(T^{2/3}(1 + P/D)^{1/3})`, with agile experts :math:`O(\sqrt{T(1 + P/D)})`; with sleeping
    weights, :math:`O(\sqrt{\tau\log T})` on every interval of length tau. Without exact projections the
    certified tuning has :math:`O(T^{4/5}(1 + P/D)^{1/5})` and :math:`O(\tau^{3/4})`, and the bound of the
    practical tuning is vacuous. `docs/theory/polar.md` has the proofs.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.POLAR(dw.L1Ball(2))
    >>> for t in range(200):
    ...     suffered = learner.update(dw.losses.LinearLoss([1.0 if t < 100 else -1.0, 0.0]))
    >>> learner.decision.round(2)
    array([1., 0.])
    """

    STATE = ("_experts", "_meta")
    PARTS = ("_experts", "_meta")
    options: Options

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        experts: Sequence[str] | None = None,
        weights: str = "share",
        **options: Unpack[EnsembleOptions],
    ) -> None:
        super().__init__(domain)
        self.options = make_options(domain, horizon, lipschitz, leaders=True, **options)
        one_of(weights, "weights", ("share", "sleeping"))
        factored = isinstance(domain.origin(), FactoredMatrix)
        self.kinds = _kinds(KINDS[: 2 if factored else 1] if experts is None else experts)
        self.shortest = SHORTEST_FACTORED if factored else SHORTEST
        self.sleeping = weights == "sleeping"
        self._experts = self.options.experts(self._counted, [], domain.origin())
        whole = self._members()
        self._experts.add(domain.origin(), [self._plan(each) for each in whole])
        self._meta: Any = AdaHedge(1)
        if self.sleeping:
            self._meta = AdaNormalHedge(self.options.loss_scale)
            self._meta.add(1)

    def update(self, loss: Any) -> float:
        """Play the mean of the experts; weigh them; let each step; restart those whose epoch ends."""
        f = as_loss(loss)
        weights = self._meta.weights
        if self.options.oracle.pooled:
            even = EVEN_SHARE / weights.size
            shares = self.options.oracle.budget * (even + (1.0 - EVEN_SHARE) * weights)
            self._experts.shares = shares
        evaluation = self._experts.evaluate(f, weights, self.options.linear, tangent=True)
        if self.sleeping:
            self._meta.update(evaluation.played, evaluation.losses)
        else:
            self._meta.update(evaluation.losses)
        self._experts.step(f, evaluation)
        self.t += 1
        self._restart()
        return evaluation.value

    def _restart(self) -> None:
        """Restart the experts whose epoch ends with this round, and add those of a new length."""
        coming, experts = self.t + 1, self._experts
        if self.t & (self.t - 1) == 0:  # the whole game is longer than planned: smaller steps
            experts.replan(0, self._plan(Member("whole", 2 * self.t)))
        if coming % self.shortest:
            return
        decision = experts.restart_point(self._meta.weights, lambda w: int(near_largest(w)[0]))
        members = self._members()
        held, new = members[: experts.size], members[experts.size :]
        ends = [i for i, each in enumerate(held) if each.restarts and coming % each.length == 0]
        lazy, origin = ([i for i in ends if held[i].kind == kind] for kind in KINDS[:2])
        experts.restart(lazy, decision)
        experts.restart(origin, self.domain.origin(), keep=("x", "_x"))  # plays on where it is
        if self.sleeping:
            self._meta.restart(ends)
        for each in new:
            start = self.domain.origin() if each.kind == "origin" else decision
            experts.add(start, [self._plan(each)])
        self._meta.add(len(new))

    def _members(self) -> list[Member]:
        """The experts of the coming round: one for the whole game, then those of each length."""
        lengths, length = [], self.shortest
        while length <= self.t + 1:
            lengths.append(length)
            length *= 2
        whole = Member("whole", 1 << self.t.bit_length())
        return [whole, *(Member(kind, each) for each in lengths for kind in self.kinds)]

    def _plan(self, member: Member) -> Plan:
        """The step, block and tolerance of an expert, and its share of a budget."""
        length, options = member.length, self.options
        lazy, lifetime = member.kind != "agile", length if member.restarts else FOREVER
        h = length**-0.5
        if self._experts.exact:
            return Plan(h, 1, 0.0, 0.0, lifetime, lazy)
        budget, block = options.oracle.budget, math.isqrt(length)
        if not options.certified:
            if budget is not None or self.shortest == SHORTEST:  # half as long: better where cheap
                block = max(1, block // 2)
            if budget is not None and member.kind == "whole":  # no long steps before it has calls
                h = max(length, FIRST_CALLS / budget) ** -0.5
            return Plan(h, block, options.tolerance(h), 0.0, lifetime, lazy)
        share = 0.0
        if budget is None:
            h = length**-0.75
        else:
            # 1/2 for the whole game, 1/6, 1/12, ... for the lengths, the kinds alike.
            level = 1 if member.kind == "whole" else (length // self.shortest).bit_length() + 1
            share = budget / (level * (level + 1))
            share /= 1 if member.kind == "whole" else len(self.kinds)
            h = (share / (CERTAIN_CALLS * options.delay_factor)) ** 0.25 * length**-0.75
            block = math.ceil(
                (CERTAIN_CALLS / (share * (options.delay_factor * h) ** 2)) ** (1 / 3)
            )
        tolerance = min(1.0, (h * block * options.delay_factor) ** 2) * options.D**2
        return Plan(h, block, tolerance * options.tolerance_scale, share, lifetime, lazy)

    @property
    def decision(self) -> Point:
        """The weighted mean of the experts' points."""
        return self._experts.mean(self._meta.weights)

    @property
    def expert_names(self) -> list[str]:
        """Their kinds, and the rounds of their epochs."""
        return [
            "whole game" if each.kind == "whole" else f"{each.kind}, {each.length:,} rounds"
            for each in self._members()
        ]

    @property
    def lipschitz(self) -> float:
        """G: the larger of what was given and the largest gradient norm seen."""
        return max(self.options.lipschitz or 0.0, self._experts.largest_gradient)

    def check_state(self) -> None:
        super().check_state()
        members = self._members()
        require(self._experts.size == self._meta.size == len(members), "experts and weights")
        self._experts.lazy = np.array([each.kind != "agile" for each in members])

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        if not self._experts.exact and self.options.oracle.method in ("halfspace", "paper"):
            return None  # they move the target to the ball first, and its projection is another
        rounds = self.t if tau is None else min(tau, self.t)
        # No comparators of the set have a longer path.
        path_length = min(path_length, max(0, rounds - 1) * self.domain.diameter)
        if self.sleeping:
            over = bounds.over_game if tau is None else bounds.over_windows
            return over(rounds, self._level_bound, self._level_price, path_length)
        if tau is not None or not self.t:
            return 0.0 if not self.t else None
        slope = self.lipschitz * path_length
        found = [self._whole_bound(self.t) + self.t * slope + self._meta.regret_bound(0)]
        for each in self._members()[1:]:
            before, rest = each.length - 1, self.t - each.length + 1
            if each.kind == "agile":
                own = self.options.expert_bound(
                    self._plan(each),
                    self._experts,
                    self.lipschitz,
                    rest,
                    path_length,
                    bounds.ANYWHERE,
                )
            else:
                own = math.ceil(rest / each.length) * self._epoch_bound(each) + each.length * slope
            # The expert of the whole game plays until this one joins: one change.
            found.append(self._whole_bound(before) + before * slope + own)
        return min(found[0], min(found[1:], default=math.inf) + self._meta.regret_bound(1))

    def _epoch_bound(self, member: Member, rounds: int | None = None) -> float:
        """The static regret of a lazy expert in an epoch, or in some rounds of it."""
        plan, G, D = self._plan(member), self.lipschitz, self.options.D
        found = bounds.lazy_descent(
            G,
            D,
            member.length if rounds is None else rounds,
            self._experts.scale_for(G) * plan.step,
            plan.block,
            self._experts.largest_distance,
            bounds.AT_CENTER if member.kind in ("origin", "whole") else bounds.ANYWHERE,
            shrinking_steps=self.options.step_scale is None,
            delay_factor=self.options.delay_factor,
        )
        return found + plan.block * G * D if member.kind == "origin" else found

    def _whole_bound(self, rounds: int) -> float:
        """The static regret of the expert that never restarts: its steps shrink at powers of two."""
        if not rounds:
            return 0.0
        levels = [1 << k for k in range(rounds.bit_length() + 1)]
        last = self._epoch_bound(Member("whole", levels[-1]), 0)
        parts = [min(2 * start, rounds + 1) - start for start in levels[:-1]]  # rounds of each
        ends = [Member("whole", length) for length in levels]
        stepping = [
            self._epoch_bound(end, part) - self._epoch_bound(end, 0)
            for end, part in zip(ends[1:], parts, strict=True)
        ]
        return last + sum(stepping)

    def _level_bound(self, k: int) -> float:
        """The static regret on an epoch of 2^k rounds: its expert's, and that of the weights."""
        length = 1 << k
        if length < self.shortest:
            return self.lipschitz * self.domain.diameter * length
        own = min(self._epoch_bound(Member(kind, length)) for kind in self.kinds if kind != "agile")
        return own + bounds.weighing(self._meta, length, self.t, self._created())

    def _level_price(self, k: int) -> float:
        """What a unit of path inside an epoch of 2^k rounds adds."""
        return 0.0 if 1 << k < self.shortest else self.lipschitz * (1 << k)

    def _created(self) -> int:
        """Experts that have ever begun, restarts counted."""
        lengths = {each.length for each in self._members()[1:]}
        return 1 + len(self.kinds) * sum((self.t + 1) // length for length in lengths)


def _kinds(given: Any) -> tuple[str, ...]:
    """Kinds of experts, checked."""
    if isinstance(given, str) or not given:
        raise ValueError(f'experts must be some of {KINDS}, as in ("lazy",), got {given!r}')
    for kind in given:
        one_of(kind, "every one of experts", KINDS)
    return tuple(kind for kind in KINDS if kind in given)

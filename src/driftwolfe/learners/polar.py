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
from driftwolfe.learners.options import LeaderOptions, Options, make_options
from driftwolfe.points import FactoredMatrix, checks
from driftwolfe.points.kinds import Point
from driftwolfe.points.rounding import near_largest, whole_above
from driftwolfe.storage import require

KINDS = ("lazy", "origin", "agile")
#: Rounds of the shortest epochs, and the square of a block's rounds over those of its epoch; where points
#: are factored, projections are dear and experts have fewer. Chosen on the streams of `benchmarks.polar`.
SHORTEST, BLOCK_FACTOR = 8, 0.25
SHORTEST_FACTORED, BLOCK_FACTOR_FACTORED = 64, 2.0
#: With a budget, the first steps are at most those of an epoch with so many calls: with fewer, a step is
#: towards one vertex, and may be far off. Chosen on the first rounds of matrices in `benchmarks.budget`.
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
    r"""Leaders that restart after 8, 16, 32 and more rounds, weighted by AdaHedge: the learner to start with.

    A *lazy* expert for epochs of L rounds plays the projection of
    :math:`x_0 - \eta\sum g`, the sum of all its gradients since its epoch began at :math:`x_0`, with
    :math:`\eta = c/\sqrt L`, c = D/G. Experts of other kinds are ``"origin"``, lazy from the centre of
    the set, not from the point then played, and ``"agile"``, which step from their last projection and
    never restart. One more lazy expert never restarts. Longer epochs join as the game goes on, so
    there is no horizon and no step size to tune. Weights see the losses linearised at the decision.

    O(log t) gradients per round (one with linear feedback). Where the set's projection is cheap, each
    expert projects in every round; elsewhere in every :math:`\lfloor\sqrt L/2\rfloor`-th, by LMO calls; in
    every :math:`\lfloor\sqrt{2L}\rfloor`-th where points are factored and no budget is set.

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
    lazy
        Number of vertices to cache and to try before the LMO is called (`Atoms`), for methods
        ``"halfspace"`` and, except on trace-norm balls, ``"corrective"``. None: 64 where a budget makes calls
        scarce, with the practical tuning and method ``"corrective"``; else 0.
    loss_scale
        B of sleeping weights, see `AdaNormalHedge`: a number, ``"certified"`` (G * diameter) or ``"auto"``.
        `AdaHedge` needs none.
    {options}

    Notes
    -----
    With exact projections, regret against comparators of path length P is
    :math:`O(T^{2/3}(1 + P/D)^{1/3})`, with agile experts :math:`O(\sqrt{T(1 + P/D)})`; with sleeping
    weights, :math:`O(\sqrt{\tau\log T})` on every interval of length tau. Without exact projections the
    certified tuning has :math:`O(T^{4/5}(1 + P/D)^{1/5})` and :math:`O(\tau^{3/4})`, with a budget b up to a
    logarithm :math:`O(b^{-1/4}\tau^{3/4})`, and the bound of the practical tuning is vacuous. The default
    weights promise nothing on intervals. `docs/theory/polar.md` has the proofs.

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
        lazy: int | None = None,
        **options: Unpack[LeaderOptions],
    ) -> None:
        super().__init__(domain)
        checks.one_of(weights, "weights", ("share", "sleeping"))
        if weights == "share" and options.get("loss_scale") is None:  # no range to certify
            options["loss_scale"] = "auto"
        self.options = make_options(domain, horizon, lipschitz, leaders=True, lazy=lazy, **options)
        factored = isinstance(domain.origin(), FactoredMatrix)
        self.kinds = _kinds(KINDS[: 2 if factored else 1] if experts is None else experts)
        self.shortest = SHORTEST_FACTORED if factored else SHORTEST
        self.block_factor = BLOCK_FACTOR_FACTORED if factored else BLOCK_FACTOR
        self.sleeping = weights == "sleeping"
        self._experts = self.options.experts(self._counted, [], domain.origin())
        whole = self._members()
        self._experts.add(domain.origin(), [self._plan(each) for each in whole])
        self._meta: Any = AdaHedge(1)
        if self.sleeping:
            self._meta = AdaNormalHedge(self.options.loss_scale)
            self._meta.add(1)

    def update(self, loss: Any, ticket: Any = None) -> float:
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
        # From the centre no comparator is farther than R = D/2, so half the step is right.
        h = length**-0.5 / (2.0 if member.kind == "whole" else 1.0)
        if self._experts.exact:
            return Plan(h, 1, 0.0, 0.0, lifetime, lazy)
        budget = options.oracle.budget
        if not options.certified:
            factor = BLOCK_FACTOR if budget is not None else self.block_factor
            block = max(1, math.isqrt(int(factor * length)))
            if budget is not None and member.kind == "whole":
                h = min(h, math.sqrt(budget / FIRST_CALLS))
            return Plan(h, block, options.tolerance(h), 0.0, lifetime, lazy)
        if budget is None:
            share, h, block = 0.0, length**-0.75, math.isqrt(length)
        else:
            # 1/2 for the whole game, 1/6, 1/12, ... for the lengths, the kinds alike.
            level = 1 if member.kind == "whole" else (length // self.shortest).bit_length() + 1
            share = budget / (level * (level + 1))
            share /= 1 if member.kind == "whole" else len(self.kinds)
            h = (share / (CERTAIN_CALLS * options.delay_factor)) ** 0.25 * length**-0.75
            rounds = CERTAIN_CALLS / (share * (options.delay_factor * h) ** 2)
            block = whole_above(rounds ** (1 / 3))
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
        method = self.options.oracle.method
        method = self.domain.default_method if method == "auto" else method
        from_ball = method in ("halfspace", "paper") and not self.options.oracle.even
        if not (self._experts.exact or self.options.certified) and from_ball:
            return None  # they move the target to the ball first, and its projection is another
        rounds, levels = self.t, (self._level_bound, self._level_price)
        if tau is not None:
            rounds = min(tau, rounds)
        # No comparators of the set have a longer path.
        path_length = min(path_length, max(0, rounds - 1) * self.domain.diameter)
        if tau is not None:
            known = self.sleeping and self.kinds != ("agile",)
            return bounds.over_windows(rounds, *levels, path_length) if known else None
        if not self.t:
            return 0.0
        whole = self._whole_bound(rounds) + self._moving(rounds) * path_length
        found = [whole + self._weighing(rounds)]
        if self.sleeping and self.kinds != ("agile",):
            found.append(bounds.over_game(rounds, *levels, path_length))
        for each in self._members()[1:]:
            if each.kind == "agile" or self.sleeping:
                continue
            # The whole game's expert plays until the first epoch: one change.
            epochs = math.ceil((rounds - each.length + 1) / each.length)
            static = self._whole_bound(each.length - 1) + epochs * self._epoch_bound(each)
            moving = self._moving(each.length) * path_length
            found.append(static + moving + self._meta.regret_bound(1))
        return min(found + self._agile_bounds(path_length))

    def _agile_bounds(self, path_length: float) -> list[float]:
        """The dynamic regret by one agile expert after another, each until the next joins."""
        first, found = self.shortest - 1, list[float]()
        static, price = self._whole_bound(first), self._moving(first)
        static += self._weighing(first) if self.sleeping else 0.0
        agile = [each for each in self._members() if each.kind == "agile"]
        for changes, each in enumerate(agile, start=1):
            rest = self.t - each.length + 1
            last, until_next = (self._agile_bound(each, n) for n in (rest, min(rest, each.length)))
            weighing = self._weighing(rest) if self.sleeping else self._meta.regret_bound(changes)
            price = max(price, last[1])
            found.append(static + last[0] + weighing + price * path_length)
            static += until_next[0] + (self._weighing(each.length) if self.sleeping else 0.0)
        return found

    def _weighing(self, rounds: int) -> float:
        """The regret of the weights against an expert that has played so many rounds."""
        if self.sleeping:
            return bounds.weighing(self._meta, rounds, self.t, self._created()) if rounds else 0.0
        return self._meta.regret_bound(0)

    def _moving(self, rounds: int) -> float:
        """What a unit of path inside so many rounds adds to static regret."""
        return self.lipschitz * max(0, rounds - 1)

    def _apart(self, plan: Plan) -> float:
        """How far an expert may be from its projections."""
        if self._experts.exact:
            return 0.0
        planned = min(self.options.D, math.sqrt(plan.tolerance))
        return max(planned, self._experts.largest_distance)

    def _lazy_bound(
        self, last: Plan, squares: float, apart: float, start: float, drops: float = 0.0
    ) -> float:
        """The static regret of a lazy expert with steps in units of c, see `bounds.lazy_descent`."""
        scale = self._experts.scale_for(self.lipschitz)
        return bounds.lazy_descent(
            self.lipschitz,
            self.options.D,
            scale * last.step,
            scale * squares,
            last.block,
            apart,
            start,
            shrinking_steps=self.options.step_scale is None,
            delay_factor=self.options.delay_factor,
            drops=drops,
        )

    def _epoch_bound(self, member: Member) -> float:
        """The static regret of a lazy expert in an epoch."""
        plan, length = self._plan(member), member.length
        plan = plan._replace(block=min(plan.block, length))
        parts = plan, plan.step * plan.block * length, length * self._apart(plan)
        if member.kind == "lazy":
            return self._lazy_bound(*parts, bounds.ANYWHERE)
        kept = plan.block * self.lipschitz * self.options.D  # it plays on where it was for a block
        return kept + self._lazy_bound(*parts, bounds.AT_CENTER)

    def _whole_bound(self, rounds: int) -> float:
        """The static regret of the expert that never restarts: its steps shrink at powers of two."""
        if not rounds:
            return 0.0
        plans = [self._plan(Member("whole", 1 << k)) for k in range((rounds - 1).bit_length() + 1)]
        squares = apart = drops = 0.0
        back = 4 if self.options.oracle.even else 2  # levels in which a point may have been found
        for k, plan in enumerate(plans):
            number = min(rounds, 1 << k) - (1 << k >> 1)  # rounds in (2^(k-1), 2^k]
            squares += plan.step * plan.block * number
            apart += number * max(map(self._apart, plans[max(0, k - back) : k + 1]))
            if k:  # one block keeps the step of a level or two before
                squares += plans[max(0, k - 2)].step * plan.block**2
                drops += 1.0 - plan.step / plans[k - 1].step
        return self._lazy_bound(plans[-1], squares, apart, bounds.AT_CENTER, drops)

    def _agile_bound(self, member: Member, rounds: int) -> tuple[float, float]:
        """The static regret of an agile expert, and what a unit of path adds."""
        how = self._plan(member), self._experts, self.lipschitz, rounds
        static, moved = (
            self.options.expert_bound(*how, path, bounds.ANYWHERE) for path in (0.0, self.options.D)
        )
        return static, (moved - static) / self.options.D

    def _level_bound(self, k: int) -> float:
        """The static regret on an epoch of 2^k rounds: its expert's, and that of the weights."""
        length = 1 << k
        trivial = self.lipschitz * self.domain.diameter * length
        if length < self.shortest:
            return trivial
        own = min(self._epoch_bound(Member(kind, length)) for kind in self.kinds if kind != "agile")
        return min(trivial, own + self._weighing(length))

    def _level_price(self, k: int) -> float:
        """What a unit of path inside an epoch of 2^k rounds adds."""
        return 0.0 if 1 << k < self.shortest else self._moving(1 << k)

    def _created(self) -> int:
        """Experts that have ever begun, restarts counted."""
        lengths = {each.length for each in self._members()[1:]}
        return 1 + len(self.kinds) * sum((self.t + 1) // length for length in lengths)


def _kinds(given: Any) -> tuple[str, ...]:
    """Kinds of experts, checked."""
    if not isinstance(given, list | tuple) or not given:
        raise ValueError(f'experts must be some of {KINDS}, as in ("lazy",), got {given!r}')
    for kind in given:
        checks.one_of(kind, "each of experts", KINDS)
    return tuple(kind for kind in KINDS if kind in given)

"""POLAR: projection-free online learning by agile experts and restarted leaders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, Unpack

import numpy as np

from driftwolfe.bounds.ensembles import PolarBound
from driftwolfe.domains import Domain
from driftwolfe.ensemble import AdaHedge, AdaNormalHedge
from driftwolfe.ensemble.dense import RULES, PoolDescent
from driftwolfe.ensemble.descent import Descent
from driftwolfe.ensemble.plan import AGILE, CERTAIN_CALLS, FOREVER, Plan
from driftwolfe.learners.base import Learner, as_loss, largest_gradient
from driftwolfe.learners.options import Options, WeightOptions, make_options
from driftwolfe.oracles import Oracle
from driftwolfe.points import FactoredMatrix, checks
from driftwolfe.points.kinds import Point
from driftwolfe.points.ops import near_largest, whole_above
from driftwolfe.state import Nested
from driftwolfe.storage import require


class POLAR(Learner):
    r"""Leaders that restart after 8, 16, 32 and more rounds, weighted by AdaHedge: the learner to start with.

    A *lazy* expert for epochs of L rounds plays the projection of :math:`x_0 - \eta\sum g`, the sum of all its
    gradients since its epoch began at :math:`x_0`, with :math:`\eta = c/\sqrt L`, c = D/G. An *adaptive* one is
    lazy with :math:`\eta = D/(2\sqrt{\sum\lVert g\rVert^2})`, the sum over its epoch: when that ends, an outlier is
    forgotten. An *agile* one steps from its last projection, along :math:`g + \phi(g - g')` with :math:`g'` the
    gradient before and :math:`\phi` learned, and never restarts. A *vertex* one moves by 2/L of the way to the
    vertex that its gradient points to. One lazy and one adaptive expert never restart. Longer epochs join as
    the game goes on: there is no horizon and no step size to tune. Weights see losses linearised at the decision.

    O(log t) gradients per round (one with linear feedback). Where the set's projection is cheap, each expert
    projects in every round; elsewhere in every :math:`\lfloor\sqrt L/2\rfloor`-th, by LMO calls, or in every
    :math:`\lfloor\sqrt{2L}\rfloor`-th where points are factored and no budget is set.

    With exact projections, regret is :math:`O(\sqrt{T(1 + P/D)})`, logarithms apart, and :math:`O(\sqrt T)` on
    every interval; with sleeping weights :math:`O(\sqrt{\tau})` on those of tau rounds. Without, `bound` needs the
    certified tuning: :math:`O(T^{3/4}(1 + P/D)^{1/4})` (`docs/theory/polar.md`).

    Parameters
    ----------
    horizon
        Accepted so that all learners share a signature; not used.
    experts
        For study: some of ``"lazy"``, ``"origin"`` (lazy from the centre of the set), ``"adaptive"``, ``"agile"``,
        ``"vertex"``. By default ``("lazy", "adaptive", "agile")`` where projections are exact, ``("lazy",)``
        elsewhere and on matrices, ``("lazy", "origin")`` where these are factored, ``("lazy", "vertex")`` on an
        `LMODomain`; with the certified tuning and no budget agile ones always.
    weights
        ``"adahedge"``: `AdaHedge`, scale-free; ``"sleeping"``: `AdaNormalHedge`, with a guarantee on intervals.
    loss_scale
        B of sleeping weights, see `AdaNormalHedge`: a number, ``"certified"`` (G * diameter) or ``"auto"``.
    {options}

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.POLAR(dw.L1Ball(2))
    >>> for t in range(200):
    ...     suffered = learner.update(dw.losses.LinearLoss([1.0 if t < 100 else -1.0, 0.0]))
    >>> learner.decision.round(2)
    array([1., 0.])
    """

    _experts: Descent
    _meta: Annotated[Any, Nested()]
    options: Options

    def update(self, loss: Any, ticket: Any = None) -> float:
        """Play the mean of the experts; weigh them; let each step; restart those whose epoch ends."""
        f = as_loss(loss)
        weights = self._meta.weights
        if self.options.oracle.pooled:
            even = EVEN_PART / weights.size
            parts = even + (1.0 - EVEN_PART) * weights
            self._experts.reserved = self.options.oracle.budget * parts
        evaluation = self._experts.evaluate(f, weights, self.options.linear, tangent=True)
        if self.sleeping:
            self._meta.update(evaluation.played, evaluation.losses)
        else:
            self._meta.update(evaluation.losses)
        self._experts.step(f, evaluation.slopes, evaluation.shared)
        self.t += 1
        if self.forgets and self.t & (self.t - 1) == 0 and self.t >= FIRST_STRETCH:
            self._meta.forget()
        self._restart()
        return evaluation.value

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        experts: Sequence[str] | None = None,
        weights: str = "adahedge",
        oracle: Oracle | str = "auto",
        **options: Unpack[WeightOptions],
    ) -> None:
        super().__init__(domain)
        checks.one_of(weights, "weights", ("adahedge", "sleeping"))
        if weights == "adahedge" and options.get("loss_scale") is None:  # no range to certify
            options["loss_scale"] = "auto"
        given = domain, horizon, lipschitz
        self.options = make_options(*given, leaders=True, oracle=oracle, **options)
        factored = isinstance(domain.origin(), FactoredMatrix)
        self.shortest = SHORTEST_FACTORED if factored else SHORTEST
        self.block_factor = BLOCK_FACTOR_FACTORED if factored else BLOCK_FACTOR
        self.sleeping = weights == "sleeping"
        self._experts = self.options.experts(self._counted, [], domain.origin(), several=True)
        self.kinds = self._kinds(experts, factored)
        self.forgets = "adaptive" in self.kinds and not self.sleeping
        plans = [self._plan(*member) for member in self._members()]
        self._experts.add(domain.origin(), plans)
        self._meta = AdaHedge(len(plans), FORGETTING_SHARE if self.forgets else 1.0)
        if self.sleeping:
            self._meta = AdaNormalHedge(self.options.loss_scale)
            self._meta.add(len(plans))

    def _restart(self) -> None:
        """Restart the experts whose epoch ends with this round, and add those of a new length."""
        coming, experts = self.t + 1, self._experts
        if self.t & (self.t - 1) == 0:  # the whole game is longer than planned: smaller steps
            for i, (kind, _) in enumerate(self._members()[:2]):
                if kind in WHOLE:
                    experts.replan(i, self._plan(kind, 2 * self.t))
        if coming % self.shortest:
            return
        decision = experts.restart_point(self._meta.weights, lambda w: int(near_largest(w)[0]))
        members = self._members()
        held, new = members[: experts.size], members[experts.size :]
        over = [i for i, (_, length) in enumerate(held) if coming % length == 0]
        lazy = [i for i in over if held[i][0] in ("lazy", "adaptive")]
        origin = [i for i in over if held[i][0] == "origin"]
        experts.restart(lazy, decision)
        experts.restart(origin, self.domain.origin(), keep=("x", "_x"))  # plays on where it is
        if self.sleeping:
            self._meta.restart(sorted(lazy + origin))
        for kind, length in new:
            start = self.domain.origin() if kind == "origin" else decision
            experts.add(start, [self._plan(kind, length)])
        self._meta.add(len(new))

    def _lengths(self) -> list[int]:
        """The rounds of the epochs in the coming round, shortest first."""
        number = ((self.t + 1) // self.shortest).bit_length()
        return [self.shortest << k for k in range(number)]

    def _members(self) -> list[tuple[str, int]]:
        """The kinds and lengths of all experts: those there from the start, then those of each length."""
        game, kinds = 1 << self.t.bit_length(), self.kinds
        first = {"adaptive": ("whole adaptive", game), "agile": ("agile", self.shortest // 2)}
        first["vertex"] = "vertex", self.shortest
        members = [("whole", game), *(first[kind] for kind in kinds if kind in first)]
        for k, length in enumerate(self._lengths()):
            members += [(kind, length) for kind in kinds if k in JOINS.get(kind, range(99))]
        return members

    def _plan(self, kind: str, length: int) -> Plan:
        """The step, block and tolerance of an expert, and its part of a budget."""
        options, lifetime = self.options, FOREVER if kind in (*WHOLE, "agile") else length
        rule = AGILE if kind == "agile" and not self._stacked else RULES[kind]
        if kind == "vertex":
            return Plan(2.0 / length, FOREVER, 0.0, rule=rule)
        if kind in ("adaptive", "whole adaptive"):
            lazy = self._plan("lazy" if kind == "adaptive" else "whole", length)
            # By sums of blocks, whose squares are at most so many times those of their gradients.
            summed = lazy.block if options.certified else 1.0
            h = (0.5 if kind == "adaptive" else 0.25) / math.sqrt(summed)
            return lazy._replace(step=h, rule=rule)
        # From the centre no comparator is farther than R = D/2, so half the step is right.
        h = length**-0.5 / (2.0 if kind == "whole" else 1.0)
        if self._experts.exact:
            return Plan(h, 1, 0.0, 0.0, lifetime, rule)
        budget = options.oracle.budget
        if not options.certified:
            factor = BLOCK_FACTOR if budget is not None else self.block_factor
            block = max(1, math.isqrt(int(factor * length)))
            if budget is not None and kind == "whole":
                h = min(h, math.sqrt(budget / FIRST_CALLS))
            return Plan(h, block, options.tolerance(h), 0.0, lifetime, rule)
        if budget is None:
            part, h, block = 0.0, length**-0.75, math.isqrt(length)
        else:
            # 1/2 for those there from the start, 1/6, 1/12, ... for the lengths, the kinds alike.
            level = 1 if kind == "whole" else (length // self.shortest).bit_length() + 1
            part = budget / (level * (level + 1))
            part /= len(self.kinds) if level > 1 else 1 + len({"adaptive", "agile"} & {*self.kinds})
            h = (part / CERTAIN_CALLS) ** 0.25 * length**-0.75
            rounds = CERTAIN_CALLS / (part * h**2)
            block = whole_above(rounds ** (1 / 3))
        tolerance = min(1.0, (h * block) ** 2) * options.D**2
        return Plan(h, block, tolerance * options.tolerance_scale, part, lifetime, rule)

    def _kinds(self, given: Any, factored: bool) -> tuple[str, ...]:
        """The kinds of experts, checked."""
        budget = self.options.oracle.budget
        possible = [kind for kind in KINDS if self._stacked or kind in ("lazy", "origin", "agile")]
        if budget is not None:  # vertex experts would spend a call each in every round
            possible = [kind for kind in possible if kind != "vertex"]
        if given is None:
            given = ("lazy", "origin") if factored else ("lazy",)
            if self._stacked and self._experts.exact and not self.domain.rank_one_atoms:
                given = ("lazy", "adaptive", "agile")
            elif self.options.certified and budget is None:
                given = (*given, "agile")  # which the rate of POLD needs
            elif self._stacked and budget is None and self.domain.known_by_lmo:
                given = ("lazy", "vertex")
        if not isinstance(given, list | tuple) or not given:
            raise ValueError(f'experts must be some of {KINDS}, as in ("lazy",), got {given!r}')
        for kind in given:
            checks.one_of(kind, "each of experts", tuple(possible))
        return tuple(kind for kind in KINDS if kind in given)

    @property
    def _stacked(self) -> bool:
        """Whether experts are rows of an array, which may be of all kinds."""
        return isinstance(self._experts, PoolDescent)

    @property
    def decision(self) -> Point:
        return self._experts.mean(self._meta.weights)

    @property
    def expert_names(self) -> list[str]:
        """Their kinds, and the rounds of their epochs."""
        return [WHOLE.get(kind, f"{kind}, {length:,} rounds") for kind, length in self._members()]

    lipschitz = property(largest_gradient)

    def derive(self) -> None:
        self._experts.set_rules([self._plan(*member).rule for member in self._members()])

    def check(self) -> None:
        super().check()
        require(self._experts.size == len(self._members()), "experts and weights")

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        if not (self._experts.exact or self.options.certified):
            raise NotImplementedError(
                "with the practical tuning and projections made of LMO calls no useful bound on POLAR is "
                'known; use tuning="certified"'
            )
        return self._bounds.bound(path_length, tau, self.domain.diameter)

    @property
    def _bounds(self) -> PolarBound:
        return PolarBound(
            plan=self._plan,
            kinds=self.kinds,
            lengths=self._lengths(),
            agile_lengths=[length for kind, length in self._members() if kind == "agile"],
            squares=float(getattr(self._experts, "squares", np.zeros(2))[:2][-1]),
            shortest=self.shortest,
            weights=self._meta,
            sleeping=self.sleeping,
            known=self.options.measured(self._experts),
            exact=self._experts.exact,
            rounds=self.t,
        )


KINDS = ("lazy", "origin", "adaptive", "agile", "vertex")
WHOLE = {"whole": "whole game", "whole adaptive": "whole game, adaptive"}
#: With which of the lengths 8, 16, 32, ... kinds join that have but every other one: besides the first.
JOINS = {"adaptive": range(0, 99, 2), "agile": range(1, 99, 2), "vertex": range(2, 99, 2)}
#: Rounds after which weights first forget, and the share of such weights times t. Chosen on streams of
#: `benchmarks.polar`, mostly with other seeds than those of its tables.
FIRST_STRETCH, FORGETTING_SHARE = 16, 0.75
#: Rounds of the shortest epochs, and the square of a block's rounds over those of its epoch; where points
#: are factored, projections are dear and experts have fewer. Chosen on the streams of `benchmarks.polar`.
SHORTEST, BLOCK_FACTOR = 8, 0.25
SHORTEST_FACTORED, BLOCK_FACTOR_FACTORED = 64, 2.0
#: With a budget, the first steps are at most those of an epoch with so many calls: with fewer, a step is
#: towards one vertex, and may be far off. Chosen on the first rounds of matrices in `benchmarks.budget`.
FIRST_CALLS = 16
#: Part of a budget that is divided evenly; the rest goes to experts by their weights.
EVEN_PART = 0.2

"""POLAR: projection-free online learning by agile experts and restarted leaders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.ensemble import AdaHedge, AdaNormalHedge, GeometricCover
from driftwolfe.ensemble.list import descent
from driftwolfe.ensemble.plan import FOREVER, Plan
from driftwolfe.learners.base import Learner, as_loss
from driftwolfe.learners.options import EnsembleOptions, Options, make_options, one_of
from driftwolfe.points import FactoredMatrix
from driftwolfe.points.kinds import Array, Point
from driftwolfe.points.rounding import near_largest
from driftwolfe.storage import require

KINDS = ("lazy", "origin", "agile")
#: Rounds of the shortest epoch.
SHORTEST = 8


class Member(NamedTuple):
    """An expert of the pool: its kind, and the rounds of its epochs."""

    kind: str
    length: int


class POLAR(Learner):
    r"""Restarted leaders and agile experts of all dyadic lengths, weighted by AdaHedge.

    Parameters
    ----------
    experts
        Which kinds: some of ``"lazy"``, ``"origin"`` and ``"agile"``.
    weights
        ``"share"``: `AdaHedge`; ``"sleeping"``: `AdaNormalHedge`, for a guarantee on every interval.
    {options}

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.POLAR(dw.L1Ball(2), lipschitz=1.0)
    >>> for t in range(200):
    ...     suffered = learner.update(dw.losses.LinearLoss([1.0 if t < 100 else -1.0, 0.0]))
    >>> learner.decision.round(2)
    array([1., 0.])
    """

    STATE = ("_experts", "_meta")
    PARTS = ("_experts", "_meta")
    options: Options
    _meta: Any

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
        self.options = make_options(domain, horizon, lipschitz, **options)
        one_of(weights, "weights", ("share", "sleeping"))
        factored = isinstance(domain.origin(), FactoredMatrix)
        self.kinds = tuple(experts) if experts is not None else KINDS[: 2 if factored else 3]
        for kind in self.kinds:
            one_of(kind, "experts", KINDS)
        self.sleeping = weights == "sleeping"
        self._cover = GeometricCover()
        self._experts = descent(self._counted, self.options.oracle, self.options.step_scale)
        self._experts.add(domain.origin(), [self._plan(Member("whole", 1))])
        self._meta = AdaNormalHedge(self.options.loss_scale) if self.sleeping else AdaHedge(1)
        if self.sleeping:
            self._meta.add(1)

    def update(self, loss: Any) -> float:
        """Play the mean of the experts; weigh them by their losses; let each take its step."""
        f = as_loss(loss)
        weights = self._meta.weights
        evaluation = self._experts.evaluate(f, weights, self.options.linear, tangent=True)
        if self.sleeping:
            self._meta.update(evaluation.played, evaluation.losses)
        else:
            self._meta.update(evaluation.losses)
        self._experts.step(f, evaluation)
        self.t += 1
        self._restart()
        return evaluation.value

    @property
    def decision(self) -> Point:
        """The weighted mean of the experts' points."""
        return self._experts.mean(self._meta.weights)

    @property
    def expert_weights(self) -> Array:
        """The weights of the experts, in the order of `expert_names`."""
        return self._meta.weights.copy()

    @property
    def expert_names(self) -> list[str]:
        """Their kinds and the rounds of their epochs."""
        return [
            each.kind if each.kind == "whole" else f"{each.kind} {each.length:,}"
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

    def _members(self) -> list[Member]:
        """The experts of the coming round: one for the whole game, then all of each length."""
        lengths = [1 << k for k in range((self.t + 1).bit_length()) if 1 << k >= SHORTEST]
        return [
            Member("whole", 1 << self.t.bit_length()),
            *(Member(kind, length) for length in lengths for kind in self.kinds),
        ]

    def _plan(self, member: Member) -> Plan:
        options, length = self.options, member.length
        restarts = member.kind in ("lazy", "origin")
        lifetime = length if restarts else FOREVER
        if self._experts.exact if hasattr(self, "_experts") else False:
            return Plan(length**-0.5, 1, 0.0, lifetime=lifetime, lazy=member.kind != "agile")
        block = max(1, math.isqrt(length))
        tolerance = options.tolerance(length**-0.75)
        return Plan(length**-0.5, block, tolerance, 0.0, lifetime, member.kind != "agile")

    def _restart(self) -> None:
        """Restart the experts whose epoch ends, and add those of a length that is new."""
        coming, experts = self.t + 1, self._experts
        if self.t & (self.t - 1) == 0:  # the whole game is twice as long: smaller steps
            plan = self._plan(Member("whole", 2 * self.t))
            experts.steps, experts.blocks = experts.steps.copy(), experts.blocks.copy()
            experts.steps[0], experts.blocks[0] = plan.step, plan.block
        if coming % SHORTEST:
            return
        weights = self._meta.weights
        current = experts.restart_point(weights, lambda w: int(near_largest(w)[0]))
        members = self._members()
        new = members[experts.size :]
        ends = [
            i
            for i, each in enumerate(members[: experts.size])
            if each.kind in ("lazy", "origin") and coming % each.length == 0
        ]
        experts.restart([i for i in ends if members[i].kind == "lazy"], current)
        origin = [i for i in ends if members[i].kind == "origin"]
        experts.restart(origin, self.domain.origin(), keep=("x",))
        if self.sleeping:
            self._meta.restart(ends)
        for each in new:
            start = self.domain.origin() if each.kind == "origin" else current
            experts.add(start, [self._plan(each)])
        if new:
            self._meta.add(len(new))

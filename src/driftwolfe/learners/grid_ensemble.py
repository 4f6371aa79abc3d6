"""`GridEnsemble`: an expert for every step size, Hedge over them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from driftwolfe.ensemble import Hedge
from driftwolfe.ensemble.descent import Descent
from driftwolfe.ensemble.experts import descent
from driftwolfe.ensemble.plan import Plan
from driftwolfe.learners import bounds
from driftwolfe.learners.hedged_ensemble import HedgedEnsemble
from driftwolfe.points.kinds import Point


class GridEnsemble(HedgedEnsemble):
    """A grid of step sizes, an expert for each, and exponential weights.

    A named one says what its grid is (`_plans`).
    """

    _experts: Descent

    @property
    def expert_names(self) -> list[str]:
        """The step sizes; relative to c where that is learned."""
        c = self.options.step_scale
        if c is None:
            return [f"h = {step:.3g}" for step in self._experts.steps]
        return [f"η = {float(f'{c * step:.3g}'):,g}" for step in self._experts.steps]

    def bound(self, path_length: float = 0.0, tau: int | None = None) -> float:
        """Return the best expert's bound plus the price of finding it; see `Learner.bound`.

        The range of losses B in the price is `lipschitz` * diameter; a learned B was never larger.
        """
        path_length, tau = bounds.asked(path_length, tau)
        if tau is not None:
            return super().bound(path_length, tau)
        G = self.lipschitz
        total = 0.0
        for horizon, rounds, first in self._epochs():
            meta = self._make_meta(horizon)
            spread = G * self.domain.diameter
            total += min(
                self._expert_bound(plan, rounds, path_length, first)
                + (meta.regret_bound(i, rounds, spread) if spread > 0 else 0.0)
                for i, plan in enumerate(self._plans(horizon), start=1)
            )
        return total

    def _expert_bound(self, plan: Plan, rounds: int, path_length: float, first: bool) -> float:
        G = self.lipschitz
        return bounds.blocked_descent(
            G,
            2.0 * self.domain.radius,
            rounds,
            self._experts.scale_for(G) * plan.step,
            plan.block,
            self._experts.tolerance_for(plan),
            path_length,
            bounds.AT_CENTER if first else bounds.ANYWHERE,
            shrinking_steps=self.options.step_scale is None,
            drag=self.options.drag,
        )

    @abstractmethod
    def _plans(self, horizon: int) -> Sequence[Plan]:
        """The experts for an epoch of that length, smallest step first."""

    def _number_of_experts(self, horizon: int) -> int:
        return len(self._plans(horizon))

    def _make_meta(self, horizon: int) -> Hedge:
        size = len(self._plans(horizon))
        return Hedge(size, horizon=horizon, loss_scale=self.options.loss_scale)

    def _begin(self, horizon: int, start: Point) -> None:
        before = self._experts if self.t else None
        self._experts = descent(self._counted, self.options.oracle, self.options.step_scale)
        self._experts.remember(before)
        self._experts.add(start, self._plans(horizon))
        self._meta = self._make_meta(horizon)

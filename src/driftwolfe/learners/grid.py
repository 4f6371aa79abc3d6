"""`GridLearner`: experts for the step sizes of a grid, weighted by Hedge or AdaHedge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, TypeAlias

from driftwolfe import bounds
from driftwolfe.bounds.ensembles import Measured, best_expert, expert_regret
from driftwolfe.domains import Domain
from driftwolfe.ensemble import Hedge
from driftwolfe.ensemble.plan import Plan
from driftwolfe.learners import ahead
from driftwolfe.learners.base import Epoch, Learner, Round
from driftwolfe.learners.options import Options
from driftwolfe.points.kinds import Point
from driftwolfe.points.rounding import near_largest
from driftwolfe.storage import require

#: The weights of so many experts for so many rounds.
Weights: TypeAlias = Callable[[int, int], Any]


class GridLearner(Learner):
    """A fixed number of experts, one for each step size of a grid, weighted by Hedge or AdaHedge.

    `plans` is the grid: the experts for an epoch of so many rounds, smallest step first. `experts` makes
    those of some plans on the counted set, at a point, and `weights` the weights of so many experts for
    so many rounds; by default these are gradient descents and Hedge. Each learner writes its own `update`.
    """

    STATE: ClassVar[tuple[str, ...]] = ("_epoch_start", "_epoch_length", "_experts", "_meta")
    PARTS = ("_experts", "_meta")
    options: Options
    _experts: Any

    def __init__(
        self,
        domain: Domain,
        options: Options,
        plans: Callable[[int], Sequence[Plan]],
        experts: Callable[[Domain, Sequence[Plan], Point], Any] | None = None,
        weights: Weights | None = None,
    ) -> None:
        super().__init__(domain)
        self.options = options
        self._plans = plans
        self._make_experts = experts or partial(Options.experts, options)
        self._make_weights = weights or partial(Hedge, loss_scale=options.loss_scale)
        self._begin(next(self._epochs()), domain.origin())

    @property
    def decision(self) -> Point:
        """The weighted mean of the experts' points."""
        return self._experts.mean(self._meta.weights)

    @property
    def expert_names(self) -> list[str]:
        """The step sizes; relative to c where that is learned."""
        c, steps = self.options.step_scale, [plan.step for plan in self._plans(self._epoch_length)]
        if c is None:
            return [f"h = {step:.3g}" for step in steps]
        return [f"η = {float(f'{c * step:.3g}'):,g}" for step in steps]

    @property
    def lipschitz(self) -> float:
        """G: the larger of what was given and the largest gradient norm seen."""
        return max(self.options.lipschitz or 0.0, self._experts.largest_gradient)

    def check_state(self) -> None:
        super().check_state()
        number = len(self._plans(self._epoch_length))
        require(self._experts.size == self._meta.size == number, "experts and weights")

    def _restart_point(self) -> Point:
        return self._experts.restart_point(self._meta.weights, lambda w: int(near_largest(w)[0]))

    def _begin(self, epoch: Epoch, start: Point) -> None:
        super()._begin(epoch, start)
        plans = self._plans(epoch.horizon)
        experts = self._make_experts(self._counted, plans, start)
        if self.t:
            experts.take_over(self._experts)
        self._experts, self._meta = experts, self._make_weights(len(plans), epoch.horizon)

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        if tau is not None:
            return None
        return self._over_epochs(partial(self._epoch_bound, path_length=path_length))

    def _epoch_bound(self, epoch: Epoch, path_length: float) -> float:
        plans, known = self._plans(epoch.horizon), self._measured
        start = bounds.ANYWHERE if epoch.start else bounds.AT_CENTER
        regrets = [expert_regret(plan, known, epoch.rounds, path_length, start) for plan in plans]
        spread = known.G * known.diameter
        return best_expert(regrets, self._weights_of(epoch), spread, epoch.rounds)

    @property
    def _measured(self) -> Measured:
        return self.options.measured(self._experts, self.lipschitz)

    def _weights_of(self, epoch: Epoch) -> Any:
        """The weights of an epoch: those in use, or as they were at its start."""
        if epoch.start == self._epoch_start:
            return self._meta
        return self._make_weights(len(self._plans(epoch.horizon)), epoch.horizon)

    @property
    def runs_ahead(self) -> bool:
        return ahead.possible(self)

    def update_many(self, losses: Sequence[Any]) -> list[Round]:
        return (
            ahead.update_many(self, losses)
            if ahead.pays(self, losses)
            else super().update_many(losses)
        )

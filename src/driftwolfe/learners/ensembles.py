"""What learners with a grid of steps, or with a cover of time, share around their loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np

from driftwolfe import bounds
from driftwolfe.bounds.ensembles import best_expert, expert_regret, on_cover, regret_per_path
from driftwolfe.domains import Domain
from driftwolfe.ensemble import GeometricCover, Hedge, SleepingMeta
from driftwolfe.ensemble.descent import Descent
from driftwolfe.ensemble.plan import Plan
from driftwolfe.learners import ahead
from driftwolfe.learners.base import Epoch, Learner, as_loss, largest_gradient
from driftwolfe.learners.options import Options
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Point
from driftwolfe.points.ops import near_largest
from driftwolfe.state import Field, Nested
from driftwolfe.storage import require

#: Tables of what finished epochs have cost, with a column for each expert.
PAST = Field(list, items=Field(np.float64, (2, None)))


class GridLearner(Learner):
    """A fixed number of experts, one for each step size of a grid, weighted by Hedge or AdaHedge.

    `plans` is the grid: the experts for an epoch of so many rounds, smallest step first. `experts` makes
    those of some plans on the counted set, at a point, and `weights` the weights of so many experts for
    so many rounds; by default these are gradient descents and Hedge. One whose bound has costs as measured
    defines `_epoch_costs`, and declares `_past`.
    """

    _experts: Annotated[Any, Nested()]
    _meta: Annotated[Any, Nested()]
    _past: Any = ()
    options: Options

    def __init__(
        self,
        domain: Domain,
        options: Options,
        plans: Callable[[int], Sequence[Plan]],
        experts: Callable[[Domain, Sequence[Plan], Point], Any] | None = None,
        weights: Callable[[int, int], Any] | None = None,
    ) -> None:
        super().__init__(domain)
        self.options = options
        self._plans = plans
        self._make_experts = experts or partial(Options.experts, options)
        self._make_weights = weights or partial(Hedge, loss_scale=options.loss_scale)
        self._begin(next(self._epochs()), domain.origin())

    def update(self, loss: Any, ticket: Any = None) -> float:
        """Play the mean of the experts; weigh them by their losses; let each step."""
        f = as_loss(loss)
        evaluation = self._experts.evaluate(f, self._meta.weights, self.options.linear)
        self._meta.update(evaluation.losses)
        self._experts.step(f, evaluation.slopes, evaluation.shared)
        self._next_round()
        self._experts.settle(self._meta.weights)
        return float(evaluation.value)

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

    lipschitz = property(largest_gradient)

    def check(self) -> None:
        super().check()
        number = len(self._plans(self._epoch_length))
        require(self._experts.size == number, "experts and weights")
        if type(self._past) is list:
            *earlier, _ = self._epochs()
            shapes = [(2, len(self._plans(epoch.horizon))) for epoch in earlier]
            require([table.shape for table in self._past] == shapes, "epochs")

    def _epoch_costs(self) -> Array | None:
        """What this epoch has cost each expert, if measured: static regret and the weights', and per path."""
        return None

    def _restart_point(self) -> Point:
        return self._experts.restart_point(self._meta.weights, lambda w: int(near_largest(w)[0]))

    def _begin(self, epoch: Epoch, start: Point) -> None:
        if self.t and (costs := self._epoch_costs()) is not None:
            self._past = [*self._past, costs]
        super()._begin(epoch, start)
        plans = self._plans(epoch.horizon)
        experts = self._make_experts(self._counted, plans, start)
        if self.t:
            experts.take_over(self._experts)
        self._experts, self._meta = experts, self._make_weights(len(plans), epoch.horizon)

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        if tau is not None:
            return None
        if (costs := self._epoch_costs()) is not None:
            tables = [*self._past, costs]
            return float(sum(max(0.0, (own + path_length * per).min()) for own, per in tables))
        return self._over_epochs(partial(self._epoch_bound, path_length=path_length))

    def _epoch_bound(self, epoch: Epoch, path_length: float) -> float:
        plans, known = self._plans(epoch.horizon), self.options.measured(self._experts)
        start = bounds.ANYWHERE if epoch.start else bounds.AT_CENTER
        regrets = [expert_regret(plan, known, epoch.rounds, path_length, start) for plan in plans]
        spread = known.G * known.diameter
        return best_expert(regrets, self._weights_of(epoch), spread, epoch.rounds)

    def _weights_of(self, epoch: Epoch) -> Any:
        """The weights of an epoch: those in use, or as they were at its start."""
        if epoch.start == self._epoch_start:
            return self._meta
        return self._make_weights(len(self._plans(epoch.horizon)), epoch.horizon)

    runs_ahead = property(ahead.possible)
    update_many = ahead.update_many


def anytime(kind: Callable[..., Any], size: int, rounds: int, /, **given: Any) -> Any:
    """Return so many weights of a kind that needs no horizon."""
    return kind(size, **given)


class CoverLearner(Learner):
    """An expert for every interval of a geometric cover of time, and weights for sleeping experts.

    `plan` says which expert is for an interval of so many rounds, `meta` holds the weights, and `experts`
    makes the experts of some plans on the counted set, at a point; by default gradient descents. New ones
    start at the point played last, or, where points are factored and the mean would pile up factors, at
    the heaviest expert's (of several as heavy, that of the longest interval), or at the centre.
    """

    _experts: Annotated[Any, Nested()]
    _meta: SleepingMeta
    options: Options

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
        self.options, self.start = options, start
        self._plan = plan
        self._cover = GeometricCover()
        self._meta = meta
        self._experts = (experts or options.experts)(self._counted, [], domain.origin())
        self._lengths: list[int] = []  # rounds of each expert's interval
        self._add(self._cover.starting(1), domain.origin())
        self._weights = self._meta.weights  # of the coming round

    def update(self, loss: Any, ticket: Any = None) -> float:
        """Play the mean of the experts awake; weigh them by their losses; step; wake and retire."""
        f = as_loss(loss)
        evaluation = self._experts.evaluate(f, self._weights, self.options.linear)
        start = self._restart_point()
        self._meta.update(evaluation.played, evaluation.losses)
        self._experts.step(f, evaluation.slopes, evaluation.shared)
        self.t += 1
        self._turn_over(start)
        self._experts.settle(self._weights)
        return evaluation.value

    def _restart_point(self) -> Point:
        if self.start == "origin":
            return self.domain.origin()
        return self._experts.restart_point(self._weights, self._heaviest)

    def _turn_over(self, start: Point) -> None:
        """End the intervals that are over, and let experts of those that begin now start at a point."""
        # The shortest intervals end and others of the same lengths follow: these experts restart in
        # place. Now and then a longer one comes.
        starting = self._cover.starting(self.t + 1)
        number = min(len(starting), len(self._lengths))
        self._experts.restart(slice(number), start)
        self._meta.restart(slice(number))
        if longer := starting[number:]:
            self._add(longer, start)
        self._weights = self._meta.weights

    @property
    def decision(self) -> Point:
        """The weighted mean of the experts that are awake."""
        return self._experts.mean(self._weights)

    @property
    def expert_names(self) -> list[str]:
        """The lengths of their intervals."""
        return [f"{n:,} round{'s' if n > 1 else ''}" for n in self._lengths]

    lipschitz = property(largest_gradient)

    def derive(self) -> None:
        self._lengths = [end - start + 1 for start, end in self._cover.active(self.t + 1)]
        self._weights = self._meta.weights

    def check(self) -> None:
        super().check()
        # The cover says which experts are awake: no file can make them more.
        require(self._experts.size == len(self._lengths), "experts and intervals")
        if isinstance(self._experts, Descent):
            lifetimes = [self._plan(length).lifetime for length in self._lengths]
            require(self._experts.lifetimes.tolist() == lifetimes, "plans of experts")

    def _heaviest(self, weights: Array) -> int:
        """The expert of the largest weight; of several, that of the longest interval."""
        return max(near_largest(weights).tolist(), key=self._lengths.__getitem__)

    def _add(self, lengths: list[int], start: Point) -> None:
        self._experts.add(start, [self._plan(length) for length in lengths])
        self._meta.add(lengths)
        self._lengths = self._lengths + lengths

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        levels = self._level_bound, self._level_per_path
        return on_cover(*levels, self.t, path_length, tau, self.domain.diameter)

    def _level_bound(self, k: int) -> float:
        """The static regret on an interval of length 2^k: its expert's, and that of the weights."""
        own = expert_regret(self._plan(1 << k), self.options.measured(self._experts), 1 << k)
        return own + bounds.weighing(self._meta, 1 << k, self.t)

    def _level_per_path(self, k: int) -> float:
        """What a unit of path inside an interval of length 2^k adds."""
        return regret_per_path(self._plan(1 << k), self.options.measured(self._experts), 1 << k)

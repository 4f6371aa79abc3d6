"""Epochs of doubling length, for learners that need a horizon and are given none."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

from driftwolfe.domains import Domain
from driftwolfe.ensemble.list import descent
from driftwolfe.ensemble.plan import Plan
from driftwolfe.learners import bounds
from driftwolfe.learners.base import Learner
from driftwolfe.learners.options import Options, make_options
from driftwolfe.points.kinds import Point
from driftwolfe.storage import require

#: Rounds of the first epoch where the horizon is not known.
FIRST_EPOCH = 64


class Epoch(NamedTuple):
    """Some consecutive rounds that are played with the parameters for a horizon."""

    start: int  # rounds played before it
    horizon: int  # T of its parameters
    rounds: int  # rounds played in it so far


def epochs(horizon: int | None, t: int) -> Iterator[Epoch]:
    """Yield the epochs of the first t rounds, and the one that the next round belongs to.

    A known horizon makes a single epoch, which may be played beyond it. Otherwise epochs have 64, 128,
    256, ... rounds, each with the parameters of its own length.

    >>> [tuple(epoch) for epoch in epochs(None, 100)]
    [(0, 64, 64), (64, 128, 36)]
    """
    start, length = 0, horizon or FIRST_EPOCH
    while horizon is None and t - start >= length:
        yield Epoch(start, length, length)
        start, length = start + length, 2 * length
    yield Epoch(start, length, t - start)


class EpochLearner(Learner):
    """Experts that are made anew for every epoch, and start where the last one ended.

    A subclass has `_plans`, the experts for an epoch of so many rounds; `_restart_point`, where the
    next epoch starts; and `_epoch_bound`.
    """

    STATE: ClassVar[tuple[str, ...]] = ("_epoch_start", "_epoch_length", "_experts")
    PARTS: ClassVar[tuple[str, ...]] = ("_experts",)
    options: Options
    _experts: Any

    def __init__(self, domain: Domain, horizon: Any, lipschitz: Any, **options: Any) -> None:
        super().__init__(domain)
        self.options = make_options(domain, horizon, lipschitz, **options)
        self._begin(next(epochs(self.options.horizon, 0)), domain.origin())

    @property
    def lipschitz(self) -> float:
        """G: the larger of what was given and the largest gradient norm seen."""
        return max(self.options.lipschitz or 0.0, self._experts.largest_gradient)

    def check_state(self) -> None:
        super().check_state()
        *_, epoch = epochs(self.options.horizon, self.t)
        require((self._epoch_start, self._epoch_length) == epoch[:2], "epochs and rounds")

    def _next_round(self) -> None:
        """Count a round, and start the next epoch where one ends."""
        self.t += 1
        if self.options.horizon is None and self.t == self._epoch_start + self._epoch_length:
            self._begin(Epoch(self.t, 2 * self._epoch_length, 0), self._restart_point())

    def _begin(self, epoch: Epoch, start: Point) -> None:
        self._epoch_start, self._epoch_length = epoch.start, epoch.horizon
        self._experts = self._make_experts(epoch.horizon, start)

    def _make_experts(self, horizon: int, start: Point) -> Any:
        experts = descent(self._counted, self.options.oracle, self.options.step_scale)
        if self.t:
            experts.take_over(self._experts)
        experts.add(start, self._plans(horizon))
        return experts

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        if tau is not None:
            return None
        played = (epoch for epoch in epochs(self.options.horizon, self.t) if epoch.rounds)
        return sum((self._epoch_bound(epoch, path_length) for epoch in played), 0.0)

    def _expert_bound(self, plan: Plan, epoch: Epoch, path_length: float) -> float:
        start = bounds.ANYWHERE if epoch.start else bounds.AT_CENTER
        return self.options.expert_bound(
            plan, self._experts, self.lipschitz, epoch.rounds, path_length, start
        )

    @abstractmethod
    def _plans(self, horizon: int) -> Sequence[Plan]: ...

    @abstractmethod
    def _restart_point(self) -> Point: ...

    @abstractmethod
    def _epoch_bound(self, epoch: Epoch, path_length: float) -> float: ...

"""`EpochLearner`: parameters from a horizon, or from guesses that double."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from driftwolfe.domains import Domain
from driftwolfe.learners.base import Learner
from driftwolfe.learners.options import Options
from driftwolfe.points.kinds import Point
from driftwolfe.storage.state import require

#: Rounds of the first epoch where the horizon is not known.
FIRST_EPOCH = 64


class EpochLearner(Learner):
    """A learner whose parameters come from a horizon T.

    With ``horizon=None`` it runs in epochs of 64, 128, 256, ... rounds, each with the parameters
    of its own length and starting where the last one ended. Played beyond a given horizon, it goes
    on with the same parameters; the bound then grows with the rounds.
    """

    STATE: ClassVar[tuple[str, ...]] = ("_epoch_start", "_epoch_length")

    def __init__(self, domain: Domain, options: Options) -> None:
        super().__init__(domain)
        self.options = options
        self._epoch_start = 0
        self._epoch_length = options.horizon or FIRST_EPOCH
        self._begin(self._epoch_length, domain.origin())

    def check_state(self) -> None:
        """As `Learner.check_state`; rounds of an epoch that is under way."""
        super().check_state()
        start, length = 0, self.options.horizon or FIRST_EPOCH
        while self.options.horizon is None and self.t >= start + length:
            start, length = start + length, 2 * length
        require((self._epoch_start, self._epoch_length) == (start, length), "epochs and rounds")

    @property
    def lmo_budget(self) -> float | None:
        """Linear minimisations a round, for all experts together; None for no limit."""
        return self.options.oracle.budget

    @property
    def lipschitz(self) -> float:
        """G: the larger of what was given and the largest gradient norm seen."""
        return max(self.options.lipschitz or 0.0, self._largest_gradient())

    def _rounds_left(self) -> int | None:
        """Rounds until the epoch ends; None where there is only one."""
        if self.options.horizon is not None:
            return None
        return self._epoch_start + self._epoch_length - self.t

    def _advance(self) -> None:
        """Count a round, and start the next epoch where one ends."""
        self.t += 1
        if self.options.horizon is None and self.t - self._epoch_start == self._epoch_length:
            start = self._restart_point()
            self._epoch_start, self._epoch_length = self.t, 2 * self._epoch_length
            self._begin(self._epoch_length, start)

    def _epochs(self) -> Iterator[tuple[int, int, bool]]:
        """Horizon, rounds played, and whether it is the first, for every epoch so far."""
        length = self.options.horizon or FIRST_EPOCH
        start, first = 0, True
        while start < self.t:
            rounds = self.t - start if self.options.horizon else min(length, self.t - start)
            yield length, rounds, first
            start, length, first = start + rounds, 2 * length, False

    @abstractmethod
    def _begin(self, horizon: int, start: Point) -> None:
        """Set up for an epoch of that length from a feasible point."""

    @abstractmethod
    def _restart_point(self) -> Point:
        """Where the next epoch starts."""

    @abstractmethod
    def _largest_gradient(self) -> float:
        """The largest gradient norm seen."""

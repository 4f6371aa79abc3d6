"""`SinglePointLearner`: learners that hold one feasible point."""

from __future__ import annotations

from typing import Any, ClassVar

from driftwolfe.domains import Domain
from driftwolfe.domains.saved_points import require_feasible
from driftwolfe.ensemble.scores import require_finite
from driftwolfe.learners.base import Learner, as_loss
from driftwolfe.points.kinds import Point


class SinglePointLearner(Learner):
    """Holds a feasible point x and plays it."""

    STATE: ClassVar[tuple[str, ...]] = ("_x",)

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain)
        self._x = domain.origin()

    def check_state(self) -> None:
        """As `Learner.check_state`; the point lies in the set."""
        super().check_state()
        require_feasible(self.domain, [self._x])

    @property
    def decision(self) -> Point:
        """The feasible point x."""
        return self._x.copy()

    def _look(self, loss: Any) -> tuple[float, Point]:
        """What the loss costs at x, and a gradient there."""
        f = as_loss(loss)
        value, slope = f.value_and_slope_at(f.scores(self._x))
        require_finite(value, slope)
        return float(value), f.pull_back(slope, self._x)

    def _move(self, vertex: Point, share: float) -> None:
        """Go a share of the way to a vertex, from 0 to 1; all of it leaves nothing of x behind."""
        self._x = (1.0 - share) * self._x + share * vertex if share < 1.0 else vertex.copy()

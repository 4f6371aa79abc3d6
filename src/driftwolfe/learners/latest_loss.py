"""`LatestLossLearner`: Frank-Wolfe steps on the loss just seen."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from driftwolfe.domains import Domain
from driftwolfe.ensemble.scores import require_finite
from driftwolfe.learners.base import as_loss
from driftwolfe.learners.single_point import SinglePointLearner
from driftwolfe.points import checks
from driftwolfe.points.kinds import Point

#: More steps on one loss than that are a mistake, and a round would not end.
MOST_STEPS = 10_000


class LatestLossLearner(SinglePointLearner):
    """Takes one or several Frank-Wolfe steps on the latest loss; a named one says how long."""

    def __init__(self, domain: Domain, inner_steps: int) -> None:
        super().__init__(domain)
        self.inner_steps = checks.count(inner_steps, "inner_steps", most=MOST_STEPS)

    def update(self, loss: Any) -> float:
        """Play x, then step towards the vertex that the loss points at."""
        f = as_loss(loss)
        before = self._x
        value, slope = f.value_and_slope_at(f.scores(self._x))
        require_finite(value, slope)
        try:
            for step in range(self.inner_steps):
                if step:
                    slope = f.slope_at(f.scores(self._x))
                gradient = f.pull_back(slope, self._x)
                vertex = self._counted.lmo(gradient)
                self._move(vertex, self._share(gradient, vertex))
        except Exception:
            self._x = before
            raise
        self.t += 1
        return float(value)

    @abstractmethod
    def _share(self, gradient: Point, vertex: Point) -> float:
        """How much of the way to the vertex to go."""

"""`SinglePointLearner`: learners that hold one feasible point and move it towards vertices."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.learners.base import Learner
from driftwolfe.losses import Loss
from driftwolfe.points import FactoredMatrix
from driftwolfe.points.kinds import Point

#: Columns that a factored point may gain before it is recompressed.
_SLACK_COLUMNS = 40


class SinglePointLearner(Learner):
    """Holds a feasible point x; a move is a convex combination with a vertex."""

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain)
        self._x = domain.origin()

    @property
    def decision(self) -> Point:
        """The feasible point x."""
        return self._x.copy()

    def _pull_back(self, loss: Loss, slope: Any) -> Point:
        gradient = loss.pull_back(slope, self._x)
        if isinstance(self._x, FactoredMatrix) and isinstance(gradient, np.ndarray):
            return FactoredMatrix.from_stored(gradient)
        return gradient

    def _move(self, vertex: Point, share: float) -> None:
        self._x = (1.0 - share) * self._x + share * vertex
        if isinstance(self._x, FactoredMatrix) and self._x.rank > _SLACK_COLUMNS + min(
            self.domain.shape
        ):
            self._x = self._x.recompress()

"""`BallExperts`: gradient descent on the ball around a set, with several steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.domains.saved_points import in_ball, require_kind
from driftwolfe.ensemble.scores import weighted_sum
from driftwolfe.points import FactoredMatrix, clip_to_ball, inner
from driftwolfe.points.kinds import Array, Point
from driftwolfe.points.ops import trimmed
from driftwolfe.storage.state import require

#: Columns from which a factored point is rid of those that it does not need.
_COLUMNS = 65


class BallExperts:
    r"""Experts :math:`y_i \leftarrow P(y_i - \eta_i g)`, P the projection on the ball that holds the set.

    They never ask the set anything: a step costs a vector operation.

    Parameters
    ----------
    domain
        The set; its ball has the centre c and the radius R.
    steps
        Their steps, relative to each other.
    start
        Where all start, in the ball.

    Attributes
    ----------
    points
        The :math:`y_i`.
    """

    STATE: ClassVar[tuple[str, ...]] = ("steps", "points")

    def __init__(self, domain: Domain, steps: Array, start: Point) -> None:
        self.domain = domain
        self.steps = steps
        self.points: list[Point] = [start] * steps.size

    def check_state(self) -> None:
        """Refuse a state, read from a file, whose parts do not fit together."""
        require(len(self.points) == self.steps.size, "experts")
        require((self.steps > 0.0).all(), "steps of experts")
        require_kind(self.domain, self.points, "points of experts")
        require(all(in_ball(self.domain, point) for point in self.points), "points of experts")

    def losses(self, gradient: Point) -> Array:
        """What a linear loss costs each of them."""
        return np.array([inner(gradient, point) for point in self.points])

    def moved(self, gradient: Point, scale: float) -> list[Point]:
        """Where a gradient leads them, with steps of `scale` times their own."""
        center, radius = self.domain.center, self.domain.radius
        ends = (y + (-scale * h) * gradient for h, y in zip(self.steps, self.points, strict=True))
        inside = (trimmed(clip_to_ball(end, center, radius), _COLUMNS) for end in ends)
        # Entries of one gradient would be shared, which no file could tell.
        return [y.copy() if isinstance(y, FactoredMatrix) else y for y in inside]


def combined(weights: Array, points: Sequence[Point]) -> Point:
    """The weighted mean of points in the ball."""
    return trimmed(weighted_sum(weights, points), _COLUMNS)

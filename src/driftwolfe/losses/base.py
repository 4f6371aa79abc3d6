"""`Loss`: a convex function of a point, seen through a linear map."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from driftwolfe.points.kinds import Array, Point


class Loss(ABC):
    r"""A convex loss :math:`f(x) = \varphi(A x)` with A linear.

    Every loss here looks at the point through a linear map: some entries of a matrix, scores of
    some rows, one inner product, or the point itself. Splitting it there lets an ensemble look once
    per expert and combine the looks: :math:`A \sum_i w_i x_i = \sum_i w_i A x_i`.

    A new loss overrides `scores`, `value_at`, `slope_at` and `pull_back`. Input is checked when the
    loss is made; `value`, `gradient` and `value_and_gradient` check the shape of x.
    """

    @abstractmethod
    def scores(self, x: Point) -> Array:
        """Return A x, what this loss sees of the point."""

    @abstractmethod
    def value_at(self, scores: Array) -> Array:
        """Return phi of scores; leading axes, one per stacked point, are kept."""

    @abstractmethod
    def slope_at(self, scores: Array) -> Array:
        """Return a (sub)gradient of phi at scores, of the same shape; leading axes are kept."""

    @abstractmethod
    def pull_back(self, slope: Array, like: Point) -> Point:
        """Return A^T slope, a gradient of the same kind of point as `like`."""

    def stacked_scores(self, stack: Array) -> Array:
        """Return A x for every dense point x of a stack (first axis: the points)."""
        return np.stack([self.scores(x) for x in stack])

    def stacked_pull_back(self, slopes: Array, stack: Array) -> Array:
        """Return A^T slope for every slope of a stack, as dense points like those of `stack`."""
        return np.stack([self.pull_back(s, x) for s, x in zip(slopes, stack, strict=True)])

    def value(self, x: Point) -> float:
        """Return f(x)."""
        return float(self.value_at(self.scores(x)))

    def gradient(self, x: Point) -> Point:
        """Return a (sub)gradient of f at x."""
        return self.pull_back(self.slope_at(self.scores(x)), x)

    def value_and_gradient(self, x: Point) -> tuple[float, Point]:
        """Return f(x) and a (sub)gradient at x, looking at x once."""
        scores = self.scores(x)
        return float(self.value_at(scores)), self.pull_back(self.slope_at(scores), x)

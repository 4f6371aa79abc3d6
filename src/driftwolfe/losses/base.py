"""`Loss`: a convex function of linear scores of the decision."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np

from driftwolfe.points import checks
from driftwolfe.points.devices import device_of
from driftwolfe.points.kinds import Array, Point, Shape


class Ball(Protocol):
    """A ball that holds a set: its centre (None for 0) and radius. Every `Domain` is one."""

    @property
    def center(self) -> Point | None: ...
    @property
    def radius(self) -> float: ...


class Loss(ABC):
    r"""A convex loss :math:`f(x) = \varphi(A x)` with A linear.

    The scores A x are some entries of a matrix, products with some rows, one inner product, or the
    point itself. An ensemble computes them once per expert and combines them:
    :math:`A \sum_i w_i x_i = \sum_i w_i A x_i`.

    A new loss overrides `scores`, `value_at`, `slope_at` and `pull_back`; where it can say more,
    also `shape` or `check_shape` and `lipschitz`; for speed, `value_and_slope_at` and the methods
    for stacks. Check input in the constructor, and the shape of a point in `scores`.

    Examples
    --------
    The square of the first coordinate, as a new loss:

    >>> import numpy as np, driftwolfe as dw
    >>> class SquaredFirst(dw.losses.Loss):
    ...     def scores(self, x):
    ...         return x[:1]
    ...     def value_at(self, scores):
    ...         return scores[..., 0] ** 2
    ...     def slope_at(self, scores):
    ...         return 2.0 * scores
    ...     def pull_back(self, slope, like):
    ...         return np.pad(slope, (0, like.size - 1))
    >>> SquaredFirst().value_and_gradient(np.array([3.0, 1.0]))
    (9.0, array([6., 0.]))
    """

    #: Shape of the points, where the loss fixes it.
    shape: Shape | None = None
    #: Name of the class of sets it is for, where it may be infinite elsewhere.
    only_on: str = ""
    #: Whether the methods for stacks take tensors of a device; if not, they are given arrays.
    on_devices: bool = False

    @abstractmethod
    def scores(self, x: Point) -> Array:
        """Return A x."""

    @abstractmethod
    def value_at(self, scores: Array) -> Array:
        """Return phi of scores; leading axes, one per stacked point, are kept."""

    @abstractmethod
    def slope_at(self, scores: Array) -> Array:
        """Return a (sub)gradient of phi at scores, of the same shape."""

    @abstractmethod
    def pull_back(self, slope: Array, like: Point) -> Point:
        """Return A^T slope, a gradient of the same kind of point as `like`."""

    def value_and_slope_at(self, scores: Array) -> tuple[Array, Array]:
        """Return phi and its slope at scores; override it where they share work."""
        return self.value_at(scores), self.slope_at(scores)

    def stacked_scores(self, stack: Array) -> Array:
        """Return A x for every dense point x of a stack (first axis: the points)."""
        return np.stack([self.scores(x) for x in stack])

    def stacked_pull_back(self, slopes: Array, stack: Array) -> Array:
        """Return A^T slope for every slope, as dense points like those of `stack`."""
        return np.stack([self.pull_back(s, x) for s, x in zip(slopes, stack, strict=True)])

    def stacked_round(self, stack: Array, weights: Array) -> tuple[Array, Array, float]:
        """Return the values and gradients at stacked points, and the value at their weighted mean."""
        scores = self.stacked_scores(stack)
        values, slopes = self.value_and_slope_at(scores)
        flat = scores.reshape(len(scores), -1)
        mean = (device_of(scores).put(weights) @ flat).reshape(scores.shape[1:])
        return values, self.stacked_pull_back(slopes, stack), float(self.value_at(mean))

    def value(self, x: Point) -> float:
        """Return f(x), in units of the loss."""
        return float(self.value_at(self.scores(checks.as_point(x))))

    def gradient(self, x: Point) -> Point:
        """Return a (sub)gradient of f at x."""
        point = checks.as_point(x)
        return self.pull_back(self.slope_at(self.scores(point)), point)

    def value_and_gradient(self, x: Point) -> tuple[float, Point]:
        """Return f(x) and a (sub)gradient at x, from the same scores."""
        point = checks.as_point(x)
        value, slope = self.value_and_slope_at(self.scores(point))
        return float(value), self.pull_back(slope, point)

    def lipschitz(self, domain: Ball) -> float | None:
        """Return a bound on the gradient norms over a set, or None where none is known.

        In units of the loss over those of the points; `domain` needs only a centre and a radius.
        """
        return None

    def check_shape(self, shape: Shape) -> None:
        """Raise `ValueError` unless this loss takes points of that shape."""
        if self.shape is not None and shape != self.shape:
            raise ValueError(
                f"{type(self).__name__} takes points of shape {self.shape}, got {shape}"
            )

"""The squared distance to a point."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftwolfe.losses.base import Ball, Loss
from driftwolfe.losses.fixed_point import FixedPoint
from driftwolfe.points import checks, ops
from driftwolfe.points.compiled import compiled
from driftwolfe.points.devices import is_array, namespace
from driftwolfe.points.kinds import Array, Point

kernels = compiled("driftwolfe.losses.distance_kernels")


class SquaredDistance(Loss):
    r""":math:`f(x) = w \lVert x - z\rVert^2`, with gradient :math:`2 w (x - z)`.

    Parameters
    ----------
    target
        The point z: an array of any shape, or a `FactoredMatrix`.
    weight
        The factor w > 0, in units of the loss over squared units of x.

    Examples
    --------
    >>> from driftwolfe.losses import SquaredDistance
    >>> SquaredDistance([1.0, 2.0]).value_and_gradient([0.0, 0.0])
    (2.5, array([-1., -2.]))
    """

    on_devices = True

    def __init__(self, target: Any, weight: float = 0.5) -> None:
        self._target = FixedPoint(target, "target")
        self.shape = self._target.shape
        self.weight = checks.positive(weight, "weight")

    @property
    def target(self) -> Point:
        """The target, as it was given."""
        return self._target.given

    def scores(self, x: Point) -> Point:
        """Return x itself."""
        self.check_shape(x.shape)
        return x

    def value_at(self, scores: Point) -> Array:
        """Return the weighted squared distance."""
        return self._value(scores - self._like(scores))

    def slope_at(self, scores: Point) -> Point:
        """Return the gradient."""
        return (scores - self._like(scores)) * (2.0 * self.weight)

    def value_and_slope_at(self, scores: Point) -> tuple[Array, Point]:
        """Return both from one offset."""
        offset = scores - self._like(scores)
        value = self._value(offset)
        if self.weight != 0.5:
            offset *= 2.0 * self.weight
        return value, offset

    def pull_back(self, slope: Point, like: Point) -> Point:
        """Return the slope itself."""
        return slope

    def stacked_round(self, stack: Any, weights: Array) -> tuple[Array, Array, float]:
        """Return values and gradients at a stack of points, and the value at their mean."""
        self.check_shape(tuple(stack.shape[1:]))
        if not isinstance(stack, np.ndarray):
            return super().stacked_round(stack, weights)
        points, target = stack.reshape(len(stack), -1), self._target.dense.ravel()
        values, gradients = np.empty(len(stack)), np.empty(points.shape)
        value = kernels().squared_distances(points, target, weights, self.weight, values, gradients)
        return values, gradients.reshape(stack.shape), value

    def stacked_scores(self, stack: Array) -> Array:
        """Return the stack itself."""
        self.check_shape(tuple(stack.shape[1:]))
        return stack

    def stacked_pull_back(self, slopes: Array, stack: Array) -> Array:
        """Return the slopes themselves."""
        return slopes

    def _like(self, scores: Point) -> Point:
        if is_array(scores) and not isinstance(scores, np.ndarray):
            return self._target.stacked_like(scores)
        return self._target.like(scores)

    def _value(self, offset: Point) -> Array:
        if is_array(offset):
            leading = offset.shape[: offset.ndim - len(self._target.shape)]
            flat = offset.reshape(*leading, -1)
            return self.weight * namespace(flat).linalg.vecdot(flat, flat)
        return np.asarray(self.weight * ops.norm(offset) ** 2)

    def lipschitz(self, domain: Ball) -> float:
        r"""Return :math:`2 w (R + \lVert z - c\rVert)`, R the radius and c the centre."""
        center = domain.center
        offset = ops.norm(self.target if center is None else self.target - center)
        return 2.0 * self.weight * (domain.radius + offset)

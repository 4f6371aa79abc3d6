"""A linear loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftwolfe.losses.base import Ball, Loss
from driftwolfe.losses.fixed_point import FixedPoint
from driftwolfe.points import checks, ops
from driftwolfe.points.devices import namespace
from driftwolfe.points.kinds import Array, Point


class LinearLoss(Loss):
    r""":math:`f(x) = \langle g, x\rangle + b`, with gradient g everywhere.

    Parameters
    ----------
    g
        The gradient: an array of any shape, or a `FactoredMatrix`.
    constant
        The number b, in units of the loss.

    Examples
    --------
    >>> from driftwolfe.losses import LinearLoss
    >>> loss = LinearLoss([1.0, -2.0], constant=0.5)
    >>> loss.value([3.0, 1.0])
    1.5
    >>> loss.gradient([3.0, 1.0])
    array([ 1., -2.])
    """

    on_devices = True

    def __init__(self, g: Any, constant: float = 0.0) -> None:
        self._g = FixedPoint(g, "g")
        self.shape = self._g.shape
        self.constant = float(checks.finite_array(constant, "constant", ()))

    @property
    def g(self) -> Point:
        """The gradient, as it was given."""
        return self._g.given

    def scores(self, x: Point) -> Array:
        """Return <g, x>, an array without axes."""
        self.check_shape(x.shape)
        return np.asarray(ops.inner(self._g.given, x))

    def value_at(self, scores: Array) -> Array:
        """Return scores plus the constant."""
        return scores + self.constant

    def slope_at(self, scores: Array) -> Array:
        """Return 1."""
        return namespace(scores).ones_like(scores)

    def pull_back(self, slope: Array, like: Point) -> Point:
        """Return g times a number."""
        return self._g.like(like) * float(slope)

    def stacked_scores(self, stack: Array) -> Array:
        """Return <g, x> for every point of a stack."""
        self.check_shape(tuple(stack.shape[1:]))
        scores: Array = stack.reshape(len(stack), -1) @ self._g.stacked_like(stack).ravel()
        return scores

    def stacked_pull_back(self, slopes: Array, stack: Array) -> Array:
        """Return g times every slope."""
        g = self._g.stacked_like(stack)
        return slopes.reshape(-1, *(1 for _ in g.shape)) * g

    def lipschitz(self, domain: Ball) -> float:
        """Return the norm of g."""
        return ops.norm(self.g)

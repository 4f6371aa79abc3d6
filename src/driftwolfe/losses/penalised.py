"""A loss with a penalty for a violated constraint."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftwolfe.losses.base import Ball, Loss
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Point, Shape


class Penalised(Loss):
    r""":math:`f(x) + w \max(g(x), 0)`: a loss and the violation of a constraint :math:`g(x) \le 0`.

    Parameters
    ----------
    loss, constraint
        The convex functions f and g, both losses of this library.
    weight
        The number w >= 0, in units of f over those of g.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> f, g = dw.losses.LinearLoss([1.0, 0.0]), dw.losses.LinearLoss([0.0, 1.0], constant=-1.0)
    >>> loss = dw.losses.Penalised(f, g, weight=10.0)
    >>> loss.value([2.0, 0.5]), loss.value_and_gradient([2.0, 1.5])
    (2.0, (7.0, array([ 1., 10.])))
    """

    def __init__(self, loss: Loss, constraint: Loss, weight: float = 1.0) -> None:
        for name, given in (("loss", loss), ("constraint", constraint)):
            if not isinstance(given, Loss):
                raise TypeError(f"{name} must be a Loss, got {type(given).__name__}")
        self.loss, self.constraint = loss, constraint
        self.weight = checks.nonnegative(weight, "weight")
        self.shape = constraint.shape if loss.shape is None else loss.shape
        self._shapes: tuple[Shape, Shape] | None = None  # of both scores; None: those are points

    def check_shape(self, shape: Shape) -> None:
        """Raise `ValueError` unless both take points of that shape."""
        self.loss.check_shape(shape)
        self.constraint.check_shape(shape)

    def scores(self, x: Point) -> Any:
        """The scores of both, end to end; the point itself where they are no arrays."""
        parts = self.loss.scores(x), self.constraint.scores(x)
        if not all(isinstance(part, np.ndarray | np.generic) for part in parts):
            self._shapes = None
            return x
        self._shapes = np.shape(parts[0]), np.shape(parts[1])
        return np.concatenate([np.ravel(part) for part in parts])

    def stacked_scores(self, stack: Array) -> Array:
        parts = self.loss.stacked_scores(stack), self.constraint.stacked_scores(stack)
        self._shapes = parts[0].shape[1:], parts[1].shape[1:]
        return np.concatenate([part.reshape(len(stack), -1) for part in parts], axis=1)

    def value_at(self, scores: Any) -> Array:
        own, of_constraint = self._parts(scores)
        violation = np.maximum(self.constraint.value_at(of_constraint), 0.0)
        return self.loss.value_at(own) + self.weight * violation

    def slope_at(self, scores: Any) -> Any:
        return self.value_and_slope_at(scores)[1]

    def value_and_slope_at(self, scores: Any) -> tuple[Array, Any]:
        own, of_constraint = self._parts(scores)
        value, slope = self.loss.value_and_slope_at(own)
        excess, normal = self.constraint.value_and_slope_at(of_constraint)
        factor = self.weight * (np.asarray(excess) > 0.0)
        total = value + self.weight * np.maximum(excess, 0.0)
        if self._shapes is None:
            first = self.loss.pull_back(slope, scores)
            return total, first + float(factor) * self.constraint.pull_back(normal, scores)
        leading, axes = scores.shape[:-1], (1,) * len(self._shapes[1])
        slopes = slope, factor.reshape((*leading, *axes)) * normal
        flat = [np.reshape(part, (*leading, -1)) for part in slopes]
        return total, np.concatenate(flat, axis=-1)

    def pull_back(self, slope: Any, like: Point) -> Point:
        if self._shapes is None:
            return slope
        own, normal = self._parts(slope)
        gradient = self.loss.pull_back(own, like)
        return gradient + self.constraint.pull_back(normal, like) if normal.any() else gradient

    def stacked_pull_back(self, slopes: Array, stack: Array) -> Array:
        own, normals = self._parts(slopes)
        gradients = self.loss.stacked_pull_back(own, stack)
        return gradients + self.constraint.stacked_pull_back(normals, stack)

    def lipschitz(self, domain: Ball) -> float | None:
        own, other = self.loss.lipschitz(domain), self.constraint.lipschitz(domain)
        return None if own is None or other is None else own + self.weight * other

    def _parts(self, scores: Any) -> tuple[Any, Any]:
        """The scores, or slopes, of the loss and of the constraint."""
        if self._shapes is None:
            return self.loss.scores(scores), self.constraint.scores(scores)
        first, second = self._shapes
        leading, cut = scores.shape[:-1], math.prod(first)
        own, other = scores[..., :cut], scores[..., cut:]
        return own.reshape((*leading, *first)), other.reshape((*leading, *second))

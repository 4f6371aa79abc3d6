"""Linear losses and squared distances."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from driftwolfe.losses.base import Ball, DeviceCache, Loss
from driftwolfe.losses.inputs import read_only
from driftwolfe.points import checks, ops
from driftwolfe.points.compiled import compiled
from driftwolfe.points.devices import device_of, is_array, namespace, to_host
from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.kinds import Array, Point, Shape

kernels = compiled("driftwolfe.losses.loss_kernels")


class FixedPoint:
    """A point given by the user: a finite array, which is copied, or a `FactoredMatrix`.

    It is converted to the other kind, or copied to a device, at most once.
    """

    def __init__(self, value: Any, name: str) -> None:
        self.given: Point = value
        if not isinstance(value, FactoredMatrix):
            self.given = read_only(checks.finite_array(to_host(value), name))
        self.shape: Shape = self.given.shape

    def like(self, point: Point) -> Point:
        """Return the point as the kind that `point` is."""
        return self.factored if isinstance(point, FactoredMatrix) else self.dense

    def stacked_like(self, stack: Any) -> Any:
        """Return the point as an array on the device of a stack."""
        return self._cache.on(device_of(stack))[0]

    @cached_property
    def _cache(self) -> DeviceCache:
        return DeviceCache(self.dense)

    @cached_property
    def dense(self) -> Array:
        """The point as an array."""
        is_factored = isinstance(self.given, FactoredMatrix)
        array: Array = read_only(self.given.toarray()) if is_factored else self.given
        return array

    @cached_property
    def factored(self) -> FactoredMatrix:
        """The point as a `FactoredMatrix`; an array becomes its sparse part, which is exact."""
        if isinstance(self.given, FactoredMatrix):
            return self.given
        rows, cols = np.nonzero(self.dense)
        return FactoredMatrix.from_entries(self.shape, rows, cols, self.dense[rows, cols])


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
    >>> import driftwolfe as dw
    >>> dw.losses.LinearLoss([1.0, -2.0], constant=0.5).value_and_gradient([3.0, 1.0])
    (1.5, array([ 1., -2.]))
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
        """Return <g, x>, an array of shape ()."""
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


class WholePointLoss(Loss):
    """A loss whose scores are the point itself."""

    def scores(self, x: Point) -> Point:
        """Return x itself."""
        self.check_shape(x.shape)
        return x

    def pull_back(self, slope: Point, like: Point) -> Point:
        """Return the slope itself."""
        return slope

    def stacked_scores(self, stack: Array) -> Array:
        """Return the stack itself."""
        self.check_shape(tuple(stack.shape[1:]))
        return stack

    def stacked_pull_back(self, slopes: Array, stack: Array) -> Array:
        """Return the slopes themselves."""
        return slopes


class SquaredDistance(WholePointLoss):
    r""":math:`f(x) = w \lVert x - z\rVert^2`, with gradient :math:`2 w (x - z)`.

    Parameters
    ----------
    target
        The point z: an array of any shape, or a `FactoredMatrix`.
    weight
        The factor w > 0, in units of the loss over squared units of x.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> dw.losses.SquaredDistance([1.0, 2.0]).value_and_gradient([0.0, 0.0])
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

    def value_at(self, scores: Point) -> Array:
        """Return the weighted squared distance."""
        return self._value(self._offset(scores))

    def slope_at(self, scores: Point) -> Point:
        """Return the gradient."""
        return self._offset(scores) * (2.0 * self.weight)

    def value_and_slope_at(self, scores: Point) -> tuple[Array, Point]:
        """Return both from one offset."""
        offset = self._offset(scores)
        value = self._value(offset)
        if self.weight != 0.5:
            offset *= 2.0 * self.weight
        return value, offset

    def stacked_round(self, stack: Any, weights: Array) -> tuple[Array, Array, float]:
        """Return values and gradients at a stack of points, and the value at their mean."""
        self.check_shape(tuple(stack.shape[1:]))
        if not isinstance(stack, np.ndarray):
            return super().stacked_round(stack, weights)
        points, target = stack.reshape(len(stack), -1), self._target.dense.ravel()
        values, gradients = np.empty(len(stack)), np.empty(points.shape)
        value = kernels().squared_distances(points, target, weights, self.weight, values, gradients)
        return values, gradients.reshape(stack.shape), value

    def lipschitz(self, domain: Ball) -> float:
        r"""Return :math:`2 w (R + \lVert z - c\rVert)`, R the radius and c the centre."""
        center = domain.center
        offset = ops.norm(self.target if center is None else self.target - center)
        return 2.0 * self.weight * (domain.radius + offset)

    def _offset(self, scores: Point) -> Point:
        if is_array(scores) and not isinstance(scores, np.ndarray):
            return scores - self._target.stacked_like(scores)
        return scores - self._target.like(scores)

    def _value(self, offset: Point) -> Array:
        if not is_array(offset):
            return np.asarray(self.weight * ops.norm(offset) ** 2)
        leading = offset.shape[: offset.ndim - len(self._target.shape)]
        flat = offset.reshape(*leading, -1)
        return self.weight * namespace(flat).linalg.vecdot(flat, flat)

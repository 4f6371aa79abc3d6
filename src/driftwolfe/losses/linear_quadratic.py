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
    """A point given by the user, converted to other kinds or copied to a device at most once."""

    def __init__(self, value: Any, name: str) -> None:
        self.given: Point = value
        if not isinstance(value, FactoredMatrix):
            self.given = read_only(checks.finite_array(to_host(value), name))
        self.shape: Shape = self.given.shape

    def like(self, point: Point) -> Point:
        """Return the point as the kind that `point` is: factored, or an array on its device."""
        if isinstance(point, FactoredMatrix):
            return self._factored
        return self._dense.on(device_of(point))[0]

    @cached_property
    def _dense(self) -> DeviceCache:
        given = self.given
        return DeviceCache(
            read_only(given.toarray()) if isinstance(given, FactoredMatrix) else given
        )

    @cached_property
    def _factored(self) -> FactoredMatrix:
        """An array becomes the sparse part, which is exact."""
        if isinstance(self.given, FactoredMatrix):
            return self.given
        rows, cols = np.nonzero(self.given)
        return FactoredMatrix.from_entries(self.shape, rows, cols, self.given[rows, cols])


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
        self.g, self.shape = self._g.given, self._g.shape
        self.constant = float(checks.finite_array(constant, "constant", ()))

    def scores(self, x: Point) -> Array:
        self.check_shape(x.shape)
        return np.asarray(ops.inner(self.g, x))

    def value_at(self, scores: Array) -> Array:
        return scores + self.constant

    def slope_at(self, scores: Array) -> Array:
        return namespace(scores).ones_like(scores)

    def pull_back(self, slope: Array, like: Point) -> Point:
        return self._g.like(like) * float(slope)

    def stacked_scores(self, stack: Array) -> Array:
        self.check_shape(tuple(stack.shape[1:]))
        return stack.reshape(len(stack), -1) @ self._g.like(stack).ravel()

    def stacked_pull_back(self, slopes: Array, stack: Array) -> Array:
        g = self._g.like(stack)
        return slopes.reshape(-1, *(1 for _ in g.shape)) * g

    def lipschitz(self, domain: Ball) -> float:
        return ops.norm(self.g)


class WholePointLoss(Loss):
    """A loss whose scores are the point itself."""

    def scores(self, x: Point) -> Point:
        self.check_shape(x.shape)
        return x

    def pull_back(self, slope: Point, like: Point) -> Point:
        return slope

    def stacked_scores(self, stack: Array) -> Array:
        self.check_shape(tuple(stack.shape[1:]))
        return stack

    def stacked_pull_back(self, slopes: Array, stack: Array) -> Array:
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
        self.target, self.shape = self._target.given, self._target.shape
        self.weight = checks.positive(weight, "weight")

    def value_at(self, scores: Point) -> Array:
        return self._value(scores - self._target.like(scores))

    def slope_at(self, scores: Point) -> Point:
        return (scores - self._target.like(scores)) * (2.0 * self.weight)

    def value_and_slope_at(self, scores: Point) -> tuple[Array, Point]:
        offset = scores - self._target.like(scores)
        value = self._value(offset)
        if self.weight != 0.5:
            offset *= 2.0 * self.weight
        return value, offset

    def stacked_round(self, stack: Any, weights: Array) -> tuple[Array, Array, float]:
        self.check_shape(tuple(stack.shape[1:]))
        if not isinstance(stack, np.ndarray):
            return super().stacked_round(stack, weights)
        points, target = stack.reshape(len(stack), -1), self._target.like(stack).ravel()
        values, gradients = np.empty(len(stack)), np.empty(points.shape)
        value = kernels().squared_distances(points, target, weights, self.weight, values, gradients)
        return values, gradients.reshape(stack.shape), value

    def lipschitz(self, domain: Ball) -> float:
        r"""Return :math:`2 w (R + \lVert z - c\rVert)`, R the radius and c the centre."""
        center = domain.center
        offset = ops.norm(self.target if center is None else self.target - center)
        return 2.0 * self.weight * (domain.radius + offset)

    def _value(self, offset: Point) -> Array:
        if not is_array(offset):
            return np.asarray(self.weight * ops.norm(offset) ** 2)
        leading = offset.shape[: offset.ndim - len(self._target.shape)]
        flat = offset.reshape(*leading, -1)
        return self.weight * namespace(flat).linalg.vecdot(flat, flat)

"""`Loss`: a convex function that sees the decision through scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np

from driftwolfe.points import checks
from driftwolfe.points.devices import HOST, Device, device_of
from driftwolfe.points.kinds import Array, Point, Shape


class Copies:
    """Arrays and sparse matrices of the host, each brought to a device once.

    Parameters
    ----------
    own
        NumPy's arrays, and scipy's `csr_array`.
    """

    def __init__(self, *own: Any) -> None:
        self._own = own
        self._there: dict[str, tuple[Any, ...]] = {}

    def on(self, device: Device) -> tuple[Any, ...]:
        """Return them where points live."""
        if device is HOST:
            return self._own
        if device.name not in self._there:
            self._there[device.name] = tuple(_brought(each, device) for each in self._own)
        return self._there[device.name]


def _brought(own: Any, device: Device) -> Any:
    return device.canonical(own, own.shape) if hasattr(own, "tocsr") else device.put(own)


def products(points: Any, features: Copies) -> Array:
    """Return the inner products of points, the rows of a table, with all features, on the host."""
    device = device_of(points)
    (rows,) = features.on(device)
    if device is HOST:
        scores: Array = points @ rows.T
    else:
        scores = device.host(rows @ points.T).T
    return scores


def combinations(weights: Any, points: Any, features: Copies) -> Any:
    """Return the features, weighted and added up, for every row of weights, where points live."""
    device = device_of(points)
    return device.put(weights) @ features.on(device)[0]


class Ball(Protocol):
    """What a Lipschitz bound needs to know of a set: a ball around its centre that holds it."""

    @property
    def center(self) -> Point | None:
        """The centre c, or None for 0."""

    @property
    def radius(self) -> float:
        """A bound on the distance of any point of the set from the centre."""


class Loss(ABC):
    r"""A convex loss :math:`f(x) = \varphi(A x)` with A linear.

    Every loss here looks at the point through a linear map: some entries of a matrix, scores of
    some rows, one inner product, or the point itself. Splitting it there lets an ensemble look once
    per expert and combine the looks: :math:`A \sum_i w_i x_i = \sum_i w_i A x_i`.

    A new loss overrides `scores`, `value_at`, `slope_at` and `pull_back`; where it can say more,
    also `shape` or `check_shape` and `lipschitz`; for speed, `value_and_slope_at` and the methods
    for stacks. Input is checked when the loss is made; whatever looks at a point checks its shape
    first.

    Examples
    --------
    Squared values of one coordinate, as a loss of one's own:

    >>> import numpy as np, driftwolfe as dw
    >>> class SquaredFirst(dw.losses.Loss):
    ...     def scores(self, x):
    ...         return x[:1]
    ...
    ...     def value_at(self, scores):
    ...         return scores[..., 0] ** 2
    ...
    ...     def slope_at(self, scores):
    ...         return 2.0 * scores
    ...
    ...     def pull_back(self, slope, like):
    ...         return np.pad(slope, (0, like.size - 1))
    >>> SquaredFirst().value_and_gradient(np.array([3.0, 1.0]))
    (9.0, array([6., 0.]))
    """

    #: Shape of the points, where the loss fixes it.
    shape: Shape | None = None
    #: Whether the methods for stacks take tensors of a device; if not, they are given arrays.
    on_devices: bool = False

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

    def value_and_slope_at(self, scores: Array) -> tuple[Array, Array]:
        """Return phi and its slope at scores; a loss that can share their work does it once here."""
        return self.value_at(scores), self.slope_at(scores)

    def stacked_scores(self, stack: Array) -> Array:
        """Return A x for every dense point x of a stack (first axis: the points)."""
        return np.stack([self.scores(x) for x in stack])

    def stacked_pull_back(self, slopes: Array, stack: Array) -> Array:
        """Return A^T slope for every slope of a stack, as dense points like those of `stack`."""
        return np.stack([self.pull_back(s, x) for s, x in zip(slopes, stack, strict=True)])

    def stacked_round(self, stack: Array, weights: Array) -> tuple[Array, Array, float]:
        """Return values and gradients at a stack of dense points, and the value at their mean.

        What an ensemble asks in each round; the mean is that with its `weights`.
        """
        scores = self.stacked_scores(stack)
        values, slopes = self.value_and_slope_at(scores)
        device, flat = device_of(scores), scores.reshape(len(scores), -1)
        mean = weights.dot(flat) if device is HOST else device.put(weights) @ flat
        combined = mean.reshape(scores.shape[1:])
        return values, self.stacked_pull_back(slopes, stack), float(self.value_at(combined))

    def value(self, x: Point) -> float:
        """Return f(x), in units of the loss."""
        return float(self.value_at(self.scores(checks.as_point(x))))

    def gradient(self, x: Point) -> Point:
        """Return a (sub)gradient of f at x."""
        point = checks.as_point(x)
        return self.pull_back(self.slope_at(self.scores(point)), point)

    def value_and_gradient(self, x: Point) -> tuple[float, Point]:
        """Return f(x) and a (sub)gradient at x, looking at x once."""
        point = checks.as_point(x)
        value, slope = self.value_and_slope_at(self.scores(point))
        return float(value), self.pull_back(slope, point)

    def lipschitz(self, domain: Ball) -> float | None:
        """Return a bound on the gradient norms over a set, or None where none is known.

        In units of the loss over those of the points; `domain` is the set, or anything else with a
        centre and a radius.
        """
        return None

    def check_shape(self, shape: Shape) -> None:
        """Raise `ValueError` unless this loss can look at points of that shape."""
        if self.shape is not None and shape != self.shape:
            raise ValueError(
                f"{type(self).__name__} takes points of shape {self.shape}, got {shape}"
            )

"""`Loss`: a convex function of linear scores of the decision; its data: checked, read-only, cached per device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.points import checks
from driftwolfe.points.devices import HOST, device_named, device_of, namespace, to_host
from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.kinds import Array, Indices, Point, Shape

#: What norms of gradients, also times the diameter, must be below, for their squares and sums to be numbers.
LONGEST = 1e150


class Ball(Protocol):
    """A ball that holds a set: its centre (None for 0) and radius. Every `Domain` is one."""

    @property
    def center(self) -> Point | None: ...
    @property
    def radius(self) -> float: ...


class Block(NamedTuple):
    """Losses that are met at one point."""

    point: Point
    losses: Sequence[Any]
    slopes: bool = True  # whether gradients are asked for


class BlockSum(NamedTuple):
    """What a block comes to."""

    values: Array  # one for each loss
    gradient: Any  # the sum over the losses
    largest: float  # at least the norm of each gradient


class Loss(ABC):
    r"""A convex loss :math:`f(x) = \varphi(A x)` with A linear.

    An ensemble computes the scores A x once per expert, and combines them for the mean.

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
    #: Whether its gradients are known to be longer than learners can compute with.
    overflows: bool = False
    #: Whether it is evaluated elsewhere: then its `exchange` takes blocks, and sends all that they ask at once.
    remote: bool = False

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
        """Return a bound on the gradient norms over a set, or None where none is known."""
        return None

    def check_shape(self, shape: Shape) -> None:
        """Raise `ValueError` unless this loss takes points of that shape."""
        if self.shape is not None and shape != self.shape:
            raise ValueError(
                f"{type(self).__name__} takes points of shape {self.shape}, got {shape}"
            )


class OfErrors:
    """A function of errors, which a loss sums or takes the mean of."""

    def losses_of(self, errors: Array) -> Array:
        """Return the function of each error."""
        raise NotImplementedError

    def slopes_of(self, errors: Array) -> Array:
        """Return its slope at each error."""
        raise NotImplementedError


class Absolute(OfErrors):
    """Absolute errors."""

    def losses_of(self, errors: Array) -> Array:
        return abs(errors)

    def slopes_of(self, errors: Array) -> Array:
        return namespace(errors).sign(errors)


class Squared(OfErrors):
    """Squared errors, without a factor 1/2."""

    def losses_of(self, errors: Array) -> Array:
        return errors * errors

    def slopes_of(self, errors: Array) -> Array:
        return 2.0 * errors


class Huber(OfErrors):
    """Errors e as e^2/2 up to a width w, and as w|e| - w^2/2 beyond."""

    def _set_width(self, width: float) -> None:
        self.width = self.steepest = checks.positive(width, "width")

    def losses_of(self, errors: Array) -> Array:
        sizes = abs(errors)
        near = sizes.clip(None, self.width)
        return near * (sizes - 0.5 * near)

    def slopes_of(self, errors: Array) -> Array:
        return errors.clip(-self.width, self.width)


def batch_of_numbers(value: Any, name: str, size: int | None = None) -> Array:
    """Return a read-only copy of a non-empty vector of finite numbers."""
    array = checks.finite_array(to_host(value), name)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} must be a non-empty vector, got shape {array.shape}")
    if size is not None and array.size != size:
        raise ValueError(f"{name} must hold {size} numbers, got {array.size}")
    return read_only(array)


def batch_of_indices(value: Any, name: str, below: int = 2**53, size: int | None = None) -> Indices:
    """Return a read-only copy of a non-empty vector of indices, all less than `below`."""
    value = to_host(value)
    numbers = batch_of_numbers(value, name, size)
    strange = numbers[(numbers < 0) | (numbers != np.floor(numbers))]
    if strange.size or np.asarray(value).dtype.kind == "b":
        shown = f"{strange[0]:g}" if strange.size else "booleans"
        raise ValueError(f"{name} must be whole numbers >= 0, got {shown}")
    if numbers.max() >= below:
        raise ValueError(f"{name} must lie in 0..{below - 1}, got {numbers.max():.0f}")
    return read_only(numbers.astype(np.intp))


def batch_of_features(value: Any) -> Any:
    """Return a copy of a non-empty table (rows, features): a read-only array or a `csr_array`."""
    if hasattr(value, "tocsr"):
        value = checks.sound_sparse(value, "features")
        table = scipy.sparse.csr_array(value, dtype=np.float64, copy=True)
        if not np.isfinite(table.data).all():
            raise ValueError("features has entries that are not finite")
    else:
        table = read_only(checks.finite_array(value, "features"))
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"features must be a non-empty table (rows, features), got {table.shape}")
    return table


def row_norms(features: Any) -> Array:
    """Return the Euclidean norm of every row."""
    squares = features**2 if isinstance(features, np.ndarray) else features.power(2)
    return np.sqrt(squares.sum(axis=1), dtype=np.float64)


def dense_features(features: Any) -> Array:
    """Return the table as an array."""
    return features if isinstance(features, np.ndarray) else features.toarray()


def read_only(array: Any) -> Any:
    """Return a read-only copy, contiguous by rows."""
    copy = np.array(array, order="C")
    copy.setflags(write=False)
    return copy


class DeviceCache(dict[str, tuple[Any, ...]]):
    """A loss's data, NumPy arrays and scipy's `csr_array`, by the name of a device; copied there once."""

    def __init__(self, *data: Any) -> None:
        super().__init__({HOST.name: data})

    def __missing__(self, name: str) -> tuple[Any, ...]:
        device = device_named(name)
        self[name] = tuple(
            device.canonical(each, each.shape) if hasattr(each, "tocsr") else device.put(each)
            for each in self[HOST.name]
        )
        return self[name]


class FixedPoint:
    """A point given by the user, converted to other kinds or copied to a device at most once."""

    def __init__(self, value: Any, name: str) -> None:
        self.given: Point = value
        if not isinstance(value, FactoredMatrix):
            self.given = read_only(checks.finite_array(to_host(value), name))
        self.shape: Shape = self.given.shape

    @property
    def overflows(self) -> bool:
        """Whether its square is too large to be summed."""
        held = self.given
        return isinstance(held, np.ndarray) and not np.vdot(held, held) < LONGEST**2

    def like(self, point: Point) -> Point:
        """Return the point as the kind that `point` is: factored, or an array on its device."""
        if isinstance(point, np.ndarray) and isinstance(self.given, np.ndarray):
            return self.given
        if isinstance(point, FactoredMatrix):
            return self._factored
        return self._dense[device_of(point).name][0]

    @cached_property
    def _dense(self) -> DeviceCache:
        factored = isinstance(self.given, FactoredMatrix)
        return DeviceCache(read_only(self.given.toarray()) if factored else self.given)

    @cached_property
    def _factored(self) -> FactoredMatrix:
        if isinstance(self.given, FactoredMatrix):
            return self.given
        rows, cols = np.nonzero(self.given)  # as the sparse part, which is exact
        return FactoredMatrix.from_entries(self.shape, rows, cols, self.given[rows, cols])

"""Boxes and simplices: sets cut out of bounds on coordinates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftwolfe.domains.balls import load_kernels, threshold_to_sum
from driftwolfe.domains.base import LMO, Domain
from driftwolfe.domains.hull import peel, sweep
from driftwolfe.points import checks, norm
from driftwolfe.points.devices import device_of, namespace
from driftwolfe.points.kinds import Array, Point, Shape


class BoxSection(Domain):
    """Bounds on the entries, inside the affine hull: boxes, simplices and the like.

    `room` is how far entries may rise above `center` and fall below it (by default to 0); where it
    is 0, the affine hull keeps them.
    """

    lower: Any = 0.0
    upper: Any = None

    def __init__(self, radius: float, center: Array, room: Any = None, **sizes: Any) -> None:
        up, down = (math.inf, center) if room is None else room
        self._above = np.where(up > 0, up, math.inf)
        self._below = np.where(down > 0, -down, -math.inf)
        super().__init__(center.shape, radius, center=center if center.any() else None, **sizes)

    def _contains(self, x: Array, slack: float) -> bool:
        within = (x >= self.lower - slack).all()
        if self.upper is not None:
            within = within and (x <= self.upper + slack).all()
        return bool(within and self._offset(x) <= slack)

    def _gauge(self, y: Array) -> float:
        if self._outside_hull(y):
            return math.inf
        step = self._from_center(y)
        return float((step / self._bounds(step)).max())

    def _gauge_subgradient(self, y: Array) -> Array:
        step = self._from_center(y)
        bounds = self._bounds(step)
        tightest = (step / bounds).argmax()
        return self.tangent(self._at(tightest, 1 / bounds.flat[tightest]))

    def _decompose(self, x: Array, tolerance: float, lmo: LMO) -> tuple[list[Point], Array]:
        return peel(lmo, x)

    def _bounds(self, step: Array) -> Array:
        """Return the bound that each entry of a step from the centre moves to."""
        return np.where(step > 0, self._above, self._below)


class Box(BoxSection):
    r"""Bounds on each coordinate: :math:`\{x : lower_i \le x_i \le upper_i\}`.

    The oracle picks a bound for each coordinate, the projection clips. The centre is 0 where that is
    strictly between all bounds, else the midpoint. Coordinates with equal bounds are fixed; the gauge
    of a point that moves one (by more than 1e-9 of the size) is infinite.

    Parameters
    ----------
    lower, upper
        The bounds: arrays of one shape, or one of them a number. At least one coordinate is free.
    device
        Where ensembles keep experts' points: ``"cpu"``, ``"cuda"`` or ``"auto"``, the quicker one.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> box = dw.Box([0.0, -1.0], [2.0, 1.0])
    >>> box.lmo([1.0, -1.0]), box.project([3.0, 0.5]), box.center
    (array([0., 1.]), array([2. , 0.5]), array([1., 0.]))
    """

    _made_from = (("lower", "lower"), ("upper", "upper"))

    def __init__(self, lower: Any, upper: Any, *, device: str = "cpu") -> None:
        low, high = checks.finite_array(lower, "lower"), checks.finite_array(upper, "upper")
        shape = low.shape or high.shape
        if not shape or {low.shape, high.shape} - {(), shape}:
            raise ValueError(
                "lower and upper must be arrays of one shape, or one of them a number (for two numbers "
                f"use LinfBall), got shapes {low.shape} and {high.shape}"
            )
        low, high = (np.broadcast_to(bound, shape).copy() for bound in (low, high))
        if (low > high).any():
            first = tuple(np.argwhere(low > high)[0].tolist())
            raise ValueError(f"lower must be <= upper, but is larger at index {first}")
        if (low == high).all():
            raise ValueError("lower equals upper everywhere: the box is one point; widen a bound")
        self.lower, self.upper = low, high
        inside = ((low < 0) & (high > 0)) | ((low == 0) & (high == 0))
        center = np.zeros(shape) if inside.all() else low + (high - low) / 2
        up, down = high - center, center - low
        self._free = (up > 0) & (down > 0)
        super().__init__(
            norm(np.maximum(up, down)),
            center,
            room=(up, down),
            diameter=norm(high - low),
            inner_radius=float(np.minimum(up, down)[self._free].min(initial=math.inf)),
            stack_device=device,
        )

    def tangent(self, direction: Array) -> Array:
        if self._free.all():
            return direction
        xp = namespace(direction)
        return xp.where(device_of(direction).put(self._free), direction, 0.0)

    def _lmo(self, direction: Array) -> Array:
        return np.where(direction > 0, self.lower, self.upper)

    def _decompose(self, x: Array, tolerance: float, lmo: LMO) -> tuple[list[Point], Array]:
        room = self.upper - self.lower
        fractions = np.divide(x - self.lower, room, out=np.zeros(room.shape), where=room > 0)
        chosen, weights = sweep(np.clip(fractions, 0.0, 1.0).ravel())
        flags = chosen.reshape(-1, *self.shape) > 0.5
        return [np.where(each, self.upper, self.lower) for each in flags], weights

    def project_many(self, stack: Any) -> Any:
        put = device_of(stack).put
        return stack.clip(put(self.lower), put(self.upper))

    _project: Any = project_many  # bounds broadcast


class LinfBall(Box):
    r"""Bounded coordinates: :math:`\{x : |x_i| \le radius\}`.

    The oracle returns signs in O(n), the projection clips.

    Parameters
    ----------
    n, radius
        Number of coordinates, or a shape, and the bound; the Euclidean radius is sqrt(n) times as large.
    device
        Where ensembles keep experts' points: ``"cpu"``, ``"cuda"`` or ``"auto"``, the quicker one.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> ball = dw.LinfBall(4, radius=2.0)
    >>> ball.lmo([1.0, -1.0, 3.0, 0.5]), ball.scale, ball.radius
    (array([-2.,  2., -2., -2.]), 2.0, 4.0)
    """

    _made_from = (("n", "shape"), ("radius", "scale"))

    def __init__(self, n: int | Shape, radius: float = 1.0, *, device: str = "cpu") -> None:
        self.scale = checks.positive(radius, "radius")
        bound = np.full(checks.shape(n, "n"), self.scale)
        super().__init__(-bound, bound, device=device)


class Simplex(BoxSection):
    r"""Weights: :math:`\{x \ge 0 : \sum_i x_i = radius\}`.

    The oracle returns one scaled unit vector in O(n); the projection shifts and cuts at 0. The centre
    is the uniform point. The gauge is infinite where the sum is not `radius` (more than 1e-9 of the
    size away); its subgradients have sum 0.

    Parameters
    ----------
    n, radius
        Number of coordinates, at least 2, or a shape, and the sum. The Euclidean radius is
        ``radius * sqrt(1 - 1 / n)``.
    device
        Where ensembles keep experts' points: ``"cpu"``, ``"cuda"`` or ``"auto"``, the quicker one.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> simplex = dw.Simplex(4)
    >>> simplex.lmo([1.0, -3.0, 2.0, 0.0]), simplex.project([1.0, 0.6, 0.0, -2.0])
    (array([0., 1., 0., 0.]), array([0.7, 0.3, 0. , 0. ]))
    """

    _made_from = (("n", "shape"), ("radius", "scale"))
    warm_up = load_kernels

    def __init__(self, n: int | Shape, radius: float = 1.0, *, device: str = "cpu") -> None:
        shape = checks.shape(n, "n")
        self.scale = checks.positive(radius, "radius")
        self._size = math.prod(shape)
        if self._size < 2:
            raise ValueError(f"n must be at least 2, got {n!r}: with one weight nothing can move")
        super().__init__(
            self.scale * math.sqrt(1 - 1 / self._size),
            np.full(shape, self.scale / self._size),
            diameter=self.scale * math.sqrt(2),
            inner_radius=self.scale / math.sqrt(self._size * (self._size - 1)),
            stack_device=device,
        )
        self.dimension = self._size - 1

    def tangent(self, direction: Array) -> Array:
        return direction - direction.sum() / self._size

    def tangent_many(self, stack: Array) -> Array:
        rows = stack.reshape(len(stack), -1)
        return (rows - rows.sum(axis=1, keepdims=True) / self._size).reshape(stack.shape)

    def _lmo(self, direction: Array) -> Array:
        return self._at(direction.argmin(), self.scale)

    def _decompose(self, x: Array, tolerance: float, lmo: LMO) -> tuple[list[Point], Array]:
        places = np.flatnonzero(x > 0)
        if not places.size:  # far outside
            return [lmo(x)], np.ones(1)
        return [self._at(i, self.scale) for i in places], x.flat[places]

    def project_many(self, stack: Array) -> Array:
        rows = stack.reshape(-1, self._size)
        return threshold_to_sum(rows, self.scale, simplex=True).reshape(stack.shape)

    _project: Any = project_many  # a point is a stack of one row

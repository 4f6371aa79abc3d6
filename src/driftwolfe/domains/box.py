"""Boxes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftwolfe.domains.affine_hull import leaves_affine_hull
from driftwolfe.domains.base import Domain
from driftwolfe.domains.stacks import stack_device
from driftwolfe.points import checks, norm
from driftwolfe.points.devices import device_of
from driftwolfe.points.kinds import Array


class Box(Domain):
    r"""Bounds on each coordinate: :math:`\{x : lower_i \le x_i \le upper_i\}`.

    The oracle picks a bound for each coordinate, the projection clips; both are O(n). The centre is
    0 where that is strictly between all bounds, else the midpoint. Coordinates with equal bounds
    are fixed; the gauge of a point that moves one (by more than 1e-9 of the size) is infinite.

    Parameters
    ----------
    lower, upper
        The bounds: arrays of one shape, or one of them a number. At least one coordinate is free.
    device
        Where ensembles keep their experts' points: ``"cpu"``, ``"cuda"``, ..., or ``"auto"``, a GPU
        where there is one and points are large enough for it to be quicker. Decisions are NumPy's.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> box = dw.Box([0.0, -1.0], [2.0, 1.0])
    >>> box.lmo([1.0, -1.0])
    array([0., 1.])
    >>> box.project([3.0, 0.5])
    array([2. , 0.5])
    >>> box.center
    array([1., 0.])
    """

    def __init__(self, lower: Any, upper: Any, *, device: str = "cpu") -> None:
        low, high = checks.finite_array(lower, "lower"), checks.finite_array(upper, "upper")
        try:
            low, high = (bound.copy() for bound in np.broadcast_arrays(low, high))
        except ValueError:
            raise ValueError(
                f"lower and upper must have one shape, got {low.shape} and {high.shape}"
            ) from None
        if low.ndim == 0:
            raise ValueError("lower or upper must be an array; for one number on all, use LinfBall")
        if not (low <= high).all():
            first = tuple(int(i) for i in np.argwhere(low > high)[0])
            raise ValueError(f"lower must be <= upper, but is larger at index {first}")
        if (low == high).all():
            raise ValueError("lower equals upper everywhere: the box is one point; widen a bound")
        self.lower, self.upper = low, high
        inside = bool((((low < 0) & (high > 0)) | ((low == 0) & (high == 0))).all())
        center = np.zeros(low.shape) if inside else low + (high - low) / 2
        self._up, self._down = high - center, center - low
        self._free = (self._up > 0) & (self._down > 0)
        super().__init__(
            low.shape,
            norm(np.maximum(self._up, self._down)),
            diameter=norm(high - low),
            center=None if inside else center,
            inner_radius=float(np.minimum(self._up, self._down)[self._free].min(initial=math.inf)),
        )
        self.stack_device, self.stack_chosen = stack_device(device, self.shape)

    def arguments(self) -> dict[str, Any]:
        """What it was made from."""
        return {"lower": self.lower, "upper": self.upper}

    def tangent(self, direction: Array) -> Array:
        """Return the direction without the coordinates that cannot move, where lower is upper."""
        return direction if self._free.all() else np.where(self._free, direction, 0.0)

    def _lmo(self, direction: Array) -> Array:
        return np.where(direction > 0, self.lower, self.upper)

    def _contains(self, x: Array, slack: float) -> bool:
        return bool((x >= self.lower - slack).all() and (x <= self.upper + slack).all())

    def project_many(self, stack: Any) -> Any:
        """Return the projections of points along the first axis: clipped."""
        put = device_of(stack).put
        return stack.clip(put(self.lower), put(self.upper))

    def _project(self, y: Array) -> Array:
        return np.clip(y, self.lower, self.upper)

    def _gauge(self, y: Array) -> float:
        step = self._step(y)
        if leaves_affine_hull(norm(step[~self._free]), step, self.radius):
            return math.inf
        return float(self._shares(step).max())

    def _gauge_subgradient(self, y: Array) -> Array:
        step = self._step(y)
        tightest = self._shares(step).argmax()
        subgradient = np.zeros(self.shape)
        room = self._up if step.flat[tightest] > 0 else -self._down
        subgradient.flat[tightest] = 1 / room.flat[tightest]
        return subgradient

    def _step(self, y: Array) -> Array:
        return y - self.origin()

    def _shares(self, step: Array) -> Array:
        """How much of the room on its side each free coordinate of ``center + step`` takes."""
        room = np.where(step > 0, self._up, self._down)
        shares = np.zeros(self.shape)
        np.divide(np.abs(step), room, out=shares, where=self._free)
        return shares

"""The L1 ball."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftwolfe.domains.base import Domain
from driftwolfe.domains.stacks import stack_device
from driftwolfe.domains.thresholds import kernels, threshold_to_sum
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Shape


class L1Ball(Domain):
    r"""Sparse points: :math:`\{x : \sum_i |x_i| \le radius\}`.

    The oracle returns one signed, scaled unit vector in O(n); the projection soft-thresholds in
    O(n log n).

    Parameters
    ----------
    n
        Number of coordinates, or a shape.
    radius
        Bound on the sum of absolute values; also the Euclidean radius.
    device
        Where ensembles keep their experts' points: ``"cpu"``, ``"cuda"``, ..., or ``"auto"``, a GPU
        where there is one and points are large enough for it to be quicker. Decisions are NumPy's.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> ball = dw.L1Ball(3, radius=2.0)
    >>> ball.lmo([1.0, -3.0, 2.0])
    array([0., 2., 0.])
    >>> ball.project([3.0, -1.0, 0.0])
    array([2., 0., 0.])
    """

    def __init__(self, n: int | Shape, radius: float = 1.0, *, device: str = "cpu") -> None:
        shape = checks.shape(n, "n")
        self.scale = checks.positive(radius, "radius")
        super().__init__(shape, self.scale, inner_radius=self.scale / math.sqrt(math.prod(shape)))
        self.stack_device, self.stack_chosen = stack_device(device, self.shape)

    def arguments(self) -> dict[str, Any]:
        """What it was made from."""
        return {"n": self.shape, "radius": self.scale}

    def warm_up(self) -> None:
        """Load the compiled threshold of the projection."""
        kernels()

    def _lmo(self, direction: Array) -> Array:
        vertex = np.zeros(self.shape)
        largest = np.abs(direction).argmax()
        vertex.flat[largest] = -math.copysign(self.scale, direction.flat[largest])
        return vertex

    def _contains(self, x: Array, slack: float) -> bool:
        return bool(np.abs(x).sum() <= self.scale + slack)

    def project_many(self, stack: Array) -> Array:
        """Return the projections of points along the first axis, worked out together."""
        flat = stack.reshape(len(stack), -1)
        return threshold_to_sum(flat, self.scale).reshape(stack.shape)

    def _project(self, y: Array) -> Array:
        return self.project_many(y[None])[0]

    def _gauge(self, y: Array) -> float:
        return float(np.abs(y).sum() / self.scale)

    def _gauge_subgradient(self, y: Array) -> Array:
        return np.sign(y) / self.scale

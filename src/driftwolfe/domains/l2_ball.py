"""The Euclidean ball."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftwolfe.domains.base import Domain
from driftwolfe.domains.stacks import stack_device
from driftwolfe.domains.unit_vector import unit_vector
from driftwolfe.points import checks, norm
from driftwolfe.points.devices import namespace
from driftwolfe.points.kinds import Array, Shape


class L2Ball(Domain):
    r"""Short vectors: :math:`\{x : \lVert x\rVert \le radius\}`.

    The oracle and the projection each scale one vector, in O(n).

    Parameters
    ----------
    n
        Number of coordinates, or a shape.
    radius
        Bound on the Euclidean norm.
    device
        Where ensembles keep their experts' points: ``"cpu"``, ``"cuda"``, ..., or ``"auto"``, a GPU
        where there is one and points are large enough for it to be quicker. Decisions are NumPy's.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> ball = dw.L2Ball(2, radius=5.0)
    >>> ball.lmo([-3.0, 4.0])
    array([ 3., -4.])
    >>> ball.project([6.0, 8.0])
    array([3., 4.])
    """

    def __init__(self, n: int | Shape, radius: float = 1.0, *, device: str = "cpu") -> None:
        self.scale = checks.positive(radius, "radius")
        super().__init__(checks.shape(n, "n"), self.scale, inner_radius=self.scale)
        self.stack_device, self.stack_chosen = stack_device(device, self.shape)

    def arguments(self) -> dict[str, Any]:
        """What it was made from."""
        return {"n": self.shape, "radius": self.scale}

    def _lmo(self, direction: Array) -> Array:
        return unit_vector(direction) * -self.scale

    def _contains(self, x: Array, slack: float) -> bool:
        return norm(x) <= self.scale + slack

    def project_many(self, stack: Any) -> Any:
        """Return the projections of points along the first axis."""
        if isinstance(stack, np.ndarray):
            return super().project_many(stack)
        lengths = namespace(stack).linalg.vector_norm(stack.reshape(len(stack), -1), axis=1)
        shares = (self.scale / lengths).clip(None, 1.0)
        return stack * shares.reshape(-1, *(1 for _ in self.shape))

    def _project(self, y: Array) -> Array:
        length = norm(y)
        return y.copy() if length <= self.scale else y * (self.scale / length)

    def _gauge(self, y: Array) -> float:
        return norm(y) / self.scale

    def _gauge_subgradient(self, y: Array) -> Array:
        return y / (norm(y) * self.scale)

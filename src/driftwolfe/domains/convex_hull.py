"""The convex hull of given points."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftwolfe.domains.base import Domain
from driftwolfe.domains.hull import approach, comes_near
from driftwolfe.points import checks, norm
from driftwolfe.points.kinds import Array


class ConvexHull(Domain):
    r"""Mixtures of given points: :math:`\{\sum_i w_i p_i : w \ge 0, \sum_i w_i = 1\}`.

    The oracle compares all N points in O(N n). Projection and membership are Wolfe's
    min-norm-point method: some tens of oracle calls and small linear systems. The centre is the
    mean of the points.

    Parameters
    ----------
    points
        The points along the first axis, ``(N, ...)``; not all the same.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> triangle = dw.ConvexHull([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    >>> triangle.lmo([-1.0, 1.0])
    array([2., 0.])
    >>> triangle.project([2.0, 1.0])
    array([1.5, 0.5])
    """

    def __init__(self, points: Any) -> None:
        self.points = checks.finite_array(points, "points").copy()
        if self.points.ndim < 2:
            raise ValueError(
                f"points must list points along its first axis, got shape {self.points.shape}"
            )
        if not len(self.points) or (self.points == self.points[0]).all():
            raise ValueError("points must hold at least two different points")
        self.points.flags.writeable = False
        center = self.points.mean(axis=0)
        radius = max(norm(point - center) for point in self.points)
        super().__init__(center.shape, radius, center=center)
        self._rows = self.points.reshape(len(self.points), -1)

    def arguments(self) -> dict[str, Any]:
        """What it was made from."""
        return {"points": self.points}

    @property
    def cheap_projection(self) -> bool:
        """No: it takes many calls of `lmo`."""
        return False

    @property
    def cheap_membership(self) -> bool:
        """No, for the same reason."""
        return False

    def _lmo(self, direction: Array) -> Array:
        vertex: Array = self.points[(self._rows @ direction.ravel()).argmin()]
        return vertex.copy()

    def _contains(self, x: Array, slack: float) -> bool:
        return comes_near(self._lmo, x, self._nearest_point(x), slack)

    def _project(self, y: Array) -> Array:
        *_, (nearest, _) = approach(self._lmo, y, self._nearest_point(y))
        return nearest

    def _nearest_point(self, y: Array) -> Array:
        offsets = self._rows - y.ravel()
        nearest: Array = self.points[np.einsum("ij,ij->i", offsets, offsets).argmin()]
        return nearest

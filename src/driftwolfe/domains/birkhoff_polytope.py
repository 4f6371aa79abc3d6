"""The Birkhoff polytope."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftwolfe.domains.affine_hull import leaves_affine_hull
from driftwolfe.domains.base import Domain
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array
from driftwolfe.points.rounding import tilt, tilted


class BirkhoffPolytope(Domain):
    r"""Doubly stochastic matrices: :math:`\{X \ge 0 : X 1 = 1, X^\top 1 = 1\}`.

    Its vertices are the permutation matrices. The oracle solves an assignment problem, O(n^3) at
    worst; no projection of that cost is known. The centre is the uniform matrix. The gauge is
    infinite where a row or column sum is not 1 (more than 1e-9 of the size away); its subgradients
    have rows and columns of sum 0.

    Parameters
    ----------
    n
        Side of the matrices, at least 2. The Euclidean radius is sqrt(n - 1).

    Examples
    --------
    >>> import driftwolfe as dw
    >>> dw.BirkhoffPolytope(2).lmo([[3.0, 1.0], [1.0, 0.0]])
    array([[0., 1.],
           [1., 0.]])
    """

    def __init__(self, n: int) -> None:
        self._side = checks.count(n, "n", least=2)
        self._tilt = tilt(self._side**2).reshape(self._side, self._side)
        super().__init__(
            (self._side, self._side),
            math.sqrt(self._side - 1),
            diameter=math.sqrt(2 * self._side),
            center=np.full((self._side, self._side), 1 / self._side),
            inner_radius=1 / (self._side - 1),
        )

    def arguments(self) -> dict[str, Any]:
        """What it was made from."""
        return {"n": self._side}

    def tangent(self, direction: Array) -> Array:
        """Return the direction with rows and columns of sum 0."""
        rows, columns = direction.mean(axis=1, keepdims=True), direction.mean(axis=0)
        return direction - rows - columns + direction.mean()

    def _lmo(self, direction: Array) -> Array:
        from scipy.optimize import linear_sum_assignment  # a slow import, for this set alone

        vertex = np.zeros(self.shape)
        vertex[linear_sum_assignment(tilted(direction, self._tilt))] = 1.0
        return vertex

    def _contains(self, x: Array, slack: float) -> bool:
        return bool(x.min() >= -slack) and self._offset(x) <= slack

    def _gauge(self, y: Array) -> float:
        if leaves_affine_hull(self._offset(y), y - self.origin(), self.radius):
            return math.inf
        return max(0.0, 1 - self._side * float(y.min()))

    def _gauge_subgradient(self, y: Array) -> Array:
        row, column = np.unravel_index(y.argmin(), self.shape)
        subgradient = np.full(self.shape, -1 / self._side)
        subgradient[row] += 1.0
        subgradient[:, column] += 1.0
        subgradient[row, column] -= self._side
        return subgradient

    def _offset(self, x: Array) -> float:
        """Distance from the matrices whose rows and columns have sum 1."""
        rows, columns = x.sum(axis=1) - 1, x.sum(axis=0) - 1
        # The nearest such matrix is x - rows/n - columns/n + mean, whose distance this is.
        squared = (rows @ rows + columns @ columns) / self._side - (rows.sum() / self._side) ** 2
        return math.sqrt(max(0.0, float(squared)))

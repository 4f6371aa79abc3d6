"""The group-lasso ball."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftwolfe.domains.base import Domain
from driftwolfe.domains.groups import group_labels
from driftwolfe.domains.thresholds import kernels, project_nonnegative_sum
from driftwolfe.domains.unit_vector import unit_vector
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array


class GroupLassoBall(Domain):
    r"""Few groups at a time: :math:`\{x : \sum_g \lVert x_g\rVert \le radius\}`.

    The groups g partition the coordinates. The oracle returns one group's scaled direction in O(n);
    the projection soft-thresholds the norms of the groups.

    Parameters
    ----------
    n
        Number of coordinates.
    groups
        A label for each coordinate, or a list of lists of indices that partition ``range(n)``.
    radius
        Bound on the sum of the groups' norms; also the Euclidean radius.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> ball = dw.GroupLassoBall(4, groups=[[0, 1], [2, 3]], radius=5.0)
    >>> ball.lmo([3.0, -4.0, 1.0, 1.0])
    array([-3.,  4.,  0.,  0.])
    >>> ball.project([6.0, 8.0, 1.0, 0.0])
    array([3., 4., 0., 0.])
    """

    def __init__(self, n: int, groups: Any, radius: float = 1.0) -> None:
        size = checks.count(n, "n")
        self._labels = group_labels(groups, "groups")
        if self._labels.size != size:
            raise ValueError(
                f"groups must cover the n = {size} coordinates, got {self._labels.size}"
            )
        self._n_groups = int(self._labels.max()) + 1
        self.scale = checks.positive(radius, "radius")
        super().__init__(size, self.scale, inner_radius=self.scale / math.sqrt(self._n_groups))

    def arguments(self) -> dict[str, Any]:
        """What it was made from."""
        return {"n": self._labels.size, "groups": self._labels, "radius": self.scale}

    def warm_up(self) -> None:
        """Load the compiled threshold of the projection."""
        kernels()

    def _lmo(self, direction: Array) -> Array:
        largest = self._norms(direction).argmax()
        group = np.flatnonzero(self._labels == largest)
        vertex = np.zeros(self.shape)
        vertex[group] = unit_vector(direction[group]) * -self.scale
        return vertex

    def _contains(self, x: Array, slack: float) -> bool:
        return bool(self._norms(x).sum() <= self.scale + slack)

    def _project(self, y: Array) -> Array:
        norms = self._norms(y)
        if norms.sum() <= self.scale:
            return y.copy()
        kept = project_nonnegative_sum(norms, self.scale)
        return y * self._ratios(kept, norms)[self._labels] + 0.0

    def _gauge(self, y: Array) -> float:
        return float(self._norms(y).sum() / self.scale)

    def _gauge_subgradient(self, y: Array) -> Array:
        norms = self._norms(y)
        inverse = self._ratios(np.full(norms.shape, 1 / self.scale), norms)
        return y * inverse[self._labels]

    def _norms(self, x: Array) -> Array:
        # Scaled by the largest entry, so that squares neither over- nor underflow.
        largest = float(np.abs(x).max()) or 1.0
        squares = np.bincount(self._labels, (x / largest) ** 2, self._n_groups)
        return largest * np.sqrt(squares)

    @staticmethod
    def _ratios(numerators: Array, norms: Array) -> Array:
        """Quotients, 0 for groups that are 0."""
        return np.divide(numerators, norms, out=np.zeros_like(norms), where=norms > 0)

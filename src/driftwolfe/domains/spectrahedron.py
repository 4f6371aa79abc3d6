"""The spectrahedron."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.domains.affine_hull import leaves_affine_hull
from driftwolfe.domains.base import Domain
from driftwolfe.domains.thresholds import kernels, project_nonnegative_sum
from driftwolfe.points import checks, norm
from driftwolfe.points.kinds import Array

#: Side from which Lanczos finds the lowest eigenvector sooner than a dense decomposition (measured
#: on one core: 8 and 6 ms at side 300, 16 and 22 ms at side 500 for a random symmetric matrix).
_LANCZOS_SIDE = 350


class Spectrahedron(Domain):
    r"""Density matrices: :math:`\{X = X^\top \succeq 0 : \mathrm{tr} X = radius\}`.

    The oracle returns :math:`radius\,uu^\top`, u an eigenvector of the lowest eigenvalue of the
    direction's symmetric part: O(n^3) for small n, a few products by Lanczos for large n. The
    projection needs all eigenvalues. The centre is the scaled identity. The gauge is infinite where
    X is not symmetric or the trace is not `radius` (more than 1e-9 of the size away); its
    subgradients are symmetric with trace 0.

    Parameters
    ----------
    n
        Side of the matrices, at least 2.
    radius
        The trace. The Euclidean radius is ``radius * sqrt(1 - 1 / n)``.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> states = dw.Spectrahedron(2)
    >>> states.lmo(np.diag([1.0, -1.0]))
    array([[0., 0.],
           [0., 1.]])
    >>> states.project(np.diag([2.0, 1.5]))
    array([[0.75, 0.  ],
           [0.  , 0.25]])
    """

    def __init__(self, n: int, radius: float = 1.0) -> None:
        self._side = checks.count(n, "n", least=2)
        self.scale = checks.positive(radius, "radius")
        super().__init__(
            (self._side, self._side),
            self.scale * math.sqrt(1 - 1 / self._side),
            diameter=self.scale * math.sqrt(2),
            center=np.eye(self._side) * (self.scale / self._side),
            inner_radius=self.scale / math.sqrt(self._side * (self._side - 1)),
        )

    def arguments(self) -> dict[str, Any]:
        """What it was made from."""
        return {"n": self._side, "radius": self.scale}

    @property
    def cheap_projection(self) -> bool:
        """Whether all eigenvalues cost no more than a few times the lowest one."""
        return self._side < _LANCZOS_SIDE

    @property
    def cheap_membership(self) -> bool:
        """As for the projection: both need all eigenvalues."""
        return self.cheap_projection

    def tangent(self, direction: Array) -> Array:
        """Return the symmetric part with trace 0."""
        symmetric = _symmetric_part(direction)
        return symmetric - np.eye(self._side) * (np.trace(symmetric) / self._side)

    def warm_up(self) -> None:
        """Load the compiled threshold of the projection."""
        kernels()

    def _lmo(self, direction: Array) -> Array:
        vector = _lowest_eigenvector(_symmetric_part(direction))
        return np.outer(self.scale * vector, vector)

    def _contains(self, x: Array, slack: float) -> bool:
        if self._offset(x) > slack:
            return False
        return bool(np.linalg.eigvalsh(_symmetric_part(x))[0] >= -slack)

    def _project(self, y: Array) -> Array:
        values, vectors = np.linalg.eigh(_symmetric_part(y))
        return _symmetric_part((vectors * project_nonnegative_sum(values, self.scale)) @ vectors.T)

    def _gauge(self, y: Array) -> float:
        if leaves_affine_hull(self._offset(y), y - self.origin(), self.radius):
            return math.inf
        lowest = float(np.linalg.eigvalsh(_symmetric_part(y))[0])
        return max(0.0, 1 - self._side * lowest / self.scale)

    def _gauge_subgradient(self, y: Array) -> Array:
        vector = _lowest_eigenvector(_symmetric_part(y))
        return (np.eye(self._side) - self._side * np.outer(vector, vector)) / self.scale

    def _offset(self, x: Array) -> float:
        """Distance from the symmetric matrices of the right trace."""
        excess = (float(np.trace(x)) - self.scale) / math.sqrt(self._side)
        return math.hypot(excess, norm(x - x.T) / 2)


def _symmetric_part(matrix: Array) -> Array:
    return (matrix + matrix.T) / 2


def _lowest_eigenvector(symmetric: Array) -> Array:
    """Return a unit eigenvector of the lowest eigenvalue, the same one each time."""
    side = len(symmetric)
    if side >= _LANCZOS_SIDE:
        from scipy.sparse.linalg import ArpackError, eigsh  # a slow import, for large sets alone

        # A fixed random start: a patterned one may be orthogonal to the answer.
        start = np.random.default_rng(0).standard_normal(side)
        try:
            vector: Array = eigsh(symmetric, k=1, which="SA", v0=start)[1][:, 0]
        except ArpackError:
            pass
        else:
            return vector / norm(vector)
    vectors: Array = scipy.linalg.eigh(symmetric, subset_by_index=[0, 0])[1]
    return vectors[:, 0]

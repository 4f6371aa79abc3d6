"""The k-sparse polytope."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftwolfe.domains.base import Domain
from driftwolfe.domains.thresholds import project_capped_sums
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Shape


class KSparsePolytope(Domain):
    r"""The hull of vectors with k entries :math:`\pm radius` and zeros elsewhere.

    That is :math:`\{x : \lVert x\rVert_\infty \le radius, \lVert x\rVert_1 \le k\,radius\}`: the L1
    ball for k = 1, the L-infinity ball for k = n. The oracle selects the k largest entries in O(n);
    the projection clips and soft-thresholds in O(n log n).

    Parameters
    ----------
    n
        Number of coordinates, or a shape.
    k
        Number of non-zero entries of a vertex, from 1 to n.
    radius
        Size of those entries; the Euclidean radius is sqrt(k) times as large.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> polytope = dw.KSparsePolytope(4, k=2)
    >>> polytope.lmo([1.0, -3.0, 2.0, 0.5])
    array([ 0.,  1., -1.,  0.])
    >>> polytope.project([3.0, 0.75, 0.75, 0.0])
    array([1. , 0.5, 0.5, 0. ])
    """

    def __init__(self, n: int | Shape, k: int, radius: float = 1.0) -> None:
        shape = checks.shape(n, "n")
        size = math.prod(shape)
        self.scale = checks.positive(radius, "radius")
        self.k = checks.count(k, "k")
        if self.k > size:
            raise ValueError(f"k must be at most the number of coordinates, {size}, got {k}")
        super().__init__(
            shape,
            self.scale * math.sqrt(self.k),
            inner_radius=self.scale * min(1.0, self.k / math.sqrt(size)),
        )

    def arguments(self) -> dict[str, Any]:
        """What it was made from."""
        return {"n": self.shape, "k": self.k, "radius": self.scale}

    def _lmo(self, direction: Array) -> Array:
        sizes = np.abs(direction).ravel()
        largest = np.argpartition(sizes, sizes.size - self.k)[-self.k :]
        vertex = np.zeros(self.shape)
        vertex.flat[largest] = -np.copysign(self.scale, direction.flat[largest])
        return vertex

    def _contains(self, x: Array, slack: float) -> bool:
        sizes = np.abs(x)
        return bool(
            sizes.max() <= self.scale + slack and sizes.sum() <= self.k * self.scale + slack
        )

    def _project(self, y: Array) -> Array:
        clipped = np.clip(y, -self.scale, self.scale)
        total = self.k * self.scale
        if np.abs(clipped).sum() <= total:
            return clipped
        sizes = project_capped_sums(np.abs(y).reshape(1, -1), total, self.scale)
        # Adding 0 turns the -0. of a negative entry that is cut to nothing into 0.
        return np.copysign(sizes.reshape(self.shape), y) + 0.0

    def _gauge(self, y: Array) -> float:
        sizes = np.abs(y)
        return float(max(sizes.max(), sizes.sum() / self.k) / self.scale)

    def _gauge_subgradient(self, y: Array) -> Array:
        sizes = np.abs(y)
        if sizes.sum() >= self.k * sizes.max():
            return np.sign(y) / (self.k * self.scale)
        subgradient = np.zeros(self.shape)
        largest = sizes.argmax()
        subgradient.flat[largest] = math.copysign(1 / self.scale, y.flat[largest])
        return subgradient

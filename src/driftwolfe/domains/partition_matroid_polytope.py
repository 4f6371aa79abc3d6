"""The partition matroid polytope."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftwolfe.domains.affine_hull import leaves_affine_hull
from driftwolfe.domains.base import Domain
from driftwolfe.domains.groups import group_labels
from driftwolfe.domains.thresholds import project_capped_sums
from driftwolfe.points import checks, norm
from driftwolfe.points.kinds import Array, Indices


class PartitionMatroidPolytope(Domain):
    r"""So many of each kind: :math:`\{0 \le x \le 1 : \sum_{i \in p} x_i = capacity_p \forall p\}`.

    The parts p partition the coordinates. With ``kind="base"`` the sums equal the capacities, with
    ``"independent"`` they are at most those; the vertices are the 0/1 vectors among the points. The
    oracle selects the smallest entries of each part in O(n); the projection shifts and clips each
    part in O(n log n). The centre is uniform on each part, with sum `capacity` for bases and half
    of that else. The gauge of bases is infinite where a sum differs (more than 1e-9 of the size
    away); its subgradients then have sum 0 on each part.

    Parameters
    ----------
    parts
        A label for each coordinate, or a list of lists of indices that partition ``range(n)``.
    capacities
        For each part (labels in sorted order) a whole number from 1 to its size; or one for all.
    kind
        ``"base"`` or ``"independent"``.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> polytope = dw.PartitionMatroidPolytope([[0, 1, 2], [3, 4]], capacities=[2, 1])
    >>> polytope.lmo([3.0, 1.0, 2.0, 5.0, 4.0])
    array([0., 1., 1., 0., 1.])
    >>> polytope.project([1.0, 1.0, 0.7, 0.9, 0.3])
    array([0.76666667, 0.76666667, 0.46666667, 0.8       , 0.2       ])
    """

    def __init__(self, parts: Any, capacities: Any, kind: str = "base") -> None:
        if kind not in ("base", "independent"):
            raise ValueError(f'kind must be "base" or "independent", got {kind!r}')
        self.kind = kind
        self._bases = kind == "base"
        self._labels = group_labels(parts, "parts")
        self._sizes = np.bincount(self._labels)
        self._capacities = _checked_capacities(capacities, self._sizes)
        self._movable = self._capacities < self._sizes if self._bases else self._sizes > 0
        if not self._movable.any():
            raise ValueError("every capacity is its part's size: there is one base; lower one")
        self._blocks = _stack_parts(self._labels, self._sizes, self._capacities)
        level = self._capacities / self._sizes / (1 if self._bases else 2)
        super().__init__(
            self._labels.size,
            math.sqrt((self._capacities * (1 - 2 * level) + self._sizes * level**2).sum()),
            diameter=math.sqrt(self._farthest_exchange().sum()),
            center=level[self._labels],
            inner_radius=self._nearest_facet(level),
        )

    def arguments(self) -> dict[str, Any]:
        """What it was made from."""
        return {"parts": self._labels, "capacities": self._capacities, "kind": self.kind}

    def tangent(self, direction: Array) -> Array:
        """Return the direction with sum 0 on every part, for bases; else all of it."""
        if not self._bases:
            return direction
        level = direction - (self._sums(direction) / self._sizes)[self._labels]
        return np.where(self._movable[self._labels], level, 0.0)

    def _lmo(self, direction: Array) -> Array:
        vertex = np.zeros(self.shape)
        for indices, capacity in self._blocks:
            smallest = np.argpartition(direction[indices], capacity - 1, axis=1)[:, :capacity]
            vertex[np.take_along_axis(indices, smallest, axis=1)] = 1.0
        if not self._bases:
            vertex[direction >= 0] = 0.0
        return vertex

    def _contains(self, x: Array, slack: float) -> bool:
        excess = self._sums(x) - self._capacities
        if self._bases:
            excess = np.abs(excess)
        within = (excess <= slack * np.sqrt(self._sizes)).all()
        return bool(within and x.min() >= -slack and x.max() <= 1 + slack)

    def _project(self, y: Array) -> Array:
        nearest = np.empty(self.shape)
        for indices, capacity in self._blocks:
            values = y[indices]
            clipped = np.clip(values, 0.0, 1.0)
            tight = np.full(len(values), True) if self._bases else clipped.sum(axis=1) > capacity
            clipped[tight] = project_capped_sums(values[tight], capacity, 1.0)
            nearest[indices] = clipped
        return nearest

    def _gauge(self, y: Array) -> float:
        step = y - self.origin()
        if self._bases and leaves_affine_hull(self._offset(step), step, self.radius):
            return math.inf
        return max(float(self._entry_shares(step).max()), float(self._part_shares(step).max()))

    def _gauge_subgradient(self, y: Array) -> Array:
        step = y - self.origin()
        entry_shares, part_shares = self._entry_shares(step), self._part_shares(step)
        entry, part = entry_shares.argmax(), part_shares.argmax()
        if part_shares[part] >= entry_shares[entry]:
            return np.where(self._labels == part, 2 / self._capacities[part], 0.0)
        level = self.origin()[entry]
        subgradient = np.zeros(self.shape)
        subgradient[entry] = 1 / (1 - level) if step[entry] > 0 else -1 / level
        if self._bases:
            part = self._labels[entry]
            subgradient[self._labels == part] -= subgradient[entry] / self._sizes[part]
        return subgradient

    def _sums(self, x: Array) -> Array:
        return np.bincount(self._labels, x).astype(np.float64, copy=False)

    def _offset(self, step: Array) -> float:
        """Distance of ``center + step`` from the affine hull of the bases."""
        drifts = self._sums(step)[self._movable] / np.sqrt(self._sizes[self._movable])
        return math.hypot(norm(drifts), norm(step[~self._movable[self._labels]]))

    def _entry_shares(self, step: Array) -> Array:
        """How much of the room between 0 and 1 each entry of ``center + step`` takes."""
        level = self.origin()
        room = np.where(step > 0, 1 - level, level)
        shares = np.zeros(self.shape)
        np.divide(np.abs(step), room, out=shares, where=room > 0)
        return shares

    def _part_shares(self, step: Array) -> Array:
        """How much of the room below its capacity each part takes; bases have no such room."""
        return np.zeros(1) if self._bases else self._sums(step) / (self._capacities / 2)

    def _farthest_exchange(self) -> NDArray[np.intp]:
        """Elements in one but not the other of two vertices, at most, on each part."""
        if self._bases:
            return 2 * np.minimum(self._capacities, self._sizes - self._capacities)
        return np.minimum(2 * self._capacities, self._sizes)

    def _nearest_facet(self, level: Array) -> float:
        if not self._bases:
            return float(level.min())
        # Inside the hyperplane of its part, a coordinate's unit vector is shorter than 1.
        slopes = np.sqrt(1 - 1 / self._sizes[self._movable])
        return float((np.minimum(level, 1 - level)[self._movable] / slopes).min())


def _checked_capacities(capacities: Any, sizes: NDArray[np.intp]) -> NDArray[np.intp]:
    given = [capacities] * sizes.size if np.ndim(capacities) == 0 else list(capacities)
    if len(given) != sizes.size:
        raise ValueError(f"capacities must have one entry per part, {sizes.size}, got {len(given)}")
    limits = np.array([checks.count(limit, "capacity") for limit in given])
    if (limits > sizes).any():
        part = int((limits > sizes).argmax())
        raise ValueError(
            f"a capacity must be at most its part's size: part {part} has {sizes[part]} "
            f"coordinates and capacity {limits[part]}"
        )
    return limits


def _stack_parts(
    labels: Indices, sizes: NDArray[np.intp], capacities: NDArray[np.intp]
) -> list[tuple[Indices, int]]:
    """Stack the parts of one size and capacity, one a row, so that each stack is one array job."""
    members = np.split(np.argsort(labels, kind="stable"), np.cumsum(sizes)[:-1])
    stacks: dict[tuple[int, int], list[Indices]] = {}
    for indices, capacity in zip(members, capacities, strict=True):
        stacks.setdefault((indices.size, int(capacity)), []).append(indices)
    return [(np.stack(rows), capacity) for (_, capacity), rows in stacks.items()]

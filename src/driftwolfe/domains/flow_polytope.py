"""The polytope of unit flows in an acyclic graph."""

from __future__ import annotations

import math
from collections.abc import Hashable
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.domains.affine_hull import leaves_affine_hull
from driftwolfe.domains.base import Domain
from driftwolfe.points import checks, norm
from driftwolfe.points.kinds import Array, Indices
from driftwolfe.points.rounding import tilt, tilted

Edge: TypeAlias = tuple[Hashable, Hashable]

#: Least mean flow on a usable edge: with 2^1000 paths, rarer edges would underflow to unusable.
_LEAST_FLOW = 1e-300

_POTENTIALS: WeakKeyDictionary[Domain, tuple[Indices, Any]] = WeakKeyDictionary()


class FlowPolytope(Domain):
    r"""Routes and their mixtures: unit flows from a source to a sink in an acyclic graph.

    :math:`\{x \ge 0 : x(out(v)) - x(in(v)) = [v = source] - [v = sink] \text{ for all } v\}`, one
    coordinate per edge; the extreme points are the paths. Edges on no path are always 0. The oracle
    is a shortest path by dynamic programming, O(m) for m edges, with costs of any sign. The centre
    is the mean of all paths. The gauge is infinite where flow is not conserved (more than 1e-9 of
    the size away).

    Parameters
    ----------
    edges
        Pairs ``(tail, head)`` of vertices, which may be numbers, strings or anything hashable.
        Parallel edges are fine, cycles are not.
    source, sink
        Where flow starts and ends. There must be more than one path.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> routes = dw.FlowPolytope([("s", "a"), ("s", "b"), ("a", "t"), ("b", "t")], "s", "t")
    >>> routes.lmo([1.0, 3.0, 4.0, 1.0])
    array([0., 1., 0., 1.])
    >>> routes.center
    array([0.5, 0.5, 0.5, 0.5])
    """

    def __init__(self, edges: Any, source: Hashable, sink: Hashable) -> None:
        self.edges = _checked_edges(edges)
        numbers = _topological_numbers(self.edges)
        for vertex, name in ((source, "source"), (sink, "sink")):
            if vertex not in numbers:
                raise ValueError(f"{name} {vertex!r} is on no edge")
        self._tails = np.array([numbers[tail] for tail, _ in self.edges])
        self._heads = np.array([numbers[head] for _, head in self.edges])
        self._ends = (source, sink)
        self._source, self._sink, self._n_vertices = numbers[source], numbers[sink], len(numbers)
        sweep = np.argsort(self._tails, kind="stable")
        center = self._mean_path(sweep.tolist())
        self._usable = sweep[center[sweep] > 0]
        # Row sums of squares of the conservation equations, which scale them to unit length.
        degrees = np.bincount(self._tails, minlength=self._n_vertices)
        degrees += np.bincount(self._heads, minlength=self._n_vertices)
        self._equation_lengths = np.sqrt(degrees)
        self._tilt = tilt(center.size)
        # ||path - c||^2 is linear in a 0/1 vector, so the oracle finds the farthest path.
        farthest = self._lmo(2 * center - 1)
        longest = float(self._lmo(-np.ones(center.size)).sum())
        super().__init__(
            center.size,
            norm(farthest - center),
            diameter=math.sqrt(2 * longest),
            center=center,
        )

    def arguments(self) -> dict[str, Any]:
        """What it was made from."""
        return {"edges": self.edges, "source": self._ends[0], "sink": self._ends[1]}

    def tangent(self, direction: Array) -> Array:
        """Return the circulation nearest to the direction: what flows in flows out, everywhere."""
        tails, heads = self._tails[self._usable], self._heads[self._usable]
        surplus = np.bincount(tails, direction[self._usable], self._n_vertices)
        surplus -= np.bincount(heads, direction[self._usable], self._n_vertices)
        level = np.zeros(self._n_vertices)
        inner, laplacian = self._potentials()
        level[inner] = laplacian.solve(surplus[inner])
        circulation = np.zeros(direction.size)
        circulation[self._usable] = direction[self._usable] - (level[tails] - level[heads])
        return circulation

    def _potentials(self) -> tuple[Indices, Any]:
        """The vertices on paths without the sink, and the factorised Laplacian there.

        It is kept beside the set, not in it: a factorisation can be neither copied nor compared.
        """
        if self not in _POTENTIALS:
            tails, heads = self._tails[self._usable], self._heads[self._usable]
            touched = np.union1d(tails, heads)
            inner = touched[touched != self._sink]
            rows = np.concatenate((tails, heads, tails, heads))
            cols = np.concatenate((tails, heads, heads, tails))
            values = np.repeat([1.0, 1.0, -1.0, -1.0], tails.size)
            laplacian = scipy.sparse.coo_array((values, (rows, cols))).tocsc()
            _POTENTIALS[self] = inner, scipy.sparse.linalg.splu(laplacian[inner][:, inner].tocsc())
        return _POTENTIALS[self]

    def warm_up(self) -> None:
        """Compile the oracle."""
        self._lmo(np.zeros(self.shape))

    def _lmo(self, direction: Array) -> Array:
        from driftwolfe.domains.kernels import shortest_path

        path = np.zeros(direction.size)
        path[self._usable] = shortest_path(
            tilted(direction, self._tilt)[self._usable],
            self._tails[self._usable],
            self._heads[self._usable],
            self._n_vertices,
            self._source,
            self._sink,
        )
        return path

    def _contains(self, x: Array, slack: float) -> bool:
        return bool(x.min() >= -slack) and self._imbalance(x) <= slack

    def _gauge(self, y: Array) -> float:
        center = self.origin()
        if leaves_affine_hull(self._imbalance(y), y - center, self.radius):
            return math.inf
        return max(0.0, 1 - float((y[self._usable] / center[self._usable]).min()))

    def _imbalance(self, x: Array) -> float:
        """The largest violation of an equation of the set, in units of distance."""
        surplus = np.bincount(self._tails, x, self._n_vertices)
        surplus -= np.bincount(self._heads, x, self._n_vertices)
        surplus[self._source] -= 1
        surplus[self._sink] += 1
        unusable = np.delete(x, self._usable)
        return float(
            max(np.abs(surplus / self._equation_lengths).max(), np.abs(unusable).max(initial=0.0))
        )

    def _mean_path(self, sweep: list[int]) -> Array:
        """Share of all paths that use each edge: paths to its tail times paths from its head."""
        tails, heads = self._tails.tolist(), self._heads.tolist()
        # Whole numbers of any size: the number of paths outgrows floats in modest graphs.
        before, after = [0] * self._n_vertices, [0] * self._n_vertices
        before[self._source] = after[self._sink] = 1
        for edge in sweep:
            before[heads[edge]] += before[tails[edge]]
        for edge in reversed(sweep):
            after[tails[edge]] += after[heads[edge]]
        paths = after[self._source] if self._source != self._sink else 0
        if paths < 2:
            found = "no path" if paths == 0 else "only one path"
            raise ValueError(f"there must be several paths from source to sink, found {found}")
        uses = [before[tails[edge]] * after[heads[edge]] for edge in range(len(tails))]
        return np.array([max(use / paths, _LEAST_FLOW) if use else 0.0 for use in uses])


def _checked_edges(edges: Any) -> list[Edge]:
    checks.refuse_masked(edges, "edges")
    try:
        pairs = [(tail, head) for tail, head in edges]
    except (TypeError, ValueError):
        raise ValueError("edges must be pairs (tail, head), one pair per edge") from None
    if not pairs:
        raise ValueError("edges must hold at least two edges, got none")
    return pairs


def _topological_numbers(edges: list[Edge]) -> dict[Hashable, int]:
    """Number the vertices so that every edge goes from a smaller to a larger one."""
    sorter: TopologicalSorter[Hashable] = TopologicalSorter()
    for tail, head in edges:
        sorter.add(head, tail)
    try:
        return {vertex: number for number, vertex in enumerate(sorter.static_order())}
    except CycleError as error:
        cycle = " -> ".join(repr(vertex) for vertex in reversed(error.args[1]))
        raise ValueError(f"the graph must be acyclic, but has the cycle {cycle}") from None

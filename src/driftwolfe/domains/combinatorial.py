"""Polytopes of combinatorial objects: matchings, spanning trees, matroid bases, flows."""

from __future__ import annotations

import math
from collections.abc import Hashable
from graphlib import CycleError, TopologicalSorter
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.domains.balls import NonnegativePolytope, group_labels, room_shares
from driftwolfe.domains.base import Domain
from driftwolfe.domains.hull import comes_near
from driftwolfe.domains.thresholds import project_capped_sums
from driftwolfe.points import checks, norm
from driftwolfe.points.kinds import Array, Indices, compiled
from driftwolfe.points.rounding import tilt, tilted

graph_kernels = compiled("driftwolfe.domains.graph_kernels")


class BirkhoffPolytope(NonnegativePolytope):
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

    _made_from = (("n", "_side"),)

    def __init__(self, n: int) -> None:
        self._side = side = checks.count(n, "n", least=2)
        self._tilt = tilt(side**2).reshape(side, side)
        super().__init__(
            (side, side),
            math.sqrt(side - 1),
            diameter=math.sqrt(2 * side),
            center=np.full((side, side), 1 / side),
            inner_radius=1 / (side - 1),
        )

    def tangent(self, direction: Array) -> Array:
        rows = direction.sum(axis=1, keepdims=True) / self._side
        columns = direction.sum(axis=0) / self._side
        return direction - rows - columns + columns.sum() / self._side

    def _lmo(self, direction: Array) -> Array:
        from scipy.optimize import linear_sum_assignment  # a slow import, for this set alone

        vertex = np.zeros(self.shape)
        vertex[linear_sum_assignment(tilted(direction, self._tilt))] = 1.0
        return vertex


class SpanningTreePolytope(Domain):
    r"""Mixtures of spanning trees, one coordinate per edge of a connected graph.

    :math:`\{x \ge 0 : x(E) = |V| - 1, x(E[S]) \le |S| - 1 \text{ for all } S \subset V\}`, where
    E[S] holds the edges inside S. The oracle sorts the edges and grows a minimum spanning tree,
    O(m log m) for m edges. Membership grows a hull of trees until it reaches the point or a cut
    separates it. The centre is the mean of all spanning trees (the edges' effective resistances),
    which costs :math:`O(|V|^3)` once.

    Parameters
    ----------
    n_vertices
        Number of vertices, named 0, 1, ..., n_vertices - 1.
    edges
        Pairs of vertices, one per coordinate; parallel edges are fine, loops are not. The complete
        graph (pairs in lexicographic order) if not given. There must be several spanning trees.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> trees = dw.SpanningTreePolytope(3)  # edges 0-1, 0-2 and 1-2
    >>> trees.lmo([3.0, 1.0, 2.0]), trees.contains([1.0, 0.5, 0.5])
    (array([0., 1., 1.]), True)
    """

    cheap_membership = False  # it takes many calls of `lmo`
    _made_from = (("n_vertices", "n_vertices"), ("edges", "edges"))

    def __init__(self, n_vertices: int, edges: Any = None) -> None:
        from scipy.sparse.csgraph import connected_components  # a slow import, for this set alone

        self.n_vertices = checks.count(n_vertices, "n_vertices", least=2)
        self.edges = _checked_edges(self.n_vertices, edges)
        self._tails, self._heads = np.ascontiguousarray(self.edges.T)
        laplacian = _laplacian(self._tails, self._heads, self.n_vertices)
        pieces = connected_components(laplacian, directed=False, return_labels=False)
        if pieces > 1:
            raise ValueError(f"the graph must be connected, but falls into {pieces} pieces")
        if len(self.edges) == self.n_vertices - 1:
            raise ValueError("the graph is a tree, so there is one spanning tree; add an edge")
        self._tilt = tilt(len(self.edges))
        center = self._effective_resistances(laplacian.toarray())
        # ||tree - c||^2 is linear in a 0/1 vector, so the oracle finds the farthest tree.
        farthest = self._lmo(2 * center - 1)
        rank = self.n_vertices - 1
        diameter = math.sqrt(2 * min(rank, center.size - rank))
        super().__init__(center.size, norm(farthest - center), diameter=diameter, center=center)

    def tangent(self, direction: Array) -> Array:
        return direction - direction.mean()  # all trees have as many edges

    def warm_up(self) -> None:
        self._lmo(np.zeros(self.shape))

    def _lmo(self, direction: Array) -> Array:
        order = np.argsort(tilted(direction, self._tilt), kind="stable")
        found = graph_kernels().spanning_tree(order, self._tails, self._heads, self.n_vertices)
        return np.asarray(found)

    def _contains(self, x: Array, slack: float) -> bool:
        if self._offset(x) > slack or x.min() < -slack or x.max() > 1 + slack:
            return False
        return comes_near(self._lmo, x, self.origin(), slack)

    def _effective_resistances(self, laplacian: Array) -> Array:
        """The chance that a uniformly random spanning tree holds each edge (Kirchhoff 1847)."""
        potentials = np.zeros_like(laplacian)
        grounded = scipy.linalg.cho_factor(laplacian[1:, 1:])
        potentials[1:, 1:] = scipy.linalg.cho_solve(grounded, np.eye(self.n_vertices - 1))
        own = potentials.diagonal()
        resistances: Array = own[self._tails] + own[self._heads]
        resistances -= 2 * potentials[self._tails, self._heads]
        return np.clip(resistances, 0.0, 1.0)


def _laplacian(tails: Indices, heads: Indices, n_vertices: int) -> Any:
    """Return the Laplacian of a graph, as a sparse matrix."""
    rows = np.concatenate((tails, heads, tails, heads))
    cols = np.concatenate((tails, heads, heads, tails))
    values = np.repeat([1.0, 1.0, -1.0, -1.0], tails.size)
    return scipy.sparse.coo_array((values, (rows, cols)), shape=(n_vertices, n_vertices)).tocsc()


def _checked_edges(n_vertices: int, edges: Any) -> Indices:
    if edges is None:
        return np.stack(np.triu_indices(n_vertices, 1), axis=1)
    checks.refuse_masked(edges, "edges")
    pairs = np.array(edges)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError("edges must be pairs of whole numbers, one pair per edge")
    if len(pairs) < n_vertices - 1:  # before anything of the size of n_vertices is made
        raise ValueError(
            f"the graph must be connected, but {len(pairs)} edges cannot join {n_vertices} vertices"
        )
    if pairs.min() < 0 or pairs.max() >= n_vertices:
        raise ValueError(
            f"edges must join vertices 0 to {n_vertices - 1}, got one with {pairs.min()} "
            f"and one with {pairs.max()}"
        )
    loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if loops.size:
        raise ValueError(f"edge {loops[0]} is a loop, which no tree can hold; leave it out")
    return pairs.astype(np.intp)


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
    >>> polytope.lmo([3.0, 1.0, 2.0, 5.0, 4.0]), polytope.project([1.2, 0.9, 0.2, 0.9, 0.3])
    (array([0., 1., 1., 0., 1.]), array([1.  , 0.85, 0.15, 0.8 , 0.2 ]))
    """

    _made_from = (("parts", "_labels"), ("capacities", "_capacities"), ("kind", "kind"))

    def __init__(self, parts: Any, capacities: Any, kind: str = "base") -> None:
        if kind not in ("base", "independent"):
            raise ValueError(f'kind must be "base" or "independent", got {kind!r}')
        self.kind = kind
        self._bases = kind == "base"
        self._labels = group_labels(parts, "parts")
        self._sizes = np.bincount(self._labels)
        given = [capacities] * self._sizes.size if np.ndim(capacities) == 0 else list(capacities)
        if len(given) != self._sizes.size:
            raise ValueError(
                f"capacities must have one entry per part, {self._sizes.size}, got {len(given)}"
            )
        self._capacities = np.array([checks.count(limit, "capacity") for limit in given])
        for part, (size, limit) in enumerate(zip(self._sizes, self._capacities, strict=True)):
            if limit > size:
                raise ValueError(
                    f"a capacity must be at most its part's size: part {part} has {size} "
                    f"coordinates and capacity {limit}"
                )
        self._movable = self._capacities < self._sizes if self._bases else self._sizes > 0
        if not self._movable.any():
            raise ValueError("every capacity is its part's size: there is one base; lower one")
        # Parts of one size and capacity are the rows of one array, which one operation serves.
        members = np.split(np.argsort(self._labels, kind="stable"), np.cumsum(self._sizes)[:-1])
        stacks: dict[tuple[int, int], list[Indices]] = {}
        for indices, capacity in zip(members, self._capacities.tolist(), strict=True):
            stacks.setdefault((indices.size, capacity), []).append(indices)
        self._blocks = [(np.stack(rows), capacity) for (_, capacity), rows in stacks.items()]
        level = self._capacities / self._sizes / (1 if self._bases else 2)
        if self._bases:
            # Inside the hyperplane of its part, a coordinate's unit vector is shorter than 1.
            room = np.minimum(level, 1 - level) / np.sqrt(np.maximum(1 - 1 / self._sizes, 1e-300))
            exchanged = 2 * np.minimum(self._capacities, self._sizes - self._capacities)
        else:
            room, exchanged = level, np.minimum(2 * self._capacities, self._sizes)
        super().__init__(
            self._labels.size,
            math.sqrt((self._capacities * (1 - 2 * level) + self._sizes * level**2).sum()),
            diameter=math.sqrt(exchanged.sum()),
            center=level[self._labels],
            inner_radius=float(room[self._movable].min()),
        )

    def tangent(self, direction: Array) -> Array:
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
            tight = (clipped.sum(axis=1) > capacity) | self._bases
            clipped[tight] = project_capped_sums(values[tight], capacity, 1.0)
            nearest[indices] = clipped
        return nearest

    def _gauge(self, y: Array) -> float:
        if self._outside_hull(y):
            return math.inf
        return float(max(shares.max() for shares in self._shares(y)))

    def _gauge_subgradient(self, y: Array) -> Array:
        entry_shares, part_shares = self._shares(y)
        entry, part = entry_shares.argmax(), part_shares.argmax()
        if part_shares[part] >= entry_shares[entry]:
            return np.where(self._labels == part, 2 / self._capacities[part], 0.0)
        level = self.center[entry]
        return self.tangent(self._at(entry, 1 / (1 - level) if y[entry] > level else -1 / level))

    def _sums(self, x: Array) -> Array:
        return np.bincount(self._labels, x).astype(np.float64, copy=False)

    def _shares(self, y: Array) -> tuple[Array, Array]:
        """Return the shares of their room that entries and parts take; bases have no room in parts."""
        step = self._from_center(y)
        parts = np.zeros(1) if self._bases else self._sums(step) / (self._capacities / 2)
        return room_shares(step, 1 - self.center, self.center), parts


class UniformMatroidPolytope(PartitionMatroidPolytope):
    r"""k of n, or mixtures of such choices: :math:`\{0 \le x \le 1 : \sum_i x_i = k\}`.

    With ``kind="independent"``, the sum is at most k. The oracle selects the k smallest entries in
    O(n); the projection shifts and clips in O(n log n). Centre and gauge are those of
    `PartitionMatroidPolytope` with a single part.

    Parameters
    ----------
    n
        Number of coordinates.
    k
        How many are chosen: from 1 to n - 1 for bases, to n for independent sets.
    kind
        ``"base"`` or ``"independent"``.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> polytope = dw.UniformMatroidPolytope(4, k=2)
    >>> polytope.lmo([3.0, 1.0, -2.0, 5.0]), polytope.project([2.0, 1.0, 0.5, 0.0])
    (array([0., 1., 1., 0.]), array([1.  , 0.75, 0.25, 0.  ]))
    """

    _made_from = (("n", "_size"), ("k", "k"), ("kind", "kind"))

    def __init__(self, n: int, k: int, kind: str = "base") -> None:
        self._size, self.k = checks.count(n, "n"), checks.count(k, "k")
        most = self._size - 1 if kind == "base" else self._size
        if self.k > most:
            raise ValueError(f'k must be from 1 to {most} for n = {n} and kind "{kind}", got {k}')
        super().__init__(np.zeros(self._size, dtype=np.intp), self.k, kind)


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
    >>> routes.lmo([1.0, 3.0, 4.0, 1.0]), routes.center
    (array([0., 1., 0., 1.]), array([0.5, 0.5, 0.5, 0.5]))
    """

    _made_from = (("edges", "edges"), ("source", "source"), ("sink", "sink"))

    def __init__(self, edges: Any, source: Hashable, sink: Hashable) -> None:
        checks.refuse_masked(edges, "edges")
        try:
            self.edges = [(tail, head) for tail, head in edges]
        except (TypeError, ValueError):
            raise ValueError("edges must be pairs (tail, head), one pair per edge") from None
        if not self.edges:
            raise ValueError("edges must hold at least two edges, got none")
        numbers = _topological_numbers(self.edges)
        for vertex, name in ((source, "source"), (sink, "sink")):
            if vertex not in numbers:
                raise ValueError(f"{name} {vertex!r} is on no edge")
        self._tails = np.array([numbers[tail] for tail, _ in self.edges])
        self._heads = np.array([numbers[head] for _, head in self.edges])
        self.source, self.sink = source, sink
        self._source, self._sink, self._n_vertices = numbers[source], numbers[sink], len(numbers)
        sweep = np.argsort(self._tails, kind="stable")
        center = self._mean_path(sweep.tolist())
        self._usable = sweep[center[sweep] > 0]
        self._path_tails, self._path_heads = self._tails[self._usable], self._heads[self._usable]
        # Row sums of squares of the conservation equations, which scale them to unit length.
        ends = np.concatenate((self._tails, self._heads))
        self._equation_lengths = np.sqrt(np.bincount(ends, minlength=self._n_vertices))
        self._tilt = tilt(center.size)
        # ||path - c||^2 is linear in a 0/1 vector, so the oracle finds the farthest path.
        farthest, longest = self._lmo(2 * center - 1), self._lmo(-np.ones(center.size))
        diameter = math.sqrt(2 * longest.sum())
        super().__init__(center.size, norm(farthest - center), diameter=diameter, center=center)

    def tangent(self, direction: Array) -> Array:
        # The circulation nearest to the direction: what flows in flows out, everywhere.
        tails, heads, along = self._path_tails, self._path_heads, direction[self._usable]
        surplus = self._surplus(tails, heads, along)
        level = np.zeros(self._n_vertices)
        inner, laplacian = self._potentials()
        level[inner] = laplacian.solve(surplus[inner])
        circulation = np.zeros(direction.size)
        circulation[self._usable] = along - (level[tails] - level[heads])
        return circulation

    def _potentials(self) -> tuple[Indices, Any]:
        """The vertices on paths without the sink, and the factorised Laplacian there.

        It is kept beside the set, not in it: a factorisation can be neither copied nor compared.
        """
        if self not in _POTENTIALS:
            touched = np.union1d(self._path_tails, self._path_heads)
            inner = touched[touched != self._sink]
            laplacian = _laplacian(self._path_tails, self._path_heads, self._n_vertices)
            _POTENTIALS[self] = inner, scipy.sparse.linalg.splu(laplacian[inner][:, inner].tocsc())
        return _POTENTIALS[self]

    def warm_up(self) -> None:
        self._lmo(np.zeros(self.shape))

    def _lmo(self, direction: Array) -> Array:
        costs, ends = tilted(direction, self._tilt)[self._usable], (self._source, self._sink)
        path = np.zeros(direction.size)
        path[self._usable] = graph_kernels().shortest_path(
            costs, self._path_tails, self._path_heads, self._n_vertices, *ends
        )
        return path

    def _contains(self, x: Array, slack: float) -> bool:
        return bool(x.min() >= -slack) and self._offset(x) <= slack

    def _gauge(self, y: Array) -> float:
        if self._outside_hull(y):
            return math.inf
        return max(0.0, 1 - float((y[self._usable] / self.center[self._usable]).min()))

    def _surplus(self, tails: Indices, heads: Indices, flow: Array) -> Any:
        """What flows out of each vertex less what flows in."""
        surplus: Any = np.bincount(tails, flow, self._n_vertices)
        return surplus - np.bincount(heads, flow, self._n_vertices)

    def _offset(self, x: Array) -> float:
        """The largest violation of an equation of the set, in units of distance."""
        surplus = self._surplus(self._tails, self._heads, x)
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


def _topological_numbers(edges: list[tuple[Hashable, Hashable]]) -> dict[Hashable, int]:
    """Number the vertices so that every edge goes from a smaller to a larger one."""
    sorter: TopologicalSorter[Hashable] = TopologicalSorter()
    for tail, head in edges:
        sorter.add(head, tail)
    try:
        return {vertex: number for number, vertex in enumerate(sorter.static_order())}
    except CycleError as error:
        cycle = " -> ".join(repr(vertex) for vertex in reversed(error.args[1]))
        raise ValueError(f"the graph must be acyclic, but has the cycle {cycle}") from None

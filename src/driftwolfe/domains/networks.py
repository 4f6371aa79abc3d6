"""`Network`: a directed graph with demands, and the cheapest flows through it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cached_property, partial
from graphlib import CycleError, TopologicalSorter
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.domains.highs import LinearMinimiser
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Indices, compiled

kernels = compiled("driftwolfe.domains.set_kernels")

Arc: TypeAlias = tuple[Hashable, Hashable]
#: An origin, a destination and how much flows from one to the other.
Demand: TypeAlias = tuple[Hashable, Hashable, float]
#: Prices, over the largest, and flows, over their bound, that are rounding.
_ROUNDED, _FULL = 1e-12, 1e-9
_TOO_TIGHT = "no flow of the demands keeps the capacities; raise some"


def arcs_of(graph: Any) -> list[Arc]:
    """Return the arcs of a graph: pairs, a SciPy sparse matrix or a networkx graph."""
    if hasattr(graph, "is_directed") and hasattr(graph, "edges"):
        return [arc for arc, _ in networkx_arcs(graph)]
    if scipy.sparse.issparse(graph):
        matrix = scipy.sparse.csr_array(checks.sound_sparse(graph, "graph"), copy=True)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"graph must be a square matrix, got shape {matrix.shape}")
        matrix.sum_duplicates()
        tails = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        return list(zip(tails.tolist(), matrix.indices.tolist(), strict=True))
    checks.refuse_masked(graph, "graph")
    try:
        pairs = graph.tolist() if isinstance(graph, np.ndarray) else graph
        return [(tail, head) for tail, head in pairs]
    except (TypeError, ValueError):
        raise ValueError(
            "graph must be pairs (tail, head), one pair per arc, a SciPy sparse matrix or a networkx graph"
        ) from None


def networkx_arcs(graph: Any) -> list[tuple[Arc, dict[str, Any]]]:
    """Return arcs and their attributes; both ways of each edge, one after the other, if it is undirected."""
    edges = list(graph.edges(data=True))
    if graph.is_directed():
        return [((tail, head), kept) for tail, head, kept in edges]
    return [(arc, kept) for a, b, kept in edges for arc in ((a, b), (b, a))]


def arc_bounds(capacities: Any, size: int) -> Array:
    """Return the capacity of each arc, which may be infinite."""
    given = checks.real_array(capacities, "capacities")
    if given.shape not in ((), (size,)):
        raise ValueError(f"capacities must be a number or {size}, one per arc, got {given.shape}")
    if not (given >= 0).all():
        raise ValueError("capacities must be numbers >= 0, or inf for none")
    return np.broadcast_to(given, size).copy()


def demand_triples(demands: Any) -> list[Demand]:
    """Return the demands that are not 0, with those between the same two vertices added up."""
    if isinstance(demands, Mapping):
        rows = [
            (*pair, amount) if type(pair) is tuple else pair for pair, amount in demands.items()
        ]
    elif isinstance(demands, np.ndarray) or hasattr(demands, "columns"):
        table = checks.real_array(np.asarray(demands), "demands")
        if table.ndim != 2 or table.shape[0] != table.shape[1]:
            raise ValueError(f"an array of demands must be square, got shape {table.shape}")
        labels = [getattr(demands, axis, range(len(table))) for axis in ("index", "columns")]
        amounts = table.ravel().tolist()
        rows = [(*pair, size) for pair, size in zip(product(*labels), amounts, strict=True)]
    else:
        rows = demands
    found = dict[Arc, float]()
    try:
        triples = [(origin, goal, amount) for origin, goal, amount in rows]
    except (TypeError, ValueError):
        raise ValueError(
            "demands must be {(origin, destination): amount}, triples (origin, destination, amount), "
            "or a square array"
        ) from None
    for origin, goal, amount in triples:
        size = checks.nonnegative(amount, f"the demand from {origin!r} to {goal!r}")
        if size > 0 and origin == goal:
            raise ValueError(
                f"demands must join two vertices, but one is from {origin!r} to itself"
            )
        if size > 0:
            found[origin, goal] = found.get((origin, goal), 0.0) + size
    if not found:
        raise ValueError("demands must hold at least one amount that is not 0")
    return [(origin, goal, amount) for (origin, goal), amount in found.items()]


class Network:
    """A directed graph with demands and capacities; all demands with one origin are one commodity."""

    def __init__(self, arcs: list[Arc], demands: list[Demand], capacities: Array | None) -> None:
        sorter: TopologicalSorter[Hashable] = TopologicalSorter()
        for tail, head in arcs:
            sorter.add(head, tail)
        try:
            vertices, self.acyclic = list(sorter.static_order()), True
        except CycleError:
            vertices, self.acyclic = list(dict.fromkeys(v for arc in arcs for v in arc)), False
        numbers = {vertex: number for number, vertex in enumerate(vertices)}
        for demand in demands:
            for vertex, name in zip(demand, ("source", "target"), strict=False):
                if vertex not in numbers:
                    raise ValueError(f"{name} {vertex!r} is on no edge")
        ends = np.array([(numbers[tail], numbers[head]) for tail, head in arcs])
        self.tails, self.heads = np.ascontiguousarray(ends.T)
        self.n_vertices, size = len(numbers), len(arcs)
        self._demands, self.ends = demands, (numbers[demands[0][0]], numbers[demands[0][1]])
        rows = {origin: row for row, origin in enumerate(dict.fromkeys(d[0] for d in demands))}
        self.rows = np.array([rows[origin] for origin, _, _ in demands])
        self.goals = np.array([numbers[goal] for _, goal, _ in demands])
        self.amounts = np.array([amount for *_, amount in demands])
        self.origins = np.array([numbers[origin] for origin in rows])
        self.supplies = np.zeros((self.origins.size, self.n_vertices))
        np.add.at(self.supplies, (self.rows, self.origins[self.rows]), self.amounts)
        np.subtract.at(self.supplies, (self.rows, self.goals), self.amounts)
        #: The amount of each commodity, and of all; how much an arc can carry at most.
        self.totals = np.bincount(self.rows, self.amounts)
        self.total = float(self.totals.sum())
        self.limits = np.minimum(
            np.full(size, self.total), np.inf if capacities is None else capacities
        )
        self.tight = bool((self.limits < self.total).any())
        self._touching = arcs_at(self.tails, self.heads, self.n_vertices)
        # Arcs by tail and head, parallel ones together, as the rows of a matrix.
        self._order = np.lexsort((self.heads, self.tails))
        pairs = np.stack((self.tails, self.heads))[:, self._order]
        self._firsts = np.flatnonzero(np.diff(pairs, prepend=-1).any(axis=0))
        places = pairs[:, self._firsts]
        self._columns = places[1].astype(np.int32)
        self._starts = np.searchsorted(places[0], np.arange(self.n_vertices + 1)).astype(np.int32)

    def cheapest(self, prices: Array) -> Array:
        """Return a cheapest flow, summed over the commodities."""
        prices = prices / np.abs(prices).max()  # so that no length overflows
        prices = np.where(self.used, prices, np.inf)
        prices = kernels().reduced_costs(prices, self.tails, self.heads, self.n_vertices)
        if prices.min() >= -_ROUNDED:
            flow = self.shortest(prices)
            if not self.tight or (flow <= self.limits * (1 + _ROUNDED)).all():
                return flow
        if not self.tight or self.origins.size == 1:
            flows = map(partial(self._routed, prices), range(self.origins.size))
            return np.add.reduce(list(flows))
        columns, program = self._program
        try:
            parts = program(prices[columns])
        except ValueError as error:
            raise ValueError(_TOO_TIGHT) from error
        return np.bincount(columns, parts, prices.size).astype(np.float64, copy=False)

    def _routed(self, prices: Array, row: int) -> Array:
        """Return a cheapest flow of one commodity."""
        total = self.totals[row]
        limits = np.where(self.ways[row], np.minimum(self.limits, total), 0.0)
        arcs, supplies = (prices, self.tails, self.heads, limits), self.supplies[row]
        flow = kernels().cheapest_flow(*arcs, supplies, *self._touching, _ROUNDED * total)
        if not flow.size:
            raise ValueError(_TOO_TIGHT)
        return np.asarray(flow)

    def shortest(self, prices: Array) -> Array:
        """Return a flow on shortest paths; capacities are not kept."""
        prices = np.where(self.used, np.maximum(prices, 0.0), np.inf)
        _, before = scipy.sparse.csgraph.dijkstra(
            self._matrix(prices), indices=self.origins, return_predecessors=True
        )
        trees, trips = before.astype(np.int64).ravel(), (self.rows, self.goals, self.amounts)
        arcs = prices, self.tails, self.heads
        return np.asarray(kernels().tree_flow(*arcs, trees, *trips, self.n_vertices))

    @cached_property
    def ways(self) -> Any:
        """Of each commodity, the arcs that are on ways from its origin to its destinations."""
        graph = self._matrix(np.where(self.limits > 0, 1.0, np.inf))
        backwards, distances = graph.T.tocsr(), scipy.sparse.csgraph.dijkstra
        reached = np.isfinite(distances(graph, indices=self.origins))
        missed = ~reached[self.rows, self.goals]
        if missed.any():
            origin, goal, _ = self._demands[int(missed.argmax())]
            raise ValueError(f"there is no way from {origin!r} to {goal!r}")
        goals = [self.goals[self.rows == row] for row in range(self.origins.size)]
        apart = np.array([distances(backwards, indices=each, min_only=True) for each in goals])
        return reached[:, self.tails] & np.isfinite(apart)[:, self.heads] & (self.limits > 0)

    @cached_property
    def used(self) -> Any:
        """The arcs that are on a way of some commodity."""
        return self.ways.any(axis=0)

    def free(self, flow: Array) -> Any:
        """Return the arcs whose flow differs between flows, and perhaps more where there are several commodities.

        Differences flow along the cycles of the residual graph, of any one flow.
        """
        more, less = flow < (1 - _FULL) * self.most, flow > _FULL * self.total
        ends = np.array([[self.tails, self.heads], [self.heads, self.tails]])
        tails, heads = np.concatenate((ends[0, :, more], ends[1, :, less])).T
        shape = (self.n_vertices, self.n_vertices)
        residual = scipy.sparse.csr_array((np.ones(tails.size), (tails, heads)), shape=shape)
        pieces = scipy.sparse.csgraph.connected_components(residual, connection="strong")[1]
        return self.used & (pieces[self.tails] == pieces[self.heads])

    @cached_property
    def most(self) -> Array:
        """How much each arc can carry."""
        return np.asarray(np.minimum(self.limits, self.totals @ self.ways))

    @cached_property
    def _program(self) -> tuple[Indices, LinearMinimiser]:
        """The linear program of all commodities, and the arc of each of its columns."""
        balance, sparse = incidence(self.tails, self.heads, self.n_vertices), scipy.sparse
        rows, columns = np.nonzero(self.ways)
        shared = np.flatnonzero(self.limits < self.total)
        sums = sparse.eye_array(self.tails.size, format="csr")[shared][:, columns]
        A = sparse.vstack((sparse.block_diag([balance[:, way] for way in self.ways]), sums))
        low = np.concatenate((self.supplies.ravel(), np.full(shared.size, -np.inf)))
        high = np.concatenate((self.supplies.ravel(), self.limits[shared]))
        upper = np.minimum(self.limits[columns], self.totals[rows])
        return columns, LinearMinimiser(A, low, high, 0.0, upper)

    def _matrix(self, lengths: Array) -> Any:
        """Return the matrix of distances between neighbours."""
        least = np.minimum.reduceat(lengths[self._order], self._firsts)
        shape = (self.n_vertices, self.n_vertices)
        return scipy.sparse.csr_array((least, self._columns, self._starts), shape=shape)


def arcs_at(tails: Indices, heads: Indices, n_vertices: int) -> tuple[Indices, Indices]:
    """Return where the arcs at each vertex start, and the arcs."""
    ends = np.concatenate((tails, heads))
    touching = np.argsort(ends, kind="stable")
    starts = np.searchsorted(ends[touching], np.arange(n_vertices + 1))
    return starts, touching % tails.size


def incidence(tails: Indices, heads: Indices, n_vertices: int) -> Any:
    """Return the sparse matrix with 1 at each edge's tail and -1 at its head, a column per edge."""
    places = np.concatenate((tails, heads)), np.tile(np.arange(tails.size), 2)
    values = np.repeat([1.0, -1.0], tails.size)
    return scipy.sparse.csr_array((values, places), shape=(n_vertices, tails.size))

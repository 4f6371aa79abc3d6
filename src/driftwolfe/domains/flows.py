"""Flow polytopes, and the networks that they are of: arcs, demands, cheapest flows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any, Self, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.domains.base import LMO, Domain
from driftwolfe.domains.hull import comes_near, peel
from driftwolfe.domains.programs import LinearMinimiser
from driftwolfe.points import checks, norm
from driftwolfe.points.kinds import Array, Indices, Point, compiled
from driftwolfe.points.ops import tilt, tilted

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
        kinds = "pairs (tail, head), one per arc, a SciPy sparse matrix or a networkx graph"
        raise ValueError(f"graph must be {kinds}") from None


def networkx_arcs(graph: Any) -> list[tuple[Arc, dict[str, Any]]]:
    """Return arcs and their attributes; both ways of each edge, one after the other, if it is undirected."""
    edges = list(graph.edges(data=True))
    if graph.is_directed():
        return [((tail, head), kept) for tail, head, kept in edges]
    return [(arc, kept) for a, b, kept in edges for arc in ((a, b), (b, a))]


def demand_triples(demands: Any) -> list[Demand]:
    """Return the demands that are not 0, with those between the same two vertices added up."""
    rows = demands
    if isinstance(demands, Mapping):
        rows = [(*pair, size) if type(pair) is tuple else pair for pair, size in demands.items()]
    found = dict[Arc, float]()
    try:
        triples = [(origin, goal, amount) for origin, goal, amount in rows]
    except (TypeError, ValueError):
        kinds = "{(origin, destination): amount}, or triples (origin, destination, amount)"
        raise ValueError(f"demands must be {kinds}") from None
    for origin, goal, amount in triples:
        size = checks.nonnegative(amount, f"the demand from {origin!r} to {goal!r}")
        if size > 0 and origin == goal:
            raise ValueError(f"demands must join two vertices, not lead from {origin!r} to itself")
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
        unlimited = np.full(size, self.total)
        self.limits = unlimited if capacities is None else np.minimum(unlimited, capacities)
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
            return self._routed(prices)
        columns, program = self._program
        try:
            parts = program(prices[columns])
        except ValueError as error:
            raise ValueError(_TOO_TIGHT) from error
        return np.bincount(columns, parts, prices.size).astype(np.float64, copy=False)

    def _routed(self, prices: Array) -> Array:
        """Return a cheapest flow where commodities do not meet: that of each, by itself."""
        arcs, flows = (prices, self.tails, self.heads), np.zeros(prices.size)
        for way, supplies, total in zip(self.ways, self.supplies, self.totals, strict=True):
            limits = np.where(way, np.minimum(self.limits, total), 0.0)
            room = limits, supplies, *self._touching, _ROUNDED * total
            if not (flow := kernels().cheapest_flow(*arcs, *room)).size:
                raise ValueError(_TOO_TIGHT)
            flows += flow
        return flows

    def shortest(self, prices: Array) -> Array:
        """Return a flow on shortest paths; capacities are not kept."""
        prices = np.where(self.used, np.maximum(prices, 0.0), np.inf)
        asked = {"indices": self.origins, "return_predecessors": True}
        _, before = scipy.sparse.csgraph.dijkstra(self._matrix(prices), **asked)
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


#: Least mean flow on a usable edge: with 2^1000 paths, rarer edges would underflow to unusable.
_LEAST_FLOW = 1e-300
#: Factorised Laplacians, kept beside their sets: they can be neither copied nor compared.
_LAPLACIANS: WeakKeyDictionary[Domain, Any] = WeakKeyDictionary()
#: Routings whose mean is the centre where paths are not counted.
_ROUTINGS = 8
#: Relative error of the value of a linear program.
_SOLVED = 1e-7


class FlowPolytope(Domain):
    r"""Routes and their mixtures: flows through a directed graph, one coordinate per arc.

    One commodity: :math:`\{0 \le x \le u : x(out(v)) - x(in(v)) = [v = source] - [v = target] \text{ for all }
    v\}`. Several: sums of such flows. All demands with one origin are one commodity; on any arc it flows at most
    as much as its total demand, so what may run in circles is bounded. Arcs on no way are always 0.

    On an acyclic graph with one pair of vertices and no lower capacity, the vertices are the paths. The oracle is
    a shortest path by dynamic programming, O(m) for m arcs. The centre is the mean of all paths.

    On others the oracle is Dijkstra's method (SciPy) where no price is negative and the paths fit the capacities,
    else a minimum-cost flow by successive shortest paths for each commodity, or one linear program (HiGHS) if
    several share capacities. The centre is the mean of a few routings, and `radius` may be far too large in most
    directions. Membership for several commodities takes many calls of the oracle.

    Parameters
    ----------
    graph
        Arcs ``(tail, head)`` between vertices, which may be numbers, strings or anything hashable. Parallel ones
        are fine. Or a networkx graph, see `from_networkx`. Or a SciPy sparse matrix: each stored entry is an arc
        from its row to its column, in the order of ``tocsr()``; what the entries are plays no role.
    source, target
        Where a flow of 1 starts and ends. There must be more than one path.
    capacities
        Bounds on the total flow of arcs: a number, or one per arc, ``inf`` for none.
    demands
        In place of source and target: ``{(origin, destination): amount}``, or triples ``(origin, destination,
        amount)``.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> routes = dw.FlowPolytope([("s", "a"), ("s", "b"), ("a", "t"), ("b", "t")], "s", "t")
    >>> routes.lmo([1.0, 3.0, 4.0, 1.0]), routes.center
    (array([0., 1., 0., 1.]), array([0.5, 0.5, 0.5, 0.5]))

    Two commodities in a town of two-way streets:

    >>> streets = [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)]
    >>> town = dw.FlowPolytope(streets, demands={(0, 2): 3.0, (1, 0): 1.0})
    >>> town.lmo([1.0, 1.0, 1.0, 1.0, 3.0, 1.0])
    array([3., 1., 3., 0., 0., 0.])
    """

    _made_from = (
        ("graph", "edges"),
        *((name, name) for name in ("source", "target", "capacities", "demands")),
    )

    def __init__(
        self,
        graph: Any,
        source: Hashable = None,
        target: Hashable = None,
        *,
        capacities: Any = None,
        demands: Any = None,
    ) -> None:
        self.edges = arcs_of(graph)
        self.source, self.target = source, target
        self.demands = None if demands is None else demand_triples(demands)
        size = len(self.edges)
        if capacities is not None:
            given = checks.real_array(capacities, "capacities")
            if given.shape not in ((), (size,)) or not (given >= 0).all():
                one = f"a number or {size}, one per arc"
                raise ValueError(f"capacities must be {one}, >= 0 or inf, got shape {given.shape}")
            capacities = np.broadcast_to(given, size).copy()
        self.capacities: Array | None = capacities
        if (source is None) is not (target is None) or (source is None) is (demands is None):
            raise ValueError("give source and target, or else demands")
        if demands is None and source == target:
            raise ValueError(f"source and target must be two vertices, got {source!r} twice")
        trips = self.demands or [(source, target, 1.0)]
        self._network = net = Network(self.edges, trips, self.capacities)
        self._tilt = tilt(size)
        #: Whether all flows are mixtures of paths through an acyclic graph.
        self._paths = net.acyclic and len(trips) == 1 and not net.tight
        if self._paths:
            order = np.argsort(net.tails, kind="stable")
            center = np.empty(size)
            center[order] = self._mean_path(net.tails[order].tolist(), net.heads[order].tolist())
            self._usable = order[center[order] > 0]
        else:
            center = self._mean_routing()
            apart = self._lmo(self._tilt - 0.5) - self._lmo(0.5 - self._tilt)
            if norm(apart) <= _SOLVED * norm(center):
                raise ValueError("the demands can be met in one way only; add arcs or capacity")
            self._usable = np.flatnonzero(net.free(center))
            self.known_by_lmo, self.cheap_membership = True, net.origins.size == 1
        self._tails, self._heads = net.tails[self._usable], net.heads[self._usable]
        # Rows of vertices on paths, but the last of each piece: what holds elsewhere holds there.
        balance = incidence(self._tails, self._heads, net.n_vertices)
        _, pieces = scipy.sparse.csgraph.connected_components(balance @ balance.T)
        last = net.n_vertices - 1 - np.unique(pieces[::-1], return_index=True)[1]
        self._incidence = balance[np.setdiff1d(np.union1d(self._tails, self._heads), last)]
        self._transposed = self._incidence.T.tocsr()
        # x_i^2 <= most_i x_i, so the oracle bounds squares; they are equal where vertices are paths.
        most, slack = net.most, 1.0 + _SOLVED * (not self._paths)
        square = center @ center + self._lmo(2 * center - most) @ (most - 2 * center)
        box = norm(np.maximum(center, most - center)[self._usable])
        radius = min(box, slack * math.sqrt(square))
        across = min(norm(most[self._usable]), slack * math.sqrt(2 * (self._lmo(-most) @ most)))
        super().__init__(size, radius, center=center, diameter=across)
        self.dimension = self._usable.size - self._incidence.shape[0]

    @classmethod
    def from_networkx(
        cls,
        G: Any,
        source: Hashable = None,
        target: Hashable = None,
        capacity: str | None = None,
        demands: Any = None,
    ) -> Self:
        """Return the flows through a networkx graph; coordinates are in the order of `edges`.

        Parameters
        ----------
        G
            A graph of any class. An undirected edge becomes two arcs, one after the other, each with its capacity.
        source, target, demands
            As in the constructor.
        capacity
            Name of the edges' attribute with their capacities; edges without it have none.

        Examples
        --------
        >>> import networkx as nx, driftwolfe as dw
        >>> square = nx.cycle_graph(4)
        >>> routes = dw.FlowPolytope.from_networkx(square, 0, 2)
        >>> dict(zip(routes.edges, routes.lmo([1.0, 1.0, 3.0, 3.0, 1.0, 1.0, 1.0, 1.0]).tolist()))
        {(0, 1): 1.0, (1, 0): 0.0, (0, 3): 0.0, (3, 0): 0.0, (1, 2): 1.0, (2, 1): 0.0, (2, 3): 0.0, (3, 2): 0.0}
        """
        found, capacities = networkx_arcs(G), None
        if capacity is not None:
            capacities = [kept.get(capacity, math.inf) for _, kept in found]
            if not any(capacity in kept for _, kept in found):
                raise ValueError(f"no edge of the graph has the attribute {capacity!r}")
        return cls(G, source, target, capacities=capacities, demands=demands)

    def tangent(self, direction: Array) -> Array:
        # The circulation nearest to the direction: what flows in flows out, everywhere.
        if self not in _LAPLACIANS:
            laplacian = self._incidence @ self._transposed
            _LAPLACIANS[self] = scipy.sparse.linalg.splu(laplacian.tocsc())
        along = direction[self._usable]
        potentials = _LAPLACIANS[self].solve(self._incidence @ along)
        return self._at(self._usable, along - self._transposed @ potentials)

    def _lmo(self, direction: Array) -> Array:
        prices, net = tilted(direction, self._tilt), self._network
        if not self._paths:
            return net.cheapest(prices if prices.any() else self._tilt)
        arcs = prices[self._usable], self._tails, self._heads
        path = np.zeros(direction.size)
        path[self._usable] = kernels().shortest_path(*arcs, net.n_vertices, *net.ends)
        return net.total * path

    def _contains(self, x: Array, slack: float) -> bool:
        if x.min() < -slack or self._offset(x) > slack:
            return False
        if not self._paths and (x > self._network.most + slack).any():
            return False
        return self.cheap_membership or comes_near(self._lmo, x, self.origin(), slack)

    def _decompose(self, x: Array, tolerance: float, lmo: LMO) -> tuple[list[Point], Array]:
        return peel(lmo, x) if self._paths else super()._decompose(x, tolerance, lmo)

    def _mean_path(self, tails: list[int], heads: list[int]) -> list[float]:
        """Mean flow of all paths on each edge: paths to its tail times paths from its head."""
        net = self._network
        source, target = net.ends
        # Whole numbers of any size: the number of paths outgrows floats in modest graphs.
        before, after = [0] * net.n_vertices, [0] * net.n_vertices
        before[source] = after[target] = 1
        edges = list(zip(tails, heads, strict=True))
        for tail, head in edges:
            before[head] += before[tail]
        for tail, head in reversed(edges):
            after[tail] += after[head]
        paths = after[source]
        if paths < 2:
            raise ValueError(f"there must be several paths from source to target, found {paths}")
        uses = [before[tail] * after[head] for tail, head in edges]
        return [max(net.total * (use / paths), _LEAST_FLOW) if use else 0.0 for use in uses]

    def _mean_routing(self) -> Array:
        """Mean of a few routings, each by prices that rise with the mean of those before."""
        mean = np.zeros(self._tilt.size)
        for count in range(_ROUTINGS):
            prices = 1.0 + mean / (mean.max() or 1.0)
            mean += (self._lmo(prices) - mean) / (count + 1)
        return mean

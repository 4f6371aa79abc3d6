"""`FlowPolytope`: routes through a graph and their mixtures, of one commodity or several."""

from __future__ import annotations

import math
from collections.abc import Hashable
from functools import cached_property
from typing import Any, Self
from weakref import WeakKeyDictionary

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.domains.base import Domain
from driftwolfe.domains.boxes import BoxSection
from driftwolfe.domains.hull import comes_near
from driftwolfe.domains.networks import (
    Network,
    arc_bounds,
    arcs_of,
    demand_triples,
    incidence,
    kernels,
    networkx_arcs,
)
from driftwolfe.points import norm
from driftwolfe.points.kinds import Array
from driftwolfe.points.ops import tilt, tilted

#: Least mean flow on a usable edge: with 2^1000 paths, rarer edges would underflow to unusable.
_LEAST_FLOW = 1e-300
#: Factorised Laplacians, kept beside their sets: they can be neither copied nor compared.
_LAPLACIANS: WeakKeyDictionary[Domain, Any] = WeakKeyDictionary()
#: Routings whose mean is the centre where paths are not counted.
_ROUTINGS = 8
#: Relative error of the value of a linear program.
_SOLVED = 1e-7


def _of_paths(name: str) -> Any:
    """A method that `BoxSection` has where vertices are paths; elsewhere it is that of any set."""
    return lambda self, *given: getattr(BoxSection if self._paths else Domain, name)(self, *given)


class FlowPolytope(BoxSection):
    r"""Routes and their mixtures: flows through a directed graph, one coordinate per arc.

    One commodity: :math:`\{0 \le x \le u : x(out(v)) - x(in(v)) = [v = source] - [v = target] \text{ for all }
    v\}`. Several: sums of such flows. All demands with one origin are one commodity; on any arc it flows at most
    as much as its total demand, so what may run in circles is bounded. Arcs on no way are always 0.

    On an acyclic graph with one pair of vertices and no lower capacity, the vertices are the paths. The oracle is
    a shortest path by dynamic programming, O(m) for m arcs. The centre is the mean of all paths. The gauge is
    infinite where flow is not conserved (more than 1e-9 of the size away).

    On others the oracle is Dijkstra's method (SciPy) where no price is negative and the paths fit the capacities,
    else a minimum-cost flow by successive shortest paths for each commodity, or one linear program (HiGHS) if
    several share capacities. The centre is the mean of a few routings, each with higher prices for arcs that were
    used, and `radius` may be far too large in most directions. Membership for several commodities takes many calls
    of the oracle.

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
        In place of source and target: ``{(origin, destination): amount}``, triples ``(origin, destination,
        amount)``, a square array (for vertices 0, 1, ...), or a pandas frame with vertices as index and columns.

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
        *(("graph", "edges"), ("source", "source"), ("target", "target")),
        *(("capacities", "capacities"), ("demands", "demands")),
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
        self.capacities = None if capacities is None else arc_bounds(capacities, size)
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
            self._usable, self.upper = np.flatnonzero(net.free(center)), net.most
            self.known_by_lmo, self.cheap_membership = True, net.origins.size == 1
        self._tails, self._heads = net.tails[self._usable], net.heads[self._usable]
        # Rows of vertices on paths, but the last of each piece: what holds elsewhere holds there.
        balance = incidence(self._tails, self._heads, net.n_vertices)
        number, pieces = scipy.sparse.csgraph.connected_components(balance @ balance.T)
        last = np.zeros(number, dtype=np.intp)
        np.maximum.at(last, pieces, np.arange(net.n_vertices))
        self._incidence = balance[np.setdiff1d(np.union1d(self._tails, self._heads), last)]
        self._transposed = self._incidence.T.tocsr()
        # x_i^2 <= most_i x_i, so the oracle bounds squares; they are equal where vertices are paths.
        most, slack = net.most, 1.0 + _SOLVED * (not self._paths)
        square = center @ center + self._lmo(2 * center - most) @ (most - 2 * center)
        box = norm(np.maximum(center, most - center)[self._usable])
        radius = min(box, slack * math.sqrt(square))
        across = min(norm(most[self._usable]), slack * math.sqrt(2 * (self._lmo(-most) @ most)))
        super().__init__(radius, center, diameter=across)

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

    _gauge, _gauge_subgradient = _of_paths("_gauge"), _of_paths("_gauge_subgradient")
    _decompose = _of_paths("_decompose")

    def can(self, operation: str) -> bool:
        return super().can(operation) and (self._paths or "gauge" not in operation)

    @cached_property
    def dimension(self) -> int:
        return int(self._usable.size - self._incidence.shape[0])

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
        path = np.zeros(direction.size)
        path[self._usable] = net.total * kernels().shortest_path(
            prices[self._usable], self._tails, self._heads, net.n_vertices, *net.ends
        )
        return path

    def _contains(self, x: Array, slack: float) -> bool:
        within = super()._contains(x, slack)
        return within and (self.cheap_membership or comes_near(self._lmo, x, self.origin(), slack))

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

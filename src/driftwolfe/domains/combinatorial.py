"""Polytopes of combinatorial objects: plans, rankings, matchings, spanning trees, matroid bases."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any, ClassVar, Self

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.domains.balls import group_labels, project_capped_sums
from driftwolfe.domains.base import LMO, Domain, reach
from driftwolfe.domains.boxes import BoxSection
from driftwolfe.domains.flows import arcs_at, arcs_of, incidence
from driftwolfe.domains.hull import comes_near, sweep
from driftwolfe.domains.programs import LinearMinimiser
from driftwolfe.points import checks, norm
from driftwolfe.points.kinds import Array, Indices, Point, compiled
from driftwolfe.points.ops import tilt, tilted

kernels = compiled("driftwolfe.domains.set_kernels")


class TransportPolytope(BoxSection):
    r"""Matrices with given sums: :math:`\{X \ge 0 : X 1 = rows, X^\top 1 = columns\}`.

    Plans that carry supplies to demands. The oracle is a minimum-cost flow by successive shortest paths. The centre
    shares out each supply as the demands are. `radius` is a bound, exact where all sums are equal. The gauge is
    infinite where a sum is wrong (more than 1e-9 of the size away).

    Parameters
    ----------
    rows, columns
        The sums of the rows and of the columns: two or more each, positive, of one total.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> dw.TransportPolytope([3.0, 1.0], [2.0, 2.0]).lmo([[0.0, 1.0], [0.0, 3.0]])
    array([[1., 2.],
           [1., 0.]])
    """

    _made_from: ClassVar[Any] = (("rows", "rows"), ("columns", "columns"))
    _decompose = Domain._decompose  # vertices are more than 0 and 1

    def __init__(self, rows: Any, columns: Any) -> None:
        self.rows = checks.finite_array(rows, "rows").copy()
        self.columns = checks.finite_array(columns, "columns").copy()
        for sums in (self.rows, self.columns):
            if sums.ndim != 1 or sums.size < 2 or not (sums > 0).all():
                raise ValueError(f"rows and columns must be two or more positive sums, got {sums}")
        total, other = self.rows.sum(), self.columns.sum()
        if abs(total - other) > 1e-9 * total:
            raise ValueError(f"rows and columns must have one total, got {total:g} and {other:g}")
        m, n = self.rows.size, self.columns.size
        center = np.outer(self.rows, self.columns / other)
        most = np.minimum.outer(self.rows, self.columns)
        least = np.maximum(np.add.outer(self.rows, self.columns - total), 0.0)
        supplies = np.append(self.rows, -(total / other) * self.columns)
        tails, heads = np.divmod(np.arange(m * n), n) + np.array([[0], [m]])
        around = arcs_at(tails, heads, m + n)
        self._flow = (tails, heads, most.ravel(), supplies, *around, 1e-12 * total)
        self._tilt = tilt(m * n).reshape(m, n)
        super().__init__(
            reach(self._lmo, center, least, most),
            center,
            # ||X - Y||^2 <= ||X||^2 + ||Y||^2, and ||X||^2 <= <most, X>.
            diameter=math.sqrt(2 * np.vdot(most, self._lmo(-most))),
            inner_radius=float(center.min()) / math.sqrt((1 - 1 / m) * (1 - 1 / n)),
        )
        self.dimension = (m - 1) * (n - 1)

    def tangent(self, direction: Array) -> Array:
        centred = direction - direction.mean(axis=1, keepdims=True)
        return centred - centred.mean(axis=0)

    def _lmo(self, direction: Array) -> Array:
        prices = tilted(direction, self._tilt)
        prices = prices / (np.abs(prices).max() or 1.0)  # so that no length overflows
        prices -= prices.min(axis=1, keepdims=True)
        flow = np.asarray(kernels().cheapest_flow(prices.ravel(), *self._flow))
        return flow.reshape(prices.shape)


class BirkhoffPolytope(TransportPolytope):
    r"""Doubly stochastic matrices: :math:`\{X \ge 0 : X 1 = 1, X^\top 1 = 1\}`.

    Mixtures of permutation matrices. The oracle solves an assignment problem, O(n^3) at worst; no projection of
    that cost is known. The centre is the uniform matrix. The gauge is infinite where a sum is wrong.

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
    _decompose = BoxSection._decompose

    def __init__(self, n: int) -> None:
        self._side = checks.count(n, "n", least=2)
        super().__init__(np.ones(self._side), np.ones(self._side))

    def _lmo(self, direction: Array) -> Array:
        from scipy.optimize import linear_sum_assignment  # a slow import, for this set alone

        vertex = np.zeros(direction.shape)
        vertex[linear_sum_assignment(tilted(direction, self._tilt))] = 1.0
        return vertex


class Permutahedron(Domain):
    r"""Mixtures of orders: the convex hull of all permutations of some numbers.

    A vertex is a ranking: each coordinate has its rank, or what that is worth. The oracle sorts, in O(n log n), and
    so does the projection (isotonic regression). The centre has the mean everywhere.

    Parameters
    ----------
    values
        The numbers, not all equal; or how many, for 1, 2, ..., n.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> ranks = dw.Permutahedron(3)
    >>> ranks.lmo([0.5, -1.0, 2.0]), ranks.project([2.0, 5.0, 2.0])
    (array([2., 3., 1.]), array([1.5, 3. , 1.5]))
    """

    _made_from = (("values", "values"),)

    def __init__(self, values: Any) -> None:
        if np.ndim(values) == 0:
            values = np.arange(1.0, checks.count(values, "values") + 1)
        self.values = np.sort(checks.finite_array(values, "values"))[::-1]
        if self.values.ndim != 1 or not np.ptp(self.values):
            raise ValueError("values must be a list of numbers, not all equal")
        n, mean = self.values.size, self.values.mean()
        # What the k largest of n add up to at most, above the mean, and the length of that row.
        self._room, k = np.cumsum(self.values - mean)[:-1], np.arange(1, n)
        self._lengths = np.sqrt(k * (n - k) / n)
        super().__init__(
            n,
            norm(self.values - mean),
            diameter=norm(self.values - self.values[::-1]),
            center=np.full(n, mean) if mean else None,
            inner_radius=float((self._room / self._lengths).min()),
        )
        self.dimension = n - 1

    def tangent(self, direction: Array) -> Array:
        return direction - direction.mean()

    def _lmo(self, direction: Array) -> Array:
        return self._at(np.argsort(direction, kind="stable"), self.values)

    def _contains(self, x: Array, slack: float) -> bool:
        sums = np.cumsum(np.sort(self._from_center(x))[::-1])[:-1]
        within = (sums <= self._room + slack * self._lengths).all()
        return bool(within and self._offset(x) <= slack)

    def _project(self, y: Array) -> Array:
        from scipy.optimize import isotonic_regression  # a slow import

        order = np.argsort(-y, kind="stable")
        # Beyond the range of the values, gaps make no difference.
        falls = np.minimum(-np.diff(y[order], prepend=y.max()), np.ptp(self.values))
        excess = isotonic_regression(-np.cumsum(falls) - self.values, increasing=False)
        return self._at(order, -np.cumsum(falls) - excess.x)


class MatchingPolytope(Domain):
    r"""Mixtures of matchings, one coordinate per edge: choices of edges of a graph of which no two meet.

    The oracle is an integer program (HiGHS, by SciPy); membership takes many calls of it. For graphs of two sides,
    a `LinearProgram` with a row per vertex is the same set and quicker. The centre is half of a uniform mixture.

    Parameters
    ----------
    graph
        Edges as pairs of vertices, which may be anything hashable, or a networkx graph, with coordinates in the
        order of ``graph.edges()``. Parallel edges are fine, loops are not; directions play no role.
    k
        How many edges a matching has at most; any number if not given.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> pairs = dw.MatchingPolytope([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])
    >>> pairs.lmo([-2.0, -3.0, -1.0, -2.0])
    array([1., 0., 0., 1.])
    """

    cheap_membership, known_by_lmo = False, True
    _made_from = (("graph", "edges"), ("k", "k"))

    def __init__(self, graph: Any, k: int | None = None) -> None:
        self.edges = arcs_of(list(graph.edges()) if hasattr(graph, "edges") else graph)
        self.k, size = k, len(self.edges)
        if not self.edges or any(a == b for a, b in self.edges):
            raise ValueError("graph must have edges, each between two vertices")
        numbers = dict[Hashable, int]()
        ends = [[numbers.setdefault(v, len(numbers)) for v in edge] for edge in self.edges]
        tails, heads = np.array(ends).T
        meets = abs(incidence(tails, heads, len(numbers)))
        most = np.append(np.ones(len(numbers)), size if k is None else checks.count(k, "k"))
        rows = scipy.sparse.vstack((meets, np.ones((1, size))))
        self._program = LinearMinimiser(rows, -math.inf, most, 0.0, 1.0, whole=True)
        self._tilt = tilt(size)
        # No more than 3/2 of the largest degree of matchings hold all edges (Shannon 1949).
        share = min(2 / 3 / meets.sum(axis=1).max(), most[-1] / size) / 2
        center, largest = np.full(size, share), self._lmo(np.full(size, -1.0))
        # As the share is below 1/2, a matching is the farther from the centre the more edges it has.
        shape = {"diameter": math.sqrt(2 * largest.sum()), "center": center, "inner_radius": share}
        super().__init__(size, norm(largest - center), **shape)

    def _lmo(self, direction: Array) -> Array:
        return self._program(tilted(direction, self._tilt))

    def _contains(self, x: Array, slack: float) -> bool:
        if x.min() < -slack or x.max() > 1 + slack:
            return False
        return comes_near(self._lmo, x, self.origin(), slack)


class SpanningTreePolytope(Domain):
    r"""Mixtures of spanning trees, one coordinate per edge of a connected graph.

    :math:`\{x \ge 0 : x(E) = |V| - 1, x(E[S]) \le |S| - 1 \text{ for all } S \subset V\}`, where
    E[S] holds the edges inside S. The oracle grows a minimum spanning tree, O(m log m) for m edges.
    Membership takes many calls of it. The centre is the mean of all spanning trees (the edges'
    effective resistances), which costs :math:`O(|V|^3)` once.

    Parameters
    ----------
    n_vertices, edges
        Number of vertices, named 0, 1, ..., and pairs of them, one per coordinate; parallel edges are fine, loops
        are not. By default the complete graph (pairs in lexicographic order). There must be several spanning trees.

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
        self.n_vertices = number = checks.count(n_vertices, "n_vertices", least=2)
        checks.refuse_masked(edges, "edges")
        pairs = np.stack(np.triu_indices(number, 1), axis=1) if edges is None else np.array(edges)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            raise ValueError("edges must be pairs of whole numbers, one pair per edge")
        if len(pairs) < number:  # before anything of the size of n_vertices is made
            raise ValueError(
                f"{len(pairs)} edges make one tree of {number} vertices at most; add edges"
            )
        if pairs.min() < 0 or pairs.max() >= number or (pairs[:, 0] == pairs[:, 1]).any():
            raise ValueError(f"each edge must join two vertices, numbers from 0 to {number - 1}")
        self.edges = pairs.astype(np.intp)
        self._tails, self._heads = np.ascontiguousarray(self.edges.T)
        self._tilt = tilt(len(self.edges))
        if (pieces := number - int(self._lmo(self._tilt).sum())) > 1:
            raise ValueError(f"the graph must be connected, but falls into {pieces} pieces")
        balance = incidence(self._tails, self._heads, number)
        # The chance that a uniformly random spanning tree holds an edge is its effective resistance
        # (Kirchhoff 1847). What the 1 adds to the inverse Laplacian cancels.
        potentials = np.linalg.inv((balance @ balance.T).toarray() + 1.0)
        own, shared = potentials.diagonal(), potentials[self._tails, self._heads]
        center = np.clip(own[self._tails] + own[self._heads] - 2 * shared, 0.0, 1.0)
        # ||tree - c||^2 is linear in a 0/1 vector, so the oracle finds the farthest tree.
        radius = norm(self._lmo(2 * center - 1) - center)
        diameter = math.sqrt(2 * min(number - 1, center.size - number + 1))
        super().__init__(center.size, radius, diameter=diameter, center=center)
        self.dimension = len(self.edges) - 1

    @classmethod
    def from_networkx(cls, G: Any) -> Self:
        """Return the spanning trees of a networkx graph, coordinates as ``G.edges()``; directions play no role.

        Examples
        --------
        >>> import networkx as nx, driftwolfe as dw
        >>> dw.SpanningTreePolytope.from_networkx(nx.cycle_graph("abc")).lmo([1.0, 3.0, 2.0])
        array([1., 0., 1.])
        """
        numbers = {vertex: number for number, vertex in enumerate(G)}
        return cls(len(numbers), [(numbers[a], numbers[b]) for a, b in G.edges()])

    def tangent(self, direction: Array) -> Array:
        return direction - direction.mean()  # all trees have as many edges

    def _lmo(self, direction: Array) -> Array:
        order = np.argsort(tilted(direction, self._tilt), kind="stable")
        tree = kernels().spanning_tree(order, self._tails, self._heads, self.n_vertices)
        return np.asarray(tree)

    def _contains(self, x: Array, slack: float) -> bool:
        if self._offset(x) > slack or x.min() < -slack or x.max() > 1 + slack:
            return False
        return comes_near(self._lmo, x, self.origin(), slack)


class PartitionMatroidPolytope(BoxSection):
    r"""So many of each kind: :math:`\{0 \le x \le 1 : \sum_{i \in p} x_i = capacity_p \forall p\}`.

    The parts p partition the coordinates. With ``kind="base"`` the sums equal the capacities, with
    ``"independent"`` they are at most those. The oracle selects the smallest entries of each part in
    O(n); the projection shifts and clips each part in O(n log n). The centre is uniform on each part,
    with half the capacity where sets are independent. The gauge of bases is infinite where a sum differs.

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

    upper = 1.0
    _made_from = (("parts", "_labels"), ("capacities", "_capacities"), ("kind", "kind"))

    def __init__(self, parts: Any, capacities: Any, kind: str = "base") -> None:
        checks.one_of(kind, "kind", ("base", "independent"))
        self.kind, self._bases = kind, kind == "base"
        self._labels = group_labels(parts, "parts")
        self._sizes = np.bincount(self._labels)
        number = self._sizes.size
        given = [capacities] * number if np.ndim(capacities) == 0 else list(capacities)
        if len(given) != number:
            raise ValueError(f"capacities must have one entry per part, {number}, got {len(given)}")
        self._capacities = np.array([checks.count(limit, "capacity") for limit in given])
        for part in np.flatnonzero(self._capacities > self._sizes)[:1]:
            size, limit = self._sizes[part], self._capacities[part]
            raise ValueError(f"part {part} has {size} coordinates, less than its capacity, {limit}")
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
            inner = np.minimum(level, 1 - level) / np.sqrt(np.maximum(1 - 1 / self._sizes, 1e-300))
            exchanged = 2 * np.minimum(self._capacities, self._sizes - self._capacities)
        else:
            inner, exchanged = level, np.minimum(2 * self._capacities, self._sizes)
        center = level[self._labels]
        super().__init__(
            math.sqrt((self._capacities * (1 - 2 * level) + self._sizes * level**2).sum()),
            center,
            room=(1 - center, center),
            diameter=math.sqrt(exchanged.sum()),
            inner_radius=float(inner[self._movable].min()),
        )
        self.dimension = int((self._sizes - self._bases)[self._movable].sum())

    def tangent(self, direction: Array) -> Array:
        if not self._bases:
            return direction
        level = direction - (self._sums(direction) / self._sizes)[self._labels]
        return np.where(self._movable[self._labels], level, 0.0)

    def _decompose(self, x: Array, tolerance: float, lmo: LMO) -> tuple[list[Point], Array]:
        fractions, starts = np.clip(x, 0.0, 1.0), np.empty(x.size)
        for indices, capacity in self._blocks:
            ends = np.minimum(np.cumsum(fractions[indices], axis=1), capacity)
            if self._bases:
                ends[:, -1] = capacity  # but for rounding, it was
            starts[indices[:, 0]], starts[indices[:, 1:]] = 0.0, ends[:, :-1]
            fractions[indices] = np.diff(ends, axis=1, prepend=0.0)
        chosen, weights = sweep(fractions, starts)
        return list(chosen), weights

    def _lmo(self, direction: Array) -> Array:
        vertex = np.zeros(self.shape)
        for indices, capacity in self._blocks:
            smallest = np.argpartition(direction[indices], capacity - 1, axis=1)[:, :capacity]
            vertex[np.take_along_axis(indices, smallest, axis=1)] = 1.0
        if not self._bases:
            vertex[direction >= 0] = 0.0
        return vertex

    def _contains(self, x: Array, slack: float) -> bool:
        within = super()._contains(x, slack)
        if self._bases or not within:
            return within
        return bool((self._sums(x) <= self._capacities + slack * np.sqrt(self._sizes)).all())

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
        return max(super()._gauge(y), float(self._part_loads(y).max()))

    def _gauge_subgradient(self, y: Array) -> Array:
        loads = self._part_loads(y)
        part = loads.argmax()
        if self._bases or loads[part] < super()._gauge(y):
            return super()._gauge_subgradient(y)
        return np.where(self._labels == part, 2 / self._capacities[part], 0.0)

    def _sums(self, x: Array) -> Array:
        return np.bincount(self._labels, x).astype(np.float64, copy=False)

    def _part_loads(self, y: Array) -> Array:
        """Return how much of its room, half the capacity, each part takes; 0 for bases."""
        return self._sums(self._from_center(y)) * (0 if self._bases else 2) / self._capacities


class UniformMatroidPolytope(PartitionMatroidPolytope):
    r"""k of n, or mixtures of such choices: :math:`\{0 \le x \le 1 : \sum_i x_i = k\}`.

    With ``kind="independent"``, the sum is at most k. The oracle selects the k smallest entries in
    O(n); the projection shifts and clips in O(n log n). It is a `PartitionMatroidPolytope` of one part.

    Parameters
    ----------
    n, k
        Number of coordinates, and how many are chosen: from 1 to n - 1 for bases, to n for independent sets.
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

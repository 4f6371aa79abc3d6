"""The spanning tree polytope."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.domains.base import Domain
from driftwolfe.domains.hull import comes_near
from driftwolfe.points import checks, norm
from driftwolfe.points.kinds import Array, Indices
from driftwolfe.points.rounding import tilt, tilted


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
    >>> trees = dw.SpanningTreePolytope(3)
    >>> trees.edges
    array([[0, 1],
           [0, 2],
           [1, 2]])
    >>> trees.lmo([3.0, 1.0, 2.0])
    array([0., 1., 1.])
    >>> trees.contains([1.0, 0.5, 0.5]), trees.contains([1.5, 0.5, 0.0])
    (True, False)
    """

    def __init__(self, n_vertices: int, edges: Any = None) -> None:
        self.n_vertices = checks.count(n_vertices, "n_vertices", least=2)
        self.edges = _checked_edges(self.n_vertices, edges)
        self._tails, self._heads = np.ascontiguousarray(self.edges.T)
        self._require_several_trees()
        self._tilt = tilt(len(self.edges))
        center = self._effective_resistances()
        # ||tree - c||^2 is linear in a 0/1 vector, so the oracle finds the farthest tree.
        farthest = self._lmo(2 * center - 1)
        rank, spare = self.n_vertices - 1, len(self.edges) - self.n_vertices + 1
        super().__init__(
            len(self.edges),
            norm(farthest - center),
            diameter=math.sqrt(2 * min(rank, spare)),
            center=center,
        )

    def arguments(self) -> dict[str, Any]:
        """What it was made from."""
        return {"n_vertices": self.n_vertices, "edges": self.edges}

    def tangent(self, direction: Array) -> Array:
        """Return the direction less its mean: all trees have as many edges."""
        return direction - direction.mean()

    @property
    def cheap_membership(self) -> bool:
        """No: it takes many calls of `lmo`."""
        return False

    def warm_up(self) -> None:
        """Compile the oracle."""
        self._lmo(np.zeros(self.shape))

    def _lmo(self, direction: Array) -> Array:
        from driftwolfe.domains.kernels import spanning_tree

        order = np.argsort(tilted(direction, self._tilt), kind="stable")
        tree: Array = spanning_tree(order, self._tails, self._heads, self.n_vertices)
        return tree

    def _contains(self, x: Array, slack: float) -> bool:
        drift = abs(float(x.sum()) - (self.n_vertices - 1)) / math.sqrt(x.size)
        if drift > slack or x.min() < -slack or x.max() > 1 + slack:
            return False
        return comes_near(self._lmo, x, self.origin(), slack)

    def _require_several_trees(self) -> None:
        from scipy.sparse.csgraph import connected_components  # a slow import, for this set alone

        n, m = self.n_vertices, len(self.edges)
        graph = scipy.sparse.coo_array((np.ones(m), (self._tails, self._heads)), shape=(n, n))
        pieces = connected_components(graph, directed=False, return_labels=False)
        if pieces > 1:
            raise ValueError(f"the graph must be connected, but falls into {pieces} pieces")
        if m == n - 1:
            raise ValueError("the graph is a tree, so there is one spanning tree; add an edge")

    def _effective_resistances(self) -> Array:
        """The chance that a uniformly random spanning tree holds each edge (Kirchhoff 1847)."""
        laplacian = np.zeros((self.n_vertices, self.n_vertices))
        for sign, rows, columns in (
            (1, self._tails, self._tails),
            (1, self._heads, self._heads),
            (-1, self._tails, self._heads),
            (-1, self._heads, self._tails),
        ):
            np.add.at(laplacian, (rows, columns), sign)
        potentials = np.zeros_like(laplacian)
        grounded = scipy.linalg.cho_factor(laplacian[1:, 1:])
        potentials[1:, 1:] = scipy.linalg.cho_solve(grounded, np.eye(self.n_vertices - 1))
        own = potentials.diagonal()
        resistances: Array = own[self._tails] + own[self._heads]
        resistances -= 2 * potentials[self._tails, self._heads]
        return np.clip(resistances, 0.0, 1.0)


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

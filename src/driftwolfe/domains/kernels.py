"""Compiled loops over the edges of graphs."""

# mypy: allow-untyped-decorators
from __future__ import annotations

from typing import Any

import numba
import numpy as np

_jit = numba.njit(cache=True, nogil=True)


@_jit
def spanning_tree(order: Any, tails: Any, heads: Any, n_vertices: int) -> Any:
    """Return the indicator of the tree that takes each edge in `order` that closes no cycle."""
    parents = np.arange(n_vertices)
    sizes = np.ones(n_vertices, np.int64)
    tree = np.zeros(order.size)
    missing = n_vertices - 1
    for edge in order:
        one = _root(parents, tails[edge])
        other = _root(parents, heads[edge])
        if one == other:
            continue
        if sizes[one] < sizes[other]:
            one, other = other, one
        parents[other] = one
        sizes[one] += sizes[other]
        tree[edge] = 1.0
        missing -= 1
        if missing == 0:
            break
    return tree


@_jit
def _root(parents: Any, vertex: int) -> int:
    while parents[vertex] != vertex:
        parents[vertex] = parents[parents[vertex]]
        vertex = parents[vertex]
    return vertex


@_jit
def shortest_path(
    costs: Any, tails: Any, heads: Any, n_vertices: int, source: int, sink: int
) -> Any:
    """Return the indicator of a cheapest path; edges are sorted topologically by tail.

    Every tail must be the source or the head of an earlier edge.
    """
    distances = np.zeros(n_vertices)
    arrivals = np.full(n_vertices, -1)
    for edge in range(costs.size):
        through = distances[tails[edge]] + costs[edge]
        head = heads[edge]
        if arrivals[head] < 0 or through < distances[head]:
            distances[head] = through
            arrivals[head] = edge
    path = np.zeros(costs.size)
    vertex = sink
    while vertex != source:
        edge = arrivals[vertex]
        path[edge] = 1.0
        vertex = tails[edge]
    return path

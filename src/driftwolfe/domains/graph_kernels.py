"""Compiled loops over graphs; apart from `set_kernels`, as loading a module compiles all of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftwolfe.points.compiling import NUMBERS, PLACES, WHOLE, jit


@jit()
def _root(parents: Any, vertex: int) -> int:
    while parents[vertex] != vertex:
        parents[vertex] = parents[parents[vertex]]
        vertex = parents[vertex]
    return vertex


@jit(PLACES, PLACES, PLACES, WHOLE)
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


@jit(NUMBERS, PLACES, PLACES, WHOLE, WHOLE, WHOLE)
def shortest_path(
    costs: Any, tails: Any, heads: Any, n_vertices: int, source: int, sink: int
) -> Any:
    """Return the indicator of a cheapest path; edges are sorted topologically, all on ways from the source."""
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

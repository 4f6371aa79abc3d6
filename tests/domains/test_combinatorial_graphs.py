"""Spanning trees, against networkx and against lists of all trees."""

import itertools

import networkx as nx
import numpy as np
import pytest

import driftwolfe as dw
from domains.set_checks import check_set
from reliability.children import python

WHEEL = [(0, 1), (1, 2), (2, 3), (3, 0), (4, 0), (4, 1), (4, 2), (4, 3)]
DOUBLED = [(0, 1), (0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (3, 4), (3, 4)]


def all_trees(n_vertices, edges):
    """Every spanning tree, as an indicator vector."""
    for chosen in itertools.combinations(range(len(edges)), n_vertices - 1):
        graph = nx.MultiGraph()
        graph.add_nodes_from(range(n_vertices))
        graph.add_edges_from(edges[edge] for edge in chosen)
        if nx.is_connected(graph):
            tree = np.zeros(len(edges))
            tree[list(chosen)] = 1.0
            yield tree


@pytest.mark.parametrize(
    ("n_vertices", "edges"),
    [(4, None), (5, WHEEL), (5, DOUBLED), (2, [(0, 1), (1, 0)])],
    ids=["complete", "wheel", "parallel edges", "two vertices"],
)
def test_trees_against_all_trees(n_vertices, edges, rng):
    domain = dw.SpanningTreePolytope(n_vertices, edges)
    trees = list(all_trees(n_vertices, [tuple(pair) for pair in domain.edges]))
    assert np.allclose(domain.center, np.mean(trees, axis=0))
    check_set(domain, rng, trees, tight=n_vertices == 4)


def test_trees_against_networkx_on_a_larger_graph(rng):
    graph = nx.connected_watts_strogatz_graph(400, 8, 0.3, seed=1)
    edges = list(graph.edges)
    domain = dw.SpanningTreePolytope(400, edges)
    for _ in range(3):
        costs = rng.normal(size=len(edges))
        nx.set_edge_attributes(graph, dict(zip(edges, costs, strict=True)), "weight")
        least = nx.minimum_spanning_tree(graph).size(weight="weight")
        tree = domain.lmo(costs)
        assert np.isclose(costs @ tree, least)
        assert nx.is_tree(nx.Graph(itertools.compress(edges, tree)))


def test_a_subset_that_is_too_heavy_is_noticed(rng):
    # Heavy on a triangle of K6: sum and bounds are right, but x(E[S]) <= |S| - 1 fails there.
    domain = dw.SpanningTreePolytope(6)
    triangle = (domain.edges < 3).all(axis=1)
    x = np.where(triangle, 0.7, (5 - 2.1) / 12)
    assert np.isclose(x.sum(), 5)
    assert not domain.contains(x)
    x = np.where(triangle, 2 / 3, 3 / 12)
    assert domain.contains(x)
    assert not domain.contains(x + 1e-6 * (triangle - 3 / 15))


@pytest.mark.parametrize(
    ("n_vertices", "edges", "message"),
    [
        (4, [(0, 1), (1, 2), (2, 0)], "falls into 2 pieces"),
        (3, [(0, 1), (1, 2)], "the graph is a tree"),
        (2, None, "the graph is a tree"),
        (3, [(0, 1), (1, 2), (2, 2)], "edge 2 is a loop"),
        (3, [(0, 1), (1, 3), (0, 2)], "vertices 0 to 2"),
        (3, [(0, 1, 2)], "pairs of whole numbers"),
        (3, [(0.5, 1.0)], "pairs of whole numbers"),
        (1, None, "whole number >= 2"),
    ],
)
def test_bad_graphs_for_trees(n_vertices, edges, message):
    with pytest.raises(ValueError, match=message):
        dw.SpanningTreePolytope(n_vertices, edges)


def test_building_the_other_sets_does_not_load_the_compiler():
    script = (
        "import sys; from driftwolfe.domains.boxes import Simplex; Simplex(3);"
        "import driftwolfe.domains.combinatorial;"
        "assert 'driftwolfe.domains.set_kernels' not in sys.modules"
    )
    python("-c", script)

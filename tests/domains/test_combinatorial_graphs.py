"""Spanning trees and flows, against networkx and against lists of all trees and paths."""

import itertools

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog

import driftwolfe as dw
from domains.set_checks import check_set, check_sizes
from reliability.children import python

WHEEL = [(0, 1), (1, 2), (2, 3), (3, 0), (4, 0), (4, 1), (4, 2), (4, 3)]
DOUBLED = [(0, 1), (0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (3, 4), (3, 4)]

# Two routes with a chord, parallel edges, a dead end, an edge from nowhere and one beyond the sink.
ROADS = [
    ("s", "a"),
    ("s", "b"),
    ("a", "b"),
    ("a", "t"),
    ("b", "t"),
    ("b", "t"),
    ("a", "dead end"),
    ("nowhere", "b"),
    ("t", "beyond"),
]


@pytest.fixture
def rng():
    return np.random.default_rng(13)


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


def all_paths(edges, vertex, sink):
    """Every path, as an indicator vector."""
    if vertex == sink:
        yield np.zeros(len(edges))
        return
    for index, (tail, head) in enumerate(edges):
        if tail == vertex:
            for path in all_paths(edges, head, sink):
                path[index] = 1.0
                yield path


def layered_graph(layers, width):
    def name(layer, place):
        return layer * width + place

    inner = [
        (name(layer, place), name(layer + 1, following))
        for layer in range(layers - 1)
        for place in range(width)
        for following in range(width)
    ]
    entries = [("s", name(0, place)) for place in range(width)]
    exits = [(name(layers - 1, place), "t") for place in range(width)]
    return entries + inner + exits


# -- spanning trees ---------------------------------------------------------------------------


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


# -- flows ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edges", "source", "sink"),
    [(ROADS, "s", "t"), (layered_graph(3, 2), "s", "t"), ([(0, 1), (0, 1), (0, 1)], 0, 1)],
    ids=["roads", "layers", "parallel edges"],
)
def test_flows_against_all_paths(edges, source, sink, rng):
    domain = dw.FlowPolytope(edges, source, sink)
    paths = list(all_paths(edges, source, sink))
    assert np.allclose(domain.center, np.mean(paths, axis=0))
    check_set(domain, rng, paths, reach=0.5, tight=False)


def test_diameter_of_flows_without_shared_edges_is_tight():
    edges = [("s", "a"), ("a", "t"), ("s", "b"), ("b", "t")]
    check_sizes(dw.FlowPolytope(edges, "s", "t"), list(all_paths(edges, "s", "t")))


def test_flows_against_bellman_ford(rng):
    graph = nx.gnp_random_graph(120, 0.1, seed=2, directed=True)
    edges = [(tail, head) for tail, head in graph.edges if tail < head]
    domain = dw.FlowPolytope(np.array(edges), 0, 119)
    for _ in range(5):
        costs = rng.normal(size=len(edges))
        acyclic = nx.DiGraph()
        acyclic.add_weighted_edges_from((*e, c) for e, c in zip(edges, costs, strict=True))
        least = nx.bellman_ford_path_length(acyclic, 0, 119)
        assert np.isclose(costs @ domain.lmo(costs), least)


def test_flows_are_the_solutions_of_the_linear_programme(rng):
    vertices = sorted({vertex for edge in ROADS for vertex in edge})
    balance = np.array(
        [[(tail == v) - (head == v) for tail, head in ROADS] for v in vertices], dtype=float
    )
    supply = np.array([(v == "s") - (v == "t") for v in vertices], dtype=float)
    domain = dw.FlowPolytope(ROADS, "s", "t")
    for _ in range(5):
        costs = rng.normal(size=len(ROADS))
        solved = linprog(costs, A_eq=balance, b_eq=supply, bounds=(0, 1))
        assert np.isclose(costs @ domain.lmo(costs), solved.fun)
        assert domain.contains(solved.x)


def test_flow_membership_sees_every_equation():
    domain = dw.FlowPolytope(ROADS, "s", "t")
    center = domain.center
    for edge in range(len(ROADS)):
        nudge = np.zeros(len(ROADS))
        nudge[edge] = 1e-5
        assert not domain.contains(center + nudge)
        assert domain.gauge(center + nudge) == np.inf
    path = domain.lmo(np.ones(len(ROADS)))
    other = domain.lmo(2 * path - 1)
    assert not domain.contains(path + 1e-5 * (path - other))


def test_more_paths_than_a_float_can_count():
    diamonds = [edge for place in range(1100) for edge in [(place, place + 1), (place, place + 1)]]
    domain = dw.FlowPolytope([*diamonds, (0, 1100)], 0, 1100)
    assert np.allclose(domain.center[:-1], 0.5)
    assert domain.center[-1] > 0
    assert np.array_equal(np.flatnonzero(domain.lmo(np.ones(2201))), [2200])
    assert domain.contains(domain.center)


@pytest.mark.parametrize(
    ("edges", "source", "sink", "message"),
    [
        ([(0, 1), (1, 2), (2, 1), (2, 3)], 0, 3, "met in one way only"),
        ([(0, 1), (0, 1), (2, 3)], 0, 3, "several paths from source to target, found 0"),
        ([(0, 1), (1, 2)], 0, 2, "several paths from source to target, found 1"),
        ([(0, 1), (0, 1)], 0, 0, "two vertices, got 0 twice"),
        ([(0, 1), (0, 1)], 0, 5, "target 5 is on no edge"),
        ([(0, 1), (0, 1)], "s", 1, "source 's' is on no edge"),
        ([0, 1], 0, 1, r"pairs \(tail, head\)"),
        ([], 0, 1, "source 0 is on no edge"),
    ],
)
def test_bad_graphs_for_flows(edges, source, sink, message):
    with pytest.raises(ValueError, match=message):
        dw.FlowPolytope(edges, source, sink)


def test_building_the_other_sets_does_not_load_the_compiler():
    script = (
        "import sys; from driftwolfe.domains.boxes import Simplex; Simplex(3);"
        "import driftwolfe.domains.combinatorial;"
        "assert 'driftwolfe.domains.set_kernels' not in sys.modules"
    )
    python("-c", script)

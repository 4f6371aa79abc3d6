"""Spanning trees and matroids, against networkx, a conic solver and lists of all vertices."""

import itertools

import cvxpy as cp
import networkx as nx
import numpy as np
import pytest

import driftwolfe as dw
from domains.set_checks import check_set

WHEEL = [(0, 1), (1, 2), (2, 3), (3, 0), (4, 0), (4, 1), (4, 2), (4, 3)]
PARTS, CAPACITIES = [[0, 4, 2], [1, 3], [5, 7, 6]], [2, 1, 1]
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
    graph = nx.relabel_nodes(graph, "vertex {}".format)
    edges = list(graph.edges)
    domain = dw.SpanningTreePolytope.from_networkx(graph)
    for _ in range(3):
        costs = rng.normal(size=len(edges))
        nx.set_edge_attributes(graph, dict(zip(edges, costs, strict=True)), "weight")
        least = nx.minimum_spanning_tree(graph).size(weight="weight")
        tree = domain.lmo(costs)
        assert np.isclose(costs @ tree, least)
        assert nx.is_tree(nx.Graph(itertools.compress(edges, tree)))
    with pytest.raises(ValueError, match="2 pieces"):
        dw.SpanningTreePolytope.from_networkx(nx.disjoint_union(graph, graph))


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


# -- matroids --------------------------------------------------------------------------------


def zero_one(n, allowed):
    corners = (np.array(corner, dtype=float) for corner in itertools.product([0, 1], repeat=n))
    return [corner for corner in corners if allowed(corner)]


def uniform_case(n, k, kind):
    if kind == "base":
        vertices = zero_one(n, lambda x: x.sum() == k)
        return dw.UniformMatroidPolytope(n, k), vertices, lambda x: [x >= 0, x <= 1, cp.sum(x) == k]
    vertices = zero_one(n, lambda x: x.sum() <= k)
    domain = dw.UniformMatroidPolytope(n, k, kind="independent")
    return domain, vertices, lambda x: [x >= 0, x <= 1, cp.sum(x) <= k]


def partition_case(kind, capacities=CAPACITIES):
    compare = np.equal if kind == "base" else np.less_equal

    def allowed(x):
        sums = [x[part].sum() for part in PARTS]
        return bool(compare(sums, capacities).all())

    def constraints(x):
        sums = [cp.sum(x[part]) for part in PARTS]
        pairs = zip(sums, capacities, strict=True)
        limits = [s == c if kind == "base" else s <= c for s, c in pairs]
        return [x >= 0, x <= 1, *limits]

    domain = dw.PartitionMatroidPolytope(PARTS, capacities, kind)
    return domain, zero_one(8, allowed), constraints


CASES = {
    "3 of 5": uniform_case(5, 3, "base"),
    "up to 2 of 5": uniform_case(5, 2, "independent"),
    "partition bases": partition_case("base"),
    "partition bases, one part full": partition_case("base", [2, 2, 1]),
    "partition independent": partition_case("independent"),
    "partition independent, one part full": partition_case("independent", [2, 2, 1]),
}


@pytest.mark.parametrize("name", CASES)
def test_sets_against_their_vertices_and_a_conic_solver(name, rng):
    check_set(CASES[name][0], rng, *CASES[name][1:], reach=0.5)


def test_labels_and_index_lists_are_the_same_partition(rng):
    labels = np.empty(8, dtype=object)
    for name, part in zip("abc", PARTS, strict=True):
        labels[part] = name
    by_label = dw.PartitionMatroidPolytope(labels.astype(str), CAPACITIES)
    y = rng.normal(size=8)
    assert np.array_equal(by_label.project(y), CASES["partition bases"][0].project(y))
    assert np.array_equal(by_label.lmo(y), CASES["partition bases"][0].lmo(y))


def test_one_capacity_for_all_parts_and_many_parts_at_once(rng):
    domain = dw.PartitionMatroidPolytope(np.repeat(np.arange(300), 4), 2)
    y = rng.normal(size=1200)
    alone = dw.UniformMatroidPolytope(4, 2)
    assert np.allclose(
        domain.project(y).reshape(300, 4), [alone.project(r) for r in y.reshape(-1, 4)]
    )
    assert np.array_equal(domain.lmo(y).reshape(300, 4), [alone.lmo(r) for r in y.reshape(-1, 4)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: dw.SpanningTreePolytope(4, [(0, 1), (1, 2), (2, 0), (0, 1)]),
            "falls into 2 pieces",
        ),
        (lambda: dw.SpanningTreePolytope(3, [(0, 1), (1, 2)]), "2 edges make one tree"),
        (lambda: dw.SpanningTreePolytope(2), "1 edges make one tree"),
        (lambda: dw.SpanningTreePolytope(3, [(0, 1), (1, 2), (2, 2)]), "numbers from 0 to 2"),
        (lambda: dw.SpanningTreePolytope(3, [(0, 1), (1, 3), (0, 2)]), "numbers from 0 to 2"),
        (lambda: dw.SpanningTreePolytope(3, [(0, 1, 2)]), "pairs of whole numbers"),
        (lambda: dw.SpanningTreePolytope(3, [(0.5, 1.0)]), "pairs of whole numbers"),
        (lambda: dw.SpanningTreePolytope(1), "whole number >= 2"),
        (lambda: dw.UniformMatroidPolytope(4, 4), 'from 1 to 3 for n = 4 and kind "base", got 4'),
        (lambda: dw.UniformMatroidPolytope(4, 5, "independent"), "from 1 to 4"),
        (lambda: dw.UniformMatroidPolytope(4, 0), "k must be a whole number >= 1"),
        (lambda: dw.UniformMatroidPolytope(4, 2, kind="bases"), 'kind must be one of "base"'),
        (lambda: dw.PartitionMatroidPolytope([0, 0, 1], [1]), "one entry per part, 2, got 1"),
        (lambda: dw.PartitionMatroidPolytope([0, 0, 1], [1, 2]), "part 1 has 1 coordinates"),
        (lambda: dw.PartitionMatroidPolytope([0, 0, 1], [0, 1]), "capacity must be a whole number"),
        (lambda: dw.PartitionMatroidPolytope([0, 1], 1), "there is one base"),
        (lambda: dw.PartitionMatroidPolytope([[0], [0]], 1), "parts must be .* hold each of 0, 1"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_numbers_at_the_end_of_their_range_are_projected_without_a_warning():
    bases = dw.UniformMatroidPolytope(5, 2)
    nearest = bases.project([1.7e308, 1.7e308, -1.7e308, 0.0, 0.2])
    np.testing.assert_array_equal(nearest, [1.0, 1.0, 0.0, 0.0, 0.0])

"""Flows, against lists of all paths and flows, networkx and the textbook's linear program by HiGHS."""

import csv
import itertools
import os
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sparse
from scipy.optimize import linprog

import driftwolfe as dw
from domains.set_checks import check_set, check_sizes
from real_data import needs_data

# Two routes with a chord, parallel edges, a dead end, an edge from nowhere and one beyond the target.
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


# -- paths through acyclic graphs -------------------------------------------------------------


@pytest.mark.parametrize(
    ("edges", "source", "target"),
    [(ROADS, "s", "t"), (layered_graph(3, 2), "s", "t"), ([(0, 1), (0, 1), (0, 1)], 0, 1)],
    ids=["roads", "layers", "parallel edges"],
)
def test_flows_against_all_paths(edges, source, target, rng):
    domain = dw.FlowPolytope(edges, source, target)
    paths = list(all_paths(edges, source, target))
    assert np.allclose(domain.center, np.mean(paths, axis=0))
    check_set(domain, rng, paths, tight=False)


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


def test_flow_membership_sees_every_equation():
    domain = dw.FlowPolytope(ROADS, "s", "t")
    center = domain.center
    for edge in range(len(ROADS)):
        nudge = np.zeros(len(ROADS))
        nudge[edge] = 1e-5
        assert not domain.contains(center + nudge)
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
    ("edges", "source", "target", "message"),
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
def test_bad_graphs_for_flows(edges, source, target, message):
    with pytest.raises(ValueError, match=message):
        dw.FlowPolytope(edges, source, target)


def test_an_amount_scales_paths(rng):
    one = dw.FlowPolytope(ROADS, "s", "t")
    many = dw.FlowPolytope(ROADS, demands={("s", "t"): 2.5}, capacities=2.5)
    assert not many.known_by_lmo
    np.testing.assert_allclose(many.center, 2.5 * one.center)
    check_set(many, rng, [2.5 * path for path in all_paths(ROADS, "s", "t")], tight=False)


# -- any graph --------------------------------------------------------------------------------


def on_ways(edges, origin, goals, capacities=np.inf):
    """The edges on open ways from the origin to one of the goals."""
    is_open = np.broadcast_to(capacities, len(edges)) > 0
    graph = nx.MultiDiGraph(list(itertools.compress(edges, is_open)))
    graph.add_nodes_from((origin, *goals))
    after = nx.descendants(graph, origin) | {origin}
    before = set().union(*(nx.ancestors(graph, goal) | {goal} for goal in goals))
    return is_open & [tail in after and head in before for tail, head in edges]


def textbook(edges, demands, capacities=np.inf):
    """The linear program of flows per origin: arguments of linprog but the costs, and the number of origins."""
    vertices, origins = sorted({v for edge in edges for v in edge}), sorted({o for o, _ in demands})
    balance = np.array([[(t == v) * 1.0 - (h == v) for t, h in edges] for v in vertices])
    supplies, bounds = [], []
    for origin in origins:
        trips = {goal: amount for (o, goal), amount in demands.items() if o == origin}
        total = sum(trips.values())
        supplies += [total * (v == origin) - trips.get(v, 0.0) for v in vertices]
        bounds += [(0.0, total * way) for way in on_ways(edges, origin, trips, capacities)]
    size = len(edges)
    limits = np.minimum(np.broadcast_to(capacities, size), 1e6)
    return len(origins), {
        "A_eq": sparse.block_diag([sparse.csr_array(balance)] * len(origins)),
        "b_eq": supplies,
        "A_ub": sparse.hstack([sparse.eye_array(size)] * len(origins)),
        "b_ub": limits,
        "bounds": bounds,
    }


def random_network(seed):
    """A graph with cycles, parallel edges, a loop, a dead end and one that nothing reaches; demands from a few."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 9))
    edges = [tuple(map(int, rng.integers(0, n, 2))) for _ in range(3 * n)]
    edges += [(v, (v + 1) % n) for v in range(n)] + [(0, "end"), ("far", 1), edges[0], (1, 1)]
    edges = [(str(tail), str(head)) for tail, head in edges]
    pairs = [
        tuple(map(str, rng.choice(n, 2, replace=False))) for _ in range(int(rng.integers(1, 6)))
    ]
    return edges, {pair: float(rng.integers(1, 8)) / 2 for pair in pairs}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("tight", [False, True])
def test_flows_cost_what_the_linear_program_costs(seed, tight, rng):
    edges, demands = random_network(seed)
    total = sum(demands.values())
    free = linprog(np.ones(len(edges) * (k := textbook(edges, demands))[0]), **k[1])
    peak = free.x.reshape(k[0], -1).sum(axis=0).max()
    kinds = rng.choice([0.9 * peak, np.inf, 0.0], len(edges), p=[0.5, 0.43, 0.07])
    capacities = kinds if tight else None
    number, program = textbook(edges, demands, np.inf if capacities is None else capacities)
    if linprog(np.zeros(number * len(edges)), **program).status == 2:
        with pytest.raises(ValueError, match=r"keeps the capacities|no way from"):
            dw.FlowPolytope(edges, demands=demands, capacities=capacities)
        return
    domain = dw.FlowPolytope(edges, demands=demands, capacities=capacities)
    seen = [domain.origin()]
    for index in range(12):
        costs = rng.integers(-3, 4, len(edges)) if index % 3 == 2 else rng.normal(size=len(edges))
        costs = costs + (0.0, 1.0, 4.0)[index % 3 if index < 9 else 0]
        answer, least = domain.lmo(costs), linprog(np.tile(costs, number), **program)
        assert costs @ answer == pytest.approx(least.fun, abs=1e-6 * total * np.abs(costs).sum())
        if index % 4 == 0:  # membership takes many calls
            other = least.x.reshape(number, -1).sum(axis=0)
            assert domain.contains(answer) and domain.contains(other)
        seen.append(answer)
    for one, other in itertools.product(seen, repeat=2):
        assert np.linalg.norm(one - other) <= domain.diameter * (1 + 1e-9)
    differences = np.array(seen[1:]) - seen[0]
    assert np.linalg.norm(differences, axis=1).max() <= domain.radius
    rank = np.linalg.matrix_rank(differences, tol=1e-7)
    assert rank <= domain.dimension


def all_flows(edges, source, target):
    """Every flow of 0s and 1s: these are the vertices where no capacity is less."""
    vertices = sorted({v for edge in edges for v in edge})
    balance = np.array([[(t == v) * 1.0 - (h == v) for t, h in edges] for v in vertices])
    supply = [(v == source) * 1.0 - (v == target) for v in vertices]
    points = np.array(list(itertools.product((0.0, 1.0), repeat=len(edges))))
    return points[(points @ balance.T == supply).all(axis=1)]


TOWN = [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 3), (3, 2), (1, 3), (3, 1), (0, 1), (3, 3)]


def test_one_commodity_in_a_town_against_all_flows(rng):
    domain, flows = dw.FlowPolytope(TOWN, 0, 3), all_flows(TOWN, 0, 3)
    assert np.linalg.matrix_rank(flows - flows[0]) == domain.dimension
    farthest = np.linalg.norm(flows - domain.center, axis=1).max()
    assert domain.radius == pytest.approx(farthest, rel=1e-6)
    for _ in range(30):
        costs = rng.normal(size=len(TOWN))
        np.testing.assert_allclose(domain.lmo(costs), flows[(flows @ costs).argmin()], atol=1e-9)
    # Nothing comes back to the source: one edge leads there, and one more unit would leave than may.
    fixed = dw.FlowPolytope([(0, 1), (1, 0), (1, 2), (1, 2)], 0, 2)
    assert fixed.dimension == 1 and np.array_equal(fixed.tangent(np.ones(4)), np.zeros(4))


def test_one_commodity_against_networkx(rng):
    graph = nx.gnp_random_graph(60, 0.08, seed=3, directed=True)
    for edge in graph.edges.values():
        edge.update(weight=int(rng.integers(-20, 60)), capacity=int(rng.integers(1, 4)))
    goal = max(nx.descendants(graph, 0))
    for vertex, demand in ((0, -1), (goal, 1)):
        graph.nodes[vertex]["demand"] = demand
    domain = dw.FlowPolytope.from_networkx(graph, 0, goal, capacity="capacity")
    costs = [graph.edges[edge]["weight"] for edge in domain.edges]
    way = on_ways(domain.edges, 0, [goal])
    graph.remove_edges_from(itertools.compress(domain.edges, ~way))
    nx.set_edge_attributes(graph, 1, "capacity")  # as much as flows
    assert costs @ domain.lmo(costs) == pytest.approx(nx.min_cost_flow_cost(graph))


def test_equal_prices_are_settled_alike_whatever_came_before(rng):
    for capacities in (None, 3.0):
        domain = dw.FlowPolytope(
            TOWN, demands={(0, 3): 2.0, (2, 0): 1.0, (1, 2): 1.5}, capacities=capacities
        )
        asked = [rng.integers(-2, 3, len(TOWN)) * 1.0 for _ in range(20)]
        first = [domain.lmo(costs) for costs in asked]
        again = [domain.lmo(costs) for costs in asked[::-1]][::-1]
        np.testing.assert_array_equal(first, again)


# -- graphs and demands as people have them ---------------------------------------------------


def test_networkx_graphs_are_taken_as_they_are():
    graph = nx.Graph()
    graph.add_edge("a", "b", room=2.0)
    graph.add_edges_from([("b", "c"), ("a", "c")])
    domain = dw.FlowPolytope.from_networkx(graph, "a", "c", capacity="room")
    assert domain.edges == [("a", "b"), ("b", "a"), ("a", "c"), ("c", "a"), ("b", "c"), ("c", "b")]
    assert domain.capacities.tolist() == [2.0, 2.0, *[np.inf] * 4]
    multi = nx.MultiDiGraph([(0, 1), (0, 1), (1, 0)])
    assert dw.FlowPolytope(multi, 0, 1).edges == [(0, 1), (0, 1), (1, 0)]
    with pytest.raises(ValueError, match="no edge of the graph has the attribute 'capacity'"):
        dw.FlowPolytope.from_networkx(graph, "a", "c", capacity="capacity")


def test_entries_of_sparse_matrices_are_edges():
    matrix = sparse.coo_array(([5.0, 0.0, 7.0, 1.0], ([2, 0, 0, 1], [0, 2, 1, 2])), shape=(3, 3))
    domain = dw.FlowPolytope(matrix, 0, 2)
    assert domain.edges == [(0, 1), (0, 2), (1, 2), (2, 0)]
    assert domain.lmo([1.0, 3.0, 1.0, 1.0]).tolist() == [1.0, 0.0, 1.0, 0.0]


def test_demands_of_all_kinds():
    triples = [(0, 3, 1.5), (2, 1, 0.5), (0, 3, 0.5), (1, 0, 0.0)]
    for demands in (triples, {(0, 3): 2, (2, 1): 0.5}):
        assert dw.FlowPolytope(TOWN, demands=demands).demands == [(0, 3, 2.0), (2, 1, 0.5)]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give source and target, or else demands"),
        ({"source": 0}, "give source and target, or else demands"),
        ({"source": 0, "target": 3, "demands": {(0, 3): 1.0}}, "or else demands"),
        ({"demands": {(0, 0): 1.0}}, "from 0 to itself"),
        ({"demands": {(0, 3): -1.0}}, "the demand from 0 to 3 must be a finite number >= 0"),
        ({"demands": {(0, 3): np.nan}}, "the demand from 0 to 3 must be a finite number >= 0"),
        ({"demands": {(0, 3): 0.0}}, "at least one amount that is not 0"),
        ({"demands": {(0, 7): 1.0}}, "target 7 is on no edge"),
        ({"demands": {3: 1.0}}, "demands must be {"),
        ({"demands": np.ones((2, 2))}, "demands must be {"),
        ({"demands": [(3, 0, 1.0), (0, 3, 1.0)], "capacities": 0.0}, "no way from 3 to 0"),
        ({"source": 0, "target": 3, "capacities": 0.3}, "keeps the capacities; raise some"),
        ({"source": 0, "target": 3, "capacities": [1.0, 2.0]}, "a number or 11, one per arc"),
        ({"source": 0, "target": 3, "capacities": -1.0}, ">= 0 or inf"),
        ({"source": 0, "target": 3, "capacities": np.nan}, ">= 0 or inf"),
    ],
)
def test_bad_demands_and_capacities(given, message):
    with pytest.raises(ValueError, match=message):
        dw.FlowPolytope(TOWN, **given)


def test_shared_capacities_that_leave_one_routing_are_refused():
    edges, demands = [(0, 2), (1, 2), (2, 3), (0, 3), (1, 3)], {(0, 3): 1.0, (1, 3): 1.0}
    assert dw.FlowPolytope(edges, demands=demands).dimension == 2
    with pytest.raises(ValueError, match="in one way only"):
        dw.FlowPolytope(edges, demands=demands, capacities=[1.0, 1.0, 2.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="in one way only"):
        dw.FlowPolytope(edges, demands=demands, capacities=[0.5, 0.5, 1.0, 0.5, 0.5])


# -- real networks ----------------------------------------------------------------------------


@needs_data
def test_sioux_falls_against_the_linear_program(rng):
    folder = Path(os.environ["DRIFTWOLFE_DATA"]) / "networks"
    if not folder.is_dir():
        pytest.skip("needs the folder networks beside the other data")

    def rows(name):
        return list(csv.reader((folder / name).read_text().splitlines()))[1:]

    edges = [(int(tail), int(head)) for tail, head, *_ in rows("sioux_falls_links.csv")]
    trips = rows("sioux_falls_demand.csv")
    demands = {(int(origin), int(goal)): float(size) for origin, goal, size in trips}
    domain, (number, program) = dw.FlowPolytope(edges, demands=demands), textbook(edges, demands)
    for shift in (0.0, 1.0, 4.0):
        costs = rng.normal(size=len(edges)) + shift
        answer, least = domain.lmo(costs), linprog(np.tile(costs, number), **program).fun
        assert costs @ answer == pytest.approx(least, rel=1e-7)

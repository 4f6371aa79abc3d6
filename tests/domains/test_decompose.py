"""Points as means of vertices: what the vertices are, and whether random ones have the right mean."""

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.domains.hull import peel, sweep

EDGES = [("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t"), ("s", "t")]
CHOICES = {
    "assignments": dw.BirkhoffPolytope(5),
    "paths": dw.FlowPolytope(EDGES, "s", "t"),
    "trees": dw.SpanningTreePolytope(5),
    "bases": dw.PartitionMatroidPolytope([0, 0, 0, 1, 1, 2], [2, 1, 1]),
    "independent": dw.PartitionMatroidPolytope([0, 0, 0, 1, 1], [2, 1], kind="independent"),
    "subsets": dw.UniformMatroidPolytope(7, 3),
}


@pytest.mark.parametrize("name", CHOICES)
def test_vertices_of_choices_are_choices(name):
    domain, rng = CHOICES[name], np.random.default_rng(0)
    for _ in range(10):
        drawn = [domain.lmo(rng.standard_normal(domain.shape)) for _ in range(6)]
        x = np.tensordot(rng.dirichlet(np.ones(6)), np.array(drawn), 1)
        vertices, weights = domain.decompose(x)
        for vertex in vertices:
            np.testing.assert_allclose(vertex, vertex.round(), atol=1e-12)
            assert domain.contains(vertex.round(), atol=1e-9)
        np.testing.assert_allclose(np.tensordot(weights, np.array(vertices), 1), x, atol=1e-6)


def test_sweep_chooses_whole_numbers_of_each_part():
    shares = np.array([0.5, 0.7, 0.8, 0.25, 0.75])
    starts = np.array([0.0, 0.5, 1.2, 0.0, 0.25])
    rows, weights = sweep(shares, starts)
    np.testing.assert_allclose(weights @ rows, shares, atol=1e-15)
    assert set(np.unique(rows)) <= {0.0, 1.0}
    assert (rows[:, :3].sum(axis=1) == 2).all() and (rows[:, 3:].sum(axis=1) == 1).all()


def test_peel_takes_as_much_as_it_can():
    simplex = dw.Simplex(3, radius=2.0)
    vertices, weights = peel(simplex.lmo, np.array([0.5, 1.5, 0.0]))
    np.testing.assert_array_equal(vertices, [[0.0, 2.0, 0.0], [2.0, 0.0, 0.0]])
    np.testing.assert_allclose(weights, [0.75, 0.25])


def test_a_point_outside_by_rounding_is_accepted_and_one_farther_out_is_not():
    domain = dw.UniformMatroidPolytope(4, 2)
    vertices, _ = domain.decompose([1.0 + 1e-10, 0.5, 0.5, -1e-10])
    assert all(vertex[0] == 1.0 and vertex[3] == 0.0 for vertex in vertices)
    with pytest.raises(ValueError, match="must be a point of the set"):
        domain.decompose([1.0 + 1e-5, 0.5, 0.5, -1e-5])
    with pytest.raises(ValueError, match="atol"):
        domain.decompose([1.0, 0.5, 0.5, 0.0], atol=0.0)


def test_calls_are_counted():
    domain = dw.count_calls(dw.BirkhoffPolytope(3))
    _, weights = domain.decompose(np.full((3, 3), 1 / 3))
    assert domain.calls.lmo >= len(weights) == 3

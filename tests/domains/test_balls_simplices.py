"""Simplex, spectrahedron and Birkhoff polytope: sets of full sums, inside an affine subspace."""

import itertools

import cvxpy as cp
import numpy as np
import pytest

import driftwolfe as dw
from domains.set_checks import (
    check_gauge,
    check_gauge_subgradient,
    check_outside,
    check_set,
    check_sizes,
    on_affine_hull,
)
from driftwolfe.domains import spectral


def random_states(n, radius, count, rng):
    """Rank-one vertices of the spectrahedron."""
    vectors = rng.normal(size=(count, n))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return [radius * np.outer(vector, vector) for vector in vectors]


def permutation_matrices(n):
    return [np.eye(n)[list(order)] for order in itertools.permutations(range(n))]


SETS = {
    "simplex": (dw.Simplex(5, 2.0), 2.0 * np.eye(5), lambda x: [x >= 0, cp.sum(x) == 2.0], 2.0),
    "simplex of two": (dw.Simplex(2), np.eye(2), lambda x: [x >= 0, cp.sum(x) == 1.0], 2.0),
    "birkhoff of two": (dw.BirkhoffPolytope(2), permutation_matrices(2), None, 0.5),
    "birkhoff": (dw.BirkhoffPolytope(4), permutation_matrices(4), None, 0.5),
    "spectrahedron": (
        dw.Spectrahedron(4, radius=3.0),
        None,
        lambda x: [x == x.T, x >> 0, cp.trace(x) == 3.0],
        None,
    ),
}


@pytest.mark.parametrize("name", SETS)
def test_sets_against_their_vertices_and_a_conic_solver(name, rng):
    domain, vertices, constraints, reach = SETS[name]
    if name == "spectrahedron":
        vertices = random_states(4, 3.0, 30, rng)
        check_sizes(domain, [*vertices, *(3.0 * np.diag(row) for row in np.eye(4))])
        check_outside(domain, vertices, rng)
        points = [on_affine_hull(domain, rng, vertices, reach=0.3) for _ in range(10)]
        check_gauge(domain, points)
        check_gauge_subgradient(domain, points)
        vertices = None
    check_set(domain, rng, vertices, constraints, reach)


@pytest.mark.parametrize("kind", ["random", "zero", "laplacian"])
def test_large_spectrahedron_uses_lanczos_with_the_same_answer(kind, rng, monkeypatch):
    n = 60
    random = rng.normal(size=(n, n))
    path = np.diag(np.ones(n - 1), 1)
    direction = {
        "random": random,
        "zero": np.zeros((n, n)),
        # Constant vectors span its kernel: a constant start vector would never leave it.
        "laplacian": np.diag((path + path.T).sum(axis=1)) - path - path.T,
    }[kind]
    states = dw.Spectrahedron(n)
    dense = states.lmo(direction)
    monkeypatch.setattr(spectral, "_LANCZOS_SIDE", 10)
    sparse = states.lmo(direction)
    assert np.array_equal(sparse, states.lmo(direction))
    assert states.contains(sparse)
    assert np.isclose(np.vdot(direction, sparse), np.vdot(direction, dense), atol=1e-10)
    assert not dw.Spectrahedron(n).cheap_projection


@pytest.mark.parametrize(
    ("domain", "vertex", "off"),
    [
        (dw.Simplex(3), np.array([1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0])),
        (dw.Spectrahedron(2), np.diag([1.0, 0.0]), np.eye(2)),
        (dw.Spectrahedron(2), np.diag([1.0, 0.0]), np.array([[0.0, 1.0], [-1.0, 0.0]])),
        (dw.BirkhoffPolytope(2), np.eye(2), np.array([[1.0, -1.0], [0.0, 0.0]])),
    ],
)
def test_gauge_is_infinite_off_the_affine_hull(domain, vertex, off):
    assert np.isclose(domain.gauge(vertex), 1.0)
    assert np.isclose(domain.gauge(vertex + 1e-12 * off), 1.0)
    assert domain.gauge(vertex + 1e-6 * off) == np.inf
    assert not domain.contains(vertex + 1e-6 * off)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dw.Simplex(1), "n must be at least 2, got 1"),
        (lambda: dw.Simplex(3, radius=0.0), "radius must be a positive"),
        (lambda: dw.Spectrahedron(1), "n must be a whole number >= 2"),
        (lambda: dw.Spectrahedron(3, radius=-2.0), "radius must be a positive"),
        (lambda: dw.BirkhoffPolytope(1), "n must be a whole number >= 2"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()

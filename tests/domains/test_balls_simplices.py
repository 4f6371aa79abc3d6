"""Simplex, spectrahedron and Birkhoff polytope: sets of full sums, inside an affine subspace."""

import itertools

import cvxpy as cp
import numpy as np
import pytest

import driftwolfe as dw
from domains.set_checks import (
    check_gauge,
    check_gauge_subgradient,
    check_lmo,
    check_outside,
    check_projection,
    check_sizes,
    on_affine_hull,
)
from driftwolfe.domains import spectral


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def permutation_matrices(n):
    return [np.eye(n)[list(order)] for order in itertools.permutations(range(n))]


def random_states(n, radius, count, rng):
    """Rank-one vertices of the spectrahedron."""
    vectors = rng.normal(size=(count, n))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return [radius * np.outer(vector, vector) for vector in vectors]


def test_simplex(rng):
    simplex, vertices = dw.Simplex(5, radius=2.0), list(2.0 * np.eye(5))
    check_lmo(simplex, vertices, rng)
    check_sizes(simplex, vertices)
    check_outside(simplex, vertices, rng)
    check_projection(simplex, lambda x: [x >= 0, cp.sum(x) == 2.0], rng)
    points = [on_affine_hull(simplex, rng, vertices) for _ in range(12)]
    check_gauge(simplex, points)
    check_gauge_subgradient(simplex, points)


def test_simplex_of_two(rng):
    simplex = dw.Simplex(2)
    check_sizes(simplex, list(np.eye(2)))
    assert np.isclose(simplex.inner_radius, simplex.radius)


def test_birkhoff(rng):
    for n in (2, 4):
        polytope, vertices = dw.BirkhoffPolytope(n), permutation_matrices(n)
        check_lmo(polytope, vertices, rng)
        check_sizes(polytope, vertices)
        check_outside(polytope, vertices, rng)
        points = [on_affine_hull(polytope, rng, vertices, reach=0.5) for _ in range(8)]
        check_gauge(polytope, points)
        check_gauge_subgradient(polytope, points)


def test_birkhoff_has_no_projection_and_says_what_to_use():
    with pytest.raises(NotImplementedError, match="infeasible_projection"):
        dw.BirkhoffPolytope(3).project(np.eye(3))


def test_spectrahedron_oracle_is_the_semidefinite_programme(rng):
    states = dw.Spectrahedron(4, radius=3.0)
    x = cp.Variable((4, 4), symmetric=True)
    for _ in range(3):
        direction = rng.normal(size=(4, 4))
        objective = cp.Minimize(cp.trace(direction.T @ x))
        least = cp.Problem(objective, [x >> 0, cp.trace(x) == 3.0]).solve(solver=cp.CLARABEL)
        assert np.isclose(np.vdot(direction, states.lmo(direction)), least, atol=1e-6)


def test_spectrahedron_projection(rng):
    states = dw.Spectrahedron(3, radius=2.0)
    check_projection(states, lambda x: [x == x.T, x >> 0, cp.trace(x) == 2.0], rng)


def test_spectrahedron_gauge_and_sizes(rng):
    states, vertices = dw.Spectrahedron(3, radius=2.0), random_states(3, 2.0, 30, rng)
    check_sizes(states, [*vertices, *(2.0 * np.diag(row) for row in np.eye(3))])
    check_outside(states, vertices, rng)
    points = [on_affine_hull(states, rng, vertices, reach=0.3) for _ in range(10)]
    check_gauge(states, points)
    check_gauge_subgradient(states, points)


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


@pytest.mark.parametrize("domain", [dw.Simplex(4), dw.Spectrahedron(3), dw.BirkhoffPolytope(3)])
def test_gauge_subgradients_stay_in_the_affine_hull(domain, rng):
    step = domain.lmo(rng.normal(size=domain.shape)) - domain.origin()
    y = domain.origin() + 1.5 * step
    moved = domain.origin() + 0.1 * domain.gauge_subgradient(y)
    assert np.isfinite(domain.gauge(moved))


@pytest.mark.parametrize("domain", [dw.Simplex(4), dw.Spectrahedron(3), dw.BirkhoffPolytope(3)])
def test_inner_radius_is_the_largest_ball_in_the_affine_hull(domain, rng):
    slopes = []
    for _ in range(200):
        step = domain.lmo(rng.normal(size=domain.shape)) - domain.lmo(rng.normal(size=domain.shape))
        if np.linalg.norm(step) > 1e-9:
            step *= domain.inner_radius / np.linalg.norm(step)
            slopes.append(domain.gauge(domain.origin() + step))
    assert max(slopes) <= 1 + 1e-9
    y = domain.origin() + 2 * (domain.lmo(rng.normal(size=domain.shape)) - domain.origin())
    worst = domain.gauge_subgradient(y)
    worst *= domain.inner_radius / np.linalg.norm(worst)
    assert np.isclose(domain.gauge(domain.origin() + worst), 1.0)


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

"""Norm balls, boxes, simplices and spectrahedra, against their vertices and a conic solver."""

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


def signed_units(n, radius):
    return [sign * radius * row for row in np.eye(n) for sign in (1, -1)]


def sparse_signs(n, k, radius):
    for support in itertools.combinations(range(n), k):
        for signs in itertools.product([-radius, radius], repeat=k):
            vertex = np.zeros(n)
            vertex[list(support)] = signs
            yield vertex


def corners(lower, upper):
    return [np.array(corner) for corner in itertools.product(*zip(lower, upper, strict=True))]


GROUPS = [[0, 4], [1], [2, 3, 5]]

AXES = np.array([2.0, 0.1, 1.0, 0.7])
LOWER, UPPER = np.array([-1.0, 0.5, -2.0, 0.0]), np.array([2.0, 1.5, -1.0, 3.0])


ONE_PART_FULL = dw.PartitionMatroidPolytope([0, 0, 0, 1, 1], [1, 2])


def permutation_matrices(n):
    return [np.eye(n)[list(order)] for order in itertools.permutations(range(n))]


# Each set with its vertices, what a conic solver should know of it, and how far out gauges are compared.
SETS = {
    "l1": (dw.L1Ball(4, radius=2.5), signed_units(4, 2.5), lambda x: [cp.norm1(x) <= 2.5]),
    "linf": (
        dw.LinfBall(4, radius=0.5),
        corners([-0.5] * 4, [0.5] * 4),
        lambda x: [cp.norm_inf(x) <= 0.5],
    ),
    "box": (dw.Box(LOWER, UPPER), corners(LOWER, UPPER), lambda x: [x >= LOWER, x <= UPPER]),
    "k sparse": (
        dw.KSparsePolytope(5, 2, radius=1.5),
        list(sparse_signs(5, 2, 1.5)),
        lambda x: [cp.norm_inf(x) <= 1.5, cp.norm1(x) <= 3.0],
    ),
    "l2": (dw.L2Ball(5, radius=1.5), None, lambda x: [cp.norm(x) <= 1.5]),
    "ellipsoid": (dw.Ellipsoid(AXES), None, lambda x: [cp.norm(x / AXES) <= 1.0]),
    "group": (
        dw.GroupLassoBall(6, GROUPS, radius=1.5),
        None,
        lambda x: [sum(cp.norm(x[group]) for group in GROUPS) <= 1.5],
    ),
    "simplex": (dw.Simplex(5, 2.0), 2.0 * np.eye(5), lambda x: [x >= 0, cp.sum(x) == 2.0]),
    "birkhoff": (dw.BirkhoffPolytope(4), permutation_matrices(4), None, 0.5),
}


@pytest.mark.parametrize("name", SETS)
def test_sets_against_their_vertices_and_a_conic_solver(name, rng):
    domain, vertices, constraints, *reach = SETS[name]
    check_set(domain, rng, vertices, constraints, *(reach or [2.0]))


def test_spectrahedra_against_states_and_a_conic_solver(rng):
    domain, vectors = dw.Spectrahedron(4, radius=3.0), rng.normal(size=(30, 4))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    states = [3.0 * np.outer(vector, vector) for vector in vectors]
    check_sizes(domain, [*states, *(3.0 * np.diag(row) for row in np.eye(4))])
    check_outside(domain, states, rng)
    points = [on_affine_hull(domain, rng, states, reach=0.3) for _ in range(10)]
    check_gauge(domain, points)
    check_gauge_subgradient(domain, points)
    check_set(domain, rng, None, lambda x: [x == x.T, x >> 0, cp.trace(x) == 3.0])


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3, 1e12, 1e150, 1e300])
def test_projections_onto_thin_ellipsoids_solve_their_equation(size, rng):
    """The rest y - x is a nonnegative multiple of the normal x / axes^2, and x lies on the boundary."""
    ellipsoid = dw.Ellipsoid(np.geomspace(1e-4, 10.0, 9))
    for _ in range(20):
        y = size * rng.normal(size=9)
        x = ellipsoid.project(y)
        if ellipsoid.gauge(y) <= 1.0:
            assert np.array_equal(x, y)
            continue
        assert ellipsoid.gauge(x) == pytest.approx(1.0, abs=1e-12)
        rest, normal = (
            each / np.linalg.norm(each) for each in ((y - x) / size, x / ellipsoid.axes**2)
        )
        assert np.allclose(rest, normal, atol=1e-9)


def test_labels_and_index_lists_are_the_same_partition(rng):
    labels = np.array([0, 1, 2, 2, 0, 2])
    y = rng.normal(size=6)
    for groups in (labels, labels.tolist(), [np.array(group) for group in GROUPS]):
        ball = dw.GroupLassoBall(6, groups, radius=1.5)
        assert np.array_equal(ball.project(y), SETS["group"][0].project(y))


def test_projection_leaves_no_negative_zeros():
    y = np.array([5.0, -1.0, -0.5])
    for ball in (dw.L1Ball(3), dw.KSparsePolytope(3, 1), dw.GroupLassoBall(3, [0, 1, 1])):
        assert not np.signbit(ball.project(y)).any()


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_extreme_directions(scale):
    direction = scale * np.array([3.0, -4.0])
    assert np.allclose(dw.L2Ball(2).lmo(direction), [-0.6, 0.8])
    assert np.allclose(dw.GroupLassoBall(2, [0, 0]).lmo(direction), [-0.6, 0.8])
    assert np.allclose(dw.Ellipsoid([1.0, 1.0]).lmo(direction), [-0.6, 0.8])


def test_box_bounds_may_be_one_number_and_are_copied():
    upper = np.array([1.0, 2.0])
    box = dw.Box(0.0, upper)
    upper[:] = 9.0
    assert np.array_equal(box.lmo([-1.0, -1.0]), [1.0, 2.0])
    assert np.array_equal(dw.Box([0.0, 1.0], 4).lower, [0.0, 1.0])


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
        (dw.Box([0.0, 1.0], [2.0, 1.0]), np.array([2.0, 1.0]), np.array([0.0, 1.0])),
        (ONE_PART_FULL, np.array([1.0, 0.0, 0.0, 1.0, 1.0]), np.eye(5)[0]),
        (ONE_PART_FULL, np.array([1.0, 0.0, 0.0, 1.0, 1.0]), np.eye(5)[3] - np.eye(5)[4]),
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
        (lambda: dw.L2Ball(3, radius=0.0), "radius must be a positive"),
        (lambda: dw.L2Ball(0), "whole number >= 1"),
        (lambda: dw.Simplex(1), "n must be at least 2, got 1"),
        (lambda: dw.Simplex(3, radius=0.0), "radius must be a positive"),
        (lambda: dw.Spectrahedron(1), "n must be a whole number >= 2"),
        (lambda: dw.BirkhoffPolytope(1), "n must be a whole number >= 2"),
        (lambda: dw.KSparsePolytope(3, 4), "at most the number of coordinates, 3, got 4"),
        (lambda: dw.KSparsePolytope(3, 0), "k must be a whole number >= 1"),
        (lambda: dw.Box([0.0, 2.0], [1.0, 1.0]), r"larger at index \(1,\)"),
        (lambda: dw.Box([0.0, 2.0], [1.0, 1.0, 1.0]), "one shape"),
        (lambda: dw.Box([1.0], [1.0]), "one point"),
        (lambda: dw.Box(0.0, 1.0), "use LinfBall"),
        (lambda: dw.Box([np.nan], [1.0]), "not finite"),
        (lambda: dw.Ellipsoid(2.0), "axes must be an array of positive numbers"),
        (lambda: dw.Ellipsoid([1.0, 0.0]), "axes must be an array of positive numbers"),
        (lambda: dw.Ellipsoid([1.0, np.nan]), "axes has entries that are not finite"),
        (lambda: dw.GroupLassoBall(3, [0, 1]), "cover the n = 3 coordinates, got 2"),
        (lambda: dw.GroupLassoBall(3, [[0, 1], [1]]), "exactly once"),
        (lambda: dw.GroupLassoBall(2, [[0, 1], []]), "groups must be .* none empty"),
        (lambda: dw.GroupLassoBall(2, [[0.5, 1.0]]), "whole numbers"),
        (lambda: dw.GroupLassoBall(2, [0, [1]]), "one label per coordinate"),
        (lambda: dw.GroupLassoBall(2, np.ma.masked_array([0, 1], [0, 1])), "groups has masked"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()

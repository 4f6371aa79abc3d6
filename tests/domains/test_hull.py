import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import driftwolfe as dw
from domains.set_checks import check_projection, check_set
from driftwolfe.domains.hull import Hull, approach, comes_near


def held(atoms):
    hull = Hull(atoms[0])
    for atom in atoms[1:]:
        hull.add(atom)
    return hull


def atoms_of(hull):
    """The held atoms along the first axis."""
    rows = hull._base + hull._unit * hull._rows[: hull._count]
    return rows.reshape(-1, *hull._shape)


def optimality_gap(atoms, x, y):
    """Zero exactly at the nearest point of the hull of the atoms."""
    return ((atoms - x) @ (y - x)).max()


@given(
    st.integers(1, 12), st.integers(1, 6), st.sampled_from(["whole", "real"]), st.integers(0, 10**6)
)
def test_correct_finds_the_nearest_point_of_the_hull(count, n, kind, seed):
    rng = np.random.default_rng(seed)
    atoms = (
        rng.integers(-2, 3, (count, n)) + 0.0 if kind == "whole" else rng.normal(size=(count, n))
    )
    y = 3 * rng.normal(size=n)
    hull = held(atoms)
    x = hull.correct(y)
    assert optimality_gap(atoms, x, y) <= 1e-12 * (1 + np.linalg.norm(y - x))
    assert np.array_equal(x, hull.point)
    assert (hull._weights > 0).all()
    assert np.isclose(hull._weights.sum(), 1, rtol=1e-14)
    assert np.allclose(hull._weights @ atoms_of(hull), x, atol=1e-13)


@given(st.integers(0, 10**6))
def test_affinely_dependent_atoms_do_no_harm(seed):
    rng = np.random.default_rng(seed)
    corners = rng.normal(size=(3, 4))
    blurs = 10.0 ** -rng.integers(3, 17, size=4)
    atoms = np.vstack([corners + blur * rng.normal(size=corners.shape) for blur in blurs])
    atoms = np.vstack([atoms, atoms[:2], atoms.mean(axis=0, keepdims=True)])
    y = rng.normal(size=4) * 10.0 ** rng.integers(-2, 5)
    hull = held(atoms)
    x = hull.correct(y)
    assert optimality_gap(atoms, x, y) <= 1e-12 * (1 + np.linalg.norm(y - x))


def test_far_from_the_origin_no_digits_are_lost():
    rng = np.random.default_rng(0)
    atoms, y = rng.normal(size=(8, 5)), rng.normal(size=5)
    near, far = held(atoms).correct(y), held(atoms + 1e6).correct(y + 1e6)
    assert np.allclose(near, far - 1e6, atol=1e-8)


def test_atoms_at_the_end_of_the_range_of_numbers():
    hull = Hull(np.zeros(2))
    hull.add(np.array([1.5e308, 0.0]))
    np.testing.assert_allclose(hull.correct(np.array([1e308, 1.0])), [1e308, 0.0])


def test_the_distance_never_grows_and_atoms_come_and_go():
    rng = np.random.default_rng(1)
    hull = Hull(rng.normal(size=(2, 3)))
    for _ in range(60):
        y = rng.normal(size=(2, 3))
        hull.add(rng.normal(size=(2, 3)))
        before = np.linalg.norm(hull.point - y)
        after = np.linalg.norm(hull.correct(y) - y)
        assert after <= before * (1 + 1e-14)
        assert atoms_of(hull).shape == (len(hull._weights), 2, 3)
        assert len(hull._weights) <= 7


def test_what_is_handed_out_is_not_the_state():
    first = np.array([1.0, 0.0])
    hull = Hull(first)
    hull.add(np.array([0.0, 1.0]))
    hull.correct(np.array([1.0, 1.0]))
    for handed_out in (first, hull.point):
        handed_out += 7.0
    assert np.array_equal(hull.point, [0.5, 0.5])
    assert np.array_equal(atoms_of(hull), np.eye(2))


def test_approach_reaches_the_projection_or_ends_where_it_may():
    rng = np.random.default_rng(2)
    points, y, asked = rng.normal(size=(300, 30)), 0.5 * rng.normal(size=30), []

    def lmo(direction):
        asked.append(direction)
        return points[(points @ direction).argmin()]

    nearest = approach(lmo, y, points[0]).point
    distances = [np.linalg.norm(away) for away in asked]
    assert np.all(np.diff(distances) <= 1e-14)
    assert optimality_gap(points, nearest, y) <= 1e-13
    calls, least = len(asked), np.linalg.norm(nearest - y)
    for limits in ((1.1 * least, 9.0), (0.0, 0.9 * least)):
        asked.clear()
        found = np.linalg.norm(approach(lmo, y, points[0], *limits).point - y)
        assert least < found and len(asked) < calls - 1
    assert found > 0.9 * least


@pytest.mark.parametrize("tolerance", [0.0, 1e-9, 1e-3])
def test_comes_near_decides_both_ways(tolerance):
    rng = np.random.default_rng(4)
    points = rng.normal(size=(40, 6))

    def lmo(direction):
        return points[(points @ direction).argmin()]

    for _ in range(20):
        inside = rng.dirichlet(np.full(40, 0.1)) @ points
        assert comes_near(lmo, inside, points[0], tolerance)
        direction = rng.normal(size=6)
        direction /= np.linalg.norm(direction)
        beyond = lmo(direction) - (tolerance + 1e-7) * direction
        assert not comes_near(lmo, beyond, points[0], tolerance)


def test_an_atom_that_is_left_alone_stays_where_it_is():
    """The first may go and another stay: what comes next is measured in the same unit."""
    hull = held(np.array([[0.0, 0.0], [1.0, 0.0]]))
    assert hull.correct(np.array([5.0, 0.0])).tolist() == [1.0, 0.0]
    hull.add(np.array([0.0, 100.0]))
    assert atoms_of(hull).tolist() == [[1.0, 0.0], [0.0, 100.0]]
    assert hull.point.tolist() == [1.0, 0.0]


def mixtures_of(points):
    flat = points.reshape(len(points), -1)

    def constraints(x):
        weights = cp.Variable(len(points), nonneg=True)
        return [cp.sum(weights) == 1, cp.vec(x, order="C") == flat.T @ weights]

    return constraints


@pytest.mark.parametrize("shape", [(3,), (2, 2)])
def test_hull_of_random_points(shape, rng):
    points = rng.normal(size=(9, *shape)) + 1.0
    hull = dw.ConvexHull(points)
    assert not hull.points.flags.writeable
    check_set(hull, rng, points, mixtures_of(points), tight=False)


def test_hull_inside_a_subspace_with_repeated_points(rng):
    points = rng.normal(size=(4, 2)) @ rng.normal(size=(2, 5))
    points = np.vstack([points, points[:2], points.mean(axis=0)])
    hull = dw.ConvexHull(points)
    check_projection(hull, mixtures_of(points), rng)
    assert not hull.contains(hull.center + 1e-4 * rng.normal(size=5))


def test_projection_onto_many_points_is_exact(rng):
    points = rng.normal(size=(2000, 40))
    hull = dw.ConvexHull(points)
    for scale in (0.2, 1.0, 100.0):
        y = scale * rng.normal(size=40)
        nearest = hull.project(y)
        assert ((points - nearest) @ (y - nearest)).max() <= 1e-12 * (1 + scale)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([1.0, 2.0], "along its first axis"),
        ([[1.0, 2.0], [1.0, 2.0]], "two different points"),
        (np.empty((0, 2)), "two different points"),
        ([[1.0, np.nan], [1.0, 2.0]], "not finite"),
    ],
)
def test_bad_input_is_refused(points, message):
    with pytest.raises(ValueError, match=message):
        dw.ConvexHull(points)

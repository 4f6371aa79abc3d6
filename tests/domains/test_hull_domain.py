import cvxpy as cp
import numpy as np
import pytest

import driftwolfe as dw
from domains.set_checks import check_projection, check_set


@pytest.fixture
def rng():
    return np.random.default_rng(17)


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


def test_projection_of_a_member_is_the_member(rng):
    points = rng.normal(size=(30, 6))
    inside = rng.dirichlet(np.ones(30)) @ points
    assert np.allclose(dw.ConvexHull(points).project(inside), inside, atol=1e-13)


def test_the_points_are_kept_apart():
    points = np.eye(3)
    hull = dw.ConvexHull(points)
    points[:] = 7.0
    hull.lmo([1.0, 0.0, 0.0])[:] = 5.0
    assert np.array_equal(hull.points, np.eye(3))
    with pytest.raises(ValueError, match="read-only"):
        hull.points[0, 0] = 2.0


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

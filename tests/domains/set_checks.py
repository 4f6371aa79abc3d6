"""Independent answers that the sets are held against."""

import itertools

import cvxpy as cp
import numpy as np


def directions(domain, rng, count):
    """Random directions, some with ties and zeros."""
    for index in range(count):
        if index % 3 == 2:
            yield rng.integers(-2, 3, domain.shape).astype(float)
        else:
            yield rng.normal(size=domain.shape)


def check_lmo(domain, vertices, rng, count=30):
    """The oracle finds the least value over all vertices."""
    for direction in directions(domain, rng, count):
        answer = domain.lmo(direction)
        best = min(np.vdot(direction, vertex) for vertex in vertices)
        assert np.isclose(np.vdot(direction, answer), best, rtol=1e-12, atol=1e-12)
        assert domain.contains(answer, atol=1e-12)


def check_sizes(domain, vertices, tight_diameter=True):
    """Radius and diameter are those of the vertices."""
    center = domain.origin()
    radius = max(np.linalg.norm(vertex - center) for vertex in vertices)
    diameter = max(np.linalg.norm(a - b) for a, b in itertools.product(vertices, repeat=2))
    assert np.isclose(domain.radius, radius, rtol=1e-12)
    assert domain.diameter >= diameter * (1 - 1e-12)
    if tight_diameter:
        assert np.isclose(domain.diameter, diameter, rtol=1e-12)


def check_projection(domain, constraints, rng, scales=(0.1, 1.0, 5.0)):
    """The projection is the one that a conic solver finds; `constraints(x)` describes the set."""
    x, y = cp.Variable(domain.shape), cp.Parameter(domain.shape)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(x - y)), constraints(x))
    for scale in scales:
        y.value = domain.origin() + scale * domain.radius * rng.normal(size=domain.shape)
        problem.solve(solver=cp.CLARABEL)
        answer = domain.project(y.value)
        assert domain.contains(answer, atol=1e-10)
        assert np.allclose(answer, x.value, atol=2e-4 * domain.radius)
        # The solver's point is only nearly feasible, so distances agree to its accuracy.
        assert np.linalg.norm(answer - y.value) <= np.linalg.norm(x.value - y.value) + 1e-6


def on_affine_hull(domain, rng, vertices, reach=2.0):
    """A random point of the affine hull of the vertices."""
    weights = reach * rng.normal(size=len(vertices))
    weights += (1 - weights.sum()) / len(vertices)
    return np.tensordot(weights, np.asarray(vertices), axes=1)


def check_gauge(domain, points):
    """The gauge is where bisection on membership puts it."""
    center = domain.origin()
    for y in points:
        low, high = 1e-9, 1e9
        for _ in range(200):
            middle = np.sqrt(low * high)
            inside = domain.contains(center + (y - center) / middle, atol=1e-13)
            low, high = (low, middle) if inside else (middle, high)
        assert np.isclose(domain.gauge(y), high, rtol=1e-6)


def check_gauge_subgradient(domain, points):
    """The subgradient inequality holds, with equality towards the centre."""
    center = domain.origin()
    for y, z in itertools.product(points, repeat=2):
        gauge, slope = domain.gauge(y), domain.gauge_subgradient(y)
        assert np.isclose(gauge, np.vdot(slope, y - center), rtol=1e-9)
        assert domain.gauge(z) >= gauge + np.vdot(slope, z - y) - 1e-9 * (1 + gauge)


def check_outside(domain, vertices, rng, step=1e-5):
    """Mixtures of vertices are members, points pushed past a vertex's supporting plane are not."""
    center = domain.origin()
    for direction in directions(domain, rng, 12):
        mixture = np.tensordot(rng.dirichlet(np.ones(len(vertices))), np.asarray(vertices), axes=1)
        assert domain.contains(mixture)
        if np.ptp([np.vdot(direction, vertex) for vertex in vertices]) > 1e-9:
            vertex = domain.lmo(direction)
            assert domain.contains(vertex)
            assert not domain.contains(vertex + step * (vertex - center))


def check_set(domain, rng, vertices=None, constraints=None, reach=None, tight=True):
    """Check a set against all of its vertices and a conic solver, as far as they are given.

    `reach` is how far points lie at which gauges are compared, on the affine hull of the vertices.
    """
    if vertices is not None:
        check_lmo(domain, vertices, rng)
        check_sizes(domain, vertices, tight)
        check_outside(domain, vertices, rng)
    elif constraints is not None:
        x = cp.Variable(domain.shape, symmetric=len(set(domain.shape)) < len(domain.shape))
        for direction in rng.normal(size=(4, *domain.shape)):
            value = cp.sum(cp.multiply(direction, x))
            least = cp.Problem(cp.Minimize(value), constraints(x)).solve(solver=cp.CLARABEL)
            assert np.isclose(np.vdot(direction, domain.lmo(direction)), least, atol=1e-6)
    if constraints is not None and domain.can("project"):
        check_projection(domain, constraints, rng)
    if reach is not None and domain.can("gauge"):
        if vertices is None:
            points = domain.origin() + rng.normal(size=(12, *domain.shape))
        else:
            points = [on_affine_hull(domain, rng, vertices, reach) for _ in range(10)]
        check_gauge(domain, points)
        if domain.can("gauge_subgradient"):
            check_gauge_subgradient(domain, points)

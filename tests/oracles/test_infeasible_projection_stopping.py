"""Where a run may stop: accuracies on both sides of one half, far targets, targets off the hull.

The sets here are hulls of few vertices, so that point 3 of the contract,
||y' - z|| <= ||y - z|| for every z in K, is checked at all of them by plain arithmetic.
"""

import math

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.oracles import methods
from driftwolfe.points import FactoredMatrix, distance, norm
from learners.families import project_trace_norm, simplex_projection

ABOVE_HALF = (0.51, 0.53, 0.55, 0.57, 0.6, 0.7, 0.8, 0.9, 0.99)
UP_TO_HALF = (0.1, 0.3, 0.45, 0.5)
ENDS = np.array([[-1.0, 0.0], [1.0, 0.0]])
#: Below a tenth of the squared radius, from where on accuracies are relative to that.
SQUARED = 0.09


def segment():
    """From (-1, 0) to (1, 0), known by its vertices alone."""
    return dw.LMODomain(2, lambda g: ENDS[(ENDS @ g).argmin()], radius=1.0)


def target_with_gap(share):
    """A y for x = 0 with ||x - y||^2 = 0.09 and a Frank-Wolfe gap, <y, (1, 0)>, of that share of it."""
    along = share * SQUARED
    return np.array([along, math.sqrt(SQUARED - along**2)])


def check_contract(result, y, vertices, tolerance, radius):
    new_x, new_y = result.feasible.ravel(), result.infeasible.ravel()
    assert np.sum((new_x - new_y) ** 2) <= tolerance * (1 + 1e-12)
    before = np.linalg.norm(vertices - y.ravel(), axis=1)
    after = np.linalg.norm(vertices - new_y, axis=1)
    # Both are a few roundings of numbers up to 2 R + ||y|| from the truth.
    assert (after - before).max() <= 1e-14 * (2 * radius + np.linalg.norm(y))
    assert np.linalg.norm(new_y) <= radius * (1 + 1e-14)


@pytest.mark.parametrize("method", ["halfspace", "corrective"])
@pytest.mark.parametrize("accuracy", UP_TO_HALF + ABOVE_HALF)
def test_a_gap_just_within_the_accuracy_keeps_the_contract(method, accuracy):
    """Returning (x, x) with a gap of share a would lengthen ||y - (1, 0)||^2 by (2 a - 1) 0.09."""
    share = accuracy * (1 - 1e-6)
    y, tolerance = target_with_gap(share), SQUARED * accuracy**2
    result = dw.infeasible_projection(
        segment(), np.zeros(2), y, tolerance, method, accuracy=accuracy
    )
    assert result.converged and result.lmo_calls == 1
    check_contract(result, y, ENDS, tolerance, 1.0)
    np.testing.assert_array_equal(result.feasible, np.zeros(2))
    # Up to one half (x, x), the projection of y on the half-space {z : z_1 <= 1} rotated above it.
    moved = y + (1 - share) * (0.0 - y) if accuracy > 0.5 else np.zeros(2)
    np.testing.assert_allclose(result.infeasible, moved, atol=1e-15)


@pytest.mark.parametrize("share", (*UP_TO_HALF, *ABOVE_HALF))
def test_a_run_out_of_calls_keeps_the_contract(share):
    """The accuracy asked for is out of reach; what the one call certifies decides."""
    y, tolerance = target_with_gap(share * (1 - 1e-6)), SQUARED * share**2
    for accuracy in (None, 0.01, 0.75):
        for method in ("halfspace", "corrective", "paper"):
            result = dw.infeasible_projection(
                segment(), np.zeros(2), y, tolerance, method, accuracy, max_lmo_calls=1
            )
            assert result.lmo_calls <= 1
            check_contract(result, y, ENDS, max(tolerance, result.distance**2), 1.0)


@pytest.mark.parametrize("accuracy", [0.51, 0.55, 0.6, 0.9])
def test_block_keeps_the_contract_above_one_half(accuracy):
    """Against the singular values that numpy finds."""
    rng = np.random.default_rng(4)
    shape, radius = (70, 65), 3.0
    ball = dw.TraceNormBall(shape, radius, representation="factored")
    for _ in range(4):
        left, right = (np.linalg.qr(rng.standard_normal((size, 12)))[0] for size in shape)
        y = dw.points.FactoredMatrix(left, np.linspace(2.0, 0.2, 12), right)
        x = dw.points.FactoredMatrix(left[:, 9:10], np.array([0.5]), right[:, 5:6])
        result = dw.infeasible_projection(ball, x, y, 0.5, "block", accuracy=accuracy)
        new_x, new_y, old_y = (point.toarray() for point in (result.feasible, result.infeasible, y))
        assert np.linalg.svd(new_x, compute_uv=False).sum() <= radius * (1 + 1e-9)
        assert np.sum((new_x - new_y) ** 2) <= 0.5
        moved = new_y - old_y
        # ||y'-z||^2 - ||y-z||^2 = <y'-y, y'+y> - 2 <y'-y, z>, largest at -R u v^T.
        worst = np.vdot(moved, new_y + old_y) + 2 * radius * np.linalg.norm(moved, 2)
        assert worst <= 1e-9 * radius**2


@pytest.mark.parametrize(("shape", "radius"), [((70, 55), 3.0), ((90, 80), 10.0)])
def test_the_certificate_of_block_is_as_fine_as_the_accuracy(shape, radius):
    """A coarser one is not enough, and the block grows until it is complete."""
    rng, ball = np.random.default_rng(0), dw.TraceNormBall(shape, radius, representation="factored")
    U, V = (np.linalg.qr(rng.standard_normal((size, 12)))[0] for size in shape)
    y = FactoredMatrix(U, np.linspace(2.0, 0.2, 12) * radius / 3, V)
    places = (rng.integers(0, size, 60) for size in shape)
    y = y + FactoredMatrix.from_entries(shape, *places, rng.standard_normal(60))
    for accuracy in (0.1, 0.01, 1e-3, 1e-5):
        found = dw.infeasible_projection(ball, ball.origin(), y, 1e-9, "block", accuracy)
        assert found.lmo_calls <= 6
        assert found.gap <= accuracy * distance(found.feasible, y) ** 2 * (1 + 1e-9)


# -- far targets -----------------------------------------------------------------------------------


@pytest.mark.parametrize("far", [1.0, 30.0, 1e3])
@pytest.mark.parametrize("accuracy", [0.05, 0.5])
@pytest.mark.parametrize("method", ["halfspace", "corrective"])
def test_a_far_target_is_projected_as_well_as_a_near_one(method, accuracy, far):
    """||x' - p||^2 <= accuracy * R^2 / 10, however far away y is; p by sorting."""
    domain, rng = dw.Simplex(12), np.random.default_rng(5)
    center, radius = np.full(12, 1 / 12), math.sqrt(1 - 1 / 12)
    for _ in range(10):
        out = rng.standard_normal(12)
        out -= out.mean()
        y = center + out * (far * radius / np.linalg.norm(out))
        # halfspace moves y to the ball first.
        inside = center + (y - center) / far if method == "halfspace" else y
        x = np.eye(12)[out.argmin()]
        result = dw.infeasible_projection(domain, x, y, 1e-8, method, accuracy=accuracy)
        error = np.sum((result.feasible - simplex_projection(inside)) ** 2)
        assert error <= accuracy * radius**2 / 10 * (1 + 1e-9)


def test_a_far_matrix_is_projected_to_its_accuracy():
    """Trace-norm balls have no such limit: ||x' - p||^2 <= accuracy * ||x' - y||^2."""
    ball, rng = dw.TraceNormBall((6, 5), 2.0), np.random.default_rng(6)
    y = 40.0 * rng.standard_normal((6, 5))
    result = dw.infeasible_projection(ball, ball.origin(), y, 1e-8, "corrective", accuracy=0.01)
    error = np.sum((result.feasible - project_trace_norm(y, 2.0)) ** 2)
    assert error <= 0.01 * np.sum((result.feasible - y) ** 2)


# -- targets off the affine hull -------------------------------------------------------------------


@pytest.mark.parametrize("off", [0.5, 40.0])
@pytest.mark.parametrize("method", ["halfspace", "corrective"])
def test_what_lies_off_the_hull_does_not_loosen_the_accuracy(method, off):
    """The nearest point is that of y's foot on the hull, and so is the distance that counts."""
    rng, normal = np.random.default_rng(7), np.full(8, 8**-0.5)
    for _ in range(10):
        x, out = np.eye(8)[0], rng.standard_normal(8)
        out -= out.mean()
        foot = 1 / 8 + out * (0.3 / np.linalg.norm(out))
        y = foot + off * normal
        result = dw.infeasible_projection(dw.Simplex(8), x, y, 1e-6, method, accuracy=0.05)
        nearest = simplex_projection(foot)
        allowed = 0.05 * np.sum((result.feasible - foot) ** 2)
        assert np.sum((result.feasible - nearest) ** 2) <= max(allowed, 1e-6) * (1 + 1e-9)
        assert abs(result.infeasible.sum() - 1) <= 1e-12 * (1 + off)


@pytest.mark.parametrize(
    "domain",
    [dw.BirkhoffPolytope(4), dw.SpanningTreePolytope(4), dw.UniformMatroidPolytope(6, 2)],
    ids=["birkhoff", "trees", "matroid"],
)
@pytest.mark.parametrize("method", ["halfspace", "corrective"])
def test_moving_a_target_off_the_hull_changes_nothing(domain, method):
    """One number for each entry: all of them, on every one of these sets, cost every point alike."""
    rng = np.random.default_rng(8)
    x = domain.lmo(rng.standard_normal(domain.shape))
    y = x + 0.3 * rng.standard_normal(domain.shape)
    near, far = (
        dw.infeasible_projection(domain, x, y + shift, 1e-4, method, accuracy=0.05)
        for shift in (0.0, 30.0)
    )
    np.testing.assert_allclose(near.feasible, far.feasible, atol=1e-10)
    np.testing.assert_allclose(near.infeasible, far.infeasible, atol=1e-10)


# -- known vertices --------------------------------------------------------------------------------


def test_where_all_vertices_are_known_one_call_is_enough():
    """Steps towards them go on to the gap at which a run may end; the call only certifies it."""
    rng, vertices = np.random.default_rng(11), np.concatenate((np.eye(3), -np.eye(3)))
    domain = dw.LMODomain(3, lambda g: vertices[(vertices @ g).argmin()], radius=1.0)
    for _ in range(20):
        out = np.array([1.0, 0.0, 0.0]) + 0.3 * rng.standard_normal(3)
        y, x = out / np.linalg.norm(out), -np.eye(3)[0]
        atoms = dw.oracles.Atoms(60)
        for vertex in vertices:
            atoms.add(vertex)
        result = dw.infeasible_projection(domain, x, y, 1e-6, "halfspace", 0.4, atoms=atoms)
        assert result.lmo_calls == 1
        away = result.feasible - y
        gap = (away @ (result.feasible - vertices).T).max()
        assert gap <= 0.4 * min(away @ away, 0.1) * (1 + 1e-12)


@pytest.mark.parametrize("domain", [dw.Simplex(30), dw.L1Ball(30)])
def test_where_the_accuracy_is_out_of_reach_all_calls_that_are_promised_are_made(domain):
    rng, tolerance = np.random.default_rng(0), 0.3 * domain.radius**2
    out = domain.tangent(rng.standard_normal(30))
    y = domain.origin() + out * (0.95 * domain.radius / np.linalg.norm(out))
    result = dw.infeasible_projection(domain, domain.lmo(out), y, tolerance, "halfspace", 1e-7)
    assert result.converged
    assert result.lmo_calls == math.floor(2.6 * (2 * domain.radius) ** 2 / tolerance)


# -- limits on the calls ---------------------------------------------------------------------------


@pytest.mark.parametrize("calls", [1, 2, 4])
@pytest.mark.parametrize("method", ["halfspace", "corrective"])
def test_a_run_that_is_cut_short_has_come_as_near_as_plain_line_searches(method, calls):
    rng, cut_short = np.random.default_rng(13), 0
    for _ in range(10):
        vertices = rng.standard_normal((12, 6))
        vertices = np.concatenate((vertices, -vertices))
        radius = np.linalg.norm(vertices, axis=1).max()
        domain = dw.LMODomain(6, lambda g, v=vertices: v[(v @ g).argmin()], radius=radius)
        out = rng.standard_normal(6)
        y = 0.9 * radius * out / np.linalg.norm(out)
        x = near = vertices[(vertices @ y).argmin()]
        for _ in range(calls):
            v = vertices[(vertices @ (near - y)).argmin()]
            gap = (near - y) @ (near - v)
            near = near + min(1.0, gap / np.sum((v - near) ** 2)) * (v - near)
        result = dw.infeasible_projection(
            domain, x, y, 1e-6, method, accuracy=1e-3, max_lmo_calls=calls
        )
        assert result.lmo_calls <= calls
        reached = np.linalg.norm(result.feasible - y)
        if result.lmo_calls == calls:  # else the accuracy was reached before
            assert reached <= np.linalg.norm(near - y) * (1 + 1e-9)
            cut_short += not result.converged
        if method == "halfspace" and not result.converged:
            np.testing.assert_allclose(result.feasible, near, atol=1e-9)
    assert cut_short


def test_cut_off_projections_keep_their_columns_few_and_the_contract(monkeypatch):
    monkeypatch.setattr(methods, "_FULL_ENTRIES", 0)
    monkeypatch.setattr(methods, "_LARGEST_BLOCK", 1)  # of 64 columns
    rng, shape = np.random.default_rng(0), (300, 200)
    domain = dw.TraceNormBall(shape, 3000.0)
    x = y = domain.origin()
    ranks, shortened = [], 0
    for _ in range(12):
        places = (rng.integers(size, size=3000) for size in shape)
        target = y + FactoredMatrix.from_entries(shape, *places, 8.0 * rng.standard_normal(3000))
        found = dw.infeasible_projection(domain, x, target, 1e-3, "block")
        x, y = found.feasible, found.infeasible
        worst = domain.lmo(y - target)  # the point of the set that y may have left farthest behind
        for z in (worst, x, domain.origin()):
            assert norm(y - z) <= norm(target - z) * (1 + 1e-12)
        assert distance(x, y) <= found.distance * (1 + 1e-9) + 1e-9
        ranks.append(y.rank)
        shortened += not found.converged
    assert shortened >= 8
    assert max(ranks) < 190  # side by side they had the 200 of the shorter side

"""What each method promises beyond the contract."""

import itertools
import math

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.oracles import methods
from driftwolfe.points import FactoredMatrix, devices, distance, inner, norm
from driftwolfe.points.ops import clip_to_ball


def hard_pair(domain, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    x = domain.lmo(rng.standard_normal(domain.shape))
    out = rng.standard_normal(domain.shape)
    return x, x + out * (scale * domain.radius / norm(out))


SETS = {
    "l1": dw.L1Ball(30),
    "simplex": dw.Simplex(30),
    "trace-norm": dw.TraceNormBall((12, 15), 3.0),
}


@pytest.mark.parametrize(
    ("name", "method"),
    [*itertools.product(SETS, ("corrective", "halfspace")), ("trace-norm", "block")],
)
def test_near_exact_methods_approach_the_projection(name, method):
    domain = SETS[name]
    x, y = hard_pair(domain, 0)
    if method == "halfspace":  # it works in the ball
        y = clip_to_ball(y, domain.center, domain.radius)
    exact = domain.project(y)
    tiny = 1e-6 * domain.radius**2
    errors = [
        distance(
            dw.infeasible_projection(domain, x, y, tiny, method, accuracy=accuracy).feasible, exact
        )
        for accuracy in (0.3, 0.003)
    ]
    # ||x' - projection||^2 <= gap <= accuracy * ||x' - y||^2
    assert errors[0] <= math.sqrt(0.3) * 2 * distance(x, y)
    assert errors[1] <= math.sqrt(0.003) * 2 * distance(x, y)


def test_corrective_is_finite_on_polytopes():
    domain = dw.L1Ball(20)
    x, y = hard_pair(domain, 3)
    result = dw.infeasible_projection(domain, x, y, 1e-12, "corrective", accuracy=1e-9)
    np.testing.assert_allclose(result.feasible, domain.project(y), atol=1e-7)
    assert result.lmo_calls <= 40


def test_corrective_asks_far_less_than_line_search():
    domain = dw.TraceNormBall((40, 30), 5.0)
    x, y = hard_pair(domain, 4, scale=2.0)
    calls = {
        method: dw.infeasible_projection(domain, x, y, 1e-4, method, accuracy=0.01).lmo_calls
        for method in ("halfspace", "corrective", "block")
    }
    assert calls["block"] <= calls["corrective"] < calls["halfspace"] / 3


def test_paper_stops_before_its_first_call_when_y_is_near():
    domain = dw.L2Ball(3)
    x, y = np.zeros(3), np.array([0.1, 0.0, 0.0])
    result = dw.infeasible_projection(domain, x, y, 0.02, "paper")
    assert result.lmo_calls == 0
    np.testing.assert_array_equal(result.feasible, x)
    np.testing.assert_array_equal(result.infeasible, y)


def test_paper_against_a_literal_transcription():
    """Algorithms 3 and 4 of the paper's appendix, written out with plain arrays."""
    domain = dw.Simplex(6)
    for seed in range(20):
        x, y = hard_pair(domain, seed, scale=1.2)
        eps = 0.01
        result = dw.infeasible_projection(domain, x, y, 3 * eps, "paper")
        u, w = (
            x.copy(),
            domain.center
            + (y - domain.center) / max(1, np.linalg.norm(y - domain.center) / domain.radius),
        )
        gamma, calls = 2 * eps / np.sum((x - y) ** 2), 0
        while np.sum((u - w) ** 2) > 3 * eps:
            while np.sum((u - w) ** 2) > 3 * eps:
                v = domain.lmo(u - w)
                calls += 1
                if np.vdot(u - w, u - v) <= eps:
                    break
                u = u + min(1, np.vdot(u - w, u - v) / np.sum((v - u) ** 2)) * (v - u)
            if np.sum((u - w) ** 2) > 3 * eps:
                w = w - gamma * (w - u)
        np.testing.assert_allclose(result.feasible, u, atol=1e-9)
        np.testing.assert_allclose(result.infeasible, w, atol=1e-9)
        assert result.lmo_calls == calls


def test_halfspace_result_lies_on_the_half_space():
    domain = dw.L1Ball(10)
    x, y = hard_pair(domain, 5)
    y = clip_to_ball(y, None, domain.radius)
    result = dw.infeasible_projection(domain, x, y, 0.05, "halfspace")
    normal = y - result.feasible
    worst = domain.lmo(-normal)
    assert inner(normal, result.infeasible) == pytest.approx(inner(normal, worst), abs=1e-9)


@pytest.mark.parametrize("method", ["paper", "halfspace", "corrective"])
@pytest.mark.parametrize("error", [0.0, 0.002, 0.02])
def test_inexact_oracles_keep_the_contract(method, error):
    """An oracle that returns the worst answer its stated error allows."""
    exact = dw.L1Ball(8)

    def sloppy(direction):
        best, allowed = exact.lmo(direction), error * exact.radius * np.linalg.norm(direction)
        # Walk towards the maximiser as far as the stated error permits.
        worst = exact.lmo(-direction)
        room = np.vdot(direction, worst - best)
        share = 0.0 if room == 0 else min(1.0, allowed / room)
        return best + share * (worst - best)

    domain = dw.LMODomain(8, sloppy, radius=1.0, error=error)
    for seed in range(30):
        x, y = hard_pair(exact, seed, scale=1.0)
        tolerance = 0.2
        result = dw.infeasible_projection(domain, x, y, tolerance, method)
        assert result.converged
        assert exact.contains(result.feasible, 1e-9)
        assert distance(result.feasible, result.infeasible) ** 2 <= tolerance * (1 + 1e-9)
        moved = result.infeasible - y
        z = exact.lmo(moved)  # the true worst case, by the exact oracle
        assert norm(result.infeasible - z) <= norm(y - z) + 1e-9
        if method == "halfspace":
            assert result.lmo_calls <= 6.75 * 4 / tolerance


def test_an_oracle_too_inexact_for_the_tolerance_says_so():
    """An error of the whole range: nothing can be certified, and nothing false is claimed."""
    exact = dw.L1Ball(8)
    domain = dw.LMODomain(8, exact.lmo, radius=1.0, error=2.0)
    x, y = hard_pair(exact, 1)
    for method in ("paper", "halfspace", "corrective"):
        result = dw.infeasible_projection(domain, x, y, 1e-4, method)
        assert not result.converged
        z = exact.lmo(result.infeasible - y)
        assert norm(result.infeasible - z) <= norm(y - z) + 1e-9


@pytest.mark.parametrize("answer", [np.ones(3), np.full(8, np.nan), np.full(8, 10.0), "x", None])
def test_garbage_from_an_oracle_is_refused(answer):
    domain = dw.LMODomain(8, lambda direction: answer, radius=1.0)
    x, y = np.zeros(8), np.full(8, 2.0)
    for method in ("paper", "halfspace", "corrective"):
        with pytest.raises(ValueError, match="lmo"):
            dw.infeasible_projection(domain, x, y, 0.1, method)
    np.testing.assert_array_equal(x, np.zeros(8))
    np.testing.assert_array_equal(y, np.full(8, 2.0))


def test_block_and_corrective_say_what_they_are_for():
    with pytest.raises(ValueError, match="block"):
        dw.infeasible_projection(dw.L1Ball(2), np.zeros(2), np.ones(2), 0.1, "block")
    product = dw.ProductDomain([dw.L1Ball(2), dw.L2Ball(2)])
    far = product.origin() + dw.points.ProductPoint([np.ones(2), np.ones(2)])
    with pytest.raises(ValueError, match="corrective"):
        dw.infeasible_projection(product, product.origin(), far, 0.1, "corrective")


def large_matrix_problem(seed=0):
    rng = np.random.default_rng(seed)
    m, n, stored = 300, 400, 4000
    domain = dw.TraceNormBall((m, n), radius=40.0)
    S = FactoredMatrix.from_entries(
        (m, n), rng.integers(0, m, stored), rng.integers(0, n, stored), rng.standard_normal(stored)
    )
    U, V = (np.linalg.qr(rng.standard_normal((size, 5)))[0] for size in (m, n))
    return domain, FactoredMatrix(U, np.full(5, 6.0), V), S


@pytest.mark.parametrize("method", ["halfspace", "corrective", "block", "auto"])
def test_factored_and_dense_runs_agree(method):
    domain, x, S = large_matrix_problem()
    y = x + S
    tolerance = 0.05 * domain.radius**2
    factored = dw.infeasible_projection(domain, x, y, tolerance, method)
    dense = dw.infeasible_projection(domain, x.toarray(), y.toarray(), tolerance, method)
    assert isinstance(factored.feasible, FactoredMatrix)
    assert isinstance(dense.feasible, np.ndarray)
    scale = domain.radius * 1e-6
    np.testing.assert_allclose(factored.feasible.toarray(), dense.feasible, atol=scale)
    assert factored.lmo_calls == dense.lmo_calls


def test_block_repeats_exactly_and_takes_a_generator():
    domain, x, S = large_matrix_problem(1)
    first, second = (
        dw.infeasible_projection(domain, x, x + S, 1.0, "block", rng=np.random.default_rng(5))
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.feasible.U, second.feasible.U)
    others = [
        dw.infeasible_projection(domain, x, x + S, 1.0, "block", accuracy=1e-4, rng=rng)
        for rng in (None, np.random.default_rng(6))
    ]
    exact = domain.project(x + S)
    noise = 1e-12 * norm(x + S) ** 2
    for other in others:  # ||x' - projection||^2 <= gap
        assert distance(other.feasible, exact) ** 2 <= other.gap + noise
        assert other.gap <= 1e-4 * norm(x + S) ** 2


@pytest.mark.parametrize("step", [0.05, 1.0, 40.0])
def test_block_starts_from_what_a_step_leaves_of_x(step, monkeypatch):
    """Where y is x and a few entries, long steps take fewer products for the same projection."""
    rng, shape, radius = np.random.default_rng(3), (150, 180), 5.0
    U, V = (np.linalg.qr(rng.standard_normal((size, 60)))[0] for size in shape)
    x = FactoredMatrix.from_orthonormal(U, np.full(60, radius / 60) * np.linspace(1.2, 0.8, 60), V)
    places = rng.integers(0, shape[0], 25), rng.integers(0, shape[1], 25)
    y = x + FactoredMatrix.from_entries(shape, *places, step * rng.standard_normal(25))
    ball = dw.TraceNormBall(shape, radius, representation="factored")
    exact, spent = ball.project(y.toarray()), {}
    for share in (methods._SHARE_OF_START, 0.0):
        monkeypatch.setattr(methods, "_SHARE_OF_START", share)
        before = devices.counted_products()
        found = dw.infeasible_projection(ball, x, y, 1e-12, "block", gap=1e-3 * radius**2)
        spent[share] = devices.counted_products() - before
        assert found.gap <= 1e-3 * radius**2
        assert np.linalg.norm(found.feasible.toarray() - exact) ** 2 <= found.gap
        assert ball.contains(found.feasible, 1e-9)
    narrow, wide = spent.values()
    assert narrow <= (0.7 if step >= 1.0 else 1.0) * wide


def test_block_leaves_high_ranks_to_the_full_decomposition():
    """Most singular values of a scaled-down target survive: a block of them costs more than all."""
    domain, x, S = large_matrix_problem(2)
    counted = dw.count_calls(dw.TraceNormBall(domain.shape, radius=600.0))
    result = dw.infeasible_projection(counted, x, x + S, 1e-6, "block")
    assert counted.calls.projection == 1
    assert result.feasible.rank > 100
    np.testing.assert_allclose(result.feasible.s.sum(), 600.0)


@pytest.mark.parametrize("size", [0.9, 0.999, 1.001, 1.2])
@pytest.mark.parametrize("method", ["block", "corrective"])
def test_factored_targets_around_the_boundary(method, size):
    """Trace norms that are known from orthonormal factors: inside nothing moves, outside it must."""
    rng, radius = np.random.default_rng(12), 4.0
    ball = dw.TraceNormBall((90, 80), radius, representation="factored")
    U, V = (np.linalg.qr(rng.standard_normal((side, 3)))[0] for side in (90, 80))
    y = FactoredMatrix(U, size * radius * np.array([0.5, 0.3, 0.2]), V)
    result = dw.infeasible_projection(ball, ball.origin(), y, 1e-4, method, accuracy=0.01)
    found = np.linalg.svd(result.feasible.toarray(), compute_uv=False)
    assert found.sum() <= radius * (1 + 1e-9)
    # All singular values fall by the same amount.
    exact = y.s - max(0.0, size - 1) * radius / 3
    near = np.sum((found[:3] - exact) ** 2) + np.sum(found[3:] ** 2)
    assert near <= max(1e-4, 0.01 * np.sum((y.toarray() - result.feasible.toarray()) ** 2))

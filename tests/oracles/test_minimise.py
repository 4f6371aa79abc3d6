"""`minimise` against independent minimisers; its gaps, its LMO calls, and what it refuses."""

from itertools import product

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import logsumexp, xlogy

import driftwolfe as dw
from driftwolfe.points.ops import ProductPoint
from learners.families import project_trace_norm

METHODS = ("vanilla", "away", "pairwise", "blended", "corrective")
every_method = pytest.mark.parametrize("method", METHODS)


def least_squares(shape, rows=40, seed=0):
    """A least-squares objective and its cvxpy form."""
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(rows, int(np.prod(shape)))), rng.normal(size=rows)

    def f(x):
        residual = A @ x.ravel() - b
        return 0.5 * residual @ residual, (A.T @ residual).reshape(x.shape)

    return f, lambda x: 0.5 * cp.sum_squares(A @ cp.vec(x, order="C") - b)


def simplex(x):
    return [x >= 0, cp.sum(x) == 1]


def doubly_stochastic(x):
    return [x >= 0, cp.sum(x, axis=0) == 1, cp.sum(x, axis=1) == 1]


def forests(x):
    """Spanning trees of the complete graph on 4 vertices."""
    edges = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    inside = [
        [k for k, edge in enumerate(edges) if set(edge) <= set(part)]
        for part in product(range(4), repeat=3)
    ]
    sizes = [len(set(part)) - 1 for part in product(range(4), repeat=3)]
    cuts = [cp.sum(x[k]) <= size for k, size in zip(inside, sizes, strict=True) if k]
    return [x >= 0, cp.sum(x) == 3, *cuts]


SETS = {
    "simplex": (dw.Simplex(12), simplex),
    "l1": (dw.L1Ball(12, radius=0.7), lambda x: [cp.norm1(x) <= 0.7]),
    "birkhoff": (dw.BirkhoffPolytope(4), doubly_stochastic),
    "trace": (dw.TraceNormBall((5, 3), radius=0.8), lambda x: [cp.normNuc(x) <= 0.8]),
    "trees": (dw.SpanningTreePolytope(4), forests),
}


@pytest.mark.parametrize("name", SETS)
def test_all_methods_agree_with_cvxpy(name):
    domain, constraints = SETS[name]
    f, stated = least_squares(domain.shape)
    x = cp.Variable(domain.shape)
    optimum = cp.Problem(cp.Minimize(stated(x)), constraints(x)).solve(solver="CLARABEL")
    for method in METHODS:
        slow = method != "corrective" and name == "trace"  # no polytope
        gap = 0.03 if method == "vanilla" else 1e-2 if slow else 1e-6
        best = dw.minimise(f, domain, gap, method=method)
        assert best.converged and best.gap <= gap and best.method == method
        assert -1e-6 <= best.value - optimum <= best.gap + 1e-6
        assert domain.contains(best.point, atol=1e-9)
        assert best.value == pytest.approx(f(best.point)[0], rel=1e-12)


@every_method
def test_atoms_and_weights_make_the_point(method):
    f, _ = least_squares((4, 4))
    domain = dw.BirkhoffPolytope(4)
    best = dw.minimise(f, domain, 1e-3, method=method, max_lmo_calls=300)
    mean = sum(w * atom for w, atom in zip(best.weights, best.atoms, strict=True))
    np.testing.assert_allclose(mean, best.point, atol=1e-12)
    assert (best.weights > 0).all() and best.weights.sum() == pytest.approx(1)
    vertices = [np.isin(atom, (0.0, 1.0)).all() for atom in best.atoms]
    assert sum(vertices) >= len(vertices) - 1 or method == "vanilla"


def on_a_face():
    """A projection on the simplex of 50 coordinates, whose minimiser has some of them; its minimum."""
    target = np.random.default_rng(1).normal(size=50) / 5
    domain = dw.Simplex(50)
    nearest = domain.project(target)
    assert 5 < np.count_nonzero(nearest) < 40
    return dw.losses.SquaredDistance(target), domain, 0.5 * np.sum((nearest - target) ** 2)


@pytest.mark.parametrize("method", METHODS[1:])
def test_on_a_face_of_a_polytope_the_gap_falls_linearly(method):
    loss, domain, optimum = on_a_face()
    calls = [dw.minimise(loss, domain, gap, method=method).lmo_calls for gap in (1e-4, 1e-8, 1e-12)]
    assert calls[2] - calls[1] < 2 * (calls[1] - calls[0]) + 20
    vanilla = dw.minimise(loss, domain, 1e-8, method="vanilla", max_lmo_calls=10 * calls[1])
    assert not vanilla.converged and vanilla.gap > 1e-6
    best = dw.minimise(loss, domain, 1e-12, method=method)
    assert best.value == pytest.approx(optimum, abs=1e-12)


@pytest.mark.parametrize("method", METHODS[1:-1])
def test_runs_call_the_lmo_only_where_the_vertices_held_promise_little(method):
    loss = dw.losses.SquaredDistance(np.random.default_rng(0).random((10, 10)))
    best = dw.minimise(loss, dw.BirkhoffPolytope(10), 1e-5, method=method)
    assert best.converged and 5 * best.lmo_calls < best.iterations


@every_method
def test_the_gap_holds_wherever_a_run_is_cut_off(method):
    loss, domain, optimum = on_a_face()
    for most in (*range(1, 20), 50):
        counted = dw.count_calls(domain)
        best = dw.minimise(loss, counted, 1e-10, method=method, max_lmo_calls=most)
        assert best.lmo_calls == counted.calls.lmo <= most
        assert counted.calls.numbers()[1:] == (0, 0, 0)
        assert best.value - best.gap <= optimum + 1e-14
        assert best.converged == (best.gap <= 1e-10)


def test_the_gap_allows_for_the_error_of_an_inexact_oracle():
    target = np.array([0.4, 0.35, 0.25, -2.0])

    def second_best(direction):
        """A vertex whose value is within 0.2 of the least, and the worst of these."""
        near = np.flatnonzero(direction <= direction.min() + 0.2 * np.linalg.norm(direction))
        return np.eye(4)[near[direction[near].argmax()]]

    center = np.full(4, 0.25)
    domain = dw.LMODomain(4, second_best, radius=1.0, center=center, error=0.2)
    nearest = dw.Simplex(4).project(target)
    optimum = 0.5 * np.sum((nearest - target) ** 2)
    for most in range(1, 30):
        best = dw.minimise(dw.losses.SquaredDistance(target), domain, max_lmo_calls=most)
        assert best.value - best.gap <= optimum
    assert not best.converged


@every_method
def test_functions_may_be_infinite_in_parts_of_the_set(method):
    """The entropy has infinite gradients at vertices, the logarithm infinite values."""
    prices = np.random.default_rng(0).normal(size=8)
    gap = 0.01 if method == "vanilla" else 1e-9

    def entropy(x):
        return xlogy(x, x).sum() + prices @ x, np.log(x) + 1.0 + prices

    best = dw.minimise(entropy, dw.Simplex(8), gap, method=method)
    assert best.converged
    assert -1e-12 <= best.value + logsumexp(-prices) <= gap

    weights = np.arange(1.0, 9.0)
    best = dw.minimise(
        lambda x: (-weights @ np.log(x), -weights / x), dw.Simplex(8), 100 * gap, method=method
    )
    optimum = -weights @ np.log(weights / weights.sum())
    assert best.converged and -1e-12 <= best.value - optimum <= 100 * gap


@every_method
def test_a_function_of_any_curvature(method):
    """Powers, whose curvature vanishes at the minimum, against its conditions."""
    target = np.random.default_rng(2).normal(size=6)

    def f(x):
        return 1e3 * np.sum((x - target) ** 4), 4e3 * (x - target) ** 3

    gap = 1.0 if method == "vanilla" else 1e-5
    best = dw.minimise(f, dw.Simplex(6), gap, method=method)
    # Where x > 0 slopes are one level: x = max(target - level, 0).
    level = brentq(lambda level: np.maximum(target - level, 0.0).sum() - 1.0, -5.0, 5.0)
    optimum, _ = f(np.maximum(target - level, 0.0))
    assert best.converged and -1e-8 <= best.value - optimum <= gap


def test_ill_conditioned_functions_take_few_gradients():
    """A quadratic function of condition 1e6, whose minimiser lies inside."""
    rng, evaluations = np.random.default_rng(0), []
    A = np.linalg.qr(rng.normal(size=(30, 30)))[0] * np.logspace(0, -3, 30)[:, None]
    inside = rng.dirichlet(np.ones(30))

    def f(x):
        evaluations.append(1)
        away = A @ (x - inside)
        return 0.5 * away @ away, A.T @ away

    assert dw.minimise(f, dw.Simplex(30), 1e-8).converged
    assert len(evaluations) < 400


def test_beyond_the_vertices_of_a_model_a_run_goes_on_as_blended(monkeypatch):
    monkeypatch.setitem(dw.minimise.__globals__, "_MODELLED", 40)
    target = np.random.default_rng(0).dirichlet(np.ones(50))
    start = np.eye(50)[0]
    best = dw.minimise(dw.losses.SquaredDistance(target), dw.Simplex(50), 1e-9, start=start)
    assert best.converged and best.method == "blended" and len(best.atoms) > 40
    np.testing.assert_allclose(best.point, target, atol=1e-4)


def test_larger_matrices_whose_vertices_are_as_exact_as_the_gap_asks():
    """Where Lanczos ends at an accuracy; the minimum by singular values."""
    target, ball = (
        np.random.default_rng(0).standard_normal((60, 55)),
        dw.TraceNormBall((60, 55), 10),
    )
    optimum = 0.5 * np.sum((project_trace_norm(target, 10.0) - target) ** 2)
    for gap in (0.1, 0.01):
        best = dw.minimise(dw.losses.SquaredDistance(target), ball, gap, max_lmo_calls=25)
        assert best.converged and -1e-9 * optimum <= best.value - optimum <= gap


def test_factored_points_and_products():
    rng = np.random.default_rng(0)
    rows, cols = np.divmod(rng.choice(600, 200, replace=False), 20)
    values = np.outer(rng.normal(size=30), rng.normal(size=20))[rows, cols]
    ball = dw.TraceNormBall((30, 20), 15.0, representation="factored")
    entries = dw.losses.SquaredEntries(rows, cols, values)
    dense = dw.TraceNormBall((30, 20), 15.0, representation="dense")
    optimum = dw.minimise(entries, dense, 1e-4, method="blended")
    assert optimum.converged
    best = dw.minimise(entries, ball, 0.1)
    assert isinstance(best.point, dw.FactoredMatrix) and best.method == "vanilla"
    assert best.converged and ball.contains(best.point)
    assert -1e-4 <= best.value - optimum.value <= 0.1
    again = dw.minimise(entries, ball, 1e-3, method="blended")
    assert again.converged and abs(again.value - optimum.value) <= 1e-3

    parts = dw.ProductDomain([dw.L1Ball(3), dw.Simplex(4)])
    targets = rng.normal(size=3), rng.normal(size=4)

    def f(x):
        away = [part - target for part, target in zip(x.parts, targets, strict=True)]
        return 0.5 * sum(each @ each for each in away), ProductPoint(away)

    nearest = [each.project(target) for each, target in zip(parts.domains, targets, strict=True)]
    for method in METHODS[1:]:
        found = dw.minimise(f, parts, 1e-10, method=method).point
        for part, other in zip(found.parts, nearest, strict=True):
            np.testing.assert_allclose(part, other, atol=2e-5)


def test_what_is_linear_constant_or_kinked():
    best = dw.minimise(dw.losses.LinearLoss([1.0, 2.0]), dw.L1Ball(2))
    assert best.value == -2.0 and best.iterations == 1 and best.converged
    best = dw.minimise(lambda x: (3.0, np.zeros(2)), dw.L1Ball(2))
    assert best.value == 3.0 and best.iterations == 0 and best.converged
    kinked = dw.losses.FunctionLoss(lambda x: np.abs(x - 0.1).sum(), lambda x: np.sign(x - 0.1))
    best = dw.minimise(kinked, dw.L2Ball(5))
    assert best.value - best.gap <= 0.0
    tiny = dw.minimise(dw.losses.SquaredDistance([2.0, 0.3, 0.1]), dw.L1Ball(3), 1e-300)
    assert not tiny.converged and tiny.gap < 1e-13  # it ends where all is rounding


def test_a_start_is_used_and_is_not_changed():
    loss, domain, _ = on_a_face()
    best = dw.minimise(loss, domain, 1e-10)
    start = best.point.copy()
    again = dw.minimise(loss, domain, 2e-10, start=start)
    assert again.iterations < 0.2 * best.iterations
    np.testing.assert_array_equal(start, best.point)
    best.point[0] = 7.0  # is the caller's

    kept = np.empty(50)  # a gradient that is written anew each time

    def f(x):
        with pytest.raises(ValueError, match="read-only"):
            x[0] = 1.0
        kept[:] = x - loss.target
        return 0.5 * kept @ kept, kept

    assert dw.minimise(f, domain, 1e-10).value == pytest.approx(best.value, abs=1e-10)


REFUSED = {
    "domain": (TypeError, {"domain": "ball"}),
    "f must be a Loss or a function": (TypeError, {"f": 3.0}),
    'method must be one of "auto", "corrective"': (ValueError, {"method": "blend"}),
    "gap": (ValueError, {"gap": 0.0}),
    "max_lmo_calls": (ValueError, {"max_lmo_calls": 0}),
    "start must be a point of": (ValueError, {"start": [3.0, 0.0]}),
    "start must have shape": (ValueError, {"start": [3.0]}),
    "takes points of shape": (ValueError, {"f": dw.losses.LinearLoss([1.0])}),
    "finite at the start": (ValueError, {"f": lambda x: (np.inf, x)}),
    "gradient of f must have shape": (ValueError, {"f": lambda x: (0.0, np.zeros(3))}),
    "the value and the gradient": (TypeError, {"f": lambda x: 0.0}),
}


@pytest.mark.parametrize("told", REFUSED)
def test_bad_input_is_refused(told):
    error, wrong = REFUSED[told]
    given = {"f": dw.losses.SquaredDistance([1.0, 1.0]), "domain": dw.L1Ball(2)} | wrong
    with pytest.raises(error, match=told):
        dw.minimise(**given)


def test_sets_without_an_lmo_are_refused():
    domain = dw.MembershipDomain(2, lambda x: x @ x <= 1.0, radius=1.0, inner_radius=0.5)
    with pytest.raises(ValueError, match="needs linear minimisation, which MembershipDomain lacks"):
        dw.minimise(dw.losses.LinearLoss([1.0, 2.0]), domain)

"""The online Newton step: its minimisations, its bound, and the constants of Agarwal et al."""

import numpy as np
import pytest
from scipy.optimize import minimize

import driftwolfe as dw
from driftwolfe.ensemble.newton import minimum
from driftwolfe.losses import PortfolioLoss

SETS = {
    "simplex": dw.Simplex(6),
    "l1": dw.L1Ball(5, radius=2.0),
    "box": dw.Box(-np.ones(4), np.ones(4)),
    "birkhoff": dw.BirkhoffPolytope(3),  # by LMO calls
    "own": dw.LMODomain(3, dw.L2Ball(3).lmo, radius=1.0),
}


@pytest.mark.parametrize("name", SETS)
def test_the_gap_is_a_bound_on_the_distance_to_the_minimum(name):
    """The minimum of a quadratic over the set, from vertices or an independent solver."""
    domain, rng = SETS[name], np.random.default_rng(0)
    cvxpy = pytest.importorskip("cvxpy")
    n = int(np.prod(domain.shape))
    center, radius = domain.origin().ravel(), domain.radius
    for _ in range(5):
        root = rng.standard_normal((n, n))
        H, c = root @ root.T + np.eye(n), 3.0 * rng.standard_normal(n)
        x, gap = minimum(domain, H, c, np.zeros(n))
        z = cvxpy.Variable(n)
        y = center + radius * z
        Y = cvxpy.reshape(y, (3, 3), order="C") if name == "birkhoff" else None
        inside = {
            "simplex": lambda y=y: [y >= 0, cvxpy.sum(y) == 1],
            "l1": lambda y=y: [cvxpy.norm1(y) <= 2.0],
            "box": lambda y=y: [y >= -1, y <= 1],
            "birkhoff": lambda Y=Y: [Y >= 0, cvxpy.sum(Y, axis=0) == 1, cvxpy.sum(Y, axis=1) == 1],
            "own": lambda y=y: [cvxpy.norm2(y) <= 1.0],
        }[name]()
        best = cvxpy.Problem(cvxpy.Minimize(cvxpy.quad_form(z, H) / 2 + c @ z), inside).solve()
        excess = 0.5 * x @ H @ x + c @ x - best
        assert -1e-6 <= excess <= gap + 1e-6
        assert gap <= (1e-9 if domain.cheap_projection else 0.05)
        assert domain.contains((center + radius * x).reshape(domain.shape), atol=1e-9)


def test_the_constants_of_agarwal_et_al_are_a_negative_rate():
    """Their recursion, A = I + sum r r'/(p.r)^2, b = 2 sum r/(p.r), p = proj_A(A^-1 b / 8), by SLSQP."""
    rng, n = np.random.default_rng(3), 4
    days = np.exp(0.05 * rng.standard_normal((25, n)))
    learner = dw.contrib.OnlineNewtonStep(dw.Simplex(n), rate=-0.75, ridge=1.0)
    A, b, p = np.eye(n), np.zeros(n), np.full(n, 1 / n)
    for day in days:
        np.testing.assert_allclose(learner.decision, p, atol=1e-4)
        learner.update(PortfolioLoss(day))
        g = day / (p @ day)
        A, b = A + np.outer(g, g), b + 2.0 * g
        p = minimize(
            lambda x, A=A, b=b: 0.5 * x @ A @ x - b @ x / 8,
            p,
            jac=lambda x, A=A, b=b: A @ x - b / 8,
            bounds=[(0, 1)] * n,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1, "jac": lambda x: np.ones(n)},
            options={"ftol": 1e-14, "maxiter": 200},
        ).x


def test_gradients_count_along_the_set_only():
    rng = np.random.default_rng(4)
    plain, centred = (dw.contrib.OnlineNewtonStep(dw.Simplex(5), alpha=1.0) for _ in "12")
    for day in np.exp(0.1 * rng.standard_normal((60, 5))):
        plain.update(PortfolioLoss(day))
        centred.update(PortfolioLoss(day, centred=True))
    np.testing.assert_allclose(plain.decision, centred.decision, atol=1e-5)


def best_constant(days):
    """The logarithmic wealth of the best constant portfolio in hindsight."""
    found = dw.regret.offline_minimum(dw.Simplex(days.shape[1]), [PortfolioLoss(days)])
    return -len(days) * found.value


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_holds_for_portfolios_against_an_adversary(seed):
    """Returns that punish the asset held most; beside them, an asset that is best."""
    rng, n = np.random.default_rng(seed), 4
    simplex = dw.Simplex(n)
    # Along the simplex, |r/<w, r>| is at most diam times the ratio of returns, less than 1.4 here.
    learner = dw.contrib.OnlineNewtonStep(simplex, lipschitz=1.5, alpha=1.0)
    days, suffered = [], 0.0
    for t in range(150):
        day = rng.uniform(0.95, 1.05, n)
        day[learner.decision.argmax()] *= 0.8
        day[t // 50] *= 1.1
        days.append(day)
        suffered += learner.update(PortfolioLoss(day))
        if t % 50 == 49:
            regret = suffered + best_constant(np.array(days))
            assert 0.0 < regret <= learner.bound()
    closed = 2.0 * 1.5 * simplex.diameter * (0.5 + n * np.log(1 + 150 / (4 * n)))
    assert learner.bound() <= closed + 1.0


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_sums_of_fewer_gradients_than_numbers_are_loaded_in_any_units(size):
    """Rounding makes their smallest eigenvalues negative."""
    rng, learner = np.random.default_rng(0), dw.contrib.OnlineNewtonStep(dw.L2Ball(5))
    for _ in range(3):
        learner.update(dw.losses.LinearLoss(size * rng.standard_normal(5)))
    other = dw.from_bytes(learner.to_bytes())
    np.testing.assert_array_equal(other.decision, learner.decision)


def test_no_bound_is_told_where_none_is_proved():
    simplex, loss = dw.Simplex(3), PortfolioLoss([1.0, 1.1, 5.0])
    for given in (
        {"lipschitz": 5.0},  # no alpha
        {"alpha": 1.0},  # a rate that changes
        {"alpha": 1.0, "lipschitz": 0.5},  # exceeded
        {"alpha": 1.0, "rate": -0.75},
    ):
        learner = dw.contrib.OnlineNewtonStep(simplex, **given)
        learner.update(loss)
        with pytest.raises(NotImplementedError):
            learner.bound()
    learner = dw.contrib.OnlineNewtonStep(simplex, lipschitz=5.0, alpha=1.0)
    for asked in ({"path_length": 1.0}, {"tau": 3}):
        with pytest.raises(NotImplementedError):
            learner.bound(**asked)


def test_sets_that_are_too_large_or_factored_are_refused():
    for domain in (
        dw.Simplex(6_000),
        dw.TraceNormBall((40, 30), representation="factored"),
        dw.ProductDomain([dw.L1Ball(2), dw.Simplex(2)]),
    ):
        with pytest.raises(ValueError, match="works on dense arrays"):
            dw.contrib.OnlineNewtonStep(domain)

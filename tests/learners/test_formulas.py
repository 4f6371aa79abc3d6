"""Constants of bounds and of plans that a game on benign losses does not show."""

import math

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe import bounds
from driftwolfe.bounds.ensembles import (
    Measured,
    expert_regret,
    leader_regret,
    optimistic_regret,
    regret_per_path,
)
from driftwolfe.ensemble.ball import BallExperts
from driftwolfe.ensemble.descent import GradientSum
from driftwolfe.ensemble.plan import Plan
from driftwolfe.losses import FunctionLoss, SquaredDistance


def squares(a, b):
    return FunctionLoss(lambda x: (a @ x - b) ** 2, lambda x: 2 * (a @ x - b) * a)


def measured(f, x):
    """Constants, with f for the unit of the loss and x for that of a length."""
    return Measured(
        G=1.5 * f / x,
        D=1.4 * x,
        diameter=1.1 * x,
        step_scale=0.8 * x * x / f,
        shrinking_steps=False,
        largest_distance=0.3 * x,
        delay_factor=1.0,
        surrogates=1.7 * f / x,
        noise=0.4 * f / x,
    )


def steps(f, x):
    return 1.5 * f / x, 1.4 * x, 20, 0.3 * x * x / f, 4, 0.2 * x * x, 0.6 * x


def sums(f, x):
    return 1.5 * f / x, 1.4 * x, 0.3 * x * x / f, 6.0 * x * x / f, 4, 2.0 * x, 0.5


def curved(f, x):
    return 1.5 * f / x, 0.9 * f / x**2


def smooth(f, x):
    return 2.0 * f / x**2, 1.1 * x, 20, 3.0 * f, 0.5 * f


#: Bounds, of numbers in units f of the loss and x of a length. `fingerprints.txt` has what they are in units of 1.
BOUNDS = {
    "blocked": lambda f, x: bounds.blocked_descent(*steps(f, x)),
    "blocked, all options": lambda f, x: bounds.blocked_descent(
        *steps(f, x), 0.5, True, 3.0, 0.8 * f / x
    ),
    "lazy": lambda f, x: bounds.lazy_descent(*sums(f, x), False),
    "lazy, shrinking": lambda f, x: bounds.lazy_descent(*sums(f, x), True),
    "adaptive": lambda f, x: bounds.adaptive_descent(1.4 * x, 9.0 * (f / x) ** 2, 0.4, 4),
    "tracking": lambda f, x: bounds.frank_wolfe_tracking(
        1.5 * f / x, 1.4 * x, 1.1 * x, 20, 0.3 * x * x / f, 0.2, 0.1 * x * x
    ),
    "smooth": lambda f, x: bounds.smooth_frank_wolfe(*smooth(f, x)),
    "smooth, fixed": lambda f, x: bounds.smooth_frank_wolfe(*smooth(f, x), 0.2),
    "near": lambda f, x: bounds.curved_distance(*curved(f, x), 0.5 * x),
    "far": lambda f, x: bounds.curved_distance(*curved(f, x), 5.0 * x),
    "curved, wide": lambda f, x: bounds.strongly_convex_frank_wolfe(*curved(f, x), 1.9 * x, 20),
    "curved, narrow": lambda f, x: bounds.strongly_convex_frank_wolfe(*curved(f, x), 0.3 * x, 20),
    "leader": lambda f, x: bounds.strongly_convex_leader(*curved(f, x), 20),
    "newton": lambda f, x: bounds.newton_steps(
        2.0 * f, 3.0 * f * f, f * f * np.array([[2.0, 1.0], [1.0, 1.5]]), 0.1 * f
    ),
    "newton, intervals": lambda f, x: bounds.newton_on_intervals(0.5 / f, 4 * f, 3, 7, 20, 0.1 * f),
    "leaders": lambda f, x: leader_regret(*steps(f, x)[:2], 0.3 * x * x / f, 6, 20, 0.6 * x, None),
    "curved leaders": lambda f, x: leader_regret(
        *steps(f, x)[:2], 0.3 * x * x / f, 6, 20, 0.6 * x, 0.9 * f / x**2
    ),
    "expert": lambda f, x: expert_regret(PLAN._replace(tolerance=x * x), measured(f, x), 20, x),
    "optimistic": lambda f, x: optimistic_regret(
        PLAN._replace(tolerance=0.01 * x * x), measured(f, x), 20, x
    ),
    "path": lambda f, x: x * regret_per_path(PLAN, measured(f, x), 20),
}
PLAN = Plan(0.4, 3, 0.0)


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_are_in_units_of_the_loss(name):
    for f, x in ((4.0, 1.0), (1.0, 8.0), (2.0**-9, 2.0**7)):
        assert BOUNDS[name](f, x) == pytest.approx(f * BOUNDS[name](1.0, 1.0), rel=1e-12)


@pytest.mark.parametrize(("alpha", "G"), [(0.125, 4.0), (0.01, 4.0)])
def test_bounds_for_exp_concave_losses_follow_their_formulas(alpha, G):
    """Where the losses decide the rate, and where the diameter does; all gradients lie on one line."""
    ball, a = dw.L2Ball(2, radius=1.5), np.array([1.0, 0.0])
    rate = 2.0 * max(1.0 / alpha, G * ball.diameter)
    newton, weighed = dw.contrib.OnlineNewtonStep, dw.contrib.AFLH
    learner, other = (cls(ball, lipschitz=G, alpha=alpha) for cls in (newton, weighed))
    total = 0.0
    for _ in range(9):
        f = squares(a, 0.5)
        total += np.linalg.norm(ball.radius * f.gradient(learner.decision)) ** 2
        learner.update(f), other.update(f)
    expected = rate / 2.0 + rate * math.log1p(total / rate**2) + learner._sums.slack
    assert learner.bound() == pytest.approx(expected, rel=1e-9)
    with_given_rate = newton(ball, lipschitz=G, alpha=alpha, rate=0.99 * rate)
    with pytest.raises(NotImplementedError):
        with_given_rate.bound()
    one = rate * (0.5 + 2 * math.log1p(9 / 8)) + other._experts.slack
    assert other.bound() == pytest.approx(4 * (math.log(90) / alpha + one), rel=1e-9)


def test_sword_charges_twice_the_smoothness_and_expects_all_of_smooth_gradients():
    ball, rng = dw.L2Ball(3), np.random.default_rng(0)
    learner = dw.contrib.Sword(ball, 40, 4.0, smoothness=0.2, gradients="own")
    experts = learner._experts
    for _ in range(12):  # gradients that do not agree, of which others would expect a share
        moves = experts.moves.copy()
        f = SquaredDistance(rng.standard_normal(3), weight=0.1)
        losses = experts.evaluate(f, learner._meta.weights)
        charged = losses.losses - BallExperts.losses(experts, losses.slopes[0])
        np.testing.assert_allclose(charged, 2 * 0.2 * moves, atol=1e-12)
        learner.update(f)
        np.testing.assert_array_equal(experts.expected, experts.lasts)
    assert moves.max() > 0.0


def test_plans_on_the_ball_project_every_round_and_exactly_if_the_oracle_is():
    for oracle, tolerance in (("exact", 0.0), ("corrective", 4.0**2 / 64)):
        made = dw.learners.OneProjectionAder(
            dw.L1Ball(3, radius=2.0), 64, 1.0, oracle=oracle, tuning="certified"
        )
        assert made.options.ball_plan(0.5, 64, 8) == Plan(0.5, 1, tolerance, 0.0, 8)


def test_what_a_path_costs_on_a_cover_is_that_of_the_worst_level():
    """Also where it falls with the length of the intervals."""
    for per_path in ([1.0, 4.0, 2.0, 3.0], [4.0, 3.0, 2.0, 1.0], [1.0, 2.0, 3.0, 4.0]):
        moving = [
            bounds.over_game(15, lambda k: 0.0, per_path.__getitem__, 1.0),
            bounds.over_windows(15, lambda k: 0.0, per_path.__getitem__, 1.0),
        ]
        assert moving == [per_path[0]] * 2


def test_sacs_pays_for_a_path_by_the_steps_of_its_experts():
    learner, rng = dw.contrib.SACS(dw.L2Ball(3)), np.random.default_rng(0)
    for _ in range(5):
        learner.update(dw.losses.LinearLoss(rng.normal(size=3)))
    experts, k = learner._experts, 1
    squares = 9.0 * experts.largest_gradient**2 + 6.0 * experts.worst[k]
    assert learner._level_per_path(k) == pytest.approx(math.sqrt(squares), rel=1e-9)


def test_sums_of_gradients_are_of_the_kind_of_their_points():
    point = dw.FactoredMatrix(np.ones((3, 1)), np.ones(1), np.ones((1, 1)))
    assert GradientSum(rest=point).fits(point)
    assert not GradientSum(rest=np.zeros((3, 1))).fits(point)
    for rows, cols, fits in (([], [], True), ([0, 2], [0, 0], True), ([3], [0], False)):
        entries = np.array(rows, np.int64), np.array(cols, np.int64), np.ones(len(rows))
        assert GradientSum().with_entries(*entries).fits(point) == fits


@pytest.mark.parametrize("error", [0.0, 0.3])
def test_the_distance_of_online_frank_wolfe_is_the_root_of_its_equation(error):
    """s q^2 = s^2 diam^2/2 + s e + eta G q, and D^2/(8 eta) + G T q."""
    G, D, diameter, T, eta, s = 1.5, 3.0, 2.5, 200, 0.05, 0.2
    found = bounds.frank_wolfe_tracking(G, D, diameter, T, eta, s, error)
    q = (found - D**2 / (8 * eta)) / (G * T)
    assert s * q**2 == pytest.approx(s**2 * diameter**2 / 2 + s * error + eta * G * q)


def test_an_oracle_with_an_error_has_its_error_in_the_bound_or_none():
    """A disc by an oracle that is exact, and one that says it may miss the minimum by a tenth."""
    exact = dw.L2Ball(2)
    for cls, told in (
        (dw.OnlineFrankWolfe, {"horizon": 30}),
        (dw.contrib.OnlineNewtonStep, {"alpha": 0.1}),
        (dw.contrib.StronglyConvexOFW, {}),
        (dw.contrib.FTPL, {}),
    ):
        found = []
        for error in (0.0, 0.1):
            domain = dw.LMODomain(2, exact.lmo, radius=1.0, error=error)
            learner = cls(domain, lipschitz=2.0, **told)
            for t in range(30):
                learner.update(dw.losses.SquaredDistance([0.3 * (-1) ** t, 0.9]))
            try:
                found.append(learner.bound())
            except NotImplementedError:
                found.append(math.inf)
        assert found[0] < found[1]
        assert (cls is dw.contrib.FTPL) == (found[1] == math.inf)


@pytest.mark.parametrize("certified", [False, True])
def test_the_adaptive_expert_of_polar_has_blocks_up_to_its_last(certified):
    """G T delta + D sqrt(Gamma) (v_0/h + sqrt(K) (1 + sqrt(1 + s^2))/s), with h = 1/(4 sqrt(K))."""
    options = {"tuning": "certified", "oracle": "corrective"} if certified else {}
    learner = dw.POLAR(dw.L2Ball(3), None, 2.0, experts=("adaptive",), **options)
    for T in range(1, 24):
        learner.update(dw.losses.LinearLoss(2.0 * np.eye(3)[T % 3]))
        K = math.isqrt(1 << T.bit_length()) if certified else 1
        h, apart = 0.25 / math.sqrt(K), learner._bounds._apart(learner._plan("whole", 1))
        s = 2.0 / (h * math.sqrt(K))
        stepping = math.sqrt(K) * (1.0 + math.sqrt(1.0 + s * s)) / s
        wanted = 2.0 * T * apart + 2.0 * math.sqrt(4.0 * T) * (1 / 8 / h + stepping)
        assert learner._bounds.whole_adaptive() == pytest.approx(wanted, rel=1e-12)


def test_long_term_refuses_where_gradients_were_longer_than_its_constants():
    learner = dw.contrib.LongTerm(dw.L2Ball(2), horizon=20, lipschitz=1.0, constraint_lipschitz=1.0)
    loss, limit = dw.losses.LinearLoss([-1.0, 0.0]), dw.losses.LinearLoss([1.0, 0.0], 0.1)
    learner.update(loss, constraint=limit)
    assert learner.violation_bound() > 0.0
    learner.update(dw.losses.LinearLoss([-1.5, 0.0]), constraint=limit)
    with pytest.raises(NotImplementedError, match="longer than the constants"):
        learner.violation_bound()

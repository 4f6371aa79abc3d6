"""Bandit feedback: estimates, points, and bounds in expectation."""

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.losses import FunctionLoss, LinearLoss
from learners.families import listener

SETS = {
    "ball": dw.L2Ball(4),
    "l1": dw.L1Ball(3, radius=2.0),
    "simplex": dw.Simplex(5),
    "assignments": dw.BirkhoffPolytope(3),
    "box": dw.Box([0.0, 1.0, -3.0], [2.0, 1.0, -1.0]),
}


def distances(centers):
    """The distance from a moving point, of which values alone can be had."""

    def loss(c):
        return FunctionLoss(lambda x: float(np.linalg.norm(x - c)), lambda x: 1 / 0)

    return [loss(center) for center in centers]


def switching(domain, rounds, seed=0, pieces=2):
    """Points to be near to, each of the set and for a share of the rounds."""
    rng = np.random.default_rng(seed)
    drawn = [domain.lmo(rng.standard_normal(domain.shape)) for _ in range(pieces)]
    kept = [0.7 * vertex + 0.3 * domain.origin() for vertex in drawn]
    return [kept[t * pieces // rounds] for t in range(rounds)]


@pytest.mark.parametrize("points", [1, 2])
@pytest.mark.parametrize("name", SETS)
def test_points_played_are_in_the_set_and_explore_its_whole_inside(name, points):
    domain, rounds = SETS[name], 60
    learner = dw.contrib.Bandit(domain, points=points, horizon=rounds, lipschitz=1.0)
    steps = []
    for loss in distances(switching(domain, rounds)):
        played = learner.query().reshape(-1, *domain.shape)
        assert len(played) == points
        np.testing.assert_array_equal(learner.query().reshape(played.shape), played)
        for point in played:
            assert domain.contains(point, atol=1e-12)
            apart = np.linalg.norm(point - learner.decision)
            assert apart == pytest.approx(learner.exploration.delta, rel=1e-9)
        steps.append((played[0] - learner.decision).ravel())
        learner.update(loss)
    assert np.linalg.matrix_rank(np.array(steps), tol=1e-9) == domain.dimension


@pytest.mark.parametrize("points", [1, 2])
@pytest.mark.parametrize("name", SETS)
def test_estimates_are_the_gradient_in_the_mean(name, points):
    """Of a linear loss, along the affine hull; in units of G times the shrinking factor."""
    domain, rounds, (listening, seen) = SETS[name], 600, listener()
    slope = np.linspace(-1.0, 2.0, np.prod(domain.shape)).reshape(domain.shape)
    learner = dw.contrib.Bandit(domain, listening, points=points, horizon=50, lipschitz=4.0)
    shrunk, factor = 1.0 - learner.exploration.alpha, learner.exploration.factor
    for _ in range(rounds):
        learner.update(LinearLoss(slope, constant=7.0))
    unit = 4.0 * domain.diameter
    mean = np.mean(seen[1:], axis=0) * unit / shrunk
    largest = np.abs(seen).max() * unit / shrunk
    assert max(np.linalg.norm(g) for g in seen) <= shrunk * factor * (1 + 1e-9)
    np.testing.assert_allclose(mean, domain.tangent(slope), atol=5 * largest / np.sqrt(rounds))


def test_playing_the_whole_set_shrunk_is_playing_the_shrunk_set():
    """OGD on the smaller ball, written out, with the same directions."""
    rounds, domain, G = 40, dw.L2Ball(3), 2.0
    learner = dw.contrib.Bandit(
        domain, dw.OGD, points=2, horizon=rounds, lipschitz=G, step_scale=0.5
    )
    delta, alpha, _ = learner.exploration
    eta, x, rng = 0.5 / np.sqrt(rounds), np.zeros(3), np.random.default_rng(0)
    for _ in range(rounds):
        np.testing.assert_allclose(learner.decision, x, atol=1e-12)
        first, second = learner.query()
        u, target = (first - second) / (2 * delta), rng.standard_normal(3)
        values = [np.abs(point - target).sum() for point in (first, second)]
        assert learner.update(values) == np.mean(values)
        gradient = 3 * (values[0] - values[1]) / (2 * delta) * u / (G * domain.diameter)
        x = x - eta * (1 - alpha) ** 2 * gradient
        x = x / max(1.0, np.linalg.norm(x) / (1 - alpha))


def adversary(domain, rounds, seed):
    """Linear losses of norm 1 at most whose sign is drawn in blocks: nothing can be learned for sure."""
    rng = np.random.default_rng(seed)
    direction = rng.standard_normal(domain.shape)
    direction /= np.linalg.norm(direction)
    signs = np.repeat(rng.choice([-1.0, 1.0], size=rounds), 8)[:rounds]
    return [sign * direction for sign in signs]


@pytest.mark.parametrize("learner", [dw.POLD, dw.POLA, dw.POLAR, dw.BOGDIP, dw.Ader])
@pytest.mark.parametrize("points", [1, 2])
def test_the_mean_regret_is_within_the_bound(points, learner):
    """Over seeds, against the best fixed point and, of POLD, against one that switches."""
    rounds = 80
    for domain in (SETS["ball"], SETS["simplex"]):
        slopes = adversary(domain, rounds, seed=1)
        drift = switching(domain, rounds, seed=2)
        static, moving = [], []
        for seed in range(2):
            options = {"points": points, "horizon": rounds, "lipschitz": 1.0, "seed": seed}
            first = dw.contrib.Bandit(domain, learner, **options)
            suffered = sum(first.update(LinearLoss(slope)) for slope in slopes)
            best = np.sum(slopes, axis=0)
            static.append(suffered - float(np.vdot(best, domain.lmo(best))))
            second = dw.contrib.Bandit(domain, learner, **options)
            moving.append(sum(second.update(loss) for loss in distances(drift)))
        path = np.linalg.norm(np.diff(drift, axis=0), axis=1).sum()
        assert np.mean(static) <= first.bound()
        assert np.mean(moving) <= second.bound(path_length=path)
        assert second.bound(path_length=path) >= second.bound()


def test_what_the_bound_says_of_long_games():
    """In units of the worst play, on ten dimensions; nothing is played, as bounds need no more than rounds."""
    found = {}
    for points, rounds in ((1, 10**4), (1, 10**6), (2, 10**4), (2, 10**6)):
        learner = dw.contrib.Bandit(dw.L2Ball(10), dw.POLD, points, horizon=rounds, lipschitz=1.0)
        learner.t = learner.learner.t = rounds
        found[points, rounds] = learner.bound() / (2 * rounds)
    assert found[1, 10**4] > 1.0 > 2 * found[1, 10**6] * 0.95
    assert found[2, 10**4] <= 0.25 and found[2, 10**6] <= 0.05


def test_the_bound_by_hand():
    domain, rounds, G = dw.L2Ball(3, radius=2.0), 100, 3.0
    learner = dw.contrib.Bandit(domain, dw.BOGDIP, horizon=rounds, lipschitz=G, tuning="certified")
    for _ in range(rounds):
        learner.update(LinearLoss([G, 0.0, 0.0]))
    F, D, d, kappa = G * 4.0, 4.0, 3, 1.0
    delta = min(1.0, np.sqrt(d * F * D / ((2 + kappa) * G)) * rounds**-0.25)
    noise, slope, block, h = d / delta, G / F, 10, rounds**-0.75
    eta = D / (slope + noise * rounds**-0.25) * h
    tolerance = 3 * D**2 * h ** (2 / 3)
    inner = slope * rounds * np.sqrt(tolerance) + D**2 / 8 / eta
    inner += eta * block * rounds * (slope + noise / np.sqrt(block)) ** 2 / 2
    expected = F * inner + G * delta * (2 + kappa) * rounds + F
    assert learner.bound() == pytest.approx(expected, rel=1e-9)


def test_offsets_of_the_values_do_not_matter():
    domain, rounds = dw.L2Ball(3), 200
    for points in (1, 2):
        plain, raised = (dw.contrib.Bandit(domain, points=points, horizon=rounds) for _ in range(2))
        for center in switching(domain, rounds):
            value = np.linalg.norm(np.atleast_2d(plain.query()) - center, axis=1)
            plain.update(value)
            raised.update(value + 1000.0)
        np.testing.assert_allclose(plain.decision, raised.decision, atol=1e-6)


def test_what_bandit_refuses():
    ball = dw.L2Ball(3)
    with pytest.raises(ValueError, match="inner_radius"):
        dw.contrib.Bandit(dw.SpanningTreePolytope(4))
    with pytest.raises(ValueError, match="arrays"):
        dw.contrib.Bandit(dw.TraceNormBall((3, 4), representation="factored"))
    with pytest.raises(ValueError, match="own set"):
        dw.contrib.Bandit(ball, dw.POLA(dw.L2Ball(3)))
    with pytest.raises(ValueError, match="step_scale"):
        dw.contrib.Bandit(ball, dw.POLA(ball), step_scale=1.0)
    learner = dw.contrib.Bandit(ball, points=2)
    for wrong in (1.0, [1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]], [1.0, np.nan]):
        with pytest.raises(ValueError, match="value"):
            learner.update(wrong)
    for wrong in ("1.0", None, object()):
        with pytest.raises(TypeError, match="update takes"):
            learner.update(wrong)
    assert learner.t == 0


def test_bounds_need_constants_that_hold():
    ball = dw.L2Ball(3)
    with pytest.raises(NotImplementedError):
        dw.contrib.Bandit(ball, horizon=10).bound()
    with pytest.raises(NotImplementedError):
        dw.contrib.Bandit(ball, lipschitz=1.0).bound()
    learner = dw.contrib.Bandit(ball, horizon=10, lipschitz=1.0)
    learner.update(0.0)
    assert learner.bound() > 0
    learner.update(2.1)  # more than 1.0 times the diameter
    with pytest.raises(NotImplementedError, match="larger lipschitz"):
        learner.bound()
    wider = dw.contrib.Bandit(ball, horizon=10, lipschitz=1.5)
    wider.update(0.0)
    wider.update(2.1)
    assert wider.bound() > 0

"""Learners that discount the past: their published loops, what they promise, and the lemmas behind it."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erfi

import driftwolfe as dw
from driftwolfe.ensemble.weights import NormalPredictors
from driftwolfe.losses import LinearLoss
from learners.families import ROUNDING, meet, pushed_back, random_signs, signs_against

# -- normal predictors -----------------------------------------------------------------------------


def share(z, n, T):
    """The confidence of Kapralov and Panigrahy, by numerical integration."""
    if z <= 0:
        return 0.0
    area = quad(lambda v: math.exp(-v * v), 0.0, z / math.sqrt(8 * n))[0]
    return min(1.0, math.sqrt(n / 8) / T * math.exp(z * z / (16 * n)) * area)


def test_smoothed_descent_is_its_loop():
    """Experts, bits and shares one by one; the range is the largest so far."""
    rng, T, R = np.random.default_rng(1), 500, 0.8
    ball = dw.L2Ball(3, radius=R)
    learner = dw.contrib.SmoothedOGD(ball, horizon=T, lipschitz=1.0)
    lengths = [500.0, 250.0, 125.0]
    X, z, scale = np.zeros((3, 3)), np.zeros(3), 0.0
    for t in range(400):
        g = np.array([math.cos(0.1 * t), math.sin(0.1 * t), 0.1 * rng.uniform(-1, 1)])
        played, shares = X[0], [1.0] + [share(z[i], lengths[i], T) for i in (1, 2)]
        for i in (1, 2):
            played = (1 - shares[i]) * played + shares[i] * X[i]
        np.testing.assert_allclose(learner.decision, played, atol=1e-9)
        learner.update(LinearLoss(g))
        losses, mixed = X @ g, (X @ g)[0]
        for i in (1, 2):
            gain = mixed - losses[i]
            b = np.clip(gain / scale, -1, 1) if scale > 0 else 0.0
            settled = (z[i] < 0 and b < 0) or (shares[i] == 1.0 and b > 0)
            z[i] = (1 - 1 / lengths[i]) * z[i] + (0.0 if settled else b)
            mixed -= shares[i] * gain
        X = np.array([x - 2 * R * math.sqrt(2 / n) * g for x, n in zip(X, lengths, strict=True)])
        X *= np.minimum(1.0, R / np.maximum(R, np.linalg.norm(X, axis=1)))[:, None]
        grown = max(scale, np.ptp(losses))
        z, scale = z * (scale / grown if grown else 1.0), grown
    assert learner.expert_weights[1:].max() > 0.1  # they do take part


@pytest.mark.parametrize("make", [random_signs, pushed_back, signs_against])
def test_discounted_regret_of_smoothed_descent_is_below_the_published_bound(make):
    """Theorem 3 of Yang, Yang and Zhang, for every discount between those of its steps."""
    T = 1000
    here = make(dw.L2Ball(2), T)
    learner = dw.contrib.SmoothedOGD(here.domain, T, 1.0, tuning="certified")
    played, N = meet(learner, here), len(learner.expert_names)
    slopes = np.array([loss.g for loss in played.losses])
    for n in (T, 700, 300, T / 2 ** (N - 1)):
        keep = 1 - 1 / n
        weights = keep ** np.arange(T - 1, -1, -1)
        regret = weights @ played.suffered + np.linalg.norm(weights @ slopes)
        bound = 4.0 * math.sqrt(n) * (4 * math.sqrt(math.log(T)) + math.sqrt(2)) + 2 * N * n / T + 4
        assert regret <= bound


def test_smoothed_descent_follows_a_change_on_its_shortest_scale():
    """A few of its own lengths are enough, whatever the others have gained."""
    chain = NormalPredictors(0.0, 4, 2000)
    chain.update(np.array([1.0, 1.0, 1.0, 0.0]))  # shows the range
    for _ in range(3 * int(chain.limits[-1])):
        assert chain.weights.sum() == pytest.approx(1.0, abs=1e-12)
        chain.update(np.array([1.0, 1.0, 1.0, 0.0]))
    assert chain.weights[-1] > 0.95


# -- discounted magnitudes -------------------------------------------------------------------------


def potential(V, S, h):
    W = V + 2 * h * S + 16 * h * h
    q = S / (2 * np.sqrt(W))
    return np.sqrt(W) * (math.sqrt(math.pi) * q * erfi(q) - np.exp(q * q))


def test_the_potential_of_magnitudes_falls_below_its_tangent():
    """What docs/theory/benign.md takes from the ALT paper; h = 1 is no loss of generality."""
    V = np.concatenate(([0.0], np.logspace(-3, 6, 60)))[:, None, None]
    S = np.concatenate((np.linspace(-1, 20, 200), np.logspace(1.4, 4, 60)))[None, :, None]
    k, small = np.linspace(-1, 1, 41), S * S / (4 * (V + 2 * S + 16)) < 30
    V, S = V + 0 * S, S + 0 * V
    V, S = V[small][:, None], S[small][:, None]
    W = V + 2 * S + 16
    q = S / (2 * np.sqrt(W))
    slope = 0.5 * math.sqrt(math.pi) * erfi(q) - np.exp(q * q) / np.sqrt(W)
    now = potential(V, S, 1.0)
    room = 1e-12 * (abs(now) + abs(slope))
    assert (potential(V + k * k, S + k, 1.0) <= now + k * slope + room).all()
    for h in (1.001, 1.5, 4.0, 100.0):
        assert (potential(V, S, h) <= now + 1e-12 * abs(now)).all()
    step = 1e-5
    change = (potential(V, S + step, 1.0) - potential(V, S - step, 1.0)) / (2 * step)
    np.testing.assert_allclose(change, slope, rtol=1e-4, atol=1e-4)


def test_gradients_that_push_out_of_the_set_cost_the_bound_nothing():
    """At the middle of a face what replaces them is 0: the sums stay."""
    learner = dw.contrib.DiscountedAdaptive(dw.L1Ball(3), discount=1.0)
    found = []
    for _ in range(100):
        learner.update(LinearLoss(np.ones(3)))
        found.append(learner.bound())
    np.testing.assert_allclose(learner.decision, np.full(3, -1.0 / 3.0), atol=1e-9)
    assert found[-1] == pytest.approx(found[49])


def test_discounted_magnitudes_are_their_loop():
    """On an interval, with sums of weighed slopes written out."""
    rng, keep, R = np.random.default_rng(0), 0.9, 2.0
    learner = dw.contrib.DiscountedAdaptive(dw.L2Ball(1, R), discount=keep)
    cuts, squares, h, y, z = [], [], 0.0, 0.0, 0.0
    for t in range(80):
        inside = min(max(y, 0.0), R)
        assert learner.decision[0] == pytest.approx(inside * z, abs=1e-9)
        g = rng.normal() + (2.0 if t < 40 else -2.0)
        learner.update(LinearLoss([g]))
        slope = 0.0 if g * z * (y - inside) < 0 else g * z
        cuts.append(float(np.clip(slope, -keep * h, keep * h)))
        squares.append(g * g)
        h = max(keep * h, abs(slope))
        ages = keep ** np.arange(t, -1, -1)
        S, V, N = -ages @ cuts, ages**2 @ np.square(cuts), ages**2 @ squares
        z = float(np.clip(z - math.sqrt(2 / N) * g, -1, 1))
        W = V + 2 * h * S + 16 * h * h
        q = S / (2 * math.sqrt(W)) if W > 0 else 0.0
        if W > 0:
            area = quad(lambda v: math.exp(v * v), 0.0, q)[0]
            y = R * (area - h / math.sqrt(W) * math.exp(q * q))


@pytest.mark.parametrize("keep", [0.9, 0.99, 1.0])
@pytest.mark.parametrize("make", [random_signs, pushed_back, signs_against])
def test_weighed_regret_of_discounted_magnitudes_is_below_its_bound_in_every_round(make, keep):
    here = make(dw.L2Ball(2), 300)
    learner = dw.contrib.DiscountedAdaptive(here.domain, discount=keep)
    lost, slopes, squares = 0.0, np.zeros(2), 0.0
    for t in range(here.rounds):
        loss = here.losses(t, learner.decision) if callable(here.losses) else here.losses[t]
        lost = keep * lost + learner.update(loss)
        slopes, squares = keep * slopes + loss.g, keep**2 * squares + loss.g @ loss.g
        assert lost + np.linalg.norm(slopes) <= learner._last * (1 + ROUNDING)
    assert learner._last <= 9.0 * math.sqrt(squares)  # of the order of the root, times R


@pytest.mark.parametrize("late", [1e-9, 1.0, 1e9])
def test_zeros_and_jumps_of_the_gradient_stay_in_the_bounds(late):
    contrib = dw.contrib
    for make in (contrib.DiscountedAdaptive, contrib.SmoothedOGD, contrib.AnytimeOFW):
        learner, lost, total = make(dw.L2Ball(2), 600), 0.0, np.zeros(2)
        for t in range(600):
            x = learner.decision
            g = np.array([1.0, 0.0]) if not x.any() else x / np.linalg.norm(x)
            g = g * (late if 300 <= t < 303 else t >= 5)
            lost += learner.update(LinearLoss(g))
            total += g
            assert lost + np.linalg.norm(total) <= learner.bound() * (1 + ROUNDING), make

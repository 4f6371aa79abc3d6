"""AdaNormalHedge: the potential lemma, extreme states, sleeping experts, its bound."""

from __future__ import annotations

import math

import numpy as np
import pytest

from driftwolfe.ensemble import AdaNormalHedge
from ensemble.adversaries import ADVERSARIES

FRESH = (math.exp(1 / 3) - 1) / 2  # w(0, 0)


def potential(R, C):
    return np.exp(np.maximum(R, 0.0) ** 2 / (3.0 * np.maximum(C, 1e-300)))


def naive_weight(R, C):
    return 0.5 * (potential(R + 1, C + 1) - potential(R - 1, C + 1))


def meta_in_state(R, C):
    meta = AdaNormalHedge(loss_scale=1.0)
    meta.add(len(R))
    meta.regrets, meta.movements = np.array(R, dtype=float), np.array(C, dtype=float)
    return meta


def weights_in_units(R, C):
    """The weights before they are normalised, read off beside a fresh expert."""
    weights = meta_in_state(np.append(R, 0.0), np.append(C, 0.0)).weights
    return weights[:-1] / weights[-1] * FRESH


def random_states(size, largest, seed):
    rng = np.random.default_rng(seed)
    C = np.where(rng.random(size) < 0.1, 0.0, largest ** rng.uniform(-0.5, 1.0, size))
    return C * rng.uniform(-1, 1, size), C, rng


def test_weights_agree_with_the_formula():
    R, C, _ = random_states(10_000, 50.0, 0)
    np.testing.assert_allclose(weights_in_units(R, C), naive_weight(R, C), rtol=1e-9, atol=1e-12)


def test_the_potential_lemma():
    R, C, rng = random_states(200_000, 300.0, 1)
    R[:1000] = C[:1000]  # the corner in which the lemma is tightest
    r = rng.uniform(-1, 1, R.size)
    r[::3] = np.sign(r[::3])
    left = potential(R + r, C + np.abs(r))
    right = potential(R, C) + weights_in_units(R, C) * r + 1.5 * np.abs(r) / (C + 1)
    assert (left <= right * (1 + 1e-9)).all()


def test_extreme_states_give_finite_weights():
    R, C, rng = random_states(20_000, 1e8, 2)
    corners = np.array([0.0, 1.0, -1.0, 1 - 1e-16, -1 + 1e-16, 1e8, -1e8])
    R, C = np.append(R, corners), np.append(C, np.abs(corners))
    for _ in range(200):
        chosen = rng.integers(0, R.size, rng.integers(1, 20))
        weights = meta_in_state(R[chosen], C[chosen]).weights
        assert np.isfinite(weights).all()
        assert (weights >= 0).all()
        assert weights.sum() == pytest.approx(1.0)
    assert np.isfinite(meta_in_state(R, C).weights).all()


def test_large_states_keep_their_digits():
    # log w(R, C) = (R+1)^2/(3(C+1)) + log(1 - exp(-4R/(3(C+1)))) - log 2 for R >= 1.
    R, C = np.array([1e8, 1e8 - 1.0]), np.array([1e8, 1e8])
    weights = meta_in_state(R, C).weights
    expected = math.exp((1e8 + 1) ** 2 / (3 * (1e8 + 1)) - (1e8) ** 2 / (3 * (1e8 + 1)))
    assert weights[0] / weights[1] == pytest.approx(expected, rel=1e-6)


def test_where_all_are_beaten_the_weights_are_equal():
    assert meta_in_state([-1.0, -5.0, -2.0], [1.0, 6.0, 2.0]).weights.tolist() == [1 / 3] * 3
    assert meta_in_state([-1.0, 0.0], [1.0, 0.0]).weights.tolist() == [0.0, 1.0]
    assert AdaNormalHedge().weights.size == 0


def test_a_learned_scale_ends_in_the_state_of_the_final_scale():
    rng = np.random.default_rng(3)
    learned, learner = AdaNormalHedge(), 4.0 * rng.random(40)
    experts = rng.normal(size=(40, 3)) * np.linspace(0.1, 2.0, 40)[:, None]
    learned.add(3)
    for own, others in zip(learner, experts, strict=True):
        learned.update(own, others)
    known = AdaNormalHedge(loss_scale=learned.scale)
    known.add(3)
    for own, others in zip(learner, experts, strict=True):
        known.update(own, others)
    assert learned.scale == np.abs(learner[:, None] - experts).max()
    np.testing.assert_allclose(learned.regrets, known.regrets, rtol=1e-12)
    np.testing.assert_allclose(learned.movements, known.movements, rtol=1e-12)
    np.testing.assert_allclose(learned.weights, known.weights, rtol=1e-9)


@pytest.mark.parametrize("adversary", ADVERSARIES)
def test_regret_of_experts_that_never_sleep(adversary):
    rng, meta, regrets = np.random.default_rng(5), AdaNormalHedge(loss_scale=1.0), np.zeros(6)
    meta.add(6)
    for t in range(1, 1001):
        weights = meta.weights
        losses = adversary(t, weights, rng)
        regrets += weights @ losses - losses
        meta.update(weights @ losses, losses)
    np.testing.assert_allclose(meta.regrets, regrets, atol=1e-9)
    for expert, movement in enumerate(meta.movements):
        assert regrets[expert] <= meta.regret_bound(movement, 1000, 1.0, created=6)


def test_the_bound_is_the_stated_formula():
    length, end, B = 64, 127, 3.0
    number = sum(end // 2**k for k in range(7))
    c = math.log(number) + math.log((5 + 3 * math.log(1 + end)) / 2)
    bound = AdaNormalHedge().regret_bound(length, end, B)
    assert bound == pytest.approx(B * math.sqrt(3 * length * c))

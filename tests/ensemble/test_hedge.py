"""Hedge: its weights against a naive computation, its bound, its symmetries."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftwolfe.ensemble import Hedge, ader_prior
from ensemble.adversaries import ADVERSARIES

seeds = st.integers(0, 2**32 - 1)


def naive_weights(losses, prior, horizon, scale):
    """Multiply and renormalise, round by round: right for a fixed rate and few rounds."""
    rate = math.sqrt(8.0 / horizon) / scale
    weights = np.array(prior)
    for row in losses:
        weights = weights * np.exp(-rate * row)
        weights = weights / weights.sum()
    return weights


def play(hedge, losses):
    for row in losses:
        hedge.update(row)
    return hedge.weights


@given(seed=seeds)
@settings(max_examples=30, deadline=None)
def test_weights_agree_with_the_naive_computation(seed):
    rng = np.random.default_rng(seed)
    size, rounds = int(rng.integers(1, 6)), int(rng.integers(0, 20))
    prior = rng.random(size) + 0.1
    prior /= prior.sum()
    losses = rng.normal(size=(rounds, size))
    hedge = Hedge(size, horizon=30, loss_scale=2.0, prior=prior)
    expected = naive_weights(losses, prior, 30, 2.0)
    np.testing.assert_allclose(play(hedge, losses), expected, rtol=1e-9)


def test_without_a_horizon_the_rate_falls_with_the_round():
    losses = np.random.default_rng(0).random((9, 3))
    hedge = Hedge(3, loss_scale=1.0)
    for t, row in enumerate(losses, start=1):
        expected = ader_prior(3) * np.exp(-math.sqrt(8 / t) * losses[: t - 1].sum(axis=0))
        np.testing.assert_allclose(hedge.weights, expected / expected.sum(), rtol=1e-12)
        hedge.update(row)


def test_the_learned_range_is_the_largest_so_far_and_reweighs_the_past():
    hedge = Hedge(2, horizon=8, prior=[1, 1])
    for losses, scale in (([5, 5], 0.0), ([1, 2], 1.0), ([7, 4], 3.0), ([0, 1], 3.0)):
        hedge.update(losses)
        assert hedge.scale == scale
    # Totals 13 and 12, rate sqrt(8/8)/3.
    np.testing.assert_allclose(
        hedge.weights, [1 / (1 + math.e ** (1 / 3)), 1 / (1 + math.e ** (-1 / 3))]
    )


@pytest.mark.parametrize("size", [1, 2, 9, 40])
def test_the_default_prior(size):
    prior = ader_prior(size)
    assert prior.sum() == pytest.approx(1.0)
    assert np.array_equal(prior, [(1 + 1 / size) / (i * (i + 1)) for i in range(1, size + 1)])
    np.testing.assert_allclose(Hedge(size).weights, prior, rtol=1e-14)


def test_a_large_common_part_does_not_eat_the_digits_of_the_differences():
    hedge = Hedge(2, horizon=1000, loss_scale=1.0, prior=[1, 1])
    for _ in range(1000):
        hedge.update([1e12, 1e12 + 1.0])
    assert hedge.totals.tolist() == [0.0, 1000.0]


@pytest.mark.in_turn("adversary loss_scale", "adversary horizon", "loss_scale horizon")
@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("loss_scale", [1.0, "auto"])
@pytest.mark.parametrize("horizon", [600, 300, None])
def test_regret_stays_below_the_bound(adversary, loss_scale, horizon):
    rng = np.random.default_rng(4)
    hedge = Hedge(8, horizon=horizon, loss_scale=loss_scale)
    regrets = np.zeros(8)
    for t in range(1, 601):
        weights = hedge.weights
        losses = adversary(t, weights, rng)
        regrets += weights @ losses - losses
        hedge.update(losses)
        for expert in (1, 4, 8):
            bound = hedge.regret_bound(expert, t, 1.0)
            assert regrets[expert - 1] <= bound * (1 + 1e-9)


@pytest.mark.parametrize("horizon", [400, None])
@pytest.mark.parametrize("growth", [1.001, 1.5, 3.0])
def test_with_a_learned_range_the_bound_holds_while_the_range_grows(horizon, growth):
    hedge = Hedge(5, horizon=horizon)
    regrets, size = np.zeros(5), 1e-30
    for t in range(1, 401):
        weights = hedge.weights
        losses = size * (weights == weights.max())
        size *= growth
        regrets += weights @ losses - losses
        hedge.update(losses)
        for expert in range(1, 6):
            bound = hedge.regret_bound(expert, t, hedge.scale)
            assert regrets[expert - 1] <= bound * (1 + 1e-9)


def test_the_bound_is_that_of_the_paper_and_not_far_from_the_truth():
    T, B, N = 500, 3.0, 7
    hedge = Hedge(N, horizon=T, loss_scale=B)
    for expert in range(1, N + 1):
        stated = B * math.sqrt(T / 8) * (1 + 2 * math.log(expert + 1))
        exact = B * math.sqrt(T / 8) * (1 + math.log(expert * (expert + 1) / (1 + 1 / N)))
        assert hedge.regret_bound(expert, T, B) == pytest.approx(exact)
        assert hedge.regret_bound(expert, T, B) <= stated
    two = Hedge(2, horizon=T, loss_scale=1.0, prior=[1, 1])
    regrets = np.zeros(2)
    for _ in range(T):
        weights = two.weights
        losses = (weights == weights.max()) * [1.0, 0.99]
        regrets += weights @ losses - losses
        two.update(losses)
    assert regrets.max() >= 0.25 * two.regret_bound(1, T, 1.0)


def test_the_general_bound_is_the_stated_formula():
    T, B, price = 200, 3.0, math.log(4.0)
    known, unknown = {"horizon": 100}, {}
    for horizon, excess, options in ((100, 2.0, known), (T, 2.0, unknown)):
        unit = B * math.sqrt(horizon / 8)
        given, learned = (
            Hedge(4, loss_scale=scale, prior=np.ones(4), **options) for scale in (B, "auto")
        )
        assert given.regret_bound(2, T, B) == pytest.approx(unit * (price + excess))
        tenth = unit * (price + excess / 100)
        assert given.regret_bound(2, T, B / 10) == pytest.approx(tenth)
        expected = unit * (price + 2 * excess) + 2 * B
        assert learned.regret_bound(2, T, B) == pytest.approx(expected)

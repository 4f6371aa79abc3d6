"""SAOL's multiplicative weights: against a naive product, and their bound."""

from __future__ import annotations

import math

import numpy as np
import pytest

from driftwolfe.ensemble import GeometricCover, MultiplicativeWeights
from ensemble.adversaries import ADVERSARIES, play_on_cover


def test_weights_agree_with_the_naive_product():
    rng = np.random.default_rng(0)
    lengths = [1, 2, 4, 8, 64]
    rates = np.array([min(0.5, 1 / math.sqrt(length)) for length in lengths])
    meta = MultiplicativeWeights(loss_scale=2.0)
    meta.add(lengths)
    naive = rates.copy()
    for _ in range(50):
        np.testing.assert_allclose(meta.weights, naive / naive.sum(), rtol=1e-10)
        learner, experts = rng.random(), rng.random(5)
        meta.update(learner, experts)
        naive = naive * (1 + rates * (learner - experts) / 2.0)


def test_experts_come_and_go():
    meta = MultiplicativeWeights(loss_scale=1.0)
    meta.add([4, 16])
    meta.add([100])
    assert meta.rates.tolist() == [0.5, 0.25, 0.1]
    np.testing.assert_allclose(np.exp(meta.log_weights), [0.5, 0.25, 0.1])
    meta.remove([True, False, True])
    assert meta.weights.tolist() == [1.0]
    meta.remove([0])
    meta.update(0.0, [])
    assert meta.weights.size == 0
    with pytest.raises(ValueError, match="remove"):
        meta.remove([0])


def test_new_experts_take_the_places_of_the_first():
    meta = MultiplicativeWeights(loss_scale=1.0)
    meta.add([1, 4, 16])
    fresh = meta.log_weights
    meta.update(0.5, [0.0, 0.2, 1.0])
    moved = meta.log_weights
    meta.restart(2)
    assert meta.log_weights.tolist() == [*fresh[:2], moved[2]]
    assert (moved != fresh).all()


def test_differences_beyond_the_scale_count_as_the_scale():
    meta = MultiplicativeWeights(loss_scale=1.0)
    meta.add([1, 1])
    meta.update(0.0, [100.0, -100.0])
    np.testing.assert_allclose(meta.weights, [0.25, 0.75])


def test_weights_stay_finite_over_long_runs():
    meta = MultiplicativeWeights()
    meta.add([1, 1, 10**6])
    for _ in range(20_000):
        meta.update(1.0, [2.0, 0.0, 1.0])
    assert meta.weights.tolist() == [0.0, 1.0, 0.0]


def test_a_learned_scale_is_the_largest_difference():
    meta = MultiplicativeWeights()
    meta.add([1, 1])
    for learner, experts, scale in (
        (1.0, [1.0, 1.0], 0.0),
        (1.0, [0.5, 4.0], 3.0),
        (0, [1, 1], 3.0),
    ):
        meta.update(learner, experts)
        assert meta.scale == scale


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("cover", [GeometricCover()])
def test_regret_on_every_interval_stays_below_the_bound(adversary, cover):
    B = 0.25
    meta = MultiplicativeWeights(loss_scale=B)
    for interval, t, regret in play_on_cover(meta, cover, adversary, 512, B):
        if t == interval.end:
            bound = meta.regret_bound(interval.length, t, B, created=cover.created(t))
            assert regret <= bound * (1 + 1e-9)


def test_the_bound_is_the_stated_formula():
    number = 2 * 127 - 7
    bound = MultiplicativeWeights().regret_bound(64, 127, 2.0)
    assert bound == pytest.approx(2.0 * 8 * (math.log(number) + 1))


def test_bad_input_is_refused():
    meta = MultiplicativeWeights(loss_scale=1.0)
    with pytest.raises(ValueError, match="length"):
        meta.add([0])
    meta.add([2])
    with pytest.raises(ValueError, match="expert_losses"):
        meta.update(1.0, [np.nan])
    with pytest.raises(ValueError, match="loss_scale"):
        MultiplicativeWeights(loss_scale="none")


def test_no_scale_is_learned_from_rounding():
    meta = MultiplicativeWeights()
    meta.add([1, 1, 1])
    meta.update(0.3, 0.3 + np.array([0.0, 2.0, -1.0]) * 2.0**-53)
    assert meta.scale == 0.0
    assert meta.weights.tolist() == [1 / 3] * 3
    meta.update(0.3, [0.3, 0.4, 0.2])
    assert meta.scale == pytest.approx(0.1)

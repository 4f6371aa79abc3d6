"""SAOL's multiplicative weights: against a naive product, and their bound."""

from __future__ import annotations

import math

import numpy as np
import pytest

from driftwolfe.ensemble import MultiplicativeWeights


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


def test_the_bound_is_the_stated_formula():
    number = 2 * 127 - 7
    bound = MultiplicativeWeights().regret_bound(64, 127, 2.0)
    assert bound == pytest.approx(2.0 * 8 * (math.log(number) + 1))

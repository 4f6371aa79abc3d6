"""AdaHedge with a fixed share: its weights anew, its bound against every sequence, its symmetries."""

from __future__ import annotations

import math

import numpy as np
import pytest

from driftwolfe.ensemble import AdaHedge
from ensemble.adversaries import ADVERSARIES


def by_hand(losses):
    """Weights and inverse rates, round by round, as the formulas have them; all experts from the start."""
    n = losses.shape[1]
    w, a = np.full(n, 1.0 / n), 0.0
    for t, row in enumerate(losses, start=1):
        if a > 0.0:
            mix = -a * math.log(sum(w * np.exp(-(row - row.min()) / a))) + row.min()
            posterior = w * np.exp((mix - row) / a)
        else:
            mix = row.min()
            posterior = w * (row == mix) / sum(w[row == mix])
        share = min(0.5, 1.0 / t)
        a += (w @ row - mix) / math.log(n)
        w = (1 - share) * posterior + share / n
    return w, a


def best_sequences(losses, most):
    """The least loss of sequences of experts with 0, 1, ... `most` changes; infinite: not there yet."""
    least = np.full((most + 1, losses.shape[1]), np.inf)
    least[0] = 0.0
    for row in losses:
        changed = np.full_like(least, np.inf)
        changed[1:] = least[:-1].min(axis=1, keepdims=True)
        least = np.minimum(least, changed) + row
    return np.minimum.accumulate(least.min(axis=1))


def play(meta, losses):
    """The loss of the weighted mean."""
    suffered = 0.0
    for row in losses:
        suffered += float(meta.weights @ row)
        meta.update(row)
    return suffered


@pytest.mark.parametrize("seed", range(5))
def test_weights_agree_with_the_formulas(seed):
    rng = np.random.default_rng(seed)
    losses = rng.normal(size=(40, 2 + seed)) * rng.choice([0.01, 1.0, 30.0], (40, 1))
    meta = AdaHedge(2 + seed)
    play(meta, losses)
    weights, a = by_hand(losses)
    np.testing.assert_allclose(meta.weights, weights, rtol=1e-9)
    assert meta.inverse_rate == pytest.approx(a, rel=1e-9)


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("growth", [1.0, 1.02])
def test_regret_against_every_sequence_is_below_the_bound(adversary, growth):
    """All sequences of up to ten changes, by dynamic programming; also while losses grow 400-fold."""
    rng, meta, suffered, met = np.random.default_rng(0), AdaHedge(6), 0.0, []
    for t in range(1, 301):
        losses = growth**t * adversary(t, meta.weights, rng) - 3.0
        suffered += float(meta.weights @ losses)
        meta.update(losses)
        met.append(losses)
        if t in (1, 2, 3, 10, 75, 300):
            least = best_sequences(np.array(met), 10)
            bounds = np.array([meta.regret_bound(changes) for changes in range(11)])
            assert (suffered - least <= bounds * (1 + 1e-9) + 1e-12).all()


@pytest.mark.parametrize("every", [1, 7, 60])
def test_experts_that_join_are_in_the_bound_from_then_on(every):
    """Five at first, one more after every so many rounds, each good for a while once it is there."""
    rng, meta, suffered = np.random.default_rng(1), AdaHedge(5), 0.0
    T = 240
    table = np.full((T, 5 + T // every), np.inf)
    for t in range(T):
        n = meta.size
        losses = rng.random(n)
        losses[(t // 30 * 7) % n] -= 1.0
        losses[-1] -= 0.7
        table[t, :n] = losses
        suffered += float(meta.weights @ losses)
        meta.update(losses)
        if (t + 1) % every == 0:
            meta.add(1)
            assert meta.weights.sum() == pytest.approx(1.0)
            assert meta.weights.min() >= meta.share / meta.size * (1 - 1e-12)
    least = best_sequences(table, 40)
    found = np.array([meta.regret_bound(changes) for changes in range(41)])
    assert (suffered - least <= found * (1 + 1e-9)).all()
    assert suffered - least[-1] > 0.0


def test_joining_takes_from_the_share_and_from_nobody_else():
    """As if the last share had been for the new ones too; before the first round all are alike."""
    meta = AdaHedge(2)
    meta.add(2)
    np.testing.assert_allclose(meta.weights, np.full(4, 0.25))
    rows = np.random.default_rng(2).random((9, 4))
    play(meta, rows)
    before = meta.weights
    meta.add(0)
    np.testing.assert_allclose(meta.weights, before, rtol=1e-12)
    meta.add(1)
    meta.add(3)
    np.testing.assert_allclose(meta.weights[:4] - before, (1 / 8 - 1 / 4) / 9, rtol=1e-9)
    np.testing.assert_allclose(meta.weights[4:], 1 / 72, rtol=1e-12)


def test_the_inverse_rate_is_below_what_is_said_in_advance():
    for adversary in ADVERSARIES:
        rng, meta = np.random.default_rng(3), AdaHedge(5)
        for t in range(1, 401):
            meta.update(2.0 * adversary(t, meta.weights, rng))
            for changes in (0, 3):
                ahead = meta.regret_bound(changes, rounds=t, scale=2.0)
                assert meta.regret_bound(changes) <= ahead * (1 + 1e-9)


def test_the_bound_is_the_stated_formula_and_not_far_from_the_truth():
    meta = AdaHedge(3)
    assert meta.regret_bound() == 0.0
    for _ in range(50):
        meta.update([0.0, 1.0, 0.5])
    ways = math.log(3) + 3 * math.log(3 * 50) + math.log(100)
    assert meta.regret_bound(2) == pytest.approx(meta.inverse_rate * ways)
    ahead = 4.0 * (math.sqrt(50 / (4 * math.log(3))) + 2 / 3 + 1 / math.log(3))
    stated = ahead * (math.log(3) + math.log(150) + math.log(100))
    assert meta.regret_bound(0, rounds=50, scale=4.0) == pytest.approx(stated)
    two, regrets = AdaHedge(2), np.zeros(2)
    for _ in range(500):
        losses = (two.weights == two.weights.max()) * [1.0, 0.99]
        regrets += two.weights @ losses - losses
        two.update(losses)
    assert regrets.max() >= 0.03 * two.regret_bound()


def test_it_follows_a_favourite_that_changes():
    """Where totals would keep the first one, the share lets the new one in."""
    meta = AdaHedge(4)
    play(meta, np.tile([0.0, 1.0, 1.0, 1.0], (500, 1)))
    play(meta, np.tile([1.0, 1.0, 0.0, 1.0], (60, 1)))
    assert meta.weights[2] > 0.9


def test_equal_losses_and_one_expert_learn_no_rate():
    meta, one = AdaHedge(4), AdaHedge(1)
    play(meta, np.full((5, 4), 1e12))
    play(one, np.arange(5.0)[:, None])
    assert meta.inverse_rate == one.inverse_rate == 0.0 == one.regret_bound(3)
    np.testing.assert_allclose(meta.weights, np.full(4, 0.25))
    assert one.weights.tolist() == [1.0]

"""Sleeping weights that learn the range of losses keep their bounds: hundreds of games against adversaries."""

import functools
import itertools
import math

import numpy as np
import pytest

from driftwolfe.ensemble import AdaNormalHedge, MultiplicativeWeights
from ensemble.adversaries import play_on_cover

KINDS = {"normal": AdaNormalHedge, "multiplicative": MultiplicativeWeights}
#: (weights, regrets, lengths of intervals, randomness) -> losses of the experts.
RULES = {
    "the heaviest": lambda w, regrets, lengths, rng: 1.0 * (w == w.max()),
    "the heavier half": lambda w, regrets, lengths, rng: 1.0 * (w > np.median(w)),
    "the best so far": lambda w, regrets, lengths, rng: 1.0 * (regrets == regrets.max()),
    "all but the longest": lambda w, regrets, lengths, rng: 1.0 * (lengths < lengths.max()),
    "all but the lightest": lambda w, regrets, lengths, rng: 1.0 * (w != w.min()),
    "the heavy, not the longest": lambda w, regrets, lengths, rng: (
        1.0 * ((w >= w.mean()) & (lengths < lengths.max()))
    ),
    "signs": lambda w, regrets, lengths, rng: np.sign(regrets - np.median(regrets)),
    "coins": lambda w, regrets, lengths, rng: 1.0 * rng.integers(0, 2, w.size),
}
#: (round, randomness) -> what the losses of a round are multiplied by.
FACTORS = {
    "one": lambda t, rng: 1.0,
    "doubled in every round": lambda t, rng: 2.0**t,
    "grown by a tenth": lambda t, rng: 1.1**t,
    "the round": lambda t, rng: float(t),
    "its root": lambda t, rng: math.sqrt(t),
    "its cube": lambda t, rng: t**3.0,
    "doubled with the rounds": lambda t, rng: 2.0 ** t.bit_length(),
    "four times as much when intervals end": lambda t, rng: (
        1.0 if t & (t + 1) else 4.0 ** t.bit_length()
    ),
    "heavy tails": lambda t, rng: 1.0 + rng.pareto(1.2),
    "rare outliers": lambda t, rng: 1e3 if rng.random() < 0.05 else 1.0,
    "small, then huge": lambda t, rng: 1e-9 if t < 30 else 1.0,
    "huge, then small": lambda t, rng: 1.0 if t < 5 else 1e-9,
    "zeros, then huge": lambda t, rng: 0.0 if t < 30 else 1e9,
}


@functools.cache
def bound(kind, length, t):
    """In units of the range."""
    return kind().regret_bound(length, t, 1.0)


def tightest(kind, rule, factor, rounds, seed):
    """The largest regret on an interval over its bound, with the largest difference so far."""
    meta, B, size, found = kind(), 0.0, 0.0, 0.0
    game = play_on_cover(meta, lambda t, *met: factor(t, met[-1]) * rule(*met), rounds, seed)
    for t, intervals, regrets, losses, ahead in game:
        size = max(size, float(losses.max()))
        if np.abs(ahead).max() > 1e-12 * size:  # else rounding
            B = max(B, float(np.abs(ahead).max()))
        for (start, end), regret in zip(intervals, regrets, strict=True):
            if B > 0.0 and (kind is AdaNormalHedge or t == end):
                found = max(found, regret / B / bound(kind, t - start + 1, t))
    assert meta.largest_difference == meta.scale == pytest.approx(B, abs=1e-12 * size)
    return found


@pytest.mark.parametrize(("name", "least"), [("normal", 0.25), ("multiplicative", 0.5)])
@pytest.mark.parametrize("rounds", [40, pytest.param(511, marks=pytest.mark.slow)])
def test_regret_on_every_interval_is_below_the_bound_without_a_range(name, least, rounds):
    """104 games each, all reactive but one; the bound is not far from the worst of them."""
    games = itertools.product(RULES.values(), FACTORS.values())
    worst = max(tightest(KINDS[name], *game, rounds, seed) for seed, game in enumerate(games))
    assert least < worst <= 1.0


def test_an_outlier_is_forgotten_as_far_as_its_size_says():
    """After one difference 1,000 times as large, R and C are those of before, over 1,000, and the cut one's."""
    meta = AdaNormalHedge()
    meta.add(2)
    for _ in range(50):
        meta.update(0.5, [0.0, 1.0])
    before = meta.regrets.copy(), meta.movements.copy()
    meta.update(500.0, [0.0, 1000.0])
    np.testing.assert_allclose(meta.regrets, (before[0] + [1.0, -1.0]) / 1000.0)
    np.testing.assert_allclose(meta.movements, (before[1] + 1.0) / 1000.0)

"""What all weights promise: their formulas, a distribution at any scale, no units, refusals, snapshots, bounds."""

from __future__ import annotations

import copy
import dataclasses
import math
from functools import partial

import numpy as np
import pytest

from driftwolfe.ensemble import (
    AdaHedge,
    AdaNormalHedge,
    ExpConcaveHedge,
    GeometricCover,
    Hedge,
    MultiplicativeWeights,
    SleepingMeta,
)
from driftwolfe.ensemble.experts import combine, products, stack, weighted_sum
from driftwolfe.ensemble.weights import OptimisticHedge
from driftwolfe.points import FactoredMatrix, ProductPoint
from ensemble.adversaries import ADVERSARIES, play_on_cover

RISING = np.arange(1.0, 7.0)


def lengths(n):
    return [1, 2, 4, 8, 64, 3][:n]


#: Every class, with its settings: those without units follow the losses in any of them.
UNITLESS = {
    "hedge": lambda size: Hedge(size, horizon=50),
    "adahedge": AdaHedge,
    "adahedge that shares less": lambda size: AdaHedge(size, 2 / 3),
    "optimistic": OptimisticHedge,
    "normal": lambda size: awake(AdaNormalHedge(), size),
    "multiplicative": lambda size: awake(MultiplicativeWeights(), size, lengths(size)),
}
WEIGHTS = UNITLESS | {
    "hedge with a range": lambda size: Hedge(size, 50, 2.0),
    "hedge with a tiny range": lambda size: Hedge(size, 50, loss_scale=1e-300),
    "exp-concave": ExpConcaveHedge,
    "exp-concave with a prior": lambda size: ExpConcaveHedge(size, 0.5, RISING[:size]),
    "normal with a scale": lambda size: awake(AdaNormalHedge(loss_scale=1.0), size),
    "multiplicative with a scale": lambda size: awake(
        MultiplicativeWeights(1.0), size, lengths(size)
    ),
}
SLEEPING = [AdaNormalHedge, MultiplicativeWeights]
every_adversary = pytest.mark.parametrize("adversary", ADVERSARIES.values(), ids=ADVERSARIES)
every = pytest.mark.parametrize("make", WEIGHTS.values(), ids=WEIGHTS)
unitless = pytest.mark.parametrize("make", UNITLESS.values(), ids=UNITLESS)


def awake(meta, size, lengths=None):
    """Sleeping experts that are all awake, for intervals of one length or of those given."""
    meta.add(lengths or [1] * size)
    return meta


def update(meta, losses):
    """Losses of the experts, and where it is asked for, that of the weighted mean."""
    if isinstance(meta, SleepingMeta):
        meta.update(float(meta.weights @ np.asarray(losses, dtype=float)), losses)
    else:
        meta.update(losses)


def play(meta, table):
    for losses in table:
        update(meta, losses)
    return meta


def same(one, other):
    """Whether all numbers of two are the same, with their types."""
    pairs = [(getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(one)]
    return all(type(a) is type(b) and np.array_equal(a, b) for a, b in pairs)


# -- formulas --------------------------------------------------------------------------------------


def exponential(rows, prior, rate):
    """p_i exp(-a L_i); the rate a is a function of the round and of the largest range so far."""
    totals, spread = np.zeros(rows.shape[1]), 0.0
    for t, row in enumerate(rows, start=1):
        yield prior * np.exp(-rate(t, spread) * (totals - totals.min()))
        totals, spread = totals + row, max(spread, np.ptp(row))


def shared(rows, factor=1.0):
    """AdaHedge with a fixed share."""
    n = rows.shape[1]
    w, a = np.full(n, 1.0 / n), 0.0
    for t, row in enumerate(rows, start=1):
        yield w
        mix, posterior = row.min(), w * (row == row.min())
        if a > 0.0:
            mix -= a * math.log(sum(w * np.exp(-(row - row.min()) / a)))
            posterior = w * np.exp((mix - row) / a)
        share = min(0.5, factor / t)
        a += (w @ row - mix) / math.log(n) if n > 1 else 0.0
        w = (1 - share) * posterior / posterior.sum() + share / n


def optimistic(rows):
    """Without hints."""
    totals, a = np.zeros(rows.shape[1]), 0.0

    def smooth(L):
        return L.min() - a * math.log(np.exp(-(L - L.min()) / a).mean()) if a else L.min()

    for row in rows:
        behind = totals - totals.min()
        kept = np.exp(-behind / a) if a else 1.0 * (behind == 0.0)
        yield kept
        gap = kept @ row / kept.sum() - smooth(totals + row) + smooth(totals)
        a, totals = a + (max(0.0, gap) / math.log(row.size) if row.size > 1 else 0.0), totals + row


def multiplied(rows, lengths, B):
    """Products of 1 + rate r_i in units of B, or of the largest so far; their logarithms in that before."""
    rates = np.array([min(0.5, length**-0.5) for length in lengths])
    sums = 0.0 * rates
    for row in rows:
        kept = rates * np.exp(sums / (B or 1.0))
        yield kept
        ahead = kept @ row / kept.sum() - row
        before, B = B, B if B == 1.0 else max(B, np.abs(ahead).max())
        sums = sums + (before or B) * np.log1p(rates * np.clip(ahead / (B or 1.0), -1, 1))


def potential(R, C):
    return np.exp(np.maximum(R, 0.0) ** 2 / (3.0 * np.maximum(C, 1e-300)))


def normal(R, C):
    return 0.5 * (potential(R + 1, C + 1) - potential(R - 1, C + 1))


def normal_hedge(rows, B):
    """w(R, C) of sums in units of B, or of the largest difference so far, cut to that before, where B is 0."""
    R, C = np.zeros((2, rows.shape[1]))
    for row in rows:
        kept = normal(R / (B or 1.0), C / (B or 1.0))
        kept = kept if kept.any() else np.ones(row.size)
        yield kept
        ahead = kept @ row / kept.sum() - row
        before, B = B, B if B == 1.0 else max(B, np.abs(ahead).max())
        ahead = ahead * ((before or B) / (B or 1.0))
        R, C = R + ahead, C + np.abs(ahead)


def by_ader(n):
    return np.array([(1 + 1 / n) / (i * (i + 1)) for i in range(1, n + 1)])


#: The weights of some before each round, up to a factor.
FORMULAS = {
    "hedge": lambda rows, n: exponential(rows, by_ader(n), lambda t, B: B and 0.4 / B),
    "hedge with a range": lambda rows, n: exponential(rows, by_ader(n), lambda t, B: 0.2),
    "exp-concave": lambda rows, n: exponential(rows, 1.0, lambda t, B: 1.0),
    "exp-concave with a prior": lambda rows, n: exponential(rows, RISING[:n], lambda t, B: 0.5),
    "adahedge": lambda rows, n: shared(rows),
    "adahedge that shares less": lambda rows, n: shared(rows, 2 / 3),
    "optimistic": lambda rows, n: optimistic(rows),
    "normal": lambda rows, n: normal_hedge(rows, 0.0),
    "normal with a scale": lambda rows, n: normal_hedge(rows, 1.0),
    "multiplicative": lambda rows, n: multiplied(rows, lengths(n), 0.0),
    "multiplicative with a scale": lambda rows, n: multiplied(rows, lengths(n), 1.0),
}


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_weights_are_those_of_the_formula(name, size):
    rng, meta = np.random.default_rng(size), WEIGHTS[name](size)
    rows = rng.normal(size=(40, size)) * rng.choice([0.01, 1.0, 5.0], (40, 1))
    for row, expected in zip(rows, FORMULAS[name](rows, size), strict=True):
        np.testing.assert_allclose(meta.weights, expected / expected.sum(), rtol=1e-8, atol=1e-12)
        update(meta, row)
    assert getattr(meta, "rounds", 40) == 40


def in_state(R, C):
    meta = awake(AdaNormalHedge(loss_scale=1.0), len(R))
    meta.regrets, meta.movements = np.array(R, dtype=float), np.array(C, dtype=float)
    return meta


def weights_in_units(R, C):
    """AdaNormalHedge's weights before they are normalised, read off beside a fresh expert."""
    weights = in_state(np.append(R, 0.0), np.append(C, 0.0)).weights
    return weights[:-1] / weights[-1] * normal(0.0, 0.0)


def random_states(size, largest, seed):
    rng = np.random.default_rng(seed)
    C = np.where(rng.random(size) < 0.1, 0.0, largest ** rng.uniform(-0.5, 1.0, size))
    return C * rng.uniform(-1, 1, size), C, rng


def test_the_potential_lemma():
    R, C, rng = random_states(200_000, 300.0, 1)
    R[:1000] = C[:1000]  # the corner in which the lemma is tightest
    r = rng.uniform(-1, 1, R.size)
    r[::3] = np.sign(r[::3])
    left = potential(R + r, C + np.abs(r))
    right = potential(R, C) + weights_in_units(R, C) * r + 1.5 * np.abs(r) / (C + 1)
    assert (left <= right * (1 + 1e-9)).all()


def test_weights_of_every_state_are_a_distribution():
    R, C, _ = random_states(10_000, 50.0, 0)
    np.testing.assert_allclose(weights_in_units(R, C), normal(R, C), rtol=1e-9, atol=1e-12)
    R, C, rng = random_states(20_000, 1e8, 2)
    corners = np.array([0.0, 1.0, -1.0, 1 - 1e-16, -1 + 1e-16, 1e8, -1e8])
    R, C = np.append(R, corners), np.append(C, np.abs(corners))
    for chosen in [slice(None), *(rng.integers(0, R.size, (200, 7)))]:
        weights = in_state(R[chosen], C[chosen]).weights
        assert np.isfinite(weights).all() and (weights >= 0).all()
        assert weights.sum() == pytest.approx(1.0)
    # log w(R, C) = (R+1)^2/(3(C+1)) + log(1 - exp(-4R/(3(C+1)))) - log 2 for R >= 1.
    first, second = in_state([1e8, 1e8 - 1.0], [1e8, 1e8]).weights
    expected = math.exp((1e8 + 1) ** 2 / (3 * (1e8 + 1)) - (1e8) ** 2 / (3 * (1e8 + 1)))
    assert first / second == pytest.approx(expected, rel=1e-6)
    # Where all are beaten, the weights are equal.
    assert in_state([-1.0, -5.0, -2.0], [1.0, 6.0, 2.0]).weights.tolist() == [1 / 3] * 3
    assert in_state([-1.0, 0.0], [1.0, 0.0]).weights.tolist() == [0.0, 1.0]


# -- what all have in common -----------------------------------------------------------------------


@every
@pytest.mark.parametrize("size", [0.0, 1e-308, 1e-30, 1.0, 1e8, 1e300])
def test_weights_are_a_distribution(make, size):
    rng, meta = np.random.default_rng(3), make(4)
    for t in range(300):
        update(meta, size * rng.random(4) * (t % 3 > 0))
        weights = meta.weights
        assert np.isfinite(weights).all() and (weights >= 0).all()
        assert weights.sum() == pytest.approx(1.0)
        assert getattr(meta, "totals", np.zeros(1)).min() == 0.0


@every
def test_losses_from_tiny_to_huge_and_back(make):
    meta, fresh = make(3), make(3).weights
    for size in (1e-300, 1e300, 1e-300, 1.0, 1e300):
        update(meta, [0.0, size, -size])
        gained = meta.weights / fresh
        assert np.isfinite(gained).all() and gained[2] >= gained[1]


@unitless
@pytest.mark.parametrize("exponent", [-1000, -20, 20, 900])
def test_scaling_all_losses_changes_nothing(make, exponent):
    small, large = make(5), make(5)
    for row in np.random.default_rng(1).normal(size=(50, 5)):
        update(small, row)
        update(large, np.ldexp(row, exponent))  # exact: only the exponent changes
        np.testing.assert_allclose(small.weights, large.weights, rtol=1e-12)


@every
def test_adding_a_number_to_all_losses_changes_nothing(make):
    rng, plain, shifted = np.random.default_rng(2), make(4), make(4)
    exact = not isinstance(plain, SleepingMeta)  # whose means are rounded
    for row in rng.integers(-8, 9, (50, 4)) / 8.0:
        update(plain, row)
        update(shifted, row + float(rng.integers(-(2**20), 2**20)))  # exact in binary
        np.testing.assert_allclose(plain.weights, shifted.weights, rtol=0 if exact else 1e-6)


@unitless
def test_nothing_is_learned_from_equal_losses_and_from_rounding(make):
    meta, fresh = play(make(3), np.full((5, 3), 1e12)), make(3).weights
    np.testing.assert_allclose(meta.weights, fresh, rtol=1e-14)
    update(meta, 0.3 + np.array([0.0, 2.0, -1.0]) * 2.0**-53)
    np.testing.assert_allclose(meta.weights, fresh, rtol=1e-14)
    update(meta, [0.3, 0.4, 0.2])
    assert meta.weights[2] / fresh[2] > meta.weights[1] / fresh[1]


@every
def test_one_good_expert_gets_the_weight(make):
    meta = play(make(4), np.tile([1.0, 1.0, 0.0, 1.0], (3000, 1)))
    assert meta.weights.argmax() == 2 and meta.weights[2] > 0.9


@every
def test_bad_losses_are_refused_and_nothing_changes(make):
    meta = play(make(3), [[1.0, 2.0, 3.0]])
    before, mean = copy.deepcopy(meta), (1.0,) if isinstance(meta, SleepingMeta) else ()
    for bad in ([1.0, 2.0], [1.0, 2.0, np.nan], [1.0, np.inf, 0.0], [[1.0] * 3], "abc", None):
        with pytest.raises(ValueError, match="losses"):
            meta.update(*mean, bad)
        assert same(meta, before)
    for wrong in (np.nan, [1.0], None) if mean else ():
        with pytest.raises(ValueError, match="learner_loss"):
            meta.update(wrong, [1.0, 2.0, 3.0])
        assert same(meta, before)


@every
def test_a_shallow_copy_is_a_snapshot_and_resumes_bit_for_bit(make):
    first, rest = np.random.default_rng(5).random((2, 20, 4))
    meta = play(make(4), first)
    snapshot, frozen = copy.copy(meta), copy.deepcopy(meta)
    play(meta, rest)
    assert same(snapshot, frozen)
    assert same(play(snapshot, rest), meta)
    assert same(play(frozen, rest), meta)


@pytest.mark.parametrize("kind", SLEEPING)
def test_experts_come_and_go(kind):
    meta = kind(loss_scale=2.0)
    assert meta.weights.size == 0
    columns = meta.COLUMNS[0]
    meta.add([4, 16, 64, 16])
    fresh = getattr(meta, columns)
    meta.update(1.0, [0.0, 0.5, 1.5, 2.0])
    moved = getattr(meta, columns)
    snapshot, before = copy.copy(meta), meta.weights
    meta.restart(slice(2))
    assert getattr(meta, columns).tolist() == [*fresh[:2], *moved[2:]]
    assert (moved != fresh).all() and np.array_equal(snapshot.weights, before)
    meta.add([4])
    assert getattr(meta, columns).tolist() == [*fresh[:2], *moved[2:], fresh[0]]


# -- bounds ----------------------------------------------------------------------------------------


def game(meta, adversary, rounds, growth=1.0):
    """Play; yields the round, the losses so far, and what the weighted mean has lost."""
    rng, met, suffered = np.random.default_rng(0), [], 0.0
    for t in range(1, rounds + 1):
        weights = meta.weights
        losses = growth**t * adversary(t, weights, rng)
        suffered += float(weights @ losses)
        update(meta, losses)
        met.append(losses)
        yield t, np.array(met), suffered


@pytest.mark.in_turn("adversary loss_scale", "adversary horizon", "loss_scale growth horizon")
@every_adversary
@pytest.mark.parametrize(
    ("loss_scale", "growth"), [(1.0, 1.0), *(("auto", each) for each in (1.0, 1.001, 1.5, 3.0))]
)
@pytest.mark.parametrize("horizon", [600, 300])
def test_regret_of_hedge_stays_below_the_bound(adversary, loss_scale, growth, horizon):
    hedge = Hedge(8, horizon=horizon, loss_scale=loss_scale)
    for t, met, suffered in game(hedge, adversary, 600, growth):
        for expert, total in enumerate(met.sum(axis=0), start=1):
            bound = hedge.regret_bound(expert, t, growth**t)
            assert suffered - total <= bound * (1 + 1e-9)


def best_sequences(losses, most):
    """The least loss of sequences of experts with 0, 1, ... `most` changes; infinite: not there yet."""
    least = np.full((most + 1, losses.shape[1]), np.inf)
    least[0] = 0.0
    for row in losses:
        changed = np.full_like(least, np.inf)
        changed[1:] = least[:-1].min(axis=1, keepdims=True)
        least = np.minimum(least, changed) + row
    return np.minimum.accumulate(least.min(axis=1))


@every_adversary
@pytest.mark.parametrize(("growth", "factor"), [(1.0, 1.0), (1.02, 2 / 3), (1.0, 0.1)])
def test_regret_of_adahedge_against_every_sequence_is_below_the_bound(adversary, growth, factor):
    """All sequences of up to ten changes, by dynamic programming; also while losses grow 400-fold."""
    meta = AdaHedge(6, factor)
    for t, met, suffered in game(meta, adversary, 300, growth):
        if t in (1, 2, 3, 10, 75, 300):
            bounds = np.array([meta.regret_bound(changes) for changes in range(11)])
            assert (suffered - best_sequences(met, 10) <= bounds * (1 + 1e-9) + 1e-12).all()


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
    before = play(meta, np.random.default_rng(2).random((9, 4))).weights
    meta.add(0)
    np.testing.assert_allclose(meta.weights, before, rtol=1e-12)
    meta.add(1)
    meta.add(3)
    np.testing.assert_allclose(meta.weights[:4] - before, (1 / 8 - 1 / 4) / 9, rtol=1e-9)
    np.testing.assert_allclose(meta.weights[4:], 1 / 72, rtol=1e-12)


@pytest.mark.parametrize(("alpha", "holds"), [(0.125, True), (20.0, False)])
def test_the_bound_of_exp_concave_losses_holds_up_to_their_rate(alpha, holds):
    """Squares of predictions and outcomes in [-1, 1] are exp-concave with alpha = 1/8."""
    rng, meta = np.random.default_rng(1), ExpConcaveHedge(3, alpha=alpha, prior=[1.0, 2.0, 5.0])
    regrets, kept = np.zeros(3), []
    for t in range(500):
        forecasts = np.array([1.0, -1.0, 0.0]) if t % 2 else rng.uniform(-1, 1, 3)
        mean = meta.weights @ forecasts
        outcome = -1.0 if mean > 0 else 1.0  # as far from the mean as can be
        losses = (forecasts - outcome) ** 2
        regrets += (mean - outcome) ** 2 - losses
        meta.update(losses)
        kept.append(all(regrets[i] <= meta.regret_bound(i) + 1e-9 for i in range(3)))
    assert all(kept) is holds


@every_adversary
def test_regret_of_experts_that_never_sleep(adversary):
    meta = awake(AdaNormalHedge(loss_scale=1.0), 6)
    *_, (_, met, suffered) = game(meta, adversary, 1000)
    regrets = suffered - met.sum(axis=0)
    np.testing.assert_allclose(meta.regrets, regrets, atol=1e-9)
    for regret, movement in zip(regrets, meta.movements, strict=True):
        assert regret <= meta.regret_bound(movement, 1000, 1.0, created=6)


def test_bounds_are_the_stated_formulas():
    T, B, N = 500, 3.0, 7
    unit, hedge = B * math.sqrt(T / 8), Hedge(N, horizon=T, loss_scale=B)
    pairs = [
        (hedge.regret_bound(i, T, B), unit * (1 + math.log(i * (i + 1) / (1 + 1 / N))))
        for i in range(1, N + 1)
    ]
    for i, (found, _) in enumerate(pairs, start=1):
        assert found <= unit * (1 + 2 * math.log(i + 1))  # the paper's
    unit, price = B * math.sqrt(100 / 8), math.log(6 / 1.25)
    given, learned = (Hedge(4, 100, scale) for scale in (B, "auto"))
    pairs += [
        (given.regret_bound(2, 200, B), unit * (price + 2)),
        (given.regret_bound(2, 200, B / 10), unit * (price + 0.02)),
        (learned.regret_bound(2, 200, B), unit * (price + 4) + 2 * B),
    ]
    meta, one = AdaHedge(3), play(AdaHedge(1), np.arange(5.0)[:, None])
    assert meta.regret_bound() == one.inverse_rate == one.regret_bound(3) == 0.0
    play(meta, np.tile([0.0, 1.0, 0.5], (50, 1)))
    ways = math.log(3) + 3 * math.log(150) + math.log(100)
    stretch = copy.deepcopy(meta)
    stretch.forget(), stretch.forget()  # the second one adds nothing
    changed = stretch.regret_bound(2) - stretch.regret_bound()
    number = sum(127 // 2**k for k in range(7))
    c = math.log(number + 1.5 * 127 * 7)
    few = math.log(3) + math.log((5 + 3 * math.log(128)) / 2)
    pairs += [
        (meta.regret_bound(2), meta.inverse_rate * ways),
        (changed, 2 * meta.inverse_rate * math.log(150)),
        (ExpConcaveHedge(2, 0.5, [1.0, 3.0]).regret_bound(0), 2 * math.log(4)),
        (AdaNormalHedge(B).regret_bound(64, 127, B), B * math.sqrt(3 * 64 * c)),
        (AdaNormalHedge(B).regret_bound(64, 127, B, created=3), B * math.sqrt(3 * 64 * few)),
        (AdaNormalHedge().regret_bound(64, 127, B), B * (math.sqrt(3 * 64 * c) + 1)),
        (MultiplicativeWeights(B).regret_bound(64, 127, B), B * 8 * (math.log(number) + 1)),
        (MultiplicativeWeights().regret_bound(64, 127, B), B * (8 * (math.log(number) + 1) + 1)),
    ]
    found, stated = zip(*pairs, strict=True)
    np.testing.assert_allclose(found, stated, rtol=1e-12)


@pytest.mark.parametrize(
    ("meta", "share", "told"),
    [(Hedge(2, 500, 1.0), 0.25, (1, 500, 1.0)), (AdaHedge(2), 0.03, ())],
)
def test_the_bound_is_not_far_from_the_truth(meta, share, told):
    worse = np.array([1.0, 0.99])
    *_, (_, met, suffered) = game(meta, lambda t, w, rng: worse * (w == w.max()), 500)
    assert suffered - met.sum(axis=0).min() >= share * meta.regret_bound(*told)


@every_adversary
@pytest.mark.parametrize("kind", SLEEPING)
def test_regret_on_every_interval_stays_below_the_bound(kind, adversary):
    """AdaNormalHedge's in every round of an interval, the other's at its end."""
    B = 5.0
    meta, losses = kind(loss_scale=B), lambda t, w, regrets, lengths, rng: B * adversary(t, w, rng)
    for t, intervals, regrets, _, _ in play_on_cover(meta, losses, 512):
        for interval, regret in zip(intervals, regrets, strict=True):
            if kind is AdaNormalHedge or t == interval[1]:
                elapsed, created = t - interval[0] + 1, GeometricCover().created(t)
                assert regret <= meta.regret_bound(elapsed, t, B, created=created) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        *(
            (lambda kind=kind: kind(0), "size")
            for kind in (partial(Hedge, horizon=5), AdaHedge, ExpConcaveHedge, OptimisticHedge)
        ),
        (lambda: OptimisticHedge(2, start=-1.0), "start"),
        *(
            (lambda kind=kind, bad=bad: kind(loss_scale=bad), "loss_scale")
            for kind in (*SLEEPING, partial(Hedge, 3, 5))
            for bad in (0.0, -1.0, math.inf, math.nan, "large")
        ),
        (lambda: Hedge(3, horizon=0), "horizon"),
        *(
            (lambda bad=bad: ExpConcaveHedge(3, prior=bad), "prior")
            for bad in ([1.0, 0.0, 1.0], [1.0])
        ),
        (lambda: ExpConcaveHedge(3, alpha=0.0), "alpha"),
        *((lambda i=i: Hedge(3, 5).regret_bound(i, 10, 1.0), "expert") for i in (0, 4)),
        (lambda: AdaHedge(2).add(-1), "number"),
        (lambda: AdaHedge(2, factor=1.1), "factor"),
        (lambda: AdaHedge(2).regret_bound(-1), "changes"),
        (lambda: MultiplicativeWeights().add([0]), "length"),
    ],
)
def test_bad_numbers_are_refused(call, name):
    with pytest.raises(ValueError, match=name):
        call()


# -- combining experts -----------------------------------------------------------------------------


def dense(point):
    parts = getattr(point, "parts", [point])
    return np.concatenate(
        [np.ravel(getattr(part, "toarray", lambda p=part: p)()) for part in parts]
    )


@pytest.mark.parametrize("kind", ["factored", "product", "array"])
def test_every_expert_counts_with_its_weight_however_small(kind):
    rng, weights = np.random.default_rng(0), np.array([0.9, 0.1 - 2e-6, 0.0, 1e-6, 1e-6])

    def point():
        left, right = 1e5 * rng.standard_normal((4, 2)), rng.standard_normal((3, 2))
        if kind == "factored":
            return FactoredMatrix(left, np.array([1.0, -2.0]), right)
        return ProductPoint([left, right]) if kind == "product" else left

    slope, *held = (point() for _ in range(6))
    scores = stack(held)
    assert isinstance(scores, np.ndarray) == (kind == "array")
    plain = sum(w * dense(each) for w, each in zip(weights.tolist(), held, strict=True))
    for found in (weighted_sum(weights, held), combine(weights, scores)):
        np.testing.assert_allclose(dense(found), plain, rtol=1e-12, atol=1e-8)
    plain = [float(dense(slope) @ dense(each)) for each in held]
    np.testing.assert_allclose(products(slope, scores), plain, rtol=1e-10)

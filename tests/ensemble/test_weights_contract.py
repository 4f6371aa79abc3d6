"""What all weights promise: a distribution at any scale, no units, refusals without a trace, snapshots, bounds."""

from __future__ import annotations

import copy
import dataclasses
import math

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
from driftwolfe.ensemble.weights import OptimisticHedge
from ensemble.adversaries import ADVERSARIES, play_on_cover

#: Every class, with its settings: those without units follow the losses in any of them.
UNITLESS = {
    "hedge": Hedge,
    "hedge for a horizon": lambda size: Hedge(size, horizon=50),
    "adahedge": AdaHedge,
    "optimistic": OptimisticHedge,
    "normal": lambda size: awake(AdaNormalHedge(), size),
    "multiplicative": lambda size: awake(MultiplicativeWeights(), size),
}
WEIGHTS = UNITLESS | {
    "hedge with a range": lambda size: Hedge(size, horizon=50, loss_scale=3.0),
    "hedge with a tiny range": lambda size: Hedge(size, loss_scale=1e-300),
    "exp-concave": ExpConcaveHedge,
    "normal with a scale": lambda size: awake(AdaNormalHedge(loss_scale=1.0), size),
    "multiplicative with a scale": lambda size: awake(MultiplicativeWeights(1.0), size),
}
SLEEPING = [AdaNormalHedge, MultiplicativeWeights]
every = pytest.mark.parametrize("make", WEIGHTS.values(), ids=WEIGHTS)
unitless = pytest.mark.parametrize("make", UNITLESS.values(), ids=UNITLESS)


def awake(meta, size):
    """Sleeping experts that are all awake, for intervals of one length."""
    meta.add([1] * size)
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


@every
@pytest.mark.parametrize("size", [0.0, 1e-308, 1e-30, 1.0, 1e8, 1e300])
def test_weights_are_a_distribution(make, size):
    rng, meta = np.random.default_rng(3), make(4)
    for t in range(300):
        update(meta, size * rng.random(4) * (t % 3 > 0))
        weights = meta.weights
        assert np.isfinite(weights).all() and (weights >= 0).all()
        assert weights.sum() == pytest.approx(1.0)


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
    meta = play(make(4), np.tile([1.0, 1.0, 0.0, 1.0], (200, 1)))
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
def test_a_learned_scale_is_the_largest_difference(kind):
    meta = awake(kind(), 2)
    for learner, experts, scale in (
        (1.0, [1.0, 1.0], 0.0),
        (1.0, [0.5, 4.0], 3.0),
        (0, [1, 1], 3.0),
    ):
        meta.update(learner, experts)
        assert meta.scale == scale


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
    meta.restart(2)
    assert getattr(meta, columns).tolist() == [*fresh[:2], *moved[2:]]
    assert (moved != fresh).all() and np.array_equal(snapshot.weights, before)
    meta.add([4])
    meta.remove([1, 3])
    assert getattr(meta, columns).tolist() == [fresh[0], moved[2], fresh[0]]
    meta.remove(np.array([False, True, False]))
    for wrong in ([2], [True], [0.5], "a"):
        with pytest.raises(ValueError, match="remove takes positions below 2"):
            meta.remove(wrong)
    meta.remove([])
    assert meta.weights.tolist() == [0.5, 0.5]
    meta.remove([0, 1])
    meta.update(1.0, [])
    assert meta.weights.size == 0


@pytest.mark.parametrize("adversary", ADVERSARIES)
@pytest.mark.parametrize("kind", SLEEPING)
def test_regret_on_every_interval_stays_below_the_bound(kind, adversary):
    """AdaNormalHedge's in every round of an interval, the other's at its end."""
    B, cover = 5.0, GeometricCover()
    meta = kind(loss_scale=B)
    for interval, t, regret in play_on_cover(meta, cover, adversary, 512, B):
        if kind is AdaNormalHedge or t == interval.end:
            elapsed = t - interval.start + 1
            bound = meta.regret_bound(elapsed, t, B, created=cover.created(t))
            assert regret <= bound * (1 + 1e-9)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        *((lambda kind=kind: kind(0), "size") for kind in (Hedge, AdaHedge, ExpConcaveHedge)),
        *(
            (lambda kind=kind, bad=bad: kind(loss_scale=bad), "loss_scale")
            for kind in (*SLEEPING, lambda **given: Hedge(3, **given))
            for bad in (0.0, -1.0, math.inf, math.nan, "large")
        ),
        (lambda: Hedge(3, horizon=0), "horizon"),
        *(
            (lambda kind=kind, bad=bad: kind(3, prior=bad), "prior")
            for kind in (Hedge, ExpConcaveHedge)
            for bad in ([1.0, 0.0, 1.0], [1.0, 1.0])
        ),
        (lambda: ExpConcaveHedge(3, alpha=0.0), "alpha"),
        *((lambda i=i: Hedge(3).regret_bound(i, 10, 1.0), "expert") for i in (0, 4)),
        (lambda: AdaHedge(2).add(-1), "number"),
        (lambda: AdaHedge(2).regret_bound(-1), "changes"),
        (lambda: AdaHedge(2).regret_bound(0, rounds=0, scale=1.0), "rounds"),
        (lambda: AdaHedge(2).regret_bound(0, rounds=1, scale=-1.0), "scale"),
        (lambda: MultiplicativeWeights().add([0]), "length"),
    ],
)
def test_bad_numbers_are_refused(call, name):
    with pytest.raises(ValueError, match=name):
        call()

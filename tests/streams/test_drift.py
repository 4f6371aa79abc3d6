"""Streams made to change; slices of streams, their drifts, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import driftwolfe as dw
from driftwolfe.losses import AbsoluteEntries, HingeLoss, MulticlassLogistic, SquaredEntries
from driftwolfe.streams import Stream, drift, synthetic
from driftwolfe.streams.drift import change_points, reflected, steepest
from regret.games import KINDS, some_losses


@pytest.fixture
def pair():
    return [synthetic.rotating_quadratic(dw.L2Ball(3), 40, 0.1, seed) for seed in (0, 1)]


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_reflected_loss_is_the_loss_of_the_opposite_point(kind):
    (loss,) = some_losses(kind, 1)
    mirrored = reflected(loss)
    assert type(mirrored) is type(loss)
    x = np.random.default_rng(0).standard_normal(KINDS[kind][1])
    assert mirrored.value(x) == pytest.approx(loss.value(-x))
    np.testing.assert_allclose(mirrored.gradient(x), -loss.gradient(-x))
    assert reflected(mirrored).value(x) == pytest.approx(loss.value(x))


def test_sparse_features_and_strange_losses_reflect_too():
    rows = sp.csr_array(np.array([[1.0, 0.0], [0.0, 2.0]]))
    x = np.array([0.3, -0.4])
    sparse = HingeLoss(rows, [1, -1])
    assert reflected(sparse).value(x) == pytest.approx(sparse.value(-x))
    several = MulticlassLogistic(rows, [0, 1], 2)
    X = np.array([[0.3, -0.4], [1.0, 0.0]])
    assert reflected(several).value(X) == pytest.approx(several.value(-X))

    class Shifted(dw.losses.LinearLoss):
        def value_at(self, scores):
            return scores + 7.0

    assert reflected(Shifted([1.0, 2.0])).value(x) == pytest.approx(7.0 - 0.3 + 0.8)


def test_sign_flip_flips_every_second_block(pair):
    stream = pair[0]
    flipped = drift.sign_flip(stream, every=15)
    x = np.array([0.1, 0.2, 0.3])
    for t in range(40):
        sign = -1.0 if 15 <= t < 30 else 1.0
        assert flipped[t].value(x) == pytest.approx(stream[t].value(sign * x))
        np.testing.assert_allclose(flipped.comparators[t], sign * stream.comparators[t])
    assert flipped.name == "rotating quadratic, signs flipped"
    assert (flipped.lipschitz, flipped.domain) == (stream.lipschitz, stream.domain)
    stream = synthetic.linear_signs(dw.L1Ball(2), 20, changes=0, seed=0)
    assert len({id(loss) for loss in drift.sign_flip(stream, every=5)}) == 2


def test_abrupt_changes_once(pair):
    stream = drift.abrupt(*pair, at=12)
    for t in range(40):
        source = pair[int(t >= 12)]
        assert stream[t] is source[t]
        assert stream.comparators[t] is source.comparators[t]
    assert list(drift.abrupt(*pair, at=0)) == list(pair[1])


def test_gradual_changes_more_and_more(pair):
    long = [synthetic.hard_linear(dw.L2Ball(2), 3000, seed) for seed in (0, 1)]
    stream = drift.gradual(*long, start=500, end=2500, seed=0)
    from_second = np.array([stream[t] is long[1][t] for t in range(3000)])
    assert not from_second[:501].any()
    assert from_second[2500:].all()
    thirds = from_second[500:2500].reshape(4, -1).mean(axis=1)
    np.testing.assert_allclose(thirds, [1 / 8, 3 / 8, 5 / 8, 7 / 8], atol=0.06)
    at_once = drift.gradual(*long, start=0, end=1, seed=0)
    assert list(at_once) == [long[0][0], *list(long[1])[1:]]
    again = drift.gradual(*long, start=500, end=2500, seed=0)
    assert list(stream) == list(again)


def test_recurring_takes_turns(pair):
    third = synthetic.piecewise_constant(dw.L2Ball(3), 40, 2, seed=2)
    stream = drift.recurring([*pair, third], period=4)
    for t in range(40):
        assert stream[t] is [*pair, third][t // 4 % 3][t]
    assert stream.lipschitz == max(pair[0].lipschitz, third.lipschitz)
    unknown = Stream(pair[1].losses, "real", 1.0)
    assert drift.abrupt(pair[0], unknown, 3).comparators is None
    assert drift.sign_flip(unknown, 3).comparators is None


def test_refusals_say_why(pair):
    with pytest.raises(ValueError, match=r"of one length, got \[40, 30\]"):
        drift.abrupt(pair[0], pair[1][:30], 3)
    with pytest.raises(ValueError, match="later than start"):
        drift.gradual(*pair, start=5, end=5)
    with pytest.raises(ValueError, match="at least one stream"):
        drift.recurring([], 3)
    with pytest.raises(ValueError, match="every must be a whole number"):
        drift.sign_flip(pair[0], 0)


def test_drifts_are_noted_and_those_of_the_streams_stay(pair):
    assert drift.sign_flip(pair[0], every=15).drifts == (15, 30)
    assert drift.abrupt(*pair, at=12).drifts == (12,)
    assert drift.abrupt(*pair, at=0).drifts == drift.abrupt(*pair, at=40).drifts == ()
    assert drift.recurring(pair, period=10).drifts == (10, 20, 30)
    assert drift.recurring(pair[:1], period=10).drifts == ()
    assert drift.gradual(*pair, start=10, end=30, seed=0).drifts == ()
    jumps = synthetic.piecewise_constant(dw.L2Ball(3), 40, pieces=4, seed=0)
    assert drift.sign_flip(jumps, every=15).drifts == (10, 15, 20, 30)
    assert drift.abrupt(jumps, pair[0], at=15).drifts == (10, 15)
    assert drift.abrupt(pair[0], jumps, at=15).drifts == (15, 20, 30)
    assert drift.gradual(jumps, pair[0], start=21, end=29, seed=0).drifts == (10, 20)


def test_the_steepest_stream_bounds_the_slopes_of_all(pair):
    flat = synthetic.rotating_quadratic(dw.L2Ball(3), 40, 0.1, seed=2, weight=0.01)
    steep = synthetic.rotating_quadratic(dw.L2Ball(3), 40, 0.1, seed=3, weight=5.0)
    assert flat.lipschitz < pair[0].lipschitz < steep.lipschitz
    for first, second in ((flat, steep), (steep, flat)):
        assert drift.abrupt(first, second, at=5).lipschitz == steep.lipschitz
        assert drift.gradual(first, second, 5, 10, seed=0).lipschitz == steep.lipschitz
        assert drift.recurring([pair[0], first, second], 3).lipschitz == steep.lipschitz


def test_random_flips_negate_every_second_stretch():
    stream = dw.streams.synthetic.piecewise_constant(dw.L2Ball(3), 40, pieces=1, seed=0)
    rounds, point = set(), np.array([0.1, -0.4, 0.2])
    for seed in range(8):
        flipped = dw.streams.drift.random_flips(stream, 3, seed)
        drawn = sorted(set(np.random.default_rng(seed).integers(1, 40, size=3).tolist()))
        if len(drawn) == 3:
            assert flipped.drifts == tuple(drawn)
        rounds |= set(flipped.drifts)
        sign = 1.0
        for t, (new, old) in enumerate(zip(flipped, stream, strict=True)):
            sign = -sign if t in flipped.drifts else sign
            assert new.value(point) == pytest.approx(old.value(sign * point))
            np.testing.assert_allclose(flipped.comparators[t], sign * stream.comparators[t])
    assert len(rounds) > 10
    assert dw.streams.drift.random_flips(stream, 0, seed=0).drifts == ()


def test_slices_keep_what_is_known():
    stream = synthetic.rotating_quadratic(dw.L2Ball(4, 2.0), 24, 0.2, seed=0)
    part = stream[5:9]
    assert isinstance(part, Stream)
    assert part[0] is stream[5]
    assert part.comparators[0] is stream.comparators[5]
    assert list(part) == list(stream.losses[5:9])
    assert repr(part) == "Stream('rotating quadratic', 4 rounds, lipschitz=4)"


def test_slices_keep_the_drifts_within():
    stream = synthetic.piecewise_constant(dw.L2Ball(3), 12, pieces=3, seed=0)
    parts = [stream[:], stream[3:], stream[4:], stream[:8], stream[5:7], stream[:0], stream[-5:]]
    for part in (*parts, stream[::3], stream[::-1]):
        losses = part.losses
        assert part.drifts == tuple(
            t for t in range(1, len(losses)) if losses[t] is not losses[t - 1]
        )
    assert [part.drifts for part in parts[:3]] == [(4, 8), (1, 5), (4,)]
    assert stream[2:][2:].drifts == stream[4:].drifts


@pytest.mark.parametrize("drifts", [(0,), (12,), (-1,), (4, 4), (8, 4)])
def test_strange_drifts_are_refused(drifts):
    stream = synthetic.piecewise_constant(dw.L2Ball(3), 12, pieces=3, seed=0)
    with pytest.raises(ValueError, match="drifts must be rounds from 1 to 11 in rising order"):
        replace(stream, drifts=drifts)


def test_changes_and_bounds_by_hand():
    assert change_points([1, 1, -1, -1, -1, 1]) == (2, 5)
    assert steepest([AbsoluteEntries([0, 1], [0, 0], [1.0, 2.0])]) == math.sqrt(2)
    assert steepest([SquaredEntries([0], [0], [1.0])]) == math.inf
    with pytest.raises(ValueError, match="one point for each of 1 losses"):
        Stream([dw.losses.LinearLoss([1.0])], "x", 1.0, [])

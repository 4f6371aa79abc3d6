"""`Stream`: its slices, its drifts, and what it refuses."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import driftwolfe as dw
from driftwolfe.losses import AbsoluteEntries, SquaredEntries
from driftwolfe.streams import Stream, synthetic
from driftwolfe.streams.drift import change_points, steepest


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
    cases = [
        (slice(None), (4, 8)),
        (slice(3, None), (1, 5)),
        (slice(4, None), (4,)),  # nothing comes before its first round
        (slice(None, 8), (4,)),
        (slice(5, 7), ()),
        (slice(None, 0), ()),
        (slice(-5, None), (1,)),
        (slice(None, None, 3), (2, 3)),  # rounds 0, 3, 6, 9
        (slice(None, None, -1), (4, 8)),
    ]
    for index, drifts in cases:
        assert stream[index].drifts == drifts
        losses = stream[index].losses
        assert drifts == tuple(t for t in range(1, len(losses)) if losses[t] is not losses[t - 1])
    assert stream[2:][2:].drifts == stream[4:].drifts


@pytest.mark.parametrize("drifts", [(0,), (12,), (-1,), (4, 4), (8, 4)])
def test_strange_drifts_are_refused(drifts):
    stream = synthetic.piecewise_constant(dw.L2Ball(3), 12, pieces=3, seed=0)
    with pytest.raises(ValueError, match="drifts must be rounds from 1 to 11 in rising order"):
        replace(stream, drifts=drifts)


def test_comparators_are_one_for_each_loss():
    with pytest.raises(ValueError, match="one point for each of 1 losses"):
        Stream([dw.losses.LinearLoss([1.0])], "x", 1.0, [])


def test_changes_and_bounds_by_hand():
    assert change_points([1, 1, -1, -1, -1, 1]) == (2, 5)
    assert steepest([AbsoluteEntries([0, 1], [0, 0], [1.0, 2.0])]) == math.sqrt(2)
    assert steepest([SquaredEntries([0], [0], [1.0])]) == math.inf

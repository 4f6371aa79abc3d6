"""Covers: their definition, their number, and how they make up any interval."""

from __future__ import annotations

import itertools
import math

import pytest

from driftwolfe.ensemble import GeometricCover, Interval

LAST = 300
EVERY_INTERVAL = [(s, e) for s in range(1, LAST + 1) for e in range(s, LAST + 1)]


#: All [i 2^k, (i+1) 2^k - 1] with i >= 1 that start by 2 LAST.
GEOMETRIC = {
    Interval(i << k, ((i + 1) << k) - 1)
    for k in range((2 * LAST).bit_length())
    for i in range(1, (2 * LAST >> k) + 1)
}


def test_starting_active_and_created_agree_with_the_definition():
    cover, intervals = GeometricCover(), GEOMETRIC
    for t in range(1, 2 * LAST + 1):
        lengths = sorted(i.length for i in intervals if i.start == t)
        assert cover.starting(t) == lengths
        active = sorted((i for i in intervals if i.start <= t <= i.end), key=lambda i: i.length)
        assert cover.active(t) == active
        assert cover.created(t) == sum(i.start <= t for i in intervals)


def test_how_many_are_active():
    for t in [*range(1, 5000), 2**40, 2**40 - 1, 3**30]:
        assert len(GeometricCover().active(t)) == math.floor(math.log2(t)) + 1


def test_how_many_were_created():
    for t in [1, 2, 3, 100, 2**20 + 5]:
        assert GeometricCover().created(t) == sum(t // 2**k for k in range(t.bit_length()))
    assert GeometricCover().created(0) == 0


def test_every_interval_splits_into_two_runs_of_the_geometric_cover():
    cover = GeometricCover()
    for start, end in EVERY_INTERVAL:
        rising, falling = cover.split(start, end)
        pieces = rising + falling
        assert GEOMETRIC.issuperset(pieces)
        assert_consecutive(pieces, start)
        assert pieces[-1].end == end
        assert all(2 * a.length <= b.length for a, b in itertools.pairwise(rising))
        assert all(a.length >= 2 * b.length for a, b in itertools.pairwise(falling))


def assert_consecutive(pieces, start):
    assert pieces[0].start == start
    assert all(a.end + 1 == b.start for a, b in itertools.pairwise(pieces))


@pytest.mark.parametrize("t", [0, -1, 1.5])
def test_rounds_count_from_one(t):
    cover = GeometricCover()
    for method in (cover.starting, cover.active):
        with pytest.raises(ValueError, match="whole number >= 1"):
            method(t)


def test_an_interval_must_not_end_before_it_starts():
    with pytest.raises(ValueError, match="end must be a whole number >= 5"):
        GeometricCover().split(5, 4)

"""Covers: their definition, their number, and how they make up any interval."""

from __future__ import annotations

import itertools
import math

import pytest

from driftwolfe.ensemble import CompactCover, GeometricCover, Interval

LAST = 300
EVERY_INTERVAL = [(s, e) for s in range(1, LAST + 1) for e in range(s, LAST + 1)]


def by_definition(last, keep=lambda i: True):
    """All [i 2^k, (i+1) 2^k - 1] with i >= 1 that start by `last`."""
    return {
        Interval(i << k, ((i + 1) << k) - 1)
        for k in range(last.bit_length())
        for i in range(1, (last >> k) + 1)
        if keep(i)
    }


GEOMETRIC = by_definition(2 * LAST)
COMPACT = by_definition(2 * LAST, keep=lambda i: i % 2 == 1)
both = pytest.mark.parametrize(
    ("cover", "intervals"), [(GeometricCover(), GEOMETRIC), (CompactCover(), COMPACT)]
)


@both
def test_starting_active_and_created_agree_with_the_definition(cover, intervals):
    for t in range(1, 2 * LAST + 1):
        lengths = sorted(i.length for i in intervals if i.start == t)
        assert cover.starting(t) == lengths
        active = sorted((i for i in intervals if i.start <= t <= i.end), key=lambda i: i.length)
        assert cover.active(t) == active
        assert cover.created(t) == sum(i.start <= t for i in intervals)


def test_how_many_are_active():
    for t in [*range(1, 5000), 2**40, 2**40 - 1, 3**30]:
        assert len(GeometricCover().active(t)) == math.floor(math.log2(t)) + 1
        assert len(CompactCover().active(t)) == t.bit_count()
        assert len(CompactCover().starting(t)) == 1


def test_how_many_were_created():
    for t in [1, 2, 3, 100, 2**20 + 5]:
        assert GeometricCover().created(t) == sum(t // 2**k for k in range(t.bit_length()))
    assert GeometricCover().created(0) == CompactCover().created(0) == 0


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


def test_every_interval_is_covered_by_a_chain_of_the_compact_cover():
    cover = CompactCover()
    for start, end in EVERY_INTERVAL:
        chain = cover.chain(start, end)
        assert COMPACT.issuperset(chain)
        assert_consecutive(chain, start)
        assert chain[-1].start <= end <= chain[-1].end
        assert all(2 * a.length <= b.length for a, b in itertools.pairwise(chain))
        assert len(chain) <= math.ceil(math.log2(end - start + 2))


def assert_consecutive(pieces, start):
    assert pieces[0].start == start
    assert all(a.end + 1 == b.start for a, b in itertools.pairwise(pieces))


@pytest.mark.parametrize("cover", [GeometricCover(), CompactCover()])
@pytest.mark.parametrize("t", [0, -1, 1.5])
def test_rounds_count_from_one(cover, t):
    for method in (cover.starting, cover.active):
        with pytest.raises(ValueError, match="whole number >= 1"):
            method(t)


def test_an_interval_must_not_end_before_it_starts():
    with pytest.raises(ValueError, match="end must be a whole number >= 5"):
        GeometricCover().split(5, 4)
    with pytest.raises(ValueError, match="end must be a whole number >= 5"):
        CompactCover().chain(5, 4)

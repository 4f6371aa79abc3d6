"""The even schedule: whose block ends first is served first, and every projection is done in time."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import driftwolfe as dw
from driftwolfe.ensemble.list import EvenDescent, Job
from driftwolfe.ensemble.plan import FOREVER, Plan, ProjectionConfig
from driftwolfe.losses import LinearLoss


class Rota(EvenDescent):
    """Experts whose every projection takes a given number of calls; writes down who is served."""

    def __init__(self, rate, needs):
        super().__init__(dw.Simplex(2), ProjectionConfig("halfspace", budget=rate, even=True), 1.0)
        self.needs, self.round, self.served = needs, 0, []

    def _launch(self, i, x, y, total, scale):
        job = super()._launch(i, x, y, total, scale)
        return Job(x, y, running=job.running and self.needs[i] > 0)

    def _advance(self, i, job):
        self.served.append((self.round, i))
        return Job(job.x, job.y, job.calls + 1, running=job.calls + 1 < self.needs[i])

    def let_pass(self, rounds):
        still = LinearLoss(np.zeros(2))
        for _ in range(rounds):
            self.round += 1
            self.step(still, 1.0, shared=True)


def serve(rate, needs, plans, arrivals, rounds):
    """Who was served in which round; experts arrive in order, after so many rounds each."""
    experts = Rota(rate, needs)
    for number, plan in enumerate(plans):
        experts.add(experts.domain.origin(), [plan])
        last = number + 1 == len(plans)
        experts.let_pass((rounds if last else arrivals[number + 1]) - arrivals[number])
    return experts.served


def windows(arrival, block, rounds, lifetime=FOREVER):
    """First and last rounds of the blocks in which a projection is under way: all but the first.

    Results that would come with the last round of a life, or after, are not worked for.
    """
    ends = range(arrival + block, rounds + 1, block)
    return [(a + 1, b) for a, b in pairwise(ends) if b - arrival < lifetime]


def check(served, rate, needs, plans, arrivals, rounds):
    for t, calls in Counter(t for t, _ in served).items():
        assert calls <= math.floor(rate * t) - math.floor(rate * (t - 1))
    for i, plan in enumerate(plans):
        mine = [t for t, who in served if who == i]
        for first, last in windows(arrivals[i], plan.block, rounds, plan.lifetime):
            assert sum(first <= t <= last for t in mine) == needs[i], (i, first, last)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize(
    ("needs", "blocks", "arrivals"),
    [
        ((1, 4), (2, 8), (0, 0)),  # the longer block first: both short windows go unserved
        ((2, 4), (5, 7), (2, 0)),  # the shorter block first: the call of round 14 comes too late
        ((1, 7), (8, 8), (7, 0)),  # as long, but not at the same time
        ((3, 3), (6, 6), (0, 3)),
    ],
    ids=["short-and-long", "nearly-full", "out-of-step", "full"],
)
def test_only_the_earliest_deadline_first_serves_both(needs, blocks, arrivals, order):
    """Calls for all but one round in 35 at most; in either order of the list."""
    if arrivals[0] != arrivals[1]:
        order = tuple(np.argsort(arrivals))  # who comes first stands first
    needs, blocks, arrivals = ([each[i] for i in order] for each in (needs, blocks, arrivals))
    shares = [need / block * (1 + 1e-12) for need, block in zip(needs, blocks, strict=True)]
    assert sum(shares) <= 1 + 1e-9
    plans = [Plan(0.1, block, 1e-3, share) for block, share in zip(blocks, shares, strict=True)]
    rounds = 80
    check(serve(1.0, needs, plans, arrivals, rounds), 1.0, needs, plans, arrivals, rounds)


@settings(max_examples=40)
@given(
    rate=st.sampled_from([0.4, 1.0, 1.7, 3.0]),
    experts=st.lists(
        st.tuples(st.integers(1, 12), st.integers(1, 9), st.integers(0, 6)), min_size=1, max_size=4
    ),
    lives=st.integers(10, 60),
)
def test_no_projection_within_its_share_comes_too_late(rate, experts, lives):
    """Blocks, weights and times of arrival as they come; every share is used to the full."""
    blocks, weights, waits = zip(*experts, strict=True)
    shares = [rate * weight / sum(weights) for weight in weights]
    needs = [math.floor(share * block) for share, block in zip(shares, blocks, strict=True)]
    arrivals = (np.cumsum(waits) - waits[0]).tolist()
    plans = [
        Plan(0.1, block, 1e-3, share, lives) for block, share in zip(blocks, shares, strict=True)
    ]
    rounds = min(lives, 50)
    if arrivals[-1] < rounds:
        check(serve(rate, needs, plans, arrivals, rounds), rate, needs, plans, arrivals, rounds)


def test_who_wants_more_than_a_share_waits_for_calls_that_nobody_claims():
    """One expert could use every call, and its block always ends first; the other needs its half."""
    plans = [Plan(0.1, 4, 1e-3, 0.5), Plan(0.1, 8, 1e-3, 0.5)]
    served = serve(1.0, [99, 4], plans, [0, 0], 41)
    for first, last in windows(0, 8, 41):
        assert sum(first <= t <= last for t, who in served if who == 1) == 4
    assert {t for t, _ in served} == set(range(5, 42))  # and no call is wasted


def test_nobody_works_for_a_result_that_will_not_be_played():
    """Windows of 4 rounds, 12 rounds to live: the answer due with round 12 is not worked for."""
    served = serve(1.0, [2], [Plan(0.1, 4, 1e-3, 1.0, 12)], [0], 12)
    assert served == [(5, 0), (6, 0)]


@pytest.mark.parametrize("shift", [0.0, 7.0])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_experts_on_a_simplex_by_hand(order, shift):
    """From a vertex, one step and four steps: the one is due in two rounds, the four in eight.

    Towards the centre c of the simplex, k exact line searches lead to the mean of k + 1 vertices, at
    squared distance 1/(k + 1) - 1/n from it. A slope that costs all points alike changes nothing.
    """
    n = 20
    vertex, center = np.eye(n)[0], np.full(n, 1 / n)
    short, long = Plan(0.1, 2, 0.03, 0.5), Plan(0.5, 8, 0.17, 0.5)
    experts = EvenDescent(dw.Simplex(n), ProjectionConfig("halfspace", budget=1.0, even=True), 1.0)
    experts.add(vertex, [(short, long)[i] for i in order])
    one, other = order.index(0), order.index(1)
    for t in range(1, 17):
        slope = (vertex - center if t in (7, 8) else np.zeros(n)) + shift
        experts.step(LinearLoss(slope), 1.0, shared=True)
        if t == 10:  # y = e_1 - 0.2 (e_1 - c); half of that towards any other vertex
            np.testing.assert_allclose(experts.y[one], 0.8 * vertex + 0.2 * center, atol=1e-12)
            np.testing.assert_allclose(np.sort(experts.x[one])[-2:], [0.1, 0.9], atol=1e-12)
    np.testing.assert_allclose(experts.y[other], center, atol=1e-12)
    np.testing.assert_allclose(np.sort(experts.x[other])[-6:], [0.0, *[0.2] * 5], atol=1e-12)
    assert experts.missed == 0

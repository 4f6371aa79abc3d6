"""The common purse: never more than the rate allows, and nobody robbed of a share."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftwolfe.ensemble.lmo_budget import budgeted_grid, budgeted_plan, budgeted_step, cover_share
from driftwolfe.ensemble.purse import Purse, granted


@settings(max_examples=200, deadline=None)
@given(
    rate=st.floats(0.01, 20.0),
    weights=st.lists(st.floats(0.01, 1.0), min_size=1, max_size=6),
    seed=st.integers(0, 10_000),
)
def test_shares_are_safe_and_the_rate_is_kept(rate, weights, seed):
    rng = np.random.default_rng(seed)
    shares = rate * np.array(weights) / sum(weights)
    blocks = rng.integers(1, 30, shares.size)
    clocks, purse = np.zeros(shares.size, dtype=int), Purse(rate)
    for t in range(1, 120):
        ledger = purse.ledger(shares * (clocks % blocks + 1))
        for i in np.flatnonzero((clocks + 1) % blocks == 0).tolist():
            limit = ledger.limit(i)
            assert limit >= math.floor(shares[i] * blocks[i] * (1 - 1e-9))
            ledger.pay(i, int(rng.integers(0, limit + 1)) if rng.random() < 0.7 else limit)
        purse.close(ledger.paid)
        clocks += 1
        assert purse.spent <= rate * t
        claims = float((shares * (clocks % blocks)).sum())
        assert purse.spent <= rate * t - claims + 1e-6
    purse.check_state()


@given(rate=st.floats(0.001, 50.0), rounds=st.integers(1, 500))
def test_what_arrives_adds_up(rate, rounds):
    purse, total = Purse(rate), 0
    for _ in range(rounds):
        arriving = purse.arriving()
        assert 0 <= arriving <= math.ceil(rate)
        total += arriving
        purse.close(arriving)
    assert total == math.floor(rate * rounds)


def test_whole_calls_are_never_rounded_up():
    assert [granted(1.0, 10), granted(0.29, 100), granted(0.25, 7), granted(0.5, 9)] == [
        10,
        28,
        1,
        4,
    ]


@pytest.mark.parametrize("drag", [1.0, 3.0])
@pytest.mark.parametrize("budget", [0.05, 1.0, 7.0])
@pytest.mark.parametrize("v", [0.125, 0.5, 40.0])
def test_steps_and_blocks_are_the_best_ones(budget, v, drag):
    """Against a search over steps and blocks, in units of G D."""
    T = 10_000

    def bound(h, block):
        return np.sqrt(2.6 / (budget * block)) * T + v / h + drag * h * block * T / 2

    h, blocks = np.meshgrid(np.geomspace(1e-6, 1.0, 700), np.geomspace(1.0, 1e5, 700))
    best = bound(h, blocks).min()
    step = budgeted_step(T, v, budget, drag)
    plan = budgeted_plan(step, budget, drag)
    assert 4 * v / step <= best * (1 + 1e-9)
    assert 4 * v / step == pytest.approx(3.021 * (drag * v / budget) ** 0.25 * T**0.75, rel=3e-4)
    assert bound(step, plan.block) <= 4 * v / step + drag * step * T / 2
    assert plan.tolerance == min(1.0, 2.6 / (budget * plan.block))


def test_shares_add_up():
    assert sum(cover_share(1 << k) for k in range(40)) < 1.0
    for T in (1, 2, 10, 1000, 10**6):
        shares = [plan.share for plan in budgeted_grid(T, 0.125, 3.0)]
        assert sum(shares) == pytest.approx(3.0)

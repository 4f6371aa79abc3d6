"""Budgets of LMO calls: never more than the rate allows, and reserved shares stay reserved."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import driftwolfe as dw
from driftwolfe.ensemble.list import descent
from driftwolfe.ensemble.plan import (
    LMOBudget,
    Plan,
    ProjectionConfig,
    budgeted_grid,
    budgeted_step,
    cover_part,
)
from driftwolfe.losses import LinearLoss
from driftwolfe.oracles import InfeasibleProjection


class Accounts:
    """The rule of `docs/theory/budget.md`, section 6, in eighths of a call: whole numbers only.

    Each expert's savings grow by its share in every round. Whose block ends may spend what is left of
    the income so far when the others' savings are set aside; its own are gone then.
    """

    def __init__(self, rate, shares):
        self.rate, self.shares = rate, shares
        self.rounds = self.spent = 0
        self.savings = [0] * len(shares)

    def begin_round(self, leaving=()):
        self.rounds += 1
        self.savings = [
            0 if i in leaving else saved + share
            for i, (saved, share) in enumerate(zip(self.savings, self.shares, strict=True))
        ]

    def limit(self, i):
        others = sum(self.savings) - self.savings[i]
        return max(0, (self.rate * self.rounds - 8 * self.spent - others) // 8)

    def pay(self, i, calls):
        self.spent, self.savings[i] = self.spent + calls, 0


EIGHTHS = st.lists(st.integers(1, 12), min_size=1, max_size=5)


@given(eighths=EIGHTHS, spare=st.integers(0, 12), seed=st.integers(0, 10_000))
def test_shares_are_safe_and_the_rate_is_kept(eighths, spare, seed):
    rng, rate = np.random.default_rng(seed), (sum(eighths) + spare) / 8
    shares, blocks = np.array(eighths) / 8, rng.integers(1, 30, len(eighths))
    budget_left, plain = LMOBudget(rate), Accounts(sum(eighths) + spare, eighths)
    for t in range(1, 80):
        budget_left, savings = budget_left.next_round(), shares * ((t - 1) % blocks + 1)
        plain.begin_round()
        for i in np.flatnonzero(t % blocks == 0).tolist():
            savings[i] = 0.0
            limit = budget_left.limit(reserved=float(savings.sum()))
            assert limit == plain.limit(i)
            assert limit >= eighths[i] * int(blocks[i]) // 8  # its own, whatever others did
            calls = int(rng.integers(0, limit + 1)) if rng.random() < 0.7 else limit
            budget_left.spent += calls
            plain.pay(i, calls)
        assert 8 * plain.spent <= plain.rate * t - sum(plain.savings)
        assert (budget_left.rounds, budget_left.spent) == (t, plain.spent)
    budget_left.check()


@pytest.mark.parametrize("rate", [0.1, 0.3, 1.0 / 3.0, 0.7])
def test_a_share_that_is_the_whole_rate_is_never_short_of_a_call(rate):
    """Sums of such numbers fall short of whole ones by rounding; nothing is lost or won by it."""
    exact, spent, budget_left = Fraction(rate).limit_denominator(10), 0, LMOBudget(rate)
    for t in range(1, 200):
        budget_left = budget_left.next_round()
        if t % 3 == 0:
            limit = budget_left.limit(reserved=0.0)
            assert math.floor(exact * t) - 1 <= spent + limit <= exact * t
            budget_left.spent += limit
            spent += limit
    assert spent >= math.floor(exact * 198) - 1


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("representation", ["dense", "factored"])
def test_experts_get_what_the_accounts_say(representation, seed):
    """A stack of experts with a common budget, each as greedy as it may be, some of them leaving."""
    rng, eighths = np.random.default_rng(seed), [3, 1, 2]
    blocks, most = [1, 7, 4], (None, 2)[seed % 2]
    oracle = ProjectionConfig("halfspace", max_lmo_calls=most, budget=1.0, pooled=True)
    ball = dw.TraceNormBall((3, 2), representation=representation)
    kind, limits = type(descent(ball, oracle, 1.0)), []

    class Spy(kind):
        def project(self, i, y, number, limit, atoms):
            limits.append((i, limit))
            calls, x = limit if i else int(rng.integers(0, limit + 1)), self.point(i)
            paid.append(calls)
            return InfeasibleProjection(x, x, calls, 0.0, 0.0, "halfspace")

    experts, plain, loss = Spy(ball, oracle, 1.0), Accounts(8, eighths), LinearLoss(np.ones((3, 2)))
    experts.add(
        ball.origin(),
        [Plan(0.1, block, 1e-3, share / 8) for block, share in zip(blocks, eighths, strict=True)],
    )
    taken = 0
    for t in range(1, 60):
        leaving = [i for i in range(3) if t % 14 == 0 and i == 1]
        limits, paid = [], []
        experts.lifetimes[leaving] = t  # its last round, or so it looks
        experts.step(loss, slope(experts, loss), shared=True)
        plain.begin_round(leaving)
        due = [i for i in range(3) if t % blocks[i] == 0 and i not in leaving]
        assert [i for i, _ in limits] == due
        for (i, limit), calls in zip(limits, paid, strict=True):
            assert limit == min(plain.limit(i), most or 10**9)
            plain.pay(i, calls)
            taken += calls
    assert 0 < taken <= 59


def slope(experts, loss):
    """One slope for all."""
    return loss.slope_at(loss.scores(experts.point(0)))


@given(rate=st.floats(0.001, 50.0), rounds=st.integers(1, 500))
def test_what_arrives_adds_up(rate, rounds):
    budget_left, total = LMOBudget(rate), 0
    for _ in range(rounds):
        budget_left = budget_left.next_round()
        arriving = budget_left.arriving()
        assert 0 <= arriving <= math.ceil(rate)
        total += arriving
    assert total == math.floor(rate * rounds)


def test_whole_calls_are_never_rounded_up():
    ball = dw.L2Ball(2)
    experts = descent(ball, ProjectionConfig("halfspace", budget=3.0), 1.0)
    shares = {1.0: 10, 0.29: 100, 0.25: 7, 0.5: 9}
    experts.add(ball.origin(), [Plan(0.1, block, 1e-3, share) for share, block in shares.items()])
    assert [experts.limit(i) for i in range(4)] == [10, 28, 1, 4]


def test_shares_add_up():
    assert sum(cover_part(1 << k) for k in range(40)) < 1.0
    for T in (1, 2, 10, 1000, 10**6):
        plans = budgeted_grid(T, 0.125, 3.0)
        assert sum(plan.reserved for plan in plans) == pytest.approx(3.0)
        for i, plan in enumerate(plans, 1):
            own = (1 + 1 / len(plans)) / (i * (i + 1))
            assert plan.reserved == pytest.approx(3.0 * own)
            assert plan.step == pytest.approx(2 ** (i - 1) * budgeted_step(T, 0.125, 3.0 * own))

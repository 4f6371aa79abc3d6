"""Windows of weights that follow the best expert, and of the default POLAR: the theorem of docs/theory/polar.md."""

import math

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe import bounds
from driftwolfe.ensemble import AdaHedge
from driftwolfe.losses import LinearLoss
from ensemble.test_weights_contract import best_sequences

FOES = {
    "the heaviest": lambda w, t, rng: 1.0 * (w == w.max()),
    "the heavier half": lambda w, t, rng: 1.0 * (w >= np.median(w)),
    "favourites": lambda w, t, rng: 1.0 * (np.arange(w.size) != t // 20 % w.size),
    "coins": lambda w, t, rng: 1.0 * rng.integers(0, 2, w.size),
}
FACTORS = {
    "one": lambda t: 1.0,
    "growing": lambda t: 1.05**t,
    "shrinking": lambda t: 0.95**t,
    "an outlier": lambda t: 1e3 if t == 40 else 1.0,
}


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("foe", FOES)
def test_the_tracking_bound_holds_from_every_round(foe, factor, forgets):
    """On 400 windows against the best sequences of up to five changes, with experts that join."""
    rng, meta, T = np.random.default_rng(0), AdaHedge(2, 2 / 3 if forgets else 1.0), 160
    table, paid = np.full((T, 6), np.inf), np.zeros(T)
    for t in range(T):
        if t in (7, 15, 31, 63):
            meta.add(1)
        losses = FACTORS[factor](t) * FOES[foe](meta.weights, t, rng)
        table[t, : meta.size], paid[t] = losses, meta.weights @ losses
        meta.update(losses)
        if forgets and t + 1 in (8, 16, 32, 64, 128):
            meta.forget()
    found = np.array([meta.regret_bound(changes) for changes in range(6)])
    for start in range(0, T, 8):
        for end in range(start + 1, T + 1, 8):
            regrets = paid[start:end].sum() - best_sequences(table[start:end], 5)
            assert (regrets <= found * (1 + 1e-9) + 1e-12).all()


def promised(learner, tau, path=0.0):
    """What the theorem says of a POLAR that has played."""
    parts, domain = learner._bounds, learner.domain
    kinds = [kind for kind in parts.kinds if kind in ("lazy", "origin")]

    def level(k):
        if 1 << k < parts.shortest:
            return math.inf
        return min(parts.epoch(kind, 1 << k) for kind in kinds)

    spread = learner.lipschitz * domain.diameter
    price = learner.lipschitz
    return bounds.over_tracked_windows(
        tau, parts.weights, spread, level, lambda k: price * ((1 << k) - 1), path
    )


@pytest.mark.parametrize("settings", [{}, {"tuning": "certified", "oracle": "corrective"}])
@pytest.mark.parametrize("rule", ["signs", "pieces"])
def test_every_window_of_the_default_polar_is_below_the_theorem(settings, rule):
    domain, T = dw.Box([-1.0], [1.0]), 700
    learner, rows, paid = dw.POLAR(domain, lipschitz=1.0, **settings), np.zeros(T), np.zeros(T)
    for t in range(T):
        x = float(learner.decision[0])
        rows[t] = (1.0 if x >= 0 else -1.0) if rule == "signs" else (-1.0) ** (t // 90)
        paid[t] = rows[t] * x
        learner.update(LinearLoss([rows[t]]))
    sums, costs = np.append(0.0, rows.cumsum()), np.append(0.0, paid.cumsum())
    worst = 0.0
    for tau in (1, 5, 30, 89, 250, 511, 700):
        ends = np.arange(tau, T + 1)
        regret = (costs[ends] - costs[ends - tau] + np.abs(sums[ends] - sums[ends - tau])).max()
        halves = np.abs(sums[ends] - sums[ends - tau // 2])
        rest = np.abs(sums[ends - tau // 2] - sums[ends - tau])
        moving = (costs[ends] - costs[ends - tau] + halves + rest).max()
        assert regret <= promised(learner, tau)
        assert moving <= promised(learner, tau, path=2.0)
        worst = max(worst, regret / promised(learner, tau))
    assert worst > 0.05


def test_the_bound_on_long_windows_is_below_the_trivial_one_and_has_its_rate():
    """With exact projections, G known and a rate in advance: between the roots of n and of T, with logarithms."""
    ways = []
    for T in (2**16, 2**20, 2**24):
        weights = AdaHedge(20)
        weights.rounds = T
        weights.inverse_rate = 2.0 * math.sqrt(T / (4.0 * math.log(20)))

        def level(k):
            return math.inf if k < 3 else 2.0 * math.sqrt(2.0**k)

        found = bounds.over_tracked_windows(T, weights, 2.0, level, float, 0.0)
        ways.append(found / math.sqrt(T) / math.log(T) ** 2)
    assert found < 0.5 * 2.0 * T
    assert ways[0] * 1.1 > ways[1] and ways[1] * 1.1 > ways[2]

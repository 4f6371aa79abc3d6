"""`DriftAlarm`: seldom for nothing, soon after losses grew."""

import copy
from itertools import pairwise, permutations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest

import driftwolfe as dw
from driftwolfe.estimators import alarm as module
from estimators.plain_alarm import PlainAlarm, PlainBets


def ranks(losses, seed=0):
    alarm = PlainAlarm(1e-300, seed=seed)
    for loss in losses:
        alarm.update(float(loss))
    return alarm.ranks


@pytest.mark.parametrize("k", range(len(module.SHAPES)))
def test_bets_are_densities(k):
    def density(p):
        bets = PlainBets()
        bets.bet(p, 0)
        return bets.sums[k]

    assert quad(density, 0.0, 1.0)[0] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.in_turn
@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("most", [300, 1 << 16])
@pytest.mark.parametrize("kind", ["normal", "errors", "jumps", "few values"])
def test_the_compiled_loop_does_what_a_plain_one_does(kind, most, two_sided, monkeypatch):
    monkeypatch.setattr(module, "MOST", most)
    rng = np.random.default_rng(7)
    losses = {
        "normal": lambda: rng.normal(size=3000),
        "errors": lambda: rng.random(3000) < 0.3,
        "jumps": lambda: rng.normal(np.repeat([0.0, 1.0, -1.0, 3.0], 750)),
        "few values": lambda: rng.integers(-2, 3, 3000) * 0.1,
    }[kind]().astype(float)
    plain, alarm = PlainAlarm(0.003, two_sided, most), dw.DriftAlarm(0.003, two_sided=two_sided)
    for loss in losses.tolist():
        plain.update(loss)
    found, cuts = [], [0, 1, 2, *np.sort(rng.integers(0, 3000, 9)).tolist(), 3000]
    for first, last in pairwise(cuts):
        found += (alarm.update_many(losses[first:last]) + first).tolist()
        alarm = copy.deepcopy(alarm)  # with all known losses in order
    assert found == alarm.changes_.tolist() == plain.changes
    assert alarm.starts_.tolist() == plain.starts and alarm._known.tolist() == sorted(plain.known)
    sums = [bets.sums for bets in (plain.grown, plain.fallen)]
    np.testing.assert_allclose(alarm._evidence.reshape(4, -1)[::2], sums, rtol=1e-9)
    assert found or kind == "normal"


def test_ranks_of_exchangeable_losses_are_independent():
    orders = list(permutations([0.1, 0.5, 0.5, 7.0]))
    # Which quarter of [0, 1] the last is in says nothing of which half the second is in.
    values = np.array([ranks(order, seed) for seed in range(50) for order in orders])
    table, *_ = np.histogram2d(values[:, 1], values[:, 3], bins=(2, 4), range=[(0, 1), (0, 1)])
    assert np.abs(table / table.sum() - 1 / 8).max() < 0.02
    assert kstest(ranks(np.random.default_rng(0).integers(0, 3, 5000)), "uniform").pvalue > 0.001


@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("kind", ["cauchy", "errors", "rare errors", "constant", "one of two"])
def test_alarms_for_nothing_are_as_rare_as_promised(kind, two_sided):
    rng, rate, length = np.random.default_rng(5), 0.02, 4000
    gaps = []
    for _ in range(10):
        losses = {
            "cauchy": lambda: rng.standard_cauchy(length),
            "errors": lambda: rng.random(length) < 0.3,
            "rare errors": lambda: rng.random(length) < 0.01,
            "constant": lambda: np.ones(length),
            "one of two": lambda: rng.normal(10.0 * rng.integers(2), 1.0, length),
        }[kind]()
        alarm = dw.DriftAlarm(rate, two_sided=two_sided)
        gaps += np.diff(alarm.update_many(losses), prepend=-1).tolist()
    assert np.mean(gaps) - 1 / rate > -3 * np.std(gaps) / np.sqrt(len(gaps))
    assert len(gaps) > 100  # it is no alarm that never sounds


@pytest.mark.parametrize(
    ("before", "after", "most"), [((0, 1), (1, 1), 30), ((0, 1), (0.5, 1), 90), ((0, 1), (3, 1), 9)]
)
def test_delays_of_normal_losses(before, after, most):
    rng = np.random.default_rng(1)
    delays = []
    for _ in range(20):
        losses = np.append(rng.normal(*before, 1000), rng.normal(*after, 2000))
        alarm = dw.DriftAlarm(1e-4)
        found = alarm.update_many(losses)
        late = np.flatnonzero(found >= 1000)[0]
        delays.append(found[late] - 1000)
        assert abs(alarm.starts_[late] - 1000) < 300
        assert (alarm.changes_ == found).all()
    assert np.median(delays) <= most


@pytest.mark.parametrize("rate", [0.0, -1.0, 2.0, np.nan, "often"])
def test_a_rate_is_a_fraction_of_updates(rate):
    with pytest.raises((ValueError, TypeError), match="rate"):
        dw.DriftAlarm(rate)

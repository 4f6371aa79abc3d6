"""Static, dynamic and worst-case dynamic regret, by hand and by brute force."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.losses import LinearLoss
from driftwolfe.regret import (
    Certified,
    Regret,
    dynamic_regret,
    offline_minimum,
    static_regret,
    worst_case_dynamic_regret,
)
from regret.games import KINDS, VECTOR, game, some_losses


@pytest.fixture
def alternating():
    """Linear losses +, -, + on one coordinate against a learner that stays at (0.5, 0)."""
    functions = [LinearLoss([sign, 0.0]) for sign in (1.0, -1.0, 1.0)]
    return game(dw.L1Ball(2), functions, [np.array([0.5, 0.0])] * 3)


def test_regrets_by_hand(alternating):
    regret = static_regret(alternating)
    assert regret == pytest.approx(0.5 - (-1.0))
    assert (regret.gap <= 1e-12, regret.window) == (True, (0, 3))
    np.testing.assert_array_equal(regret.comparators[0], [-1.0, 0.0])
    comparators = np.array([[-1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    regret = dynamic_regret(alternating, comparators)
    assert regret == pytest.approx(0.5 - (-1.0))
    assert (regret.gap, len(regret.comparators)) == (0.0, 3)
    assert dynamic_regret(alternating, list(comparators)) == regret
    assert worst_case_dynamic_regret(alternating) == pytest.approx(0.5 + 3.0)


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_regrets_are_ordered_and_certified(kind):
    shape = KINDS[kind][1]
    domain = dw.L1Ball(shape, 0.9)
    functions = some_losses(kind, 5)
    history = game(domain, functions, [domain.origin()] * 5)
    static = static_regret(history)
    worst = worst_case_dynamic_regret(history)
    against_static = dynamic_regret(history, [*static.comparators] * 5)
    assert against_static == pytest.approx(static, abs=1e-9)
    assert worst.upper >= static - 1e-9
    minima = [offline_minimum(domain, [f], tolerance=1e-7) for f in functions]
    truth = history.losses.sum() - sum(best.value for best in minima)
    loose = sum(best.gap for best in minima) + 1e-9
    assert worst - loose <= truth <= worst.upper + loose
    assert dynamic_regret(history, worst.comparators) == pytest.approx(worst, abs=1e-9)


def test_what_is_refused(alternating):
    with pytest.raises(ValueError, match="no rounds"):
        static_regret(game(dw.L1Ball(2), [], []))
    with pytest.raises(ValueError, match="one point for each of 3 rounds, got 2"):
        dynamic_regret(alternating, np.zeros((2, 2)))
    with pytest.raises(ValueError, match="a comparator must have shape"):
        dynamic_regret(alternating, np.zeros((3, 5)))
    learner = dw.OGD(dw.L2Ball(2), horizon=4, lipschitz=1.0)
    history = dw.play(learner, [LinearLoss([1.0, 0.0])] * 4, keep_losses=False)
    for measure in (static_regret, worst_case_dynamic_regret, lambda h: dynamic_regret(h, [])):
        with pytest.raises(ValueError, match=r"play\(\.\.\., keep_losses=True\)"):
            measure(history)


def test_regret_is_a_float_that_survives_copying():
    regret = Regret(2.5, 0.25, (3, 7), (np.zeros(VECTOR),))
    for same in (copy.copy(regret), copy.deepcopy(regret), pickle.loads(pickle.dumps(regret))):
        assert same == 2.5
        assert (same.gap, same.window) == (0.25, (3, 7))
    assert f"{regret:.1f}" == "2.5"
    assert str(regret) == "2.5"
    assert repr(regret) == "Regret(2.5, gap=0.25, window=(3, 7))"
    assert type(regret + 1) is float
    assert regret.upper == 2.75
    assert repr(Certified(1.0)) == "Certified(1, gap=0)"

"""How regret grows: with the rounds, with the path of the comparators, after a late change."""

import itertools

import numpy as np
import pytest

import driftwolfe as dw
from learners.families import (
    linear_arena,
    meet,
    path_length,
    pushed_back,
    random_signs,
    vertex_against,
)

CERTIFIED = {"tuning": "certified", "oracle": "halfspace"}
SHORT, LONG = (250, 700, 2000), (250, 800, 2500, 8000)


def exponent(lengths, regrets):
    """The slope of a straight line through the points, in logarithms."""
    return np.polyfit(np.log(lengths), np.log(regrets), 1)[0]


def static_regret(cls, arena, **settings):
    learner = cls(arena.domain, horizon=arena.rounds, lipschitz=arena.lipschitz, **settings)
    played = meet(learner, arena)
    return played.regret(played.comparators(1))


def reacting(T):
    """It charges whatever the last step gained: eta K = T^(-1/4) a block for BOGD, so T^(3/4)."""
    return [pushed_back(dw.L2Ball(3), T)]


def on_a_polytope(T):
    return [vertex_against(dw.Simplex(4), T)]


def signs(seeds):
    """Hindsight gains about sqrt(T), which no learner can foresee; medians over seeds."""
    return lambda T: [random_signs(dw.L2Ball(3), T, seed=seed) for seed in range(seeds)]


LINEAR, SOME, MEDIUM = {"feedback": "linear"}, (125, 350, 1000), (250, 1000, 2000)


@pytest.mark.parametrize(
    ("arenas", "cls", "settings", "lengths", "lowest", "highest"),
    [
        (reacting, dw.OGD, {}, SHORT, 0.48, 0.52),
        pytest.param(reacting, dw.Ader, LINEAR, SHORT, 0.47, 0.53, marks=pytest.mark.slow),
        (reacting, dw.BOGDIP, {}, LONG, 0.68, 0.78),
        pytest.param(reacting, dw.BOGDIP, CERTIFIED, LONG, 0.68, 0.8, marks=pytest.mark.slow),
        (reacting, dw.POLA, LINEAR, SHORT, 0.3, 0.83),
        (reacting, dw.POLAR, LINEAR, SHORT, 0.36, 0.57),
        pytest.param(on_a_polytope, dw.OGD, {}, LONG, -9, 0.53, marks=pytest.mark.slow),
        (on_a_polytope, dw.BOGDIP, {}, SHORT, -9, 0.8),
        pytest.param(on_a_polytope, dw.POLA, {}, SOME, -9, 0.83, marks=pytest.mark.slow),
        (on_a_polytope, dw.POLAR, {}, SOME, -9, 0.6),
        (signs(5), dw.OGD, {}, MEDIUM, -9, 0.65),
        (signs(5), dw.BOGDIP, {}, MEDIUM, -9, 0.8),
        pytest.param(signs(5), dw.BOGDIP, CERTIFIED, MEDIUM, -9, 0.8, marks=pytest.mark.slow),
        pytest.param(signs(3), dw.POLD, LINEAR, SOME, -9, 0.8, marks=pytest.mark.slow),
        (signs(3), dw.POLA, LINEAR, SOME, -9, 0.8),
    ],
)
def test_regret_grows_at_the_rate_with_the_rounds(arenas, cls, settings, lengths, lowest, highest):
    regrets = [
        np.median([static_regret(cls, arena, **settings) for arena in arenas(T)]) for T in lengths
    ]
    assert lowest < exponent(lengths, regrets) < highest


def flipping(rounds, pieces):
    """A slope that changes its sign with every piece: the comparators cross the whole ball."""
    slope = np.array([0.6, 0.8, 0.0])
    signs = [(-1.0) ** (t * pieces // rounds) for t in range(rounds)]
    return linear_arena(dw.L2Ball(3), [sign * slope for sign in signs], 1.0)


def test_the_advantage_of_many_step_sizes_grows_with_the_path():
    T, settings = 1024, {"feedback": "linear"}
    ratios = []
    for pieces in (1, 2, 4, 8):
        arena = flipping(T, pieces)
        single = meet(dw.BOGDIP(arena.domain, horizon=T, lipschitz=1.0), arena)
        many = meet(dw.POLD(arena.domain, horizon=T, lipschitz=1.0, **settings), arena)
        comparators = single.comparators(pieces)
        assert path_length(comparators) == pytest.approx(2.0 * (pieces - 1))
        ratios.append(single.regret(comparators) / many.regret(comparators))
    assert all(after > before for before, after in itertools.pairwise(ratios))
    assert ratios[-1] > 3.0 * ratios[0]


# -- windows ---------------------------------------------------------------------------------------


def worst_windows(played, lengths):
    """The exact worst regret over all windows of each length, on the unit ball."""
    slopes = np.cumsum([np.zeros(3)] + [loss.g for loss in played.losses], axis=0)
    suffered = np.concatenate(([0.0], np.cumsum(played.suffered)))
    worst = []
    for tau in lengths:
        best = np.linalg.norm(slopes[tau:] - slopes[:-tau], axis=1)
        worst.append((suffered[tau:] - suffered[:-tau] + best).max())
    return np.array(worst)


def late_change(rounds):
    """One slope for three quarters of the game, then its opposite."""
    slope = np.array([0.6, 0.8, 0.0])
    return linear_arena(
        dw.L2Ball(3), [slope if t < 0.75 * rounds else -slope for t in range(rounds)], 1.0
    )


def lengths_up_to(rounds):
    return sorted({2**k for k in range(rounds.bit_length())} | {3, 7, 48, 100, rounds})


def test_adaptive_learners_follow_a_late_change_and_others_do_not():
    """Eight times the rounds: what OGD and BOGD lose after the change grows with their memory."""
    growth, last = {}, {}
    for cls in (dw.OGD, dw.BOGDIP, dw.POLA, dw.POLAR, dw.learners.SAOL):
        worst = []
        for T in (128, 1024):
            settings = LINEAR if cls in (dw.POLA, dw.POLAR, dw.learners.SAOL) else {}
            arena = late_change(T)
            played = meet(cls(arena.domain, horizon=T, lipschitz=1.0, **settings), arena)
            worst.append(worst_windows(played, lengths_up_to(T)).max())
        growth[cls], last[cls] = worst[1] / worst[0], worst[1]
    assert growth[dw.OGD] > 2.2
    assert growth[dw.BOGDIP] > 3.5
    assert growth[dw.POLA] < 1.2
    assert growth[dw.POLAR] < 1.2
    assert growth[dw.learners.SAOL] < 1.3
    assert last[dw.OGD] > 2.0 * last[dw.POLA] > 3.0 * last[dw.POLAR]
    assert last[dw.BOGDIP] > 12.0 * last[dw.POLA]


def test_dynamic_regret_of_pold_grows_slowly_with_the_path():
    """T^(3/4) p^(1/4): sixteen times the path may double the regret, not multiply it by sixteen."""
    T, regrets = 1024, []
    for pieces in (2, 5, 17):
        arena = flipping(T, pieces)
        played = meet(dw.POLD(arena.domain, horizon=T, lipschitz=1.0, feedback="linear"), arena)
        regrets.append(played.regret(played.comparators(pieces)))
    growth = exponent([1 + 1, 4 + 1, 16 + 1], regrets)
    assert growth < 0.5

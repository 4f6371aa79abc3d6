"""Adaptive regret against brute force over all windows."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tqdm import tqdm

import driftwolfe as dw
from driftwolfe.losses import LinearLoss, MulticlassLogistic, SquaredDistance
from driftwolfe.regret import adaptive_regret, offline_minimum, static_regret, weak_adaptive_regret
from driftwolfe.regret import measures as search_module
from driftwolfe.regret.measures import Windows
from regret.games import KINDS, game, lagging_game, some_losses


def brute_force(history, lengths, tolerance=1e-8):
    """The largest regret over all windows of these lengths: a lower and an upper bound."""
    lower = upper = -np.inf
    for length in lengths:
        for start in range(len(history) - length + 1):
            window = slice(start, start + length)
            best = offline_minimum(history.domain, history.functions[window], tolerance=tolerance)
            regret = history.losses[window].sum() - best.value
            lower, upper = max(lower, regret), max(upper, regret + best.gap)
    return lower, upper


def assert_same(regret, bounds):
    lower, upper = bounds
    rounding = 1e-9 * (1 + abs(lower))
    assert regret <= upper + rounding
    assert regret.upper >= lower - rounding


@pytest.mark.in_turn
@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("tau", [1, 4, 12])
def test_every_kind_of_loss(kind, tau):
    domain = dw.L1Ball(KINDS[kind][1], 0.8)
    history = lagging_game(domain, some_losses(kind, 12), 0.1)
    regret = adaptive_regret(history, tau, tolerance=1e-3)
    assert_same(regret, brute_force(history, [tau], tolerance=1e-4))
    start, end = regret.window
    assert end - start == tau
    compared = sum(f.value(regret.comparators[0]) for f in history.functions[start:end])
    assert history.losses[start:end].sum() - compared == pytest.approx(regret, abs=1e-9)
    assert domain.contains(regret.comparators[0], atol=1e-7)


def drifting(rounds, seed):
    """Targets that wander and jump, with a learner that lags behind."""
    rng = np.random.default_rng(seed)
    jumps = np.repeat(rng.standard_normal((4, 3)), -(-rounds // 4), axis=0)[:rounds]
    targets = jumps + 0.3 * rng.standard_normal((rounds, 3))
    return lagging_game(dw.L2Ball(3, 1.5), [SquaredDistance(target) for target in targets], 0.1)


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tau", [1, 5, 17, 60])
def test_drifting_targets(seed, tau):
    history = drifting(60, seed)
    regret = adaptive_regret(history, tau, tolerance=1e-6)
    assert_same(regret, brute_force(history, [tau]))
    assert regret.gap <= 1e-5 * (1 + abs(regret))


@pytest.mark.parametrize("seed", range(3))
def test_weak_adaptive_regret_over_all_windows(seed):
    history = drifting(24, seed)
    regret = weak_adaptive_regret(history, tolerance=1e-6)
    assert_same(regret, brute_force(history, range(1, 25)))


def test_one_window_is_static_regret():
    history = drifting(20, 1)
    assert adaptive_regret(history, 20) == pytest.approx(static_regret(history), rel=1e-3)


def flipping_logistic(rounds, seed):
    """Separable classes whose features change sign half way, small like experiment 2."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((3, 4))
    features = rng.standard_normal((rounds, 5, 4))
    labels = (features @ truth.T).argmax(axis=2)
    signs = np.where(np.arange(rounds) < rounds // 2, 1.0, -1.0)[:, None, None]
    pairs = zip(signs * features, labels, strict=True)
    return [MulticlassLogistic(rows, row_labels, n_classes=3) for rows, row_labels in pairs]


@pytest.mark.slow
def test_few_windows_are_solved_after_an_abrupt_change(monkeypatch):
    functions = flipping_logistic(200, 0)
    history = lagging_game(dw.TraceNormBall((3, 4), radius=20.0), functions, 1.0)
    solved = []

    def counting(objective, start, bracket):
        solved.append(objective)
        return minimise(objective, start, bracket)

    minimise = search_module.minimise
    monkeypatch.setattr(search_module, "minimise", counting)
    regret = adaptive_regret(history, 40)
    assert regret.window == (100, 140)
    assert len(solved) < 40  # of 161 windows
    assert_same(regret, brute_force(history, [40], tolerance=1e-6))


def test_linear_losses_that_may_be_negative():
    rng = np.random.default_rng(2)
    functions = [LinearLoss(g, constant=-3.0) for g in rng.standard_normal((40, 3))]
    history = game(dw.Simplex(3), functions, rng.dirichlet(np.ones(3), 40))
    regret = adaptive_regret(history, 10, tolerance=1e-9)
    lower, _ = brute_force(history, [10])
    assert regret == pytest.approx(lower, rel=1e-9)


def test_refusals_say_why():
    history = drifting(8, 0)
    with pytest.raises(ValueError, match="at most the 8 rounds"):
        adaptive_regret(history, 9)
    with pytest.raises(ValueError, match="tau must be a whole number"):
        adaptive_regret(history, 0)
    history.functions.clear()
    with pytest.raises(ValueError, match="keep_losses=True"):
        adaptive_regret(history, 2)


def members(windows):
    """All windows of a set, by definition."""
    if windows.length is not None:
        first, last = windows.starts
        return [(start, start + windows.length) for start in range(first, last + 1)]
    ranges = [range(first, last + 1) for first, last in (windows.starts, windows.ends)]
    return [(start, end) for start, end in itertools.product(*ranges) if start < end]


@st.composite
def window_sets(draw):
    first, extra, length = (draw(st.integers(0, 6)) for _ in range(3))
    if draw(st.booleans()):
        return Windows.of_length(length + 1, first, first + extra)
    end = draw(st.integers(1, 6))
    last_end = max(end + length, first + 1)
    return Windows((first, first + extra), (end, last_end))


@given(windows=window_sets(), seed=st.integers(0, 100))
def test_sets_of_windows(windows, seed):
    sums = np.random.default_rng(seed).standard_normal(20)
    inside = members(windows)
    value, window = windows.best(sums)
    assert window in inside
    assert value == max(sums[end] - sums[start] for start, end in inside)
    ends = (*windows.starts, *windows.ends)
    one = windows.length is not None or (ends[0] == ends[1] and ends[2] == ends[3])
    assert windows.single == (len(inside) == 1 and one)
    start, end = windows.core
    common = set.intersection(*(set(range(*one)) for one in inside))
    assert set(range(start, end)) <= common
    if not windows.single:
        parts = [one for part in windows.split() for one in members(part)]
        assert sorted(parts) == sorted(inside)


def test_sets_of_windows_by_hand():
    sums = np.array([0.0, -1.0, 5.0, 4.0, 4.0])
    windows = Windows((0, 1), (2, 4))
    assert (windows.core, windows.best(sums)) == ((1, 2), (6.0, (1, 2)))
    windows = Windows.of_length(3, first=0, last=1)
    assert (windows.core, windows.best(sums)) == ((1, 3), (5.0, (1, 4)))


def own_and_built_in(rounds=120, size=5):
    """The same game with a user's own absolute errors, which count their calls, and with `AbsoluteRows`."""
    rng = np.random.default_rng(1)
    features = rng.standard_normal((rounds, size))
    truth = np.where(np.arange(rounds) < rounds // 2, 1.0, -1.0) * (features @ np.eye(size)[0])
    targets, calls = truth + 0.3 * rng.standard_normal(rounds), []

    def own(row, target):
        def value(x):
            calls.append(1)
            return abs(row @ x - target)

        return dw.losses.FunctionLoss(value, lambda x: np.sign(row @ x - target) * row)

    pairs = list(zip(features, targets, strict=True))
    mine = [own(*pair) for pair in pairs]
    theirs = [dw.losses.AbsoluteRows(row[None], [target]) for row, target in pairs]
    ball = dw.L2Ball(size)
    return *(dw.play(dw.OGD(ball, rounds, 5.0), losses) for losses in (mine, theirs)), calls


def test_own_functions_have_the_regret_of_the_same_built_in_loss_in_few_calls():
    mine, theirs, calls = own_and_built_in()
    calls.clear()
    ours, known = adaptive_regret(mine, 40), adaptive_regret(theirs, 40)
    assert max(ours, known) <= min(ours.upper, known.upper) + 1e-9
    assert len(calls) < 150_000  # 70,000; where gradient steps go on at kinks, 360,000


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("progress", [None, False, True])
def test_a_bar_shows_the_gap_where_it_is_asked_for_or_on_a_terminal(
    progress, terminal, monkeypatch, capsys
):
    class Eager(tqdm):
        def __init__(self, *, delay, **options):
            assert delay == 1.0  # seconds, in which most searches end
            super().__init__(**options, mininterval=0)

    monkeypatch.setattr("tqdm.tqdm", Eager)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    for measure in (lambda *given, **how: adaptive_regret(*given, 4, **how), weak_adaptive_regret):
        measure(drifting(12, 0), progress=progress)
        shown = terminal if progress is None else progress
        assert ("gap" in capsys.readouterr().err) == shown

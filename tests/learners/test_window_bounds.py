"""`bound(path_length=, tau=)`: dynamic regret on every window, or a refusal."""

import functools
import itertools
import math

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.losses import LinearLoss, SquaredDistance
from learners.contenders import CONTENDERS, LEADING
from learners.families import ROUNDING, bound_after, normal_hedge

CERTIFIED = {
    "saol": (dw.learners.SAOL, {}),
    "saol-linear": (dw.learners.SAOL, {"feedback": "linear"}),
    "one-projection-saol": (dw.learners.OneProjectionSAOL, {}),
    "one-projection-saol-corrective": (dw.learners.OneProjectionSAOL, {"oracle": "corrective"}),
    "pamo": (dw.learners.PAMO, {"gauge": "exact"}),
    "pola": (dw.POLA, {}),
    "pola-halfspace-linear": (dw.POLA, {"oracle": "halfspace", "feedback": "linear"}),
    "pola-budget": (dw.POLA, {"oracle": dw.Oracle(lmo_budget=40.0)}),
    "pola-budget-even": (dw.POLA, {"oracle": dw.Oracle(lmo_budget=100.0, schedule="even")}),
    "polar": (dw.POLAR, {"weights": "sleeping"}),
    "polar-linear": (
        dw.POLAR,
        {"weights": "sleeping", "feedback": "linear", "experts": ("lazy", "origin", "agile")},
    ),
    "polar-corrective": (dw.POLAR, {"weights": "sleeping", "oracle": "corrective"}),
    "polar-budget": (dw.POLAR, {"weights": "sleeping", "oracle": dw.Oracle(lmo_budget=4000.0)}),
}


def make(name, domain, G=1.0):
    cls, settings = CERTIFIED[name]
    return cls(domain, lipschitz=G, tuning="certified", **settings)


# -- what a bound can be at the least --------------------------------------------------------------


def mean_of_a_walk(rounds):
    """E|S_l| of a random walk with steps of one."""
    ways = sum(abs(rounds - 2 * j) * math.comb(rounds, j) for j in range(rounds + 1))
    return ways / 2**rounds


@functools.cache
def forced(rounds, moves):
    """What random signs along a diameter force on every learner, in units of G diameter / 2.

    The learner can expect nothing. Comparators at the better end of each of `moves` + 1 stretches
    gain the absolute value of a random walk on each, and have the path length `moves` diameters.
    """
    cuts = [rounds * i // (moves + 1) for i in range(moves + 2)]
    return sum(mean_of_a_walk(b - a) for a, b in itertools.pairwise(cuts))


ROUNDS = 120


@functools.cache
def after_quiet_rounds(name):
    """A contender as it is after a game of quiet rounds."""
    cls, settings = CONTENDERS[name]
    learner = cls(dw.L2Ball(2, radius=1.5), **{"horizon": ROUNDS, "lipschitz": 2.0, **settings})
    for t in range(ROUNDS):
        learner.update(LinearLoss([2.0 * (-1.0) ** t, 0.0]))
    return learner


@pytest.mark.parametrize("name", CONTENDERS)
def test_a_bound_is_refused_or_counts_the_path(name):
    for tau in (None, 1, 50, ROUNDS, 10 * ROUNDS):
        check_path_counts(after_quiet_rounds(name), tau)


def check_path_counts(learner, tau):
    rounds = min(tau or ROUNDS, ROUNDS)
    moves = sorted({m for m in (0, 1, 5, 20, rounds - 1) if m < rounds})
    try:
        values = [learner.bound(path_length=3.0 * m, tau=tau) for m in moves]
    except NotImplementedError:
        return
    assert learner.bound(tau=tau) == values[0]
    trivial = 2.0 * 3.0 * rounds * (1 - 1e-12)
    # No path comes for free, but where the bound says nothing.
    assert all(a < b or a == b > trivial for a, b in itertools.pairwise(values))
    for m, value in zip(moves, values, strict=True):
        assert value >= 2.0 * 1.5 * forced(rounds, m), m


@pytest.mark.parametrize("name", [*CERTIFIED, "bogd"])
def test_adaptive_learners_are_among_those_that_answer(name):
    learner = after_quiet_rounds(name) if name == "bogd" else make(name, dw.L2Ball(2))
    assert bound_after(learner, ROUNDS, path_length=1.0, tau=50) > 0.0
    if name != "bogd":
        assert bound_after(learner, 4096, path_length=1.0) > bound_after(learner, 4096)


@pytest.mark.parametrize("name", [*LEADING, "kalhan", "line-search"])
def test_what_no_bound_can_be_asked_for_is_refused(name):
    others = {"kalhan": dw.learners.KalhanOFW, "line-search": dw.learners.LineSearchOFW}
    learner = others[name](dw.L2Ball(2)) if name in others else after_quiet_rounds(name)
    for path_length in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="path_length must be a finite number >= 0"):
            learner.bound(path_length=path_length)
    for tau in (0, -3, 2.5):
        with pytest.raises(ValueError, match="tau must be a whole number >= 1"):
            learner.bound(tau=tau)
    with pytest.raises(TypeError, match="path_length"):
        learner.bound(path_length="1")


@pytest.mark.parametrize(
    ("learner", "known"),
    [
        (dw.learners.KalhanOFW(dw.L2Ball(2), horizon=9), {"first_gap": 0.5, "smoothness": 1.0}),
        (dw.learners.LineSearchOFW(dw.L2Ball(2)), {"first_gap": 0.5}),
    ],
    ids=["kalhan", "line-search"],
)
def test_a_bound_by_variation_takes_neither_path_nor_window(learner, known):
    assert learner.bound(variation=1.0, **known) >= 0.0
    for asked in ({"path_length": 1.0}, {"tau": 3}):
        with pytest.raises((NotImplementedError, ValueError)):
            learner.bound(variation=1.0, **known, **asked)


# -- played games ----------------------------------------------------------------------------------


def stretches(rounds, seed):
    """Signs that stay for a while, then are random, then turn ever more often."""
    rng = np.random.default_rng(seed)
    lengths = itertools.chain([rounds // 4], itertools.repeat(1, rounds // 4), range(40, 0, -3))
    signs = [sign for length in lengths for sign in [rng.choice([-1.0, 1.0])] * length]
    return np.array((signs * 4)[:rounds])


@functools.cache
def best_with_moves(signs, most):
    """The least loss of comparators in {-1, 1} that change 0, 1, ... `most` times, by brute force."""
    ends = np.full((most + 1, 2), np.inf)  # moves made, and which end is held
    ends[0] = 0.0
    for sign in signs:
        moved = np.vstack((np.full(2, np.inf), ends[:-1, ::-1]))
        ends = np.minimum(ends, moved) + sign * np.array([-1.0, 1.0])
    return np.minimum.accumulate(ends.min(axis=1))


@pytest.mark.parametrize("name", CERTIFIED)
def test_every_window_and_every_number_of_moves_is_below_the_bound(name):
    T, most = 256, 60
    signs, learner = stretches(T, seed=1), make(name, dw.L2Ball(2))
    suffered = np.array([learner.update(LinearLoss([sign, 0.0])) for sign in signs])
    for tau in (1, 6, 61, 200, T):
        bounds = np.array([learner.bound(path_length=2.0 * m, tau=tau) for m in range(most + 1)])
        for start in np.unique(np.linspace(0, T - tau, 9).astype(int)):
            window = slice(start, start + tau)
            least = best_with_moves(tuple(signs[window]), most)
            assert np.all(suffered[window].sum() - least <= bounds * (1 + ROUNDING)), start


@pytest.mark.parametrize("name", CERTIFIED)
def test_targets_that_jump_within_windows_are_below_the_bound(name):
    """Squared distances to targets on the sphere: comparators suffer nothing."""
    T, rng = 300, np.random.default_rng(2)
    held = np.repeat(rng.standard_normal((T, 3)), rng.integers(1, 30, T), axis=0)[:T]
    targets = held / np.linalg.norm(held, axis=1, keepdims=True)
    learner = make(name, dw.L2Ball(3), G=2.0)
    suffered = np.array([learner.update(SquaredDistance(target)) for target in targets])
    moves = np.linalg.norm(np.diff(targets, axis=0), axis=1)
    for tau in (1, 5, 33, 128, T):
        for start in range(0, T - tau + 1, max(1, T // 20)):
            path = moves[start : start + tau - 1].sum()
            regret = suffered[start : start + tau].sum()
            assert regret <= learner.bound(path_length=path, tau=tau) * (1 + ROUNDING), start


# -- exact values ----------------------------------------------------------------------------------


def pieces(start, end, longest):
    """Aligned intervals, none longer than `longest`, that make up [start, end]: the largest first."""
    lengths = []
    while start <= end:
        length = longest
        while start % length or start + length - 1 > end:
            length //= 2
        lengths.append(length)
        start += length
    return lengths


def by_hand(tau, path, static, price):
    """The best longest length, for the worst of all windows."""
    found = []
    for k in range(tau.bit_length()):
        starts = range(1, 2 ** (k + 1) + 1)  # what is to come depends on the start mod 2^k
        worst = max(sum(map(static, pieces(s, s + tau - 1, 2**k))) for s in starts)
        found.append(worst + path * max(price(2**j) for j in range(k + 1)))
    return min(found)


def multiplicative(B, t):
    created = sum(t // 2**j for j in range(t.bit_length()))

    def price(length):
        rate = min(0.5, length**-0.5)
        return B * (math.log(created) / rate + rate * length)

    return price


def pola_by_hand(G, D, length):
    """The expert's regret and its price per unit of path, in plain numbers."""
    block = max(1, math.floor(math.sqrt(length) * (1 + 1e-12)))
    static = G * D * (math.sqrt(3) * length**0.75 + length**0.75 / 2 + block * length**0.25 / 2)
    return static, G * (length**0.75 / 2 + block - 1)


def budget_by_hand(G, D, length, b, r):
    k = length.bit_length() - 1
    share = b / ((k + 1) * (k + 2))
    h = (share / (2.6 * r)) ** 0.25 * length**-0.75
    block = math.ceil((2.6 / (share * r * r * h * h)) ** (1 / 3) * (1 - 1e-12))
    tol = min(1.0, 2.6 / (share * block))
    static = G * D * (length * math.sqrt(tol) + 0.5 / h + r * h * block * length / 2)
    return static, G * (0.5 / h + block - 1)


def saol_by_hand(G, D, length):
    return G * D * math.sqrt(length), G * math.sqrt(length) / 2


@pytest.mark.in_turn
@pytest.mark.parametrize("name", ["pola", "pola-budget", "pola-budget-even", "saol", "pamo"])
@pytest.mark.parametrize("R", [1.0, 1e-9, 1e12])
def test_the_bound_on_windows_is_the_theorem(name, R):
    t, G = 500, 3.0
    domain = dw.L1Ball(4, radius=R)
    D, learner = 2 * R, make(name, domain, G)
    meta = (normal_hedge if name.startswith("pola") else multiplicative)(G * domain.diameter, t)
    expert = {
        "pola": lambda length: pola_by_hand(G, D, length),
        "pola-budget": lambda length: budget_by_hand(G, D, length, 40.0, 1.0),
        "pola-budget-even": lambda length: budget_by_hand(G, D, length, 100.0, 3.0),
        "saol": lambda length: saol_by_hand(G, D, length),
        "pamo": lambda length: saol_by_hand(3.0 * G, D, length),
    }[name]
    for tau, path in itertools.product((1, 2, 7, 32, 100, 131), (0.0, 0.3 * D, 6.0 * D, 1e3 * D)):
        known = min(path, (tau - 1) * domain.diameter)
        value = by_hand(
            tau, known, lambda n: expert(n)[0] + meta(n), lambda length: expert(length)[1]
        )
        assert bound_after(learner, t, path_length=path, tau=tau) == pytest.approx(value, rel=1e-9)

"""Bounds to the last term: recomputed from the theorems with plain arithmetic, lengths that do not divide.

Only `blocked` below stands for all of them: the master inequality of `docs/theory/bounds.md`.
"""

import itertools
import math

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.losses import LinearLoss
from learners.families import bound_after, normal_hedge

G, R = 3.0, 0.7
D = 2 * R
EXACT = 1e-12


def blocked(T, h, K, tol, P=0.0, v0=0.5, delay_factor=1.0):
    """G T sqrt(tol) + (v_0 D^2 + D P/2)/eta + r eta K T G^2/2 + (K - 1) G P, eta = D h/G."""
    eta = D * h / G
    moving = (v0 * D**2 + D * P / 2) / eta
    return G * T * math.sqrt(tol) + moving + delay_factor * eta * K * T * G**2 / 2 + (K - 1) * G * P


def paper_block(T):
    """h = T^(-3/4), K = floor(sqrt T), tol = 3 D^2 T^(-1/2)."""
    return T**-0.75, math.isqrt(T), 3 * D**2 * T**-0.5


def hedge(T, i, N, spread):
    """Hedge's price for expert i of N: B sqrt(T/8) (1 + ln(1/p_i)), p_i = (1 + 1/N)/(i(i + 1))."""
    return spread * math.sqrt(T / 8) * (1 + math.log(i * (i + 1) / (1 + 1 / N)))


def best_on_ball(T, K, D, P):
    """The best of Ader's experts on a ball of diameter D, with blocks of K rounds, and its price."""
    M = math.ceil(T / K)
    N = math.ceil(0.5 * math.log2(1 + 4 * M / 7)) + 1
    etas = [2**i * math.sqrt(7 / (2 * M)) * D / (K * G) for i in range(N)]
    return min(
        (D**2 / 8 + D * P / 2) / eta + eta * K * T * G**2 / 2 + hedge(M, i, N, K * G * D)
        for i, eta in enumerate(etas, start=1)
    )


# -- blocked descent -------------------------------------------------------------------------------


@pytest.mark.parametrize("T", [16, 50, 300, 2_001])
def test_bogd_on_an_interval_pays_for_two_cut_off_blocks(T):
    learner = dw.BOGDIP(dw.L2Ball(3, radius=R), horizon=T, lipschitz=G, tuning="certified")
    h, K, tol = paper_block(T)
    for tau, P in itertools.product((1, 7, T - 1, T, T + 5), (0.0, 3.0)):
        wanted = blocked(min(tau, T), h, K, tol, P) + 2 * K * G * D
        assert bound_after(learner, T, tau=tau, path_length=P) == pytest.approx(wanted, rel=EXACT)


@pytest.mark.parametrize("rounds", [1, 64, 65, 150, 192, 193, 448])
def test_epochs_add_up(rounds):
    """64, 128, 256, ... rounds; only the first starts at the centre."""
    learner = dw.BOGDIP(dw.L2Ball(3, radius=R), lipschitz=G, tuning="certified")
    P, wanted, left, length, v0 = 0.4, 0.0, rounds, 64, 1 / 8
    while left > 0:
        wanted += blocked(min(left, length), *paper_block(length), P, v0)
        left, length, v0 = left - length, 2 * length, 1 / 2
    assert bound_after(learner, rounds, path_length=P) == pytest.approx(wanted, rel=EXACT)


def test_a_learned_constant_costs_a_start_anywhere_and_twice_the_path():
    T, P = 100, 0.6
    learner = dw.BOGDIP(dw.L2Ball(2, radius=R), horizon=T, tuning="certified")
    for size in (0.5, 3.0, 1.0):
        learner.update(LinearLoss([size, 0.0]))
    h, K, tol = paper_block(T)
    eta = D * h / 3.0
    wanted = (
        3.0 * 3 * math.sqrt(tol)
        + (D**2 / 2 + D * P) / eta
        + eta * K * 3 * 3.0**2 / 2
        + (K - 1) * 3.0 * P
    )
    assert learner.bound(path_length=P) == pytest.approx(wanted, rel=EXACT)


# -- budgets ---------------------------------------------------------------------------------------


def affordable(T, v, b, r, factor=1.0):
    """Step, block and tolerance of `docs/theory/budget.md`, section 2."""
    h = factor * (2 * v) ** 0.75 * (2.6 * r) ** -0.25 * b**0.25 * T**-0.75
    K = math.ceil((2.6 / (b * r**2 * h**2)) ** (1 / 3))
    return h, K, min(D**2, 2.6 * D**2 / (b * K))


BUDGETS = [(1.0, "blocks", 1), (0.1, "blocks", 1), (7.0, "even", 3), (1.0, "even", 3)]


def with_budget(cls, T, budget, schedule):
    oracle = dw.Oracle(lmo_budget=budget, schedule=schedule)
    return cls(dw.L2Ball(3, radius=R), T, G, tuning="certified", oracle=oracle)


@pytest.mark.parametrize(("budget", "schedule", "r"), BUDGETS)
@pytest.mark.parametrize("T", [77, 1000])
def test_bogd_and_pold_with_a_budget(T, budget, schedule, r):
    single, many = (with_budget(cls, T, budget, schedule) for cls in (dw.BOGDIP, dw.POLD))
    N = math.floor(0.75 * math.log2(1 + 4 * (T - 1))) + 1

    def expert(P, share=1.0, factor=1.0):
        return blocked(T, *affordable(T, 1 / 8, share * budget, r, factor), P, 1 / 8, r)

    for P in (0.0, 2.0, 20.0):
        assert bound_after(single, T, path_length=P) == pytest.approx(expert(P), rel=EXACT)
        wanted = min(
            expert(P, (1 + 1 / N) / (i * (i + 1)), 2.0 ** (i - 1)) + hedge(T, i, N, G * D)
            for i in range(1, N + 1)
        )
        assert bound_after(many, T, path_length=P) == pytest.approx(wanted, rel=EXACT)


@pytest.mark.parametrize("budget", [0.3, 1.0, 10.0])
@pytest.mark.parametrize("T", [77, 1000])
def test_one_oracle_ader(T, budget):
    learner = dw.learners.OneOracleAder(
        dw.Simplex(4, radius=2.0), T, G, tuning="certified", oracle=dw.Oracle(lmo_budget=budget)
    )
    D = 2 * learner.domain.radius
    assert pytest.approx(2 * 2.0 * math.sqrt(3 / 4)) == D
    K = math.ceil(math.sqrt(T / budget))
    tol = min(D**2, 2.6 * D**2 / (budget * K))
    for P in (0.0, 5.0, 40.0):
        wanted = G * T * math.sqrt(tol) + best_on_ball(T, K, D, P) + (K - 1) * G * P
        assert bound_after(learner, T, path_length=P) == pytest.approx(wanted, rel=EXACT)


# -- grids -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("T", [50, 777])
@pytest.mark.parametrize("grid", ["ader", "tight", "paper"])
def test_the_best_expert_of_a_grid_and_the_price_of_finding_it(grid, T):
    cls, settings = (dw.Ader, {}) if grid == "ader" else (dw.POLD, {"grid": grid})
    learner = cls(dw.L2Ball(3, radius=R), T, G, tuning="certified", **settings)
    first, N = {
        "ader": (math.sqrt(7 / (2 * T)), math.ceil(0.5 * math.log2(1 + 4 * T / 7)) + 1),
        "tight": ((1.344 / 8 / T) ** 0.75, math.floor(0.75 * math.log2(1 + 4 * (T - 1))) + 1),
        "paper": ((3.5 / T) ** 0.75, math.ceil(0.75 * math.log2(1 + 4 * T / 7)) + 1),
    }[grid]
    steps = [h for h in (2**i * first for i in range(N)) if h <= 1 or grid == "ader"]

    def expert(h, P):
        if grid == "ader":
            return blocked(T, h, 1, 0.0, P, 1 / 8)
        return blocked(T, h, math.floor(h ** (-2 / 3)), 3 * D**2 * h ** (2 / 3), P, 1 / 8)

    for P in (0.0, 3.0, 30.0):
        pairs = enumerate(steps, start=1)
        wanted = min(expert(h, P) + hedge(T, i, len(steps), G * D) for i, h in pairs)
        assert bound_after(learner, T, path_length=P) == pytest.approx(wanted, rel=EXACT)


# -- covers ----------------------------------------------------------------------------------------


def on_level(k, T, P=0.0):
    """Regret on one interval of length 2^k: its expert's bound and the price of weighing."""
    return blocked(2**k, *paper_block(2**k), P) + normal_hedge(D * G, T)(2**k)


def intervals_of_level(k, T):
    """Intervals [i 2^k, (i + 1) 2^k - 1], i >= 1, that are needed for rounds up to T, counted."""
    return len({t // 2**k for t in range(2**k, T + 1)})


@pytest.mark.parametrize("T", [1, 2, 3, 7, 8, 9, 37, 100, 127, 128, 129, 1000])
def test_pola_against_a_path_counts_every_interval_begun(T):
    """Those of lengths 1, 2, ..., 2^(k-1) for the first rounds, then of length 2^k; the best k."""
    learner = dw.POLA(dw.L2Ball(3, radius=R), lipschitz=G, tuning="certified")
    for P in (0.0, 0.5, 0.3 * T):
        P_possible = min(P, (T - 1) * D)  # no path is longer
        candidates = []
        for k in range(T.bit_length()):
            static = sum(on_level(j, T) for j in range(k))
            static += intervals_of_level(k, T) * on_level(k, T)
            # What a unit of path costs on a level: D/(2 eta) + (K - 1) G; the dearest pays for all.
            price = max(G / 2 / 2 ** (-0.75 * j) + (math.isqrt(2**j) - 1) * G for j in range(k + 1))
            candidates.append(static + price * P_possible)
        wanted = min(candidates)
        assert bound_after(learner, T, path_length=P) == pytest.approx(wanted, rel=EXACT)


@pytest.mark.parametrize("tau", [1, 2, 5, 37])
@pytest.mark.parametrize(("method", "factor"), [("exact", 1.0), ("halfspace", 2.0)])
def test_one_projection_saol_on_a_window(method, factor, tau):
    """Steps D/(G sqrt |I|) on the ball, B = G D, and G |I| D/sqrt |I| where projections are not exact."""
    simplex = dw.Simplex(4, radius=2.0)
    learner = dw.learners.OneProjectionSAOL(simplex, lipschitz=G, tuning="certified", oracle=method)
    started, D = sum(100 // 2**k for k in range(7)), 2 * simplex.radius

    def level(k):
        rate = min(0.5, 2 ** (-k / 2))
        return G * D * (factor * 2 ** (k / 2) + math.log(started) / rate + rate * 2**k)

    def digits(A):  # the lengths of a window's pieces are the binary digits of A and of tau - A
        return sum(level(k) for k in range(7) if A >> k & 1)

    wanted = max(digits(A) + digits(tau - A) for A in range(tau + 1))
    assert bound_after(learner, 100, tau=tau) == pytest.approx(wanted, rel=EXACT)


@pytest.mark.parametrize("T", [77, 1000])
@pytest.mark.parametrize("method", ["exact", "corrective"])
def test_one_projection_ader(T, method):
    """Ader on the ball, whose diameter D is larger than the simplex's; and tol = D^2/T."""
    learner = dw.learners.OneProjectionAder(
        dw.Simplex(4, radius=2.0), T, G, tuning="certified", oracle=method
    )
    D = 2 * learner.domain.radius
    for P in (0.0, 5.0, 40.0):
        rough = G * D * math.sqrt(T) if method == "corrective" else 0.0
        wanted = best_on_ball(T, 1, D, P) + rough
        assert bound_after(learner, T, path_length=P) == pytest.approx(wanted, rel=EXACT)


# -- Frank-Wolfe -----------------------------------------------------------------------------------


@pytest.mark.parametrize("T", [30, 1000])
def test_online_frank_wolfe(T):
    """D^2/(8 eta) + G T q, s q^2 = s^2 diam^2/2 + eta G q."""
    learner = dw.OnlineFrankWolfe(dw.L2Ball(3, radius=R), T, G)
    eta, s = D / (2 * G) * (3 / T) ** 0.75, math.sqrt(3 / T)
    q = (bound_after(learner, T) - D**2 / (8 * eta)) / (G * T)
    assert s * q**2 == pytest.approx(s**2 * D**2 / 2 + eta * G * q, rel=1e-9)


def test_a_cut_off_projection_takes_the_place_of_its_tolerance():
    """What was left between x and y, where it is more than what was asked for."""
    T = 400
    learner = dw.BOGDIP(dw.L2Ball(2, radius=R), T, G, tuning="certified")
    h, K, tol = paper_block(T)
    for left in (0.5, 2.0):
        learner._experts.largest_distance = left * math.sqrt(tol)
        wanted = blocked(T, h, K, max(1.0, left**2) * tol, v0=1 / 8)
        assert bound_after(learner, T) == pytest.approx(wanted, rel=EXACT)


@pytest.mark.parametrize("budget", [0.05, 0.5])
def test_one_oracle_ader_pays_for_runs_that_were_cut_off(budget):
    """Few calls for a tiny tolerance. The lemma needs e with <y - x, u - x> <= e ||y - x|| for all
    u in K, or e = ||y - x||; what enters the bound is no smaller than the better of both.
    """
    T, vertices = 200, np.concatenate((np.eye(4), -np.eye(4)))
    oracle = dw.Oracle(lmo_budget=budget, tolerance_scale=1e-6)
    learner = dw.learners.OneOracleAder(dw.L1Ball(4), T, 1.0, tuning="certified", oracle=oracle)
    K, needed = math.ceil(math.sqrt(T / budget)), 0.0
    slope = np.array([0.5, -0.5, 0.4, 0.3])
    for t in range(1, T + 1):
        learner.update(LinearLoss(slope if t < T / 2 else -slope))
        if t % K == 0:
            x = learner.decision
            y = learner._experts.combined(learner.expert_weights)
            apart = np.linalg.norm(x - y)
            gap = ((y - x) @ (vertices - x).T).max()
            needed = max(needed, min(apart, gap / apart) if apart > 0 else 0.0)
    assert needed > 0.01
    with_error = learner.bound()
    learner._error = 0.0
    wanted = with_error - learner.bound()
    assert wanted >= T * (needed - math.sqrt(1e-6 * 4 * 2.6 / (budget * K))) * (1 - 1e-9)


# -- lazy experts ----------------------------------------------------------------------------------

LAZY = {
    "exact": {},
    "certified": {"tuning": "certified", "oracle": "corrective"},
    "budget": {"tuning": "certified", "oracle": dw.Oracle(lmo_budget=30.0)},
    "few calls": {"tuning": "certified", "oracle": dw.Oracle(lmo_budget=0.7)},
}


def plans_by_hand(name, length, level, kinds=1):
    """h, block and delta/D of an expert: by the page, with its share of the budget."""
    if name == "exact":  # half the step where the start is the centre
        return length**-0.5 / (2 if level == 1 else 1), 1, 0.0
    if name == "certified":
        h, block = length**-0.75, math.isqrt(length)
    else:
        b = LAZY[name]["oracle"].lmo_budget / (level * (level + 1) * kinds)
        h = (b / 6.75) ** 0.25 * length**-0.75
        block = math.ceil((6.75 / (b * h * h)) ** (1 / 3) * (1 - 1e-12))
    return h, block, min(1.0, h * block)


def lazily(rounds, h, K, delta, v0, learned, squares=None):
    """v0/h + sum h K^2/2 + tau delta and what learning G adds, in units of G D."""
    squares = h * K * rounds if squares is None else squares
    return v0 / h + (1 + learned) / 2 * squares + rounds * delta + (2 * K if learned else 0.0)


@pytest.mark.parametrize("name", LAZY)
@pytest.mark.parametrize("learned", [False, True])
def test_polar_in_an_epoch(name, learned):
    kinds = ("lazy", "origin")
    learner = dw.POLAR(
        dw.L2Ball(3, radius=R), None, "auto" if learned else G, experts=kinds, **LAZY[name]
    )
    learner._experts.largest_gradient = G
    for level, length in enumerate((8, 16, 1024, 1 << 15), start=2):
        level = level if length <= 16 else length.bit_length() - 2
        h, K, delta = plans_by_hand(name, length, level, kinds=2)
        K = min(K, length)
        for kind, v0, kept in (("lazy", 1 / 2, 0), ("origin", 1 / 8, K)):
            wanted = lazily(length, h, K, delta, v0, learned) + kept
            found = learner._bounds.epoch(kind, length)
            assert found == pytest.approx(G * D * wanted, rel=EXACT)


def steps_and_blocks(name, T):
    """Blocks of the expert that never restarts: (h, rounds, delta) of each, played round by round.

    Its plan changes after rounds 1, 2, 4, ...; a block that has begun then ends at the new length.
    A block has the step with which its point was found; the first one's is that of the second.
    """
    length, held, step, apart, blocks = 1, 0, None, 0.0, []
    for t in range(1, T + 1):
        h, K, delta = plans_by_hand(name, length, 1)
        held += 1
        if held == K or t == T:
            blocks.append((step or h, held, apart))
            held, step, apart = 0, h, delta
        if t & (t - 1) == 0:
            length = 2 * t
    return blocks


@pytest.mark.parametrize("name", LAZY)
@pytest.mark.parametrize("T", [1, 2, 3, 9, 100, 1024, 1025, 20_000])
def test_polar_never_restarted_pays_for_the_blocks_that_it_has(name, T):
    learner = dw.POLAR(dw.L2Ball(3, radius=R), None, G, **LAZY[name])
    blocks = steps_and_blocks(name, T)
    levels = [1 << k for k in range((T - 1).bit_length() + 1)]
    h, K, _ = plans_by_hand(name, levels[-1], 1)
    assert max(rounds for _, rounds, _ in blocks) <= K
    squares = sum(step * rounds**2 for step, rounds, _ in blocks)
    delta = sum(rounds * apart for _, rounds, apart in blocks) / T
    wanted = lazily(T, h, K, delta, 1 / 8, False, squares)
    found = learner._bounds.whole(T) / (G * D)
    assert found >= wanted * (1 - EXACT)
    if (1024 if name != "few calls" else 20_000) <= T:  # and not much more
        assert found <= 1.4 * wanted


@pytest.mark.parametrize("name", ["certified", "budget", "few calls"])
def test_polar_plays_the_blocks_that_its_bound_speaks_of(name):
    learner = dw.POLAR(dw.L2Ball(2, radius=R), None, G, **LAZY[name])
    T, ends = 300, []
    for t in range(1, T + 1):
        if 0 in learner._experts.due():
            ends.append(t)
        learner.update(LinearLoss([G, 0.0] if t % 3 else [0.0, -G]))
    lengths = np.diff([0, *ends, T]).tolist()
    assert [n for n in lengths if n] == [rounds for _, rounds, _ in steps_and_blocks(name, T)]


@pytest.mark.parametrize("b", [0.3, 1.0, 20.0])
def test_polar_with_a_budget_is_below_the_closed_form(b):
    """3.23 b_k^(-1/4) L^(3/4) + 0.94 (b_k L)^(1/4) for the share b_k of a length."""
    oracle = dw.Oracle(lmo_budget=b)
    learner = dw.POLAR(dw.L2Ball(3, radius=R), None, G, tuning="certified", oracle=oracle)
    for level in range(2, 18):
        length, share = 4 << (level - 1), b / (level * (level + 1))
        closed = 3.23 * share**-0.25 * length**0.75 + 0.94 * (share * length) ** 0.25
        assert learner._bounds.epoch("lazy", length) <= G * D * closed


@pytest.mark.parametrize("P", [0.0, 0.5, 20.0])
def test_polar_by_one_length_for_the_whole_game(P):
    """The smallest over lengths; the expert that never restarts is there until the first epoch."""
    T = 777
    learner = dw.POLAR(dw.L2Ball(2, radius=R), None, G, experts=("lazy", "agile"))
    for t in range(T):
        learner.update(LinearLoss([G * (-1.0) ** (t // 50), 0.0]))
    whole, price = learner._bounds.whole, learner._meta.regret_bound
    wanted = [whole(T) + G * (T - 1) * P + price(0)]
    for length in (8 << k for k in range(7)):
        epochs = math.ceil((T - length + 1) / length)
        lazy = epochs * G * D * math.sqrt(length) + G * (length - 1) * P
        wanted.append(whole(length - 1) + lazy + price(1))
    # Agile experts, one after another: 15 times the step term, and 2 G D + G P.
    chain, starts, lazily = 0.0, [1, 16, 64, 256, T], len(wanted)
    for changes, length in enumerate([4, 16, 64, 256]):
        h, rest, moving = length**-0.5, T - starts[changes] + 1, G / 2 * math.sqrt(length) + G
        agile = blocked(rest, h, 1, 0.0, delay_factor=15.0) + 2 * G * D
        wanted.append(chain + agile + moving * P + price(changes))
        alone = starts[changes + 1] - starts[changes]
        chain += blocked(alone, h, 1, 0.0, delay_factor=15.0) + 2 * G * D
    assert learner._bounds._agile(P) == pytest.approx(wanted[lazily:], rel=1e-9)
    assert learner.bound(path_length=P) == pytest.approx(min(wanted), rel=1e-9)

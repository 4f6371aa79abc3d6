"""How often the oracle is asked: hard caps per block, and O(T) or O(T log T) in all."""

import math

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.losses import LinearLoss, SquaredDistance
from learners.families import (
    play_all,
    pushed_back,
    random_signs,
    rotating_quadratics,
    switching_costs,
)

SETS = {
    "l1": dw.L1Ball(12, radius=2.0),
    "l2": dw.L2Ball(6),
    "simplex": dw.Simplex(15),
    "birkhoff": dw.BirkhoffPolytope(4),
    "trees": dw.SpanningTreePolytope(5),
    "trace-norm": dw.TraceNormBall((5, 6), radius=3.0),
}


def halfspace_cap(D, h, block, tolerance):
    """ALGORITHMS 1.5: one Frank-Wolfe run."""
    return 2.6 * D**2 / tolerance


def paper_cap(D, h, block, tolerance):
    """ALGORITHMS 1.1, 1.2: n runs of 4 D^2/eps; a block's steps and the last distance bound rho."""
    eps = tolerance / 3
    rho = (math.sqrt(tolerance) + D * h * block) ** 2 / eps
    runs = math.ceil(math.log(rho / 3) / (-2 * math.log(1 - 2 / rho))) if rho > 3 else 0
    return runs * 4 * D**2 / eps


CAPS = {"halfspace": halfspace_cap, "paper": paper_cap}


def hard_losses(domain, rounds):
    """Costs that switch a few times, with noise: blocks end far from where they began."""
    steady = switching_costs(domain, rounds, pieces=5, seed=1).losses
    noise = random_signs(domain, rounds, seed=2).losses
    return [LinearLoss(0.7 * a.g + 0.3 * b.g) for a, b in zip(steady, noise, strict=True)]


def plan(h, D, scale=1.0):
    """Block, tolerance 3 eps."""
    return max(1, math.floor(h ** (-2 / 3) * (1 + 1e-12))), 3 * D**2 * h ** (2 / 3) * scale


def total_cap(method, D, h, rounds, scale=1.0):
    block, tolerance = plan(h, D, scale)
    return rounds // block * CAPS[method](D, h, block, tolerance)


@pytest.mark.in_turn("name", "method scale")
@pytest.mark.parametrize("scale", [1.0, 0.05])
@pytest.mark.parametrize("method", CAPS)
@pytest.mark.parametrize("name", SETS)
def test_blocks_of_bogd_keep_their_cap(name, method, scale):
    T, domain = 900, SETS[name]
    D, h = 2 * domain.radius, T**-0.75
    oracle = dw.Oracle(method, tolerance_scale=scale)
    learner = dw.BOGDIP(domain, T, 1.0, tuning="certified", oracle=oracle)
    history = dw.play(learner, hard_losses(domain, T))
    block, tolerance = plan(h, D, scale)
    assert block == 30
    asked = history.lmo.reshape(-1, block)
    assert not asked[:, :-1].any()
    assert asked.max() <= CAPS[method](D, h, block, tolerance)
    assert learner.oracle_calls.projection == learner.oracle_calls.gauge == 0
    assert scale == 1.0 or learner.lmo_calls > 0


@pytest.mark.parametrize("method", CAPS)
def test_bogd_asks_a_constant_number_of_times_a_round(method):
    """0.87 a round by half-space steps and 8 by the paper's, before K is rounded down."""
    constant = {"halfspace": 2.6 / 3, "paper": 8.0}[method]
    domain = dw.L1Ball(30)
    for T in (400, 1600):
        learner = dw.BOGDIP(domain, horizon=T, lipschitz=1.0, tuning="certified", oracle=method)
        play_all(learner, hard_losses(domain, T))
        assert 0 < learner.lmo_calls <= constant * T * (1 + 1e-12)
        assert total_cap(method, 2.0, T**-0.75, T) <= constant * T * (1 + 1e-9)


def steps_of(cls, T):
    """Steps of the experts of POLD and POLA, each with the rounds that it plays."""
    if cls is dw.POLD:
        N = math.floor(0.75 * math.log2(1 + 4 * (T - 1))) + 1
        return [(2**i * (1.344 / 8 / T) ** 0.75, T, 1) for i in range(N)]
    return [(2 ** (-0.75 * k), 2**k, T // 2**k) for k in range(T.bit_length())]


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("cls", "method", "feedback"),
    [
        *((dw.POLD, "halfspace", "full"), (dw.POLD, "paper", "linear")),
        *((dw.POLA, method, "linear") for method in CAPS),
    ],
)
@pytest.mark.parametrize("name", ["l1", "simplex", "birkhoff"])
def test_ensembles_ask_as_often_as_their_experts_may(name, cls, method, feedback):
    T, domain = 500, SETS[name]
    given = {"lipschitz": 1.0, "tuning": "certified", "oracle": method, "feedback": feedback}
    learner = play_all(cls(domain, horizon=T, **given), hard_losses(domain, T))
    steps = steps_of(cls, T)
    if cls is dw.POLD:
        assert learner.expert_weights.size == len(steps)
    most = sum(n * total_cap(method, 2 * domain.radius, h, rounds) for h, rounds, n in steps)
    assert learner.lmo_calls <= most
    assert most <= {"halfspace": 2 * 2.6 / 3, "paper": 16.0}[method] * len(steps) * T
    assert learner.oracle_calls.projection == learner.oracle_calls.gauge == 0


def test_experts_that_leave_ask_no_more():
    """The last block of an interval has no successor to project for."""
    domain = dw.L1Ball(3)
    learner = dw.POLA(domain, lipschitz=1.0, oracle=dw.Oracle("halfspace", tolerance_scale=1e-9))
    asked = []
    for t in range(1, 64):
        before = learner.lmo_calls
        learner.update(LinearLoss([1.0, 0.3, 0.1]))
        asked.append(learner.lmo_calls - before)
        if t in (1, 3, 7):  # all experts end here
            assert asked[-1] == 0
    assert sum(asked) > 0


@pytest.mark.parametrize("scale", [1.0, 0.02])
@pytest.mark.parametrize("domain", [dw.L1Ball(10), dw.BirkhoffPolytope(3)], ids=["l1", "birkhoff"])
def test_loo_bogd_asks_at_most_once_a_round_even_with_a_finer_tolerance(domain, scale):
    T, oracle = 1000, dw.Oracle("halfspace", tolerance_scale=scale)
    learner = dw.learners.LOOBOGD(domain, T, lipschitz=1.0, tuning="certified", oracle=oracle)
    play_all(learner, hard_losses(domain, T))
    assert learner.lmo_calls <= T
    assert (learner.lmo_calls > 0) == (scale < 1)


@pytest.mark.parametrize(
    "cls", [dw.OnlineFrankWolfe, dw.learners.KalhanOFW, dw.learners.LineSearchOFW]
)
def test_frank_wolfe_learners_ask_once_every_round(cls):
    for domain in SETS.values():
        learner = cls(domain, horizon=40, lipschitz=1.0)
        history = dw.play(learner, rotating_quadratics(domain, 40).losses)
        assert np.all(history.lmo == 1)
        assert learner.oracle_calls.projection == learner.oracle_calls.gauge == 0


def test_one_practical_projection_takes_at_most_200_calls():
    domain = dw.LMODomain(40, dw.Simplex(40).lmo, radius=np.sqrt(2.0), center=np.eye(40)[0])
    learner = dw.BOGDIP(domain, horizon=400, lipschitz=1.0, oracle="halfspace")
    mean = SquaredDistance(np.full(40, 1 / 40))
    history = dw.play(learner, [mean] * 400)
    assert 20 < history.lmo.max() <= 200


def test_ader_and_saol_project_once_for_each_expert_that_plays_on():
    T, ball = 100, dw.L2Ball(3)
    losses = pushed_back(ball, T)
    ader = dw.Ader(ball, horizon=T, lipschitz=1.0)
    saol = dw.learners.SAOL(ball, lipschitz=1.0)
    leaving = sum((T + 1) // 2**k - 1 for k in range((T + 1).bit_length()))
    for t in range(T):
        ader.update(losses.losses(t, ader.decision))
        saol.update(losses.losses(t, saol.decision))
    awake = sum(t.bit_length() for t in range(1, T + 1))
    assert ader.oracle_calls.projection == ader.expert_weights.size * T
    assert saol.oracle_calls.projection == awake - leaving
    assert ader.lmo_calls == saol.lmo_calls == 0


def test_pamo_tests_membership_a_logarithmic_number_of_times():
    T, domain = 120, dw.L1Ball(4)
    learner = dw.learners.PAMO(domain, horizon=T, lipschitz=1.0)
    play_all(learner, random_signs(domain, T).losses)
    awake = sum(t.bit_length() for t in range(1, T + 1))
    each = 3 + math.ceil(math.log2(learner.kappa * T**2))
    assert 0 < learner.oracle_calls.membership <= each * awake
    assert learner.oracle_calls.lmo == learner.oracle_calls.projection == 0


def test_multi_ocg_stays_within_its_own_caps():
    T, domain = 64, dw.BirkhoffPolytope(4)
    losses = hard_losses(domain, T)
    certified = dw.learners.MultiOCG(domain, horizon=T, lipschitz=1.0, tuning="certified")
    asked = dw.play(certified, losses).lmo
    assert asked.max() <= sum(8 * 2**i + 1 for i in range(7))
    for most in (1, 5, 20):
        limited = dw.learners.MultiOCG(domain, horizon=T, lipschitz=1.0, max_inner=most)
        # The expert of one-round epochs is always at its start and asks for nothing.
        assert dw.play(limited, losses).lmo.max() <= 6 * most

"""What learners do inside: epochs, covers, restarts, what is learned on the way."""

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.ensemble.plan import ader_prior
from driftwolfe.learners.base import Epoch
from driftwolfe.losses import LinearLoss
from learners.families import (
    absolute_entries,
    as_array,
    piecewise_constant_targets,
    play_all,
    rotating_quadratics,
    unit,
)

# -- Multi-OCG -------------------------------------------------------------------------------------


def test_multi_ocg_says_when_its_limit_has_cut_a_run_short():
    domain = dw.BirkhoffPolytope(4)
    losses = piecewise_constant_targets(domain, 60).losses
    limited = play_all(dw.learners.MultiOCG(domain, horizon=60, lipschitz=3.0, max_inner=1), losses)
    with pytest.raises(NotImplementedError):
        limited.bound()
    free = play_all(
        dw.learners.MultiOCG(domain, horizon=60, lipschitz=3.0, tuning="certified"), losses
    )
    assert free.bound() > 0
    assert limited.lmo_calls < free.lmo_calls


# -- epochs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cls", [dw.BOGDIP, dw.learners.LOOBOGD, dw.POLD, dw.Ader, dw.learners.MultiOCG]
)
def test_without_a_horizon_epochs_double_and_start_where_the_last_one_ended(cls):
    """In an epoch of 128 it is a learner told T = 128 that starts at the present point."""
    ball = dw.L2Ball(3)
    losses = rotating_quadratics(ball, 64 + 128 + 40, turns=1.0).losses
    learner = cls(ball, lipschitz=2.0)
    for start, horizon in ((0, 64), (64, 128), (192, 256)):
        told = cls(ball, horizon=horizon, lipschitz=2.0)
        if start:
            told._begin(Epoch(0, horizon, 0), learner.decision)
        for loss in losses[start : start + horizon]:
            np.testing.assert_allclose(learner.decision, told.decision, atol=1e-9 * (start > 0))
            learner.update(loss)
            told.update(loss)
        np.testing.assert_allclose(learner.decision, told.decision, atol=1e-9)


# -- covers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [dw.POLA, dw.learners.SAOL, dw.learners.PAMO])
def test_in_round_t_one_expert_is_awake_for_every_power_of_two_up_to_t(cls):
    learner = cls(dw.L2Ball(2), lipschitz=1.0)
    for t in range(1, 131):
        lengths = [2**k for k in range(t.bit_length())]
        assert learner.expert_names == [f"{n} round{'s' * (n > 1)}" for n in lengths]
        assert learner._lengths == lengths and learner.expert_weights.size == len(lengths)
        learner.update(LinearLoss([0.6, -0.8]))


def heaviest_and_longest(learner):
    """Of the experts whose weight is the largest up to 1e-9, the last: intervals only grow longer."""
    weights = learner.expert_weights
    return max(i for i, w in enumerate(weights) if w >= max(weights) * (1.0 - 1e-9))


def test_new_experts_of_a_factored_set_start_at_the_heaviest_experts_point():
    domain = dw.TraceNormBall((12, 10), radius=6.0, representation="factored")
    learner = dw.POLA(domain, lipschitz=3.0)
    for loss in absolute_entries(domain, 20).losses:
        heaviest = learner._experts.point(heaviest_and_longest(learner))
        learner.update(loss)
        fresh = int(np.flatnonzero(learner._experts.clocks == 0)[0])
        np.testing.assert_array_equal(as_array(learner._experts.point(fresh)), as_array(heaviest))


# -- tuning ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["paper", "halfspace"])
@pytest.mark.parametrize(
    ("cls", "rounds"), [(dw.BOGDIP, 144), (dw.learners.LOOBOGD, 144), (dw.POLA, 144), (dw.POLD, 24)]
)
def test_certified_constants_leave_a_short_game_where_it_began(cls, rounds, method):
    """3 eps exceeds any squared distance from the centre; the practical tuning moves."""
    domain, slope = dw.L1Ball(3, radius=100.0), LinearLoss([1.0, 0.2, 0.0])
    still = cls(domain, horizon=rounds, lipschitz=2.0, tuning="certified", oracle=method)
    moving = cls(domain, horizon=rounds, lipschitz=2.0, oracle=method)
    for _ in range(rounds):
        still.update(slope)
        moving.update(slope)
    np.testing.assert_array_equal(still.decision, np.zeros(3))
    assert still.lmo_calls == 0
    assert moving.decision[0] < -30.0


SINGLE = ("OGD", "OnlineFrankWolfe", "BOGDIP", "LOOBOGD")
ENSEMBLES = (
    *("POLD", "Ader", "POLA", "POLAR", "SAOL", "PAMO", "MultiOCG"),
    *("OneProjectionAder", "OneProjectionSAOL"),
)


@pytest.mark.parametrize("given", ["auto", 1.0])
@pytest.mark.parametrize("name", [*SINGLE, *ENSEMBLES])
def test_the_lipschitz_constant_is_the_largest_gradient_where_none_or_too_small_a_one_is_given(
    name, given
):
    learner = getattr(dw.learners, name)(dw.L2Ball(2), lipschitz=given)
    largest = 0.0 if given == "auto" else given
    assert learner.lipschitz == largest
    for size in (0.5, 2.0, 1.0, 0.0, 3.0, *[0.1] * 70):  # into another epoch
        learner.update(LinearLoss([0.6 * size, -0.8 * size]))
        largest = max(largest, size)
        assert learner.lipschitz == pytest.approx(largest)


@pytest.mark.parametrize("name", [*SINGLE, *ENSEMBLES, "OneOracleAder"])
def test_once_the_largest_gradient_is_known_steps_are_as_if_it_had_been_given(name):
    """The first gradient is the largest, of norm 2, and no learner has moved before it."""
    rng, domain = np.random.default_rng(9), dw.L1Ball(4)
    weights = {} if name in SINGLE else {"loss_scale": 3.0}
    slopes = [2.0 * unit(rng.standard_normal(4))]
    slopes += [rng.uniform(0.2, 1.9) * unit(rng.standard_normal(4)) for _ in range(79)]
    given, learned = (
        getattr(dw.learners, name)(domain, horizon=80, lipschitz=G, **weights)
        for G in (2.0, "auto")
    )
    for slope in slopes:
        given.update(LinearLoss(slope))
        learned.update(LinearLoss(slope))
        np.testing.assert_allclose(learned.decision, given.decision, atol=1e-9)
    assert np.linalg.norm(given.decision) > 0.01


# -- weights ---------------------------------------------------------------------------------------


def test_hedging_uses_the_certified_range_only_when_told():
    """B = G * diameter on a large set freezes the weights; the learned range does not."""
    ball = dw.L2Ball(2, radius=1e4)
    losses = [LinearLoss([1.0, 0.0])] * 40
    learned = play_all(dw.POLD(ball, horizon=40, lipschitz=1e3), losses)
    certified = play_all(dw.POLD(ball, horizon=40, lipschitz=1e3, loss_scale="certified"), losses)
    prior = ader_prior(learned.expert_weights.size)
    assert np.abs(certified.expert_weights - prior).max() < 1e-2
    assert np.abs(learned.expert_weights - prior).max() > 1e-1


@pytest.mark.parametrize("gauge", ["exact", "bisection"])
def test_pamo_moves_what_can_move_in_a_box_with_a_fixed_side(gauge):
    """The slope along the fixed side costs all points alike, and must not lead out of the box."""
    box = dw.Box([0.0, 1.0, -3.0], [2.0, 1.0, -1.0])
    learner = dw.learners.PAMO(box, lipschitz=2.0, gauge=gauge)
    for _ in range(200):
        learner.update(LinearLoss([1.0, 1.0, 1.0]))
        assert box.contains(learner.decision)
    np.testing.assert_allclose(learner.decision, [0.0, 1.0, -3.0], atol=0.05)


def test_a_coarser_bisection_asks_for_fewer_memberships():
    losses = [dw.losses.LinearLoss([1.0, 0.5])] * 40
    asked = []
    for horizon in (10, 10_000):
        learner = dw.learners.PAMO(dw.L1Ball(2), horizon, lipschitz=2.0)
        dw.play(learner, losses)
        asked.append(learner.oracle_calls.membership)
        assert learner.domain.contains(learner.decision)
    assert asked[0] < asked[1]

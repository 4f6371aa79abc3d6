"""Experts on the ball: what counts as inside the set, arrays for factored points, certified gaps."""

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.ensemble.ball import approach
from driftwolfe.losses import AbsoluteEntries, LinearLoss

LEARNERS = [dw.learners.OneProjectionAder, dw.learners.OneProjectionSAOL]


def entry_losses(shape, rounds):
    rng = np.random.default_rng(4)
    truth = 3.0 * np.outer(rng.standard_normal(shape[0]), rng.standard_normal(shape[1]))
    picks = [tuple(rng.integers(0, size, 15) for size in shape) for _ in range(rounds)]
    signs = np.repeat([1.0, -1.0], -(-rounds // 2))
    return [AbsoluteEntries(*pick, s * truth[pick]) for pick, s in zip(picks, signs, strict=False)]


@pytest.mark.parametrize("cls", LEARNERS)
@pytest.mark.parametrize("options", [{}, {"oracle": dw.Oracle("block", accuracy=1e-9)}])
def test_factored_points_are_played_as_dense_ones_are(cls, options):
    shape, losses = (80, 70), entry_losses((80, 70), 12)  # block projects smaller ones exactly
    dense, factored = (
        cls(dw.TraceNormBall(shape, 8.0, representation=kind), horizon=12, **given)
        for kind, given in (("dense", {}), ("factored", options))
    )
    for loss in losses:
        dense.update(loss)
        factored.update(loss)
        x = factored.decision
        assert isinstance(x, dw.FactoredMatrix)
        # A gap of 1e-9 of the squared distance allows for 3e-5 of the distance.
        apart = 1e-4 * 16.0 if options else 1e-6
        np.testing.assert_allclose(x.toarray(), dense.decision, atol=apart)
    assert x.nuclear_norm() == pytest.approx(8.0)  # on the boundary: gradients were corrected
    assert (factored.lmo_calls > 0) if options else (factored.oracle_calls.projection == 12)


@pytest.mark.parametrize("cls", LEARNERS)
@pytest.mark.parametrize("method", ["corrective", "halfspace", "block"])
def test_certified_gaps_are_small_enough(cls, method):
    """The bound of the certified tuning is that of its tolerances: every run ends within its own."""
    ball = dw.TraceNormBall((80, 70), 8.0, representation="factored")
    learner = cls(ball, 40, 10.0, tuning="certified", oracle=method)
    for loss in entry_losses(ball.shape, 40):
        learner.update(loss)
    tolerance = 16.0**2 / (40 if cls is dw.learners.OneProjectionAder else 32)
    assert learner._experts.tolerance == pytest.approx(tolerance)
    assert learner.lmo_calls > 0
    assert learner._experts.largest_distance == 0.0


def test_a_point_at_rounding_distance_counts_as_inside():
    """The direction to it is rounding, and would take out any part of a gradient."""
    ball, rng = dw.L1Ball(5), np.random.default_rng(0)
    oracle = dw.learners.OneProjectionAder(ball).options.oracle
    y = rng.standard_normal(5)
    y /= np.abs(y).sum()
    for distance, outside in ((0.0, False), (1e-12, False), (1e-3, True)):
        near = approach(ball, oracle, ball.origin(), (1.0 + distance) * y, 0.0, None, (0, 0))
        assert near.outside is outside
        assert near.error <= 1e-11


def test_a_corrected_gradient_never_draws_the_mean_away():
    """Losses that push outwards for ever leave y where it met the boundary, but for one step."""
    learner = dw.learners.OneProjectionAder(dw.L1Ball(3), horizon=400, lipschitz=1.0)
    for _ in range(400):
        learner.update(LinearLoss([-0.6, -0.6, -0.5]))
    away = learner._experts.away
    assert np.abs(learner.decision + away).sum() > 1.0
    assert np.linalg.norm(away) < 0.5


def test_a_restart_leaves_what_an_interrupt_would_bring_back_as_it_was():
    learner = dw.contrib.SACS(dw.L2Ball(3), projections="one")
    for _ in range(4):
        learner.update(LinearLoss([1.0, 0.0, 0.0]))
    experts = learner._experts
    before = vars(experts).copy()
    held = {name: value.copy() for name, value in before.items() if isinstance(value, np.ndarray)}
    experts.restart(slice(1, 2), learner.domain.origin())
    assert experts.squares[1] == 0.0 < held["squares"][1]
    for name, array in held.items():
        np.testing.assert_array_equal(before[name], array, err_msg=name)

"""Online Frank-Wolfe without a horizon: the steps of Weibel et al., and what our bound has of each round."""

import math

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.losses import LinearLoss
from learners.families import ROUNDING, meet, pushed_back, random_signs, signs_against

PUBLISHED = 5.0 / 3.0**0.75  # of G diam T^(3/4), theorem 3.3


def test_it_is_the_published_loop():
    rng, ball, T = np.random.default_rng(0), dw.LinfBall(3, radius=0.7), 60
    learner, d = dw.contrib.AnytimeOFW(ball, lipschitz=2.0), ball.diameter
    x, total = np.zeros(3), np.zeros(3)
    for t in range(1, T + 1):
        g = rng.standard_normal(3) / 3
        learner.update(LinearLoss(g))
        total += g
        corner = -0.7 * np.sign(x + d / 4.0 * (3 / t) ** 0.75 * total)
        x += min(1.0, math.sqrt(3 / t)) * (corner - x)
        np.testing.assert_allclose(learner.decision, x, atol=1e-12)
    assert learner.lmo_calls == T


@pytest.mark.parametrize("G", [1.0, "auto"])
@pytest.mark.parametrize("make", [random_signs, pushed_back, signs_against])
def test_its_bound_holds_at_all_times_and_is_below_the_published_one(make, G):
    here = make(dw.L2Ball(2), 400)
    learner, suffered, total = dw.contrib.AnytimeOFW(here.domain, lipschitz=G), 0.0, np.zeros(2)
    for t in range(here.rounds):
        loss = here.losses(t, learner.decision) if callable(here.losses) else here.losses[t]
        suffered += learner.update(loss)
        total += loss.g
        bound = learner.bound()
        assert suffered + np.linalg.norm(total) <= bound * (1 + ROUNDING)
        if t > 8:
            assert bound <= PUBLISHED * 2.0 * (t + 1) ** 0.75
    for wrong in ({"path_length": 1.0}, {"tau": 3}):
        with pytest.raises(NotImplementedError):
            learner.bound(**wrong)


def test_a_declared_error_of_the_lmo_is_in_the_bound():
    """An oracle that errs towards one side for ever: a third of each error, over the step, per share."""
    sizes = []

    def lmo(direction):
        sizes.append(np.linalg.norm(direction))
        tilted = direction + np.array([0.0, 0.15 * sizes[-1]])
        norm = np.linalg.norm(tilted)
        return -tilted / norm if norm else np.zeros(2)

    here, bounds = random_signs(dw.L2Ball(2), 300), []
    for error in (0.0, 0.3):
        sizes.clear()
        learner = dw.contrib.AnytimeOFW(dw.LMODomain(2, lmo, radius=1.0, error=error))
        played = meet(learner, here)
        bounds.append(learner.bound())
    assert played.regret(played.comparators(1)) <= bounds[1]
    shares = [min(1.0, math.sqrt(3 / t)) * (t / 3) ** 0.75 for t in range(1, here.rounds + 1)]
    assert bounds[1] - bounds[0] == pytest.approx(0.3 / 3.0 * np.dot(shares, sizes), rel=1e-6)

"""Experts that come and go, against a dictionary of them that is filled and emptied literally."""

import math

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe import reference
from driftwolfe.ensemble import GeometricCover
from driftwolfe.losses import LinearLoss, MulticlassLogistic, SquaredDistance

AGREE = 1e-11


def saol(domain, losses, B, G):
    """An expert for every interval, made when it starts and dropped when it has ended."""
    experts, played, last = {}, [], domain.origin()
    for t, loss in enumerate(losses, start=1):
        experts = {interval: e for interval, e in experts.items() if sum(interval) > t}
        for length in GeometricCover().starting(t):
            experts[t, length] = [last, min(0.5, length**-0.5)]
        total = sum(weight for _, weight in experts.values())
        last = sum(weight / total * x for x, weight in experts.values())
        played.append(last)
        for (_, length), expert in experts.items():
            x, weight = expert
            ahead = (loss.value(last) - loss.value(x)) / B
            step = 2 * domain.radius / G / math.sqrt(length) * loss.gradient(x)
            expert[:] = domain.project(x - step), weight * (1 + min(0.5, length**-0.5) * ahead)
    return np.array(played)


def vectors(rounds, seed):
    rng = np.random.default_rng(seed)
    given = rng.standard_normal((rounds, 4)) * (1 + (np.arange(rounds) % 50 > 25))[:, None]
    return [LinearLoss(g) if t % 3 else SquaredDistance(g) for t, g in enumerate(given)]


def classes(rounds, seed):
    rng = np.random.default_rng(seed)
    return [
        MulticlassLogistic(rng.standard_normal((5, 4)), rng.integers(0, 3, 5), 3)
        for _ in range(rounds)
    ]


CASES = {
    "L1 ball": (dw.L1Ball(4), vectors),
    "simplex": (dw.Simplex(4), vectors),
    "trace norm": (dw.TraceNormBall((3, 4), radius=2.0), classes),
    "wide trace norm": (dw.TraceNormBall((3, 4), radius=50.0), classes),
}


@pytest.mark.parametrize("name", CASES)
def test_pola_is_experts_on_the_intervals_of_a_cover(name):
    cover = GeometricCover()
    domain, make = CASES[name]
    losses, B, G = make(300, 1), 40.0, 5.0
    learner = dw.POLA(domain, lipschitz=G, loss_scale=B)
    plain = reference.pola(domain, losses, G, B, oracle=reference.exact_projection)
    for t, loss in enumerate(losses, start=1):
        np.testing.assert_allclose(learner.decision, plain[t - 1], rtol=0, atol=AGREE)
        active = [end - start + 1 for start, end in cover.active(t)]
        lengths = [f"{each} round{'s' * (each > 1)}" for each in active]
        assert learner.expert_names == lengths
        learner.update(loss)


@pytest.mark.parametrize("domain", [dw.L1Ball(4), dw.L2Ball(4, radius=1.5), dw.Simplex(4)])
def test_saol_is_experts_on_the_intervals_of_a_cover(domain):
    losses, B, G = vectors(300, 2), 40.0, 5.0
    learner = dw.learners.SAOL(domain, lipschitz=G, loss_scale=B)
    plain = saol(domain, losses, B, G)
    for t, loss in enumerate(losses):
        np.testing.assert_allclose(learner.decision, plain[t], rtol=0, atol=AGREE)
        learner.update(loss)

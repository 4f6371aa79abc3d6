"""Experts that come and go, against a dictionary of them that is filled and emptied literally."""

import math

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.ensemble import GeometricCover
from driftwolfe.losses import LinearLoss, MulticlassLogistic, SquaredDistance
from learners.plain import BlockedExpert, Multiplicative, NormalHedge

AGREE = 1e-11


def looped(cover, domain, losses, meta, length_to_plan):
    """An expert for every interval, made when it starts and dropped when it has ended."""
    experts, played, last = {}, [], domain.origin()
    for t, loss in enumerate(losses, start=1):
        experts = {interval: e for interval, e in experts.items() if interval[1] >= t}
        for length in cover.starting(t):
            eta, block = length_to_plan(length)
            expert = BlockedExpert(last, eta, block)
            experts[t, t + length - 1] = [expert, meta.fresh(length), length]
        weights = np.array([meta.weight(state) for _, state, _ in experts.values()])
        weights /= weights.sum()
        x = sum(w * e.x for w, (e, _, _) in zip(weights, experts.values(), strict=True))
        played.append(x)
        for entry in experts.values():
            own, state, length = entry
            ahead = loss.value(x) - loss.value(own.x)
            entry[1] = meta.after(state, ahead, length)
            own.take(loss.gradient(own.x), domain.project)
        last = x
    return np.array(played)


def descents(D, G):
    def plan(length):
        h = length**-0.75
        return D / G * h, max(1, math.floor(h ** (-2 / 3) * (1 + 1e-12)))

    return plan


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
    plain = looped(cover, domain, losses, NormalHedge(B), descents(2 * domain.radius, G))
    for t, loss in enumerate(losses, start=1):
        np.testing.assert_allclose(learner.decision, plain[t - 1], rtol=0, atol=AGREE)
        ends = sorted(interval.end for interval in cover.active(t))
        assert sorted(learner.expert_ends) == ends
        learner.update(loss)


def test_saol_is_experts_on_the_intervals_of_a_cover():
    cover = GeometricCover()
    domain, B, G = dw.L1Ball(4), 40.0, 5.0
    losses = vectors(300, 2)
    learner = dw.SAOL(domain, lipschitz=G, loss_scale=B)
    steps = lambda length: (2 * domain.radius / G / math.sqrt(length), 1)  # noqa: E731
    plain = looped(cover, domain, losses, Multiplicative(B), steps)
    for t, loss in enumerate(losses):
        np.testing.assert_allclose(learner.decision, plain[t], rtol=0, atol=AGREE)
        learner.update(loss)

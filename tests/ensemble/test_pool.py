"""Experts of several kinds in one table: each against its inequality in docs/theory/polar.md, on games."""

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe import bounds
from driftwolfe.bounds.ensembles import Measured, optimistic_regret
from driftwolfe.domains import CountedDomain
from driftwolfe.ensemble.dense import PoolDescent
from driftwolfe.ensemble.plan import ADAPTIVE, FOREVER, OPTIMISTIC, VERTEX, Plan, ProjectionConfig
from driftwolfe.losses import LinearLoss

SETS = {"ball": dw.L2Ball(3, radius=2.0), "line": dw.Box([-1.0], [1.0]), "simplex": dw.Simplex(3)}
ROUNDS = 200


def away(x, domain, t, rng):
    """Against the point played, or where that is the centre anywhere."""
    g = x - domain.origin()
    return g / np.linalg.norm(g) if np.linalg.norm(g) > 1e-9 else rng.standard_normal(x.shape)


def alternating(x, domain, t, rng):
    return np.where(np.arange(x.size) % 2, 1.0, -1.0) * (-1.0) ** t


def drifting(x, domain, t, rng):
    return rng.standard_normal(x.shape) + 0.3


FACTORS = {
    "even": lambda t: 1.0,
    "an outlier": lambda t: 1e3 if t == 20 else 1.0,
    "growing": lambda t: 1e9 ** (t / ROUNDS),
    "shrinking": lambda t: 1e-9 ** (t / ROUNDS),
    "zeros, then huge": lambda t: 1e9 if t > 50 else 0.0,
}


def expert(domain, plan, step_scale=None):
    """One expert of a pool that projects exactly, from the centre."""
    made = PoolDescent(CountedDomain(domain), ProjectionConfig("exact"), step_scale)
    made.add(domain.origin(), [plan])
    return made


def play(made, domain, rule, factor, rng):
    """Return the regret against the best fixed point, against one for each half, and its path."""
    slopes, paid = [], 0.0
    for t in range(ROUNDS):
        g = domain.tangent(factor(t) * rule(made.point(0), domain, t, rng))
        paid += float(g @ made.point(0))
        made.step(LinearLoss(g), g[None])
        slopes.append(g)
    halves = [np.sum(slopes[: ROUNDS // 2], 0), np.sum(slopes[ROUNDS // 2 :], 0)]
    best = [domain.lmo(half) for half in halves]
    moving = paid - sum(float(half @ u) for half, u in zip(halves, best, strict=True))
    static = paid - float(sum(halves) @ domain.lmo(sum(halves)))
    return static, moving, float(np.linalg.norm(best[1] - best[0]))


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("name", SETS)
def test_an_adaptive_expert_keeps_its_inequality_whatever_the_sizes(name, factor):
    domain, rng, worst = SETS[name], np.random.default_rng(0), 0.0
    for rule in (away, alternating, drifting):
        for h, block in ((0.25, 1), (0.5, 1), (1.0, 1), (0.25, 4)):
            made = expert(domain, Plan(h, block, 0.0, rule=ADAPTIVE))
            static, _, _ = play(made, domain, rule, FACTORS[factor], rng)
            D, squares = 2 * domain.radius, float(made.squares[0])
            found = bounds.adaptive_descent(D, squares, h, block)
            assert static <= found * (1 + 1e-9)
            worst = max(worst, static / found)
    assert worst > 0.1


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("name", SETS)
def test_an_optimistic_expert_keeps_its_inequality(name, factor):
    domain, rng = SETS[name], np.random.default_rng(0)
    for rule in (away, alternating, drifting):
        for block in (1, 4):
            plan = Plan(ROUNDS**-0.5, block, 0.0, rule=OPTIMISTIC)
            made = expert(domain, plan)
            static, moving, path = play(made, domain, rule, FACTORS[factor], rng)
            D, G = 2 * domain.radius, made.largest_gradient
            known = Measured(G, D, domain.diameter, D / G, True, 0.0, 1.0, G, 0.0)
            assert static <= optimistic_regret(plan, known, ROUNDS)
            assert moving <= optimistic_regret(plan, known, ROUNDS, path)


def test_a_vertex_expert_needs_no_radius():
    """It goes its part of the way; others measure their steps by the vertices that it has met."""
    domain = dw.LMODomain(3, dw.L1Ball(3).lmo, radius=500.0)
    made = PoolDescent(CountedDomain(domain), ProjectionConfig("corrective", 0.1), None)
    made.add(domain.origin(), [Plan(0.25, FOREVER, 0.0, rule=VERTEX)])
    for t in range(5):
        g, x = np.array([1.0, -2.0, 0.5]) * (-1) ** t, made.point(0)
        made.step(LinearLoss(g), g[None])
        np.testing.assert_allclose(made.point(0), x + 0.25 * (dw.L1Ball(3).lmo(g) - x), atol=1e-15)
    assert made.reach == 2.0 and made.domain.calls.lmo == 5
    known = expert(dw.L2Ball(3, radius=2.0), Plan(0.25, FOREVER, 0.0, rule=VERTEX))
    known.farthest = 0.5  # where bounds hold, steps are measured by the radius
    assert known.reach == 4.0


def test_polar_is_not_lost_where_the_radius_is_a_guess():
    """A thousand times too large: at most three times the regret of the right one; lazy experts alone lose more."""
    regrets = []
    for radius, kinds in ((1.0, None), (1000.0, None), (1000.0, ("lazy",))):
        rng, ball = np.random.default_rng(0), dw.L1Ball(5)
        learner = dw.POLAR(dw.LMODomain(5, ball.lmo, radius), experts=kinds)
        targets = [ball.project(rng.standard_normal(5)) for _ in range(3)]
        losses = [dw.losses.SquaredDistance(targets[t // 60]) for t in range(180)]
        regrets.append(sum(learner.update(loss) for loss in losses))
    assert 2.0 * regrets[1] < 6.0 * regrets[0] < regrets[2], regrets

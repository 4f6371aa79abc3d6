"""Budgets of linear minimisations: what is promised of them beyond the bounds on regret."""

import math

import numpy as np
import pytest

import driftwolfe as dw
from benchmarks.budget.streams import STREAMS
from contracts.learner_cases import Along, more_domains
from driftwolfe.ensemble.list import EvenDescent
from driftwolfe.ensemble.plan import Plan, ProjectionConfig
from learners.families import meet, pushed_back, switching_costs, vertex_against

SETS = {
    "l1": dw.L1Ball(6),
    "l2": dw.L2Ball(4),
    "simplex": dw.Simplex(8),
    "birkhoff": dw.BirkhoffPolytope(3),
    "trees": dw.SpanningTreePolytope(4),
}
ARENAS = {
    "switching": lambda domain, T: switching_costs(domain, T, pieces=4),
    "pushed-back": pushed_back,
    "vertex-against": vertex_against,
}


def test_static_regret_with_one_call_a_round():
    T = 4096
    learner = dw.BOGDIP(dw.L2Ball(2), T, 1.0, tuning="certified", oracle=dw.Oracle(lmo_budget=1.0))
    played = meet(learner, pushed_back(dw.L2Ball(2), T))
    assert learner.lmo_calls > 0
    assert learner.bound() <= 1.80 * 2.0 * T**0.75  # from T = 1225 on, rounding included
    assert played.regret(played.comparators(1)) <= learner.bound()


@pytest.mark.parametrize(
    ("cls", "name", "place"),
    [  # quick: each learner on each set in one of the arenas
        pytest.param(
            *(cls, name, place),
            id=f"{cls.__name__}-{name}-{place}",
            marks=() if (i + j + k) % 3 == 0 else pytest.mark.slow,
        )
        for i, cls in enumerate([dw.BOGDIP, dw.POLD, dw.POLA])
        for j, name in enumerate(SETS)
        for k, place in enumerate(ARENAS)
    ],
)
def test_an_even_schedule_brings_every_call_in_its_round(cls, name, place):
    """At most one call a round for a budget of 1, and no run too late, as the tolerance is wide."""
    T = 150
    arena = ARENAS[place](SETS[name], T)
    for budget in (1.0, 100.0):
        settings = {"tuning": "certified", "oracle": dw.Oracle(lmo_budget=budget, schedule="even")}
        learner = cls(arena.domain, horizon=T, lipschitz=arena.lipschitz, **settings)
        losses = arena.losses
        for t in range(T):
            before = learner.lmo_calls
            learner.update(losses(t, learner.decision) if callable(losses) else losses[t])
            brought = math.floor(budget * (t + 1)) - math.floor(budget * t)
            assert learner.lmo_calls - before <= brought
            experts = learner._experts
            # In time means: what is played lies beside its target, point 2 of the contract.
            for x, y, tolerance in zip(experts.x, experts.y, experts.tolerances, strict=True):
                assert np.sum((x - y) ** 2) <= tolerance * (1 + 1e-9)
        assert experts.missed == 0
        assert experts.largest_distance == 0.0
    assert learner.lmo_calls > 0 or place == "pushed-back"  # which stays near the centre


def test_a_run_that_comes_too_late_is_counted():
    """Its share affords no call at all: x stays, y is the target, and the distance is kept."""
    experts = EvenDescent(dw.L2Ball(2), ProjectionConfig("halfspace", budget=0.01, even=True), 1.0)
    experts.add(np.zeros(2), [Plan(0.1, 4, 1e-4, 0.01)])
    for t in range(1, 17):
        experts.step(dw.losses.LinearLoss([1.0, 0.0]), 1.0, shared=True)
        # A block's sum is 4: after 8, 12 and 16 rounds y is where 1, 2, 3 steps of 0.4 lead.
        far = 0.4 * max(0, t // 4 - 1)
        assert experts.missed == max(0, t // 4 - 1)
        np.testing.assert_array_equal(experts.x[0], np.zeros(2))
        np.testing.assert_allclose(experts.y[0], [-min(1.0, far), 0.0], atol=1e-15)
        assert experts.largest_distance == pytest.approx(min(1.0, far))


def test_a_larger_budget_serves_better():
    """On a drifting target, and near what no budget at all gives."""
    rng = np.random.default_rng(0)
    target = [np.eye(30)[t // 60] + 0.05 * rng.standard_normal(30) for t in range(180)]
    losses = [dw.losses.SquaredDistance(point) for point in target]

    def suffered(cls, **settings):
        return dw.play(cls(dw.Simplex(30), horizon=180, **settings), losses).losses.sum()

    for cls in (dw.POLA, dw.learners.OneOracleAder):
        few, some, many = (suffered(cls, oracle=dw.Oracle(lmo_budget=b)) for b in (0.02, 0.3, 4.0))
        assert many < some < few
    assert suffered(dw.POLA, oracle=dw.Oracle(lmo_budget=1.0)) < 1.1 * suffered(dw.POLA)


def test_known_vertices_save_calls():
    arena = switching_costs(dw.Simplex(12), 300, pieces=3)
    calls = {}
    for size in (0, 16):
        learner = dw.POLA(dw.CachedDomain(arena.domain, size), oracle="halfspace")
        meet(learner, arena)
        calls[size] = learner.lmo_calls
    assert calls[16] < 0.7 * calls[0]


@pytest.mark.parametrize("budget", [0.0, -1.0, math.nan, math.inf, "many"])
def test_a_budget_is_a_positive_number(budget):
    with pytest.raises((ValueError, TypeError), match="lmo_budget"):
        dw.Oracle(lmo_budget=budget)


def test_what_does_not_go_together_is_refused():
    ball = dw.L1Ball(3)
    cached, even = dw.CachedDomain(ball, 3), {"lmo_budget": 1.0, "schedule": "even"}
    for make, told in (
        (lambda: dw.POLD(ball, oracle=dw.Oracle(schedule="odd")), "schedule must be one of"),
        (lambda: dw.Oracle("blocks"), 'method must be one of "auto", "paper"'),
        (lambda: dw.POLD(ball, oracle=dw.Oracle(schedule="even")), r"give lmo_budget=1\.0"),
        (lambda: dw.POLA(ball, oracle=dw.Oracle("paper", **even)), "method must be one of"),
        (lambda: dw.POLA(cached, oracle="block"), "method must be one of"),
        (lambda: dw.POLA(cached, oracle=dw.Oracle(**even)), 'schedule must be one of "blocks"'),
        (
            lambda: dw.POLAR(ball, oracle=dw.Oracle(**even)),
            'for POLAR, schedule must be one of "blocks"',
        ),
        (lambda: dw.Ader(cached, 10), "Ader has no budget of LMO calls and no cache"),
    ):
        with pytest.raises(ValueError, match=told):
            make()
    with pytest.raises(TypeError, match=r"give driftwolfe\.CachedDomain\(domain, 3\)"):
        dw.Oracle(cache=3)
    one = dw.learners.OneOracleAder(ball, 10, oracle="corrective")
    assert one.options.oracle.budget == 1.0


# -- POLAR -----------------------------------------------------------------------------------------


def pulls(domain, rounds, pieces=3, seed=0):
    """Losses on a set of any kind, towards a vertex that changes."""
    rng = np.random.default_rng(seed)
    shapes = domain.shape if isinstance(domain, dw.ProductDomain) else [domain.shape]
    vertices = []
    for _ in range(pieces):
        parts = [rng.standard_normal(shape) for shape in shapes]
        vertices.append(domain.lmo(parts if isinstance(domain, dw.ProductDomain) else parts[0]))
    order = [t * pieces // rounds for t in range(rounds)]
    return [Along(vertices[p], rng.normal(2.0, 1.0)) for p in order]


@pytest.mark.parametrize(
    ("name", "tuning"),
    [  # quick: on each set one tuning
        pytest.param(name, tuning, marks=pytest.mark.slow if (i + j) % 2 else ())
        for i, name in enumerate(more_domains())
        for j, tuning in enumerate(["practical", "certified"])
    ],
)
def test_polar_never_exceeds_its_budget(name, tuning):
    domain, T = more_domains()[name], 70
    for budget in (0.07, 1.0) if tuning == "practical" else (0.5, 7.3):
        settings = {"tuning": tuning, "oracle": dw.Oracle(lmo_budget=budget)}
        if budget in (0.07, 7.3):  # with all experts
            settings |= {"experts": ("lazy", "origin", "agile"), "weights": "sleeping"}
        learner = dw.POLAR(domain, lipschitz=10.0, **settings)
        for t, loss in enumerate(pulls(domain, T), start=1):
            learner.update(loss)
            assert learner.lmo_calls <= budget * t
        assert learner.lmo_calls > 0 or tuning == "certified"


def test_a_refused_loss_changes_no_share_of_polars_budget():
    class Refused(dw.losses.LinearLoss):
        def slope_at(self, scores):
            raise ArithmeticError("no slope")

    learner = dw.POLAR(dw.BirkhoffPolytope(3), oracle=dw.Oracle(lmo_budget=0.7))
    losses = pulls(learner.domain, 100)
    dw.play(learner, losses[:60])
    before, other = learner._experts.reserved.copy(), learner.clone()
    with pytest.raises(ArithmeticError, match="no slope"):
        learner.update(Refused(np.ones((3, 3))))
    np.testing.assert_array_equal(learner._experts.reserved, before)
    for loss in losses[60:]:
        assert learner.update(loss) == other.update(loss)
    assert (learner._experts.reserved != before[0]).any()
    assert learner._experts.reserved.sum() == pytest.approx(0.7)


def test_certified_polar_has_fixed_parts():
    learner = dw.POLAR(
        dw.L1Ball(6), lipschitz=1.0, tuning="certified", oracle=dw.Oracle(lmo_budget=3.0)
    )
    arena = switching_costs(dw.L1Ball(6), 70, pieces=3)
    meet(learner, arena)
    # The whole game, then epochs of 8, 16, 32 and 64 rounds.
    np.testing.assert_allclose(learner._experts.reserved, [3 / (i * (i + 1)) for i in range(1, 6)])


def test_polar_caches_vertices_where_calls_are_few():
    def cached(domain, **settings):
        oracle = dw.POLAR(domain, lipschitz=1.0, **settings).options.oracle
        return oracle.method, oracle.cached_vertices

    ball = dw.L1Ball(3)
    one = dw.Oracle(lmo_budget=1.0)
    assert cached(ball) == ("auto", 0)
    assert cached(ball, oracle=one) == ("corrective", 64)
    for size in (0, 5):
        assert cached(dw.CachedDomain(ball, size), oracle=one) == ("corrective", size)
    assert cached(dw.CachedDomain(ball, 5)) == ("corrective", 5)
    assert cached(ball, oracle=dw.Oracle("halfspace", lmo_budget=1.0)) == ("halfspace", 0)
    assert cached(ball, oracle=one, tuning="certified")[1] == 0
    assert cached(dw.TraceNormBall((3, 4)), oracle=one) == ("corrective", 0)
    assert cached(dw.ProductDomain([ball, ball]), oracle=one) == ("halfspace", 0)
    assert dw.POLA(ball, oracle=one).options.oracle.cached_vertices == 0


def dynamic_regret(learner, stream):
    losses = dw.play(learner, stream, keep_losses=False, progress=False).losses
    pairs = zip(stream.losses, stream.comparators, strict=True)
    return losses.sum() - sum(f.value(u) for f, u in pairs)


@pytest.mark.parametrize("name", ["vectors", pytest.param("flows", marks=pytest.mark.slow)])
def test_polar_has_the_least_regret_with_one_call_per_round(name):
    stream = STREAMS[name](500, 3)
    ours = dynamic_regret(dw.POLAR(stream.domain, oracle=dw.Oracle(lmo_budget=1.0)), stream)
    assert ours < dynamic_regret(dw.POLA(stream.domain, oracle=dw.Oracle(lmo_budget=1.0)), stream)
    assert ours < dynamic_regret(dw.learners.OneOracleAder(stream.domain, 500), stream)

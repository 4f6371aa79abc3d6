"""Theorems as tests: measured regret stays below every bound, for every learner that has one."""

import functools
import itertools

import numpy as np
import pytest

import driftwolfe as dw
from contracts.learner_cases import suits
from driftwolfe.losses import LinearLoss, SquaredDistance
from driftwolfe.points import FactoredMatrix
from learners.contenders import CONTENDERS, LEADING, make
from learners.families import (
    ROUNDING,
    absolute_entries,
    bound_after,
    growing_slopes,
    linear_arena,
    meet,
    orthogonal,
    path_length,
    piecewise_constant_targets,
    pushed_back,
    random_signs,
    rotating_quadratics,
    signs_against,
    switching_costs,
    vertex_against,
)

EDGES = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4)]

#: Cheap enough for every contender.
ARENAS = {
    "signs-l1": lambda: random_signs(dw.L1Ball(5, radius=2.0), 100),
    "signs-simplex": lambda: random_signs(dw.Simplex(4), 60, G=3.0),
    "rotating-l2": lambda: rotating_quadratics(dw.L2Ball(3, radius=2.0), 70),
    "growing-l2": lambda: growing_slopes(dw.L2Ball(3), 100),
    "pieces-l1": lambda: piecewise_constant_targets(dw.L1Ball(4), 70),
    "pushed-back-l2": lambda: pushed_back(dw.L2Ball(3, radius=0.5), 150, G=2.0),
    "vertex-against-simplex": lambda: vertex_against(dw.Simplex(4, radius=3.0), 70),
}
#: For those that are quick.
LONG_ARENAS = {
    "signs-l2-long": lambda: random_signs(dw.L2Ball(3), 700),
    "pushed-back-l2-long": lambda: pushed_back(dw.L2Ball(2), 700),
}
QUICK = (
    *("ogd", "bogd", "bogd-halfspace", "pold-certified-linear", "ader-linear", "pola-linear"),
    *("ofw", "bogd-budget", "pold-budget", "pold-budget-even", "one-oracle", "polar-auto"),
    *("polar-sleeping",),
)
#: For one contender of each class.
DEAR_ARENAS = {
    "signs-l2": lambda: random_signs(dw.L2Ball(3), 200),
    "orthogonal-l2": lambda: orthogonal(dw.L2Ball(4), 200),
    "signs-against-l1": lambda: signs_against(dw.L1Ball(6), 100),
    "rotating-birkhoff": lambda: rotating_quadratics(dw.BirkhoffPolytope(3), 60),
    "vertex-against-birkhoff": lambda: vertex_against(dw.BirkhoffPolytope(3), 60),
    "pieces-trees": lambda: piecewise_constant_targets(dw.SpanningTreePolytope(4), 60),
    "routes": lambda: switching_costs(dw.FlowPolytope(EDGES, 0, 4), 100, pieces=3),
    "absolute-dense": lambda: absolute_entries(dw.TraceNormBall((6, 5), radius=4.0), 150),
    "absolute-factored": lambda: absolute_entries(
        dw.TraceNormBall((12, 10), radius=6.0, representation="factored"), 60, observed=20
    ),
}
NO_FACTORED = (dw.learners.MultiOCG,)  # minutes, and nothing new
ADAPTIVE = (
    *(dw.BOGDIP, dw.POLA, dw.POLAR, dw.learners.SAOL, dw.learners.PAMO),
    *(dw.learners.OneProjectionSAOL, dw.contrib.SACS),
)
DYNAMIC = (
    *(*ADAPTIVE, dw.OGD, dw.POLD, dw.Ader, dw.learners.MultiOCG, dw.learners.OneOracleAder),
    *(dw.learners.OneProjectionAder, dw.contrib.Sword, dw.contrib.Scream),
    *(dw.contrib.SmoothedOGD, dw.contrib.DiscountedAdaptive),
)
PIECES = (1, 2, 5, 20)


def cases(*classes):
    everywhere = [(name, place) for name in CONTENDERS for place in ARENAS]
    somewhere = [(name, place) for name in LEADING for place in DEAR_ARENAS]
    long = [(name, place) for name in QUICK for place in LONG_ARENAS]
    return [
        pytest.param(name, place, id=f"{name}-{place}", marks=marks(name, place))
        for name, place in everywhere + somewhere + long
        if issubclass(CONTENDERS[name][0], classes) and playable(CONTENDERS[name][0], place)
    ]


def marks(name, place):
    """Quick: leading contenders on half of the cheap arenas and a third of the others, the rest in turn."""
    numbers = list(CONTENDERS).index(name) + list(ARENAS | DEAR_ARENAS | LONG_ARENAS).index(place)
    every = 3 if place not in ARENAS else 2 if name in LEADING else 4
    return () if numbers % every == 0 else pytest.mark.slow


@functools.cache
def arena(place):
    return (ARENAS | DEAR_ARENAS | LONG_ARENAS)[place]()


def playable(cls, place):
    domain = arena(place).domain
    factored = isinstance(domain.origin(), FactoredMatrix)
    return suits(cls, domain) and not (factored and cls in NO_FACTORED)


@functools.cache
def game(name, place):
    return meet(make(name, arena(place)), arena(place))


def vacuous(learner):
    """Whether it is a POLAR of which nothing useful is proved."""
    polar = isinstance(learner, dw.POLAR)
    return polar and not (learner._experts.exact or learner.options.certified)


def holds(regret, bound):
    return regret <= bound * (1.0 + ROUNDING)


@pytest.mark.parametrize(("name", "place"), cases(*DYNAMIC))
def test_dynamic_regret_and_that_of_the_worst_window_are_below_the_bound(name, place):
    played = game(name, place)
    rounds = len(played.losses)
    if vacuous(played.learner):
        with pytest.raises(NotImplementedError, match='use tuning="certified"'):
            played.learner.bound()
        return
    for pieces in (*PIECES, rounds):
        comparators = played.comparators(pieces)
        bound = played.learner.bound(path_length=path_length(comparators))
        assert holds(played.regret(comparators), bound), pieces
    if not isinstance(played.learner, ADAPTIVE):
        return
    if isinstance(played.learner, dw.POLAR) and not {"lazy", "origin"} & {*played.learner.kinds}:
        with pytest.raises(NotImplementedError):  # no expert restarts
            played.learner.bound(tau=7)
        return
    for tau in (1, 7, 32, rounds):
        assert holds(played.window_regret(tau), played.learner.bound(tau=tau)), tau


@pytest.mark.parametrize(("name", "place"), cases(dw.OnlineFrankWolfe, dw.contrib.AnytimeOFW))
def test_static_regret_is_below_the_bound(name, place):
    played = game(name, place)
    assert holds(played.regret(played.comparators(1)), played.learner.bound())


def variation(losses, domain):
    """Sum of the largest changes; differences of these losses are linear, so it is exact."""
    total = 0.0
    for before, now in itertools.pairwise(losses):
        slope = before.target - now.target if hasattr(now, "target") else now.g - before.g
        shift = now.value(np.zeros(domain.shape)) - before.value(np.zeros(domain.shape))
        ends = (domain.lmo(slope), domain.lmo(-slope))
        total += max(abs(float(np.vdot(slope, v)) + shift) for v in ends)
    return total


SMOOTH = ("rotating-l2", "pieces-l1", "rotating-birkhoff", "pieces-trees")
LINEAR = ("signs-simplex", "routes")


@pytest.mark.parametrize("place", SMOOTH + LINEAR)
@pytest.mark.parametrize(
    ("cls", "settings"),
    [
        (dw.learners.KalhanOFW, {}),
        (dw.learners.LineSearchOFW, {"smoothness": 1.0}),
        (dw.learners.LineSearchOFW, {"smoothness": 2.0}),
        (dw.learners.MultiOCG, {"tuning": "certified"}),
    ],
    ids=["kalhan", "line-search", "line-search-careful", "multi-ocg"],
)
def test_regret_against_every_minimiser_is_below_the_bound_by_variation(cls, settings, place):
    here = arena(place)
    learner = cls(here.domain, horizon=here.rounds, lipschitz=here.lipschitz, **settings)
    played = meet(learner, here)
    minimisers = played.comparators(here.rounds)
    drift, first = variation(played.losses, here.domain), played.losses[0]
    known = {"variation": drift, "first_gap": played.suffered[0] - first.value(minimisers[0])}
    if cls is dw.learners.KalhanOFW:
        known["smoothness"] = 1.0
    if cls is dw.learners.MultiOCG:
        known = {"path_length": 2.0 * drift / learner.lipschitz}
    assert holds(played.regret(minimisers), learner.bound(**known))


@pytest.mark.parametrize("name", ["ogd", "bogd-halfspace", "pold", "ader", "pola"])
def test_the_bounds_hold_by_the_streams_and_measures_of_the_library(name):
    make_up, ball = dw.streams.synthetic, dw.L1Ball(4)
    cls, settings = CONTENDERS[name]
    for stream in (
        make_up.linear_signs(ball, 60, changes=3, seed=0),
        make_up.hard_linear(ball, 60, seed=0),
        make_up.rotating_quadratic(ball, 60, speed=0.2, seed=0),
        make_up.piecewise_constant(ball, 60, seed=0),
        make_up.drifting_logistic((3, 4), 60, rows=3, radius=2.0, seed=0),
        make_up.absolute_entries((6, 5), rank=2, radius=4.0, rounds=60, per_round=8, seed=0),
    ):
        learner = cls(stream.domain, horizon=60, lipschitz=stream.lipschitz, **settings)
        history = dw.play(learner, stream)
        regret = dw.regret.dynamic_regret(history, stream.comparators)
        bound = learner.bound(path_length=dw.regret.path_length(stream.comparators))
        assert holds(regret, bound), stream
        assert learner.lipschitz == stream.lipschitz, stream


# -- bounds that mean something ------------------------------------------------------------------


CERTIFIED = {"tuning": "certified", "oracle": "halfspace"}


@pytest.mark.parametrize(
    ("cls", "settings"),
    [
        (dw.OGD, {}),
        (dw.Ader, {"tuning": "certified"}),
        (dw.OnlineFrankWolfe, {}),
        (dw.BOGDIP, {}),
        (dw.POLD, {}),
        (dw.POLAR, {}),
        (dw.POLAR, {"weights": "sleeping", "loss_scale": "certified"}),
        (dw.learners.MultiOCG, {"tuning": "certified"}),
    ],
)
def test_a_learner_that_steps_the_wrong_way_breaks_its_bound(cls, settings):
    """The regret of a wrong sign is the trivial one: these tests can fail."""
    rounds, slope = 600, np.array([0.6, 0.8])
    learner = cls(dw.L2Ball(2), horizon=rounds, lipschitz=1.0, **settings)
    suffered = 0.0
    for _ in range(rounds):
        suffered -= learner.update(LinearLoss(-slope))
    assert suffered + rounds > learner.bound()


def test_a_step_far_too_large_breaks_the_bound_of_the_right_one():
    rounds = 400
    arena = linear_arena(dw.L2Ball(1), [[(-1.0) ** t] for t in range(rounds)], 1.0)
    right = meet(dw.OGD(arena.domain, horizon=rounds, lipschitz=1.0), arena)
    wrong = meet(dw.OGD(arena.domain, horizon=rounds, step_scale=100.0), arena)
    bound = right.learner.bound()
    assert right.regret(right.comparators(1)) <= bound
    assert wrong.regret(wrong.comparators(1)) > 3.0 * bound
    assert wrong.regret(wrong.comparators(1)) <= wrong.learner.bound()


def test_a_projection_cut_short_stays_in_the_bound_after_a_restart():
    """Frank-Wolfe with 200 calls leaves x far from a y inside this set: later epochs remember."""
    corner = np.eye(40)[0]
    domain = dw.LMODomain(40, dw.Simplex(40).lmo, radius=np.sqrt(2.0), center=corner)
    for cls, share in ((dw.BOGDIP, np.linspace(0.5, 1.5, 40) / 40), (dw.POLD, np.ones(40) / 40)):
        learner = cls(domain, lipschitz=1.0, oracle="halfspace")
        bounds = []
        for t in range(70):
            learner.update(LinearLoss((corner - share) * (t < 8)))
            bounds.append(learner.bound())
        asked_only = cls(domain, lipschitz=1.0, oracle="halfspace")
        assert bounds[-1] > bound_after(asked_only, 70)
        assert np.all(np.diff(bounds) > 0)


def test_experts_with_rough_projections_do_not_loosen_the_bound_of_fine_ones():
    """Large steps come with large tolerances; the best expert's bound is from its own."""
    learner = dw.POLD(dw.L2Ball(3), horizon=1000, lipschitz=1.0, **CERTIFIED)
    unplayed = bound_after(learner.clone(), 1000)
    meet(learner, pushed_back(dw.L2Ball(3), 1000))
    assert learner.bound() == pytest.approx(unplayed, rel=1e-12)


@pytest.mark.parametrize(
    ("cls", "horizon", "G"),
    [
        *((cls, 50, 1.0) for cls in (dw.OGD, dw.BOGDIP, dw.POLD, dw.Ader, dw.learners.MultiOCG)),
        *((cls, 200, 10.0) for cls in (dw.OGD, dw.BOGDIP, dw.POLD, dw.Ader)),
    ],
)
def test_the_bound_holds_beyond_the_horizon_and_the_given_constant(cls, horizon, G):
    """G is then the largest norm seen, and the steps are what they are."""
    here = pushed_back(dw.L2Ball(3), 200, G=G)
    settings = {"tuning": "certified"} if cls is dw.learners.MultiOCG else {}
    played = meet(cls(here.domain, horizon=horizon, lipschitz=1.0, **settings), here)
    assert played.learner.lipschitz == pytest.approx(G)
    for pieces in PIECES:
        comparators = played.comparators(pieces)
        bound = played.learner.bound(path_length=path_length(comparators))
        assert holds(played.regret(comparators), bound)


@pytest.mark.parametrize(("cls", "tau"), [(dw.POLA, 7), (dw.learners.SAOL, 1024)])
def test_a_range_too_small_has_no_bound(cls, tau):
    """Where losses differ by more than the given B, regret does exceed what the formula says."""
    here = signs_against(dw.L2Ball(1), 1024)
    small = meet(cls(here.domain, lipschitz=1.0, loss_scale=1e-3), here)
    formula = bound_after(cls(here.domain, lipschitz=1.0, loss_scale=1e-3), 1024, tau=tau)
    assert small.window_regret(tau, windows=1024) > formula
    with pytest.raises(NotImplementedError, match="more than the loss_scale"):
        small.learner.bound(tau=tau)


def test_bounds_that_are_not_known_are_refused():
    ball = dw.L2Ball(2)
    refused = [
        (dw.OGD(ball, horizon=10, lipschitz=1.0), {"tau": 3}),
        (dw.POLD(ball, horizon=10, lipschitz=1.0), {"tau": 3}),
        (dw.OnlineFrankWolfe(ball, lipschitz=1.0), {}),
        (dw.OnlineFrankWolfe(ball, horizon=10, lipschitz=1.0), {"path_length": 1.0}),
        (dw.learners.MultiOCG(ball, lipschitz=1.0), {}),
        (dw.learners.KalhanOFW(ball, horizon=10), {}),
        (dw.learners.LineSearchOFW(ball), {"variation": 1.0}),
    ]
    for learner, wanted in refused:
        learner.update(SquaredDistance(np.array([0.5, 0.5])))
        with pytest.raises(NotImplementedError):
            learner.bound(**wanted)


def test_the_lower_bound_adversary_forces_what_theory_says():
    """No method can do better than G R sqrt(T) here, so the upper bounds are within a constant."""
    here = orthogonal(dw.L2Ball(4), 400)
    played = meet(dw.OGD(here.domain, horizon=400, lipschitz=1.0), here)
    regret = played.regret(played.comparators(1))
    assert regret == pytest.approx(np.sqrt(400))
    assert played.learner.bound() <= 2.5 * regret

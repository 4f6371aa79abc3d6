"""What every learner promises, on every set it can work on."""

import inspect
import re

import numpy as np
import pytest

import driftwolfe as dw
from contracts.learner_cases import (
    LEARNER_CASES,
    NEEDS_PROJECTION,
    NEEDS_SEPARATION,
    device_domains,
    domain_named,
    domains,
    played,
    suits,
)
from driftwolfe.learners import base as learner_base
from driftwolfe.losses import AbsoluteEntries, LinearLoss, SquaredDistance
from driftwolfe.points import FactoredMatrix, norm
from learners.families import budget_of, play_all

ROUNDS = 70  # beyond the first epoch of learners without a horizon

SETS = domains()


def marks(number, name):
    """Quick: first settings on every set, others on vectors and one more set in turn."""
    in_turn = list(SETS)[number % len(SETS)]
    return () if number == 0 or name in ("l1", in_turn) else pytest.mark.slow


CASES = [
    pytest.param(cls, each, name, id=f"{cls.__name__}-{number}-{name}", marks=marks(number, name))
    for cls, cases in LEARNER_CASES.items()
    for number, each in enumerate(cases)
    for name, domain in SETS.items()
    if suits(cls, domain)
]
ONE_EACH = [
    pytest.param(cls, cases[0], name, id=f"{cls.__name__}-{name}")
    for cls, cases in LEARNER_CASES.items()
    for name in ("l1", "factored" if suits(cls, SETS["factored"]) else "trace-norm")
] + [
    pytest.param(cls, LEARNER_CASES[cls][0], name, id=f"{cls.__name__}-{name}")
    for name, (_, classes) in device_domains().items()
    for cls in classes
]


def stream(domain, rounds=ROUNDS, seed=0):
    """Losses that jump: entries of a drifting matrix, or squared distances and linear losses."""
    rng = np.random.default_rng(seed)
    losses = []
    for t in range(rounds):
        sign = 1.0 if t < rounds // 2 else -1.0
        if len(domain.shape) == 2:
            m, n = domain.shape
            rows, cols = rng.integers(0, m, 6), rng.integers(0, n, 6)
            losses.append(AbsoluteEntries(rows, cols, sign * rng.standard_normal(6)))
        elif t % 2:
            losses.append(LinearLoss(sign * rng.standard_normal(domain.shape)))
        else:
            losses.append(SquaredDistance(sign * rng.standard_normal(domain.shape)))
    return losses


def make(cls, settings, domain, horizon=ROUNDS, lipschitz=10.0):
    return cls(domain, horizon=horizon, lipschitz=lipschitz, **settings)


def as_array(point):
    return point.to("cpu").toarray() if isinstance(point, FactoredMatrix) else np.asarray(point)


def test_every_learner_has_a_case():
    homes = (dw.learners, dw.contrib)
    public = {getattr(home, name) for home in homes for name in home.__all__} - {dw.Learner}
    assert public == set(LEARNER_CASES)


@pytest.mark.in_turn("cls settings", "name")
@pytest.mark.parametrize(("cls", "settings", "name"), CASES)
def test_plays_feasible_points_and_reports_what_they_suffer(cls, settings, name):
    domain, rounds = domains()[name], 40
    learner = make(cls, settings, domain, horizon=rounds)
    asked = 0
    for t, loss in enumerate(stream(domain, rounds)):
        assert learner.t == t
        assert domain.contains(learner.decision, atol=1e-8)
        points = played(learner)
        assert all(domain.contains(point, atol=1e-8) for point in points)
        expected = np.mean([loss.value(point) for point in points])
        suffered = learner.update(loss)
        assert isinstance(suffered, float)
        assert suffered == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert learner.lmo_calls == learner.oracle_calls.lmo >= asked
        asked = learner.lmo_calls
        if (budget := budget_of(learner)) is not None:
            assert asked <= budget * (t + 1)
        if (weights := learner.expert_weights) is not None:
            assert weights.sum() == pytest.approx(1.0)
            assert (weights >= 0).all()
    assert learner.domain is domain


@pytest.mark.in_turn("cls", "name")
@pytest.mark.parametrize(("cls", "settings", "name"), ONE_EACH)
def test_is_deterministic_and_clones_are_independent(cls, settings, name):
    domain = domain_named(name)
    losses = stream(domain, rounds=30)
    first, second = make(cls, settings, domain), make(cls, settings, domain)
    for loss in losses[:18]:
        first.update(loss)
        second.update(loss)
    np.testing.assert_array_equal(as_array(first.decision), as_array(second.decision))
    twin = first.clone()
    assert twin.domain is domain
    play_all(first, losses[18:])
    assert twin.t == 18
    np.testing.assert_array_equal(as_array(twin.decision), as_array(second.decision))
    play_all(twin, losses[18:])
    np.testing.assert_array_equal(as_array(first.decision), as_array(twin.decision))
    assert first.oracle_calls == twin.oracle_calls


@pytest.mark.parametrize(
    ("cls", "settings"),
    [
        pytest.param(cls, each, id=f"{cls.__name__}-{number}")
        for cls, cases in LEARNER_CASES.items()
        for number, each in enumerate(cases)
    ],
)
def test_what_a_learner_hands_out_is_the_callers_own(cls, settings):
    domain = domains()["l1"]
    learner = make(cls, settings, domain)
    for loss in stream(domain, rounds=12):
        learner.update(loss)
        for look in (lambda: learner.decision, lambda: learner.expert_weights):
            if (given := look()) is not None:
                before = given.copy()
                given[:] = 99.0
                np.testing.assert_array_equal(look(), before)


@pytest.mark.in_turn("cls", "name")
@pytest.mark.parametrize(("cls", "settings", "name"), ONE_EACH)
def test_works_without_a_horizon_or_a_lipschitz_constant(cls, settings, name, monkeypatch):
    monkeypatch.setattr(learner_base, "FIRST_EPOCH", 16)
    domain, rounds = domain_named(name), 24
    learner = cls(domain, **settings)
    history = dw.play(learner, stream(domain, rounds))
    assert learner.t == len(history) == rounds
    assert domain.contains(learner.decision, atol=1e-8)
    assert np.isfinite(history.losses).all()


@pytest.mark.parametrize("cls", LEARNER_CASES)
def test_a_constant_loss_moves_nobody(cls):
    domain = dw.L1Ball(3)
    learner = cls(domain)
    for _ in range(80):
        assert learner.update(LinearLoss(np.zeros(3))) == 0.0
    assert domain.contains(learner.decision)


@pytest.mark.parametrize("cls", LEARNER_CASES)
def test_bad_options_are_refused(cls):
    domain = dw.L1Ball(3)
    parameters = inspect.signature(cls).parameters
    bad = {
        "horizon": [0, -3, 2.5],
        "lipschitz": [0.0, -1.0, float("nan"), "large"],
        "step_scale": [0.0, -1.0, float("inf")],
        "loss_scale": [0.0, "big", -2.0],
        "oracle": ["magic", 3, None],
        "feedback": ["some"],
        "tuning": ["perfect"],
        "start": ["elsewhere"],
        "grid": ["fine"],
        "gauge": ["guess"],
        "steps": ["giant"],
        "weights": ["heavy"],
        "experts": ["lazy", (), ("eager",), ("lazy", 3), 5, {"lazy"}],
        "smoothness": [0.0],
        "max_inner": [0],
        "strong_convexity": [0.0],
        "projections": ["none"],
        "switching": [0.0],
        "alpha": [0.0],
        "seed": [-1],
        "point": [[9.0, 0.0, 0.0], [0.0, 0.0], "middle"],
        "points": [0, 3],
        "learner": ["POLA"],
        "learners": [3, "POLA"],
        "prior": [[1.0]],
        "exploration": [0.0, 1.5, -0.1],
        "constraint_lipschitz": [0.0, -1.0, float("nan")],
        "discount": [0.0, 1.5],
        "gradients": ["both"],
        "rate": [0.0, float("nan")],
        "ridge": [0.0],
    }
    bad |= dict.fromkeys(("weight", "violation_scale"), bad["constraint_lipschitz"])
    assert parameters.keys() <= {"domain", "options", *bad}
    unused = {
        dw.learners.KalhanOFW: {"lipschitz"},
        dw.learners.LineSearchOFW: {"lipschitz", "horizon"},
    }
    unused[dw.contrib.Mixture] = {"alpha"}
    for name, values in bad.items():
        if name not in parameters or name in unused.get(cls, set()):
            continue
        for value in values:
            with pytest.raises(
                (ValueError, TypeError), match="method" if value == "magic" else name
            ):
                cls(domain, **{name: value})
            if name == "loss_scale":  # also where one could be certified
                with pytest.raises(ValueError, match="loss_scale"):
                    cls(domain, lipschitz=1.0, loss_scale=value)
    with pytest.raises(TypeError, match="domain"):
        cls("not a set")


WITH_ORACLE = [cls for cls in LEARNER_CASES if "oracle" in inspect.signature(cls).parameters]


@pytest.mark.parametrize("cls", WITH_ORACLE)
def test_what_an_oracle_has_is_no_keyword_of_a_learner(cls):
    former = {"accuracy": 0.5, "lmo_budget": 1.0, "schedule": "even", "seed": 1}
    former |= {"tolerance_scale": 0.1}
    for name, value in former.items():
        way = f"{cls.__name__} has no {name}: give oracle=driftwolfe.Oracle({name}={value!r})"
        with pytest.raises(TypeError, match=re.escape(way)):
            cls(dw.L1Ball(3), **{name: value})
    with pytest.raises(TypeError, match=f"{cls.__name__} has no method: give oracle='auto'"):
        cls(dw.L1Ball(3), method="auto")


@pytest.mark.parametrize("cls", WITH_ORACLE)
def test_a_budget_is_kept_or_refused(cls):
    asked = dw.Oracle(lmo_budget=1.0)
    if inspect.signature(cls).parameters["oracle"].default == "auto":
        assert cls(dw.L1Ball(3), oracle=asked).options.oracle.budget == 1.0
        return
    with pytest.raises(ValueError, match=f"{cls.__name__} has no budget of LMO calls"):
        cls(dw.L1Ball(3), oracle=asked)


def test_certified_needs_a_lipschitz_constant():
    with pytest.raises(ValueError, match="lipschitz must be a number"):
        dw.POLD(dw.L1Ball(3), horizon=10, tuning="certified")


@pytest.mark.parametrize("cls", [*NEEDS_PROJECTION, *NEEDS_SEPARATION, dw.learners.PAMO])
def test_sets_that_cannot_serve_a_learner_are_refused(cls):
    with pytest.raises(ValueError, match="needs only linear minimisation"):
        cls(dw.SpanningTreePolytope(4))


@pytest.mark.parametrize("cls", LEARNER_CASES)
def test_a_loss_whose_value_alone_is_no_number_is_refused(cls):
    class NoNumber(LinearLoss):
        def value(self, x):
            return float("nan")

        def value_at(self, scores):
            return float("nan")

    for settings in LEARNER_CASES[cls]:
        learner = make(cls, settings, dw.L1Ball(3))
        learner.update(LinearLoss(np.ones(3)))
        before = learner.decision.copy()
        with pytest.raises(ValueError, match="not finite"):
            learner.update(NoNumber(np.ones(3)))
        assert learner.t == 1 and np.array_equal(learner.decision, before)


def test_experts_of_a_factored_set_are_never_made_dense(monkeypatch):
    def refuse(self):
        raise AssertionError("a factored matrix was made dense")

    monkeypatch.setattr(FactoredMatrix, "toarray", refuse)
    rng = np.random.default_rng(0)
    domain = dw.TraceNormBall((2500, 2000), radius=50.0)  # too large for a full decomposition
    for cls in (dw.POLD, dw.POLA, dw.POLAR, dw.BOGDIP, dw.learners.MultiOCG, dw.OnlineFrankWolfe):
        learner = cls(domain, horizon=6, lipschitz=6.0)
        for _ in range(6):
            rows, cols = rng.integers(0, 2500, 30), rng.integers(0, 2000, 30)
            learner.update(AbsoluteEntries(rows, cols, rng.standard_normal(30)))
        decision = learner.decision
        assert isinstance(decision, FactoredMatrix)
        assert norm(decision) <= domain.radius

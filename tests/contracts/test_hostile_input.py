"""Hostile input: what is refused changes nothing, what is accepted keeps decisions feasible."""

import inspect
import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import driftwolfe as dw
from contracts.graphs import differences
from contracts.hostile import BrokenError, bad_losses, late_losses, wild_losses
from contracts.learner_cases import (
    LEARNER_CASES,
    VALUES_ONLY,
    device_domains,
    domain_named,
    domains,
    suits,
)
from contracts.test_learner_contract import make, stream
from driftwolfe import estimators
from learners.families import play_all

#: What a refusal is where it is no ValueError.
REFUSALS = dict.fromkeys(["value raises", "gradient raises"], BrokenError)
REFUSALS |= dict.fromkeys(["half a loss", "a loss class", "text", "none"], TypeError)

#: Quick: every learner on vectors and factored matrices, and on one of the other two sets in turn.
LEARNERS = [
    pytest.param(
        *(cls, cases[0], name),
        id=f"{cls.__name__}-{name}",
        marks=pytest.mark.slow if name == ("birkhoff", "trace-norm")[number % 2] else (),
    )
    for number, (cls, cases) in enumerate(LEARNER_CASES.items())
    for name in ("l1", "birkhoff", "trace-norm", "factored")
    if suits(cls, domains()[name])
] + [
    pytest.param(cls, LEARNER_CASES[cls][0], name, id=f"{cls.__name__}-{name}")
    for name, (_, classes) in device_domains().items()
    for cls in classes
]
SETTINGS = [
    pytest.param(cls, settings, "l1", id=f"{cls.__name__}-{number}")
    for cls, cases in LEARNER_CASES.items()
    for number, settings in enumerate(cases[1:], start=1)
] + [pytest.param(dw.contrib.Sword, {"gradients": "own"}, "l1", id="Sword-own")]


def bad_losses_for(cls, domain):
    """Those that a learner can notice."""
    for why, bad in bad_losses(domain):
        if cls not in VALUES_ONLY or not why.startswith(("gradient", "half a loss")):
            yield why, bad


def played(cls, settings, domain, rounds=9):
    return play_all(make(cls, settings, domain), stream(domain, rounds))


def assert_unchanged(learner, before, why):
    """Bit by bit, counts of calls and shared arrays included."""
    assert differences(learner, before, sets=False) == [], why


def assert_sound(learner):
    assert learner.domain.contains(learner.decision, atol=1e-7)
    weights = learner.expert_weights
    if weights is not None:
        assert np.isfinite(weights).all()
        assert weights.sum() == pytest.approx(1.0)


@pytest.mark.in_turn("cls settings", "name")
@pytest.mark.parametrize(("cls", "settings", "name"), [*LEARNERS, *SETTINGS])
def test_a_refused_loss_changes_no_bit(cls, settings, name):
    domain = domain_named(name)
    learner = played(cls, settings, domain)
    before = learner.clone()
    for why, bad in bad_losses_for(cls, domain):
        with pytest.raises(REFUSALS.get(why, ValueError)):
            learner.update(bad)
        assert_unchanged(learner, before, why)
    for loss in stream(domain, 5, seed=1):
        assert learner.update(loss) == before.update(loss)
    assert_unchanged(learner, before, "afterwards")


@pytest.mark.in_turn("cls", "name")
@pytest.mark.parametrize(("cls", "settings", "name"), LEARNERS)
def test_a_loss_that_does_not_fit_is_explained(cls, settings, name):
    domain = domain_named(name)
    learner = played(cls, settings, domain)
    before = learner.clone()
    if cls not in VALUES_ONLY:  # those take numbers, and losses of components
        for array in (np.ones(domain.shape), np.ones(domain.shape).tolist()):
            with pytest.raises(TypeError, match=r"driftwolfe\.losses\.LinearLoss\(g\)"):
                learner.update(array)
        with pytest.raises(TypeError, match=r"value\(x\) and gradient\(x\), got Half$"):
            learner.update(type("Half", (), {"gradient": np.ones_like})())
    wrong = dw.losses.LinearLoss(np.ones((*domain.shape, 2)))
    told = f"LinearLoss takes points of shape .*this {type(domain).__name__} have shape"
    with pytest.raises(ValueError, match=told):
        learner.update(wrong)
    with pytest.raises(ValueError, match=told):
        dw.play(learner, [wrong])
    assert_unchanged(learner, before, "afterwards")


@pytest.mark.parametrize("cls", LEARNER_CASES)
def test_a_portfolio_on_a_ball_is_told_of_the_simplex(cls):
    if not suits(cls, ball := dw.L2Ball(3)):
        return
    learner = make(cls, LEARNER_CASES[cls][0], ball)
    try:
        learner.update(dw.losses.PortfolioLoss([1.0, 1.1, 0.9]))
    except ValueError as refusal:
        assert str(refusal).endswith("PortfolioLoss is for a Simplex, not for this L2Ball")
        assert str(refusal).count("Simplex") == 1
    else:  # they evaluate it elsewhere, or not at all
        assert cls in VALUES_ONLY or cls is dw.contrib.FTPL


def names_of(cls):
    """Keywords of a constructor; none where it passes any on, as bandits to their learner."""
    taken = inspect.signature(cls).parameters.values()
    return [] if any(each.kind is each.VAR_KEYWORD for each in taken) else [p.name for p in taken]


@pytest.mark.parametrize(
    "cls",
    [
        cls
        for home in (dw.domains, dw.learners, dw.contrib, estimators)  # losses are made too often
        for name in home.__all__
        if inspect.isclass(cls := getattr(home, name))
        and names_of(cls)
        and not inspect.isabstract(cls)
        and cls is not dw.OracleCalls
    ],
    ids=lambda cls: cls.__name__,
)
def test_a_misspelt_option_is_told_which_was_meant(cls):
    for name in names_of(cls):
        wrong = f"{name[:-1]}_{name[-1:]}"
        with pytest.raises(TypeError, match=f"'{wrong}'; did you mean '{name}'"):
            cls(**{wrong: 1})
    with pytest.raises(TypeError, match="unexpected keyword argument 'zzzzzzzz'; there are "):
        cls(zzzzzzzz=1)


def test_a_class_without_options_says_that_it_has_none():
    with pytest.raises(TypeError, match="argument 'n'; there are none"):
        estimators.RiverRecommender(n=1)


def test_options_of_own_classes_may_be_any():
    class Loose(dw.L2Ball):
        def __init__(self, shape, **more):
            super().__init__(shape)
            self.more = more

    assert Loose(3, colour="red").more == {"colour": "red"}


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: dw.POLAR(dw.L1Ball(3), tuning="certifed"), "tuning .*mean 'certified'"),
        (lambda: dw.POLAR(dw.L1Ball(3), oracle="half-space"), "method .*mean 'halfspace'"),
        (lambda: dw.POLAR(dw.L1Ball(3), loss_scale="certfied"), "loss_scale.*mean 'certified'"),
        (lambda: dw.POLAR(dw.L1Ball(3), lipschitz="atuo"), 'lipschitz, if not "auto", must'),
        (lambda: dw.POLAR(dw.L1Ball(3), tuning=np.ones(3)), 'must be one of "practical"'),
        (
            lambda: dw.infeasible_projection(dw.L1Ball(1), [0.0], [2.0], 0.1, method="halfspac"),
            "method .*mean 'halfspace'",
        ),
        (lambda: estimators.MatrixCompleter(loss="hubr"), "loss .*mean 'huber'"),
        (lambda: dw.Polar, "no attribute 'Polar'; did you mean 'POLAR'"),
        (lambda: dw.LinearLoss, "mean 'driftwolfe.losses.LinearLoss'"),
        (lambda: dw.Sward, "mean 'driftwolfe.contrib.Sword'"),
        (lambda: dw.SAOLL, "mean 'driftwolfe.learners.SAOL'"),
        (lambda: dw.Recommender, "mean 'driftwolfe.estimators.Recommender'"),
        (lambda: estimators.Recomender, "mean 'Recommender'"),
    ],
)
def test_a_misspelt_name_is_told_which_was_meant(make, told):
    with pytest.raises((ValueError, TypeError, AttributeError), match=told):
        make()


def test_a_bare_id_is_no_list_of_ids():
    recommender, completer = estimators.RiverRecommender(), estimators.RiverMatrixCompleter()
    for user, item in [("ann", "tea"), ("bob", "tea"), ("ann", "jam")]:
        recommender.learn_one(user, item)
        completer.learn_one(user, item, 3.0)
    known = estimators.Recommender().partial_fit([("ann", "tea"), ("bob", "jam")])
    for bare in ("ann", b"ann", 7):
        for call in (
            lambda bare=bare: known.recommend_many(bare),
            lambda bare=bare: recommender.rank("ann", bare),
            lambda bare=bare: completer.rank("ann", bare),
            lambda bare=bare: estimators.TraceNormClassifier().partial_fit(
                [[1.0], [2.0]], ["a", "n"], classes=bare
            ),
        ):
            with pytest.raises(TypeError, match=r"must be a list, got .*; for one, give \["):
                call()
        for pairs in (known.partial_fit, known.predict, completer.model.predict):
            with pytest.raises(ValueError, match="pairs must be a list"):
                pairs(bare)
    assert (
        known.recommend_many(np.array(["ann"])) == known.recommend_many(iter(["ann"])) == [["jam"]]
    )


def test_a_class_is_no_model():
    for call in (
        lambda: estimators.AdaptiveIntervals(estimators.TraceNormRegressor),
        lambda: dw.evaluate.prequential(estimators.TraceNormRegressor, [[1.0]], [1.0]),
        lambda: dw.evaluate.ranking(estimators.Recommender, [("ann", "tea")]),
    ):
        with pytest.raises(TypeError, match=r"got a class; make one: \w+\(\)"):
            call()


@pytest.mark.in_turn("cls", "name")
@pytest.mark.parametrize(("cls", "settings", "name"), LEARNERS)
def test_a_loss_that_raises_late_changes_no_bit(cls, settings, name):
    domain = domain_named(name)
    learner = played(cls, settings, domain)
    for why, loss in late_losses(domain):
        before = learner.clone()
        try:
            learner.update(loss)
        except BrokenError:
            assert_unchanged(learner, before, why)
        assert_sound(learner)


@pytest.mark.in_turn("cls", "name")
@pytest.mark.parametrize(("cls", "settings", "name"), LEARNERS)
def test_gradients_far_beyond_the_stated_constant_keep_decisions_feasible(cls, settings, name):
    domain = domain_named(name)
    rng = np.random.default_rng(0)
    for lipschitz in (1.0, "auto"):
        learner = make(cls, settings, domain, lipschitz=lipschitz)
        for loss in [*stream(domain, 4), *wild_losses(domain, rng), *stream(domain, 4)]:
            before = learner.clone()
            try:
                assert np.isfinite(learner.update(loss))
            except ValueError:  # a step left the range of numbers
                assert_unchanged(learner, before, "refused")
            assert_sound(learner)
        assert learner.t >= 8


@pytest.mark.parametrize("cls", LEARNER_CASES)
@given(data=st.data())
def test_any_numbers_in_a_gradient(cls, data):
    """Whatever floats there are: refused without a trace, or played soundly."""
    domain = dw.L1Ball(3)
    learner = played(cls, LEARNER_CASES[cls][0], domain, rounds=3)
    for _ in range(3):
        gradient = data.draw(st.lists(st.floats(width=64), min_size=3, max_size=3))
        value = data.draw(st.floats(width=64))
        before = learner.clone()
        try:
            loss = dw.losses.FunctionLoss(lambda x, v=value: v, lambda x, g=gradient: np.array(g))
            learner.update(loss)
        except ValueError:
            assert_unchanged(learner, before, (value, gradient))
        assert_sound(learner)


@pytest.mark.in_turn("cls settings name", "huge size")
@pytest.mark.parametrize(
    ("huge", "size"), [(1e308, 1e147), (1e200, 1e-150), (1e152, 1e-320)], ids=str
)
@pytest.mark.parametrize(
    ("cls", "settings", "name"),
    [
        pytest.param(cls, LEARNER_CASES[cls][0], name, id=f"{cls.__name__}-{name}")
        for cls, name in itertools.product(LEARNER_CASES, ("l1", "factored"))
        if suits(cls, domains()[name])
    ]
    + SETTINGS[-1:],
)
def test_after_huge_and_tiny_losses_ordinary_ones_are_learned(cls, settings, name, huge, size):
    domain = domains()[name]
    learner, losses = played(cls, settings, domain, 5), stream(domain, 20)
    kinds = [dw.losses.LinearLoss, dw.losses.SquaredDistance]
    if cls not in VALUES_ONLY:
        kinds.append(lambda g: dw.losses.FunctionLoss(lambda x: 0.0, lambda x: g))
    for kind in kinds:
        with pytest.raises(ValueError, match="largest allowed is"):
            learner.update(kind(np.full(domain.shape, huge)))
        learner.update(dw.losses.LinearLoss(np.full(domain.shape, size)))
    for loss in losses:
        learner.update(loss)
        assert_sound(learner)


# -- losses -------------------------------------------------------------------------------------

#: Every loss: what makes it, as keywords.
LOSSES = {
    dw.losses.LinearLoss: {"g": np.ones(3)},
    dw.losses.SquaredDistance: {"target": np.ones(3)},
    dw.losses.PortfolioLoss: {"returns": np.ones(3)},
    dw.losses.HingeLoss: {"features": np.ones((2, 3)), "labels": [1, -1]},
    dw.losses.LogisticLoss: {"features": np.ones((2, 3)), "labels": [1, -1]},
    dw.losses.MulticlassLogistic: {"features": np.ones((2, 3)), "labels": [0, 1], "n_classes": 2},
    dw.losses.SquaredRows: {"features": np.ones((2, 3)), "targets": [1.0, 2.0]},
    dw.losses.AbsoluteRows: {"features": np.ones((2, 3)), "targets": [1.0, 2.0]},
    dw.losses.HuberRows: {"features": np.ones((2, 3)), "targets": [1.0, 2.0]},
    dw.losses.PinballRows: {"features": np.ones((2, 3)), "targets": [1.0, 2.0]},
    dw.losses.AbsoluteEntries: {"rows": [0, 1], "cols": [1, 0], "targets": [1.0, 2.0]},
    dw.losses.SquaredEntries: {"rows": [0, 1], "cols": [1, 0], "targets": [1.0, 2.0]},
    dw.losses.HuberEntries: {"rows": [0, 1], "cols": [1, 0], "targets": [1.0, 2.0]},
}
NO_ARRAYS = [
    *([], [np.nan, 1.0], [np.inf, 1.0], [1j, 1.0], ["a", "b"], None, "text", {}, [None, 1.0]),
    *(np.zeros((2, 2, 2)), [[1.0], [1.0, 2.0]], [10**400, 1], np.array([object()])),
]
NO_POINTS = [
    *([1j, 2.0], ["1", "2"], [None], [10**400], np.array([1.0, 2.0], dtype=object)),
    *(np.zeros(2, dtype=[("a", float)]), np.array(["2024-01-01"], dtype="M8[D]")),
]
NOT_FINITE = [[np.nan], [np.inf], pd.array([1, None], dtype="Int64")]
NO_INDICES = [[-1, 0], [0.5, 1.0], [2.0**60, 0], [True, False], [0], [0, 1, 2]]


def test_every_loss_has_a_case():
    public = {getattr(dw.losses, name) for name in dw.losses.__all__}
    public -= {dw.losses.from_jax, dw.losses.from_torch}  # tests/losses/test_autograd.py
    assert public == {*LOSSES, dw.losses.Loss, dw.losses.FunctionLoss, dw.losses.Penalised}


@pytest.mark.parametrize("kind", LOSSES)
def test_losses_refuse_what_is_no_data(kind):
    good = LOSSES[kind]
    kind(**good)
    for name in good.keys() - {"n_classes"}:
        for bad in NO_ARRAYS:
            if name in ("g", "target") and isinstance(bad, list | np.ndarray):
                continue  # a point may have any shape; those that are no numbers come below
            with pytest.raises((ValueError, TypeError)):
                kind(**good | {name: bad})
    for name in good.keys() & {"rows", "cols"}:
        for bad in NO_INDICES:
            with pytest.raises(ValueError, match=r"rows|cols"):
                kind(**good | {name: bad})
    for name in good.keys() & {"g", "target"}:
        for bad in NO_POINTS + NOT_FINITE:
            with pytest.raises(ValueError, match=rf"{name} (must be an array of real|has entries)"):
                kind(**good | {name: bad})
        for bad in NO_POINTS:
            with pytest.raises(ValueError, match="x must be an array of real numbers"):
                kind(**good).value(bad)


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_losses_copy_their_data_and_never_turn_numbers_into_nan(kind):
    given = {name: np.array(value) for name, value in LOSSES[kind].items()}
    loss = kind(**given | dict.fromkeys(given.keys() & {"n_classes"}, 2))
    for array in given.values():
        array[...] = 9
    for name in given.keys() - {"n_classes", "features", "returns", "g", "target"}:
        with pytest.raises(ValueError, match="read-only"):
            getattr(loss, name)[0] = 0
    shape = (2, 3) if kind is dw.losses.MulticlassLogistic else loss.shape or (2, 2)
    for scale in (1e-320, 1e-160, 1e100, 1e150):
        point = np.full(shape, scale)
        value, gradient = loss.value_and_gradient(point)
        assert value == kind(**LOSSES[kind]).value(point) and not np.isnan(value)
        assert not np.isnan(gradient).any()

"""What a state says of several of its values together is enforced: each class that checks it is broken here."""

import copy
import inspect
from contextlib import suppress
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest

from contracts.estimator_cases import ESTIMATOR_CASES, LABELS, TARGETS, X
from contracts.learner_cases import LEARNER_CASES, domains, suits
from contracts.test_learner_contract import stream
from driftwolfe import estimators, load
from driftwolfe.contrib import Sword
from driftwolfe.estimators.core.ids import encode_keys
from driftwolfe.estimators.intervals import WIDEST
from driftwolfe.points import norm
from driftwolfe.state import Nested, Stateful, declared
from driftwolfe.storage import read_archive, write_archive
from learners.families import play_all


def far(point):
    """A point outside of all sets, of the same kind."""
    if isinstance(point, np.ndarray):
        return np.full_like(point, 1e3)
    if not norm(point):
        raise TypeError("a factored zero has no factors to lengthen")
    return 1e9 * point


def put(name, change):
    """Break one value by what `change` makes of it."""
    return lambda part: setattr(part, name, change(getattr(part, name)))


def put_first(name, change):
    return put(name, lambda values: [change(values[0]), *values[1:]])


def within(name, broken):
    """Break a value's value."""
    return lambda part: broken(getattr(part, name))


def fewer(values):
    return values[:-1]


def replaced(name, change):
    """Break one value of something frozen."""
    return lambda held: replace(held, **{name: change(getattr(held, name))})


def entry(value, place=-1):
    """Make one entry something else."""

    def change(array):
        changed = array.copy()
        changed[place] = value
        return changed

    return change


def less(axis):
    """Leave out the first row or column."""
    return lambda array: np.delete(array, 0, axis)


def state(name, change):
    return put("state", lambda held: held._replace(**{name: change(getattr(held, name))}))


def last_alarm(name):
    """An alarm, or its start, in time to come."""
    return lambda alarm: setattr(alarm, name, np.array([alarm.n_updates_]))


NEGATIVE = replaced("squares", lambda squares: -squares - np.eye(len(squares)))
OUTSIDE = put("_x", far)
#: For each class with a check, ways to break what it asks for, one for each line of it.
BROKEN = {
    "SinglePointLearner": [OUTSIDE],
    "OnlineFrankWolfe": [put("_first", far)],
    "AnytimeOFW": [put("_first", far)],
    "Learner": [
        put(
            "_tickets",
            lambda held: replace(
                held,
                open={
                    k: each._replace(decision=far(each.decision)) for k, each in held.open.items()
                },
            ),
        )
    ],
    "Outer": [within("learner", put("t", lambda t: t + 1))],
    "POLAR": [within("_experts", put("steps", fewer))],
    "BOGDIP": [within("_experts", put("steps", lambda steps: np.append(steps, 1.0)))],
    "GridLearner": [
        within("_experts", put("steps", fewer)),
        put("_past", lambda past: [np.zeros((2, 3))] if type(past) is list else 1 / 0),
    ],
    "CoverLearner": [
        within("_experts", put("steps", fewer)),
        within("_experts", put("lifetimes", lambda lifetimes: lifetimes + 1)),
    ],
    "OneOracleAder": [
        OUTSIDE,
        put("_clock", lambda clock: 10**6),
        within("_meta", put("size", lambda size: size + 1)),
    ],
    "OnlineNewtonStep": [put("_sums", NEGATIVE), put("_sums", replaced("squares", fewer))],
    "AFLH": [
        within("_meta", put("births", lambda births: np.append(births[0], births))),
        put("t", lambda t: t + 1),
    ],
    "Mixture": [
        within("_meta", put("size", lambda size: size + 1)),
        within("learners", lambda learners: put("t", lambda t: t + 1)(learners[0])),
    ],
    "Descent": [within("atoms", put("points", lambda points: [np.full(7, 1e3)]))],
    "DenseDescent": [put("_x", far)],
    "ListDescent": [
        put_first("x", far),
        put_first("sums", lambda total: replace(total, rest=np.zeros(3))),
    ],
    "EvenDescent": [
        put_first("jobs", lambda job: job._replace(y=np.zeros(3))),
        put_first("jobs", lambda job: job._replace(x=far(job.x))),
    ],
    "SelfConfident": [put("worst", lambda worst: worst - 1e9)],
    "Atoms": [put("points", lambda points: [None] * 1000)],
    "LMOBudget": [put("spent", lambda spent: spent + 10**6)],
    "Leaders": [
        put("experts", lambda experts: []),
        put_first("experts", lambda each: replace(each, rounds=each.epoch)),
        put_first("experts", lambda each: replace(each, anchor=np.zeros(3))),
        put_first("experts", lambda each: replace(each, x=far(each.x))),
    ],
    "BallExperts": [
        put("steps", lambda steps: np.append(steps, 1.0)),
        within("_rows", lambda rows: rows.held.__setitem__(0, far(rows.held[0]))),
    ],
    "BallDescent": [put("x", far), put("away", far)],
    "OptimisticDescent": [put("last", lambda last: np.zeros(3))],
    "OwnOptimisticDescent": [
        put("lasts", fewer),
        put("expected", lambda expected: 2.0 * expected + 1.0),
        put("agreements", fewer),
    ],
    "NewtonExperts": [
        put("x", fewer),
        put("x", far),
        put_first("sums", NEGATIVE),
    ],
    "Hedge": [put("totals", lambda totals: totals + 1.0)],
    "ExpConcaveHedge": [put("totals", lambda totals: totals + 1.0)],
    "OptimisticHedge": [
        put("totals", lambda totals: totals + 1.0),
        put("inverse_rate", lambda rate: -1.0),
    ],
    "NormalPredictors": [put("deviations", lambda each: each + 1e6)],
    "AdaNormalHedge": [put("regrets", lambda regrets: regrets + 1e6)],
    "SpecialistWeights": [put("births", lambda births: births + 1)],
    "MappedLearner": [
        put("renewal", lambda renewal: 0),
        put("renewal", lambda renewal: 10**6),
        within("alarm", put("n_updates_", lambda n: n + 16)),
    ],
    "ClassLearner": [
        put("counts", lambda counts: np.ones(99)),
        put("width", lambda width: width + 1),
        within("random", put("inputs", entry(99, (-1, -1)))),
        put("waves", less(0)),
        put("ferns", less(0)),
        put("rests", lambda rests: 0 * rests if -1 in rests else 1 / 0),
        put("rests", lambda rests: rests + 1),
        put("points", lambda points: points[:, : points.shape[1] // 2]),
        put("noisy", less(1)),
        put("weights", less(0)),
        put("weights", lambda weights: 0.5 * weights),
        put("weights", entry(0.9)),
        put("norms", entry(1e9, (0, 0))),
        put("norms", entry(1e9, (0, -1))),
        put("points", entry(1e9, (0, 0))),
        put("ferns", entry(-1e9, (-1, -1))),
    ],
    "RegressionLearner": [
        *(state(name, less(0)) for name in ("points", "offsets", "totals")),
        *(state(name, less(1)) for name in ("norms", "weights", "means")),
        state("weights", lambda weights: weights[:0]),
        *(
            state("targets", entry(value, (row, -1)))
            for row, value in ((0, 1e200), (1, -1e200), (2, -1e200), (3, -1.0), (4, -1.0))
        ),
    ],
    "FeatureMap": [
        put("mean", less(0)),
        put("squares", lambda squares: np.append(squares, 1.0)),
        *(put("moments", entry(value, (-1, -1))) for value in (1e-300, 1e260)),
        *(put("squares", entry(value)) for value in (1e-300, 1e260)),
        *(put("moments", entry(value, (-1, 0))) for value in (1e99, -1e99)),
        put("totals", lambda totals: np.array([0.0, 1.0])),
        put("totals", lambda totals: 0.0 * totals if totals.any() else 1 / 0),
        put("seen", entry(1e9)),
        put("seen", entry(0.0)),
    ],
    "RandomViews": [put("counts", lambda counts: np.append(counts, 1.0)), put("offsets", less(0))],
    "DriftAlarm": [
        *(put("_known", lambda known, k=k: k) for k in (np.array([1.0, 0.0]), np.zeros(65_537))),
        *map(last_alarm, ("changes_", "starts_")),
        put("_starts", entry(10**6)),
    ],
    "Watch": [put("t", lambda t: t + 16)],
    "AdaptiveThreshold": [
        lambda model: put("_levels", entry(model._start + 1.01 * WIDEST))(model),
        lambda model: put("_levels", entry(model._start - 1.01 * WIDEST))(model),
        lambda model: put("_levels", entry(9.0))([*model._groups.values()][-1]),
        put("n_rows_", lambda n: n + 1),
    ],
    "AdaptiveIntervals": [within("_centre", put("t", lambda t: t + 1))],
}


def parts(part):
    """A part and all that it is made of."""
    yield part
    for name, spec in declared(type(part)).items():
        held = getattr(part, name)
        for each in held if isinstance(held, tuple | list) else (held,):
            if isinstance(spec, Nested) and isinstance(each, Stateful):
                yield from parts(each)


def played(cls, name):
    domain = domains()[name]
    more = [{"gradients": "own"}] if cls is Sword and name == "l1" else []
    for settings in [*LEARNER_CASES[cls], *more] if suits(cls, domain) else ():
        learner = cls(domain, lipschitz=10.0, **settings)
        with suppress(NotImplementedError, ValueError):  # of what learns at once
            learner.ask()
        yield play_all(learner, stream(domain, 6))


def learned():
    """Parts of estimators of rows; of those of pairs `tests/estimators/test_completer_archive.py` has most."""
    for name in ("DriftAlarm", "TraceNormClassifier", "TraceNormRegressor", "Recommender"):
        for case in ESTIMATOR_CASES[name]:
            model = case.make()
            case.learn(model, slice(90))
            yield from parts(next((vars(model)[k] for k in HELD if k in vars(model)), model))
    yield estimators.TraceNormClassifier().fit(np.tile(X[:90], 70), LABELS[:90])._learner.map
    for name in ("AdaptiveIntervals", "AdaptiveSets"):
        (case,) = ESTIMATOR_CASES[name]
        case.learn(model := case.make(), slice(90))
        yield model


HELD = ("_learner", "_watch")


@pytest.fixture(scope="module")
def found():
    """A played part of each class that checks something."""
    held = {}
    learners = (
        each for n in ("l1", "factored", "birkhoff") for c in LEARNER_CASES for each in played(c, n)
    )
    for part in chain(chain.from_iterable(map(parts, learners)), learned()):
        for own in type(part).__mro__:
            if "check" in vars(own) and own is not Stateful:
                held.setdefault(own.__name__, []).append(part)
    return held


def test_every_check_is_broken_below(found):
    assert set(found) == set(BROKEN)


@pytest.mark.parametrize("name", BROKEN)
def test_what_does_not_fit_together_is_refused(name, found):
    for broken in BROKEN[name]:
        refused = 0
        for part in found[name]:
            spoiled = copy.deepcopy(part)
            spoiled.check()
            try:
                broken(spoiled)
            except (AttributeError, TypeError, IndexError, ZeroDivisionError):
                continue  # this one has no such value
            with pytest.raises(ValueError, match="archive holds"):
                spoiled.check()
                pytest.fail(inspect.getsource(broken))
            refused += 1
        assert refused


def keys(name, *values):
    return lambda settings, arrays: arrays.update({name: encode_keys(values)})


def options(**changed):
    return lambda settings, arrays: settings.update(changed)


#: What may not be in files: settings and ids that do not fit what was learned.
WRONG_FILES = {
    "TraceNormClassifier": [
        *(options(labels=labels) for labels in ("<U1", "<f8", "<M8[s]", "<U20000000", "text")),
        *(keys("classes", *each) for each in (("one", "two"), ("one", "two", "two"), ())),
        *(keys("names", *each) for each in ((1, 2, 3, 4), ("a",))),
        *(options(width=width, plain=plain) for width, plain in ((5, True), (4, False))),
        *(options(class_weight="even"), options(features="cubic")),
    ],
    "TraceNormRegressor": [options(random_features=7), options(width=3), keys("columns", "a")],
    "RiverTraceNormClassifier": [
        keys("classes", "one"),
        keys("columns"),
        options(features="cubic"),
    ],
    "RiverTraceNormRegressor": [options(random_features=7), keys("columns", "a")],
    "AdaptiveSets": [
        options(coverage=1.0),
        options(gain=-1.0),
        options(gain=101.0),
        options(more=1),
    ],
}


def refuses(model, path, change):
    """Whether a file of a model is read as it is, and not with a change."""
    model.save(path)
    kind, settings, arrays = read_archive(path)
    write_archive(path, kind, settings, arrays)
    load(path)
    change(settings, arrays)
    write_archive(path, kind, settings, arrays)
    with suppress(ValueError):
        return not load(path)
    return True


@pytest.mark.parametrize("name", WRONG_FILES)
def test_files_whose_settings_do_not_fit_are_refused(name, tmp_path):
    case, path = ESTIMATOR_CASES[name][0], tmp_path / "model"
    case.learn(model := case.make(), slice(40))
    refused = [refuses(model, path, change) for change in WRONG_FILES[name]]
    assert all(refused), refused
    if name == "TraceNormRegressor":  # of several outputs
        model = type(model)().fit(X[:40], TARGETS[:40])
        assert refuses(model, path, options(single=True))

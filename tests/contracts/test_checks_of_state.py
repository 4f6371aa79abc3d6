"""What a state says of several of its values together is enforced: each class that checks it is broken here."""

import copy
import inspect
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from contracts.learner_cases import LEARNER_CASES, domains, suits
from contracts.test_learner_contract import stream
from driftwolfe.contrib import Sword
from driftwolfe.points import norm
from driftwolfe.state import Nested, Stateful, declared
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


@pytest.fixture(scope="module")
def found():
    """A played part of each class that checks something."""
    held = {}
    for name in ("l1", "factored", "birkhoff"):
        for cls in LEARNER_CASES:
            for learner in played(cls, name):
                for part in parts(learner):
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
            part.check()
            spoiled = copy.deepcopy(part)
            try:
                broken(spoiled)
            except (AttributeError, TypeError, IndexError, ZeroDivisionError):
                continue  # this one has no such value
            with pytest.raises(ValueError, match="archive holds"):
                spoiled.check()
                pytest.fail(inspect.getsource(broken))
            refused += 1
        assert refused

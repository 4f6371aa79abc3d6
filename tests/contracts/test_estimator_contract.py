"""What every estimator promises."""

import copy
import dataclasses
import pickle
import random

import numpy as np
import pytest

import driftwolfe as dw
from contracts.estimator_cases import CALLS, COUNT, ESTIMATOR_CASES
from contracts.hostile import bad_calls
from driftwolfe import estimators
from driftwolfe.estimators.intervals import AdaptiveThreshold
from driftwolfe.storage import write_archive

FIRST, REST = slice(0, COUNT // 2), slice(COUNT // 2, COUNT)

CASES = [
    pytest.param(case, id=f"{name}-{number}")
    for name, cases in ESTIMATOR_CASES.items()
    for number, case in enumerate(cases)
]


def fingerprint(value, above=()):
    """All that an object knows, byte by byte, as plain tuples."""
    if any(value is each for each in above):
        return "itself"
    if isinstance(value, np.ndarray) and value.dtype != object:
        return (value.dtype.str, value.shape, value.tobytes())
    inside = (*above, value)
    if isinstance(value, dict):
        pairs = ((repr(key), fingerprint(each, inside)) for key, each in value.items())
        return (type(value).__name__, *sorted(pairs, key=lambda pair: pair[0]))
    if isinstance(value, np.ndarray | list | tuple):
        return (type(value).__name__, *(fingerprint(each, inside) for each in value))
    if isinstance(value, set | frozenset):
        return (type(value).__name__, *sorted(map(repr, value)))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [each.name for each in dataclasses.fields(value)]
        return (
            type(value).__name__,
            *((name, fingerprint(getattr(value, name), inside)) for name in names),
        )
    if hasattr(value, "__dict__") and not callable(value):
        # As it is copied: without addresses of its arrays. River's base class has a generator of its own.
        held = vars(value) if isinstance(value, random.Random) else value.__getstate__()
        return (type(value).__name__, fingerprint(held, inside))
    return repr(value)


def learned(case, part=FIRST):
    """A model that has learned these records, the last of them in a call of its own."""
    model = case.make()
    case.learn(model, slice(part.start, part.stop - 1))
    case.learn(model, slice(part.stop - 1, part.stop))
    return model


def test_every_estimator_has_a_case():
    assert set(ESTIMATOR_CASES) == set(estimators.__all__)
    assert set(estimators.__all__) <= set(dir(estimators))


@pytest.mark.parametrize("case", CASES)
def test_asking_changes_nothing(case):
    model = learned(case)
    before = fingerprint(model)
    told = case.ask(model)
    assert np.array_equal(case.ask(model), told)
    assert fingerprint(model) == before
    case.learn(model, REST)
    assert fingerprint(model) != before
    # Having asked does not matter later either.
    silent = learned(case)
    assert fingerprint(silent) == before
    case.learn(silent, REST)
    assert np.array_equal(case.ask(silent), case.ask(model))


def wrong_calls(model):
    """What is wrong, its kind, and a call that must be refused."""
    outputs = getattr(getattr(model, "_learner", None), "outputs", 1)
    name = type(model).__name__
    return bad_calls(CALLS[name], outputs if name == "TraceNormRegressor" else 1)


@pytest.mark.filterwarnings("ignore:.*masked element")  # by NumPy
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("case", CASES)
def test_a_refused_call_changes_nothing(case):
    model = learned(case)
    before = fingerprint(model)
    for call in (*case.refused, *case.later):
        with pytest.raises((ValueError, TypeError)):
            call(model)
        assert fingerprint(model) == before
    for why, kind, call in wrong_calls(model):
        if not kind:
            call(copy.deepcopy(model))  # nothing else is wrong
            continue
        with pytest.raises((ValueError, TypeError)) as refused:
            call(model)
        assert fingerprint(model) == before, why
        told = str(refused.value)
        assert "recursion" not in told, why
        if "masked" in why and kind not in ("ids", "number") and "series" not in why:
            assert "has masked entries" in told, why
        if kind in ("record", "frame"):
            words = ("feature", "dict", "frame", "pandas", "masked")
            assert any(word in told for word in words), why


@pytest.mark.filterwarnings("ignore:.*masked element")  # by NumPy
@pytest.mark.parametrize("case", CASES)
def test_a_refused_first_call_changes_nothing(case):
    model = case.make()
    before = fingerprint(model)
    for call in case.refused:
        with pytest.raises((ValueError, TypeError, AttributeError)):
            call(model)
        assert fingerprint(model) == before
    for why, _, call in wrong_calls(model):
        # Not every fault is one for a model that knows nothing, and then it may learn from it.
        try:
            call(model)
        except (ValueError, TypeError, AttributeError, KeyError):
            assert fingerprint(model) == before, why
        else:
            model = case.make()


@pytest.mark.in_turn
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("size", [1, 7])
def test_how_records_are_cut_into_calls_makes_no_difference(case, size):
    whole, parts = case.make(), case.make()
    case.learn(whole, FIRST)
    for start in range(0, FIRST.stop, size):
        case.learn(parts, slice(start, min(start + size, FIRST.stop)))
    if case.exact:
        assert fingerprint(parts) == fingerprint(whole)
    np.testing.assert_allclose(case.ask(parts), case.ask(whole), rtol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_copies_and_pickles_go_on_alike(case):
    model = learned(case)
    buffers = []
    text = pickle.dumps(model, protocol=5, buffer_callback=buffers.append)
    frozen = pickle.loads(text, buffers=[bytes(buffer) for buffer in buffers])  # read-only memory
    others = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), frozen]
    if isinstance(model, AdaptiveThreshold):  # holds learners, which must be writable
        others.pop()
    case.learn(model, REST)
    for other in others:
        case.learn(other, REST)
        assert np.array_equal(case.ask(other), case.ask(model))


@pytest.mark.parametrize("case", CASES)
def test_what_was_saved_goes_on_to_the_last_bit(case, tmp_path):
    model, path = learned(case), tmp_path / "saved.safetensors"
    before = fingerprint(model)
    model.save(path)
    assert fingerprint(model) == before
    others = [type(model).load(path), dw.from_bytes(path.read_bytes())]
    path.write_bytes(content := model.to_bytes())
    for other in (*others, dw.load(path), type(model).from_bytes(content)):
        assert type(other) is type(model) and other.to_bytes() == content
    assert fingerprint(model) == before
    case.learn(model, REST)
    for other in others:
        case.learn(other, REST)
        assert np.array_equal(case.ask(other), case.ask(model))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match="damaged"):
        dw.load(path)
    with pytest.raises(ValueError, match=r"the content given is .*damaged"):
        dw.from_bytes(path.read_bytes())
    write_archive(path, "Example", {}, {})
    for load, given in (("load", path), ("from_bytes", path.read_bytes())):
        with pytest.raises(ValueError, match=f"holds a Example, not a {type(model).__name__}"):
            getattr(type(model), load)(given)


@pytest.mark.parametrize("case", CASES)
def test_a_snapshot_stays_as_it_is_and_a_copy_of_it_learns_on(case):
    model = learned(case)
    snapshot, told = model.snapshot(), case.ask(model)
    before = fingerprint(snapshot)
    assert type(snapshot) is type(model)
    with pytest.raises(RuntimeError, match="is a snapshot, which can only be read"):
        case.learn(snapshot, REST)
    case.learn(model, REST)
    assert np.array_equal(case.ask(snapshot), told) and fingerprint(snapshot) == before
    for other in (copy.deepcopy(snapshot), dw.from_bytes(snapshot.to_bytes())):
        case.learn(other, REST)
        assert np.array_equal(case.ask(other), case.ask(model))

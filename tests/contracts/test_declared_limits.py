"""Every limit that a learner declares is enforced: a file that breaks it is refused with a ValueError."""

import math

import numpy as np
import pytest

import driftwolfe as dw
from contracts.learner_cases import LEARNER_CASES, domains, suits
from contracts.test_learner_contract import stream
from driftwolfe.learners.archive import ensemble_kinds
from driftwolfe.state import Field, Nested, declared
from driftwolfe.storage import read_archive, write_archive
from learners.families import play_all

KINDS = ensemble_kinds()
#: What has been broken in files of any learner, and in those of learners with others within.
SEEN = set()


def fields(part, prefix=""):
    """Owner and name, the name in files, the declaration and the value of all that a part declares."""
    for name, spec in declared(type(part)).items():
        value, path = getattr(part, name), f"{prefix}{name}"
        if isinstance(spec, Field):
            yield (type(part), name), path, spec, value
        elif isinstance(spec, Nested) and spec.holder is tuple:
            for k, each in enumerate(value):
                yield from fields(each, f"{path}.{k}.")
        elif value is not None:
            yield from fields(value, f"{path}.")


def number(value):
    return value if math.isfinite(value) else {"float": repr(value)}


def broken_arrays(field, array):
    yield array[None]
    yield array.astype(np.int16 if array.dtype.kind == "f" else np.float64)
    if field.shape is None or isinstance(field.shape[0], int | str):
        yield np.concatenate((array, array, array[:1])) if array.ndim else array[None]
    if not array.size:
        return
    wrong = [math.nan, math.inf, -math.inf] if array.dtype.kind == "f" else []
    if field.least > -1e300:
        wrong.append(np.nextafter(field.least, -math.inf) if wrong else field.least - 1)
    if field.most < 1e300:
        wrong.append(np.nextafter(field.most, math.inf))
    for value in wrong:
        spoiled = array.copy()
        spoiled.flat[-1] = value
        yield spoiled
    if field.sums:
        yield 0.9 * array


def broken_values(field, value):
    """What may not take the place of a value, as JSON."""
    yield from ("a", {"unknown": 1}, {"array": "none"}, *(() if field.optional else (None,)))
    if isinstance(value, bool):
        yield from (0, 0.0)
    elif isinstance(value, int):
        yield from (0.5, True, 1 << 70)
        if field.least > -1e300:
            yield int(field.least) - 1
        if field.most < 1e300:
            yield int(field.most) + 1
        if field.size:
            yield value + 1
    elif isinstance(value, float):
        yield from (1, number(math.nan), number(math.inf), number(-math.inf))
        if field.least > -1e300:
            yield math.nextafter(field.least, -math.inf)
        if field.most < 1e300:
            yield math.nextafter(field.most, math.inf)
    elif isinstance(value, list):
        yield from (["a"], [None], {"tuple": []})
        if field.shape and isinstance(field.shape[0], str) and len(value) > 1:
            yield []


def broken_objects(written):
    """The JSON of a value with one field of an object in it replaced, for each of them in turn."""
    if isinstance(written, list):
        for k, item in enumerate(written):
            for other in broken_objects(item):
                yield [*written[:k], other, *written[k + 1 :]]
    elif isinstance(written, dict):
        name = next(iter(written))
        for field, content in written[name].items() if name in KINDS else ():
            for wrong in ("a", {"unknown": 1}, [{}], *broken_objects(content)):
                yield {**written, name: {**written[name], field: wrong}}
            rest = {k: v for k, v in written[name].items() if k != field}
            yield {**written, name: rest}


@pytest.mark.parametrize("cls", LEARNER_CASES, ids=lambda cls: cls.__name__)
def test_every_declared_limit_is_enforced(cls, tmp_path, monkeypatch):
    monkeypatch.setattr("os.fsync", lambda handle: None)  # thousands of files, each for a moment
    path = tmp_path / "learner"
    for name in ("l1", "factored"):
        domain = domains()[name]
        for settings in LEARNER_CASES[cls] if suits(cls, domain) else ():
            learner = play_all(cls(domain, lipschitz=10.0, **settings), stream(domain, 6))
            learner.save(path)
            kind, said, arrays = read_archive(path)
            state = said["state"]

            def refused(state, arrays, what, kind=kind, said=said):
                write_archive(path, kind, said | {"state": state}, arrays)
                with pytest.raises(ValueError):
                    dw.load(path)
                    pytest.fail(f"{what} was loaded")

            for declaration, place, field, value in fields(learner):
                key = (*declaration, type(value), place.startswith("learner"))
                if key in SEEN:
                    continue
                SEEN.add(key)
                rest = {k: v for k, v in state.items() if k != place}
                if field == Field() or isinstance(value, np.ndarray):
                    field = field if field != Field() else Field(type(value))
                if isinstance(value, np.ndarray):
                    for spoiled in broken_arrays(field, value):
                        refused(rest, {**arrays, place: spoiled}, f"{place} = {spoiled}")
                else:
                    wrong = (*broken_values(field, value), *broken_objects(state[place]))
                    for each in wrong:
                        refused({**state, place: each}, arrays, f"{place} = {each}")
                gone = {k: v for k, v in arrays.items() if k != place}
                refused(rest, gone, f"no {place}")
    assert (cls, "t", int, False) in SEEN

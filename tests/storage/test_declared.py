"""Declared state: every name, type, size and limit that an estimator declares is enforced on its files."""

import copy
import pickle
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest

import driftwolfe as dw
from contracts.estimator_cases import ESTIMATOR_CASES
from contracts.test_declared_limits import broken_values
from driftwolfe.estimators import MatrixCompleter, completer_experts, completer_tables
from driftwolfe.state import (
    Field,
    Growing,
    Nested,
    Part,
    _fields,
    check_fields,
    declared,
    read_state,
    state_of,
    write_state,
)
from driftwolfe.storage import read_archive, write_archive
from estimators.rating_streams import coming_and_going


class Rows(NamedTuple):
    numbers: Annotated[Any, Field(np.float64, ("rows", "width"), 0.0, 1.0)]
    places: Annotated[Any, Field(np.int64, ("rows",), 0, below="width")]


class Mixed(Part):
    kind: Annotated[int, Field(int, among=(1, 2))]
    width: Annotated[int, Field(int, least=1, size="width")]
    flat: Annotated[Any, Field(np.float64, ("some width",))]
    weights: Annotated[Any, Field(np.float64, ("some",), 0.0, sums=True)]
    order: Annotated[Any, Field(np.int64, (None,), rising=True)]
    first: Annotated[Growing[Rows], {"rows": "first"}]
    others: Annotated[dict[int, Rows], {"rows": "{}.rows"}]
    cache = 0  # not declared

    def __init__(self):
        self.kind, self.width, self.flat = 1, 2, np.arange(6.0)
        self.weights, self.order = np.full(3, 1 / 3), np.array([1, 5])
        self.first = Growing(Rows(np.full((1, 2), 0.5), np.zeros(1, np.int64)), 1)
        self.first.grow(2)
        self.others = {4: Rows(np.ones((3, 2)), np.ones(3, np.int64))}
        self.derive()

    def derive(self):
        self.total = self.flat.sum()


def test_a_part_comes_back_from_a_file(tmp_path):
    path, part = tmp_path / "part", Mixed()
    write_state(path, "Mixed", {"note": "a"}, {"part": part, "more": None})
    settings, loaded, more = read_state(
        path, "Mixed", {"note": Field(str)}, {"part": Mixed, "more": Mixed}, "more"
    )
    assert settings == {"note": "a"} and more is None
    assert loaded.first.size == 2 == len(loaded.first.tables.numbers)  # without room
    for one, other in zip(state_of({"part": part}), state_of({"part": loaded}), strict=True):
        assert str(one) == str(other)
    assert loaded.total == 15.0 and next(iter(declared(Mixed))) == "kind"
    with pytest.raises(ValueError, match="does not hold the state"):
        read_state(path, "Mixed", {"note": Field(str)}, {"part": Mixed, "more": Mixed})


def test_copies_and_pickles_hold_what_is_declared_and_can_be_written():
    part, buffers = Mixed(), []
    part.cache = 1
    text = pickle.dumps(part, protocol=5, buffer_callback=buffers.append)
    frozen = pickle.loads(text, buffers=[bytes(buffer) for buffer in buffers])
    for other in (copy.deepcopy(part), frozen):
        assert other.cache == 0 and other.total == 15.0
        assert other.flat.flags.writeable and other.first.tables.places.flags.writeable
        assert not np.shares_memory(other.flat, part.flat)


def spoilt(field, value, sizes):
    """What may not take the place of a value."""
    if not isinstance(value, np.ndarray):
        unlimited = type(value) is int and field.below is None and field.most > 1e300
        yield from (
            each for each in broken_values(field, value) if each != 1 << 70 or not unlimited
        )
        return
    kind = value.dtype.type
    with np.errstate(invalid="ignore"):  # infinite ones
        other = value.astype(np.int16 if value.dtype.kind == "f" else np.float64)
    yield from (value[None], other)
    for axis, size in enumerate(field.shape):
        if value.shape[axis] and isinstance(size, int | str):
            yield np.take(value, [*range(value.shape[axis])] * 2 + [0], axis)
    wrong = [sizes.get(field.below, field.below)] if field.below is not None else []
    for limit, beyond in ((field.least, -np.inf), (field.most, np.inf)):
        if abs(limit) < 1e30 and value.dtype.kind == "f":
            wrong.append(np.nextafter(kind(limit), kind(beyond)))
        elif abs(limit) < 1e30:
            wrong.append(limit + np.sign(beyond))
    endless = (each for each in (np.inf, -np.inf) if not field.least <= each <= field.most)
    wrong += [np.nan, *endless] if value.dtype.kind == "f" else []
    for each in wrong if value.size else ():
        spoiled = value.copy()
        spoiled.flat[-1] = each
        yield spoiled
    if field.sums:
        yield 0.9 * value
    if field.rising and value.size > 1:
        yield from (value[::-1].copy(), np.sort(np.append(value, value[0])))


def at_rest():
    """Most of its users rest, some after a fold."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(completer_experts, "MOST_ROWS", 5)
        patch.setattr(completer_tables, "MEMORY", 64)
        return MatrixCompleter().partial_fit(*coming_and_going(300))


def made(case):
    model = case.make()
    case.learn(model, slice(90))
    return model


MODELS = {
    f"{name}-{number}": partial(made, case)
    for name, cases in ESTIMATOR_CASES.items()
    for number, case in enumerate(cases)
    if not name.startswith("Adaptive")  # which declares as learners do
    and number in ((0, 2) if name == "MatrixCompleter" else (0, 3))
}


@pytest.mark.parametrize("make", [*MODELS.values(), at_rest], ids=[*MODELS, "at rest"])
def test_every_name_type_size_and_limit_is_enforced_on_files(make, tmp_path):
    model, path = make(), tmp_path / "model"
    inner = [getattr(model, name, None) for name in ("completer_", "model")]
    held = next((each for each in inner if each is not None), model)
    parts = getattr(held, "PARTS", {"alarm": type(held)})
    model.save(path)
    kind, settings, arrays = read_archive(path)
    values = settings["state"] | arrays
    present = {name.partition(".")[0] for name in values} & parts.keys()
    table = _fields({name: Nested(parts[name]) for name in present}, values)
    sizes = check_fields(table, values, kind)

    def write(changed):
        held = {name: each for name, each in changed.items() if isinstance(each, np.ndarray)}
        numbers = {name: each for name, each in changed.items() if name not in held}
        write_archive(path, kind, settings | {"state": numbers}, held)

    loaded = []
    for name, field in table.items():
        rest = {k: v for k, v in values.items() if k != name}
        wrong = [rest | {name: each} for each in spoilt(field, values[name], sizes)]
        for changed in (rest, *wrong):
            write(changed)
            with suppress(ValueError):
                dw.load(path)
                loaded.append((name, changed.get(name)))
    assert not loaded, loaded
    write(values | {"other": np.zeros(1)})
    with pytest.raises(ValueError):
        dw.load(path)

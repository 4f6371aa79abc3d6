"""Declared state: every name, type, size and limit that an estimator declares is enforced on its files."""

import copy
import pickle
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.state import Field, Growing, Part, declared, read_state, state_of, write_state
from driftwolfe.storage import read_archive, write_archive

FOLDER = Path(__file__).parent / "saved" / "3"
NAMES = sorted({*dw.estimators.__all__} - {"AdaptiveIntervals"})


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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kind", 3),
        ("width", 3),
        ("width", 0),
        ("flat", np.ones(5)),
        ("weights", np.full(3, 0.5)),
        ("order", np.array([5, 5])),
        ("first.places", np.array([0, 2])),
        ("first.numbers", np.full((2, 2), 2.0)),
        ("others", [5]),
        ("others.4.places", np.zeros(2, np.int64)),
    ],
)
def test_what_does_not_fit_is_refused(name, value, tmp_path):
    path = tmp_path / "part"
    write_state(path, "Mixed", {}, {"part": Mixed()})
    kind, settings, arrays = read_archive(path)
    holder = arrays if isinstance(value, np.ndarray) else settings["state"]
    holder[f"part.{name}"] = value
    write_archive(path, kind, settings, arrays)
    with pytest.raises(ValueError, match=r"not fit|not hold"):
        read_state(path, "Mixed", {}, {"part": Mixed})


def test_copies_and_pickles_hold_what_is_declared_and_can_be_written():
    part, buffers = Mixed(), []
    part.cache = 1
    text = pickle.dumps(part, protocol=5, buffer_callback=buffers.append)
    frozen = pickle.loads(text, buffers=[bytes(buffer) for buffer in buffers])
    for other in (copy.deepcopy(part), frozen):
        assert other.cache == 0 and other.total == 15.0
        assert other.flat.flags.writeable and other.first.tables.places.flags.writeable
        assert not np.shares_memory(other.flat, part.flat)


def content(name):
    kind, settings, arrays = read_archive(FOLDER / f"{name}.safetensors")
    return kind, settings, arrays


def refused(path, kind, settings, arrays):
    write_archive(path, kind, settings, arrays)
    with pytest.raises(ValueError):
        dw.load(path)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_needed(name, tmp_path):
    kind, settings, arrays = content(name)
    for each in arrays:
        refused(tmp_path / "model", kind, settings, {k: v for k, v in arrays.items() if k != each})
    for each in settings["state"]:
        state = {k: v for k, v in settings["state"].items() if k != each}
        refused(tmp_path / "model", kind, settings | {"state": state}, arrays)
    refused(tmp_path / "model", kind, settings, {**arrays, "other": np.zeros(1)})


@pytest.mark.parametrize("name", NAMES)
def test_no_array_is_of_another_type_or_shape_or_not_finite(name, tmp_path):
    kind, settings, arrays = content(name)
    for each, array in arrays.items():
        wrong = [array[None], array.astype(np.int16 if array.dtype.kind == "f" else np.float64)]
        if array.dtype.kind == "f" and array.size:
            wrong += [np.full_like(array, value) for value in (np.nan, np.inf, -np.inf)]
        for spoiled in wrong:
            refused(tmp_path / "model", kind, settings, arrays | {each: spoiled})


@pytest.mark.parametrize("name", NAMES)
def test_no_number_is_of_another_type(name, tmp_path):
    kind, settings, arrays = content(name)
    for each in settings["state"]:
        for wrong in (None, "a", -1.5, [[]], 10**400):
            state = settings["state"] | {each: wrong}
            refused(tmp_path / "model", kind, settings | {"state": state}, arrays)

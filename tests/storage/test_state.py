"""Declared state and its fields, written down and set again; what does not fit is refused."""

import math
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pytest

from driftwolfe.state import (
    Count,
    Field,
    Kind,
    Nested,
    Reader,
    State,
    Stateful,
    Writer,
    check_fields,
    declared,
)
from driftwolfe.storage import Archive, StoredArray

if TYPE_CHECKING:
    from elsewhere import Unknown


class Inner(Stateful):
    number: Count
    weights: Annotated[Any, Field(np.float64, ("n",), 0.0, sums=True)]

    def __init__(self, size):
        self.number, self.weights = 0, np.full(size, 1.0 / size)


class Base(Stateful):
    t: State[int]

    def __init__(self):
        self.t, self.rate, self.done = 3, 0.5, False
        self.x, self.y = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3)
        self.inner, self.several, self.absent = Inner(2), (Inner(2), Inner(2)), None
        self.other = object()


class Thing(Base):
    rate: State[float]
    done: "State[bool]"
    x: State[Any]
    y: State[Any]
    inner: Annotated[Any, Nested()]
    several: tuple[Inner, ...]
    absent: Inner | None
    other: "Unknown"

    def check(self):
        if self.t < 0:
            raise ValueError("this archive holds rounds that do not fit together")

    def derive(self):
        self.twice = 2 * self.t


def written(thing):
    writer = Writer({})
    return writer.write_part(thing), writer.arrays


def read(state, arrays):
    thing = Thing()
    Reader({}, Archive("Thing", {"state": state}, arrays)).restore(thing)
    return thing


def test_what_is_written_is_set_again():
    thing = Thing()
    thing.t, thing.rate, thing.done, thing.x = 8, 0.25, True, np.ones((5, 3))
    thing.inner.number, thing.several[1].number = 4, 5
    state, arrays = written(thing)
    assert "other" not in declared(Thing) and {"x", "y", "several.0.weights"} <= arrays.keys()
    again = read(state, arrays)
    assert (again.t, again.rate, again.done, again.twice) == (8, 0.25, True, 16)
    assert (again.inner.number, again.several[1].number) == (4, 5)
    np.testing.assert_array_equal(again.x, thing.x)
    np.testing.assert_array_equal(again.y, thing.y)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x", np.ones((2, 4))),
        ("t", 1 << 62),
        ("t", -(1 << 62)),
        ("t", -1),
        ("inner", Inner(3)),  # sizes are those of all parts
    ],
)
def test_what_does_not_fit_is_refused(name, value):
    thing = Thing()
    setattr(thing, name, value)
    with pytest.raises(ValueError, match=r"holds an? \w+ whose \w+ does not fit|do not fit"):
        read(*written(thing))


def test_a_state_with_other_names_is_refused():
    state, arrays = written(Thing())
    for other in ({**state, "more": 1}, {k: v for k, v in state.items() if k != "t"}, {}):
        with pytest.raises(ValueError, match="does not hold the state of a Thing"):
            read(other, arrays)
    for other in ({**arrays, "more": np.ones(1)}, {k: v for k, v in arrays.items() if k != "x"}):
        with pytest.raises(ValueError, match="does not hold the state of a Thing"):
            read(state, other)


def test_arrays_are_apart_and_keep_their_order():
    state, arrays = written(Thing())
    del arrays["y"]
    thing = read(state | {"y": {"array": "x"}}, arrays)
    thing.x[0, 0] = -1.0
    assert thing.y[0, 0] == 0.0
    thing = Thing()
    thing.x = np.asfortranarray(thing.x)
    again = read(*written(thing))
    assert again.x.flags.f_contiguous and not again.x.flags.c_contiguous
    np.testing.assert_array_equal(again.x, thing.x)


def test_a_declaration_that_cannot_be_read_is_refused():
    class Odd(Stateful):
        x: "State[Unknown]"

    with pytest.raises(TypeError, match=r"Odd declares State\[Unknown\], and name 'Unknown'"):
        declared(Odd)


class Leaf:
    def __init__(self, number):
        self.number = number


class Branch:
    """Whose leaf is made anew whenever it is read, often where the last one was in memory."""

    def __init__(self, number):
        self._number = number

    @property
    def leaf(self):
        return Leaf(self._number)


def test_objects_made_while_writing_are_not_taken_for_one_another():
    kinds = {
        "leaf": Kind(Leaf, lambda number: number, {"number": Field(int)}),
        "branch": Kind(Branch, lambda leaf: leaf, {"leaf": Field(int)}),
    }
    writer = Writer(kinds)
    state = writer.write([Branch(number) for number in range(20)], "branches")
    assert Reader(kinds, Archive("list", {}, writer.arrays)).read(state) == list(range(20))


FIELDS = {
    "x": Field(np.float64, ("n", "k"), least=-1.0, most=1.0),
    "flat": Field(np.float64, ("n k",)),
    "places": Field(np.int64, (None,), 0, below="n"),
    "pair": Field(tuple, (2,), items=Field(int, least=0)),
    "rate": Field(float),
    "done": Field(bool),
    "either": Field((int, np.float64)),
    "choice": Field(int, among=(1, 2)),
    "more": Field(list, items=Field(str), optional=True),
    "none": Field(str, optional=True),
}


def good():
    return {
        "x": np.full((3, 2), 0.5),
        "flat": np.ones(6),
        "places": np.array([0, 2]),
        "pair": (0, 7),
        "rate": 0.5,
        "done": True,
        "either": np.ones(1),
        "choice": 2,
        "more": None,
        "none": None,
    }


def test_what_fits_is_taken_and_sizes_are_told():
    assert check_fields(FIELDS, good(), "thing") == {"n": 3, "k": 2}
    assert check_fields(FIELDS, good() | {"more": ["a"], "either": 3}, "thing", n=3)["k"] == 2
    check_fields(FIELDS, good() | {"more": None, "places": np.zeros(0, np.int64)}, "thing")
    with pytest.raises(ValueError, match="whose x does not fit"):
        check_fields(FIELDS, good(), "thing", n=4)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x", np.full((3, 2), 0.5, np.float32)),
        ("x", np.full(3, 0.5)),
        ("x", np.full((3, 2), 1.5)),
        ("x", np.full((3, 2), -1.5)),
        ("x", np.full((3, 2), math.nan)),
        ("x", [[0.5, 0.5]] * 3),
        ("flat", np.ones(5)),
        ("flat", np.array([1.0, 1.0, 1.0, 1.0, 1.0, math.inf])),
        ("flat", np.array([-math.inf, 1.0, 1.0, 1.0, 1.0, 1.0])),
        ("places", np.array([3])),
        ("places", np.array([-1])),
        ("places", np.array([0.0])),
        ("pair", [0, 7]),
        ("pair", (0, 7, 7)),
        ("pair", (0, -7)),
        ("pair", (0, True)),
        ("rate", 1),
        ("rate", math.nan),
        ("rate", math.inf),
        ("rate", None),
        ("done", 1),
        ("either", "a"),
        ("either", 10**400),
        ("either", True),
        ("choice", 3),
        ("more", [1]),
        ("more", "a"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(name, value):
    with pytest.raises(ValueError, match=f"^this archive holds a thing whose {name} does not fit$"):
        check_fields(FIELDS, good() | {name: value}, "thing")


@pytest.mark.parametrize(
    "values",
    [
        *(None, [], {}, good() | {"other": 1}),
        *({k: v for k, v in good().items() if k != name} for name in ("x", "none")),
    ],
)
def test_other_names_are_refused(values):
    told = r"^this archive does not hold the state of a thing of this version; load it with the version"
    with pytest.raises(ValueError, match=told):
        check_fields(FIELDS, values, "thing")


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.complex64, np.uint8, np.bool_])
def test_arrays_of_any_type_are_finite(kind):
    fields = {"x": Field(kind, (None,))}
    check_fields(fields, {"x": np.ones(3, kind)}, "thing")
    for wrong in (math.nan, math.inf) if np.dtype(kind).kind in "fc" else ():
        with pytest.raises(ValueError, match="whose x does not fit"):
            check_fields(fields, {"x": np.array([1.0, wrong], kind)}, "thing")


def test_arrays_that_are_not_read_are_checked_by_type_and_shape():
    described = {
        name: StoredArray(value.dtype, value.shape, 0, value.nbytes)
        if isinstance(value, np.ndarray)
        else value
        for name, value in good().items()
    }
    assert check_fields(FIELDS, described, "thing") == {"n": 3, "k": 2}
    wrongs = (
        StoredArray(np.dtype("i8"), (3, 2), 0, 48),
        StoredArray(np.dtype("f8"), (3, 3), 0, 72),
    )
    for wrong in wrongs:
        with pytest.raises(ValueError, match=r"whose (x|flat) does not fit"):
            check_fields(FIELDS, described | {"x": wrong}, "thing")

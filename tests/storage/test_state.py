"""The state of an object, written down and set again; what does not fit is refused."""

import math

import numpy as np
import pytest
from driftwolfe.saved_state import Kind, TreeReader, TreeWriter

from driftwolfe.state import Field
from driftwolfe.storage import Archive


class Base:
    STATE = ("t",)

    def __init__(self):
        self.t, self.rate, self.done = 3, 0.5, False
        self.x, self.y = np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3)


class Thing(Base):
    STATE = ("rate", "done", "x", "y")

    def check_state(self):
        if self.t < 0:
            raise ValueError("this archive holds rounds that do not fit together")


def written(thing):
    writer = TreeWriter({})
    return writer.write_state(thing), writer.arrays


def read(state, arrays):
    thing = Thing()
    TreeReader({}, Archive("Thing", {"state": state}, arrays)).read_state(thing, state)
    return thing


def test_what_is_written_is_set_again():
    thing = Thing()
    thing.t, thing.rate, thing.done, thing.x = 8, 0.25, True, np.ones((5, 3))
    again = read(*written(thing))
    assert (again.t, again.rate, again.done) == (8, 0.25, True)
    np.testing.assert_array_equal(again.x, thing.x)
    np.testing.assert_array_equal(again.y, thing.y)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("x", np.array([[1.0, math.nan, 3.0]])),
        ("x", np.array([[1.0, -math.inf, 3.0]])),
        ("x", np.ones((2, 4))),
        ("x", np.ones(3)),
        ("x", np.ones((2, 3), np.float32)),
        ("x", [1.0, 2.0]),
        ("t", 8.0),
        ("t", True),
        ("t", 1 << 62),
        ("t", -(1 << 62)),
        ("t", -1),
        ("rate", 1),
        ("rate", math.nan),
        ("rate", math.inf),
        ("done", 1),
        ("done", None),
    ],
)
def test_what_does_not_fit_is_refused(name, value):
    thing = Thing()
    setattr(thing, name, value)
    with pytest.raises(ValueError, match=r"holds a Thing whose \w+ does not fit|do not fit"):
        read(*written(thing))


def test_a_state_with_other_names_is_refused():
    state, arrays = written(Thing())
    for other in ({**state, "more": 1}, {k: v for k, v in state.items() if k != "t"}, [], None):
        with pytest.raises(ValueError, match="does not hold the state of a Thing"):
            read(other, arrays)


def test_arrays_that_a_file_takes_for_one_are_two():
    state, arrays = written(Thing())
    state["y"] = state["x"]
    thing = read(state, arrays)
    thing.x[0, 0] = -1.0
    assert thing.y[0, 0] == 0.0


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
        "leaf": Kind(Leaf, {"number": Field(int)}, lambda number: number),
        "branch": Kind(Branch, {"leaf": Field(int)}, lambda leaf: leaf),
    }
    writer = TreeWriter(kinds)
    state = writer.write([Branch(number) for number in range(20)])
    assert TreeReader(kinds, Archive("list", {}, writer.arrays)).read(state) == list(range(20))

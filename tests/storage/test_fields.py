"""One table of fields says what a saved state must be; anything else is refused with one kind of error."""

import math

import numpy as np
import pytest

from driftwolfe.state import Field, check_fields
from driftwolfe.storage import StoredArray

FIELDS = {
    "x": Field(np.float64, ("n", "k"), least=-1.0, most=1.0),
    "flat": Field(np.float64, ("n k",)),
    "places": Field(np.int64, (None,), 0, below="n"),
    "pair": Field(tuple, (2,), items=Field(int, least=0)),
    "rate": Field(float),
    "done": Field(bool),
    "either": Field((int, np.float64)),
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
    with pytest.raises(ValueError, match=r"^this archive does not hold the state of a thing$"):
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

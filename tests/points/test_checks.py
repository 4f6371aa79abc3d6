"""What checks of input return, and what they say of wrong input."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from driftwolfe.points import checks


def broken():
    eye = sp.csr_array(np.eye(2))
    eye.indices[1] = 5
    return eye


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: checks.positive(-1, "radius"),
            "radius must be a positive finite number, got -1",
        ),
        (
            lambda: checks.finite_array([1, float("nan")], "y", (2,)),
            "y has entries that are not finite (first at index (1,))",
        ),
        (
            lambda: checks.refuse_masked(np.ma.masked_array([1.0, 9e9], mask=[False, True]), "y"),
            "y has masked entries; fill them in (with .filled) or leave them out",
        ),
        (
            lambda: checks.entry_indices(np.ma.masked_array([0, 1], mask=[0, 1]), [0, 1], (2, 2)),
            "rows has masked entries; fill them in (with .filled) or leave them out",
        ),
        (
            lambda: checks.sound_sparse(broken(), "features"),
            "features is a broken sparse matrix: column indices must lie in 0..1, got 5",
        ),
    ],
)
def test_messages_say_what_is_wrong_and_what_is_allowed(call, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        call()


def test_input_is_converted():
    radius, point = checks.positive(2, "radius"), checks.as_point([1, 2])
    assert type(radius) is float and radius == 2.0
    assert point.dtype == np.float64 and point.tolist() == [1.0, 2.0]


def test_masks_are_found_as_deep_as_lists_are_read():
    hidden = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    for wrap in (lambda inner: [inner], lambda inner: (inner,), lambda inner: [[1.0], inner]):
        value = hidden
        for _ in range(checks._DEEPEST_LIST):
            value = wrap(value)
            assert checks.has_masked_entries(value)
        assert not checks.has_masked_entries([np.ones(2), [1.0]])


#: Numbers of many types, those at the ends of ranges among them, and what is no number.
NUMBERS = st.one_of(
    *(
        st.integers(-3, 6),
        st.floats(),
        st.sampled_from([10**400, -(10**400), 1 << 62, 3 << 61]),
    ),
    *(st.integers(-3, 6).map(kind) for kind in (np.int8, np.int64, np.float32, float)),
)
NO_NUMBERS = st.sampled_from(["1", b"1", None, True, np.False_, 1j, [1.0, 2.0]])


@given(st.one_of(NUMBERS, NO_NUMBERS), st.integers(0, 3), st.integers(3, 5))
@settings(max_examples=300)
@example(5e-324, 0, 3)
@example(0.0, 0, 3)
@example(-0.0, 1, 3)
def test_numbers_are_taken_where_they_are_allowed_and_nowhere_else(value, least, most):
    number = not isinstance(value, bool | np.bool_ | str | bytes | complex | list)
    number = number and value is not None
    plain = value.item() if hasattr(value, "item") else value
    finite = number and -(10**308) <= plain <= 10**308
    whole = finite and value == int(value)
    for call, allowed in (
        (lambda: checks.positive(value, "x"), finite and value > 0),
        (lambda: checks.nonnegative(value, "x"), finite and value >= 0),
        (lambda: checks.count(value, "x"), finite and whole and 1 <= value <= 1 << 62),
        (
            lambda: checks.count(value, "x", least, most),
            finite and whole and least <= value <= most,
        ),
    ):
        if allowed:
            assert call() == value and type(call()) in (int, float)
        else:
            with pytest.raises((ValueError, TypeError), match=r"^x must be"):
                call()


SMALL = st.lists(st.integers(-1, 4), max_size=5)


#: Where lines begin: mostly as they should, rising from 0.
STARTS = st.lists(st.integers(0, 4), min_size=2, max_size=2).map(lambda ends: [0, *sorted(ends)])


@given(st.sampled_from(["csr", "csc"]), STARTS | st.lists(st.integers(-1, 6)), SMALL, SMALL)
@settings(max_examples=400)
def test_sparse_matrices_are_sound_where_their_parts_fit_together(form, indptr, indices, data):
    matrix = sp.csr_array((2, 3)) if form == "csr" else sp.csc_array((3, 2))
    matrix.indptr, matrix.indices = np.array(indptr, np.int32), np.array(indices, np.int32)
    matrix.data = np.array(data, float)
    rising = len(indptr) == 3 and indptr[0] == 0 and indptr == sorted(indptr)
    inside = rising and indptr[-1] <= len(data) == len(indices)
    if inside and all(0 <= index < 3 for index in indices[: indptr[-1]]):
        assert checks.sound_sparse(matrix, "S") is matrix
        return
    with pytest.raises(ValueError, match="S is a broken sparse matrix"):
        checks.sound_sparse(matrix, "S")


@given(SMALL, SMALL)
def test_places_are_taken_where_the_matrix_has_them(rows, cols):
    fit = len(rows) == len(cols) and all(0 <= i < 2 for i in rows) and all(0 <= j < 4 for j in cols)
    if not fit:
        with pytest.raises(ValueError, match=r"rows|cols"):
            checks.entry_indices(rows, cols, (2, 4))
        return
    found = checks.entry_indices(rows, cols, (2, 4))
    assert [each.tolist() for each in found] == [rows, cols]


def test_shapes_and_names_that_are_meant():
    assert checks.shape(3) == (3,) and checks.shape([2, 3]) == checks.matrix_shape((2, 3)) == (2, 3)
    for wrong in ((), (2, 0), (2.5,), "ab"):
        with pytest.raises((ValueError, TypeError), match="shape must"):
            checks.shape(wrong)
    for wrong in (3, (2, 3, 4), (1 << 31, 2), (2, 1 << 31)):
        with pytest.raises(ValueError, match="a matrix has"):
            checks.matrix_shape(wrong)
    assert checks.matrix_shape((2, (1 << 31) - 1))[1] == (1 << 31) - 1
    assert checks.meant("radus", ["radius", "shape"]) == "; did you mean 'radius'?"
    assert checks.meant("L1BALL", ["driftwolfe.L1Ball"]).endswith("'driftwolfe.L1Ball'?")
    assert checks.meant("zzz", ["radius"]) == ""

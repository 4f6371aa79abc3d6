"""What checks of input return, and what they say of wrong input."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

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

"""Choices and whole numbers that stay the same when the last bits change."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftwolfe.points.ops import (
    line_search_step,
    near_largest,
    ramp,
    tilt,
    tilted,
    whole_above,
    whole_below,
)


@given(st.floats(), st.floats())
def test_a_share_is_between_0_and_1_for_all_numbers(gap, length2):
    step = line_search_step(gap, length2)
    assert 0.0 <= step <= 1.0
    if 0 < gap < length2 < math.inf:
        exact = float(Fraction(gap) / Fraction(length2))
        assert step == pytest.approx(exact, rel=1e-15, abs=5e-324)


def test_shares_near_the_end_of_the_way():
    assert line_search_step(1e-17, -1e-20) == 1.0  # the length has cancelled to less than nothing
    assert line_search_step(1e-17, math.nan) == 1.0
    assert line_search_step(math.nan, 1.0) == 0.0
    assert line_search_step(0.0, 0.0) == 0.0
    assert line_search_step(1.0, 4.0) == 0.25
    assert line_search_step(1.0, -1e-17) == 1.0
    assert line_search_step(-1.0, 4.0) == 0.0


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_a_ramp_rises_between_one_and_two_widths(scale):
    values = scale * np.array([0.0, 1.0, 1.5, 2.0, 7.0])
    np.testing.assert_allclose(ramp(values, scale), [0.0, 0.0, 0.5, 1.0, 1.0], atol=1e-15)
    np.testing.assert_array_equal(ramp(values, 0.0), [0.0, 1.0, 1.0, 1.0, 1.0])
    np.testing.assert_array_equal(
        ramp(values, np.array([0.0, 8, 8, 8, 2]) * scale), [0, 0, 0, 0, 1]
    )


def test_numbers_that_are_the_largest_but_for_rounding():
    rng = np.random.default_rng(0)
    for scale in (1e-200, 1.0, 1e200):
        for sign in (1.0, -1.0):
            values = sign * scale * np.array([0.3, 0.5, 0.4, 0.5, 0.1, 0.5])
            expected = [1, 3, 5] if sign > 0 else [4]
            for _ in range(20):
                shaken = values * (1.0 + 1e-15 * rng.uniform(-1.0, 1.0, 6))
                assert near_largest(shaken).tolist() == expected
    assert near_largest(np.zeros(3)).tolist() == [0, 1, 2]
    assert near_largest(np.array([0.2, 0.4, 0.4 - 1e-16])).tolist() == [1, 2]
    assert near_largest(np.array([1.0, 1.0 - 1e-6])).tolist() == [0]


@pytest.mark.parametrize("number", [0, 1, 2, 3, 15, 16, 81, 4096, 10**9])
@pytest.mark.parametrize("error", [0.0, 1e-15, -1e-15, 1e-14, -1e-14])
def test_whole_numbers_that_were_rounded(number, error):
    value = number * (1.0 + error)
    assert whole_below(value) == whole_above(value) == number
    assert whole_below(number + 0.5) == number
    assert whole_above(number + 0.5) == number + 1
    assert (whole_below(2.9), whole_below(3.0 - 1e-15)) == (2, 3)
    assert (whole_above(2.1), whole_above(3.0 + 1e-15)) == (3, 3)


def test_a_tilt_settles_ties_and_nothing_else():
    rng, along = np.random.default_rng(1), tilt(6)
    tied = np.array([2.0, 1.0, 1.0, 3.0, 1.0, 1.0])
    orders = {
        tuple(np.argsort(tilted(tied + 1e-15 * rng.standard_normal(6), along))) for _ in range(50)
    }
    assert len(orders) == 1
    clear = rng.standard_normal(6)
    assert np.argsort(tilted(1e250 * clear, along)).tolist() == np.argsort(clear).tolist()
    allowed = 1e-12 * np.linalg.norm(clear)
    np.testing.assert_allclose(tilted(clear, along), clear, rtol=0, atol=allowed)
    for scale in (1e-200, 1e200):  # squares are 0, and infinite
        moved = tilted(scale * np.ones(6), along) - scale
        assert 0.0 < moved.max() <= 1e-11 * scale
    assert not tilted(np.zeros(6), along).any()

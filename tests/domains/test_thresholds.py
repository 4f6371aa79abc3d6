from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from driftwolfe.domains.balls import (
    project_capped_sums,
    threshold_to_sum,
)
from driftwolfe.points.lanczos import threshold_falling

project_nonnegative_sum = partial(threshold_to_sum, simplex=True)

numbers = st.floats(-5, 5) | st.sampled_from([-1.0, 0.0, 0.5, 1.0])


def clipped_root(values, total, cap):
    """The same projection by a root finder."""

    def excess(theta):
        return np.clip(values - theta, 0, cap).sum() - total

    ends = values.min() - cap - 1, values.max() + 1
    return np.clip(values - brentq(excess, *ends, xtol=1e-15), 0, cap)


@given(st.lists(numbers, min_size=1, max_size=9), st.floats(0, 1), st.floats(0.1, 3))
def test_capped_sums_agree_with_a_root_finder(values, share, cap):
    values = np.array(values)
    total = share * cap * values.size
    answer = project_capped_sums(values[None], total, cap)[0]
    assert np.isclose(answer.sum(), total, rtol=1e-13, atol=1e-13)
    assert answer.min() >= 0
    assert answer.max() <= cap
    assert np.allclose(answer, clipped_root(values, total, cap), atol=1e-12)


def test_rows_are_problems_of_their_own():
    values = np.random.default_rng(0).normal(size=(50, 7))
    together = project_capped_sums(values, 3.0, 1.0)
    alone = [project_capped_sums(row[None], 3.0, 1.0)[0] for row in values]
    assert np.array_equal(together, alone)
    assert project_capped_sums(values[:0], 3.0, 1.0).shape == (0, 7)


def test_huge_values_keep_the_sum():
    rng = np.random.default_rng(1)
    values = 1e12 * rng.normal(size=40)
    assert np.isclose(project_nonnegative_sum(values, 1.0).sum(), 1.0, rtol=1e-12)
    assert np.isclose(project_capped_sums(values[None], 3.5, 1.0).sum(), 3.5, rtol=1e-12)


def by_sorting(values, total):
    """Held, Wolfe and Crowder, one row at a time."""
    falling = np.sort(values - values.max())[::-1]
    thetas = (np.cumsum(falling) - total) / np.arange(1, values.size + 1)
    last = np.flatnonzero(falling > thetas)[-1]
    return np.maximum(values - values.max() - thetas[last], 0.0)


def long_rows():
    rng = np.random.default_rng(2)
    n = 4000
    yield "few stand out", np.where(np.arange(n) < 5, 1.0, 0.01) * rng.random(n)
    yield "spread", 4.0 * rng.random(n)
    yield "nearly inside", np.abs(rng.standard_normal(n)) / n
    yield "huge", 1e300 * rng.standard_normal(n)
    yield "equal", np.full(n, 3.0)
    yield "one", np.eye(1, n)[0]
    # Each entry lies just below the threshold of those before it, by more and more: few drop out
    # at a time.
    stairs, total = [0.0] * 50, 0.0
    for k in range(50, n):
        stairs.append((total - 0.5) / k - 0.4 * 1.05 ** (k - n))
        total += stairs[-1]
    yield "stairs", np.array(stairs)


@pytest.mark.parametrize("values", [pytest.param(v, id=name) for name, v in long_rows()])
def test_long_rows_get_the_threshold_that_sorting_finds(values):
    answer = project_nonnegative_sum(values, 0.5)
    np.testing.assert_allclose(answer, by_sorting(values, 0.5), rtol=1e-9, atol=1e-15)
    assert answer.sum() == pytest.approx(0.5, rel=1e-11)
    np.testing.assert_array_equal(project_nonnegative_sum(values[None], 0.5)[0], answer)


@pytest.mark.parametrize("n", [1, 7, 1500])
def test_rows_of_sums_are_problems_of_their_own(n):
    values = np.random.default_rng(3).random((6, n)) * np.array([[1e-4, 0.1, 1, 3, 1e6, 0]]).T
    for project in (project_nonnegative_sum, threshold_to_sum):
        np.testing.assert_allclose(
            project(values, 2.0), [project(row, 2.0) for row in values], rtol=0, atol=1e-15
        )
    inside = values.sum(axis=1) <= 2.0
    np.testing.assert_array_equal(threshold_to_sum(values, 2.0)[inside], values[inside])
    assert threshold_to_sum(values[inside], 2.0) is not values


@pytest.mark.parametrize("total", [0.3, 1.0, 2.5, 100.0])
def test_falling_values_have_the_threshold_that_sorting_finds(total):
    """max(values - theta, 0) has the sum asked for; values of a smaller sum stay."""
    rng = np.random.default_rng(3)
    for size in (1, 2, 5, 40):
        values = np.sort(rng.exponential(size=size))[::-1]
        wanted = values if values.sum() <= total else by_sorting(values, total)
        np.testing.assert_allclose(threshold_falling(values, total), wanted, atol=1e-12)


@pytest.mark.parametrize("far", [1e9, 1e17, 1e300])
@pytest.mark.parametrize(
    ("total", "wanted"),
    [
        (0.5, [0.5, 0, 0]),
        (1.0, [1, 0, 0]),
        (1.5, [1, 0.5, 0]),
        (2.0, [1, 1, 0]),
        (2.75, [1, 1, 0.75]),
    ],
)
def test_values_far_apart_fill_up_one_by_one(far, total, wanted):
    values = np.array([[far, 0.0, -far]])
    np.testing.assert_allclose(project_capped_sums(values, total, 1.0), [wanted], atol=1e-12)

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from driftwolfe.domains.thresholds import project_capped_sums, project_nonnegative_sum

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


@pytest.mark.parametrize(("total", "expected"), [(0.0, 0.0), (4.0, 1.0)])
def test_extreme_totals(total, expected):
    values = np.array([[3.0, -2.0, 0.0, 0.0]])
    assert np.array_equal(project_capped_sums(values, total, 1.0), np.full((1, 4), expected))


def test_huge_values_keep_the_sum():
    rng = np.random.default_rng(1)
    values = 1e12 * rng.normal(size=40)
    assert np.isclose(project_nonnegative_sum(values, 1.0).sum(), 1.0, rtol=1e-12)
    assert np.isclose(project_capped_sums(values[None], 3.5, 1.0).sum(), 3.5, rtol=1e-12)

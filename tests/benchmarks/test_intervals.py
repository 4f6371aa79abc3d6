"""What `benchmarks.intervals` computes besides playing: levels in hindsight, least widths."""

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks.intervals import in_hindsight, least_widths, scored


def test_levels_in_hindsight_give_the_wanted_coverage():
    residuals = np.random.default_rng(0).standard_normal(1100)

    def too_short(residuals, coverage):
        radii = np.full(residuals.size, 0.8 * norm.ppf(0.5 + 0.5 * coverage))
        return -radii, radii

    assert scored(too_short(residuals, 0.9), residuals).coverage < 0.85
    found = scored(in_hindsight(too_short)(residuals), residuals)
    assert found.coverage == pytest.approx(0.9, abs=0.002)
    assert found.width == pytest.approx(2.0 * np.quantile(np.abs(residuals[100:]), 0.9), rel=0.01)


def test_least_widths_are_those_of_least_squares():
    price, slope, past = 0.018, 2.0 * norm.ppf(0.95) * norm.pdf(norm.ppf(0.95)), 300
    # Means of 100 consecutive rows of a filter that starts at 1, and its size, weighted.
    means = np.array([np.convolve(row, np.full(100, 0.01)) for row in np.eye(past + 1)]).T
    rows = np.vstack((means, np.sqrt(price) / slope * np.eye(past + 1)))
    rest = np.linalg.lstsq(rows[:, 1:], -rows[:, 0], rcond=None)[0]
    error = np.sqrt(2.0 / np.pi * 0.09) * np.linalg.norm(means @ np.append(1.0, rest))
    theta = 0.09 * rest @ rest / slope**2
    width = 2.0 * norm.ppf(0.95) * (1.0 + 0.5 * norm.ppf(0.95) ** 2 * theta)
    assert [float(each) for each in least_widths((price,))[0]] == [
        pytest.approx(error, abs=1e-4),
        pytest.approx(width, abs=1e-3),
    ]
    errors, widths = np.array(least_widths(), dtype=float).T
    assert (np.diff(errors) < 0.0).all() and (np.diff(widths) > 0.0).all()

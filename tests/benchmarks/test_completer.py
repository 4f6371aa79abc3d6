"""What the completer's benchmark measures with: recoveries and tables."""

import numpy as np
import pytest

from benchmarks.completer import (  # fmt: skip
    baseline,
    biased_mf,
    errors_in_batches,
    errors_of_ours,
    errors_of_river,
    tuned,
)
from benchmarks.data import RatingStream, recoveries, recovery


def test_a_recovery_is_counted_from_the_change():
    errors = np.ones(30_000)
    errors[10_000:11_000] = 3.0
    # Of 500 ratings 25 may still miss by 3: their mean is then 1.1.
    assert recovery(errors, 10_000) == 1_000 + 500 - 25
    assert recovery(errors, 10_000, 11_400) is None
    assert recoveries(errors, (10_000, 20_000)) == [1_475, 500]
    assert recoveries(errors, ()) == []
    errors[10_000:] = 1.11
    assert recovery(errors, 10_000) is None


def small_stream():
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 20, (1500, 2))
    ratings = 3.0 + np.sin(pairs[:, 0]) + np.cos(pairs[:, 1]) + rng.normal(size=1500) / 4.0
    ratings[750:] *= -1.0
    return RatingStream("small", pairs, ratings, (750,))


@pytest.mark.parametrize("make", [biased_mf, baseline])
def test_every_contestant_learns(make):
    stream = small_stream()
    rate, errors = tuned(make, stream)
    again = errors_of_river(make(rate), stream)
    assert errors.tolist() == again.tolist()
    ours = errors_of_ours(stream)
    assert ours.mean() < errors.mean() < np.abs(stream.ratings).mean()
    assert errors_in_batches(stream)[:100].mean() > ours[:100].mean()

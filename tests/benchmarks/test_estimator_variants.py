"""What benchmarks of estimators measure with: variants, recoveries, levels in hindsight."""

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks import estimator_variants as variants
from benchmarks.completer import (
    baseline,
    biased_mf,
    errors_in_batches,
    errors_of_ours,
    errors_of_river,
    tuned,
)
from benchmarks.data import RatingStream, recoveries, recovery
from benchmarks.intervals import in_hindsight, least_widths, scored
from driftwolfe import TraceNormBall
from driftwolfe.ensemble import AdaHedge
from driftwolfe.estimators.core.rows import as_rows
from driftwolfe.losses import MulticlassLogistic
from estimators.classifier_streams import experts_of, seen_as, turning
from estimators.rating_streams import turning as turning_ratings


def test_a_lazy_expert_projects_the_sum_of_its_steps():
    X = np.random.default_rng(0).standard_normal((60, 4))
    X, y = X * (2.0 / np.linalg.norm(X, axis=1, keepdims=True)), (X[:, 0] > 0.0).astype(np.int64)
    radius, length, classes = 0.5, 64, 3
    experts = experts_of((radius,), classes, X.shape[1], base=variants.LazyExperts)
    ball, total = TraceNormBall((classes, X.shape[1]), radius), np.zeros((classes, X.shape[1]))
    (place,) = np.flatnonzero(experts.lengths == length)
    for row, label in zip(X, y, strict=True):  # one interval of that length, and no restart
        held = experts.points.reshape(X.shape[1], -1, classes)[:, place].T
        assert held == pytest.approx(ball.project(total), abs=1e-9)
        _, gradient = MulticlassLogistic(row[None], [label], classes).value_and_gradient(held)
        total -= radius / np.sqrt(2.0 * length) * gradient
        experts._learn(seen_as(row[None]), np.array([label]), np.ones(1))
    assert np.linalg.svd(total, compute_uv=False).sum() > 1.2 * radius  # so that laziness matters


def test_without_projections_lazy_experts_are_todays():
    X, y = turning(rows=100)
    experts = [variants.CLASSIFIERS[name] for name in ("today", "lazy")]
    today, lazy = (_classified(kind, X, y, radii=(1e2,)) for kind in experts)
    assert lazy == pytest.approx(today, abs=1e-6)


def test_experts_from_zero_start_there():
    X, y = turning(rows=16)
    experts = experts_of((10.0, 10.0), 3, X.shape[1], base=variants.CentredExperts)
    experts._learn(seen_as(X), y.astype(np.int64), np.ones(16))
    shortest = experts.points.reshape(X.shape[1], -1, 3)[:, :2]
    assert np.any(shortest[:, 0]) and not np.any(shortest[:, 1])


@pytest.mark.parametrize("name", ["AdaHedge", "AdaHedge, linearised"])
def test_weights_are_those_of_adahedge(name):
    X, y = turning(rows=30)
    experts = experts_of((2.0, 20.0), 3, X.shape[1], base=variants.CLASSIFIERS[name])
    meta = AdaHedge(experts.weights.size)
    for row, label in zip(X, y, strict=True):
        assert experts.weights == pytest.approx(meta.weights)
        stacked = experts.points.reshape(X.shape[1], -1, 3)
        scores = np.exp(np.einsum("j,jic->ic", row, stacked))
        p = (scores / scores.sum(axis=1, keepdims=True))[:, label]
        meta.update(-np.log(p) if name == "AdaHedge" else -p / (experts.weights @ p))
        experts._learn(seen_as(row[None]), np.array([label]), np.ones(1))


def test_every_pool_learns():
    pairs, ratings = turning_ratings(count=2500, users=60, items=40)
    stream = RatingStream("", np.array(pairs), ratings)
    naive = np.abs(ratings - np.median(ratings)).mean()
    errors = {name: variants.completed(pool, stream)[0] for name, pool in variants.POOLS.items()}
    assert max(errors.values()) < naive
    assert all(error != errors["today"] for name, error in errors.items() if name != "today")


def _classified(kind, X, y, radii):
    """As `classified`, for other radii."""
    learner = type("Own", (kind,), {"RADII": radii})(3, X.shape[1], "linear")
    found = []
    for k in range(y.size):
        row = as_rows(X[k : k + 1])
        found.append(learner.predict(row)[0])
        learner.learn(row, y[k : k + 1].astype(np.int64), np.ones(1))
    return np.array(found)


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
    found = [float(each) for each in least_widths((price,))[0]]
    assert found == [pytest.approx(error, abs=1e-4), pytest.approx(width, abs=1e-3)]
    errors, widths = np.array(least_widths(), dtype=float).T
    assert (np.diff(errors) < 0.0).all() and (np.diff(widths) > 0.0).all()

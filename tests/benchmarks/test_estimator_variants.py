"""The variants that `python -m benchmarks.estimator_variants` compares are what it says they are."""

import numpy as np
import pytest

from benchmarks import estimator_variants as variants
from benchmarks.data import RatingStream
from driftwolfe import TraceNormBall
from driftwolfe.ensemble import AdaHedge
from driftwolfe.estimators.core.rows import as_rows
from driftwolfe.losses import MulticlassLogistic
from estimators.classifier_streams import seen_as, turning
from estimators.rating_streams import turning as turning_ratings


def test_a_lazy_expert_projects_the_sum_of_its_steps():
    X = np.random.default_rng(0).standard_normal((60, 4))
    X, y = X * (2.0 / np.linalg.norm(X, axis=1, keepdims=True)), (X[:, 0] > 0.0).astype(np.int64)
    radius, length, classes = 0.5, 64, 3
    experts = variants.LazyExperts((radius,), classes, X.shape[1], True)
    ball, total = TraceNormBall((classes, X.shape[1]), radius), np.zeros((classes, X.shape[1]))
    (place,) = np.flatnonzero(experts.lengths == length)
    for row, label in zip(X, y, strict=True):  # one interval of that length, and no restart
        held = experts.points.reshape(X.shape[1], -1, classes)[:, place].T
        assert held == pytest.approx(ball.project(total), abs=1e-9)
        _, gradient = MulticlassLogistic(row[None], [label], classes).value_and_gradient(held)
        total -= radius / np.sqrt(2.0 * length) * gradient
        experts.learn(seen_as(row[None]), np.array([label]), np.ones(1))
    assert np.linalg.svd(total, compute_uv=False).sum() > 1.2 * radius  # so that laziness matters


def test_without_projections_lazy_experts_are_todays():
    X, y = turning(rows=100)
    experts = [variants.CLASSIFIERS[name] for name in ("today", "lazy")]
    today, lazy = (_classified(kind, X, y, radii=(1e2,)) for kind in experts)
    assert lazy == pytest.approx(today, abs=1e-6)


def test_experts_from_zero_start_there():
    X, y = turning(rows=16)
    experts = variants.CentredExperts((10.0,), 3, X.shape[1], True)
    experts.learn(seen_as(X), y.astype(np.int64), np.ones(16))
    shortest = experts.points.reshape(X.shape[1], -1, 3)[:, :2]
    assert np.any(shortest[:, 0]) and not np.any(shortest[:, 1])


@pytest.mark.parametrize("name", ["AdaHedge", "AdaHedge, linearised"])
def test_weights_are_those_of_adahedge(name):
    X, y = turning(rows=30)
    experts = variants.CLASSIFIERS[name]((2.0, 20.0), 3, X.shape[1], True)
    meta = AdaHedge(experts.weights.size)
    for row, label in zip(X, y, strict=True):
        assert experts.weights == pytest.approx(meta.weights)
        stacked = experts.points.reshape(X.shape[1], -1, 3)
        scores = np.exp(np.einsum("j,jic->ic", row, stacked))
        p = (scores / scores.sum(axis=1, keepdims=True))[:, label]
        meta.update(-np.log(p) if name == "AdaHedge" else -p / (experts.weights @ p))
        experts.learn(seen_as(row[None]), np.array([label]), np.ones(1))


def test_every_pool_learns():
    pairs, ratings = turning_ratings(count=2500, users=60, items=40)
    stream = RatingStream("", np.array(pairs), ratings)
    naive = np.abs(ratings - np.median(ratings)).mean()
    errors = {name: variants.completed(pool, stream)[0] for name, pool in variants.POOLS.items()}
    assert max(errors.values()) < naive
    assert all(error != errors["today"] for name, error in errors.items() if name != "today")


def _classified(kind, X, y, radii):
    """As `classified`, for other radii."""
    learner = variants.ClassLearner(radii, "pola", True, 3, X.shape[1])
    learner.experts = kind(radii, 3, X.shape[1] + 1, True)
    found = []
    for k in range(y.size):
        row = as_rows(X[k : k + 1])
        found.append(learner.predict(row)[0])
        learner.learn(row, y[k : k + 1].astype(np.int64), np.ones(1))
    return np.array(found)

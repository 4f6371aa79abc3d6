"""`TraceNormClassifier`: noise of the size of rounding errors in the features hardly changes probabilities."""

import numpy as np
import pytest

from driftwolfe.estimators import TraceNormClassifier
from driftwolfe.estimators.classifier import BLOCK
from driftwolfe.estimators.core.rows import FeatureMap
from estimators.classifier_streams import experts_of, mapped

NOISE = 1e-14
#: Noise may grow along the rows, as experts take long steps, but not by more than this. A comparison that
#: hangs on it moves probabilities by a thousandth and more.
GROWTH = 1e8
BOUND = GROWTH * NOISE


def table(seed, rows=300):
    """Halves in the odd tables; some features are constant, for good or at first, some rows rare."""
    rng = np.random.default_rng(seed)
    features, classes = (3, 10, 40, 300)[seed % 4], 2 + seed % 3
    X = rng.standard_normal((rows, features))
    if seed % 2:
        X = np.round(2.0 * X) / 2.0
    X[:, 0] = 0.1
    X[: rows // 4, 1] = 7.0
    X[rng.random((rows, features)) < 0.1 * (seed % 3)] = 0.0
    scores = X @ rng.standard_normal((features, classes)) + rng.standard_normal((rows, classes))
    y = scores.argmax(axis=1)
    y[:classes] = np.arange(classes)
    return X, y


def moved(learn, X):
    """How far relative noise, which keeps zeros, moves the probabilities of other rows."""
    rng = np.random.default_rng(1)
    disturbed = X * (1.0 + NOISE * rng.standard_normal(X.shape))
    others = rng.standard_normal((50, X.shape[1]))
    told, other = (learn(each).predict_proba(others) for each in (X, disturbed))
    return float(np.abs(told - other).max())


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", range(12))
def test_noise_of_rounding_moves_no_probability(seed):
    X, y = table(seed)
    classes = np.unique(y)
    assert moved(lambda Z: TraceNormClassifier().partial_fit(Z, y, classes=classes), X) < BOUND


@pytest.mark.parametrize("features", [2, 300])
def test_a_zero_with_noise_is_not_there(features):
    """It counts neither for the scale of a feature nor for the rows that have it."""
    rng = np.random.default_rng(3)
    X = np.zeros((40, features))
    X[:, 0] = 3.0 * (np.arange(40) % 4 == 0)
    maps = [FeatureMap(features) for _ in "ab"]
    for made, noise in zip(maps, (0.0, NOISE), strict=True):
        Z = X.copy()
        Z[:, 0] += noise * (1.0 + rng.random(40))
        mapped(made, Z, np.ones(40))
        made.renew()
    assert maps[0].seen[0] == maps[1].seen[0] == 10.0
    assert maps[1]._scales()[0] == pytest.approx(maps[0]._scales()[0], rel=1e-12)


def test_a_feature_that_varies_by_rounding_is_constant():
    rng = np.random.default_rng(4)
    X = np.column_stack([0.1 + NOISE * rng.standard_normal(64), rng.standard_normal(64)])
    made = FeatureMap(2)
    mapped(made, X, np.ones(64))
    made.renew()
    assert not made.table[0].any() and not made.table[:, 0].any()
    assert made.table[1, 1] > 0.0 and not made.is_behind
    mapped(made, X + np.array([1e-9, 0.0]), np.ones(64))
    assert made.is_behind


def test_of_equal_weights_the_longest_interval_counts_as_heaviest():
    for noise in (-1e-14, 0.0, 1e-14):
        experts = experts_of((10.0,), 2, 1)
        experts.points[0] = np.arange(10.0)
        experts.weights[:] = [0.1, 0.3 - noise, 0.1, 0.3 + noise, 0.2]
        experts.t = BLOCK
        experts._end_round()
        assert experts.points[0, :2].tolist() == [6.0, 7.0]

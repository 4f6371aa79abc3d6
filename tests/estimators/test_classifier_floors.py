"""How well the classifier does, with its defaults, on real and made-up streams.

Rows are predicted one by one, each before it is learned.
"""

import math

import numpy as np
import pytest
from river import datasets as river_data
from river import linear_model, optim
from sklearn import datasets

from benchmarks.classifier import as_table
from benchmarks.nonlinear import agrawal, hyperplane, rbf, sea
from driftwolfe import streams
from driftwolfe.estimators.classifier import ClassLearner
from driftwolfe.estimators.core.rows import as_rows
from driftwolfe.estimators.river import RiverTraceNormClassifier
from estimators.classifier_streams import shuttle_rows
from real_data import needs_data


def played(X, y, **options):
    """Mean log loss and error of the default learner, and the learner."""
    learner = ClassLearner(int(y.max()) + 1, X.shape[1], **options)
    logs, wrong = 0.0, 0
    for k in range(len(y)):
        rows = as_rows(X[k : k + 1])
        p = learner.predict(rows)[0]
        logs -= math.log(max(p[y[k]], 1e-15))
        wrong += int(p.argmax() != y[k])
        learner.learn(rows, y[k : k + 1].astype(np.int64), np.ones(1))
    return logs / len(y), wrong / len(y), learner


def played_by_river(model, X, y):
    """Mean log loss and error; a label that was never seen has probability 0, which costs -log(1e-15)."""
    logs, wrong = 0.0, 0
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        x = dict(enumerate(row))
        p = model.predict_proba_one(x)
        logs -= math.log(max(p.get(label, 0.0), 1e-15))
        wrong += not p or max(p, key=p.get) != label
        model.learn_one(x, label)
    return logs / len(y), wrong / len(y)


def softmax_of_river(X, y, rate):
    return played_by_river(linear_model.SoftmaxRegression(optim.SGD(rate)), X, y)


@needs_data
def test_the_start_of_shuttle_with_signs_flipped_twice():
    X, y = shuttle_rows(rounds=300, flip_every=100)
    best = min(softmax_of_river(X, y, rate) for rate in (0.1, 1.0))
    for kind, least, wrong in (("random", 0.125, 0.034), ("linear", 0.3, 0.09)):
        loss, error, _ = played(X, y, kind=kind)
        assert loss <= least < 0.8 * best[0] and error <= wrong < best[1]


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "kind", "least", "wrong"),
    [
        ({}, "random", 0.050, 0.014),  # 0.038 and 0.011
        ({}, "linear", 0.175, 0.055),
        ({"flip_every": None}, "random", 0.135, 0.041),  # river's softmax, rate tuned: 0.150, 0.045
        ({"flip_every": None, "seed": 1}, "random", 0.135, 0.041),
    ],
)
def test_shuttle(options, kind, least, wrong):
    X, y = shuttle_rows(**options)
    loss, error, _ = played(X, y, kind=kind)
    assert len(y) == 43_500 and loss <= least and error <= wrong
    if not options and kind == "random":
        loss, error = played_by_river(RiverTraceNormClassifier(), X, y)
        assert loss <= 0.060 and error <= 0.014


@pytest.mark.parametrize(
    ("name", "floor"), [("Bananas", 0.890), ("ImageSegments", 0.912), ("Phishing", 0.900)]
)
def test_streams_that_are_not_linear(name, floor):
    X, y = as_table(list(getattr(river_data, name)()))
    _, error, learner = played(X, np.unique(y, return_inverse=True)[1])
    assert 1.0 - error >= floor
    assert learner.view_weights[2:].sum() > 0.9  # random features did it


@pytest.mark.slow
@pytest.mark.parametrize(
    # Means of ten seeds. The best of river's adaptive random forest and tuned logistic regression
    # has 0.855, 0.9229, 0.810 and 0.861 (docs/estimators/measurements.md, with the command).
    ("generator", "floor"),
    [(sea, 0.867), (hyperplane, 0.925), (agrawal, 0.84), (rbf, 0.90)],
)
def test_generators_with_drift(generator, floor):
    accuracies = []
    for seed in range(10):
        X, y = as_table(generator(seed))
        _, error, _ = played(X, np.unique(y, return_inverse=True)[1])
        accuracies.append(1.0 - error)
    assert np.mean(accuracies) >= floor


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_shuttle_with_flips_in_other_orders(seed):
    X, y = shuttle_rows(seed=seed, flip_every=500)
    loss, error, _ = played(X, y)
    best = min(softmax_of_river(X, y, rate) for rate in (0.1, 1.0))
    assert loss < 0.8 * best[0] and error < best[1]


def rows_of(stream):
    features = np.vstack([loss.features for loss in stream])
    return features, np.concatenate([loss.labels for loss in stream])


def drifting(kind):
    first, second = (
        streams.synthetic.drifting_logistic((5, 10), 500, speed=0.0, seed=seed, radius=30.0)
        for seed in (0, 1)
    )
    if kind == "abrupt":
        return rows_of(streams.drift.abrupt(first, second, 250))
    if kind == "gradual":
        return rows_of(streams.drift.gradual(first, second, 150, 350, seed=0))
    return rows_of(
        streams.synthetic.drifting_logistic((5, 10), 500, speed=0.01, seed=3, radius=30.0)
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["abrupt", "gradual", "turning"])
def test_made_up_drift_no_worse_than_softmax_tuned_in_hindsight(kind):
    X, y = drifting(kind)
    loss, error, _ = played(X, y)
    best = min(softmax_of_river(X, y, rate) for rate in (0.01, 0.1, 1.0))
    assert loss <= best[0] and error <= best[1] + 0.01


def test_digits_no_worse_than_softmax_tuned_in_hindsight():
    X, y = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    loss, error, _ = played(X, y)
    best = softmax_of_river(X, y, 0.001)  # better than with 0.01 and 0.1
    assert loss <= 0.8 * best[0] and error <= 0.09

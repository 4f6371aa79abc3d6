"""Cases of the estimator contract: every estimator with data to learn, predict and reject."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftwolfe import estimators

#: Records to learn: half of them, then the rest after saving.
COUNT = 480


@dataclass(frozen=True)
class EstimatorCase:
    """One estimator in one setting.

    Attributes
    ----------
    make
        A fresh one.
    learn
        Learn the records of a slice.
    ask
        All that it predicts, as an array.
    """

    make: Callable[[], Any]
    learn: Callable[[Any, slice], Any]
    ask: Callable[[Any], np.ndarray]


def _ratings():
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 8, (COUNT, 2))
    ratings = np.round(3.0 + np.sin(pairs[:, 0] * 2.0) + np.cos(pairs[:, 1] * 3.0), 1)
    ratings[COUNT // 2 :] = 6.0 - ratings[COUNT // 2 :]
    return pairs, ratings


def _labelled():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(COUNT, 4))
    labels = np.array(["one", "two", "three"])[(X @ rng.normal(size=(4, 3))).argmax(axis=1)]
    return X, labels


def _measured():
    """Targets by another rule halfway, with two outputs."""
    y = X @ np.array([[1.0, 0.0], [-2.0, 1.0], [0.5, 3.0], [0.0, 0.0]]) + [5.0, 100.0]
    y[COUNT // 2 :] *= -1.0
    return y


def part_weights(part):
    """Weights of the events of a part; every seventh was only seen."""
    return (np.arange(COUNT)[part] % 7 > 0).astype(float)


PAIRS, RATINGS = _ratings()
#: Pairs of users and of items that they mostly have not seen.
EVENTS = np.random.default_rng(2).integers(0, (20, 60), (COUNT, 2))
X, LABELS = _labelled()
RECORDS = [dict(zip("abcd", row, strict=True)) for row in X.tolist()]
TARGETS = _measured()
CLASSES = sorted(set(LABELS.tolist()))
#: Known and unknown users and items.
ASKED = [(0, 0), (3, 5), ("new", 1), (2, "new"), ("new", "new")]
NAN = float("nan")
#: Features of some users and items, not all of which are rated.
FEATURES = (
    {0: [1.0, 0.5], 3: [NAN, -1.0], "new": [0.0, 2.0]},
    {k: [np.sin(5.0 * k)] for k in range(1, 9)},
)


def _learn_records(model, part):
    for x, y in zip(RECORDS[part], LABELS[part].tolist(), strict=True):
        model.learn_one(x, y)


def _learn_targets(model, part):
    for x, y in zip(RECORDS[part], TARGETS[part, 0].tolist(), strict=True):
        model.learn_one(x, y)


def _learn_ratings(model, part):
    for (user, item), y in zip(PAIRS[part].tolist(), RATINGS[part].tolist(), strict=True):
        model.learn_one(user, item, y)


def _learn_events(model, part):
    for (user, item), y in zip(EVENTS[part].tolist(), part_weights(part).tolist(), strict=True):
        model.learn_one(user, item, y)


#: One entry per public name, imported lazily: not every extra may be installed.
ESTIMATOR_CASES: dict[str, list[EstimatorCase]] = {
    "AdaptiveIntervals": [
        EstimatorCase(
            lambda settings=settings: estimators.AdaptiveIntervals(**settings),
            lambda model, part: model.observe(PAIRS[part, 0] / 4.0, RATINGS[part]),
            lambda model: np.append(model.around([0.0, 3.0]), model.offset_),
        )
        for settings in ({}, {"coverage": 0.5})
    ],
    "MatrixCompleter": [
        EstimatorCase(
            lambda settings=settings: estimators.MatrixCompleter(**settings),
            lambda model, part: model.partial_fit(PAIRS[part], RATINGS[part]),
            lambda model: np.append(model.predict(ASKED), model.recommend(0, 3)),
        )
        for settings in ({}, {"memory": 64, "loss": "absolute", "learner": "pola"}, {"radii": ()})
    ]
    + [
        EstimatorCase(
            lambda: estimators.MatrixCompleter(memory=64).add_features(*FEATURES),
            lambda model, part: model.partial_fit(PAIRS[part], RATINGS[part]),
            lambda model: np.append(model.predict(ASKED), model.recommend("new", 3)),
        )
    ],
    "MatrixCompletionRegressor": [
        EstimatorCase(
            lambda: estimators.MatrixCompletionRegressor(memory=64),
            lambda model, part: model.partial_fit(PAIRS[part], RATINGS[part]),
            lambda model: model.predict(ASKED),
        )
    ],
    "Recommender": [
        EstimatorCase(
            lambda: estimators.Recommender(),
            lambda model, part: model.partial_fit(EVENTS[part], weights=part_weights(part)),
            lambda model: np.concatenate(
                [
                    model.predict(ASKED),
                    model.expert_predictions(ASKED).ravel(),
                    model.recommend(0, 3),
                    *model.recommend_many([1, "new"], 5, return_scores=True)[1],
                ]
            ),
        )
    ],
    "RiverMatrixCompleter": [
        EstimatorCase(
            lambda: estimators.RiverMatrixCompleter(memory=64),
            _learn_ratings,
            lambda model: np.array([model.predict_one(*pair) for pair in ASKED]),
        )
    ],
    "RiverRecommender": [
        EstimatorCase(
            lambda: estimators.RiverRecommender(),
            _learn_events,
            lambda model: np.append(
                [model.predict_one(*pair) for pair in ASKED], model.rank(0, range(9))
            ),
        )
    ],
    "TraceNormClassifier": [
        EstimatorCase(
            lambda settings=settings: estimators.TraceNormClassifier(**settings, random_state=0),
            lambda model, part: model.partial_fit(X[part], LABELS[part], classes=CLASSES),
            lambda model: model.predict_proba(X),
        )
        for settings in ({}, {"learner": "pold", "radii": (5.0, 50.0), "fit_intercept": False})
    ],
    "RiverTraceNormClassifier": [
        EstimatorCase(
            lambda: estimators.RiverTraceNormClassifier(),
            _learn_records,
            lambda model: np.array(
                [list(model.predict_proba_one(x).values()) for x in RECORDS[:20]]
            ),
        )
    ],
    "TraceNormRegressor": [
        EstimatorCase(
            lambda settings=settings: estimators.TraceNormRegressor(**settings),
            lambda model, part, place=place: model.partial_fit(X[part], TARGETS[part, place]),
            lambda model: model.predict(X),
        )
        for settings, place in (
            ({}, 0),
            ({"random_features": 0, "radii": (5.0, 50.0)}, slice(None)),
            ({"random_features": 7, "random_state": 3}, slice(0, 1)),
        )
    ],
    "RiverTraceNormRegressor": [
        EstimatorCase(
            lambda: estimators.RiverTraceNormRegressor(),
            _learn_targets,
            lambda model: np.array([model.predict_one(x) for x in RECORDS[:20]]),
        )
    ],
}

#: Methods of every estimator with the kinds of their arguments, for `hostile.bad_calls`.
CALLS = {
    "AdaptiveIntervals": ["observe numbers numbers", "around numbers"],
    "MatrixCompleter": ["partial_fit pairs numbers", "predict pairs", "recommend id"],
    "MatrixCompletionRegressor": [
        "partial_fit pairs numbers",
        "fit pairs numbers",
        "predict pairs",
    ],
    "Recommender": [
        *("partial_fit pairs weights=weights times=times", "prequential pairs weights=weights"),
        *("predict pairs", "recommend id", "recommend_many ids", "forget id"),
    ],
    "RiverMatrixCompleter": [
        *("learn_one id id number", "learn_many pairs numbers", "rank id ids"),
        *("predict_one id id", "predict_many pairs"),
    ],
    "RiverRecommender": [
        *("learn_one id id weight", "learn_many pairs weights", "rank id ids"),
        *("predict_one id id", "predict_many pairs"),
    ],
    "TraceNormClassifier": [
        "partial_fit rows labels sample_weight=weights classes=classes",
        *("fit rows labels", "predict rows", "predict_proba rows"),
    ],
    "RiverTraceNormClassifier": [
        *("learn_one record label w=weight", "learn_many frame series:labels w=weights"),
        *("predict_proba_one record", "predict_proba_many frame"),
    ],
    "TraceNormRegressor": [
        "partial_fit rows targets sample_weight=weights",
        *("fit rows targets sample_weight=weights", "predict rows"),
    ],
    "RiverTraceNormRegressor": [
        *("learn_one record number w=weight", "learn_many frame series:numbers w=weights"),
        *("predict_one record", "predict_many frame"),
    ],
}
#: Calls that must be refused for other reasons.
FAULTS = {
    "AdaptiveIntervals": (  # without a model
        lambda model: model.partial_fit([[0.0]], [1.0]),
        lambda model: model.learn_one({"a": 1.0}, 1.0),
        lambda model: model.predict([[1.0]]),
        lambda model: model.predict_one({"a": 1.0}),
        lambda model: model.predict_interval({"a": 1.0}),
        lambda model: model.predict_interval([[1.0]]),
    ),
    "MatrixCompleter": (
        lambda model: model.recommend(0, -1),
        lambda model: model.add_features(),
        lambda model: model.add_features({0: [1.0, 1.0], 3: [1.0]}),
        lambda model: model.add_features(items={1: [float("inf")]}),
        lambda model: model.add_features({0: [1.0, 1.0], NAN: [1.0, 1.0]}),
        lambda model: model.forget([0]),
    ),
    "Recommender": (
        lambda model: model.partial_fit([(0, 0), (0, 1)], times=[2.0, 1.0]),
        lambda model: model.recommend(0, -1),
    ),
    "TraceNormClassifier": (
        lambda model: model.partial_fit(X[:1], ["four"]),
        lambda model: model.fit(X, RATINGS + 0.05),
    ),
    "TraceNormRegressor": (
        lambda model: model.partial_fit(X[:1], [[1.0, 2.0, 3.0]]),
        lambda model: model.fit(X, LABELS),
        lambda model: model.fit(X, RATINGS, sample_weight=-1.0),
        lambda model: model.fit(X[:2], [1.0, 2.0], sample_weight=[0.0, 0.0]),
    ),
}

"""Cases of the estimator contract: every estimator with data to learn, predict and reject."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from driftwolfe import estimators

#: Records to learn: half of them, then the rest after saving.
COUNT = 480


@dataclass(frozen=True)
class EstimatorCase:
    """One estimator in one setting.

    Attributes
    ----------
    make, learn, ask
        Make a fresh one; learn the records of a slice; return all that it predicts, as an array.
    refused, later
        Calls beyond those of `CALLS` that raise ValueError or TypeError; and those only after others.
    exact
        Whether calls of one row leave the state of one call, bit by bit.
    """

    make: Callable[[], Any]
    learn: Callable[[Any, slice], Any]
    ask: Callable[[Any], np.ndarray]
    refused: tuple[Callable[[Any], Any], ...] = ()
    later: tuple[Callable[[Any], Any], ...] = ()
    exact: bool = True


def calls(method, *given, **same):
    """Calls of a method, one for each tuple of arguments."""

    def call(arguments):
        return lambda model: getattr(model, method)(*arguments, **same)

    return tuple(map(call, given))


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
PROBABILITIES = np.random.default_rng(5).dirichlet(np.ones(3), COUNT)
BAD_RATINGS = (NAN, np.inf, 2e100, -(10**400), "4", None)
#: Features of some users and items, not all of which are rated.
FEATURES = (
    {0: [1.0, 0.5], 3: [NAN, -1.0], "new": [0.0, 2.0]},
    {k: [np.sin(5.0 * k)] for k in range(1, 9)},
)


def _with_gaps():
    """The same rows with texts in one column and a tenth of the cells missing, as a frame and as dicts."""
    table = X.astype(object)
    table[:, 1] = np.array(["low", "high"])[(X[:, 1] > 0.0).astype(int)]
    table[np.random.default_rng(3).random(X.shape) < 0.1] = None
    records = [
        {name: cell for name, cell in zip("abcd", row, strict=True) if cell is not None}
        for row in table.tolist()
    ]
    kinds = {"a": float, "b": str, "c": float, "d": float}
    return pd.DataFrame(table, columns=[*"abcd"]).astype(kinds).where(table != None, None), records  # noqa: E711


ROWS_WITH_GAPS, RECORDS_WITH_GAPS = _with_gaps()


def _one_by_one(records, targets):
    """How river's models learn: dicts, or pairs of a user and an item, each with its target."""

    def learn(model, part):
        for x, y in zip(records[part], targets[part].tolist(), strict=True):
            model.learn_one(*([x] if isinstance(x, dict) else x), y)

    return learn


#: One row with a number out of range, and whole tables with a fault, for any label or target.
BAD_ROWS = [np.array([[0.0, bad, 0.0, 0.0]]) for bad in (np.inf, -np.inf, 2e100)]
#: Entries of one place whose sum is out of range.
BAD_ROWS += [sp.csr_array(([bad, bad], [1, 1], [0, 2]), (1, 4)) for bad in (1e100, 1e308, -6e99)]


#: Names that were never seen, and then a number that is none.
BAD_RECORDS = [{"new": [1.0]}, {"a": 1.0, "new": np.inf}]

#: Frames, and labels or targets of a name, that river's models do not take.
BAD_FRAMES = [
    (pd.DataFrame({"new": [1.0, np.inf]}), [0, 1]),
    (pd.DataFrame({"new": [1.0, 2.0]}), [0]),
    (pd.DataFrame([[1.0, 2.0]], columns=["new", "new"]), [0]),
]


def asked_of_a_completer(model, user):
    _ = model.users_, model.items_, model.expert_names_, repr(model)
    told = model.predict(ASKED), model.recommend(user, 3), model.expert_weights_
    told += (model.recommend("new", 3, exclude_seen=False),)
    factors = () if model._features else model.factors()
    return np.concatenate([np.ravel(each) for each in (*told, *factors)])


def asked_of_a_classifier(model):
    names = "predict_proba", "predict_log_proba", "decision_function"
    told = [getattr(model, name)(X) for name in names]
    told += [model.predict(X) == "one", model.coef_, model.intercept_, model.expert_weights_]
    return np.concatenate([np.ravel(each) for each in told])


def asked_of_rivers_classifier(model):
    frame = pd.DataFrame(RECORDS[:20])
    assert model.predict_many(frame).tolist() == [model.predict_one(x) for x in RECORDS[:20]]
    rows = [list(model.predict_proba_one(x).values()) for x in (*RECORDS[:20], {"new": 3.0}, {})]
    return np.concatenate((np.ravel(rows), model.predict_proba_many(frame).to_numpy().ravel()))


#: One entry per public name, imported lazily: not every extra may be installed.
ESTIMATOR_CASES: dict[str, list[EstimatorCase]] = {
    "AdaptiveIntervals": [
        EstimatorCase(
            lambda: estimators.AdaptiveIntervals(coverage=0.8),
            lambda model, part: model.observe(PAIRS[part, 0] / 4.0, RATINGS[part]),
            lambda model: np.append(model.around([0.0, 3.0]), model.offset_),
            (
                lambda model: model.partial_fit([[0.0]], [1.0]),
                lambda model: model.learn_one({"a": 1.0}, 1.0),
                *calls("predict_interval", ({"a": 1.0},), ([[1.0]],)),
                *(*calls("predict", ([[1.0]],)), *calls("predict_one", ({"a": 1.0},))),
            ),
        )
    ],
    "AdaptiveSets": [
        EstimatorCase(
            lambda: estimators.AdaptiveSets(coverage=0.7),
            lambda model, part: model.observe(
                PROBABILITIES[part], PAIRS[part, 1] % 3, PAIRS[part, 0]
            ),
            lambda model: np.array(
                [*map(len, model.around(PROBABILITIES[:9])), model.offset_, model.group_offset(3)]
            ),
            (
                *calls(
                    "observe", *((bad, [0]) for bad in ([[-0.1]], [[1.1]], [{"a": NAN}], [0.5]))
                ),
                *calls("observe", ([[0.5, 0.5]], [[0]]), ([[0.5, 0.5]], [0], [NAN])),
                *calls("around", ([[0.5, 0.5]], [1, 2]), ([{"a": "0.5"}],)),
            ),
        )
    ],
    "DriftAlarm": [
        EstimatorCase(
            lambda settings=settings: estimators.DriftAlarm(**settings),
            lambda model, part: model.update_many(RATINGS[part]),
            lambda model: np.append(copy.deepcopy(model).starts_, model.n_updates_),
            calls("update", *((wrong,) for wrong in (np.nan, np.inf, None, "1", 1j, [1.0])))
            + calls("update_many", ([1.0, np.nan],), ([[1.0]],), (None,), (1.0,), (["1"],)),
        )
        for settings in ({}, {"rate": 0.1, "two_sided": True})
    ],
    "MatrixCompleter": [
        EstimatorCase(
            lambda loss=loss: estimators.MatrixCompleter(loss=loss, keep_seen=loss == "huber"),
            lambda model, part, loss=loss: model.partial_fit(
                PAIRS[part],
                RATINGS[part],
                None if loss == "huber" else 0.25 + 0.5 * part_weights(part),
            ),
            lambda model: asked_of_a_completer(model, 0),
            (
                *calls("partial_fit", *(([(0, 0)], [bad]) for bad in BAD_RATINGS)),
                *calls("recommend", *((0, bad) for bad in (-1, 1.5, "3", None))),
            ),
        )
        for loss in ("huber", "absolute")
    ]
    + [
        EstimatorCase(
            lambda: estimators.MatrixCompleter().add_features(*FEATURES),
            lambda model, part: model.partial_fit(PAIRS[part], RATINGS[part]),
            lambda model: asked_of_a_completer(model, "new"),
        ),
    ],
    "MatrixCompletionRegressor": [
        EstimatorCase(
            lambda: estimators.MatrixCompletionRegressor(loss="squared"),
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
                    *(model.recommend(0, 3), model.seen(2), model.expert_weights_.ravel()),
                    model.tables().scores([0, -2, 1]),
                    model.similar_items(1, return_scores=True)[1],
                    *(list(model.explain(3, item)["experts"].values()) for item in range(4)),
                    *model.recommend_many([1, "new"], 5, return_scores=True)[1],
                ]
            ),
            (
                lambda model: model.partial_fit([(0, 0), (0, 1)], times=[2.0, 1.0]),
                lambda model: model.recommend(0, -1),
            ),
        )
    ],
    "RiverMatrixCompleter": [
        EstimatorCase(
            lambda: estimators.RiverMatrixCompleter(loss="squared"),
            _one_by_one(PAIRS.tolist(), RATINGS),
            lambda model: np.array([model.predict_one(*pair) for pair in ASKED]),
        )
    ],
    "RiverRecommender": [
        EstimatorCase(
            lambda: estimators.RiverRecommender(),
            _one_by_one(EVENTS.tolist(), part_weights(slice(None))),
            lambda model: np.append(
                [model.predict_one(*pair) for pair in ASKED], model.rank(0, range(9))
            ),
        )
    ],
    "TraceNormClassifier": [
        EstimatorCase(
            lambda settings=settings: estimators.TraceNormClassifier(**settings, random_state=0),
            lambda model, part: model.partial_fit(X[part], LABELS[part], classes=CLASSES),
            asked_of_a_classifier,
            (
                *calls("partial_fit", *((row, ["one"]) for row in BAD_ROWS), classes=CLASSES),
                *calls("partial_fit", (X, LABELS, CLASSES, np.full(COUNT, 1e10))),
                *calls("partial_fit", *((X[:1], [bad], CLASSES) for bad in ("four", 0.5, NAN))),
                *calls("partial_fit", (X, RATINGS + 0.05, CLASSES)),
                *calls("fit", (X, RATINGS + 0.05)),
                *calls("predict", *((row,) for row in BAD_ROWS), (X[:, :2],)),
            ),
            (
                *calls("partial_fit", (X[:, :2], LABELS), (np.zeros((1, 5)), ["one"])),
                *calls("partial_fit", (X, LABELS, [*CLASSES, "two and a half"])),
            ),
        )
        for settings in ({}, {"features": "linear"})
    ]
    + [
        EstimatorCase(
            lambda: estimators.TraceNormClassifier(class_weight={"one": 2.0}),
            lambda model, part: model.partial_fit(ROWS_WITH_GAPS[part], LABELS[part]),
            lambda model: model.predict_proba(ROWS_WITH_GAPS[:50]).ravel(),
            calls("predict", (pd.DataFrame({"z": [1.0]}),)),
        )
    ],
    "RiverTraceNormClassifier": [
        EstimatorCase(
            lambda: estimators.RiverTraceNormClassifier(class_weight="balanced"),
            _one_by_one(RECORDS_WITH_GAPS, LABELS),
            lambda model: np.array(
                [[*model.predict_proba_one(x).values()] for x in RECORDS_WITH_GAPS[:20]]
            ),
        ),
        EstimatorCase(
            lambda: estimators.RiverTraceNormClassifier(),
            _one_by_one(RECORDS, LABELS),
            asked_of_rivers_classifier,
            (
                *calls("learn_one", *((x, "black") for x in BAD_RECORDS), ({"new": 1.0}, None)),
                *calls("learn_many", *((X, pd.Series(y)) for X, y in BAD_FRAMES)),
                *calls("learn_many", (pd.DataFrame({"new": [1.0, 2.0]}), pd.Series(["red", None]))),
            ),
        ),
    ],
    "TraceNormRegressor": [
        EstimatorCase(
            lambda settings=settings: estimators.TraceNormRegressor(**settings),
            lambda model, part, place=place: model.partial_fit(X[part], TARGETS[part, place]),
            lambda model: np.append(model.predict(X), model.expert_weights_),
            (
                *calls("partial_fit", *((row, [1.0]) for row in BAD_ROWS)),
                *calls("partial_fit", *((X[:1], np.array([bad])) for bad in (2e100, -np.inf, NAN))),
                *calls("fit", *((X, RATINGS, bad) for bad in (np.full(COUNT, 1e10), -1.0, 0.0))),
                *calls("fit", (X, LABELS)),
                *calls("predict", *((row,) for row in BAD_ROWS), (X[:, :2],)),
            ),
            calls("partial_fit", (X[:1], [[1.0, 2.0, 3.0]])),
            exact=False,
        )
        for settings, place in (
            ({}, 0),
            ({"random_features": 0}, slice(None)),
            ({"random_features": 7, "random_state": 3}, slice(0, 1)),
        )
    ]
    + [
        EstimatorCase(
            lambda: estimators.TraceNormRegressor(),
            lambda model, part: model.partial_fit(ROWS_WITH_GAPS[part], TARGETS[part, 0]),
            lambda model: model.predict(ROWS_WITH_GAPS[:50]),
            calls("predict", (pd.DataFrame({"z": [1.0]}),)),
            exact=False,
        )
    ],
    "RiverTraceNormRegressor": [
        EstimatorCase(
            lambda: estimators.RiverTraceNormRegressor(),
            _one_by_one(RECORDS_WITH_GAPS, TARGETS[:, 0]),
            lambda model: np.array([model.predict_one(x) for x in RECORDS_WITH_GAPS[:20]]),
        ),
        EstimatorCase(
            lambda: estimators.RiverTraceNormRegressor(),
            _one_by_one(RECORDS, TARGETS[:, 0]),
            lambda model: np.array([model.predict_one(x) for x in RECORDS[:20]]),
            (
                *calls("learn_one", *((x, 1.0) for x in BAD_RECORDS)),
                *calls("learn_many", *((X, pd.Series(y)) for X, y in BAD_FRAMES)),
            ),
        ),
    ],
}

#: Methods of every estimator with the kinds of their arguments, for `hostile.bad_calls`.
CALLS = {
    "AdaptiveIntervals": ["observe numbers numbers", "around numbers"],
    "AdaptiveSets": [],  # anything hashable is a label
    "DriftAlarm": [],  # any finite number is a loss
    "MatrixCompleter": [
        *("partial_fit pairs numbers sample_weight=weights", "prequential pairs numbers"),
        *("learn_one id id number", "predict pairs", "recommend id", "forget id"),
    ],
    "MatrixCompletionRegressor": [
        "partial_fit pairs numbers",
        "fit pairs numbers",
        "predict pairs",
    ],
    "Recommender": [
        *("partial_fit pairs weights=weights times=times", "prequential pairs weights=weights"),
        *("predict pairs", "recommend id", "recommend_many ids", "forget id"),
        *("recommend id items=ids exclude=ids", "similar_items id", "explain id id"),
    ],
    "RiverMatrixCompleter": [
        *("learn_one id id number", "rank id ids", "predict_one id id"),
    ],
    "RiverRecommender": [
        *("learn_one id id weight", "rank id ids", "predict_one id id"),
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

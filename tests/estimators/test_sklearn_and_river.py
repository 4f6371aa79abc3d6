"""Models for scikit-learn and river: the checks of both libraries, and those that wrap recommenders."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from river import reco
from river.checks import yield_checks
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import TimeSeriesSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import driftwolfe as dw
from driftwolfe.estimators import (
    MatrixCompleter,
    MatrixCompletionRegressor,
    Recommender,
    RiverMatrixCompleter,
    RiverRecommender,
    TraceNormClassifier,
    TraceNormRegressor,
)
from estimators.rating_streams import state_of, turning

SETTINGS = {"loss": "absolute", "keep_seen": False}


def steady(count=400, seed=0):
    """Ratings that do not turn, as arrays."""
    pairs, ratings = turning(2 * count, seed=seed)
    return np.array(pairs[:count]), ratings[:count]


#: Of their checks those that shuffle copies of rows: the order of rows matters, and a weighted row is one row.
COPIED = {
    f"check_sample_weight_equivalence_on_{kind}_data": "the order of rows matters"
    for kind in ("dense", "sparse")
}


@parametrize_with_checks(
    [TraceNormClassifier(), TraceNormRegressor(), TraceNormRegressor(random_features=0)],
    expected_failed_checks=lambda estimator: COPIED,
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def rivers_checks():
    """Slow is a check that takes seconds after the first of its data sets."""
    for name in [name for name in dw.estimators.__all__ if name.startswith("River")]:
        model, counts = getattr(dw.estimators, name), Counter()
        for check in yield_checks(model()):
            counts[check.__name__] += 1
            again = "bounded_memory" in check.__name__ and counts[check.__name__] > 1
            marks = pytest.mark.slow if again else ()
            yield pytest.param(model, check, id=f"{name}-{check.__name__}", marks=marks)


@pytest.mark.parametrize(("model", "check"), list(rivers_checks()))
def test_rivers_own_checks(model, check):
    check(model())


def test_the_regressor_is_the_completer():
    X, y = steady()
    weights = np.arange(len(y)) % 5 / 2.0
    model = MatrixCompletionRegressor(**SETTINGS).fit(X, y, weights)
    plain = MatrixCompleter(**SETTINGS).partial_fit(X, y, weights)
    assert state_of(model.completer_) == state_of(plain)
    assert model.predict(X).tolist() == plain.predict(X).tolist()
    assert model.n_features_in_ == 2
    assert model.score(X, y) > 0.3
    once = MatrixCompletionRegressor().fit(X, y)
    again = MatrixCompletionRegressor().fit(X[:50], y[:50]).fit(X, y)
    parts = MatrixCompletionRegressor().partial_fit(X[:50], y[:50]).partial_fit(X[50:], y[50:])
    assert again.n_features_in_ == parts.n_features_in_ == 2
    assert state_of(once.completer_) == state_of(again.completer_) == state_of(parts.completer_)


def test_parameters_and_clones():
    model = MatrixCompletionRegressor(**SETTINGS)
    assert model.get_params() == SETTINGS
    copied = clone(model.fit(*steady(50)))
    assert copied.get_params() == model.get_params() and not hasattr(copied, "completer_")
    assert copied.set_params(keep_seen=True).keep_seen
    with pytest.raises(NotFittedError):
        copied.predict([(0, 0)])
    model = Recommender().partial_fit([("ann", "tea")])
    copied = clone(model)
    assert copied.get_params() == {} and copied.n_events_ == 0
    assert (model.users_, model.items_) == (["ann"], ["tea"])


def test_it_works_inside_other_tools():
    X, y = steady(300)
    scores = cross_val_score(
        MatrixCompletionRegressor(), X, y, cv=TimeSeriesSplit(3), scoring="neg_mean_absolute_error"
    )
    assert (scores > -1.0).all()
    frame = pd.DataFrame({"user": X[:, 0], "item": X[:, 1], "time": np.arange(300)})
    columns = FunctionTransformer(lambda rows: rows[["user", "item"]])
    pipeline = make_pipeline(columns, MatrixCompletionRegressor()).fit(frame, y)
    plain = MatrixCompletionRegressor().fit(X, y)
    assert pipeline.predict(frame).tolist() == plain.predict(X).tolist()


def test_the_river_api_is_the_completer(tmp_path):
    pairs, ratings = turning(300)
    model, plain = RiverMatrixCompleter(**SETTINGS), MatrixCompleter(**SETTINGS)
    assert isinstance(model, reco.base.Ranker)
    for (user, item), rating in zip(pairs[:200], ratings[:200].tolist(), strict=True):
        assert model.predict_one(user, item) == plain.predict_one(user, item)
        model.learn_one(user, item, rating)
        plain.partial_fit([(user, item)], [rating])
    model.learn_many(pairs[200:], ratings[200:])
    for rating in (3, np.float32(2.5), True):  # numbers of other types
        model.learn_one(0, 1, rating)
    plain.partial_fit([*pairs[200:], *[(0, 1)] * 3], [*ratings[200:], 3.0, 2.5, 1.0])
    assert model.predict_many(pairs).tolist() == plain.predict(pairs).tolist()
    items = [*range(9), "new"]
    falling = sorted(items, key=lambda item: -plain.predict_one(0, item))
    assert model.rank(0, iter(items)) == falling and model.rank(0, []) == []
    assert state_of(model.model) == state_of(plain)
    assert state_of(model.clone().model) == state_of(MatrixCompleter(**SETTINGS))
    model.save(tmp_path / "model")
    loaded = RiverMatrixCompleter.load(tmp_path / "model")
    assert {"loss": loaded.loss, "keep_seen": loaded.keep_seen} == SETTINGS


def test_rivers_ranker_is_the_recommender():
    pairs = np.random.default_rng(0).integers(0, (12, 30), (200, 2)).tolist()
    weights = (np.arange(200) % 5).astype(float)
    model, plain = RiverRecommender(), Recommender()
    assert isinstance(model, reco.base.Ranker)
    for (user, item), weight in zip(pairs[:150], weights[:150].tolist(), strict=True):
        assert model.predict_one(user, item) == plain.predict([(user, item)])[0]
        model.learn_one(user, item, weight)
        plain.partial_fit([(user, item)], weights=[weight])
    model.learn_one("new", 1)
    plain.partial_fit([("new", 1)])
    assert model.model.predict(pairs).tolist() == plain.predict(pairs).tolist()
    assert model.clone().model.n_events_ == 0


def test_a_ranker_ranks_as_it_recommends():
    pairs = np.random.default_rng(1).integers(0, (12, 30), (200, 2)).tolist()
    model = RiverRecommender()
    model.model.partial_fit(pairs)
    ranked = model.rank(3, {*range(30), "unknown"})
    items, scores = model.model.recommend(3, 30, return_scores=True)
    assert set(ranked) == {*range(30), "unknown"} and set(ranked[: len(items)]) == set(items)
    # Both orders follow the same probabilities, in double and in single precision.
    told = [model.predict_one(3, item) for item in ranked]
    assert told == sorted(told, reverse=True)
    np.testing.assert_allclose(told[: len(items)], scores, rtol=1e-4)
    assert set(told[len(items) :]) == {0.0} and model.rank(3, []) == []

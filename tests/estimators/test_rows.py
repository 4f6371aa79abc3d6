"""Rows as people have them: gaps, texts, categories, frames of any library, new columns and new classes."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from river import datasets, feature_extraction
from sklearn.metrics import balanced_accuracy_score
from sklearn.preprocessing import OneHotEncoder

from driftwolfe.estimators import (
    RiverTraceNormClassifier,
    RiverTraceNormRegressor,
    TraceNormClassifier,
    TraceNormRegressor,
)
from driftwolfe.estimators.core.columns import Columns

NAN = np.nan


def stream(rows=300, gaps=0.1, seed=0):
    """Two correlated numbers, a text and a label that both decide; some cells are missing."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=rows)
    frame = pd.DataFrame(
        {"a": a, "b": a + 0.3 * rng.normal(size=rows), "c": rng.choice([*"uvw"], rows)}
    )
    y = np.where((frame["a"] + (frame["c"] == "u")) > 0.5, "yes", "no")
    return frame.mask(rng.random(frame.shape) < gaps), y


def dicts(frame):
    """Rows as dicts, without what is missing."""
    return [
        {name: cell for name, cell in row.items() if cell == cell}
        for row in frame.to_dict("records")
    ]


def one_by_one(model, X, y):
    """The fraction of labels predicted before they were learned, or the mean error."""
    score = 0.0
    for k in range(len(y)):
        row, label = X[k : k + 1], y[k : k + 1]
        if k:
            found = model.predict(row)
            score += (found == label)[0] if isinstance(y[0], str) else abs(found - label)[0]
        model.partial_fit(row, label)
    return score / (len(y) - 1)


# -- what is missing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [[1], [0, 3], [0, 1, 2]])
@pytest.mark.parametrize(
    "Model", [partial(TraceNormClassifier, features="linear"), TraceNormRegressor]
)
def test_a_gap_counts_as_what_the_row_before_and_the_other_features_say(Model, missing):
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.normal(size=(200, 4)), axis=0) @ rng.normal(size=(4, 4)) + 5.0
    model = Model().fit(X, X[:, 0] > X[:, 0].mean())
    # What makes A (x - expected) shortest, by least squares.
    changes = (np.diff(X, axis=0) ** 2).sum(axis=0)
    ratio = np.clip(1.0 - 0.5 * changes / ((X - X.mean(axis=0)) ** 2).sum(axis=0), 0.0, 1.0)
    expected = X.mean(axis=0) + ratio * (X[-1] - X.mean(axis=0))
    row, A = rng.normal(size=4) + 5.0, model._learner.map.table.T
    away = np.where(np.isin(range(4), missing), 0.0, row - expected)
    steps, *_ = np.linalg.lstsq(A[:, missing], -A @ away, rcond=None)
    whole, holed = row.copy(), row.copy()
    whole[missing] = expected[missing] + steps
    holed[missing] = NAN
    ask = getattr(model, "predict_proba", model.predict)
    # Sweeps over several gaps are not carried to the end.
    tolerance = 1e-8 if len(missing) == 1 else 0.05
    np.testing.assert_allclose(ask([holed]), ask([whole]), rtol=tolerance, atol=tolerance)
    far = np.where(np.isnan(holed), X.mean(axis=0), holed)
    assert np.abs(ask([far]) - ask([whole])).max() > 2.0 * np.abs(ask([holed]) - ask([whole])).max()


@pytest.mark.parametrize(
    ("name", "Model", "least", "most"),
    [
        ("Phishing", TraceNormClassifier, 0.965, np.inf),  # of the fraction of labels
        pytest.param("ImageSegments", TraceNormClassifier, 0.95, np.inf, marks=pytest.mark.slow),
        ("TrumpApproval", TraceNormRegressor, 0.0, 1.2),  # of the mean error
    ],
)
def test_a_tenth_missing_at_random_costs_little(name, Model, least, most):
    kind = str if Model is TraceNormClassifier else float
    rows = [(list(x.values()), kind(y)) for x, y in getattr(datasets, name)()]
    X, y = np.array([x for x, _ in rows], dtype=float), np.array([y for _, y in rows])
    holed = np.where(np.random.default_rng(2).random(X.shape) < 0.1, NAN, X)
    with_gaps, whole = (one_by_one(Model(), table, y) for table in (holed, X))
    assert least * whole < with_gaps < most * whole


def test_gaps_that_say_something_are_learned():
    rng = np.random.default_rng(0)
    X, gone = rng.normal(size=(600, 3)), rng.random(600) < 0.4
    X[gone, 1] = NAN
    model = TraceNormClassifier().fit(X[:400], gone[:400])
    assert model.score(X[400:], gone[400:]) > 0.95
    assert model.inner_names_ == [0, 1, 2, "1 is missing"]
    np.testing.assert_array_equal(
        model.predict_proba(sp.csr_array(X)), model.predict_proba(X)
    )  # sparse rows, too


def test_a_key_that_usually_comes_is_missing_and_a_word_is_not():
    frame, y = stream(gaps=0.0)
    model = RiverTraceNormClassifier()
    for x, label in zip(dicts(frame), y, strict=True):
        model.learn_one(x, label)
    asked = {"a": 1.0, "c": "u"}
    assert model.predict_proba_one(asked) == model.predict_proba_one(asked | {"b": None})
    assert model.predict_proba_one(asked) != model.predict_proba_one(asked | {"b": 0.0})
    words = RiverTraceNormClassifier()
    bag = feature_extraction.BagOfWords()
    for k, text in enumerate(["the cat", "a dog", "one bird", "no fish"] * 10):
        words.learn_one(bag.transform_one(text), k % 2)
    assert not any("missing" in name for name in words._columns.labels)
    assert words.predict_proba_one({"cat": 1}) == words.predict_proba_one({"cat": 1, "dog": 0})


# -- texts and categories ----------------------------------------------------------------------------


def test_categories_are_one_hot():
    frame, y = stream(gaps=0.0)
    hot = OneHotEncoder(sparse_output=False).fit_transform(frame[["c"]])
    first, plain = TraceNormClassifier(), TraceNormClassifier()
    first.partial_fit(frame, y)
    order = [f"c={value}" for value in [*"uvw"]]
    table = np.column_stack((frame[["a", "b"]], hot))
    columns = pd.DataFrame(table, columns=["a", "b", *order])[first.inner_names_]
    plain.partial_fit(columns.to_numpy(), y)
    # Categories join with their first row, so random features are not the same ones.
    both = first.predict(frame) == plain.predict(columns.to_numpy())
    assert both.mean() > 0.97 and first.score(frame, y) > 0.9


def test_many_categories_are_bounded_and_found_again(monkeypatch):
    monkeypatch.setattr(Columns, "limit", 10)
    rng = np.random.default_rng(0)
    ids = rng.permutation(1000).astype(str)
    X = np.array([[name, 1.0] for name in ids], dtype=object)
    y = [int(name) % 2 for name in ids]
    model = TraceNormClassifier().partial_fit(X, y)
    assert len(model.inner_names_) == 11
    learned = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(X[::-1]), learned[::-1])
    assert len(np.unique(learned[:, 0])) == 10  # a later one shares the feature of one of the ten
    fresh = TraceNormClassifier()
    for k in range(0, 1000, 7):  # however rows are split
        fresh.partial_fit(X[k : k + 7], y[k : k + 7])
    np.testing.assert_array_equal(fresh.predict_proba(X), learned)


def libraries(frame):
    pa = pytest.importorskip("pyarrow")
    nullable = frame.astype({"a": "Float64", "b": "Float64"})
    cells = frame.astype(object).where(frame.notna(), None)
    polars = pl.DataFrame({name: cells[name].tolist() for name in cells})
    yield "nullable", nullable
    yield "categories", frame.astype({"c": "category"})
    yield "other order", frame[["c", "b", "a"]]
    yield "polars", polars
    yield "polars categories", polars.with_columns(pl.col("c").cast(pl.Categorical))
    yield "polars enum", polars.with_columns(pl.col("c").cast(pl.Enum([*"uvw"])))
    yield "arrow", pa.Table.from_pandas(frame, preserve_index=False)


def test_frames_of_all_libraries_are_the_same_rows():
    frame, y = stream()
    asked = TraceNormClassifier().partial_fit(frame, y).predict_proba(frame)
    river = RiverTraceNormClassifier()
    river.learn_many(frame, pd.Series(y))
    told = river.predict_proba_many(frame).to_numpy()
    for what, other in libraries(frame):
        model = TraceNormClassifier().partial_fit(frame[:1], y[:1]).partial_fit(other[1:], y[1:])
        np.testing.assert_array_equal(model.predict_proba(other), asked, err_msg=what)
        own = RiverTraceNormClassifier()
        own.learn_many(other, y)
        np.testing.assert_array_equal(own.predict_proba_many(frame).to_numpy(), told, err_msg=what)


@pytest.mark.parametrize("Model", [RiverTraceNormClassifier, RiverTraceNormRegressor])
def test_one_row_or_many(Model):
    frame, y = stream(rows=120)
    targets = pd.Series(y if Model is RiverTraceNormClassifier else (y == "yes").astype(float))
    whole, single = Model(), Model()
    whole.learn_many(frame, targets)
    for x, target in zip(frame.to_dict("records"), targets, strict=True):
        single.learn_one(dict(reversed(x.items())), target)
    for x in frame.to_dict("records")[:20]:
        one, other = single.predict_one(x), whole.predict_one(x)
        assert one == other or one == pytest.approx(other, rel=1e-9)


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (pd.DataFrame({"a": [{}]}), "must be a number or a text"),
        (pd.DataFrame({"a": pd.to_datetime(["2024-01-01"])}), "numbers, texts or categories"),
        (pd.DataFrame({"a": [np.inf]}), "feature 'a' must lie between"),
        (pd.DataFrame({"a": [1j]}), "must be a number or a text"),
        (pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), "names a feature twice"),
        (pd.DataFrame({"a": [1.0], 1: [2.0]}), "all be texts"),
        (pd.DataFrame({"z": [1.0]}), "none of the columns"),
        (np.array([["u", 1.0]], dtype=object), "X has 2 features"),
        (pl.DataFrame({"a": [[1]]}), "numbers, texts or categories"),
    ],
)
def test_what_cannot_be_read_is_refused(bad, error):
    frame, y = stream(rows=40)
    model = TraceNormClassifier().partial_fit(frame, y)
    with warnings.catch_warnings(), pytest.raises((TypeError, ValueError), match=error):
        warnings.simplefilter("ignore")
        model.predict(bad)


def test_columns_come_and_go_and_it_is_said_once():
    frame, y = stream(gaps=0.0)
    model = TraceNormClassifier().partial_fit(frame, y)
    with pytest.warns(UserWarning, match=r"columns \['b'\] do not come"):
        fewer = model.predict_proba(frame[["a", "c"]])
    np.testing.assert_array_equal(fewer, model.predict_proba(frame.assign(b=NAN)))  # and no warning
    more = frame.assign(d=pd.array((y == "yes") * 1, dtype="Int64"))
    with pytest.warns(UserWarning, match=r"columns \['d'\] are new: they do not count"):
        model.predict(more)
    with pytest.warns(UserWarning, match=r"columns \['d'\] are new: they are learned"):
        model.partial_fit(more, y)
    assert model.n_features_in_ == 4 and model.feature_names_in_.tolist() == [*"abcd"]
    model.partial_fit(more, y)
    assert model.score(more, y) > 0.99


# -- classes -----------------------------------------------------------------------------------------


def test_a_new_class_joins_unless_all_were_named(tmp_path):
    frame, y = stream(rows=400, gaps=0.0)
    model = TraceNormClassifier().partial_fit(frame[:200], y[:200])
    late = np.where(frame["b"][200:] > 1.0, "a third one", y[200:])
    model.partial_fit(frame[200:], late)
    assert model.classes_.tolist() == ["a third one", "no", "yes"]
    assert model.score(frame[300:], late[100:]) > 0.8
    np.testing.assert_allclose(model.predict_proba(frame).sum(axis=1), 1.0)
    river = RiverTraceNormClassifier()
    for x, label in zip(frame.to_dict("records"), [*y[:200], *late], strict=True):
        river.learn_one(x, label)
    told = model.predict_proba(frame[:20])
    for x, row in zip(frame[:20].to_dict("records"), told, strict=True):
        found = river.predict_proba_one(x)
        assert [found[label] for label in model.classes_] == row.tolist()
    assert model._classes.names != model.classes_.tolist()  # so the order is put to the test
    model.save(tmp_path / "model")
    loaded = TraceNormClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    with pytest.raises(ValueError, match="labels must be like those so far"):
        model.partial_fit(frame[:1], [1])
    numbers = (
        TraceNormClassifier().partial_fit(frame, y == "yes").partial_fit(frame[:2], [3.0, 2.0])
    )
    assert numbers.classes_.tolist() == [0.0, 1.0, 2.0, 3.0]
    closed = TraceNormClassifier().partial_fit(frame, y, classes=["no", "yes"])
    with pytest.raises(ValueError, match="not among the classes"):
        closed.partial_fit(frame[200:], late)


@pytest.mark.parametrize("weight", ["balanced", {"no": 0.03}])
def test_rare_classes_count_with_weights(weight):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(3000) < 0.03, "yes", "no")
    X = rng.normal(size=(3000, 2)) + 1.5 * (y == "yes")[:, None]
    scores = [
        balanced_accuracy_score(
            y[1500:],
            TraceNormClassifier(class_weight=each).fit(X[:1500], y[:1500]).predict(X[1500:]),
        )
        for each in (None, weight)
    ]
    assert scores[1] > scores[0] + 0.1 and scores[1] > 0.75


def test_weights_of_rows_and_of_classes_are_multiplied():
    rng = np.random.default_rng(1)
    X, y, own = rng.normal(size=(60, 2)), rng.choice(["a", "b"], 60), rng.uniform(0.2, 1.0, 60)
    told = TraceNormClassifier().partial_fit(X, y, sample_weight=own * np.where(y == "a", 0.5, 1.0))
    both = TraceNormClassifier(class_weight={"a": 0.5}).partial_fit(X, y, sample_weight=own)
    np.testing.assert_array_equal(both.predict_proba(X), told.predict_proba(X))


def test_balanced_weights_are_those_of_their_formula():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.choice(3, 60, p=[0.7, 0.2, 0.1])
    weights = []
    for k in range(60):
        counts = np.bincount(y[: k + 1], minlength=3)
        rarest = max(counts[counts > 0].min(), counts.max() / 100)
        weights.append(min(1.0, (rarest + 10.0) / (counts[y[k]] + 10.0)))
    told = TraceNormClassifier().partial_fit(X, y, sample_weight=weights)
    balanced = TraceNormClassifier(class_weight="balanced")
    for part in (slice(0, 7), slice(7, 60)):
        balanced.partial_fit(X[part], y[part])
    np.testing.assert_allclose(balanced.predict_proba(X), told.predict_proba(X), rtol=1e-9)


def test_categories_of_any_type_are_saved_as_texts(tmp_path):
    frame = pd.DataFrame(
        {"size": pd.cut(np.arange(30.0), 3), "when": ["now", b"then", "soon"] * 10}
    )
    model = TraceNormClassifier().partial_fit(frame, np.arange(30) > 14)
    model.save(tmp_path / "model")
    loaded = TraceNormClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    assert "size=(-0.029, 9.667]" in loaded.inner_names_

"""The classifier with the river API."""

import copy
import pickle
import time
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from driftwolfe.estimators import TraceNormClassifier, TraceNormRegressor, classifier
from driftwolfe.estimators.core.rows import FULL_FEATURES
from driftwolfe.estimators.river import RiverTraceNormClassifier
from estimators.classifier_streams import state_of, turning


def stream(rows=300, labels=("red", "green", "blue"), **options):
    X, y = turning(rows, **options)
    names = [f"x{j}" for j in range(X.shape[1])]
    return [
        (dict(zip(names, row, strict=True)), labels[k])
        for row, k in zip(X.tolist(), y.tolist(), strict=True)
    ]


def learned(rows, **options):
    model = RiverTraceNormClassifier(**options)
    for x, y in rows:
        model.learn_one(x, y)
    return model


def everything(model):
    held = None if model._learner is None else state_of(model._learner)
    return model._classes.numbers, model._columns.numbers, held


def test_before_anything_is_learned_nothing_is_said():
    model = RiverTraceNormClassifier()
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=[7, 8])
    none = pd.Series([None, None], frame.index)
    pd.testing.assert_series_equal(model.predict_many(frame), none)
    assert model.predict_proba_many(frame).shape == (2, 0)
    assert model.predict_one({"a": 1.0}) is None and model.predict_proba_one({"a": 1.0}) == {}
    assert model.expert_weights == {}
    model = RiverTraceNormClassifier(features="cubic")
    with pytest.raises(ValueError, match="features must be"):
        model.learn_one({"a": 1.0}, "red")
    assert everything(model) == everything(RiverTraceNormClassifier())


def test_classes_and_features_come_and_go():
    model = RiverTraceNormClassifier()
    model.learn_one({"a": 1.0}, "red")
    assert model.predict_proba_one({"a": 1.0}) == {"red": 1.0}
    for k in range(200):
        model.learn_one({"a": float(k % 2)}, ("red", "green")[k % 2])
    assert model.predict_one({"a": 1.0}) == "green"
    for k in range(200):
        model.learn_one({"a": float(k % 2)}, ("red", "blue")[k % 2])
    found = model.predict_proba_one({"a": 1.0})
    assert [*found] == ["red", "green", "blue"]
    assert max(found, key=found.get) == "blue" and sum(found.values()) == pytest.approx(1.0)
    rows = stream()
    model = learned([({name: x[name] for name in ("x0", "x1")}, y) for x, y in rows[:100]])
    for x, y in rows[100:]:
        model.learn_one(x, y)
    assert model._columns.labels == ["x0", "x1", "x2", "x3"]
    before = model.predict_proba_one({"x3": 1.0})
    assert model.predict_proba_one({"x3": 1.0, "strange": 5.0}) == before
    zero = model.predict_proba_one({"x3": 1.0, "x0": 0.0, "x1": 0.0, "x2": 0.0})
    assert zero != before == model.predict_proba_one({"x0": None, "x1": np.nan, "x3": 1.0})
    assert sum(model.predict_proba_one({}).values()) == pytest.approx(1.0)
    model.learn_one({}, "red")


@pytest.mark.parametrize(
    "labels",
    [(True, False), (np.bool_(True), np.bool_(False)), (0, 1), ((1, "a"), 2.5), (b"x", "none")],
)
def test_labels_may_be_anything_hashable_and_come_back(labels, tmp_path):
    model = RiverTraceNormClassifier()
    for k in range(100):
        x = {"a": k % 2, "b": True, "c": np.float32(k), "d": Decimal("1.5"), "e": 2**70}
        model.learn_one(x, labels[k % 2])
    model.save(tmp_path / "model.safetensors")
    loaded = RiverTraceNormClassifier.load(tmp_path / "model.safetensors")
    assert everything(loaded) == everything(model)
    for each in (loaded, model):
        each.learn_one({"a": 1, "new": 1.0}, labels[1])
        for k, label in enumerate(labels):
            plain = bool(label) if isinstance(label, np.bool_) else label
            told = each.predict_one({"a": k})
            assert told == plain and type(told) is type(plain)
    assert everything(loaded) == everything(model)


def test_a_stream_of_words_outgrows_the_map_for_few_features():
    rng = np.random.default_rng(0)
    model, wrong = RiverTraceNormClassifier(), 0
    for k in range(1500):
        topic = int(rng.integers(2))
        words = (2 * rng.geometric(0.01, 15) + topic).tolist() + rng.integers(0, 50, 5).tolist()
        x = {f"word{word}": 1 for word in words}
        wrong += k >= 500 and model.predict_one(x) != topic
        model.learn_one(x, topic)
    assert len(model._columns) > FULL_FEATURES and not model._learner.map.full
    assert wrong < 50


@pytest.mark.parametrize("batch", [1, 13, 300])
def test_mini_batches_leave_the_state_of_single_rows(batch):
    rows = stream()
    many = RiverTraceNormClassifier()
    for k in range(0, 300, batch):
        piece = rows[k : k + batch]
        many.learn_many(pd.DataFrame([x for x, _ in piece]), pd.Series([y for _, y in piece]))
    one = learned(rows)
    assert everything(many) == everything(one)
    frame = pd.DataFrame([x for x, _ in rows], index=np.arange(300) + 5)[["x3", "x0", "x2"]]
    table = many.predict_proba_many(frame)
    assert table.index.equals(frame.index) and table.columns.tolist() == one._classes.names
    singles = [one.predict_proba_one(row) for row in frame.to_dict("records")]
    np.testing.assert_array_equal(table.to_numpy(), [list(row.values()) for row in singles])
    labels = [one.predict_one(row) for row in frame.to_dict("records")]
    pd.testing.assert_series_equal(many.predict_many(frame), pd.Series(labels, frame.index))


def test_weights_repeat_rows():
    rows = stream(rows=60)
    weights = np.random.default_rng(0).integers(0, 3, 60)
    repeated = learned([row for row, w in zip(rows, weights, strict=True) for _ in range(w)])
    single = RiverTraceNormClassifier()
    for (x, y), w in zip(rows, weights, strict=True):
        single.learn_one(x, y, w=w)
    many = RiverTraceNormClassifier()
    many.learn_many(pd.DataFrame([x for x, _ in rows]), pd.Series([y for _, y in rows]), w=weights)
    assert everything(single) == everything(repeated) == everything(many)


def test_saving_an_empty_model_and_what_cannot_be_saved(tmp_path):
    path = tmp_path / "model.safetensors"
    RiverTraceNormClassifier(features="linear", class_weight="balanced").save(path)
    loaded = RiverTraceNormClassifier.load(path)
    assert (loaded.features, loaded.class_weight) == ("linear", "balanced")
    assert loaded.predict_one({"a": 1.0}) is None
    strange = RiverTraceNormClassifier()
    strange.learn_one({"a": 1.0}, frozenset("b"))
    with pytest.raises(TypeError, match="can be saved as keys"):
        strange.save(path)


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
def test_features_that_are_too_small_are_said(form):
    X = form(1e-120 * np.arange(1.0, 9.0).reshape(4, 2))
    for model in (TraceNormClassifier(), TraceNormRegressor()):
        with pytest.warns(UserWarning, match="smaller than 1e-100 in size count as 0"):
            model.fit(X, [0, 1, 0, 1])
    with pytest.warns(UserWarning, match="smaller than 1e-100 in size count as 0"):
        RiverTraceNormClassifier().learn_one({"a": 1e-120}, "red")


def test_many_classes_one_by_one():
    # Tables that were copied for each took minutes.
    model = RiverTraceNormClassifier()
    for k in range(40):
        model.learn_one({"x": 1.0}, f"c{k}")
    start = time.process_time()
    for k in range(1000):
        model.learn_one({"x": 1.0}, f"c{k}")
    new, start = time.process_time() - start, time.process_time()
    for k in range(1000):
        model.learn_one({"x": 1.0}, f"c{k}")
    assert new < 5.0 * (time.process_time() - start)  # than rows of classes that are known
    assert sum(model.predict_proba_one({"x": 1.0}).values()) == pytest.approx(1.0)


def test_room_for_classes_is_not_seen(tmp_path):
    rows = [({"a": float(k % 7), "b": float(k % 5)}, k % min(k + 1, 70)) for k in range(140)]
    model = learned(rows)
    assert model._learner.room > model._learner.classes == 70
    model.save(tmp_path / "model")
    loaded = RiverTraceNormClassifier.load(tmp_path / "model")
    for x, y in rows:
        for one in (model, loaded):
            one.learn_one(x, y)
    assert loaded.predict_proba_one(rows[3][0]) == model.predict_proba_one(rows[3][0])
    assert everything(loaded) == everything(model)


def test_there_is_a_largest_number_of_classes(monkeypatch):
    monkeypatch.setattr(classifier, "MOST_CLASSES", 3)
    model = learned([({"a": 1.0}, k) for k in range(3)])
    before = everything(model)
    with pytest.raises(ValueError, match="at most 3 classes, got 4"):
        model.learn_one({"a": 1.0}, 3)
    assert everything(model) == before
    with pytest.raises(ValueError, match="at most 3 classes, got 4"):
        TraceNormClassifier().fit(np.eye(4), range(4))


def test_a_row_that_was_predicted_is_learned_as_it_is_by_then():
    """What is kept of the row that was predicted last is never seen."""
    rows = stream(120)
    plain, asked = learned(rows), learned(rows[:60])
    for k, (x, y) in enumerate(rows[60:]):
        given = dict(x)
        before = pickle.dumps(asked)
        asked.predict_proba_one({**x, "x0": 3.0})
        asked.predict_proba_one(dict(reversed(given.items())) if k % 2 else given)
        assert pickle.dumps(asked) == before
        given["x0"] = 7.0
        asked.predict_proba_one(given)
        given["x0"] = x["x0"]
        asked.learn_one(given, y)
    assert everything(asked) == everything(plain)
    asked.predict_proba_one({**x, "x0": 1.0})
    for wrong in ([1.0], complex(1.0), np.complex128(1.0)):
        with pytest.raises(TypeError, match="x0"):
            asked.learn_one({**x, "x0": wrong}, y)
    assert everything(asked) == everything(plain)


def test_arrays_that_are_replaced_are_seen_by_the_loops():
    rows = stream(200)
    model = learned(rows[:100])
    other = copy.deepcopy(model)
    for x, y in rows[100:]:
        model.learn_one(x, y)
        other.learn_one(x, y)
        parts = other._learner, other._learner.map, other._learner.random
        for part in parts:
            for name, value in list(vars(part).items()):
                if isinstance(value, np.ndarray):
                    setattr(part, name, value.copy())
                    value.fill(0)  # nobody reads the old one
    assert everything(other) == everything(model)

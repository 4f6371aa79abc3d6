"""The classifier with the scikit-learn API."""

import numpy as np
import pandas as pd
import pytest
import scipy
from sklearn import datasets
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import shuffle

from driftwolfe.estimators.sklearn import TraceNormClassifier, TraceNormRegressor
from driftwolfe.state import state_of as declared_state
from estimators.classifier_streams import state_of, turning

CLASSES = np.arange(3)


def learned(X, y, batch=50, classes=CLASSES, weights=None, **options):
    model = TraceNormClassifier(**options)
    for k in range(0, len(y), batch):
        own = slice(k, k + batch)
        model.partial_fit(X[own], y[own], classes, None if weights is None else weights[own])
    return model


def everything(model):
    """All that a model knows, byte by byte."""
    besides = "_learner", "_told"
    pairs = [(name, getattr(value, "names", value)) for name, value in vars(model).items()]
    known = {name: repr(value) for name, value in pairs if name not in besides}
    return known, state_of(model._learner) if hasattr(model, "_learner") else None


@pytest.mark.parametrize("features", [4, 300])
@pytest.mark.parametrize("container", [scipy.sparse.csr_array, scipy.sparse.coo_matrix])
def test_sparse_rows_are_the_same_rows(features, container):
    X, y = turning(features=features)
    X[np.random.default_rng(0).random(X.shape) < 0.6] = 0.0
    dense, sparse = learned(X, y), learned(scipy.sparse.csr_array(X), y)
    assert state_of(dense._learner) == state_of(sparse._learner)
    np.testing.assert_array_equal(dense.predict_proba(X), sparse.predict_proba(container(X)))


@pytest.mark.parametrize("features", [4, 300])
def test_the_unit_of_the_features_does_not_matter(features):
    X, y = turning(features=features)
    plain = learned(X, y).predict_proba(X)
    for factor in (2.0**40, 2.0**-40):  # exact in binary
        np.testing.assert_array_equal(learned(factor * X, y).predict_proba(factor * X), plain)
    linear, negated = (learned(Z, y, features="linear") for Z in (X, -X))
    np.testing.assert_array_equal(negated.predict_proba(-X), linear.predict_proba(X))
    thousand = learned(1000.0 * X, y).predict_proba(1000.0 * X)
    np.testing.assert_allclose(thousand, plain, atol=1e-6)


def test_weight_zero_is_no_row_and_a_whole_weight_repeats_one():
    X, y = turning()
    weights = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    repeated = np.repeat(np.arange(len(y)), weights.astype(int))
    expected = state_of(learned(X[repeated], y[repeated])._learner)
    assert state_of(learned(X, y, weights=weights)._learner) == expected
    fitted = TraceNormClassifier().fit(X, y, weights)
    copies = TraceNormClassifier().fit(X[repeated], y[repeated])
    assert state_of(fitted._learner) == state_of(copies._learner)


@pytest.mark.in_turn
@pytest.mark.filterwarnings("ignore:.*smaller than 1e-100 in size count as 0")
@pytest.mark.parametrize("features", [1, 2, 20, 260])
@pytest.mark.parametrize("seed", range(4))
def test_whatever_comes_probabilities_stay_probabilities(features, seed):
    rng = np.random.default_rng(seed)
    rows, classes = 60, int(rng.integers(1, 20))
    sizes = rng.choice([-200, -165, -100, -5, 0, 3, 60, 99], (1 if seed % 2 else rows, features))
    X = np.clip(rng.normal(size=(rows, features)) * 10.0**sizes, -1e100, 1e100)
    if seed % 3 == 1:
        X[rng.random(X.shape) < 0.7] = 0.0
    if seed % 3 == 2:
        X[:, 0] = 1e8
        X = np.repeat(X, 2, axis=1)
    weights = 10.0 ** rng.uniform(-300, 9, rows) if seed == 3 else None
    model = TraceNormClassifier(class_weight="balanced" if seed == 2 else None)
    for k in range(0, rows, 7):
        own = slice(k, k + 7)
        batch = rng.integers(0, classes, len(X[own]))
        given = None if weights is None else weights[own]
        model.partial_fit(X[own], batch, np.arange(classes), given)
    p = model.predict_proba(X)
    assert np.isfinite(p).all() and (p >= 0.0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.isfinite(model.decision_function(X)).all()
    _, arrays = declared_state({"learner": model._learner})
    assert all(np.isfinite(array).all() for array in arrays.values())


def test_small_weights_teach_less_and_none_nothing():
    X, y = turning(rows=100)
    light = learned(X, y, weights=np.full(100, 0.01)).predict_proba(X)
    assert light.max() < learned(X, y).predict_proba(X).max()
    assert learned(X, y, weights=np.full(100, 1e-9)).predict_proba(X).max() < 0.34
    X, y = turning()
    model = learned(X, y)
    before = state_of(model._learner)
    model.partial_fit(X, y, sample_weight=0.0)
    model.partial_fit(X, y, sample_weight=np.full(len(y), 1e-300))
    assert state_of(model._learner) == before
    new = TraceNormClassifier().partial_fit(X, y, CLASSES, sample_weight=np.zeros(len(y)))
    np.testing.assert_allclose(new.predict_proba(X), 1.0 / 3.0)
    assert new._learner.t == 0 and not new.coef_.any()
    with pytest.raises(ValueError, match="zero for all rows"):
        TraceNormClassifier().fit(X, y, sample_weight=np.zeros(len(y)))


def test_fit_goes_through_the_rows_once_in_their_order():
    X, y = turning()
    fitted = TraceNormClassifier().fit(X, y)
    assert everything(fitted) == everything(learned(X, y, 300))
    assert everything(fitted.fit(X, y)) == everything(learned(X, y, 300))  # from scratch
    order = np.random.default_rng(0).permutation(len(y))
    assert everything(TraceNormClassifier().fit(X[order], y[order])) != everything(fitted)


@pytest.mark.parametrize("features", ["random", "linear"])
def test_fit_ends_with_the_latest_rule(features):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 4))
    y = X[:, 0] + 0.5 * X[:, 1] > 0
    y[1000:] = ~y[1000:]
    model = TraceNormClassifier(features=features).fit(X[:2000], y[:2000])
    assert model.score(X[2000:], y[2000:]) > 0.97


def test_classes_come_with_the_first_call_and_stay():
    X, y = turning()
    with pytest.raises(ValueError, match="at least one class"):
        TraceNormClassifier().partial_fit(X, y, classes=[])
    model = learned(X, y)
    with pytest.raises(ValueError, match=r"labels \[9\] that are not among the classes"):
        model.partial_fit(X[:1], [9])
    model.partial_fit(X, y, classes=[2, 1, 0])


@pytest.mark.parametrize(
    ("Model", "options", "message"),
    [
        (TraceNormClassifier, {"features": "cubic"}, "features must be"),
        (TraceNormClassifier, {"random_state": -1}, "random_state"),
        (TraceNormClassifier, {"class_weight": "even"}, "class_weight must be None, "),
        (TraceNormRegressor, {"random_features": -1}, "random_features must be"),
        (TraceNormRegressor, {"random_state": 1.5}, "random_state must be"),
    ],
)
def test_options_are_checked(Model, options, message):
    model = Model(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(*turning(20))
    assert not hasattr(model, "n_features_in_")


def test_predictions_agree_with_each_other():
    X, y = turning()
    model = learned(X, y)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.exp(model.decision_function(X)), p)
    np.testing.assert_array_equal(model.predict(X), p.argmax(axis=1))
    two = learned(X, y > 0, classes=[False, True])
    p = two.predict_proba(X)
    np.testing.assert_allclose(two.decision_function(X), np.log(p[:, 1] / p[:, 0]))
    assert two.predict(X).dtype == bool
    assert two.coef_.shape == (1, 4) and two.intercept_.shape == (1,)
    assert (two.predict(X) == (X @ two.coef_[0] + two.intercept_[0] > 0)).mean() > 0.9


def test_experts_have_names_and_weights():
    X, y = turning()
    model = learned(X, y)
    names = model.expert_names_
    assert names[:4] == [*(f"radius {r}, 16 rows" for r in (10, 40, 160)), "radius 10, 64 rows"]
    assert names[15] == "doubtful, radius 40, 256 rows"
    assert names[-1] == "ferns, mean of 4,096 rows"
    assert len(names) == model.expert_weights_.size == 39
    assert model.expert_weights_.sum() == pytest.approx(1.0)


LABELS = {
    "text": np.array(["Zoë", "a", "bb"]),
    "whole": np.array([-3, 5, 7]),
    "small": np.array([1, 2, 3], dtype=np.int8),
    "float": np.array([0.0, 1.0, 2.0], dtype=np.float32),
    "object": np.array(["x", "y", "z"], dtype=object),
}


@pytest.mark.parametrize("features", [4, 300])
@pytest.mark.parametrize("kind", LABELS)
def test_labels_come_back_with_their_type(kind, features, tmp_path):
    X, y = turning(60, features)  # saved before there are random features
    model = learned(X[:20], LABELS[kind][y[:20]], 7, LABELS[kind])
    model.save(tmp_path / "model.safetensors")
    loaded = TraceNormClassifier.load(tmp_path / "model.safetensors")
    assert everything(loaded)[1] == everything(model)[1]
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.get_params() == model.get_params()
    for each in (loaded, model):
        each.partial_fit(X[20:], LABELS[kind][y[20:]])
    assert everything(loaded) == everything(model)
    assert loaded.predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("rows", [1, 7, 60])
@pytest.mark.parametrize("Model", [TraceNormClassifier, TraceNormRegressor])
def test_a_call_that_is_stopped_before_its_first_row_has_done_nothing(Model, rows, monkeypatch):
    def stop(*given):
        raise KeyboardInterrupt

    X, y = turning(100)
    model = Model().fit(X, y)
    before = everything(model)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(type(model._learner), "mapped", stop)
        model.partial_fit(X[:rows], y[:rows])
    assert everything(model) == before
    model.partial_fit(X, y)
    learner = model._learner
    assert learner._ended(learner.t)
    getattr(learner, "state", learner).norms[0, 1] = np.inf
    assert not learner._ended(learner.t)  # an expert is to be projected


def test_names_of_features_are_kept_and_what_cannot_be_saved_is_refused(tmp_path):
    X, y = turning()
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    model = TraceNormClassifier(random_state=np.int64(1)).fit(frame, y > 0)
    model.save(tmp_path / "model.safetensors")
    loaded = TraceNormClassifier.load(tmp_path / "model.safetensors")
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert loaded.n_features_in_ == 4 and loaded.random_state == 1
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    turned = loaded.predict_proba(frame[["b", "a", "d", "c"]])
    np.testing.assert_array_equal(turned, model.predict_proba(frame))
    path = tmp_path / "none"
    with pytest.raises(NotFittedError):
        TraceNormClassifier().save(path)
    with pytest.raises(TypeError, match="random_state"):
        TraceNormClassifier(random_state=np.random.RandomState(0)).fit(X, y)
    assert not path.exists()


@pytest.mark.parametrize(
    ("load", "margin"),
    [
        (datasets.load_iris, 0.02),
        pytest.param(datasets.load_breast_cancer, 0.025, marks=pytest.mark.slow),
        pytest.param(datasets.load_digits, 0.015, marks=pytest.mark.slow),
    ],
)
def test_on_small_tables_it_is_near_logistic_regression(load, margin):
    X, y = shuffle(*load(return_X_y=True), random_state=0)  # one pass, in order
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    usual = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    reference = cross_val_score(usual, X, y, cv=folds).mean()
    ours = cross_val_score(TraceNormClassifier(), X, y, cv=folds).mean()
    assert ours >= reference - margin

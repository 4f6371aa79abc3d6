"""`TraceNormRegressor` and `RiverTraceNormRegressor`."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from river import datasets, linear_model, optim, preprocessing
from river.datasets import synth
from sklearn.linear_model import Ridge

from driftwolfe.estimators import regressor
from driftwolfe.estimators.core import shared_kernels
from driftwolfe.estimators.core.rows import FULL_FEATURES, as_rows
from driftwolfe.estimators.river import RiverTraceNormRegressor
from driftwolfe.estimators.sklearn import TraceNormRegressor


def flipping(count=600, features=4, seed=0, noise=0.1):
    """A linear model whose coefficients change sign halfway; features and targets of any scale."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, features)) * np.logspace(-3, 3, features) + 10.0
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    y = standard @ rng.normal(size=features) + noise * rng.normal(size=count)
    y[count // 2 :] *= -1.0
    return X, 100.0 * y + 1e4


def alone(model, expert, X):
    """The predictions of one expert."""
    learner = model._learner
    before = learner.state.weights.copy()
    learner.state.weights[:] = 0.0
    learner.state.weights[:, model.expert_names_.index(expert)] = 1.0
    told = model.predict(X)
    learner.state.weights[:] = before
    return told


def progressive(model, rows):
    """The mean absolute error of predictions before learning."""
    total = 0.0
    for x, y in rows:
        total += abs(model.predict_one(x) - y)
        model.learn_one(x, y)
    return total / len(rows)


@pytest.mark.parametrize("outputs", [1, 2])
def test_ridge_experts_are_weighted_least_squares(outputs):
    """Against scikit-learn's ridge regression with the weights written out."""
    X, y = flipping(50)
    y = np.stack([y, X[:, 1] * 3.0], axis=1)[:, :outputs]
    model = TraceNormRegressor(random_features=0).fit(X, y)
    scale = X.std(axis=0)
    rows = X[-3:] + 0.1 * scale
    low, high = y.min(axis=0), y.max(axis=0)
    for window in (8, 32, 128, 512, math.inf):
        name = f"{window:g} rows" if window < math.inf else "all rows"
        weights = (1.0 - 1.0 / window) ** np.arange(49, -1, -1)
        plain = Ridge(alpha=1.0).fit(X / scale, y, sample_weight=weights)
        expected = plain.predict(rows / scale).reshape(3, -1)
        expected = np.clip(expected, low - 0.25 * (high - low), high + 0.25 * (high - low))
        np.testing.assert_allclose(alone(model, f"ridge, {name}", rows), expected, rtol=1e-8)
        mean = np.average(y, axis=0, weights=weights)
        np.testing.assert_allclose(alone(model, f"mean, {name}", rows), [mean] * 3, rtol=1e-10)
        # Changes: 49 of them, each of weight by its age.
        steps, moves = np.diff(X, axis=0), np.diff(y, axis=0)
        spread = steps.std(axis=0)
        plain = Ridge(alpha=1.0).fit(steps / spread, moves, sample_weight=weights[1:])
        expected = y[-1] + plain.predict((rows - X[-1]) / spread).reshape(3, -1)
        expected = np.clip(expected, low - 0.25 * (high - low), high + 0.25 * (high - low))
        told = alone(model, f"ridge of changes, {name}", rows)
        np.testing.assert_allclose(told, expected, rtol=1e-8)
    assert (alone(model, "last target", rows) == y[-1]).all()


def test_the_weights_keep_their_promise():
    """The bound of the class, for the best single expert and for one before and one after a flip."""
    X, y = flipping(400)
    model = TraceNormRegressor(random_features=0).partial_fit(X[:1], y[:1])
    plain = [name for name in model.expert_names_ if "radius" not in name]
    losses, mixed, ranges, error = [], [], [], 0.0
    for t in range(1, 400):
        row, target = X[t : t + 1], y[t]
        answers = [alone(model, name, row)[0] for name in plain]
        told = model.predict(row)[0]
        error += (abs(told - target) - error) * max(1.0 / t, 1.0 / 512.0)
        unit = max(1.33 * error, abs(told - target) / 4.0)
        sizes = np.abs(np.array([*answers, told]) - target) / unit
        found = np.where(sizes < 1.0, 0.5 * sizes**2, sizes - 0.5)
        losses.append(found[:-1])
        mixed.append(found[-1])
        ranges.append(np.ptp(found))
        model.partial_fit(row, y[t : t + 1])
    total, losses = sum(mixed), np.array(losses)
    spread, logs = 0.1 * np.sum(np.square(ranges)), math.log(len(model.expert_names_) * 400)
    best = losses.sum(axis=0).min()
    halves = losses[:199].sum(axis=0).min() + losses[199:].sum(axis=0).min()
    assert total <= best + logs / 0.8 + spread
    assert total <= halves + 2.0 * logs / 0.8 + spread
    assert total < best  # it says something: no single expert follows the flip


def test_rows_after_a_projection_are_learned_as_if_they_came_alone(monkeypatch):
    rng, calls = np.random.default_rng(0), []
    X = rng.standard_normal((300, 3))
    y = X @ rng.standard_normal((3, 4)) + 0.01 * rng.standard_normal((300, 4))
    project = regressor.RegressionLearner.project
    monkeypatch.setattr(
        regressor.RegressionLearner, "project", lambda *given: calls.append(1) or project(*given)
    )
    together, alone = TraceNormRegressor().partial_fit(X, y), TraceNormRegressor()
    projected = len(calls)
    for row, target in zip(X, y, strict=True):
        alone.partial_fit(row[None], target[None])
    assert len(calls) == 2 * projected >= 20
    np.testing.assert_array_equal(together.predict(X), alone.predict(X))


def test_units_do_not_matter():
    X, y = flipping(200)
    plain = TraceNormRegressor().fit(X, y).predict(X)
    scaled = TraceNormRegressor().fit(X * [1e-30, 1e20, 1.0, 7.0], y * 1e-6 - 3.0)
    told = scaled.predict(X * [1e-30, 1e20, 1.0, 7.0])
    # Experts with long steps amplify rounding errors, but have little weight.
    np.testing.assert_allclose((told + 3.0) * 1e6, plain, atol=0.01 * y.std())


def test_sparse_rows_are_the_same_and_many_features_are_learned():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6)) * (rng.random((300, 6)) < 0.5)
    y = X[:, 0] - 2.0 * X[:, 3]
    dense, sparse = (TraceNormRegressor().fit(form(X), y) for form in (np.array, sp.csr_array))
    assert np.array_equal(dense.predict(X), sparse.predict(sp.csc_matrix(X)))
    wide = sp.hstack([sp.csr_array(X), sp.csr_array((300, 1000))]).tocsr()
    model = TraceNormRegressor().partial_fit(wide, y)
    assert model.n_features_in_ == 1006
    assert model.score(wide[200:], y[200:]) > 0.8


def test_experts_in_balls_stay_what_they_are_when_there_are_many_features():
    X = np.random.default_rng(0).normal([0.0, 0.0, 0.0, 5.0], size=(300, 4))
    learner = TraceNormRegressor().fit(X, X[:, [0, 3]] - X[:, [1, 2]])._learner
    before, _ = learner.map.to_features(learner.state.points)
    learner.grow(FULL_FEATURES + 1)
    after, _ = learner.map.to_features(learner.state.points)
    kept = 0
    for i, radius in enumerate(learner._radii):
        own = slice(2 * i, 2 * i + 2)
        values = np.linalg.svd(learner.state.points[:, own], compute_uv=False)
        norm = values.sum()
        assert norm <= radius * (1.0 + 1e-9)
        assert learner.state.norms[:, i].tolist() == pytest.approx([norm, (values**2).sum()])
        if norm < 0.99 * radius:  # it was not projected
            np.testing.assert_allclose(after[:4, own], before[:, own], rtol=1e-6, atol=1e-9)
            kept += 1
    assert 0 < kept < len(learner._radii)


def test_several_outputs():
    X, y = flipping(400)
    walk = np.cumsum(np.random.default_rng(1).normal(size=400))
    both = np.stack([y, walk], axis=1)
    model = TraceNormRegressor()
    for k in range(399):
        model.partial_fit(X[k : k + 1], both[k : k + 1])
    assert model.predict(X[399:]).shape == (1, 2)
    assert model.expert_weights_.shape == (2, len(model.expert_names_))
    names = np.array(model.expert_names_)
    assert names[model.expert_weights_[0].argmax()].startswith("ridge")
    assert abs(model.predict(X[399:])[0, 1] - walk[-1]) < 3.0
    with pytest.raises(ValueError, match="y must have 2 outputs, as before, got 1"):
        model.partial_fit(X, y)
    assert TraceNormRegressor().fit(X, y[:, None]).predict(X[:2]).shape == (2, 1)


def test_what_is_not_linear_needs_random_features():
    rng = np.random.default_rng(2)
    X = rng.uniform(-1.0, 1.0, (1500, 3))
    y = np.sin(4.0 * X[:, 0]) + X[:, 1] ** 2
    errors = {}
    for number in (0, 64):
        model = TraceNormRegressor(random_features=number).fit(X[:1000], y[:1000])
        errors[number] = np.abs(model.predict(X[1000:]) - y[1000:]).mean()
    assert errors[64] < 0.3 * errors[0]
    other = TraceNormRegressor(random_state=1).fit(X, y).predict(X[:5])
    assert not np.array_equal(other, TraceNormRegressor().fit(X, y).predict(X[:5]))


def test_weights_of_rows():
    X, y = flipping(100)
    some = np.arange(100) % 3 > 0
    zero = TraceNormRegressor().fit(X, y, sample_weight=some.astype(float))
    assert np.array_equal(zero.predict(X), TraceNormRegressor().fit(X[some], y[some]).predict(X))
    ones = TraceNormRegressor().fit(X, y, sample_weight=1.0)
    assert np.array_equal(ones.predict(X), TraceNormRegressor().fit(X, y).predict(X))
    # Against a weighted mean written out.
    heavy = np.where(some, 5.0, 0.25)
    model = TraceNormRegressor().fit(X, y, sample_weight=heavy)
    mean = alone(model, "mean, all rows", X[:1])
    assert mean[0] == pytest.approx(np.average(y, weights=heavy))
    with pytest.raises(ValueError, match="sample_weight is zero for all rows"):
        TraceNormRegressor().fit(X, y, sample_weight=0.0)


def test_wild_rows_do_no_lasting_harm():
    X, y = flipping(300)
    model = TraceNormRegressor().fit(X[:150], y[:150])
    wild = np.array([[1e100, -1e100, 1e-100, 0.0]])
    assert np.isfinite(model.predict(wild)).all()
    model.partial_fit(wild, [y[0]]).partial_fit(X[150:], y[150:])
    assert np.isfinite(model.predict(X)).all()
    constant = TraceNormRegressor().fit(np.ones((40, 2)), np.full(40, 7.0))
    np.testing.assert_allclose(constant.predict(np.ones((2, 2))), 7.0, rtol=1e-12)


# -- river -------------------------------------------------------------------------------------------


def test_the_river_api_is_the_regressor():
    X, y = flipping(120)
    model, plain = RiverTraceNormRegressor(seed=3), TraceNormRegressor(random_state=3)
    rows = [dict(zip("abcd", row, strict=True)) for row in X.tolist()]
    frame = pd.DataFrame(X, columns=list("abcd"))
    assert model.predict_one(rows[0]) == 0.0 and model.expert_weights == {}
    pd.testing.assert_series_equal(model.predict_many(frame), pd.Series(0.0, frame.index))
    for t, (x, target) in enumerate(zip(rows[:60], y[:60].tolist(), strict=True)):
        if t:
            assert model.predict_one(x) == plain.predict(X[t : t + 1])[0]
        model.learn_one(dict(reversed(x.items())), target)
        plain.partial_fit(X[t : t + 1], y[t : t + 1])
    model.learn_many(frame[60:], pd.Series(y[60:]))
    plain.partial_fit(X[60:], y[60:])
    told = model.predict_many(frame[::-1])
    pd.testing.assert_series_equal(told, pd.Series(plain.predict(X)[::-1], frame.index[::-1]))
    assert list(model.expert_weights) == plain.expert_names_


def test_features_may_come_at_any_time(tmp_path):
    rng = np.random.default_rng(0)
    model, errors = RiverTraceNormRegressor(random_features=8), []
    for t in range(900):
        # The number of features grows past 256, where rows become sparse.
        x = {f"f{k}": v for k, v in enumerate(rng.normal(size=1 + t // 100))}
        x[f"rare {t % (t + 1 if t < 400 else 300)}"] = 1.0
        y = 3.0 * x["f0"] - 2.0 * x.get("f1", 0.0)
        errors.append(abs(model.predict_one(x) - y))
        model.learn_one(x, y)
        if t in (150, 600):
            model.save(tmp_path / "model.safetensors")
            model = RiverTraceNormRegressor.load(tmp_path / "model.safetensors")
    assert len(model._columns) > 300
    assert np.mean(errors[-200:]) < 1.2  # of 2.9 for the mean
    empty = RiverTraceNormRegressor()
    empty.learn_one({}, 2.0)
    empty.learn_one({"a": 1.0}, 3.0)
    empty.save(tmp_path / "model.safetensors")
    assert RiverTraceNormRegressor.load(tmp_path / "model.safetensors").predict_one({}) > 1.9


def tuned(rows):
    """The least error of river's linear regression over learning rates, chosen in hindsight."""
    return min(
        progressive(
            preprocessing.StandardScaler()
            | linear_model.LinearRegression(optimizer(rate), intercept_lr=max(0.01, rate)),
            rows,
        )
        for rate in (0.003, 0.01, 0.03, 0.1, 0.3)
        for optimizer in (optim.SGD, optim.Adam)
    )


STREAMS = {
    "TrumpApproval": (lambda: list(datasets.TrumpApproval()), 0.19),
    "ChickWeights": (lambda: list(datasets.ChickWeights()), 21.4),
    "WaterFlow": (
        lambda: [
            ({"hour": x["Time"].hour, "day": x["Time"].weekday()}, y)
            for x, y in datasets.WaterFlow()
        ],
        0.76,
    ),
}


@pytest.mark.parametrize("name", STREAMS)
def test_floors_on_streams_that_river_ships(name):
    make, floor = STREAMS[name]
    assert progressive(RiverTraceNormRegressor(), make()) <= floor


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_tuned_linear_regression_is_no_better_on_them(name):
    make, floor = STREAMS[name]
    assert floor <= tuned(make())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lea", "gra"])
def test_floors_on_friedmans_drifts(kind):
    position = {"lea": (2000, 3000, 4000), "gra": (2000, 4000)}[kind]
    rows = list(synth.FriedmanDrift(kind, position, seed=1).take(6000))
    assert progressive(RiverTraceNormRegressor(), rows) <= 0.85 * tuned(rows)


def test_ridge_regressions_without_weight_are_fitted_more_rarely():
    X, y = flipping(1600, 3)
    model = TraceNormRegressor().fit(X, y)
    state, windows = model._learner.state, [f"{n} rows" for n in (8, 32, 128, 512, "all")]
    kinds = {"ridge": 0, "ridge with random features": 0, "ridge of changes": 5}
    for i, name in enumerate(model.expert_names_):
        kind, _, rows = name.partition(", ")
        weights = np.full_like(state.weights, 1e-6)
        weights[:, i] = 1.0 - 1e-6 * (weights.shape[1] - 1)
        state.weights[:] = weights
        # After one row more all are due that have weight; those of 8 rows always are.
        totals = np.minimum(state.totals, 1e4)
        widths = np.array([*[3, 3], *[67] * 3, *[3] * 5])
        due = np.minimum(totals / 8.0, np.maximum(totals / 64.0, widths**2 / 512.0))
        state.ages[:] = np.ceil(due + 0.1) - 1
        assert model._learner.learn(as_rows(X[:1]), y[:1, None], np.ones(1))
        fitted = {k for k in range(10) if state.ages[k] == 0} - {0, 5}
        own = {kinds[kind] + windows.index(rows)} if kind in kinds else set()
        assert fitted == own - {0, 5}, name


def test_cosines_are_those_of_numpy():
    rng = np.random.default_rng(0)
    angles = np.concatenate((rng.normal(size=500) * 10.0 ** rng.uniform(-8, 9, 500), [0.0, 1e70]))
    found = angles.copy()
    shared_kernels.replace_by_cosines.py_func(found, found.size)
    np.testing.assert_allclose(found, np.cos(angles), rtol=0.0, atol=1e-9)

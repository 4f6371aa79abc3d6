"""`AdaptiveIntervals`: what is promised, exactly; and against adaptive conformal inference."""

import copy
import math

import numpy as np
import pytest
from river import datasets, linear_model, preprocessing
from scipy.optimize import linprog
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDRegressor

import driftwolfe as dw
from driftwolfe.estimators import AdaptiveIntervals, MatrixCompleter, RiverMatrixCompleter
from driftwolfe.estimators.intervals import FIRST, LAST_STEP


def jumping(rows=1200, seed=7, every=300, factor=4.0):
    """Residuals whose scale jumps."""
    rng = np.random.default_rng(seed)
    return np.where((np.arange(rows) // every) % 2, factor, 1.0) * rng.standard_normal(rows)


def played(model, residuals):
    """Ends of the intervals around 0, and offsets before each row and after the last."""
    ends, offsets = [], []
    for residual in residuals.tolist():
        lower, upper = model.around([0.0])
        ends.append((lower[0], upper[0]))
        offsets.append(model.offset_)
        model.observe([0.0], [residual])
    return *np.array(ends).T, np.array([*offsets, model.offset_])


def window_errors(inside, coverage, size=100):
    return np.abs(np.convolve(inside, np.ones(size) / size, "valid") - coverage)


def conformal(residuals, coverage, step, memory=500, first=100):
    """Adaptive conformal inference, as Gibbs and Candès have it, on the latest residuals."""
    sizes, alpha, radii = np.abs(residuals), 1.0 - coverage, np.full(residuals.size, math.inf)
    for t in range(first, residuals.size):
        past = sizes[max(0, t - memory) : t]
        level = min(max(1.0 - alpha, 0.0), 1.0)
        radii[t] = np.quantile(past, level, method="higher") if alpha < 1.0 else 0.0
        alpha += step * ((1.0 - coverage) - (sizes[t] > radii[t]))
    return radii


@pytest.mark.parametrize("coverage, gain", [(0.5, 2.0), (0.9, 0.0), (0.9, 8.0), (0.99, 2.0)])
def test_coverage_is_what_the_offset_says_on_every_window(coverage, gain):
    residuals = jumping(500)
    lower, upper, offsets = played(AdaptiveIntervals(coverage=coverage, gain=gain), residuals)
    assert (lower[:FIRST] == -math.inf).all() and (upper[:FIRST] == math.inf).all()
    assert np.isfinite(lower[FIRST:]).all() and (lower <= upper).all()
    inside = (lower <= residuals) & (residuals <= upper)
    for start, end in ((FIRST, 500), (FIRST, 110), (200, 300), (317, 342)):
        told = coverage - (offsets[end] - offsets[start]) / (LAST_STEP * (end - start))
        assert inside[start:end].mean() == pytest.approx(told, abs=1e-9)


def smooth(rows, seed):
    """Residuals whose scale follows GARCH."""
    rng, variance, found = np.random.default_rng(seed), 1.0, np.empty(rows)
    for k in range(rows):
        found[k] = math.sqrt(variance) * rng.standard_normal()
        variance = 0.05 + 0.15 * found[k] ** 2 + 0.8 * variance
    return found


def measured(lower, upper, residuals):
    """Worst and mean error of coverage on windows, mean width, and score: after 100 rows."""
    lower, upper, residuals = lower[100:], upper[100:], residuals[100:]
    errors = window_errors((lower <= residuals) & (residuals <= upper), 0.9)
    # The interval score: width, and 20 times the distance of what is outside.
    outside = np.maximum(0.0, np.maximum(lower - residuals, residuals - upper))
    width = (upper - lower).mean()
    return np.array((errors.max(), errors.mean(), width, width + 20.0 * outside.mean()))


@pytest.mark.parametrize("make", [smooth, jumping])
def test_no_longer_and_nearer_than_adaptive_conformal_inference(make):
    ours, theirs = np.zeros(4), np.zeros(4)
    for seed in (11, 31):
        residuals = make(1200, seed)
        radii = conformal(residuals, 0.9, 0.005)
        ours += measured(*played(AdaptiveIntervals(), residuals)[:2], residuals)
        theirs += measured(-radii, radii, residuals)
    assert (ours <= theirs).all()
    assert ours[0] <= 0.24


def test_no_change_costs_little_width_for_nearer_coverage():
    residuals, found = np.random.default_rng(41).standard_normal(1500), []
    ideal = 2.0 * np.quantile(np.abs(residuals[100:]), 0.9)
    for gain in (0.0, 2.0, 8.0):
        lower, upper, _ = played(AdaptiveIntervals(gain=gain), residuals)
        found.append(measured(lower, upper, residuals))
    _, errors, widths, _ = np.transpose(found)
    # A fixed interval has the error of the binomial distribution, 0.024.
    assert errors[2] < errors[1] < errors[0] < 0.024
    assert widths[1] < 1.03 * ideal and widths[2] < 1.06 * ideal


@pytest.mark.parametrize("tau", [None, 256])
def test_the_radius_keeps_its_bound_against_every_fixed_mix(tau):
    model, residuals, rounds = AdaptiveIntervals(), jumping(600), []
    for residual in residuals.tolist():
        if model.n_rows_ >= FIRST:
            distance = abs(residual - model._middle(model))
            candidates = model._candidates()
            unit = max(candidates.max(), 1e-6 * distance)
            rounds.append((model._radius.decision, candidates / unit, distance / unit))
        model.observe([0.0], [residual])
    size = len(rounds) if tau is None else tau
    for start in range(0, len(rounds) - size + 1, 100):
        weights, candidates, targets = map(
            np.array, zip(*rounds[start : start + size], strict=True)
        )
        short = targets - (weights * candidates).sum(axis=1)
        suffered = np.maximum(0.9 * short, -0.1 * short).sum()
        # min over w in the simplex, p, n >= 0 of 0.9 p + 0.1 n with candidates w + p - n = targets
        K = candidates.shape[1]
        cost = np.concatenate((np.zeros(K), np.full(size, 0.9), np.full(size, 0.1)))
        equal = np.hstack((candidates, np.eye(size), -np.eye(size)))
        whole = np.concatenate((np.ones(K), np.zeros(2 * size)))
        best = linprog(cost, A_eq=np.vstack((equal, whole)), b_eq=np.append(targets, 1.0))
        assert best.status == 0
        assert suffered - best.fun <= model.pinball_bound(tau)


def test_units_do_not_matter():
    residuals = jumping(200)
    one = played(AdaptiveIntervals(), residuals)
    for factor in (1e-80, 1e6, 1e80):
        other = played(AdaptiveIntervals(), factor * residuals)
        # Rounding may turn a hit into a miss where a target lies on an end, which none does here.
        assert other[1][FIRST:] == pytest.approx(factor * one[1][FIRST:], rel=1e-6)


def test_exact_and_biased_predictions():
    model = AdaptiveIntervals().observe(np.ones(40), np.ones(40))
    lower, upper = model.around([1.0])
    assert lower[0] == upper[0] == 1.0
    model.offset_ = -1.999  # as after two thousand rows
    model.observe(np.ones(60), np.ones(60))
    assert model.offset_ == -2.0 and model.recent_ < 0.0
    rng = np.random.default_rng(0)
    lower, upper, _ = played(model, rng.standard_normal(300))
    assert np.isfinite(lower).all() and 2.0 < (upper - lower)[200:].mean() < 5.0
    rng = np.random.default_rng(3)
    residuals = np.repeat([3.0, -2.0], 300) + 0.5 * rng.standard_normal(600)
    lower, upper, _ = played(AdaptiveIntervals(), residuals)
    for rows, bias in ((slice(150, 300), 3.0), (slice(450, 600), -2.0)):
        assert np.mean(lower[rows] + upper[rows]) / 2.0 == pytest.approx(bias, abs=0.5)
        # Around 0, an interval would need a radius of |bias| + 0.64.
        assert (upper - lower)[rows].mean() < 0.5 * 2.0 * (abs(bias) + 0.64)


def test_rows_of_scikit_learn(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = X @ [1.0, 2.0, 3.0] + rng.normal(size=90)
    intervals, plain = AdaptiveIntervals(SGDRegressor(random_state=0)), SGDRegressor(random_state=0)
    by_hand = AdaptiveIntervals()
    with pytest.raises(NotFittedError):
        intervals.predict_interval(X)
    for k in range(0, 90, 30):
        rows = slice(k, k + 30)
        if k:
            told = plain.predict(X[rows])
            assert np.array_equal(intervals.predict(X[rows]), told)
            assert np.array_equal(intervals.predict_interval(X[rows]), by_hand.around(told))
            by_hand.observe(told, y[rows])
        plain.partial_fit(X[rows], y[rows])
        assert intervals.partial_fit(X[rows], y[rows]) is intervals
        assert intervals.n_rows_ == k  # the first rows have no predictions
    before = copy.deepcopy(intervals)
    for bad_X, bad_y in ((X[:2], y[:3]), (X[:2], [math.nan, 1.0]), (X[:2, :2], y[:2])):
        with pytest.raises(ValueError):
            intervals.partial_fit(bad_X, bad_y)
        assert intervals.n_rows_ == 60 and np.array_equal(intervals.model.coef_, before.model.coef_)
    intervals.save(tmp_path / "intervals")
    loaded = AdaptiveIntervals.load(tmp_path / "intervals", before.model)
    assert np.array_equal(loaded.predict_interval(X), intervals.predict_interval(X))
    assert dw.load(tmp_path / "intervals").model is None
    for each in (loaded, intervals):
        each.partial_fit(X[:7], y[:7])
    assert np.array_equal(loaded.predict_interval(X), intervals.predict_interval(X))


def test_rows_of_river():
    def make():
        return preprocessing.StandardScaler() | linear_model.LinearRegression()

    intervals, plain, inside = AdaptiveIntervals(make()), make(), []
    for x, y in datasets.TrumpApproval().take(400):
        lower, upper = intervals.predict_interval(x)
        inside.append(lower <= y <= upper)
        assert intervals.predict_one(x) == plain.predict_one(x)
        assert intervals.learn_one(x, y) is None
        plain.learn_one(x, y)
    assert type(lower) is float and lower < plain.predict_one(x) < upper
    assert window_errors(inside[100:], 0.9).max() <= 0.1
    several = intervals.predict_interval([x, x])
    assert several[0].shape == (2,) and several[0][0] == several[0][1]
    with pytest.raises(TypeError, match="Pipeline, has no partial_fit: give a model with"):
        intervals.partial_fit([x], [1.0])


def test_ratings():
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 9, (300, 2))
    ratings = 3.0 + np.sin(pairs[:, 0]) + 0.3 * rng.standard_normal(300)
    batch, single = AdaptiveIntervals(MatrixCompleter()), AdaptiveIntervals(RiverMatrixCompleter())
    for k in range(300):
        if k == 150:
            lower, upper = batch.predict_interval(pairs[k:])
            assert 0.75 < np.mean((lower <= ratings[k:]) & (ratings[k:] <= upper)) <= 1.0
        batch.partial_fit(pairs[k : k + 1], ratings[k : k + 1])
        learn = single.learn_one if k else lambda pair, y: single.model.learn_one(*pair, y)
        learn(tuple(pairs[k].tolist()), float(ratings[k]))  # batches learn nothing from the first
    told = [np.array(each.predict_interval([(1, 2), (3, 4)])) for each in (batch, single)]
    assert told[0] == pytest.approx(told[1], abs=1e-9)


def test_what_is_refused():
    for coverage in (0.0, 1.0, -0.1, math.nan):
        with pytest.raises(ValueError, match="coverage"):
            AdaptiveIntervals(coverage=coverage)
    with pytest.raises(TypeError, match="coverage"):
        AdaptiveIntervals(coverage="0.9")
    for gain in (-1.0, math.nan, 101.0):
        with pytest.raises(ValueError, match="gain"):
            AdaptiveIntervals(gain=gain)

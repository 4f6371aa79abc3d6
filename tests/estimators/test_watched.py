"""The alarms of estimators: what they see, seldom for nothing, soon after a change."""

import numpy as np
import pytest
from scipy.stats import kstest

from contracts.estimator_cases import COUNT, ESTIMATOR_CASES
from driftwolfe import estimators
from driftwolfe.estimators.core.models import BLOCK

#: What has no losses of its own, and the alarm itself.
LEFT_OUT = {"AdaptiveIntervals", "AdaptiveSets", "DriftAlarm"}


@pytest.mark.parametrize("name", sorted(set(ESTIMATOR_CASES) - LEFT_OUT))
def test_every_estimator_has_an_alarm_that_has_seen_all_whole_blocks(name):
    case = ESTIMATOR_CASES[name][0]
    model = case.make()
    case.learn(model, slice(7 * BLOCK + 5))
    alarm = model.alarm_
    assert alarm.n_updates_ == 7 * BLOCK and np.array_equal(alarm.changes_, model.changes_)
    alarm.update_many(np.arange(100.0))  # a copy
    assert model.alarm_.n_updates_ == 7 * BLOCK
    case.learn(model, slice(7 * BLOCK + 5, COUNT))  # ratings and rules turn over halfway
    assert model.alarm_.n_updates_ == COUNT - COUNT % BLOCK
    if "Classifier" not in name and "Recommender" not in name:
        assert (abs(model.changes_ - COUNT // 2) < 40).any()


def test_the_loss_of_a_classifier_is_the_probability_of_likelier_classes_and_part_of_the_own():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] + X[:, 1] ** 2 > 0.5) + (X[:, 2] > 1.0) * 1
    model, parts = estimators.TraceNormClassifier(), []
    for t in range(300):
        if t == 200:  # two of the four views rest for 7 blocks: the others say what they say
            model._learner.rests[2:], model._learner.view_weights[:] = 7, 0.25
        if t:
            chances = model.predict_proba(X[t : t + 1])[0]
        model.partial_fit(X[t : t + 1], y[t : t + 1], classes=[0, 1, 2])
        if t > 100:
            loss = model._learner.losses[t % BLOCK]
            above, own = chances[chances > chances[y[t]]].sum(), chances[y[t]]
            # A row that is learned counts for the scales of features before it is predicted.
            assert above - 0.05 < loss < above + own + 0.05
            parts += [(loss - above) / own] if own > 0.2 else []
    assert kstest(parts, "uniform").pvalue > 0.001


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_loss_of_a_regressor_is_its_error(outputs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = X @ rng.normal(size=(4, outputs)) * [1.0, 100.0][:outputs] + rng.normal(size=(300, outputs))
    model = estimators.TraceNormRegressor()
    for t in range(300):
        predicted = model.predict(X[t : t + 1])[0] if t else np.zeros(outputs)
        model.partial_fit(X[t : t + 1], y[t : t + 1])
        errors, loss = np.abs(predicted - y[t]), model._learner.state.losses[t % BLOCK]
        if outputs == 2 and t:
            errors /= errors + y[:t].std(axis=0)
        if t == 0 and outputs == 1:
            assert loss == errors[0]
        if t > 100:
            assert loss == pytest.approx(errors.mean(), rel=0.02, abs=0.02)


def test_the_losses_of_ratings_and_events_are_those_of_predictions():
    rng = np.random.default_rng(0)
    ratings, events = estimators.MatrixCompleter(), estimators.Recommender()
    ratings.add_features({k: [1.0] for k in range(5)})
    for t, (user, item) in enumerate(rng.integers(0, 12, (100, 2)).tolist()):
        rating, chance = float(user + item), events.predict([(user, item)])[0]
        error = abs(ratings.predict_one(user, item) - rating)
        ratings.partial_fit([(user, item)] * (1 + t % 2), [rating] * (1 + t % 2))
        events.partial_fit([(user, item)])
        first = ratings.n_ratings_ - 1 - t % 2
        assert ratings._watch.losses[first % BLOCK] == pytest.approx(error, abs=1e-12)
        loss = -np.log(chance) if chance > 0.0 else np.inf  # no round
        assert events._watch.losses[t % BLOCK] == pytest.approx(loss, rel=1e-5)


def swapped(rows, at, seed):
    """Rows, and a score whose sign changes: labels and targets follow from it, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4))
    score = X @ [1.0, 1.0, 0.0, -1.0] * np.where(np.arange(rows) < at, 1.0, -1.0)
    return X, score + rng.normal(0.0, 0.5, rows)


def learned(name, X, y):
    if name == "TraceNormRegressor":
        return estimators.TraceNormRegressor(random_features=8).fit(X, y)
    return estimators.TraceNormClassifier().fit(X, y > 0.0)


@pytest.mark.parametrize("name", ["TraceNormClassifier", "TraceNormRegressor"])
def test_alarms_are_rare_without_a_change_and_soon_after_one(name):
    # No theorem: losses of a model that learns are not exchangeable. At most one in 10,000 rows if they were.
    steady = [learned(name, *swapped(4000, 4000, seed)).changes_.size for seed in range(4)]
    assert sum(steady) <= 4
    starts = []
    for seed in range(5):
        model = learned(name, *swapped(1600, 1000, seed))
        late = np.flatnonzero(model.changes_ >= 1000)[0]
        assert model.changes_[late] < 1040
        starts.append(model.alarm_.starts_[late])
    assert abs(np.median(starts) - 1000) < 30

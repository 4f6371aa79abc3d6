"""Labels that come late, for estimators: against river's own loop, and loops by hand."""

import numpy as np
import pandas as pd
import pytest
from river import datasets, linear_model, metrics, optim
from river import evaluate as river_evaluate
from sklearn.linear_model import SGDClassifier

from driftwolfe import evaluate
from driftwolfe.estimators import (
    MatrixCompleter,
    RiverMatrixCompleter,
    RiverTraceNormClassifier,
    TraceNormClassifier,
)

RNG = np.random.default_rng(0)
PAIRS = RNG.integers(0, 9, (150, 2))
RATINGS = np.round(3.0 + np.sin(PAIRS[:, 0] * 2.0) + np.cos(PAIRS[:, 1] * 3.0), 1)


@pytest.mark.parametrize("delay", [0, 1, 2, 30, 1000])
@pytest.mark.parametrize(
    "make",
    [RiverTraceNormClassifier, lambda: linear_model.LogisticRegression(optim.SGD(0.1))],
    ids=["ours", "river's"],
)
def test_it_is_the_loop_of_river(make, delay):
    rows = list(datasets.Phishing().take(120))
    steps = river_evaluate.iter_progressive_val_score(
        iter(rows), make(), metrics.Accuracy(), delay=delay, yield_predictions=True
    )
    theirs = [step["Prediction"] for step in steps]
    ours = evaluate.prequential(make(), [x for x, _ in rows], [y for _, y in rows], delay=delay)
    assert ours.tolist() == theirs


@pytest.mark.parametrize("delay", [0, 1, 2, 40, 150, 999])
def test_late_ratings(delay):
    completer, by_hand, expected = MatrixCompleter(), MatrixCompleter(), []
    told = completer.prequential(PAIRS, RATINGS, delay)
    for k in range(150):
        learned = k - max(1, delay)
        if learned >= 0:
            by_hand.partial_fit(PAIRS[learned : learned + 1], RATINGS[learned : learned + 1])
        expected.append(by_hand.predict_one(*PAIRS[k].tolist()))
    left = slice(max(0, 150 - max(1, delay)), 150)
    by_hand.partial_fit(PAIRS[left], RATINGS[left])
    assert told == pytest.approx(expected, abs=1e-12)
    assert completer.n_ratings_ == 150
    assert completer.predict(PAIRS) == pytest.approx(by_hand.predict(PAIRS), abs=1e-12)
    for other in (MatrixCompleter(), RiverMatrixCompleter()):
        told = evaluate.prequential(other, PAIRS, RATINGS, delay=delay)
        assert told == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("make", [SGDClassifier, TraceNormClassifier], ids=["theirs", "ours"])
def test_rows_of_scikit_learn(make):
    X = RNG.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    settings = {"random_state": 0}
    model, expected = make(**settings), [None] * 7
    for k in range(7, 60):
        model.partial_fit(X[k - 7 : k - 6], y[k - 7 : k - 6], classes=[0, 1])
        expected.append(model.predict(X[k : k + 1])[0])
    for rows in (X, X.tolist()):
        told = evaluate.prequential(make(**settings), rows, y, delay=7, classes=[0, 1])
        assert told.tolist() == expected
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    told = evaluate.prequential(make(**settings), frame, y, delay=7, classes=[0, 1])
    assert told.tolist() == expected
    river = evaluate.prequential(RiverTraceNormClassifier(), frame, y.tolist(), delay=7)
    rows = frame.to_dict("records")
    again = evaluate.prequential(RiverTraceNormClassifier(), rows, y.tolist(), delay=7)
    assert river.tolist() == again.tolist() and river[:7].tolist() == [None] * 7


def test_what_is_refused():
    completer = MatrixCompleter()
    for delay, error in (
        (-1, ValueError),
        (1.5, ValueError),
        ("three", TypeError),
        (True, TypeError),
    ):
        with pytest.raises(error, match="delay must be a whole number >= 0"):
            completer.prequential(PAIRS, RATINGS, delay)
        with pytest.raises(error, match="delay must be a whole number >= 0"):
            evaluate.prequential(completer, PAIRS, RATINGS, delay=delay)
    with pytest.raises(ValueError, match="finite"):
        completer.prequential(PAIRS, np.where(np.arange(150) == 140, np.nan, RATINGS), 5)
    with pytest.raises(ValueError, match="a label for each of 150 rows, got 149"):
        evaluate.prequential(completer, PAIRS, RATINGS[1:])
    with pytest.raises(TypeError, match="partial_fit, or predict_one"):
        evaluate.prequential(object(), PAIRS, RATINGS)
    assert completer.n_ratings_ == 0

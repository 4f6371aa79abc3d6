"""Prequential evaluation: rankings against scores counted by hand, and labels that come late."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from river import datasets, linear_model, metrics, optim
from river import evaluate as river_evaluate
from sklearn.linear_model import SGDClassifier

from driftwolfe import evaluate
from driftwolfe.estimators import (
    MatrixCompleter,
    Recommender,
    RiverMatrixCompleter,
    RiverTraceNormClassifier,
    TraceNormClassifier,
)

EVENTS = [("a", 1), ("b", 1), ("b", 2), ("a", 3, 0.0), ("a", 2)]
EVENTS += [("c", item) for item in (1, 3, 2, 2)]


class Fixed:
    """Recommends the same items always, without those seen."""

    def __init__(self, items):
        self.items, self.seen = items, {}

    def recommend(self, user, n):
        return [item for item in self.items if item not in self.seen.get(user, ())][:n]

    def partial_fit(self, pairs, weights):
        for user, item in pairs:
            self.seen.setdefault(user, set()).add(item)


class FixedRanker:
    """The same for river: it must not be asked for items that the user has seen."""

    def __init__(self, items):
        self.items, self.seen, self.learned = items, {}, []

    def rank(self, user, items):
        assert not {*items} & self.seen.get(user, set())
        return sorted(items, key=self.items.index)

    def learn_one(self, user, item, y):
        self.seen.setdefault(user, set()).add(item)
        self.learned.append(y)


@pytest.mark.parametrize("make", [Fixed, FixedRanker])
def test_scores(make):
    # Scored: (b, 2), which a ranker of known items cannot rank yet; (a, 2) first; (c, 3) second; and
    # (c, 2) first. Item 1 is never shown: everybody has seen it.
    known = make is Fixed
    scores = evaluate.ranking(make([1, 2, 3]), EVENTS, n=2)
    assert scores.events == 4 and scores.recall == (3.0 + known) / 4.0
    assert scores.ndcg == pytest.approx((2.0 + known + 1.0 / math.log2(3.0)) / 4.0)
    assert scores.mrr == pytest.approx((2.5 + known) / 4.0)
    assert scores.coverage == pytest.approx(2.0 / 3.0)
    first = evaluate.ranking(make([1, 2, 3]), EVENTS, n=1)
    assert first.recall == (2.0 + known) / 4.0 and "recall@1 0." in str(first)


def test_a_model_of_ratings_learns_weights_as_ratings():
    # Users rate five items 5, then five 1: the next is always among the best five that are left.
    events = [(user, item, 5.0 if item < 5 else 1.0) for user in range(40) for item in range(10)]
    scores = evaluate.ranking(MatrixCompleter(), events, n=5)
    model = MatrixCompleter().partial_fit(*zip(*[((u, i), r) for u, i, r in events], strict=True))
    assert set(model.recommend("new", 5)) == set(range(5))
    assert scores.events == 40 * 9 and 0.9 < scores.recall < 1.0  # the first user's items are new


def test_agrees_with_prequential_ranks():
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, (20, 40), (300, 2))
    rng.shuffle(pairs)
    # Scores of different weights: hardly any are equal.
    weights = rng.random(300)
    events = [(*pair, weight) for pair, weight in zip(pairs.tolist(), weights, strict=True)]
    scores = evaluate.ranking(Recommender(), events, n=5)
    ranks, known, seen = Recommender().prequential(pairs, weights=weights), set(), set()
    hits = total = 0
    for (user, item), rank in zip(pairs.tolist(), ranks.tolist(), strict=True):
        if user in known and (user, item) not in seen:
            total += 1
            hits += 0 <= rank < 5
        known.add(user)
        seen.add((user, item))
    assert scores.events == total and scores.recall == hits / total


class Indifferent:
    """Recommends all items with the same score, those that come first."""

    def __init__(self):
        self.items = {}

    def recommend(self, user, n, *, return_scores=False):
        return list(self.items)[:n], [1.0] * min(n, len(self.items))

    def partial_fit(self, pairs, *, weights=None):
        self.items[pairs[0][1]] = None

    def rank(self, user, items):
        return list(items)

    def learn_one(self, user, item, y):
        pass


def test_ties_are_broken_at_random():
    events = [(0, item) for item in range(50)]
    for user in range(1, 400):
        events += [(user, 49), (user, user % 2)]  # the next one is among the first two
    for ranker in (False, True):
        model = Indifferent()
        if ranker:
            model.recommend = None
        # Ten of fifty; the standard deviation is 0.02.
        assert abs(evaluate.ranking(model, events, n=10).recall - 10 / 50) < 0.09


def test_what_is_refused():
    with pytest.raises(TypeError, match="rank and learn_one"):
        evaluate.ranking(object(), EVENTS)
    with pytest.raises(ValueError, match="at 1"):
        evaluate.ranking(Recommender(), [("a", 1), "b"])
    with pytest.raises(ValueError, match="weight"):
        evaluate.ranking(Recommender(), [("a", 1, -1.0)])
    assert evaluate.ranking(Recommender(), []).recall == 0.0


@pytest.mark.parametrize("delay", [0, 1, 2, 3, 20])
def test_events_may_be_learned_late(delay):
    class Counting(Fixed):
        told, learned = (), 0

        def recommend(self, user, n):
            self.told = (*self.told, self.learned)
            return super().recommend(user, n)

        def partial_fit(self, pairs, weights):
            self.learned += 1
            super().partial_fit(pairs, weights)

    model = Counting([1, 2, 3])
    scores = evaluate.ranking(model, EVENTS, n=2, delay=delay)
    scored = (2, 4, 6, 7)  # events before them
    assert model.told == tuple(max(0, k - max(delay, 1) + 1) for k in scored)
    assert scores.events == 4 and model.learned == len(EVENTS)


RNG = np.random.default_rng(0)
PAIRS = RNG.integers(0, 9, (150, 2))
RATINGS = np.round(3.0 + np.sin(PAIRS[:, 0] * 2.0) + np.cos(PAIRS[:, 1] * 3.0), 1)


@pytest.mark.in_turn
@pytest.mark.parametrize("delay", [0, 1, 2, 30, 1000])
@pytest.mark.parametrize(
    "make", [RiverTraceNormClassifier, lambda: linear_model.LogisticRegression(optim.SGD(0.1))]
)
def test_it_is_the_loop_of_river(make, delay):
    rows = list(datasets.Phishing().take(120))
    steps = river_evaluate.iter_progressive_val_score(
        iter(rows), make(), metrics.Accuracy(), delay=delay, yield_predictions=True
    )
    theirs = [step["Prediction"] for step in steps]
    ours = evaluate.prequential(make(), [x for x, _ in rows], [y for _, y in rows], delay=delay)
    assert ours.tolist() == theirs


@pytest.mark.parametrize("delay", [1, 40, 999])
def test_late_ratings(delay):
    completer, by_hand, expected = MatrixCompleter(), MatrixCompleter(), []
    told = evaluate.prequential(completer, PAIRS, RATINGS, delay=delay)
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
    told = evaluate.prequential(RiverMatrixCompleter(), PAIRS, RATINGS, delay=delay)
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


def test_late_labels_that_are_refused():
    completer = MatrixCompleter()
    for delay, error in zip(
        (-1, 1.5, "three", True), 2 * [ValueError] + 2 * [TypeError], strict=True
    ):
        with pytest.raises(error, match="delay must be a whole number >= 0"):
            evaluate.prequential(completer, PAIRS, RATINGS, delay=delay)
    with pytest.raises(ValueError, match="a label for each of 150 rows, got 149"):
        evaluate.prequential(completer, PAIRS, RATINGS[1:])
    with pytest.raises(TypeError, match="partial_fit, or predict_one"):
        evaluate.prequential(object(), PAIRS, RATINGS)
    broken = SimpleNamespace(predict=lambda rows: int("no"), partial_fit=lambda rows, labels: None)
    with pytest.raises(ValueError, match="'no'"):  # not taken for a model that is not fitted yet
        evaluate.prequential(broken, PAIRS, RATINGS)
    assert completer.n_ratings_ == 0

"""Evaluate models on a stream: predict, or recommend; then, at once or later, see the truth and learn it."""

from __future__ import annotations

import inspect
from array import array
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftwolfe.estimators.core.ids import Ids
from driftwolfe.points import checks

__all__ = ["RankingScores", "prequential", "ranking"]


@dataclass
class RankingScores:
    """How well a recommender foresaw the next new item of users, as means over events.

    Attributes
    ----------
    n, events
        How many items were recommended for each event, and how many events were scored.
    recall, coverage
        Fraction of events whose item was among those recommended, and of all items that ever were.
    ndcg, mrr
        Means of 1/log2(rank + 1) and of 1/rank, from rank 1 on; 0 for items not recommended.

    Examples
    --------
    >>> print(RankingScores(10, events=4, recall=0.5, ndcg=0.4, mrr=0.3, coverage=0.2))
    recall@10 0.5000, NDCG@10 0.4000, MRR@10 0.3000, coverage 0.2000, 4 events
    """

    n: int
    events: int = 0
    recall: float = 0.0
    ndcg: float = 0.0
    mrr: float = 0.0
    coverage: float = 0.0

    def __str__(self) -> str:
        n = self.n
        return (
            f"recall@{n} {self.recall:.4f}, NDCG@{n} {self.ndcg:.4f}, MRR@{n} {self.mrr:.4f}, "
            f"coverage {self.coverage:.4f}, {self.events:,} events"
        )


def ranking(model: Any, events: Iterable[Any], *, n: int = 10, delay: int = 0) -> RankingScores:
    """Recommend n items before each event, then learn it; return the scores.

    An event is scored if its weight is positive, the user had an event of positive weight before, and
    the item is new to the user. All are learned. Memory grows with users, items and pairs only.

    Items of equal score come in random order, also those beyond the n: to count ties as hits would
    flatter a model with few different scores. A model whose `recommend` has no `return_scores` is taken
    at its word; rankers of river get the items in random order, which those that sort keep for equal ones.

    Parameters
    ----------
    model
        Anything with ``recommend(user, n)``, without what the user has seen, and
        ``partial_fit(pairs, weights=...)``, as `Recommender` has, or ``partial_fit(pairs, ratings)``, as
        `MatrixCompleter` has; or a ranker of river. The weights are its ratings, or its y.
    events
        (user, item) pairs, or (user, item, weight) triples; an event of weight 0 was seen only.
    n
        How many items to recommend.
    delay
        How many events later each is learned, the last ones at the end; 0 and 1 are the same. What is
        new to a user does not depend on it.

    Examples
    --------
    >>> from driftwolfe.estimators import Recommender
    >>> events = [(user, item) for user in range(20) for item in ("tea", "milk", "jam")]
    >>> print(ranking(Recommender(), events, n=1))
    recall@1 0.9500, NDCG@1 0.9500, MRR@1 0.9500, coverage 0.6667, 40 events
    """
    scores = RankingScores(checks.count(n, "n"))
    recommend, learn = _verbs(model, np.random.default_rng(0))
    users, items = Ids(), Ids()
    seen, liked, shown = list[Any](), bytearray(), set[Any]()
    ranks = array("i")  # of each scored event; 0 where its item was not recommended
    for user, item, weight in _learned_late(learn, _triples(events), delay):
        users.add([user])
        u, i = users.numbers[user], items.numbers.get(item, len(items))
        if u == len(seen):
            seen.append(array("i"))
            liked.append(0)
        new = i not in seen[u]
        if weight > 0.0 and liked[u] and new:
            ranks.append(0)
            for rank, offered in enumerate(recommend(user, scores.n, items, seen[u]), start=1):
                shown.add(offered)
                if offered == item:
                    ranks[-1] = rank
        items.add([item])
        if new:
            seen[u].append(i)
        liked[u] |= weight > 0.0
    if ranks:
        scores.events, found = len(ranks), np.array(ranks)
        hit = found > 0
        scores.recall = float(hit.mean())
        scores.ndcg = float(np.sum(1.0 / np.log2(found[hit] + 1.0)) / len(found))
        scores.mrr = float(np.sum(1.0 / found[hit]) / len(found))
        scores.coverage = len(shown) / len(shown.union(items.names))
    return scores


def prequential(model: Any, X: Any, y: Any, *, delay: int = 0, classes: Any = None) -> Any:
    """Predict each row before its label is known, learn it then; return the predictions as an array.

    This is river's ``progressive_val_score(..., delay=delay)``, for all models. Predictions are None where a
    model cannot predict before it has learned.

    Parameters
    ----------
    model
        Has ``predict`` and ``partial_fit``, as in scikit-learn and `MatrixCompleter`; or ``predict_one``
        and ``learn_one``, as in river, which are taken where there are both.
    X, y
        Rows: an array, sparse matrix, data frame or list; dicts or (user, item) pairs for river's. And
        a label or a number for each.
    delay
        How many rows later labels come: just before that row is predicted, or at the end. 0 is as 1.
    classes
        Given to ``partial_fit`` if not None, as scikit-learn's classifiers need.

    Examples
    --------
    >>> from sklearn.linear_model import SGDRegressor
    >>> prequential(SGDRegressor(), [[1.0]] * 4, [2.0] * 4, delay=2)[:2]
    array([None, None], dtype=object)
    """
    predict, learn = _row_verbs(model, classes)
    rows, labels = getattr(X, "iloc", X), list(y)
    if (size := getattr(X, "shape", None) or (len(X),))[0] != len(labels):
        raise ValueError(f"y must hold a label for each of {size[0]} rows, got {len(labels)}")
    pairs = ((rows[k : k + 1], label) for k, label in enumerate(labels))
    return np.array([predict(row) for row, _ in _learned_late(learn, pairs, delay)])


def _learned_late(
    learn: Callable[..., Any], rounds: Iterable[tuple[Any, ...]], delay: int
) -> Iterator[tuple[Any, ...]]:
    """Yield each round, and learn it `delay` rounds later; the last ones at the end."""
    late, waiting = checks.count(delay, "delay", least=0), deque[tuple[Any, ...]]()
    for each in rounds:
        yield each
        waiting.append(each)
        if len(waiting) >= late:
            learn(*waiting.popleft())
    for each in waiting:
        learn(*each)


def _row_verbs(model: Any, classes: Any) -> tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]:
    """Return how a model predicts one row, and how it learns it."""
    checks.refuse_class(model)
    if hasattr(model, "predict_one") and hasattr(model, "learn_one"):

        def given(rows: Any) -> Any:
            if hasattr(rows, "to_dict"):  # a data frame
                return rows.to_dict("records")
            (row,) = rows.tolist() if hasattr(rows, "tolist") else rows
            return (row,) if isinstance(row, Mapping) else row

        return (
            lambda rows: model.predict_one(*given(rows)),
            lambda rows, label: model.learn_one(*given(rows), label),
        )
    if not (hasattr(model, "predict") and hasattr(model, "partial_fit")):
        raise TypeError(
            "model must have predict and partial_fit, or predict_one and learn_one; got "
            f"{type(model).__name__}"
        )
    named = {} if classes is None else {"classes": classes}

    def predict(rows: Any) -> Any:
        try:
            return model.predict(rows)[0]
        except ValueError as error:
            if type(error).__name__ != "NotFittedError":  # scikit-learn need not be there
                raise
            return None

    return predict, lambda rows, label: model.partial_fit(rows, [label], **named)


def _triples(events: Iterable[Any]) -> Iterable[tuple[Hashable, Hashable, float]]:
    """Yield user, item and weight of each event, checked."""
    for number, event in enumerate(events):
        try:
            user, item, *rest = event
            (weight,) = rest or (1.0,)
        except (TypeError, ValueError):
            raise ValueError(
                f"events must be (user, item) or (user, item, weight), got {event!r} at {number}"
            ) from None
        yield user, item, checks.nonnegative(weight, "weight")


def _untied(model: Any, user: Hashable, n: int, rng: np.random.Generator) -> list[Any]:
    """Return what is recommended, equal scores in random order; asks for more until the last score is lower."""
    asked = n + 1
    while True:
        items, scores = model.recommend(user, asked, return_scores=True)
        if len(items) < asked or scores[-1] < scores[n - 1]:
            order = np.lexsort([rng.random(len(items)), -np.asarray(scores)])
            return [items[place] for place in order[:n].tolist()]
        asked *= 2


def _verbs(
    model: Any, rng: np.random.Generator
) -> tuple[Callable[..., list[Any]], Callable[..., Any]]:
    """Return how a model recommends to a user, and how it learns an event."""
    checks.refuse_class(model)
    if callable(getattr(model, "recommend", None)) and hasattr(model, "partial_fit"):
        rated = "ratings" in inspect.signature(model.partial_fit).parameters
        name = "ratings" if rated else "weights"
        scored = "return_scores" in inspect.signature(model.recommend).parameters
        return (
            lambda user, n, items, seen: (
                _untied(model, user, n, rng) if scored else model.recommend(user, n)
            ),
            lambda user, item, weight: model.partial_fit([(user, item)], **{name: [weight]}),
        )
    if callable(getattr(model, "rank", None)) and hasattr(model, "learn_one"):

        def rank(user: Hashable, n: int, items: Ids, seen: Any) -> list[Any]:
            excluded = {items.names[i] for i in seen}
            left = [item for item in items.names if item not in excluded]
            shuffled = [left[place] for place in rng.permutation(len(left)).tolist()]
            return list(model.rank(user, shuffled))[:n]

        return rank, model.learn_one
    raise TypeError(
        "model must have recommend and partial_fit, as Recommender, or rank and learn_one, as river's "
        f"rankers; got {type(model).__name__}"
    )

"""`Recommender`, which ranks items for users from a stream of events."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from driftwolfe.estimators.core import ids
from driftwolfe.estimators.core.ids import Ids, plain_keys, several
from driftwolfe.estimators.core.models import UsersAndItems, Watch
from driftwolfe.estimators.recommender_tables import RankingTables, RecommenderPool, kernels
from driftwolfe.points import checks
from driftwolfe.points.access import half_written, reads, writes, writes_or_undoes
from driftwolfe.points.kinds import Array, Indices
from driftwolfe.state import Field
from driftwolfe.storage import require

#: Largest weight of an event, and longest time between two, in mean times between two.
LARGEST_WEIGHT, LONGEST_GAP = 1e6, 1e4
_NUMBERS = (float, int, bool)
#: Users that are scored together in `recommend_many`.
BLOCK = 1024


class Recommender(UsersAndItems):
    r"""Recommender for streams of events (clicks, purchases, likes) that drift; nothing to tune.

    Users and items are anything hashable and may appear at any time. The score of an item for a user
    is the probability that it is the next new one, a mixture of experts:

    .. math:: p(i \mid u) = \sum_e w_e\, p_e(i \mid u)

    The experts are popularity (of all time, and over the last 300 events) and co-occurrence with the
    user's latest items (of pairs that may be far apart, of near ones, which fade, and of any, in no order).
    They are weighted by Bayes' rule with a fixed share, apart for each power of 2 of the number of items that
    a user has seen. One call with n events is bit-identical to n calls with one.

    Memory: up to 6 KiB per item, 24 bytes per user, 4 to 8 for each different pair of user and item, and the
    ids; never more than four times that, as tables double. Items seen are never forgotten. Time per event does
    not grow with users; it grows by some nanoseconds for each item that the user has seen.

    Notes
    -----
    In a round, a user meets an item of the catalogue that is new to them; :math:`p_e` is what expert e gave it
    just before, among all items of the catalogue that the user had not seen. For N = 5 experts, T rounds in B
    buckets of users, and any sequence of experts with S switches within the buckets,

    .. math:: \sum_t \ln \frac{p_{e_t}(i_t \mid u_t)}{p(i_t \mid u_t)} \le (S + B) \ln (N T)

    without a learning rate: the loss is logarithmic, so Bayes' rule is exact, and the fixed share of
    1/(t + 1) has the rest as its price (Herbster and Warmuth 1998; the proof is in
    docs/estimators/recommender.md). Recall, or one expert, has no guarantee.

    What is recommended is the best among the neighbours of the user's 20 latest items and the 128 most
    popular items of both kinds; the whole catalogue is searched where these are too few.

    Several threads may recommend, predict or save at the same time, or one may learn; other calls
    are refused with a RuntimeError.

    Attributes
    ----------
    note_
        What `save` was given as a note, in a model that was loaded; else None.

    Examples
    --------
    >>> model = Recommender()
    >>> model.partial_fit([("ann", "tea"), ("ann", "milk"), ("bob", "tea"), ("bob", "milk"),
    ...                    ("cat", "jam"), ("dan", "tea")])
    Recommender(users=4, items=3, events=6)
    >>> model.recommend("dan", 1)
    ['milk']
    >>> items, scores = model.recommend("dan", 2, return_scores=True)
    >>> items, round(float(scores.sum()), 6)
    (['milk', 'jam'], 1.0)

    References
    ----------
    Herbster and Warmuth (1998), Tracking the best expert, Machine Learning. Sarwar et al. (2001),
    Item-based collaborative filtering recommendation algorithms, WWW.
    """

    COUNTED = "events"
    SETTINGS: ClassVar[dict[str, Any]] = {
        "note": Field(dict, optional=True),
        "times": Field(list, (3,), items=Field(float)),
    }
    PARTS: ClassVar[dict[str, Any]] = {"pool": RecommenderPool, **UsersAndItems.KNOWN}

    def __init__(self) -> None:
        self._pool = RecommenderPool()
        self._users, self._items, self._watch = Ids(), Ids(), Watch()
        self._times = np.zeros(3)  # the last one, the sum of the times between two, their number
        self.note_: dict[str, Any] | None = None

    @writes_or_undoes
    def partial_fit(self, pairs: Any, *, weights: Any = None, times: Any = None) -> Self:
        """Learn events, in the order given.

        Parameters
        ----------
        pairs
            (user, item) pairs: a list of them, or an array or data frame of two columns. Or a sparse
            matrix, users in rows and items in columns, both by number: its entries, row by row, are
            events with their values as weights.
        weights
            How much each counts, from 0 to a million; 1 if not given. A pair of weight 0 is only
            remembered as seen.
        times
            When each happened, in any unit, never falling. Popularity then fades with time, in units
            of the mean time between two events, instead of with every event.
        """
        if times is not None or not self._learn_single(pairs, weights):
            self._learn(pairs, weights, times)
        return self

    def _learn_single(self, pairs: Any, weights: Any) -> bool:
        """Learn one event of a known user and item, and return True; the checks of many take longer."""
        pair, weight = ids.single(pairs), 1.0
        if weights is not None:
            if type(weights) is not list or len(weights) != 1 or type(weights[0]) not in _NUMBERS:
                return False
            (weight,) = weights
        if pair is None or not 0.0 <= weight <= LARGEST_WEIGHT:
            return False
        row, col = self._users.numbers.get(pair[0]), self._items.numbers.get(pair[1])
        if row is None or col is None:
            return False
        t = self._pool.ranks.clock.item(0)
        try:
            self._watch.take_one(self._pool.learn_single(row, col, weight))
        except BaseException:
            half_written(self, self._settled, t, 1, self._times)
            raise
        return True

    @writes
    def prequential(self, pairs: Any, *, weights: Any = None) -> Indices:
        """Rank the item of each event, then learn it, one after the other; return the ranks.

        Rank 0 is the item recommended first. It is -1 where there was nothing to recommend: the item
        was not known yet, was seen before, or has weight 0. `driftwolfe.evaluate.ranking` learns with a delay.
        """
        return self._learn(pairs, weights, None, ranked=True)

    def _learn(self, pairs: Any, weights: Any, times: Any, ranked: bool = False) -> Indices:
        """Check events, number their ids, and learn them; return their ranks, if asked for."""
        if hasattr(pairs, "tocsr"):
            if weights is not None:
                raise ValueError("a sparse matrix has its weights as values: leave weights= out")
            users, items, weights = ids.matrix_entries(pairs)
        else:
            users, items = ids.columns(pairs)
        if not users:
            raise ValueError("pairs is empty: give at least one event to learn")
        given = np.ones(len(users)) if weights is None else weights
        counted = np.ascontiguousarray(checks.finite_array(given, "weights", (len(users),)))
        if counted.min() < 0.0 or counted.max() > LARGEST_WEIGHT:
            raise ValueError(f"weights must lie in 0..{LARGEST_WEIGHT:g}")
        elapsed, clock = (counted > 0.0).astype(float), self._times
        if times is not None:
            elapsed, clock = self._elapsed(checks.finite_array(times, "times", (len(users),)))
        rows, new_users = self._users.number(users)
        cols, new_items = self._items.number(items)
        t, known = self._pool.t, (len(self._users), len(self._items))
        try:
            if new_users or new_items:
                self._pool.grow(known[0] + len(new_users), known[1] + len(new_items))
            found, losses = self._pool.learn(rows, cols, counted, elapsed, ranked)
            self._watch.take(losses)
            self._users.add(new_users)
            self._items.add(new_items)
            self._times = clock
        except BaseException:
            half_written(self, self._settled, t, len(users), clock, new_users, new_items)
            raise
        return found

    def _settled(self, t: int, events: int, clock: Array, users: Any = (), items: Any = ()) -> bool:
        """Undo a call that was interrupted before its first event, complete one after its last; return whether."""
        learned, watched = self._pool.t - t, self._watch.t == self._pool.t
        if learned == 0:
            self._pool.users = len(self._users)  # rows of others are empty still
        elif learned == events and watched:
            self._pool.refresh()
            self._users.add(users)
            self._items.add(items)
            self._times = clock
        return learned in (0, events) and watched

    def _elapsed(self, times: Array) -> tuple[Array, Array]:
        """Return the times between events in units of their mean so far, and the new clock."""
        last, total, number = self._times.tolist()
        gaps = np.diff(times, prepend=last if number else times[0])
        if gaps.min() < 0.0:
            raise ValueError("times must never fall; sort the events by time")
        totals = total + np.cumsum(gaps)
        numbers = number + np.arange(1.0, gaps.size + 1.0)
        clock = np.array([times[-1], totals[-1], numbers[-1]])
        if not np.isfinite(clock).all():
            raise ValueError("times must span less than the largest floating-point number")
        mean = np.maximum(totals / numbers, np.finfo(float).tiny)
        return np.minimum(gaps / mean, LONGEST_GAP), clock

    def recommend(
        self,
        user: Hashable,
        n: int = 10,
        *,
        items: Any = None,
        exclude: Any = (),
        return_scores: bool = False,
    ) -> Any:
        """Return the n best items for a user without those seen, or fewer; best first.

        Parameters
        ----------
        user
            A new one gets what is popular.
        items, exclude
            Only items are recommended that are among the ones, if given, and not among the others.
        return_scores
            Whether to return a pair: the items, and an array of their probabilities.
        """
        given = {"items": items, "exclude": exclude, "return_scores": return_scores}
        found = self.recommend_many([user], n, **given)
        return (found[0][0], found[1][0]) if return_scores else found[0]

    @reads
    def recommend_many(
        self,
        users: Sequence[Hashable],
        n: int = 10,
        *,
        items: Any = None,
        exclude: Any = (),
        return_scores: bool = False,
    ) -> Any:
        """Return a list of the best items for each user; much quicker than one by one.

        With `return_scores`, a pair: these lists, and a list of arrays of their probabilities.
        """
        count = min(checks.count(n, "n", least=0), len(self._items))
        rows = self._users.find(plain_keys(several(users, "users"), "the id of one user"))
        unwanted = {-1, *self._places(exclude, "exclude").tolist()}
        if items is None:  # enough of the best, less those that are not wanted
            more = min(count + len(unwanted) - 1, len(self._items)) if count else 0
            found = self._best(rows, more)
        else:
            found = self._best_of(rows, self._places(items, "items"))
        names, lists, scores = self._items.names, [], []
        for best, chances in found:
            lists.append([names[item] for item in best if item not in unwanted][:count])
            if return_scores:
                kept = [place for place, item in enumerate(best) if item not in unwanted]
                scores.append(chances[kept[:count]])
        return (lists, scores) if return_scores else lists

    def _places(self, items: Any, name: str) -> Indices:
        """Return the numbers of the items that are known, each once."""
        if isinstance(items, list | tuple) and not items:
            return np.zeros(0, np.int64)
        found = self._items.find(plain_keys(several(items, name), "the id of one item"))
        return np.unique(found[found >= 0])

    def _best(self, rows: Indices, count: int) -> Iterator[tuple[list[int], Array]]:
        """The best items of each user, -1 where there are no more, and their probabilities."""
        for first in range(0, rows.size, BLOCK):
            best, chances = self._pool.recommend(rows[first : first + BLOCK], count)
            yield from zip(best.tolist(), chances, strict=True)

    def _best_of(self, rows: Indices, allowed: Indices) -> Iterator[tuple[list[int], Array]]:
        """The same of the items allowed, all of them."""
        for row in rows.tolist():
            chances = self._pool.predict(np.full(allowed.size, row), allowed)[0]
            order = np.argsort(-chances, kind="stable")
            order = order[chances[order] > 0.0]
            yield allowed[order].tolist(), chances[order]

    @reads
    def similar_items(self, item: Hashable, n: int = 10, *, return_scores: bool = False) -> Any:
        """Return the items that go with one, best first; none for one that is not known.

        By how often users had both (far pairs) over the roots of both numbers of events. With
        `return_scores`, a pair: the items, and an array of these numbers.
        """
        count, known = checks.count(n, "n", least=0), self._places([item], "item")
        places, scores = self._pool.similar(int(known[0])) if known.size else ([], np.zeros(0))
        found = [self._items.names[place] for place in places[:count]]
        return (found, scores[:count]) if return_scores else found

    @reads
    def explain(self, user: Hashable, item: Hashable) -> dict[str, Any]:
        """Return why an item is recommended, as a dict; all is 0 for what is new or seen.

        `score`, the probability; `experts`, what each adds, which sum to the score; `items`, what pairs with
        each of the user's latest items add, most first, which sum to what the experts of pairs add. What an
        expert takes from popularity counts as popularity.
        """
        number, places = self._user(user)[1], self._places([item], "item")
        parts, latest, of_items = np.zeros(kernels().EXPERTS), np.zeros(0, np.int64), np.zeros(0)
        if places.size:
            parts, latest, of_items = self._pool.explain(number, int(places[0]))
        order = [k for k in np.argsort(-of_items, kind="stable").tolist() if of_items[k] > 0.0]
        return {
            "score": float(parts.sum()),
            "experts": dict(zip(self.expert_names_, parts.tolist(), strict=True)),
            "items": {self._items.names[latest[k]]: float(of_items[k]) for k in order},
        }

    @reads
    def predict(self, pairs: Any) -> Array:
        """Return the probability that each item is the user's next new one; 0 for what is new or seen."""
        users, items = ids.columns(pairs)
        return self._pool.predict(self._users.find(users), self._items.find(items))[0]

    @writes
    def forget(self, user: Hashable) -> Self:
        """Remove all that is stored of a user: id and items seen.

        What items have learned from them stays, as it cannot be told apart. KeyError for a user who is not known.
        """
        key, number = self._user(user)
        if number < 0:
            raise self._unknown(key)
        del self._users.numbers[key]
        self._pool.forget(number)
        last = self._users.names.pop()  # takes the number that is free now
        if number < len(self._users.names):
            self._users.names[number] = last
            self._users.numbers[last] = number
        return self

    @reads
    def seen(self, user: Hashable) -> list[Any]:
        """Return the items that a user has seen, the latest last."""
        _, number = self._user(user)
        items = self._pool.seen_by(number).tolist() if number >= 0 else []
        return [self._items.names[item] for item in items]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the options it was made with, none: so that scikit-learn can `clone` it."""
        return {}

    @reads
    def tables(self) -> RankingTables:
        """Return all that scores follow from, as arrays; numbers are places in `users_` and `items_`."""
        return self._pool.exported()

    @property
    def n_events_(self) -> int:
        """Events learned so far."""
        return self._pool.t

    @property
    def expert_names_(self) -> list[str]:
        """What each expert ranks by."""
        return ["popularity", "recent popularity", "far pairs", "near pairs", "any pairs"]

    @property
    @reads
    def expert_weights_(self) -> Array:
        """Weights of the experts: a row for users who have seen 0, 1, 2-3, 4-7, ..., 64 or more items."""
        return self._pool.ranks.weights.copy()

    def save(self, path: str | os.PathLike[str], *, note: dict[str, Any] | None = None) -> None:
        """Write everything to one file; `load` resumes bit-identically.

        Ids must be texts, numbers, booleans, None, bytes or tuples of these. A note is what belongs to this state
        of the model, such as the offset of the next event: a dict that JSON can hold. `load` returns a model with
        it as `note_`.
        """
        if note is not None and (type(note) is not dict or json.loads(json.dumps(note)) != note):
            raise TypeError(
                f"note must be a dict that JSON can hold, with texts as keys, got {note!r}"
            )
        self._write(path, type(self).__name__, note=note)

    def _settings(self) -> dict[str, Any]:
        return {"note": None, "times": self._times.tolist()}

    @classmethod
    def _restored(cls, settings: dict[str, Any], *parts: Any) -> Self:
        model = super()._restored(settings, *parts)
        model._times, model.note_ = np.array(settings["times"]), settings["note"]
        require(model._times[1] >= 0.0 and model._times[2] >= 0.0, "times")
        return model

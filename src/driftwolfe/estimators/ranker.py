"""`Recommender`, which ranks items for users from a stream of events, and its saved state."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from driftwolfe.estimators import ranker_kernels as kernels
from driftwolfe.estimators.ids import Ids, distinct_keys, encode_keys, plain_keys
from driftwolfe.estimators.ranker_pool import RankingPool
from driftwolfe.estimators.ranker_tables import RankingTables, ranking_tables
from driftwolfe.estimators.recommender import columns
from driftwolfe.points import checks
from driftwolfe.points.access import Guarded, reads, reads_whole, writes
from driftwolfe.points.kinds import Array, Indices
from driftwolfe.saved_state import Field, check_fields
from driftwolfe.storage import Archive, enough_memory, read_archive, refused, require, write_archive

#: Largest weight of an event, and longest time between two, in mean times between two.
LARGEST_WEIGHT, LONGEST_GAP = 1e6, 1e4
#: Types of ids that need no checks.
_QUICK = {str, int}
_NUMBERS = (float, int, bool)
#: Users that are scored together in `recommend_many`.
BLOCK = 1024


class Recommender(Guarded):
    r"""Recommender for streams of events (clicks, purchases, likes) that drift; nothing to tune.

    Users and items are anything hashable and may appear at any time. The score of an item for a user
    is the probability that it is the next new one, a mixture of experts:

    .. math:: p(i \mid u) = \sum_e w_e\, p_e(i \mid u)

    The experts are popularity (of all time, and over the last 3,000 and 300 events), co-occurrence
    with the user's latest items (pairs that are far apart or near, the near ones fading, each with
    two normalisations), and a low-rank smoothing of co-occurrence (projected to a trace-norm ball).
    They are weighted by Bayes' rule with a fixed share, apart for each power of 2 of the number of
    items that a user has seen. One call with n events is bit-identical to n calls with one.

    Memory: 70 bytes per item and up to 512 neighbours of 12 bytes each (6 KiB), 24 bytes per user and
    4 to 8 for each different item seen by each, and the ids. Time per event does not grow with users;
    it grows with what the user has seen by some nanoseconds an item. Catalogues of more than 2,048
    items are searched among the neighbours of the user's 10 latest items and the 128 most popular
    items of each kind.

    Parameters
    ----------
    seed
        Seed of the random directions that the low-rank expert starts from.

    Notes
    -----
    In a round, a user meets an item of the catalogue that is new to them; :math:`p_e` is what expert
    e gave it just before, among all items that the user had not seen. For N experts, T rounds in B
    buckets of users, and any sequence of experts with S switches within the buckets,

    .. math:: \sum_t \ln \frac{p_{e_t}(i_t \mid u_t)}{p(i_t \mid u_t)} \le (S + B) \ln (N T)

    without a learning rate: the loss is logarithmic, so Bayes' rule is exact, and the share of
    1/(t + 1) has the rest as its price (Herbster and Warmuth 1998). `regret_bound` is this. In large
    catalogues an expert's probability is spread over the items that are searched. No such guarantee
    holds for recall, or for one expert.

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

    def __init__(self, *, seed: int = 0) -> None:
        self._pool = RankingPool(checks.count(seed, "seed", least=0, most=math.inf))
        self._users, self._items = Ids(), Ids()
        self._times = np.zeros(3)  # the last one, the sum of the times between two, their number
        self.note_: dict[str, Any] | None = None

    def partial_fit(self, pairs: Any, *, weights: Any = None, times: Any = None) -> Self:
        """Learn events, in the order given.

        Parameters
        ----------
        pairs
            (user, item) pairs: a list of them, or an array or data frame of two columns.
        weights
            How much each counts, from 0 to a million; 1 if not given. A pair of weight 0 is only
            remembered as seen.
        times
            When each happened, in any unit, never falling. Popularity then fades with time, in units
            of the mean time between two events, instead of with every event.
        """
        if times is not None or not self._learn_single(pairs, weights):
            self._learn(pairs, weights, times, False)
        return self

    @writes
    def _learn_single(self, pairs: Any, weights: Any) -> bool:
        """Learn one event of a known user and item, and return True; the checks of many take longer."""
        weight = 1.0
        if type(pairs) is not list or len(pairs) != 1 or type(pairs[0]) is not tuple:
            return False
        if weights is not None:
            if type(weights) is not list or len(weights) != 1 or type(weights[0]) not in _NUMBERS:
                return False
            (weight,) = weights
        if len(pairs[0]) != 2 or not _QUICK.issuperset(map(type, pairs[0])):
            return False
        user, item = pairs[0]
        row, col = self._users.numbers.get(user), self._items.numbers.get(item)
        if row is None or col is None or not 0.0 <= weight <= LARGEST_WEIGHT:
            return False
        self._pool.learn_single(row, col, weight)
        return True

    def prequential(self, pairs: Any, *, weights: Any = None, times: Any = None) -> Indices:
        """Rank the item of each event, then learn it, one after the other; return the ranks.

        Rank 0 is the item recommended first. It is -1 where there was nothing to recommend: the item
        was not known yet, was seen before, or has weight 0. Much quicker than `recommend` and
        `partial_fit` for each event.
        """
        return self._learn(pairs, weights, times, True)

    @writes
    def _learn(self, pairs: Any, weights: Any, times: Any, ranked: bool) -> Indices:
        """Check events, number their ids, and learn them."""
        users, items = columns(pairs)
        if not users:
            raise ValueError("pairs is empty: give at least one event to learn")
        size = (len(users),)
        counted = (
            np.ones(size) if weights is None else checks.finite_array(weights, "weights", size)
        )
        if counted.min() < 0.0 or counted.max() > LARGEST_WEIGHT:
            raise ValueError(f"weights must lie in 0..{LARGEST_WEIGHT:g}")
        elapsed, clock = np.ones(size), self._times
        if times is not None:
            elapsed, clock = self._elapsed(checks.finite_array(times, "times", size))
        rows, new_users = self._users.number(users)
        cols, new_items = self._items.number(items)
        if new_users or new_items:
            self._pool.grow(len(self._users) + len(new_users), len(self._items) + len(new_items))
        found = self._pool.learn(rows, cols, counted, elapsed, ranked)
        self._users.add(new_users)
        self._items.add(new_items)
        self._times = clock
        return found

    def _elapsed(self, times: Array) -> tuple[Array, Array]:
        """Return the times between events in units of their mean so far, and the new clock."""
        last, total, number = self._times.tolist()
        gaps = np.diff(times, prepend=last if number else times[0])
        if gaps.min() < 0.0:
            raise ValueError("times must never fall; sort the events by time")
        totals = total + np.cumsum(gaps)
        numbers = number + np.arange(1.0, gaps.size + 1.0)
        mean = np.maximum(totals / numbers, np.finfo(float).tiny)
        clock = np.array([times[-1], totals[-1], numbers[-1]])
        if not np.isfinite(clock).all():
            raise ValueError("times must span less than the largest floating-point number")
        return np.minimum(gaps / mean, LONGEST_GAP), clock

    def recommend(self, user: Hashable, n: int = 10, *, return_scores: bool = False) -> Any:
        """Return the best items for a user, without those seen; best first.

        Parameters
        ----------
        user
            A new one gets what is popular.
        n
            Most items to return; fewer if there are not as many.
        return_scores
            Whether to return a pair: the items, and an array of their probabilities.
        """
        found = self.recommend_many([user], n, return_scores=return_scores)
        return (found[0][0], found[1][0]) if return_scores else found[0]

    @reads
    def recommend_many(
        self, users: Sequence[Hashable], n: int = 10, *, return_scores: bool = False
    ) -> Any:
        """Return a list of the best items for each user; much quicker than one by one.

        With `return_scores`, a pair: these lists, and a list of arrays of their probabilities.
        """
        count = min(checks.count(n, "n", least=0), len(self._items))
        rows = self._users.find(plain_keys(users, "the id of one user"))
        names, items, scores = self._items.names, [], []
        for first in range(0, rows.size, BLOCK):
            best, chances = self._pool.recommend(rows[first : first + BLOCK], count)
            for places, chance in zip(best.tolist(), chances, strict=True):
                found = [names[place] for place in places if place >= 0]
                items.append(found)
                if return_scores:
                    scores.append(chance[: len(found)].copy())
        return (items, scores) if return_scores else items

    @reads
    def predict(self, pairs: Any) -> Array:
        """Return the probability that each item is the user's next new one; 0 for what is new or seen."""
        users, items = columns(pairs)
        return self._pool.predict(self._users.find(users), self._items.find(items))[0]

    @reads
    def expert_predictions(self, pairs: Any) -> Array:
        """Return the probabilities of each expert: one row per pair, one column per expert."""
        users, items = columns(pairs)
        return self._pool.predict(self._users.find(users), self._items.find(items))[1]

    @writes
    def forget(self, user: Hashable) -> Self:
        """Remove all that is stored of a user: id and items seen.

        What items have learned from them stays, as it cannot be told apart. Nothing happens for a user
        who is not known.
        """
        (key,) = plain_keys([user], "the id of one user")
        number = self._users.numbers.pop(key, None)
        if number is not None:
            self._pool.forget(number)
            last = self._users.names.pop()  # takes the number that is free now
            if number < len(self._users.names):
                self._users.names[number] = last
                self._users.numbers[last] = number
        return self

    @reads
    def seen(self, user: Hashable) -> list[Any]:
        """Return the items that a user has seen, the latest last."""
        (number,) = self._users.find(plain_keys([user], "the id of one user")).tolist()
        items = self._pool.seen_by(number).tolist() if number >= 0 else []
        return [self._items.names[item] for item in items]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the options it was made with, for `clone` of scikit-learn."""
        return {"seed": self._pool.seed}

    @reads
    def tables(self) -> RankingTables:
        """Return all that scores follow from, as arrays; numbers are places in `users_` and `items_`."""
        return ranking_tables(_pool_state(self._pool))

    @property
    @reads
    def users_(self) -> list[Any]:
        """Users known, in order of appearance; `forget` gives the place to the last one."""
        return list(self._users.names)

    @property
    @reads
    def items_(self) -> list[Any]:
        """Items known, in order of appearance."""
        return list(self._items.names)

    @property
    def n_users_(self) -> int:
        """Users known."""
        return len(self._users)

    @property
    def n_items_(self) -> int:
        """Items known."""
        return len(self._items)

    @property
    def n_events_(self) -> int:
        """Events learned so far."""
        return self._pool.t

    @property
    def expert_names_(self) -> list[str]:
        """What each expert ranks by."""
        memories = [f"popularity, {memory:,.0f} events" for memory in kernels.MEMORIES]
        kinds = [f"{kind}, power {p:g}" for kind in ("far", "near") for p in kernels.POWERS]
        return ["popularity", *memories, *kinds, "low rank"]

    @property
    @reads
    def expert_weights_(self) -> Array:
        """Weights of the experts: a row for users who have seen 0, 1, 2-3, 4-7, ..., 64 or more items."""
        return self._pool.ranks.weights.copy()

    @reads
    def regret_bound(self, changes: int = 0) -> float:
        r"""Return a bound on the log loss of the mixture less that of a sequence of experts.

        .. math:: \sum_b \ln (N T_b) + S \ln (N \max_b T_b)

        over the buckets of users that have had rounds, in nats.

        Parameters
        ----------
        changes
            S, how often the expert changes in the sequences of all buckets together.
        """
        rounds = self._pool.ranks.rounds
        switches = checks.count(changes, "changes", least=0)
        if not rounds.any():
            return 0.0
        prices = np.log(kernels.EXPERTS * rounds[rounds > 0])
        return float(prices.sum() + switches * prices.max())

    def save(self, path: str | os.PathLike[str], *, note: dict[str, Any] | None = None) -> None:
        """Write everything to one file; `load` resumes bit-identically.

        Ids must be texts, numbers, booleans, None, bytes or tuples of these.

        Parameters
        ----------
        path
            The file. A kill at any moment leaves the old one or the new one.
        note
            What belongs to this state of the model, such as the offset of the next event: a dict that
            JSON can hold. `load` returns a model with it as `note_`.
        """
        if note is not None and (type(note) is not dict or json.loads(json.dumps(note)) != note):
            raise TypeError(
                f"note must be a dict that JSON can hold, with texts as keys, got {note!r}"
            )
        self.write(path, type(self).__name__, note)

    @reads_whole
    def write(self, path: str | os.PathLike[str], kind: str, face: dict[str, Any] | None) -> None:
        """Write everything for a wrapper of that name, with settings of its own."""
        pool = self._pool
        settings = {"seed": pool.seed, "refreshed": pool.refreshed, "face": face}
        arrays = _pool_state(pool)
        arrays |= {"times": self._times, "ids.users": encode_keys(self._users.names)}
        arrays["ids.items"] = encode_keys(self._items.names)
        write_archive(path, kind, settings, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote."""
        model, note = cls.read(path, cls.__name__)
        model.note_ = note
        return model

    @classmethod
    def read(cls, path: str | os.PathLike[str], kind: str) -> tuple[Self, dict[str, Any] | None]:
        """Read what `write` wrote for a wrapper of that name, and its own settings."""
        with enough_memory(path):
            archive = read_archive(path, _check_archive, kind)
            settings, arrays = archive.settings, archive.arrays
            with refused(f"{path} does not hold the state of a {kind}"):
                model = cls(seed=settings["seed"])
            model._pool.refreshed = settings["refreshed"]
            _set_pool(model._pool, arrays)
            model._times = arrays["times"]
            require(model._times[1] >= 0.0 and model._times[2] >= 0.0, "times")
            model._users = Ids(distinct_keys(arrays["ids.users"], model._pool.users))
            model._items = Ids(distinct_keys(arrays["ids.items"], model._pool.items))
        return model, settings.get("face")

    def __repr__(self) -> str:
        return f"Recommender(users={self.n_users_}, items={self.n_items_}, events={self.n_events_})"


_REAL, _SHORT, _WHOLE = np.float64, np.float32, np.int64
#: Sums of weights stay below this.
LARGEST = 1e30
SETTINGS = {
    "seed": Field(int, least=0),
    "refreshed": Field(int, least=0),
    "face": Field(dict, optional=True, newer=True),
}
ARRAYS = {
    "clock": Field(_WHOLE, (2,), 0, below=1 << 62),
    "items": Field(_SHORT, (kernels.ITEM_ROWS, "items"), 0.0, LARGEST),
    "factors": Field(_SHORT, (kernels.RANK, "items"), -LARGEST, LARGEST),
    "popular": Field(_WHOLE, (None,), 0, below="items"),
    "weights": Field(_REAL, (kernels.BUCKETS, kernels.EXPERTS), 0.0, 1.0 + 1e-6),
    "rounds": Field(_WHOLE, (kernels.BUCKETS,), 0),
    "totals": Field(_REAL, (kernels.FIRST_PAIRS + len(kernels.MEMORIES),), 0.0, LARGEST),
    "lists.sizes": Field(_WHOLE, ("items",), 0, below=1 << kernels.LAST_LEVEL),
    "lists.levels": Field(_WHOLE, ("items",), -1, kernels.LAST_LEVEL),
    "neighbours": Field(np.int32, ("slots",), -1, below="items"),
    "counts": Field(_SHORT, ("slots", kernels.KINDS), 0.0, LARGEST),
    "users.sizes": Field(_WHOLE, ("users",), 0),
    "users.levels": Field(_WHOLE, ("users",), -1, 30),
    "seen": Field(np.int32, ("entries",)),
    "times": Field(_REAL, (3,)),
    "ids.users": Field(np.uint8, (None,)),
    "ids.items": Field(np.uint8, (None,)),
}


def _pool_state(pool: RankingPool) -> dict[str, NDArray[Any]]:
    """Return the arrays that make up a pool; lists follow each other without gaps."""
    ranks, users, items = pool.ranks, pool.users, pool.items
    lists, seen = ranks.lists[:items], ranks.users[:users]
    slots = _places(lists[:, kernels.START], _slots(lists[:, kernels.LEVEL]))
    return {
        "clock": ranks.clock,
        "items": ranks.items[:, :items],
        "factors": ranks.factors[:, :items],
        **{name: getattr(ranks, name) for name in ("popular", "weights", "rounds", "totals")},
        "lists.sizes": lists[:, kernels.SIZE],
        "lists.levels": lists[:, kernels.LEVEL],
        "neighbours": ranks.neighbours[slots],
        "counts": ranks.counts[slots],
        "users.sizes": seen[:, kernels.SIZE],
        "users.levels": seen[:, kernels.LEVEL],
        "seen": ranks.seen[_places(seen[:, kernels.START], seen[:, kernels.SIZE])],
    }


def _slots(levels: Indices) -> Indices:
    """Return how long lists of these levels are."""
    return np.where(levels < 0, 0, 1 << np.maximum(levels, 0))


def _places(starts: Indices, sizes: Indices) -> Indices:
    """Return the places of all entries of some lists."""
    ends = np.cumsum(sizes)
    return np.repeat(starts - ends + sizes, sizes) + np.arange(ends[-1] if ends.size else 0)


def _check_archive(archive: Archive) -> None:
    """Refuse a file whose settings or arrays, or types and shapes of these, do not fit."""
    check_fields(SETTINGS, archive.settings, archive.kind)
    check_fields(ARRAYS, archive.arrays, archive.kind)


def _set_pool(pool: RankingPool, arrays: Mapping[str, Any]) -> None:
    """Set the state of a new pool to what `_check_archive` has accepted, if it fits together."""
    tables, free, ends = {}, {}, {}
    for side, first in (("lists", kernels.FIRST_LEVEL), ("users", kernels.FIRST_SEEN_LEVEL)):
        sizes, levels = arrays[f"{side}.sizes"], arrays[f"{side}.levels"]
        slots = _slots(levels)
        require(((levels >= first) | ((levels == -1) & (sizes == 0))).all(), "lists")
        require((sizes <= slots).all() and slots.sum() < 1 << 31, "lists")
        ends[side] = np.cumsum(slots)
        tables[side] = np.stack([ends[side] - slots, sizes, levels], axis=1)
        free[side] = np.full(33, -1)
        free[side][-1] = slots.sum()
    lists, users = tables["lists"], tables["users"]
    slots, items = arrays["neighbours"], lists.shape[0]
    require(slots.size == free["lists"][-1], "neighbours")
    # A search ends at an empty slot.
    used = np.concatenate(([0], np.cumsum(slots >= 0)))
    held = used[ends["lists"]] - used[lists[:, kernels.START]]
    require(np.array_equal(held, lists[:, kernels.SIZE]), "neighbours")
    full = 4 * lists[:, kernels.SIZE] <= 3 * _slots(lists[:, kernels.LEVEL])
    require(full.all() and items == arrays["clock"][1], "neighbours")
    entries = arrays["seen"].astype(np.int64)
    seen = np.zeros(free["users"][-1], np.int32)
    require(entries.size == users[:, kernels.SIZE].sum(), "items seen")
    require((np.where(entries < 0, ~entries, entries) < items).all(), "items seen")
    seen[_places(users[:, kernels.START], users[:, kernels.SIZE])] = entries
    weights, values = arrays["weights"], arrays["items"]
    require((np.abs(weights.sum(axis=1) - 1.0) < 1e-6).all(), "weights of experts")
    scales = arrays["totals"][kernels.FIRST_PAIRS :]
    require((scales >= 1.0).all() and (values[kernels.SCALE] >= 1.0).all(), "scales")
    powers = slice(kernels.POWER, kernels.POWER + len(kernels.POWERS))
    require((values[powers] <= 1.0).all(), "powers")
    require(pool.refreshed <= arrays["clock"][0] < pool.due(), "times of refreshes")
    named = ("clock", "items", "factors", "popular", "weights", "rounds", "totals")
    pool.ranks = pool.ranks._replace(
        **{name: np.ascontiguousarray(arrays[name]) for name in named},
        lists=lists,
        neighbours=slots,
        counts=arrays["counts"],
        free=free["lists"],
        users=users,
        seen=seen,
        free_seen=free["users"],
    )
    pool.users = users.shape[0]

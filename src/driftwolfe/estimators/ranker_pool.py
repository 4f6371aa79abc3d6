"""The experts behind `Recommender`: their tables, which grow, and what is refreshed now and then."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from driftwolfe.domains.balls import threshold_falling
from driftwolfe.estimators import ranker_kernels as kernels
from driftwolfe.estimators.ranker_kernels import RANK, Ranks, Scratch
from driftwolfe.points.kinds import Array, Indices

#: Popular items that every search in a large catalogue looks at, of each kind of popularity.
POPULAR = 128
#: Radius of the low-rank expert's ball: a share of the trace norm of what is projected.
RADIUS = 0.5
#: It and the popular items are refreshed after so many events, or a share of all so far.
SHORTEST_BLOCK, BLOCK_SHARE = 1000, 1 / 5

_LOCAL = threading.local()


def scratch(items: int) -> Scratch:
    """Return this thread's room to work in, for at least so many items."""
    held: Scratch | None = getattr(_LOCAL, "scratch", None)
    if held is None or held.marks.size < items:
        room = max(2 * items, 1024)
        held = _LOCAL.scratch = Scratch(
            np.zeros((room + 1, kernels.KINDS), np.float32),
            np.zeros(room, np.int8),
            np.zeros(room + 1, np.int64),
            np.zeros((kernels.EXPERTS, room + 1), np.float32),
            np.zeros(room + 1, np.float32),
            np.zeros(kernels.EXPERTS),
            np.zeros(kernels.EXPERTS),
        )
    return held


def new_ranks() -> Ranks:
    """Return the tables of a pool that has learned nothing."""
    lists, whole = np.zeros((0, 3), np.int64), np.full(33, -1, np.int64)
    whole[-1] = 0
    experts, totals = kernels.EXPERTS, np.zeros(kernels.FIRST_PAIRS + len(kernels.MEMORIES))
    totals[kernels.FIRST_PAIRS :] = 1.0
    return Ranks(
        items=np.zeros((kernels.ITEM_ROWS, 0), np.float32),
        lists=lists,
        neighbours=np.zeros(0, np.int32),
        counts=np.zeros((0, kernels.KINDS), np.float32),
        free=whole,
        users=lists.copy(),
        seen=np.zeros(0, np.int32),
        free_seen=whole.copy(),
        factors=np.zeros((RANK, 0), np.float32),
        popular=np.zeros(0, np.int64),
        weights=np.full((kernels.BUCKETS, experts), 1.0 / experts),
        rounds=np.zeros(kernels.BUCKETS, np.int64),
        totals=totals,
        clock=np.zeros(2, np.int64),
    )


def _grown(table: Any, size: int, axis: int = 0) -> Any:
    """Return a table with room for `size` rows or columns: twice as many where there were too few."""
    room = table.shape[axis]
    if size <= room:
        return table
    more = np.zeros((2, 2), np.int64)[: table.ndim]
    more[axis, 1] = max(size, 2 * room, 16) - room
    return np.pad(table, more)


class RankingPool:
    """Experts that rank items, as docs/estimators.md describes; users and items are numbers."""

    def __init__(self, seed: int) -> None:
        self.seed, self.users, self.refreshed = seed, 0, 0
        self.ranks = new_ranks()

    @property
    def t(self) -> int:
        return int(self.ranks.clock[0])

    @property
    def items(self) -> int:
        return int(self.ranks.clock[1])

    def due(self) -> int:
        """When the low-rank expert is refreshed next."""
        return self.refreshed + max(SHORTEST_BLOCK, int(BLOCK_SHARE * self.refreshed))

    def learn(
        self, users: Indices, items: Indices, weights: Array, elapsed: Array, ranked: bool
    ) -> Indices:
        """Learn events one by one; return the rank that each item had just before, if asked."""
        found, room = np.empty(users.size, np.int64), scratch(len(self.ranks.lists))
        columns: tuple[Any, ...] = (users, items, weights, elapsed, found)
        while columns[0].size:
            left = self.due() - self.t
            *events, ranks = (column[:left] for column in columns)
            learned = kernels.learn(*events, ranked, self.ranks, room, ranks)
            if learned < ranks.size:
                self._extend()
            elif learned == left:
                self._refresh()
            columns = tuple(column[learned:] for column in columns)
        return found

    def learn_single(self, user: int, item: int, weight: float) -> None:
        """Learn one event of a known user and item."""
        while not kernels.learn_single(
            user, item, weight, self.ranks, scratch(len(self.ranks.lists))
        ):
            self._extend()
        if self.t == self.due():
            self._refresh()

    def recommend(self, users: Indices, n: int) -> tuple[Indices, Array]:
        """Return the best items of each user and their probabilities; -1 where there are no more."""
        best, chances = np.empty((users.size, n), np.int64), np.empty((users.size, n))
        room = scratch(self.items)
        kernels.recommend(users, n, False, self.ranks, room, best, chances)
        if n and self.items > kernels.SMALL_CATALOGUE:
            short = np.flatnonzero(best[:, -1] < 0)  # neighbours and popular items were not enough
            if short.size:
                more = np.empty((short.size, n), np.int64), np.empty((short.size, n))
                kernels.recommend(users[short], n, True, self.ranks, room, *more)
                best[short], chances[short] = more
        return best, chances

    def predict(self, users: Indices, items: Indices) -> tuple[Array, Array]:
        """Return the probability of each pair, and that of each expert; -1 is a new user or item."""
        chances = np.empty((users.size, kernels.EXPERTS))
        kernels.predict(users, items, self.ranks, scratch(self.items), chances)
        sizes = np.append(self.ranks.users[: self.users, kernels.SIZE], 0)[users]
        buckets = np.minimum(np.frexp(sizes)[1], kernels.BUCKETS - 1)
        return (chances * self.ranks.weights[buckets]).sum(axis=1), chances

    def seen_by(self, user: int) -> Indices:
        """Return the items that a user has seen, the latest last."""
        start, size, _ = self.ranks.users[user]
        entries = self.ranks.seen[start : start + size].astype(np.int64)
        return np.where(entries < 0, ~entries, entries)

    def forget(self, user: int) -> None:
        """Empty a user's list, and give its row to the last user."""
        ranks, last = self.ranks, self.users - 1
        start, size, level = ranks.users[user].tolist()
        if level >= 0:
            ranks.seen[start : start + size] = 0
            kernels.release.py_func(ranks.free_seen, ranks.seen, start, level)
        ranks.users[user] = ranks.users[last]
        ranks.users[last] = 0, 0, -1
        self.users = last

    def grow(self, users: int, items: int) -> None:
        """Make room for users and items up to these numbers."""
        ranks = self.ranks
        self.ranks = ranks._replace(
            items=_grown(ranks.items, items, 1),
            lists=_grown(ranks.lists, items),
            factors=_grown(ranks.factors, items, 1),
            users=_grown(ranks.users, users),
        )
        new = slice(self.users, users)
        self.ranks.users[new] = 0, 0, -1
        self.users = max(self.users, users)

    def _extend(self) -> None:
        """Make room for longer lists."""
        ranks = self.ranks
        room = int(ranks.free[-1]) + ((kernels.WINDOW + 1) << kernels.LAST_LEVEL)
        longest = max(0, int(ranks.users[: self.users, kernels.LEVEL].max(initial=0)))
        seen = int(ranks.free_seen[-1]) + (2 << max(longest, kernels.FIRST_SEEN_LEVEL))
        self.ranks = ranks._replace(
            neighbours=_grown(ranks.neighbours, room),
            counts=_grown(ranks.counts, room),
            seen=_grown(ranks.seen, seen),
        )

    def _refresh(self) -> None:
        """Find the popular items, and move the low-rank expert to the projection of the pairs."""
        ranks, number = self.ranks, self.items
        rows = ranks.items[[kernels.EVENTS, *range(kernels.DECAYING, kernels.ITEM_ROWS)], :number]
        leading = np.argsort(-rows, axis=1, kind="stable")[:, :POPULAR]
        self.ranks = ranks = ranks._replace(popular=np.unique(leading))
        self._project(number)
        self.refreshed = self.t

    def _project(self, number: int) -> None:
        """One step of block iteration, and the projection of its Ritz values to a trace-norm ball."""
        vectors = np.random.default_rng(self.seed).normal(size=(number, RANK))
        old = self.ranks.factors[:, :number].T.astype(np.float64)
        vectors = np.linalg.qr(old + 1e-3 * np.abs(old).max(initial=1e-3) * vectors)[0]
        if number < RANK:
            return
        for _ in range(2 if old.any() else 8):
            product = np.empty((number, RANK), np.float32)
            kernels.multiply(self.ranks, vectors.astype(np.float32), product)
            basis, vectors = vectors, np.linalg.qr(product.astype(np.float64))[0]
        within = basis.T @ product
        values, turned = np.linalg.eigh(0.5 * (within + within.T))
        values, turned = np.maximum(values[::-1], 0.0), turned[:, ::-1]
        spread = threshold_falling(values, RADIUS * values.sum())
        kept = basis @ turned[:, : spread.size] * np.sqrt(spread)
        self.ranks.factors[:, :number] = 0.0
        self.ranks.factors[: spread.size, :number] = kept.T

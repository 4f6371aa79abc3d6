"""The experts behind `Recommender`: their tables, which grow, and the most popular items."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from driftwolfe.estimators import ranker_kernels as kernels
from driftwolfe.estimators.ranker_kernels import EXPERTS, Scratch
from driftwolfe.points.kinds import Array, Indices

#: Popular items are found anew after so many events, or a share of all so far.
SHORTEST_BLOCK, BLOCK_SHARE = 1000, 1 / 5

_LOCAL = threading.local()


def scratch(items: int) -> Scratch:
    """Return this thread's room to work in, for at least so many items."""
    held: Scratch | None = getattr(_LOCAL, "scratch", None)
    if held is None or len(held.sums) <= items:
        held = _LOCAL.scratch = kernels.new_scratch(max(2 * items, 1024))
    return held


def _grown(table: Any, size: int) -> Any:
    """Return a table with room for `size` rows: twice as many where there were too few."""
    if size <= len(table):
        return table
    more = np.zeros((max(size, 2 * len(table), 16) - len(table), *table.shape[1:]), table.dtype)
    return np.concatenate([table, more])


class RankingPool:
    """Experts that rank items (docs/estimators/recommender.md); users and items are numbers."""

    def __init__(self) -> None:
        self.users, self.refreshed = 0, 0
        self.ranks = kernels.new_ranks()

    @property
    def t(self) -> int:
        return int(self.ranks.clock[0])

    @property
    def items(self) -> int:
        return int(self.ranks.clock[1]) - 1

    def due(self) -> int:
        """When the popular items are found next."""
        return self.refreshed + max(SHORTEST_BLOCK, int(BLOCK_SHARE * self.refreshed))

    def learn(
        self, users: Indices, items: Indices, weights: Array, elapsed: Array, ranked: bool
    ) -> Indices:
        """Learn events one by one; return the rank that each item had just before, if asked."""
        found, room = np.empty(users.size, np.int64), scratch(len(self.ranks.lists))
        columns: tuple[Any, ...] = (users + 1, items + 1, weights, elapsed, found)
        while columns[0].size:
            *events, ranks = (column[: self.due() - self.t] for column in columns)
            learned = kernels.learn(*events, ranked, self.ranks, room, ranks)
            if learned < ranks.size:
                self._extend(int(events[0][learned]))
            self._refresh()
            columns = tuple(column[learned:] for column in columns)
        return found

    def learn_single(self, user: int, item: int, weight: float) -> None:
        """Learn one event of a known user and item."""
        room = scratch(len(self.ranks.lists))
        while not kernels.learn_single(user + 1, item + 1, weight, self.ranks, room):
            self._extend(user + 1)
        self._refresh()

    def recommend(self, users: Indices, n: int) -> tuple[Indices, Array]:
        """Return the best items of each user and their probabilities; -1 where there are no more."""
        best, chances = np.empty((users.size, n), np.int64), np.empty((users.size, n))
        kernels.recommend(users + 1, n, self.ranks, scratch(self.items), best, chances)
        return best - 1, chances

    def predict(self, users: Indices, items: Indices) -> tuple[Array, Array]:
        """Return the probability of each pair, and that of each expert; -1 is a new user or item."""
        chances = np.empty((users.size, EXPERTS))
        kernels.predict(users + 1, items + 1, self.ranks, scratch(self.items), chances)
        sizes = self.ranks.users[users + 1, kernels.SIZE]
        buckets = np.minimum(np.frexp(sizes)[1], kernels.BUCKETS - 1)
        return (chances * self.ranks.weights[buckets]).sum(axis=1), chances

    def seen_by(self, user: int) -> Indices:
        """Return the items that a user has seen, the latest last."""
        start, size, _ = self.ranks.users[user + 1]
        return (self.ranks.seen[start : start + size] >> 1) - 1

    def forget(self, user: int) -> None:
        """Empty a user's list, and give its row to the last user."""
        ranks = self.ranks
        start, size, level = ranks.users[user + 1].tolist()
        if level:
            ranks.seen[start : start + size] = 0
            kernels.release.py_func(ranks.free[kernels.OF_USERS], ranks.seen, start, level)
        ranks.users[user + 1] = ranks.users[self.users]
        ranks.users[self.users] = 0
        self.users -= 1

    def grow(self, users: int, items: int) -> None:
        """Make room for users and items up to these numbers."""
        ranks = self.ranks
        self.ranks = ranks._replace(
            items=_grown(ranks.items, items + 1),
            lists=_grown(ranks.lists, items + 1),
            users=_grown(ranks.users, users + 1),
        )
        self.users = max(self.users, users)

    def _extend(self, user: int) -> None:
        """Make room for longer lists of neighbours, and of what a user has seen."""
        ranks, (of_items, of_users) = self.ranks, self.ranks.free[:, -1].tolist()
        room = of_items + ((kernels.WINDOW + 2) << kernels.LAST_LEVEL)
        seen = of_users + 4 * (int(ranks.users[user, kernels.SIZE]) + 1)
        self.ranks = ranks._replace(
            neighbours=_grown(ranks.neighbours, room),
            counts=_grown(ranks.counts, room),
            seen=_grown(ranks.seen, seen),
        )

    def _refresh(self) -> None:
        """Find the popular items, if that is due."""
        if self.t < self.due():
            return
        ranks, self.refreshed = self.ranks, self.t
        if self.items > 2 * kernels.POPULAR:  # else all are popular
            kinds = ranks.items[1 : self.items + 1, [kernels.EVENTS, kernels.DECAYING]]
            leading = np.argsort(-kinds, axis=0, kind="stable")[: kernels.POPULAR]
            self.ranks = ranks._replace(popular=np.unique(leading) + 1)

"""The tables of `Recommender`: those that its experts grow, those of files, and plain ones to export."""

from __future__ import annotations

import threading
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from driftwolfe.points.kinds import Array, Indices, compiled
from driftwolfe.state import ROUNDING, Field, Part
from driftwolfe.storage import require

__all__ = ["RankingTables"]

kernels = compiled("driftwolfe.estimators.recommender_kernels")

#: Sums of weights stay below this.
LARGEST = 1e30
_REAL, _WHOLE = np.float64, np.int64
#: Popular items are found anew after so many events, or a fraction of all so far.
SHORTEST_BLOCK, BLOCK_FRACTION = 1000, 1 / 5
_LOCAL, _NONE = threading.local(), np.zeros(0)
#: The column of counts that far, near and any pairs have.
OF_KIND = [0, 1, 0]


class RankingTables(NamedTuple):
    """All that the scores of a `Recommender` follow from, as arrays; items are numbers.

    Attributes
    ----------
    popularity
        Events of each item + 1, and the fading sums of events: a row for each kind, a column for each item.
    powers
        What sums of far, of near and of any pairs are multiplied by, powers of the events; rows as above.
    starts, neighbours, pairs
        Item i has neighbours from starts[i] to starts[i + 1]; `pairs` has their far and near counts,
        over the root of the events of i, in two columns.
    fading
        What the latest liked item counts, the one before, and so on: a row for far, near and any pairs.
    smoothing
        Fraction of popularity in the other experts.
    weights
        Of the experts: a row for users who have seen 0, 1, 2-3, 4-7, ..., 64 or more items.
    seen_starts, seen
        User u has seen the items from seen_starts[u] to seen_starts[u + 1], the latest last; -1 - i
        stands for an item i that was only seen.

    Examples
    --------
    >>> from driftwolfe.estimators import Recommender
    >>> model = Recommender().partial_fit([("ann", "tea"), ("ann", "jam"), ("bob", "tea")])
    >>> tables = model.tables()
    >>> tables.scores(tables.seen_by(1)).round(6)  # of tea and jam for bob
    array([0., 1.])
    """

    popularity: Array
    powers: Array
    starts: Indices
    neighbours: Indices
    pairs: Array
    fading: Array
    smoothing: Array
    weights: Array
    seen_starts: Indices
    seen: Indices

    def seen_by(self, user: int) -> Indices:
        """Return what a user has seen."""
        return self.seen[self.seen_starts[user] : self.seen_starts[user + 1]]

    def scores(self, seen: Any) -> Array:
        """Return the score of every item for somebody who has seen these; 0 for those.

        As `Recommender.recommend` with `return_scores`, up to rounding, in plain NumPy.
        """
        seen = np.asarray(seen, dtype=np.int64)
        recent = seen[-4 * kernels().WINDOW :]
        latest = recent[recent >= 0][: -1 - self.fading.shape[1] : -1]
        sums = np.zeros(self.powers.shape)
        for item, part in zip(latest.tolist(), self.fading.T, strict=False):
            held = slice(self.starts[item], self.starts[item + 1])
            sums[:, self.neighbours[held]] += part[:, None] * self.pairs[held].T[OF_KIND]
        table = np.concatenate([self.popularity, (self.powers * sums) ** 2])
        table[:, np.where(seen < 0, -1 - seen, seen)] = 0.0
        totals = table.sum(axis=1, keepdims=True)
        table /= np.where(totals > 0.0, totals, 1.0)
        table = np.where(totals > 0.0, table, table[0])  # without an opinion: popularity
        table += self.smoothing * (table[0] - table)
        return self.weights[min(seen.size.bit_length(), len(self.weights) - 1)] @ table


class PackedRanks(NamedTuple):
    """What a `Recommender` has learned, as files hold it: of lists, the sizes and all entries in turn."""

    clock: Annotated[Indices, Field(_WHOLE, (2,), 0, below=1 << 62)]
    items: Annotated[Array, Field(_REAL, ("items", 5), 0.0, LARGEST)]
    popular: Annotated[Indices, Field(_WHOLE, (None,), 1, below=1 << 31)]
    weights: Annotated[Array, Field(_REAL, ("buckets", "experts"), 0.0, 1.0 + ROUNDING, sums=True)]
    rounds: Annotated[Indices, Field(_WHOLE, ("buckets",), 0)]
    totals: Annotated[Array, Field(_REAL, (3,), 0.0, LARGEST)]
    lists: Annotated[Indices, Field(_WHOLE, ("items",), 0)]
    neighbours: Annotated[Indices, Field(np.int32, ("pairs",), 0, below="items")]
    counts: Annotated[NDArray[np.float32], Field(np.float32, ("pairs", 2), 0.0, LARGEST)]
    users: Annotated[Indices, Field(_WHOLE, ("users",), 0, below=1 << 31)]
    seen: Annotated[Indices, Field(np.int32, ("entries",), 0, below=1 << 30)]


def fading() -> Array:
    """Return what a user's latest items count, the last first: a row for far, near and any pairs."""
    loops = kernels()
    table = np.zeros((3, loops.LONG_LOOK_BACK))
    table[:2, : loops.LOOK_BACK], table[2] = loops.NEAR_WEIGHTS[: loops.LOOK_BACK], 1.0
    return table


def scratch(items: int) -> Any:
    """Return this thread's room to work in, for at least so many items."""
    held = getattr(_LOCAL, "scratch", None)
    if held is None or len(held.sums) <= items:
        held = _LOCAL.scratch = kernels().new_scratch(max(2 * items, 1024))
    return held


def one_event() -> tuple[Any, ...]:
    """Return this thread's room for one event: user, item, weight, time, rank, loss and chances."""
    held: tuple[Any, ...] | None = getattr(_LOCAL, "event", None)
    if held is None:
        places, numbers = np.zeros((2, 1), np.int64), np.zeros((3, 1))
        rank, chances = np.zeros((1, 1), np.int64), np.zeros((1, kernels().EXPERTS))
        held = *places, *numbers[:2], rank, numbers[2], chances
        _LOCAL.event = held
    return held


def _grown(table: Any, size: int) -> Any:
    """Return a table with room for `size` rows: twice as many where there were too few."""
    if size <= len(table):
        return table
    more = np.zeros((max(size, 2 * len(table), 16) - len(table), *table.shape[1:]), table.dtype)
    return np.concatenate([table, more])


#: Arrays that are packed as they are.
_SAME = ("clock", "popular", "weights", "rounds", "totals")


def _places(starts: Indices, sizes: Indices) -> Indices:
    """Return the places of all entries of some lists."""
    ends = np.cumsum(sizes)
    return np.repeat(starts - ends + sizes, sizes) + np.arange(ends[-1] if ends.size else 0)


def _unpacked(sizes: Indices, *columns: NDArray[Any]) -> list[NDArray[Any]]:
    """Return the table of lists of some sizes, after an empty one, and columns with room to grow."""
    require(columns[0].shape[0] == sizes.sum() < 1 << 31, "lists")
    levels = np.maximum(np.frexp(np.maximum(sizes - 1, 0))[1], kernels().FIRST_LEVEL) * (sizes > 0)
    slots = np.where(sizes > 0, 1 << levels, 0)
    starts = np.cumsum(slots) - slots
    table = np.zeros((sizes.size + 1, 3), np.int64)
    table[1:] = np.stack([starts, sizes, levels], axis=1)
    spread = [np.zeros((slots.sum(), *column.shape[1:]), column.dtype) for column in columns]
    for room, column in zip(spread, columns, strict=True):
        room[_places(starts, sizes)] = column
    return [table, *spread]


class RecommenderPool(Part):
    """Experts that rank items (docs/estimators/recommender.md); users and items are numbers."""

    refreshed: Annotated[int, Field(int, least=0)]  # when the popular items were found last
    learned: PackedRanks  # `ranks`, packed

    def __init__(self) -> None:
        self.users, self.refreshed = 0, 0
        self.ranks: Any = kernels().new_ranks()

    def __getstate__(self) -> dict[str, Any]:
        return {"refreshed": self.refreshed, "learned": self.packed()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__()  # type: ignore[misc]
        self.refreshed, packed = state["refreshed"], state["learned"]
        lists, neighbours, counts = _unpacked(packed.lists, packed.neighbours + 1, packed.counts)
        users, seen = _unpacked(packed.users, packed.seen + 2)
        self.ranks.free[:, -1] = len(neighbours), len(seen)
        self.users = len(users) - 1
        self.ranks = self.ranks._replace(
            **{name: np.array(getattr(packed, name)) for name in _SAME},
            items=np.concatenate([np.zeros((1, 5)), packed.items]),
            lists=lists,
            neighbours=neighbours,
            counts=counts,
            users=users,
            seen=seen,
        )

    def __deepcopy__(self, memo: Any) -> Self:
        """Copy tables as they are, less the room to grow: to pack them takes far longer."""
        neighbours, seen = self.ranks.free[:, -1].tolist()
        used = {"items": self.items + 1, "lists": self.items + 1, "users": self.users + 1}
        used |= {"neighbours": neighbours, "counts": neighbours, "seen": seen}
        tables = self.ranks._asdict().items()
        copied = type(self).__new__(type(self))
        copied.users, copied.refreshed = self.users, self.refreshed
        copied.ranks = self.ranks._make(table[: used.get(name)].copy() for name, table in tables)
        return copied

    def check(self) -> None:
        loops, ranks = kernels(), self.ranks
        require(len(ranks.items) - 1 == self.items, "items")
        require(((ranks.seen >> 1) - 1 < self.items).all(), "items seen")
        require(ranks.weights.shape == (loops.BUCKETS, loops.EXPERTS), "weights of experts")
        require((ranks.lists[:, loops.SIZE] <= loops.MOST_NEIGHBOURS).all(), "neighbours")
        scales = ranks.totals[-1] >= 1.0 and (ranks.items[1:, loops.SCALE] >= 1.0).all()
        require(scales, "scales")
        require((ranks.items[:, loops.NEAR_FACTOR :] <= 1.0).all(), "powers of events")
        require(self.refreshed <= self.t < self.due(), "time of the popular items")

    def packed(self) -> PackedRanks:
        """Return what was learned, without room to grow."""
        ranks, start, size = self.ranks, kernels().START, kernels().SIZE
        lists, users = ranks.lists[1 : self.items + 1], ranks.users[1 : self.users + 1]
        pairs = _places(lists[:, start], lists[:, size])
        return PackedRanks(
            **{name: getattr(ranks, name) for name in _SAME},
            items=ranks.items[1 : self.items + 1],
            lists=lists[:, size],
            neighbours=ranks.neighbours[pairs] - 1,
            counts=ranks.counts[pairs],
            users=users[:, size],
            seen=ranks.seen[_places(users[:, start], users[:, size])] - 2,
        )

    def exported(self) -> RankingTables:
        """Return the tables that scores follow from."""
        state = self.packed()
        events, decaying, scales, near, far = state.items.T
        fresh = np.sqrt(np.minimum(events, kernels().FRESH) + 3.0) * scales
        norms = np.stack([np.sqrt(events + 3.0), fresh], axis=1)
        items = state.seen.astype(np.int64) >> 1
        return RankingTables(
            popularity=np.stack([events + 1.0, decaying]),
            powers=np.stack([far, near, near]),
            starts=np.append(0, np.cumsum(state.lists)),
            neighbours=state.neighbours.astype(np.int64),
            pairs=state.counts / np.repeat(norms, state.lists, axis=0),
            fading=fading(),
            smoothing=np.array(kernels().SMOOTHING),
            weights=state.weights.copy(),
            seen_starts=np.append(0, np.cumsum(state.users)),
            seen=np.where(state.seen & 1, items, -1 - items),
        )

    @property
    def t(self) -> int:
        return int(self.ranks.clock[0])

    @property
    def items(self) -> int:
        return int(self.ranks.clock[1]) - 1

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of users and of items."""
        return self.users, self.items

    def due(self) -> int:
        """When the popular items are found next."""
        return self.refreshed + max(SHORTEST_BLOCK, int(BLOCK_FRACTION * self.refreshed))

    def learn(
        self, users: Indices, items: Indices, weights: Array, elapsed: Array, ranked: bool
    ) -> tuple[Indices, Array]:
        """Learn events one by one; return the rank that each item had just before, if asked, and the losses."""
        found, room = np.full((users.size, 1), -1, np.int64), scratch(len(self.ranks.lists))
        losses = np.zeros(users.size)
        task, chances = kernels().RANK if ranked else kernels().LEARN, one_event()[-1]
        columns: tuple[Any, ...] = (users + 1, items + 1, weights, elapsed, found, losses)
        while columns[0].size:
            events = tuple(column[: self.due() - self.t] for column in columns)
            learned = kernels().run.unchecked(task, (*events, chances), self.ranks, room)
            if learned < events[0].size:
                self._extend(int(events[0][learned]))
            self.refresh()
            columns = tuple(column[learned:] for column in columns)
        return found[:, 0], losses

    def learn_single(self, user: int, item: int, weight: float) -> float:
        """Learn one event of a known user and item; return the loss, infinite if there is none."""
        event, room, loops = one_event(), scratch(len(self.ranks.lists)), kernels()
        event[0][0], event[1][0] = user + 1, item + 1
        event[2][0], event[3][0] = weight, weight > 0.0
        while not loops.run.unchecked(loops.LEARN, event, self.ranks, room):
            self._extend(user + 1)
        self.refresh()
        return event[-2].item()

    def recommend(self, users: Indices, n: int) -> tuple[Indices, Array]:
        """Return the best items of each user and their probabilities; -1 where there are no more."""
        best, chances = np.zeros((users.size, n), np.int64), np.zeros((users.size, n))
        rows = users + 1, np.zeros_like(users), _NONE, _NONE, best, _NONE, chances
        kernels().run.unchecked(kernels().RECOMMEND, rows, self.ranks, scratch(self.items))
        return best - 1, chances

    def predict(self, users: Indices, items: Indices) -> tuple[Array, Array]:
        """Return the probability of each pair, and that of each expert; -1 is a new user or item."""
        loops, chances = kernels(), np.zeros((users.size, kernels().EXPERTS))
        rows = users + 1, items + 1, _NONE, _NONE, np.zeros((0, 0), np.int64), _NONE, chances
        loops.run.unchecked(loops.PREDICT, rows, self.ranks, scratch(self.items))
        sizes = self.ranks.users[users + 1, loops.SIZE]
        buckets = np.minimum(np.frexp(sizes)[1], loops.BUCKETS - 1)
        return (chances * self.ranks.weights[buckets]).sum(axis=1), chances

    def similar(self, item: int) -> tuple[list[int], Array]:
        """Return the neighbours of an item, and far pairs over the roots of both numbers of events, most first."""
        start, size, _ = self.ranks.lists[item + 1].tolist()
        found, counts = self.ranks.neighbours[start : start + size], self.ranks.counts
        events = self.ranks.items[:, kernels().EVENTS]
        scores = counts[start : start + size, 0] / np.sqrt(events[found] * events[item + 1])
        order = np.argsort(-scores, kind="stable")
        return (found[order] - 1).tolist(), scores[order]

    def explain(self, user: int, item: int) -> tuple[Array, Indices, Array]:
        """Return what each expert adds to a score, and for the user's latest items what pairs with them add."""
        ranks, loops = self.ranks, kernels()
        (score,), (chances,) = self.predict(np.array([user]), np.array([item]))
        start, size, _ = ranks.users[user + 1].tolist()
        recent = ranks.seen[max(start, start + size - 4 * loops.WINDOW) : start + size]
        latest = recent[recent & 1 > 0][: -1 - loops.LONG_LOOK_BACK : -1] >> 1
        pairs = np.zeros((3, latest.size))
        for place, other in enumerate(latest.tolist()):
            first, number, _ = ranks.lists[other].tolist()
            at = np.flatnonzero(ranks.neighbours[first : first + number] == item + 1)
            events, scale = ranks.items[other, [loops.EVENTS, loops.SCALE]].tolist()
            roots = np.sqrt([events + 3.0, min(events, loops.FRESH) + 3.0])
            far_and_near = (ranks.counts[first + at] / (roots * [1.0, scale])).sum(axis=0)
            pairs[:, place] = far_and_near[OF_KIND]
        pairs *= fading()[:, : latest.size]
        bucket = min(size.bit_length(), loops.BUCKETS - 1)
        weights, sums = ranks.weights[bucket], pairs.sum(axis=1)
        parts = weights * (chances - loops.SMOOTHING * chances[loops.POPULARITY])
        parts[loops.FAR_PAIRS :][sums == 0.0] = 0.0  # without an opinion: popularity
        parts[loops.POPULARITY] = score - parts[1:].sum()
        of_items = parts[loops.FAR_PAIRS :] @ (pairs / np.where(sums > 0.0, sums, 1.0)[:, None])
        return parts, latest.astype(np.int64) - 1, of_items

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
            free = ranks.free[kernels().OF_USERS]
            ranks.seen[start], free[level] = free[level], start
        ranks.users[user + 1] = ranks.users[self.users]
        ranks.users[self.users] = 0
        self.users -= 1

    def grow(self, users: int, items: int) -> None:
        """Make room for users and items up to these numbers."""
        ranks, table = self.ranks, _grown(self.ranks.items, items + 1)
        table[len(ranks.items) :, kernels().SCALE :] = 1.0
        self.ranks = ranks._replace(
            items=table, lists=_grown(ranks.lists, items + 1), users=_grown(ranks.users, users + 1)
        )
        self.users = max(self.users, users)

    def _extend(self, user: int) -> None:
        """Make room for longer lists of neighbours, and of what a user has seen."""
        ranks, (of_items, of_users) = self.ranks, self.ranks.free[:, -1].tolist()
        room = of_items + ((kernels().WINDOW + 2) << kernels().LAST_LEVEL)
        seen = of_users + 4 * (int(ranks.users[user, kernels().SIZE]) + 1)
        self.ranks = ranks._replace(
            neighbours=_grown(ranks.neighbours, room),
            counts=_grown(ranks.counts, room),
            seen=_grown(ranks.seen, seen),
        )

    def refresh(self) -> None:
        """Find the popular items, if that is due."""
        if self.t < self.due():
            return
        ranks, t = self.ranks, self.t
        if self.items > 2 * kernels().POPULAR:  # else all are popular
            kinds = ranks.items[1 : self.items + 1, [kernels().EVENTS, kernels().DECAYING]]
            leading = np.argsort(-kinds, axis=0, kind="stable")[: kernels().POPULAR]
            ranks = ranks._replace(popular=np.unique(leading) + 1)
        self.ranks, self.refreshed = ranks, t  # together, for an interrupt

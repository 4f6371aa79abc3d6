"""`Recommender` as plain arrays: all that scores need, and how they follow from it."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftwolfe.points.kinds import Array, Indices, compiled
from driftwolfe.state import ROUNDING, Field

__all__ = ["RankingTables"]

kernels = compiled("driftwolfe.estimators.recommender_kernels")

#: Sums of weights stay below this.
LARGEST = 1e30
_REAL, _WHOLE = np.float64, np.int64


class RankingTables(NamedTuple):
    """All that the scores of a `Recommender` follow from, as arrays; items are numbers.

    Attributes
    ----------
    popularity
        Events of each item + 1, and the fading sums of events: a row for each kind, a column for each
        item.
    powers
        What sums of far and of near pairs are multiplied by, powers of the events; rows as above.
    starts, neighbours, pairs
        Item i has neighbours from starts[i] to starts[i + 1]; `pairs` has their far and near counts,
        over the root of the events of i, in two columns.
    fading
        What the latest liked item counts, the one before, and so on: ten numbers.
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
        latest = recent[recent >= 0][: -1 - len(self.fading) : -1]
        sums = np.zeros(self.powers.shape[::-1])
        for item, part in zip(latest.tolist(), self.fading.tolist(), strict=False):
            held = slice(self.starts[item], self.starts[item + 1])
            sums[self.neighbours[held]] += part * self.pairs[held]
        table = np.concatenate([self.popularity, (self.powers * sums.T) ** 2])
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


def ranking_tables(state: PackedRanks) -> RankingTables:
    """Return the tables that follow from the arrays of a `Recommender`."""
    events, decaying, scales, near, far = state.items.T
    fresh = np.sqrt(np.minimum(events, kernels().FRESH) + 3.0) * scales
    norms = np.stack([np.sqrt(events + 3.0), fresh], axis=1)
    items = state.seen.astype(np.int64) >> 1
    return RankingTables(
        popularity=np.stack([events + 1.0, decaying]),
        powers=np.stack([far, near]),
        starts=np.append(0, np.cumsum(state.lists)),
        neighbours=state.neighbours.astype(np.int64),
        pairs=state.counts / np.repeat(norms, state.lists, axis=0),
        fading=kernels().NEAR_WEIGHTS[: kernels().LOOK_BACK].copy(),
        smoothing=np.array(kernels().SMOOTHING),
        weights=state.weights.copy(),
        seen_starts=np.append(0, np.cumsum(state.users)),
        seen=np.where(state.seen & 1, items, -1 - items),
    )

"""What the experts of `MatrixCompleter` keep: rows that grow, rated pairs, and steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.estimators.recommender_kernels import Side, by_row
from driftwolfe.points.kinds import Array, Indices

_TABLE, _PLACES = np.zeros((0, 0)), np.zeros(0, np.int64)
_EMPTY = Side(_TABLE, _TABLE, _TABLE, np.zeros(0), _PLACES, _PLACES)


@dataclass(eq=False)
class GrowingSide:
    """A `Side` whose first `size` rows are in use; room doubles, so a new row costs constant time."""

    size: int = 0
    side: Side = _EMPTY

    def grow(self, size: int, metric: float) -> None:
        """Make room for `size` rows; new ones are zero and have this weight."""
        room = self.side.counts.size
        if size > room:
            more = max(size, 2 * room, 16) - room
            *tables, weights, touched, counts = self.side
            touched = np.pad(touched, (0, more), constant_values=-1)
            columns = np.pad(weights, (0, more)), touched, np.pad(counts, (0, more))
            self.side = Side._make((*(_pad(table, more, 0) for table in tables), *columns))
        self.side.metric[self.size : size] = metric
        self.size = max(self.size, size)

    def widen(self, experts: int, factors: int) -> None:
        """Add columns of zeros, up to these numbers of experts and factors."""
        *tables, weights, touched, counts = self.side
        widths = experts, experts, factors
        pairs = zip(tables, widths, strict=True)
        wider = (_pad(table, 0, width - table.shape[1]) for table, width in pairs)
        self.side = Side._make((*wider, weights, touched, counts))

    def metrics(self, weighting: float) -> Array:
        r"""Weights of the rows in use: :math:`((n/\bar n + 1)/2)^{w/2}`, n the number of ratings.

        The 1 keeps the weights of rare rows away from 0.
        """
        counts = self.side.counts[: self.size]
        weights: Array = ((counts / counts.mean() + 1.0) / 2.0) ** (weighting / 2.0)
        return weights


def _pad(table: Array, rows: int, columns: int) -> Array:
    padded = np.zeros((table.shape[0] + rows, table.shape[1] + columns))
    padded[: table.shape[0], : table.shape[1]] = table
    return padded


#: Bits of an item's number in a pair: users and items are fewer than 2^31.
ITEM_BITS = 32
LAST_ITEM = (1 << ITEM_BITS) - 1


@dataclass(eq=False)
class SeenPairs:
    """A growing set of (user, item) pairs of numbers: 8 bytes for each.

    Pairs are whole numbers, sorted by user and then by item, in runs of falling length. A new run is
    merged with the one before it unless that is more than twice as long, so n pairs cost O(n log n) in
    all. A pair may be in several runs; together they are less than twice as long as the longest.

    >>> seen = SeenPairs()
    >>> seen.add(np.array([1, 0, 1]), np.array([5, 5, 2]))
    >>> seen.add(np.array([1, 1]), np.array([3, 2]))
    >>> seen.items_of(1), seen.pairs().size
    (array([2, 3, 5]), 4)
    """

    runs: tuple[Indices, ...] = ()

    def add(self, rows: Indices, cols: Indices) -> None:
        """Add pairs."""
        runs = [*self.runs, np.unique(rows << ITEM_BITS | cols)]
        while len(runs) > 1 and runs[-2].size <= 2 * runs[-1].size:
            runs[-2:] = [_merged(runs[-2:])]
        self.runs = tuple(runs)

    def items_of(self, row: int) -> Indices:
        """Return the items of a user, sorted."""
        first = row << ITEM_BITS
        ends = np.array([first, first + LAST_ITEM])
        parts = [run[slice(*run.searchsorted(ends))] for run in self.runs]
        return _merged(parts) & LAST_ITEM

    def pairs(self) -> Indices:
        """Return all pairs as whole numbers, sorted and distinct."""
        return _merged(list(self.runs))


def _merged(runs: list[Indices]) -> Indices:
    """Return the union of sorted runs, sorted."""
    joined = np.concatenate([np.zeros(0, np.int64), *runs])
    joined.sort(kind="stable")  # in one pass, as runs are sorted
    return joined[np.flatnonzero(np.diff(joined, prepend=-1))]


@dataclass(eq=False)
class RecentSteps:
    """Users and items of the latest ratings, and the steps that each low-rank expert took there."""

    size: int = 0  # entries in use
    first: int = 0  # number of the rating that the first entry belongs to
    rows: Indices = field(default_factory=lambda: np.zeros(0, np.int64))
    cols: Indices = field(default_factory=lambda: np.zeros(0, np.int64))
    steps: Array = field(default_factory=lambda: np.zeros((0, 0)))  # a column for each expert

    def widen(self, experts: int) -> None:
        """Add columns of zeros."""
        self.steps = np.pad(self.steps, ((0, 0), (0, experts - self.steps.shape[1])))

    def append(self, rows: Indices, cols: Indices) -> Array:
        """Add entries, and return the table for their steps, to be filled."""
        old, new = self.size, self.size + rows.size
        if new > self.rows.size:
            room = max(new, 2 * self.rows.size)
            self.rows, self.cols = np.resize(self.rows, room), np.resize(self.cols, room)
            self.steps = np.pad(self.steps, ((0, room - len(self.steps)), (0, 0)))
        self.rows[old:new], self.cols[old:new] = rows, cols
        self.size = new
        return self.steps[old:new]

    def drop(self, count: int) -> None:
        """Forget the oldest entries."""
        left = self.size - count
        for held in (self.rows, self.cols, self.steps):
            held[:left] = held[count : self.size].copy()
        self.size, self.first = left, self.first + count

    def table(self, users: Array, items: Array, count: int) -> StepTable:
        """Sort the oldest `count` entries by user; steps are divided by the weights of both sides."""
        rows, cols = self.rows[:count], self.cols[:count]
        pointers, order = np.empty(users.size + 1, np.int64), np.empty(count, np.int64)
        by_row(rows, users.size, pointers, order)
        scales = 1.0 / (users[rows] * items[cols])
        # All experts at once: single columns of a table are slow to gather.
        steps = np.ascontiguousarray((self.steps[:count] * scales[:, None])[order].T)
        shape = (users.size, items.size)
        return StepTable(steps, order + self.first, cols[order], pointers, shape)


class StepTable(NamedTuple):
    """Entries sorted by user, ready to become one sparse matrix for each expert."""

    steps: Array  # a row for each expert
    times: Indices  # number of the rating that each entry belongs to
    indices: Indices  # the item of each entry
    pointers: Indices  # where the entries of each user begin
    shape: tuple[int, int]  # users and items

    def matrix(self, expert: int, start: int) -> Any:
        """The steps that the expert took from rating `start` on."""
        data = self.steps[expert] * (self.times >= start) if start else self.steps[expert]
        return scipy.sparse.csr_array((data, self.indices, self.pointers), shape=self.shape)


class StepMatrix(NamedTuple):
    """Steps of an expert as an operator: a sparse matrix of recent ones plus older ones of low rank.

    A pair that was rated more than once has as many entries, so this is no `FactoredMatrix`.
    """

    recent: Any
    left: Array
    right: Array

    def times(self, block: Array) -> Any:
        """Return the matrix times a block."""
        return self.recent @ block + self.left @ (self.right.T @ block)

    def transpose_times(self, block: Array) -> Any:
        """Return the transpose times a block."""
        return self.recent.T @ block + self.right @ (self.left.T @ block)


class Older(NamedTuple):
    """Older steps of an expert since its start: a low-rank matrix, without the weights of rows."""

    start: int
    users: Array
    items: Array


def weighted(factor: Array, weights: Array) -> Array:
    """Return a factor divided by the weights of its rows, with zeros for rows that are new since."""
    known = min(weights.size, factor.shape[0])
    divided = np.zeros((weights.size, factor.shape[1]))
    divided[:known] = factor[:known] / weights[:known, None]
    return divided

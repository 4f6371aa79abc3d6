"""Tables of `MatrixCompleter`: of users, items and experts, rated pairs, latest ratings, users at rest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftwolfe.points.kinds import Array, Indices

#: Bits of an item's number in a pair: users and items are fewer than 2^31.
ITEM_BITS = 32
LAST_ITEM = (1 << ITEM_BITS) - 1


class Growing:
    """Named tables whose first `size` rows are in use; room doubles, so a new row costs constant time."""

    def __init__(self, tables: Any) -> None:
        self.size, self.tables = 0, tables

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.tables = writable(self.tables)

    @property
    def known(self) -> Any:
        """The rows in use."""
        return self.tables._make(table[: self.size] for table in self.tables)

    def grow(self, size: int) -> slice:
        """Use up to `size` rows, and return which of them are new."""
        room, old = len(self.tables[0]), self.size
        if size > room:
            more = max(size, 2 * room, 16) - room
            self.tables = self.tables._make(_pad(table, more, 0) for table in self.tables)
        self.size = max(old, size)
        return slice(old, self.size)

    def widen(self, *widths: int) -> None:
        """Add columns of zeros to the first tables, up to these widths."""
        pairs = zip(self.tables, widths, strict=False)
        wider = [_pad(table, 0, width - table.shape[1]) for table, width in pairs]
        self.tables = self.tables._make((*wider, *self.tables[len(wider) :]))

    def drop(self, count: int) -> None:
        """Forget the oldest rows."""
        for table in self.tables:
            table[: self.size - count] = table[count : self.size].copy()
        self.size -= count

    def keep(self, rows: Indices) -> None:
        """Keep only these rows, in this order."""
        for table in self.tables:
            table[: rows.size], table[rows.size : self.size] = table[rows], 0
        self.size = rows.size


def writable(tables: Any) -> Any:
    """Copy those of named tables that were unpickled from read-only memory: compiled loops write to them."""
    return tables._make(np.require(table, None, "W") for table in tables)


def _pad(table: Any, rows: int, columns: int) -> Any:
    """Add rows of zeros to a table or a vector, and columns of zeros to a table."""
    wider = np.zeros(
        [n + more for n, more in zip(table.shape, (rows, columns), strict=False)], table.dtype
    )
    wider[tuple(map(slice, table.shape))] = table  # new rows take no memory before they are used
    return wider


@dataclass(eq=False)
class SeenPairs:
    """A growing set of (user, item) pairs of numbers: 8 bytes for each.

    Pairs are whole numbers, sorted by user and then by item, in runs of falling length. A new run is
    merged with the one before it unless that is more than twice as long, so n pairs cost O(n log n).
    """

    runs: tuple[Indices, ...] = ()

    def add(self, rows: Indices, cols: Indices) -> None:
        runs = [*self.runs, np.unique(rows << ITEM_BITS | cols)]
        while len(runs) > 1 and runs[-2].size <= 2 * runs[-1].size:
            runs[-2:] = [_merged(runs[-2:])]
        self.runs = tuple(runs)

    def remove(self, row: int) -> None:
        """Remove a user; the numbers of later ones fall by 1."""
        pairs = self.pairs()
        kept = pairs[pairs >> ITEM_BITS != row]
        self.runs = (kept - (kept >> ITEM_BITS > row) * (1 << ITEM_BITS),)

    def items_of(self, row: int) -> Indices:
        """Return the items of a user, sorted."""
        first = row << ITEM_BITS
        ends = np.array([first, first + LAST_ITEM])
        parts = [run[slice(*run.searchsorted(ends))] for run in self.runs]
        return _merged(parts) & LAST_ITEM

    def pairs(self) -> Indices:
        """Return all pairs as whole numbers, sorted and distinct."""
        return _merged(self.runs)


def _merged(runs: Iterable[Indices]) -> Indices:
    """Return the union of sorted runs, sorted."""
    joined = np.concatenate([np.zeros(0, np.int64), *runs])
    joined.sort(kind="stable")  # in one pass, as runs are sorted
    return joined[np.flatnonzero(np.diff(joined, prepend=-1))]


class Side(NamedTuple):
    """What the experts have learned of users, or of items: one row for each."""

    biases: Any  # a column for each expert
    squares: Any  # sums of squared gradients, which scale the steps of biases
    rows: Any  # factors of the interactions, those of each low-rank expert side by side
    metric: Any  # weights in the weighted trace norm
    touched: Any  # when last rated, -1 for never; experts restarted since know nothing of the row
    counts: Any  # ratings so far


class Slots(NamedTuple):
    """The experts."""

    means: Any  # the global mean of each
    squares: Any  # sums of squared gradients, which scale the steps of means
    weights: Any  # of sum 1
    steps: Any  # step sizes of mean and biases, in units of error
    starts: Any  # when each was started or restarted last
    levels: Any  # restarted every 2^level ratings; -1: never
    low: Any  # number among the low-rank experts; -1: none


class Interactions(NamedTuple):
    """The low-rank experts."""

    radii: Any  # bounds on the weighted trace norms
    # Half the sum of |p_k|^2/d_k + d_k, with p_k the columns of the users' factors: never below the
    # trace norm, and cheap to keep up to date.
    norms: Any
    spreads: Any  # a row of d_k for each expert


class Scale(NamedTuple):
    """What all experts share."""

    clock: Any  # one number: ratings learned so far
    numbers: Any  # running mean of errors, lowest and highest rating, recent mean


class Recent(NamedTuple):
    """The latest ratings, one row for each."""

    steps: Array  # that each low-rank expert took there
    rows: Indices
    cols: Indices


class Everyone(NamedTuple):
    """All users by number: where their rows are, and what is kept of users at rest, who have none."""

    biases: NDArray[np.float32]  # of the experts that never restart; 0 for users with rows
    squares: NDArray[np.float32]
    counts: Indices  # ratings of users at rest
    rows: Indices  # -1 for users at rest


class Older(NamedTuple):
    """Older steps of an expert since its start: a low-rank matrix, without the weights of rows."""

    start: int
    users: Array
    items: Array

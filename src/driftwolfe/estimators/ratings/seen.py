"""Which pairs were rated, beyond what `RecentSteps` holds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]

#: Bits of an item's number in a pair: users and items are fewer than 2^31.
ITEM_BITS = 32
LAST_ITEM = (1 << ITEM_BITS) - 1


@dataclass(eq=False)
class SeenPairs:
    """A set of (user, item) pairs of numbers that grows: 8 bytes for each.

    Pairs are whole numbers, sorted by user and then by item, in runs of falling length. A new run is
    merged with the one before it unless that is more than twice as long, so that n pairs cost
    O(n log n) in all. A pair may be in several runs; together they are less than twice as long as the
    longest.

    >>> seen = SeenPairs()
    >>> seen.add(np.array([1, 0, 1]), np.array([5, 5, 2]))
    >>> seen.add(np.array([1, 1]), np.array([3, 2]))
    >>> seen.items_of(1), seen.pairs().size
    (array([2, 3, 5]), 4)
    """

    runs: tuple[Places, ...] = ()

    def add(self, rows: Places, cols: Places) -> None:
        """Add pairs."""
        runs = [*self.runs, np.unique(rows << ITEM_BITS | cols)]
        while len(runs) > 1 and runs[-2].size <= 2 * runs[-1].size:
            runs[-2:] = [_merged(runs[-2:])]
        self.runs = tuple(runs)

    def items_of(self, row: int) -> Places:
        """Return the items of a user, sorted."""
        first = row << ITEM_BITS
        ends = np.array([first, first + LAST_ITEM])
        parts = [run[slice(*run.searchsorted(ends))] for run in self.runs]
        return _merged(parts) & LAST_ITEM

    def pairs(self) -> Places:
        """Return all pairs as whole numbers, sorted, each once."""
        return _merged(list(self.runs))

    @classmethod
    def restored(cls, pairs: Places) -> SeenPairs:
        """Return the set that `pairs` is of."""
        return cls((pairs,) if pairs.size else ())


def _merged(runs: list[Places]) -> Places:
    """Return what is in any of some sorted runs, sorted."""
    joined = np.concatenate([np.zeros(0, np.int64), *runs])
    joined.sort(kind="stable")  # in one pass, as runs are sorted
    return joined[np.flatnonzero(np.diff(joined, prepend=-1))]


def fit_together(pairs: Places, users: int, items: int) -> bool:
    """Whether sorted pairs of so many users and items could have been written by `pairs`."""
    rows, cols = pairs >> ITEM_BITS, pairs & LAST_ITEM
    return bool(
        (np.diff(pairs) > 0).all()
        and (rows >= 0).all()
        and (rows < users).all()
        and (cols < items).all()
    )

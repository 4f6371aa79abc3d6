"""The latest gradient steps, entry by entry."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from driftwolfe.estimators.ratings.kernels import by_row
from driftwolfe.points.kinds import Array


@dataclass(eq=False)
class RecentSteps:
    """Where the latest ratings were, and the steps that each low-rank expert took there.

    Attributes
    ----------
    size
        Entries in use.
    first
        Number of the rating that the first entry belongs to.
    rows, cols
        User and item of each entry.
    steps
        A column for each low-rank expert.
    """

    size: int = 0
    first: int = 0
    rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    cols: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    steps: Array = field(default_factory=lambda: np.zeros((0, 0)))

    def widen(self, experts: int) -> None:
        """Add columns of zeros."""
        more = np.zeros((self.steps.shape[0], experts - self.steps.shape[1]))
        self.steps = np.concatenate([self.steps, more], axis=1)

    def append(self, rows: NDArray[np.int64], cols: NDArray[np.int64]) -> Array:
        """Add entries, and return the table for their steps, to be filled."""
        old, new = self.size, self.size + rows.size
        if new > self.rows.size:
            room = max(new, 2 * self.rows.size)
            self.rows, self.cols = np.resize(self.rows, room), np.resize(self.cols, room)
            steps = np.zeros((room, self.steps.shape[1]))
            steps[:old] = self.steps[:old]
            self.steps = steps
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


@dataclass(frozen=True, eq=False)
class StepTable:
    """Entries sorted by user, ready to become one sparse matrix for each expert.

    Attributes
    ----------
    steps
        A row for each expert.
    times
        Number of the rating that each entry belongs to.
    indices, pointers
        Its item, and where the entries of each user begin.
    """

    steps: Array
    times: NDArray[np.int64]
    indices: NDArray[np.int64]
    pointers: NDArray[np.int64]
    shape: tuple[int, int]

    def matrix(self, expert: int, start: int) -> Any:
        """The steps that the expert took from rating `start` on."""
        data = self.steps[expert]
        if start > 0:
            data = data * (self.times >= start)
        return scipy.sparse.csr_array((data, self.indices, self.pointers), shape=self.shape)


@dataclass(frozen=True, eq=False)
class StepMatrix:
    """Steps of an expert as an operator: the recent ones entry by entry, the older ones of low rank.

    Pairs that were rated more than once have as many entries, so this is no `FactoredMatrix`.
    """

    recent: Any
    left: Array
    right: Array

    @property
    def shape(self) -> tuple[int, int]:
        """Users and items."""
        return self.recent.shape

    def __matmul__(self, block: Array) -> Array:
        product: Array = self.recent @ block + self.left @ (self.right.T @ block)
        return product

    def transpose_times(self, block: Array) -> Array:
        """Return the transpose times a block."""
        product: Array = self.recent.T @ block + self.right @ (self.left.T @ block)
        return product

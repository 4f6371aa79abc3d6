"""Growing tables: what the experts know of users, or of items."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from driftwolfe.estimators.ratings.kernels import Side
from driftwolfe.points.kinds import Array


@dataclass(eq=False)
class GrowingSide:
    """A `Side` with room for rows and columns to come.

    Rows are added by doubling the room, so a stream of new users costs a constant time for each.

    Attributes
    ----------
    size
        Rows in use.
    side
        The tables, with room to spare.
    """

    size: int = 0
    side: Side = field(default_factory=lambda: _empty())

    def grow(self, size: int, metric: float) -> None:
        """Make room for `size` rows; new ones know nothing and have this weight."""
        old = self.side
        room = old.counts.size
        if size > room:
            more = max(size, 2 * room, 16) - room
            self.side = Side(
                _pad(old.biases, more, 0),
                _pad(old.squares, more, 0),
                _pad(old.rows, more, 0),
                np.concatenate([old.metric, np.zeros(more)]),
                np.concatenate([old.touched, np.full(more, -1)]),
                np.concatenate([old.counts, np.zeros(more, np.int64)]),
            )
        self.side.metric[self.size : size] = metric
        self.size = max(self.size, size)

    def widen(self, experts: int, factors: int) -> None:
        """Give each row more columns, of zeros: for so many experts, and so many factors."""
        old = self.side
        add = experts - old.biases.shape[1]
        self.side = old._replace(
            biases=_pad(old.biases, 0, add),
            squares=_pad(old.squares, 0, add),
            rows=_pad(old.rows, 0, factors - old.rows.shape[1]),
        )

    def metrics(self, weighting: float) -> Array:
        r"""Weights of the rows in use: :math:`((n/\bar n + 1)/2)^{w/2}`, n the number of ratings.

        Half of it is as if all rows were rated alike, which keeps the weights of rare ones away
        from 0.
        """
        counts = self.side.counts[: self.size]
        weights: Array = ((counts / counts.mean() + 1.0) / 2.0) ** (weighting / 2.0)
        return weights


def _empty() -> Side:
    table, nowhere = np.zeros((0, 0)), np.zeros(0, np.int64)
    return Side(table, table, table, np.zeros(0), nowhere, nowhere)


def _pad(table: Array, rows: int, columns: int) -> Array:
    padded = np.zeros((table.shape[0] + rows, table.shape[1] + columns))
    padded[: table.shape[0], : table.shape[1]] = table
    return padded

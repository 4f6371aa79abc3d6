"""Rows of features as the estimators' loops take them: what is not zero, row after row."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.points.kinds import Array, Indices

#: Features of larger size are refused, smaller ones count as 0: their squares could leave the range
#: of numbers.
LARGEST, SMALLEST = 1e100, 1e-100


class Rows(NamedTuple):
    """Entries that are not zero (or below 1e-100): those of row k stand from ``starts[k]`` to ``starts[k + 1]``.

    The places of a row rise. Dense and sparse inputs with the same content give the same rows, so
    nothing that is learned from them depends on the format.
    """

    starts: Indices
    places: Indices
    values: Array

    @property
    def number(self) -> int:
        """How many rows there are."""
        return self.starts.size - 1

    def taken(self, order: Indices) -> Rows:
        """The rows of those numbers, in that order.

        >>> as_rows(np.array([[1.0, 0.0], [2.0, 3.0]])).taken(np.array([1, 1])).values
        array([2., 3., 2., 3.])
        """
        lengths = (self.starts[1:] - self.starts[:-1])[order]
        starts = np.concatenate((np.zeros(1, np.int64), lengths.cumsum()))
        shift = np.repeat(self.starts[:-1][order] - starts[:-1], lengths)
        chosen = np.arange(starts[-1]) + shift
        return Rows(starts, self.places[chosen], self.values[chosen])

    def stretch(self, first: int, last: int) -> Rows:
        """The rows from number `first` up to `last`, that one not included."""
        starts = self.starts[first : last + 1]
        entries = slice(int(starts[0]), int(starts[-1]))
        return Rows(starts - starts[0], self.places[entries], self.values[entries])


def as_rows(X: Any) -> Rows:
    """Return the rows of a dense array or of a sparse matrix, both checked before.

    >>> as_rows(np.array([[0.0, 2.0], [3.0, 4.0]]))
    Rows(starts=array([0, 1, 3]), places=array([1, 0, 1]), values=array([2., 3., 4.]))
    """
    check_range(X.data if scipy.sparse.issparse(X) else X)
    if scipy.sparse.issparse(X):
        table = scipy.sparse.csr_array(X, copy=True)
        table.sum_duplicates()
        table.data[np.abs(table.data) < SMALLEST] = 0.0
        table.eliminate_zeros()
        return Rows(
            table.indptr.astype(np.int64),
            table.indices.astype(np.int64),
            np.asarray(table.data, np.float64),
        )
    mask = np.abs(X) >= SMALLEST
    starts = np.concatenate((np.zeros(1, np.int64), mask.sum(axis=1).cumsum()))
    places = np.ascontiguousarray(mask.nonzero()[1])
    return Rows(starts, places, np.asarray(X[mask], np.float64))


def check_range(values: Any) -> None:
    """Refuse values whose squares would leave the range of numbers."""
    if values.size and float(np.abs(values).max()) > LARGEST:
        raise ValueError(f"features must lie between -{LARGEST:g} and {LARGEST:g}: rescale them")

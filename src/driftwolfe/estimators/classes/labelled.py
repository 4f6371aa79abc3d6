"""Labelled rows with weights, as a classifier learns them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from driftwolfe.estimators.classes.rows import Rows
from driftwolfe.points.kinds import Array, Indices

#: Copies in which a row of large weight is learned, at most.
MOST_COPIES = 100
#: Larger weights are refused, smaller ones count as 0.
LARGEST_WEIGHT, SMALLEST_WEIGHT = 1e9, 1e-12


class Labelled(NamedTuple):
    """Rows, the number of the class of each, and the weight of each."""

    rows: Rows
    labels: Indices
    parts: Array

    @property
    def number(self) -> int:
        """How many rows there are."""
        return self.labels.size

    @classmethod
    def from_weights(cls, rows: Rows, labels: Indices, weights: Array | None) -> Labelled:
        """Return rows of weight w > 1 as the fewest equal copies of weight at most 1.

        So whole weights stand for repeated rows. From 100 on, there are 100 copies of larger weight.
        Rows of weight 0 are left out.

        >>> from driftwolfe.estimators.classes.rows import as_rows
        >>> rows, labels = as_rows(np.eye(3)), np.arange(3)
        >>> Labelled.from_weights(rows, labels, np.array([1.0, 0.0, 1.5]))[1:]
        (array([0, 2, 2]), array([1.  , 0.75, 0.75]))
        """
        if weights is None:
            return cls(rows, labels, np.ones(labels.size))
        check_weights(weights)
        numbers = np.minimum(np.ceil(weights), MOST_COPIES).astype(np.int64)
        numbers[weights < SMALLEST_WEIGHT] = 0
        order = np.repeat(np.arange(weights.size), numbers)
        return cls(rows.taken(order), labels[order], weights[order] / numbers[order])

    def taken(self, order: Indices) -> Labelled:
        """The rows of those numbers, in that order."""
        return Labelled(self.rows.taken(order), self.labels[order], self.parts[order])

    def stretch(self, first: int, last: int) -> Labelled:
        """The rows from number `first` up to `last`, that one not included."""
        own = slice(first, last)
        return Labelled(self.rows.stretch(first, last), self.labels[own], self.parts[own])


def check_weights(weights: Array) -> None:
    """Refuse weights that are negative, not finite, or beyond reason."""
    if not ((weights >= 0.0) & (weights <= LARGEST_WEIGHT)).all():
        raise ValueError(f"weights of rows must lie between 0 and {LARGEST_WEIGHT:g}")


def in_fixed_order(given: Labelled) -> Labelled:
    """Return labelled rows in an order that does not depend on the one they came in.

    Rows are compared by six digits of their values first, so that rounding errors reorder only rows
    that are nearly the same.

    >>> from driftwolfe.estimators.classes.rows import as_rows
    >>> rows = as_rows(np.array([[3.0], [1.0], [2.0]]))
    >>> in_fixed_order(Labelled(rows, np.array([1, 0, 1]), np.ones(3))).rows.values
    array([1., 2., 3.])
    """
    rows, labels, parts = given
    exact, rough = rows.values.astype(">f8"), _rounded(rows.values)

    def key(k: int) -> tuple[int, float, bytes, bytes, bytes]:
        own = slice(rows.starts[k], rows.starts[k + 1])
        entries = rows.places[own].tobytes(), rough[own].tobytes(), exact[own].tobytes()
        return int(labels[k]), float(parts[k]), *entries

    return given.taken(np.array(sorted(range(labels.size), key=key), dtype=np.int64))


def _rounded(values: Array) -> Array:
    """Return values with 20 bits.

    Between them lie no numbers of few bits: whole numbers and halves are not rounded by their last.
    """
    mantissas, exponents = np.frexp(values)
    return np.ldexp(np.floor(mantissas * 2.0**20 + 0.37), exponents - 20)

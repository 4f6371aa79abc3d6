"""`FixedPoint`: a point that a loss was given, at hand in the kind of the points it meets."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from driftwolfe.losses.copies import Copies
from driftwolfe.losses.inputs import read_only
from driftwolfe.points import checks
from driftwolfe.points.devices import device_of, to_host
from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.kinds import Array, Point, Shape


class FixedPoint:
    """A dense or factored point that is converted at most once, when it meets the other kind.

    Parameters
    ----------
    value
        A `FactoredMatrix`, or anything that makes a finite array (which is copied).
    name
        What to call it in errors.
    """

    def __init__(self, value: Any, name: str) -> None:
        is_factored = isinstance(value, FactoredMatrix)
        self.given: Point = (
            value if is_factored else read_only(checks.finite_array(to_host(value), name))
        )
        self.shape: Shape = self.given.shape

    def like(self, point: Point) -> Point:
        """Return the point as the kind that `point` is."""
        return self.factored if isinstance(point, FactoredMatrix) else self.dense

    def stacked_like(self, stack: Any) -> Any:
        """Return the point as an array where a stack lives, brought there once."""
        return self._copies.on(device_of(stack))[0]

    @cached_property
    def _copies(self) -> Copies:
        return Copies(self.dense)

    @cached_property
    def dense(self) -> Array:
        """The point as an array."""
        if isinstance(self.given, FactoredMatrix):
            return read_only(self.given.toarray())
        array: Array = self.given
        return array

    @cached_property
    def factored(self) -> FactoredMatrix:
        """The point as a `FactoredMatrix`; an array becomes its sparse part, which is exact."""
        if isinstance(self.given, FactoredMatrix):
            return self.given
        rows, cols = np.nonzero(self.dense)
        return FactoredMatrix.from_entries(self.shape, rows, cols, self.dense[rows, cols])

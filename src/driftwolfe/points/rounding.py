"""Choices and numbers that do not hang on the last bit.

Two machines add up the same numbers in different orders, so that what is computed differs by a few
units of 1e-16. What is equal but for that is treated as equal here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftwolfe.points.kinds import Array, Indices

#: Share of the largest by which computed numbers may differ and still count as equal.
TIE = 1e-9
#: Relative error of a number that would be whole without rounding.
WHOLE = 1e-12
#: How far a tilt moves a direction, relative to its length.
_TILT = 1e-12


def near_largest(values: Any) -> Indices:
    """Return the positions of the numbers that are the largest, rounding apart, in rising order.

    Those within `TIE` of the largest, relative to its size. A stated rule chooses among them.

    Parameters
    ----------
    values
        One axis of finite numbers, at least one.

    Examples
    --------
    >>> near_largest(np.array([0.2, 0.4, 0.4 - 1e-16]))
    array([1, 2])
    """
    top = values.max()
    return np.flatnonzero(values >= top - TIE * abs(top))


def tilt(size: int) -> Array:
    """Return a fixed direction along which no two vertices of a set are alike, for `tilted`."""
    return np.random.default_rng(0).random(size)


def tilted(direction: Array, along: Array) -> Array:
    """Return the direction, moved by a hair along a fixed one, which settles ties between vertices.

    Once x is nearest to y in the hull of some vertices, exchanging one edge for another often costs
    nothing in the direction x - y, and rounding would choose.

    Parameters
    ----------
    direction
        Any array.
    along
        As `tilt` makes it, of the same shape.
    """
    square = float(np.vdot(direction, direction))
    # The largest entry will do where squares have left the range of numbers, or soon will.
    fits = 1e-300 < square < 1e300
    size = math.sqrt(square) if fits else float(np.abs(direction).max())
    return direction + (_TILT * size) * along


def whole_below(value: float) -> int:
    """Return floor(value), of a number that may have been rounded down from a whole one.

    >>> whole_below(2.9), whole_below(3.0 - 1e-15)
    (2, 3)
    """
    return math.floor(value + WHOLE * abs(value))


def whole_above(value: float) -> int:
    """Return ceil(value), of a number that may have been rounded up from a whole one.

    >>> whole_above(2.1), whole_above(3.0 + 1e-15)
    (3, 3)
    """
    return math.ceil(value - WHOLE * abs(value))


def line_search_share(gap: float, length2: float) -> float:
    """Return gap / length2, the step of a line search, never outside [0, 1].

    Near the end of the way both numbers may be all rounding, of any sign, or not numbers at all:
    0 where the gap is not positive, and 1 where the way is not longer than that.

    >>> line_search_share(1.0, 4.0), line_search_share(1.0, -1e-17), line_search_share(-1.0, 4.0)
    (0.25, 1.0, 0.0)
    """
    if not gap > 0:
        return 0.0
    return gap / length2 if length2 > gap else 1.0

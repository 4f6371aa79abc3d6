"""Choices and numbers that do not depend on the last bit, so that all machines agree."""

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


def ramp(values: Array, widths: Any) -> Array:
    """Return 0 up to a width >= 0, 1 from twice the width on, and rise linearly in between.

    Noise well below the width in values that should be 0 changes nothing; elsewhere a small change
    of a value makes a small change.

    >>> ramp(np.array([0.0, 1.0, 1.5, 2.0, 7.0]), 1.0)
    array([0. , 0. , 0.5, 1. , 1. ])
    >>> ramp(np.array([0.0, 1e-300]), 0.0)
    array([0., 1.])
    """
    if (values >= np.maximum(2.0 * widths, np.finfo(np.float64).tiny)).all():  # as nearly always
        return np.ones(values.shape)
    widths = np.broadcast_to(widths, values.shape)
    above = np.where(values > widths, 1.0, 0.0)
    steep = (widths > 0.0) & (values < 2.0 * widths)
    return np.divide(np.maximum(values - widths, 0.0), widths, where=steep, out=above)


def near_largest(values: Any) -> Indices:
    """Return the positions of the finite numbers within `TIE` of the largest, in rising order.

    >>> near_largest(np.array([0.2, 0.4, 0.4 - 1e-16]))
    array([1, 2])
    """
    top = values.max()
    return np.flatnonzero(values >= top - TIE * abs(top))


def tilt(size: int) -> Array:
    """Return a fixed direction along which no two vertices of a set are alike, for `tilted`."""
    return np.random.default_rng(0).random(size)


def tilted(direction: Array, along: Array) -> Array:
    """Return the direction, moved a little along a fixed one of its shape, which settles ties.

    Once x is nearest to y in the hull of some vertices, exchanging one edge for another often costs
    nothing in the direction x - y, and rounding would choose.
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
    """Return gap / length2, the step of a line search, cut to [0, 1].

    At the end of a run both may be all rounding, of any sign, or NaN: 0 where the gap is not
    positive, 1 where length2 is not larger.

    >>> line_search_share(1.0, 4.0), line_search_share(1.0, -1e-17), line_search_share(-1.0, 4.0)
    (0.25, 1.0, 0.0)
    """
    if not gap > 0:
        return 0.0
    return gap / length2 if length2 > gap else 1.0

"""Choices and numbers that do not depend on the last bit, so that all machines agree."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftwolfe.points.kinds import Array, Indices

#: Fraction of the largest by which computed numbers may differ and still count as equal.
TIE = 1e-9
#: Relative error of a number that would be whole without rounding.
WHOLE = 1e-12
#: How far a tilt moves a direction, relative to its length.
_TILT = 1e-12


def ramp(values: Array, widths: Any) -> Array:
    """Return 0 up to a width >= 0, 1 from twice the width on, and rise linearly in between."""
    widths = np.maximum(widths, np.finfo(np.float64).tiny)
    with np.errstate(over="ignore"):
        return np.minimum(np.maximum((values - widths) / widths, 0.0), 1.0)


def near_largest(values: Any) -> Indices:
    """Return the positions of the finite numbers within `TIE` of the largest, in rising order."""
    top = values.max()
    return np.flatnonzero(values >= top - TIE * abs(top))


def tilt(size: int) -> Array:
    """Return a fixed direction along which no two vertices of a set are alike, for `tilted`."""
    return np.random.default_rng(0).random(size)


def tilted(direction: Array, along: Array) -> Array:
    """Return the direction, moved a little along a fixed one of its shape, which settles ties."""
    square = float(np.vdot(direction, direction))
    # The largest entry will do where squares have left the range of numbers, or soon will.
    fits = 1e-300 < square < 1e300
    size = math.sqrt(square) if fits else float(np.abs(direction).max())
    return direction + (_TILT * size) * along


def whole_below(value: float) -> int:
    """Return floor(value), of a number that may have been rounded down from a whole one."""
    return math.floor(value + WHOLE * abs(value))


def whole_above(value: float) -> int:
    """Return ceil(value), of a number that may have been rounded up from a whole one."""
    return math.ceil(value - WHOLE * abs(value))


def line_search_step(gap: float, length2: float) -> float:
    """Return gap / length2, the step of a line search, cut to [0, 1]; both may be all rounding."""
    if not gap > 0:
        return 0.0
    return gap / length2 if length2 > gap else 1.0

"""Checks at the boundary: what was given, what is allowed, what to do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from driftwolfe.points.kinds import Array, Shape

#: Counts are added to one another, and must then still fit into 64 bits.
LARGEST_COUNT = 1 << 62


def positive(value: Any, name: str) -> float:
    """Return `value` as a float, or say that it must be a positive finite number.

    >>> positive(2, "radius")
    2.0
    >>> positive(-1, "radius")
    Traceback (most recent call last):
        ...
    ValueError: radius must be a positive finite number, got -1
    """
    number = _number(value, name, "a positive finite number")
    if not (number > 0 and math.isfinite(number)):
        raise ValueError(f"{name} must be a positive finite number, got {value!r}")
    return number


def nonnegative(value: Any, name: str) -> float:
    """Return `value` as a float, or say that it must be a finite number >= 0."""
    number = _number(value, name, "a finite number >= 0")
    if not (number >= 0 and math.isfinite(number)):
        raise ValueError(f"{name} must be a finite number >= 0, got {value!r}")
    return number


def count(value: Any, name: str, least: int = 1, most: float = LARGEST_COUNT) -> int:
    """Return `value` as an int, or say that it must be a whole number >= `least`."""
    if type(value) is int and least <= value <= most:
        return value
    message = f"{name} must be a whole number >= {least}, got {value!r}"
    if isinstance(value, bool | np.bool_):
        raise TypeError(message)
    try:
        number = int(value)
        same = number == value
    except (TypeError, ValueError, OverflowError):
        raise TypeError(message) from None
    if not same or number < least:
        raise ValueError(message)
    if number > most:
        raise ValueError(f"{name} must be at most {most:g}, got {str(value)[:40]}")
    return number


def shape(value: Any, name: str = "shape") -> Shape:
    """Return `value` (a size or a sequence of sizes) as a tuple of positive ints."""
    sizes = tuple(value) if isinstance(value, Sequence) else (value,)
    if not sizes:
        raise ValueError(f"{name} must name at least one size, got {value!r}")
    return tuple(count(size, name) for size in sizes)


def finite_array(value: Any, name: str, shape: Shape | None = None) -> Array:
    """Return `value` as a float64 array of that shape with finite entries, without a copy if it is one.

    >>> finite_array([1, float("nan")], "y", (2,))
    Traceback (most recent call last):
        ...
    ValueError: y has entries that are not finite (first at index (1,))
    """
    try:
        raw = np.asarray(value)
        array: Array = raw.astype(np.float64, casting="same_kind", copy=False)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of real numbers, got {_kind(value)}") from None
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    if not all_finite(array):
        first = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name} has entries that are not finite (first at index {first})")
    return array


def all_finite(array: Array) -> bool:
    """Return whether no entry is infinite or not a number."""
    # A finite sum of squares has finite terms: one quick pass, and a second look if it overflows.
    return math.isfinite(np.vdot(array, array)) or bool(np.isfinite(array).all())


def _number(value: Any, name: str, what: str) -> float:
    try:
        if isinstance(value, bool | np.bool_ | str | bytes):
            raise TypeError
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} must be {what}, got one beyond the range of numbers") from None
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be {what}, got {_kind(value)}") from None


def _kind(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"[:80]

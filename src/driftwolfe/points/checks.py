"""Checks of what users give: numbers, arrays, sparse matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Point, Shape

#: Counts are added to one another, and must then still fit into 64 bits.
LARGEST_COUNT = 1 << 62
#: Lists in lists in which masked arrays are looked for; deeper ones hold the same few a thousand times.
_DEEPEST_LIST = 3
_LISTS = (list, tuple)


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
    if isinstance(value, bool | np.bool_) or has_masked_entries(value):
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
    array = real_array(value, name)
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    if not all_finite(array):
        first = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name} has entries that are not finite (first at index {first})")
    return array


def real_array(value: Any, name: str) -> Array:
    """Return `value` as a float64 array, without a copy if it is one; NaN and infinities may be in it.

    Masked arrays whose mask hides nothing count as plain ones.
    """
    try:
        raw = np.asarray(value)
        array: Array = raw.astype(np.float64, casting="same_kind", copy=False)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of real numbers, got {_kind(value)}") from None
    refuse_masked(value, name)
    return array


def as_point(value: Any, name: str = "x") -> Point:
    """Return a point of any kind as it is, and anything else as an array of real numbers.

    >>> as_point([1, 2])
    array([1., 2.])
    """
    if type(value) is np.ndarray and value.dtype == np.float64:
        return value
    return value if hasattr(value, "inner") else real_array(value, name)


def refuse_masked(value: Any, name: str) -> None:
    """Raise ValueError where masked entries hide numbers, which NumPy would go on with.

    >>> refuse_masked(np.ma.masked_array([1.0, 9e9], mask=[False, True]), "y")
    Traceback (most recent call last):
        ...
    ValueError: y has masked entries; fill them in (with .filled) or leave them out
    """
    if type(value) is not np.ndarray and has_masked_entries(value):
        raise ValueError(
            f"{name} has masked entries; fill them in (with .filled) or leave them out"
        )


def has_masked_entries(value: Any, depth: int = _DEEPEST_LIST) -> bool:
    """Return whether an array, or one in lists or tuples of them, has entries that a mask hides."""
    if isinstance(value, np.ndarray):
        return type(value) is not np.ndarray and bool(np.any(getattr(value, "mask", False)))
    if not isinstance(value, _LISTS) or not depth:
        return False
    # Few types stand in a long list: no look at each of its numbers.
    held = (np.ndarray, *_LISTS) if depth > 1 else np.ndarray
    for kind in set(map(type, value)):
        if kind is not float and issubclass(kind, held):
            return any(has_masked_entries(each, depth - 1) for each in value)
    return False


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


def sound_sparse(matrix: Any, name: str) -> Any:
    """Return a scipy sparse matrix whose parts fit together, or raise ValueError.

    scipy itself looks at indices neither when a matrix is converted nor when it is multiplied: one
    out of range reads memory that belongs to others. Unsorted indices and entries given twice, which
    add up, are as good as in scipy. Formats other than CSR, CSC, BSR and COO come back as CSR; what
    is no sparse matrix comes back as it is.

    >>> eye = scipy.sparse.csr_array(np.eye(2))
    >>> eye.indices[1] = 5
    >>> sound_sparse(eye, "features")
    Traceback (most recent call last):
        ...
    ValueError: features is a broken sparse matrix: column indices must lie in 0..1, got 5
    """
    if not (hasattr(matrix, "tocsr") and scipy.sparse.issparse(matrix)):
        return matrix
    if matrix.format in ("lil", "dia", "dok"):
        matrix = _by_rows(matrix, name)
    checks.refuse_masked(matrix.data, name)
    if (kind := np.asarray(matrix.data).dtype).kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got a sparse matrix of {kind}")
    if matrix.format == "coo":
        _check_coordinates(matrix, name)
    else:
        _check_lines(matrix, name)
    return matrix


def _by_rows(matrix: Any, name: str) -> Any:
    """Return a matrix of one of the other formats as CSR; scipy trusts the lengths of their parts."""
    fits = True
    if matrix.format == "lil":
        pairs = zip(matrix.rows, matrix.data, strict=False)
        fits = len(matrix.rows) == len(matrix.data) == matrix.shape[0] and all(
            len(row) == len(data) for row, data in pairs
        )
    elif matrix.format == "dia":
        offsets = _whole(matrix.offsets, "offsets", name)
        fits = np.ndim(matrix.data) == 2 and len(matrix.data) == offsets.size
    if not fits:
        raise _broken(name, "its parts are of different lengths")
    try:
        return matrix.tocsr()
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        raise _broken(name, f"it cannot be converted ({error})") from error


def _check_lines(matrix: Any, name: str) -> None:
    """Look at a matrix that is stored row by row, or column by column, in blocks or not."""
    data, shape = np.asarray(matrix.data), matrix.shape
    block = data.shape[1:] if matrix.format == "bsr" else (1,) * len(shape)
    if data.ndim != (3 if matrix.format == "bsr" else 1) or not _divides(block, shape):
        raise _broken(name, f"data has shape {data.shape}")
    sides = [("row", shape[0] // block[0]), ("column", shape[-1] // block[-1])]
    if len(shape) == 1:
        sides[0] = ("row", 1)
    lines, across = sides[::-1] if matrix.format == "csc" else sides
    indptr, indices = _whole(matrix.indptr, "indptr", name), _whole(matrix.indices, "indices", name)
    if indptr.size != lines[1] + 1:
        raise _broken(name, f"indptr must have {lines[1] + 1} entries, got {indptr.size}")
    if indices.size != len(data):
        raise _broken(name, f"it has {indices.size} indices for {len(data)} entries")
    if indptr[0] != 0 or indptr[-1] > indices.size or (indptr[1:] < indptr[:-1]).any():
        raise _broken(name, f"indptr must rise from 0 to at most {indices.size}")
    _check_range(indices[: indptr[-1]], *across, name)


def _divides(block: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    return all(part > 0 and side % part == 0 for part, side in zip(block, shape, strict=True))


def _check_coordinates(matrix: Any, name: str) -> None:
    """Look at a matrix that is a list of entries."""
    size = np.asarray(matrix.data).size
    sides = ("row", "column") if len(matrix.shape) == 2 else ("",) * len(matrix.shape)
    for side, given, length in zip(sides, matrix.coords, matrix.shape, strict=True):
        indices = _whole(given, f"{side} indices", name)
        if indices.size != size:
            raise _broken(name, f"it has {indices.size} {side} indices for {size} entries")
        _check_range(indices, side, length, name)


def _whole(given: Any, what: str, name: str) -> Any:
    checks.refuse_masked(given, name)
    indices = np.asarray(given)
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise _broken(name, f"{what} must be one row of whole numbers, got {indices.dtype}")
    return indices


def _check_range(indices: Any, side: str, length: int, name: str) -> None:
    if not indices.size:
        return
    least, largest = int(indices.min()), int(indices.max())
    if least < 0 or largest >= length:
        wrong = least if least < 0 else largest
        raise _broken(name, f"{side} indices must lie in 0..{length - 1}, got {wrong}")


def _broken(name: str, why: str) -> ValueError:
    return ValueError(f"{name} is a broken sparse matrix: {why}")

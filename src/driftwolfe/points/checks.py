"""Checks of user input: numbers, names, options, shapes, arrays, indices, sparse matrices."""

from __future__ import annotations

import inspect
import math
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, Self

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.points.kinds import Array, Indices, Point, Shape

#: Counts are added to one another, and must then still fit into 64 bits.
LARGEST_COUNT = 1 << 62
#: Sizes from which indices would need 64 bits.
_INT32_LIMIT = 1 << 31
#: Lists in lists in which masked arrays are looked for; deeper ones hold the same few a thousand times.
_DEEPEST_LIST, _LISTS = 3, (list, tuple)


def positive(value: Any, name: str) -> float:
    """Return `value` as a float; refuse anything but a positive finite number."""
    return _number(value, name, "a positive finite number", least=math.ulp(0.0))


def nonnegative(value: Any, name: str) -> float:
    """Return `value` as a float; refuse anything but a finite number >= 0."""
    return _number(value, name, "a finite number >= 0", least=0.0)


def _number(value: Any, name: str, what: str, least: float) -> float:
    try:
        if isinstance(value, bool | np.bool_ | str | bytes):
            raise TypeError
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be {what}, got one beyond the range of numbers") from None
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be {what}, got {_kind(value)}") from None
    if not least <= number < math.inf:
        raise ValueError(f"{name} must be {what}, got {value!r}")
    return number


def _kind(value: Any) -> str:
    return f"{type(value).__name__} {value!r}"[:80]


def count(value: Any, name: str, least: int = 1, most: float = LARGEST_COUNT) -> int:
    """Return `value` as an int, or raise an error: it must be a whole number >= `least`."""
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


def one_of(given: Any, name: str, allowed: Collection[str | None]) -> None:
    """Refuse what is none of some words."""
    if not (given is None or isinstance(given, str)) or given not in allowed:
        known = ", ".join(f'"{word}"' for word in allowed)
        raise ValueError(f"{name} must be one of {known}, got {given!r}{meant(given, allowed)}")


def meant(given: object, known: Iterable[object]) -> str:
    """Return "; did you mean 'name'?" with the known name nearest to the one given, or nothing."""
    import difflib  # slow to import, and seldom needed

    names = {str(name).rpartition(".")[2].lower(): str(name) for name in known}
    close = difflib.get_close_matches(str(given)[:80].lower(), names, 1)
    return f"; did you mean {names[close[0]]!r}?" if close else ""


def refuse_class(model: Any) -> None:
    """Raise TypeError for a class in place of a model."""
    if isinstance(model, type):
        raise TypeError(f"model must be a model, got a class; make one: {model.__name__}()")


class Constructed:
    """Base of classes whose constructor, given an unknown option, names the one that was meant."""

    def __new__(cls, *given: Any, **named: Any) -> Self:
        if named:
            _check_options(cls, *named)  # type: ignore[arg-type]
        return super().__new__(cls)


@lru_cache(maxsize=1024)
def _check_options(cls: Any, *named: str) -> None:
    own = getattr(cls, "__signature__", None)  # of learners, with all options
    taken = (own or inspect.signature(partial(cls.__init__, None))).parameters
    unknown = [name for name in named if name not in taken]
    if unknown and all(each.kind is not each.VAR_KEYWORD for each in taken.values()):
        hint = meant(unknown[0], taken) or f"; there are {', '.join(taken) or 'none'}"
        raise TypeError(f"{cls.__name__}() got an unexpected keyword argument {unknown[0]!r}{hint}")


def shape(value: Any, name: str = "shape") -> Shape:
    """Return `value` (a size or a sequence of sizes) as a tuple of positive ints."""
    sizes = tuple(value) if isinstance(value, Sequence) else (value,)
    if not sizes:
        raise ValueError(f"{name} must name at least one size, got {value!r}")
    return tuple(count(size, name) for size in sizes)


def matrix_shape(value: Any) -> tuple[int, int]:
    """Return the two sizes of a matrix."""
    sizes = shape(value)
    if len(sizes) != 2:
        raise ValueError(f"a matrix has two sizes, got shape {sizes}")
    if max(sizes) >= _INT32_LIMIT:
        raise ValueError(f"a matrix has less than {_INT32_LIMIT:,} rows and columns, got {sizes}")
    return sizes[0], sizes[1]


def finite_array(value: Any, name: str, shape: Shape | None = None) -> Array:
    """Return `value` as a float64 array of that shape with finite entries, without a copy if it is one."""
    array = real_array(value, name)
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    if not all_finite(array):
        first = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name} has entries that are not finite (first at index {first})")
    return array


def real_array(value: Any, name: str) -> Array:
    """Return `value` as a float64 array, without a copy if it is one; NaN and infinities may be in it."""
    if type(value) is np.ndarray and value.dtype == np.float64:
        return value
    try:
        raw = np.asarray(value)
        array: Array = raw.astype(np.float64, casting="same_kind", copy=False)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be an array of real numbers, got {_kind(value)}") from None
    refuse_masked(value, name)
    return array


def as_point(value: Any, name: str = "x") -> Point:
    """Return a point of any kind as it is, and anything else as an array of real numbers."""
    if type(value) is np.ndarray and value.dtype == np.float64:
        return value
    return value if hasattr(value, "inner") else real_array(value, name)


def refuse_masked(value: Any, name: str) -> None:
    """Raise ValueError where masked entries hide numbers, which NumPy would compute with."""
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
    # By the few types that a long list holds, not by each of its numbers.
    held = (np.ndarray, *_LISTS) if depth > 1 else np.ndarray
    for kind in set(map(type, value)):
        if kind is not float and issubclass(kind, held):
            return any(has_masked_entries(each, depth - 1) for each in value)
    return False


def all_finite(array: Array) -> bool:
    """Return whether no entry is infinite or not a number."""
    # A finite sum of squares has finite terms: one quick pass, and a second where it overflows.
    return math.isfinite(np.vdot(array, array)) or bool(np.isfinite(array).all())


def entry_indices(rows: Any, cols: Any, shape: Shape) -> tuple[Indices, Indices]:
    """Return row and column indices of one length, in range; negative ones do not wrap around."""
    i, j = _indices(rows, "rows", shape[0]), _indices(cols, "cols", shape[1])
    if i.size != j.size:
        raise ValueError(f"rows and cols must have one length, got {i.size} and {j.size}")
    return np.ascontiguousarray(i, dtype=np.int64), np.ascontiguousarray(j, dtype=np.int64)


def _indices(given: Any, what: str, size: int) -> Indices:
    refuse_masked(given, what)
    indices = np.asarray(given)
    if indices.ndim != 1 or not (indices.dtype.kind in "iu" or indices.size == 0):
        raise ValueError(f"{what} must be a one-dimensional array of whole numbers")
    if indices.size and not (indices.min() >= 0 and indices.max() < size):
        wrong = indices.min() if indices.min() < 0 else indices.max()
        raise ValueError(f"{what} must lie in 0..{size - 1}, got {wrong}")
    return indices


def sound_sparse(matrix: Any, name: str) -> Any:
    """Return a scipy sparse matrix whose parts fit together, and anything else as it is.

    scipy does not check indices: one out of range reads foreign memory. Unsorted ones, and entries given
    twice, which add up, are allowed. Formats other than CSR, CSC, BSR and COO become CSR.
    """
    if not (hasattr(matrix, "tocsr") and scipy.sparse.issparse(matrix)):
        return matrix
    try:
        if matrix.format == "lil":
            _same_length(matrix.rows, range(matrix.shape[0]))
            for columns, numbers in zip(matrix.rows, matrix.data, strict=True):
                _same_length(columns, numbers)
        elif matrix.format == "dia":
            _same_length(matrix.offsets, matrix.data)
        if matrix.format in ("lil", "dia", "dok"):  # scipy trusts the lengths of their parts
            matrix = matrix.tocsr()
        if matrix.format == "coo":
            names = ("row indices", "column indices")[-matrix.ndim :]
            for what, given, size in zip(names, matrix.coords, matrix.shape, strict=True):
                _same_length(_indices(given, what, size), matrix.data)
        else:
            _check_lines(matrix)
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        raise ValueError(f"{name} is a broken sparse matrix: {error}") from error
    refuse_masked(matrix.data, name)
    kind = np.asarray(matrix.data).dtype
    if kind.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, got a sparse matrix of {kind}")
    return matrix


def _check_lines(matrix: Any) -> None:
    """Check a matrix that is stored row by row, or column by column, in blocks or not."""
    data, (m, n) = np.asarray(matrix.data), (1, *matrix.shape)[-2:]
    dimensions = 3 if matrix.format == "bsr" else 1
    height, width = data.shape[1:] if data.ndim == dimensions == 3 else (1, 1)
    if data.ndim != dimensions or 0 in (height, width) or m % height or n % width:
        raise ValueError(f"data has shape {data.shape}")
    lines, size, across = m // height, n // width, "column"
    if matrix.format == "csc":
        lines, size, across = n, m, "row"
    _same_length(matrix.indices, data)
    indptr = _indices(matrix.indptr, "indptr", len(data) + 1)
    if indptr.size != lines + 1 or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise ValueError(f"indptr must rise from 0, in {lines + 1} numbers")
    _indices(matrix.indices[: indptr[-1]], f"{across} indices", size)


def _same_length(one: Any, other: Any) -> None:
    if len(one) != len(other):
        raise ValueError(f"its parts have different lengths, {len(one)} and {len(other)}")

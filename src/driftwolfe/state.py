"""Declared state: a class says once what its arrays and numbers are; files, copies and pickles follow."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import (
    Annotated,
    Any,
    Generic,
    NamedTuple,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from driftwolfe.storage import (
    Archive,
    PathLike,
    StoredArray,
    enough_memory,
    read_archive,
    refused,
    write_archive,
)

LARGEST_FLOAT = sys.float_info.max
#: By how much sums that are 1 may be off.
ROUNDING = 1e-6
T = TypeVar("T")


@dataclass(frozen=True)
class Field:
    """What one part of a saved state must be.

    The shape is that of an array, or the length of a list or tuple. Each size is a number, None for
    any size, a name for the same size wherever it appears, or "a b" for the product of two named sizes.
    """

    kind: Any  # the exact type, or several; NumPy's scalar types stand for arrays of them
    shape: tuple[Any, ...] | None = None
    least: float = -LARGEST_FLOAT  # the default bounds refuse NaN and infinities
    most: float = LARGEST_FLOAT
    below: int | str | None = None  # a number or a named size: the bound of indices
    among: tuple[Any, ...] = ()  # the only values, if there are some
    size: str = ""  # the name of the size that a number is
    sums: bool = False  # whether sums along the last axis are 1
    rising: bool = False  # whether each entry is larger than the one before
    items: Field | None = None  # what each item of a list or tuple must be
    optional: bool = False  # whether it may be None
    newer: bool = False  # whether it may be missing, in files from before there was such a part

    def fits(self, value: Any, sizes: dict[str, int]) -> bool:
        """Whether a value is that; names of sizes that are new are added to `sizes`."""
        if value is None and self.optional:
            return True
        kind, listed = type(value), type(value) in (list, tuple)
        if kind in (np.ndarray, StoredArray):
            kind = value.dtype.type
        if kind not in (self.kind if isinstance(self.kind, tuple) else (self.kind,)):
            return False
        if self.shape is not None:
            shape = (len(value),) if listed else value.shape
            pairs = zip(self.shape, shape, strict=False)
            if len(shape) != len(self.shape) or not all(_fits_size(*p, sizes) for p in pairs):
                return False
        if listed:
            return self.items is None or all(self.items.fits(item, sizes) for item in value)
        if self.among and value not in self.among:
            return False
        if isinstance(value, np.ndarray) and value.dtype.kind == "c":
            return bool(np.isfinite(value).all())
        if isinstance(value, np.ndarray):
            return self._fits_range(value, sizes)
        if isinstance(value, int | float):
            within = self._is_within(value, value, sizes)
            return within and (not self.size or _fits_size(self.size, value, sizes))
        return True

    def _fits_range(self, value: Any, sizes: dict[str, int]) -> bool:
        with np.errstate(invalid="ignore"):
            if value.size and not self._is_within(value.min().item(), value.max().item(), sizes):
                return False
            if self.sums and not (np.abs(value.sum(axis=-1) - 1.0) < ROUNDING).all():
                return False
            return not self.rising or bool((value[1:] > value[:-1]).all())

    def _is_within(self, low: float, high: float, sizes: dict[str, int]) -> bool:
        end = sizes[self.below] if isinstance(self.below, str) else self.below
        return self.least <= low and high <= self.most and (end is None or high < end)


def _fits_size(expected: Any, size: Any, sizes: dict[str, int]) -> bool:
    if not isinstance(expected, str):
        return expected is None or bool(expected == size)
    if " " not in expected:
        return sizes.setdefault(expected, size) == size
    first, second = expected.split()
    if first not in sizes and sizes.get(second):
        sizes[first] = size // sizes[second]
    return math.prod((sizes[first], sizes[second])) == size


def check_fields(
    fields: Mapping[str, Field], values: Any, what: str, **sizes: int
) -> dict[str, int]:
    """Raise ValueError unless named values are what a table of fields says; return the named sizes.

    Of arrays that have not been read yet (`StoredArray`), types and shapes are checked.

    >>> fields = {"x": Field(np.float64, ("n",)), "places": Field(np.int64, ("k",), 0, below="n")}
    >>> check_fields(fields, {"x": np.ones(3), "places": np.array([2])}, "point")
    {'n': 3, 'k': 1}
    """
    needed = {name for name, field in fields.items() if not field.newer}
    if not isinstance(values, dict) or not needed <= values.keys() <= fields.keys():
        raise ValueError(f"this archive does not hold the state of a {what}")
    for name, field in fields.items():
        if name in values and not field.fits(values[name], sizes):
            raise ValueError(f"this archive holds a {what} whose {name.strip('_')} does not fit")
    return sizes


# -- parts -----------------------------------------------------------------------------------------


class Part:
    """A class that declares its state in annotations: fields, and other parts.

    Of these, files, copies and pickles are made. Another part is a class of this kind, a named tuple of
    fields, `Growing` or a dict of such tuples, or a class that says by ``SAVED``, ``saved`` and ``read``
    what it is in a file. Sizes have the same meaning in all, unless a part is annotated with other names
    for them.

    >>> class Mean(Part):
    ...     count: Annotated[int, Field(int, least=0)]
    ...     total: Annotated[Any, Field(np.float64, ("n",))]
    >>> list(declared(Mean))
    ['count', 'total']
    """

    def derive(self) -> None:
        """Set what follows from the declared state."""

    def check(self) -> None:
        """Raise ValueError if a state that was read from a file does not fit together."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in declared(type(self))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, _writable(value))
        self.derive()


def _writable(value: Any) -> Any:
    """Copy arrays that were unpickled from read-only memory: compiled loops write to them."""
    if hasattr(value, "_make"):
        return value._make(map(_writable, value))
    return np.require(value, None, "W") if isinstance(value, np.ndarray) else value


class Growing(Generic[T]):
    """Named tables whose first `size` rows are in use; room doubles, so a new row costs constant time."""

    def __init__(self, tables: T, size: int = 0) -> None:
        self.size = size
        self.tables: Any = tables

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.size, self.tables = state["size"], _writable(state["tables"])

    @property
    def known(self) -> Any:
        """The rows in use."""
        return self.tables._make(table[: self.size] for table in self.tables)

    def grow(self, size: int) -> slice:
        """Use up to `size` rows, and return which of them are new."""
        room, old = len(self.tables[0]), self.size
        if size > room:
            more = max(size, 2 * room, 16) - room
            self.tables = self.tables._make(_pad(table, more, 0) for table in self.tables)
        self.size = max(old, size)
        return slice(old, self.size)

    def widen(self, *widths: int) -> None:
        """Add columns of zeros to the first tables, up to these widths."""
        pairs = zip(self.tables, widths, strict=False)
        wider = [_pad(table, 0, width - table.shape[1]) for table, width in pairs]
        self.tables = self.tables._make((*wider, *self.tables[len(wider) :]))

    def drop(self, count: int) -> None:
        """Forget the oldest rows."""
        for table in self.tables:
            table[: self.size - count] = table[count : self.size].copy()
        self.size -= count

    def keep(self, rows: Any) -> None:
        """Keep only these rows, in this order."""
        for table in self.tables:
            table[: rows.size], table[rows.size : self.size] = table[rows], 0
        self.size = rows.size


def _pad(table: Any, rows: int, columns: int) -> Any:
    """Add rows of zeros to a table or a vector, and columns of zeros to a table."""
    wider = np.zeros(
        [n + more for n, more in zip(table.shape, (rows, columns), strict=False)], table.dtype
    )
    wider[tuple(map(slice, table.shape))] = table  # new rows take no memory before they are used
    return wider


class Nested(NamedTuple):
    """A part of another part."""

    kind: Any  # its class
    holder: Any = None  # `Growing`, or dict
    sizes: Mapping[str, Any] = {}  # other names, or numbers, for its sizes; {} is the key in a dict


def declared(cls: Any) -> dict[str, Field | Nested]:
    """Return what the annotations of a class and its bases declare, by name."""
    return _declared(cls)


@cache
def _declared(cls: Any) -> dict[str, Field | Nested]:
    found: dict[str, Field | Nested] = {}
    for name, hint in get_type_hints(cls, include_extras=True).items():
        kind, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        extra = extras[0] if extras else {}
        holder = get_origin(kind) if get_origin(kind) in (Growing, dict) else None
        inner = get_args(kind)[-1] if holder else kind
        if isinstance(extra, Field):
            found[name] = extra
        elif isinstance(inner, type) and (
            issubclass(inner, Part) or hasattr(inner, "SAVED") or hasattr(inner, "_fields")
        ):
            found[name] = Nested(inner, holder, extra)
    return found


_KEYS = Field(list, items=Field(int, least=0, below=1 << 31))


def _fields(
    table: Mapping[str, Field | Nested],
    given: Mapping[str, Any],
    prefix: str = "",
    sizes: Mapping[str, Any] = {},
) -> dict[str, Field]:
    """Return all fields of a table of parts, by dotted name; `given` has the keys of dicts."""
    found: dict[str, Field] = {}
    for name, spec in table.items():
        path = prefix + name
        if isinstance(spec, Field):
            shape = spec.shape and tuple(_renamed(size, sizes) for size in spec.shape)
            below = _renamed(spec.below, sizes)
            same = not sizes or (shape, below) == (spec.shape, spec.below)
            found[path] = spec if same else replace(spec, shape=shape, below=below)
        elif hasattr(spec.kind, "SAVED"):
            found[path] = spec.kind.SAVED
        else:
            places = [path]
            if spec.holder is dict:
                keys = given.get(path)
                places = [f"{path}.{k}" for k in keys] if isinstance(keys, list) else []
                found[path] = _KEYS
            for place in places:
                own = {
                    n: _renamed(s.format(place) if isinstance(s, str) else s, sizes)
                    for n, s in spec.sizes.items()
                }
                found |= _fields(declared(spec.kind), given, f"{place}.", {**sizes, **own})
    return found


def _renamed(size: Any, sizes: Mapping[str, Any]) -> Any:
    if not isinstance(size, str) or " " not in size:
        return sizes.get(size, size)
    return " ".join(sizes.get(word, word) for word in size.split())


def _values(part: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield all that a part declares as it is in a file, by dotted name."""
    if hasattr(part, "SAVED"):
        yield prefix, part.saved()
        return
    state = part._asdict() if hasattr(part, "_asdict") else part.__getstate__()
    for name, spec in declared(type(part)).items():
        value, path = state[name], f"{prefix}.{name}"
        if isinstance(spec, Field):
            yield path, value
        elif spec.holder is dict:
            yield path, list(value)
            for k, each in value.items():
                yield from _values(each, f"{path}.{k}")
        else:
            yield from _values(value.known if spec.holder is Growing else value, path)


def _made(spec: Field | Nested, values: Mapping[str, Any], path: str) -> Any:
    """Return what was written under a name, if it fits together."""
    if isinstance(spec, Field):
        return values[path]
    cls, holder, _ = spec
    if hasattr(cls, "SAVED"):
        return cls.read(values[path])
    if holder is dict:
        return {k: _made(Nested(cls), values, f"{path}.{k}") for k in values[path]}
    state = {name: _made(own, values, f"{path}.{name}") for name, own in declared(cls).items()}
    if not issubclass(cls, Part):
        tables = cls(**state)
        return Growing(tables, len(tables[0])) if holder else tables
    part = cls.__new__(cls)
    part.__setstate__(state)
    part.check()
    return part


# -- files -----------------------------------------------------------------------------------------


def state_of(parts: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the numbers and the arrays of parts, by dotted name; None is for what is not there."""
    values = dict(
        pair for name, part in parts.items() if part is not None for pair in _values(part, name)
    )
    arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    return {name: value for name, value in values.items() if name not in arrays}, arrays


def write_state(
    path: PathLike, kind: str, settings: Mapping[str, Any], parts: Mapping[str, Any]
) -> None:
    """Write settings and parts to one file."""
    numbers, arrays = state_of(parts)
    write_archive(path, kind, {**settings, "state": numbers}, arrays)


def read_state(
    path: PathLike,
    kind: str,
    settings: Mapping[str, Any],
    parts: Mapping[str, Any],
    optional: str = "",
) -> list[Any]:
    """Return the settings and then the parts, of these classes, that `write_state` wrote.

    Names, types and shapes are checked before any array is read, and limits before a part is made. An
    optional part of which the file has nothing is None.
    """
    fields = {**settings, "state": Field(dict)}

    def present(values: Mapping[str, Any]) -> dict[str, Nested]:
        there = {name.partition(".")[0] for name in values}
        found = {name: Nested(cls) for name, cls in parts.items()}
        return {name: part for name, part in found.items() if name != optional or name in there}

    table: dict[str, Field] = {}

    def check(archive: Archive) -> None:
        nonlocal table  # the same before and after arrays are read
        check_fields(fields, archive.settings, kind)
        values = archive.settings["state"] | archive.arrays
        table = table or _fields(present(values), values)
        check_fields(table, values, kind)

    with enough_memory(path):
        archive = read_archive(path, check, kind)
        values = archive.settings.pop("state") | archive.arrays
        with refused(f"{path} does not hold the state of a {kind}"):
            held = {name: _made(spec, values, name) for name, spec in present(values).items()}
        return [archive.settings, *(held.get(name) for name in parts)]

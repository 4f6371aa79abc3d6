"""Declared state: a class says once what its arrays and numbers are; files, copies and pickles follow."""

from __future__ import annotations

import inspect
import math
import sys
import typing
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, Generic, NamedTuple, TypeVar, cast, get_args, get_origin

import numpy as np

from driftwolfe import storage
from driftwolfe.storage import Archive, PathLike, StoredArray

LARGEST_FLOAT = sys.float_info.max
#: The least of limits: numbers above 0.
POSITIVE = math.ulp(0.0)
#: By how much sums that are 1 may be off.
ROUNDING = 1e-6
T = TypeVar("T")


@dataclass(frozen=True)
class Field:
    """What one part of a saved state must be."""

    kind: Any = None  # the exact type, or several; NumPy's scalar types stand for arrays of them
    #: Of an array, or the length of a list or tuple: numbers, None for any, names of sizes, "a b" for a product.
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
    like: str = ""  # the name, among the sizes, of a point of the same type and shape

    def fits(self, value: Any, sizes: dict[str, int]) -> bool:
        """Return whether a value is that; new names of sizes are added to `sizes`."""
        if value is None and self.optional:
            return True
        kind, listed = type(value), type(value) in (list, tuple)
        if kind in (np.ndarray, StoredArray):
            kind = value.dtype.type
        if self.like:
            point: Any = sizes[self.like]
            if type(value) is not type(point) or value.shape != point.shape:
                return False
            if isinstance(value, np.ndarray) and kind is not np.float64:
                return False
        elif kind not in (self.kind if isinstance(self.kind, tuple) else (self.kind,)):
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
        if isinstance(value, np.ndarray):
            return self._fits_range(value, sizes)
        if isinstance(value, int | float):
            within = self._is_within(value, value, sizes)
            return within and (not self.size or _fits_size(self.size, value, sizes))
        return True

    def _fits_range(self, value: Any, sizes: dict[str, int]) -> bool:
        if value.dtype.kind == "c":
            return bool(np.isfinite(value).all())
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
    """Raise ValueError unless values, read or not, are what a table of fields says; return the named sizes."""
    if not isinstance(values, dict) or values.keys() != fields.keys():
        raise ValueError(
            f"this archive does not hold the state of a {what} of this version; load it with the "
            "version that wrote it"
        )
    for name, field in fields.items():
        if not field.fits(values[name], sizes):
            raise ValueError(f"this archive holds a {what} whose {name.strip('_')} does not fit")
    return sizes


# -- parts -----------------------------------------------------------------------------------------


class Stateful:
    """A class that declares in annotations which of its attributes change: fields, and other parts.

    A part is a class of this kind, a tuple of such, a named tuple of fields, `Growing` or a dict of such
    tuples, or a class that says by ``SAVED``, ``saved`` and ``read`` what it is in a file. Names of sizes
    mean the same in all, unless a part is annotated with other names for them, or has its own.
    """

    def derive(self) -> None:
        """Set what follows from the declared state."""

    def check(self) -> None:
        """Raise ValueError if a state that was read from a file does not fit together."""

    def undoable(self, before: Mapping[str, Any]) -> bool:
        """Whether an update is undone by setting attributes as before it: no array was written to."""
        return True

    def own_sizes(self) -> dict[str, Any] | None:
        """Return the sizes that fields refer to by name; None: those of what it is a part of."""
        return None


class Part(Stateful):
    """A class whose declared state is all there is: files, copies and pickles hold no more."""

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

    def __deepcopy__(self, memo: Any) -> Growing[T]:
        return Growing(self.tables._make(table.copy() for table in self.known), self.size)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.size, self.tables = state["size"], _writable(state["tables"])

    @property
    def known(self) -> Any:
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

    def keep(self, rows: Any) -> None:
        """Keep only these rows, in this order."""
        for table in self.tables:
            table[: rows.size], table[rows.size : self.size] = table[rows], 0
        self.size = rows.size


def _pad(table: Any, rows: int, columns: int) -> Any:
    """Add rows and columns of zeros; new rows take no memory before they are used."""
    more = zip(table.shape, (rows, columns), strict=False)
    wider = np.zeros([size + added for size, added in more], table.dtype)
    wider[tuple(map(slice, table.shape))] = table
    return wider


class Nested(NamedTuple):
    """A part of another part."""

    kind: Any = Stateful  # its class, or one that it inherits from
    holder: Any = None  # `Growing`, dict or tuple
    sizes: Mapping[str, Any] = {}  # other names, or numbers, for its sizes; {} is the key in a dict


@cache
def _declared(cls: Any) -> dict[str, Field | Nested]:
    found: dict[str, Field | Nested] = {}
    for base in reversed(cls.__mro__):
        for name, hint in inspect.get_annotations(base).items():
            text = getattr(hint, "__forward_arg__", hint)  # of named tuples
            spec = _spec(_evaluated(text, base) if isinstance(text, str) else hint)
            if spec is not None:
                found[name] = spec
    return found


#: Return what the annotations of a class and its bases declare, by name.
declared: Callable[[Any], dict[str, Field | Nested]] = _declared


def _evaluated(hint: str, cls: type) -> Any:
    """Return what an annotation means; None where a user's class has one for type checkers only."""
    if hint.startswith(("ClassVar", "typing.ClassVar")):
        return None
    try:
        one = SimpleNamespace(__annotations__={"it": hint})
        known = vars(sys.modules[cls.__module__])
        return typing.get_type_hints(one, known, dict(vars(cls)), include_extras=True)["it"]
    except NameError as error:
        if "State" in hint or cls.__module__.startswith("driftwolfe."):
            raise TypeError(f"{cls.__name__} declares {hint}, and {error}") from error
        return None


def _spec(hint: Any) -> Field | Nested | None:
    kind, *extras = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    extra = extras[0] if extras else {}
    if isinstance(extra, Field | Nested):
        return extra
    if isinstance(kind, UnionType):  # of a part and None
        kind = get_args(kind)[0]
    holder = get_origin(kind) if get_origin(kind) in (Growing, dict, tuple) else None
    inner = get_args(kind)[0 if holder is tuple else -1] if holder else kind
    if not isinstance(inner, type) or (hasattr(inner, "_fields") and not declared(inner)):
        return None
    known = issubclass(inner, Stateful) or hasattr(inner, "SAVED") or hasattr(inner, "_fields")
    return Nested(inner, holder, extra) if known else None


#: Declarations that many parts share, and that of an attribute which stays as it was when it was made:
#: of the same type, and of the same shape but for the length of arrays.
Count = Annotated[int, Field(int, least=0, below=1 << 62)]
Size = Annotated[float, Field(float, least=0.0)]
State = Annotated[T, Field()]
#: A point of the set's kind, what a constructor checks by itself, and the keys of a dict.
POINT, PLAIN = Field(like="point"), Field((int, float, str), optional=True)
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
            found[path] = replace(spec, shape=shape, below=_renamed(spec.below, sizes))
        elif hasattr(spec.kind, "SAVED"):
            found[path] = spec.kind.SAVED
        else:
            places = [path]
            if spec.holder is dict:
                keys = given.get(path)
                places = [f"{path}.{k}" for k in keys] if isinstance(keys, list) else []
                found[path] = _KEYS
            for place in places:
                own = {n: _renamed(size, sizes, place) for n, size in spec.sizes.items()}
                found |= _fields(declared(spec.kind), given, f"{place}.", {**sizes, **own})
    return found


def _renamed(size: Any, sizes: Mapping[str, Any], place: str = "") -> Any:
    """Return a size, or a product of two, by its name in the whole; "{}" is the place of its part."""
    if not isinstance(size, str):
        return size
    words = [sizes.get(word, word) for word in size.format(place).split()]
    return words[0] if len(words) == 1 else " ".join(words)


def _values(part: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield all that a part declares as it is in a file, by dotted name."""
    if hasattr(part, "SAVED"):
        yield prefix, part.saved()
        return
    state = part._asdict() if hasattr(part, "_asdict") else part.__getstate__()
    for name, spec in declared(type(part)).items():
        value = state[name] if name in state else getattr(part, name)
        path = f"{prefix}.{name}" if prefix else name
        if isinstance(spec, Field):
            yield path, value
            continue
        if spec.holder is dict:
            yield path, list(value)
        for place, each in _inner(spec, value, path):
            yield from _values(each, place)


def _inner(spec: Nested, value: Any, path: str) -> list[tuple[str, Any]]:
    """Return the parts that are nested under a name, by theirs."""
    if spec.holder in (tuple, dict):
        items = value.items() if spec.holder is dict else enumerate(value)
        return [(f"{path}.{k}", each) for k, each in items]
    if value is None:
        return []
    return [(path, value.known if spec.holder is Growing else value)]


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


# -- values ----------------------------------------------------------------------------------------


class Kind(NamedTuple):
    """How objects of one class are saved."""

    of: Any  # the class
    make: Callable[..., Any] | None = None  # from its fields by name, if not the class
    table: Mapping[str, Field] = {}  # its fields, if not those that the class declares


class Writer:
    """Turns values into JSON, and collects their arrays; what appears twice is written once, and is one when read.

    A class that is saved like another names its kind in ``SAVED_AS``.
    """

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._kinds, self._names = kinds, {kind.of: name for name, kind in kinds.items()}
        self.arrays: dict[str, Any] = {}  # by dotted name
        self._known: dict[int, tuple[Any, dict[str, Any]]] = {}

    def write(self, value: Any, path: str) -> Any:
        """Return a value as JSON; its arrays have names that begin with the path."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": repr(value)}
        if type(value) is list or type(value) is tuple:
            items = [self.write(item, f"{path}.{k}") for k, item in enumerate(value)]
            return items if type(value) is list else {"tuple": items}
        if type(value) is dict:
            return {"dict": {k: self.write(item, f"{path}.{k}") for k, item in value.items()}}
        if id(value) in self._known:
            return self._known[id(value)][1]
        if isinstance(value, np.ndarray) or hasattr(value, "__dlpack_device__"):
            array = value if isinstance(value, np.ndarray) else value.detach().cpu().numpy()
            # The order in memory is kept, so that sums come out bit-identical.
            turned = array.flags.f_contiguous and not array.flags.c_contiguous
            self.arrays[path] = array.T if turned else array
            written: dict[str, Any] = {"turned" if turned else "array": path}
        else:
            name = self._names.get(type(value), "") or getattr(value, "SAVED_AS", "")
            if not name:
                raise TypeError(f"a {type(value).__name__} cannot be written to a file")
            fields = self._kinds[name].table or declared(self._kinds[name].of)
            parts = {part: self.write(getattr(value, part), f"{path}.{part}") for part in fields}
            written = {name: parts, "number": len(self._known)}
        same = {"same": written["number"]} if "number" in written else written
        self._known[id(value)] = (
            value,
            same,
        )  # which holds the value, so that its id stays its own
        return written

    def write_part(self, part: Any) -> dict[str, Any]:
        """Return the declared state of a part as JSON; arrays that are named like it are left out."""
        written = {path: self.write(value, path) for path, value in _values(part, "")}
        return {path: value for path, value in written.items() if value != {"array": path}}


class Reader:
    """Turns what `Writer` wrote into values again; anything else is refused with a ValueError."""

    def __init__(self, kinds: Mapping[str, Kind], archive: Archive) -> None:
        self.kinds, self._given = kinds, archive.arrays
        self._state = archive.settings.get("state", {})
        self._uses = Counter(array_names(archive.settings))
        self._arrays: dict[tuple[str, str], Any] = {}
        self._made: dict[Any, Any] = {}

    def read(self, written: Any, depth: int = 0) -> Any:
        if depth > 40:
            raise ValueError("this archive is nested too deeply")
        if written is None or isinstance(written, bool | int | float | str):
            return written
        if isinstance(written, list):
            return [self.read(item, depth + 1) for item in written]
        if not isinstance(written, dict) or not 1 <= len(written) <= 2:
            raise ValueError("this archive holds something unknown")
        name, content = next(iter(written.items()))
        if name == "tuple" and isinstance(content, list):
            return tuple(self.read(content, depth))
        if name == "dict" and isinstance(content, dict):
            return {k: self.read(item, depth + 1) for k, item in content.items()}
        if name == "float" and content in ("inf", "-inf", "nan"):
            return float(content)
        if name in ("array", "turned") and isinstance(content, str) and content in self._given:
            if (name, content) not in self._arrays:
                array = self._given[content]
                self._arrays[name, content] = array.T if name == "turned" else array
            return self._arrays[name, content]
        if name == "same" and isinstance(content, int) and content in self._made:
            return self._made[content]
        number = written.get("number")
        if name in self.kinds and isinstance(content, dict) and isinstance(number, int):
            kind = self.kinds[name]
            parts = {part: self.read(value, depth + 1) for part, value in content.items()}
            check_fields(kind.table or cast(Any, declared(kind.of)), parts, name)
            self._made[number] = made = (kind.make or kind.of)(**parts)
            return made
        raise ValueError("this archive holds something unknown")

    def restore(self, part: Any) -> None:
        """Set the declared state of a part that was made the same way; what does not fit is refused."""
        own = {name for name in self._given.keys() - self._uses.keys() if "/" not in name}
        paths = {path for path, _ in _values(part, "")}
        if not own | self._state.keys() <= paths <= self._given.keys() | self._state.keys():
            raise ValueError(f"this archive does not hold the state of a {type(part).__name__}")
        self._restore(part, "", {})

    def _restore(self, part: Any, prefix: str, sizes: dict[str, Any]) -> None:
        if (own := part.own_sizes()) is not None:
            sizes = own
        for name, spec in declared(type(part)).items():
            path, old = prefix + name, getattr(part, name)
            if isinstance(spec, Nested):
                for place, each in _inner(spec, old, path):
                    self._restore(each, f"{place}.", sizes)
                continue
            written = self._state.get(path, {"array": path})
            new = self.read(written)
            if not (_like(old) if spec == Field() else spec).fits(new, sizes):
                whose = f"{type(part).__name__} whose {name.strip('_')}"
                raise ValueError(f"this archive holds a {whose} does not fit")
            if isinstance(new, np.ndarray):
                (source,) = written.values()
                # A file may say that two of them are one array; loops write to each by itself.
                if self._uses[source] > (path in self._state):
                    new = np.array(new, order="K")
            setattr(part, name, new)
        try:
            part.derive()
            part.check()
        except (TypeError, LookupError, ArithmeticError) as error:
            raise ValueError(f"this archive holds no {type(part).__name__}: {error}") from error


def _like(old: Any) -> Field:
    """What may take the place of a value: of arrays, any number of rows."""
    if type(old) is int:
        return Field(int, least=1 - (1 << 62), below=1 << 62)
    if hasattr(old, "__dlpack_device__"):  # a tensor is read as an array, and put there again
        kind = old.dtype.type if isinstance(old, np.ndarray) else np.float64
        return Field(kind, (None, *old.shape[1:]))
    return Field(type(old), getattr(old, "shape", None))


def array_names(written: Any) -> Iterator[str]:
    """The names of the arrays that JSON of ours refers to, as often as it does."""
    left = [written]
    while left:  # not recursive: a file may be nested as deeply as JSON allows
        part = left.pop()
        if isinstance(part, dict):
            yield from (part[key] for key in ("array", "turned") if isinstance(part.get(key), str))
            left += part.values()
        elif isinstance(part, list):
            left += part


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
    storage.write_archive(path, kind, {**settings, "state": numbers}, arrays)


def read_state(
    path: PathLike,
    kind: str,
    settings: Mapping[str, Any],
    parts: Mapping[str, Any],
    optional: str = "",
) -> list[Any]:
    """Return the settings and the parts, of these classes, that `write_state` wrote; None for an optional one.

    Names, types and shapes are checked before any array is read, and limits before a part is made.
    """
    fields = {**settings, "state": Field(dict)}

    def present(values: Mapping[str, Any]) -> dict[str, Nested]:
        there = {name.partition(".")[0] for name in values}
        return {n: Nested(cls) for n, cls in parts.items() if n != optional or n in there}

    def check(archive: Archive) -> None:
        check_fields(fields, archive.settings, kind)
        values = archive.settings["state"] | archive.arrays
        check_fields(_fields(present(values), values), values, kind)

    with storage.enough_memory(path):
        archive = storage.read_archive(path, check, kind)
        values = archive.settings.pop("state") | archive.arrays
        with storage.refused(f"{path} does not hold the state of a {kind}"):
            held = {name: _made(spec, values, name) for name, spec in present(values).items()}
        return [archive.settings, *(held.get(name) for name in parts)]

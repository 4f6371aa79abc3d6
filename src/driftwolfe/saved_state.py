"""Saved states of learners: objects become JSON and arrays."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftwolfe.state import Field, check_fields
from driftwolfe.storage import Archive


class Kind(NamedTuple):
    """How objects of one class are saved."""

    of: type  # the class
    fields: Mapping[str, Field]  # the attributes that make it up
    make: Callable[..., Any]  # makes one from these by name; it checks how they fit together


class TreeWriter:
    """Turns values into JSON, and collects their arrays; tensors are written as arrays.

    An array, or an object of a known kind, that appears twice is written once, and is one again
    when it is read. A class that is saved like another names its kind in ``SAVED_AS``.
    """

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._kinds, self._names = kinds, {kind.of: name for name, kind in kinds.items()}
        self.arrays: dict[str, NDArray[Any]] = {}  # by the names that the JSON has for them
        self._known: dict[int, tuple[Any, dict[str, Any]]] = {}

    def write(self, value: Any) -> Any:
        """Return the value as JSON."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": repr(value)}
        if type(value) is list or type(value) is tuple:
            return {type(value).__name__: [self.write(item) for item in value]}
        if id(value) in self._known:
            return self._known[id(value)][1]
        if isinstance(value, np.ndarray) or hasattr(value, "__dlpack_device__"):
            array = value if isinstance(value, np.ndarray) else value.detach().cpu().numpy()
            name = str(len(self.arrays))
            # The order in memory is kept, so that sums come out bit-identical.
            turned = array.flags.f_contiguous and not array.flags.c_contiguous
            self.arrays[name] = array.T if turned else array
            written: dict[str, Any] = {"turned" if turned else "array": name}
        else:
            name = self._names.get(type(value), "") or getattr(value, "SAVED_AS", "")
            if not name:
                raise TypeError(f"a {type(value).__name__} cannot be written to a file")
            parts = {part: self.write(getattr(value, part)) for part in self._kinds[name].fields}
            written = {name: parts, "number": len(self._known)}
        self._known[id(value)] = (value, written)  # holds the value, so that its id stays its own
        return written

    def write_state(self, thing: Any) -> dict[str, Any]:
        """Return the attributes that the class of an object lists in ``STATE``, as JSON."""
        written: dict[str, Any] = {}
        for name in state_names(thing):
            value = getattr(thing, name)
            if _several(value):
                written[name] = [self.write_state(each) for each in value]
            else:
                written[name] = self.write_state(value) if state_names(value) else self.write(value)
        return written


class TreeReader:
    """Turns what `TreeWriter` wrote into values again; anything else is refused with a ValueError.

    Arrays that the archive refers to more than once are copied: two readers of it share nothing.
    """

    def __init__(self, kinds: Mapping[str, Kind], archive: Archive) -> None:
        self._kinds, self._given = kinds, archive.arrays
        uses = Counter(array_names(archive.settings))
        self._shared = {name for name, times in uses.items() if times > 1}
        self._arrays: dict[tuple[str, str], NDArray[Any]] = {}
        self._made: dict[int, tuple[str, Any]] = {}

    def read(self, written: Any, depth: int = 0) -> Any:
        """Return the value."""
        if depth > 40:
            raise ValueError("this archive is nested too deeply")
        if written is None or isinstance(written, bool | int | float | str):
            return written
        if not isinstance(written, dict) or not 1 <= len(written) <= 2:
            raise ValueError("this archive holds something unknown")
        name, content = next(iter(written.items()))
        if name in ("list", "tuple") and isinstance(content, list):
            items = [self.read(item, depth + 1) for item in content]
            return items if name == "list" else tuple(items)
        if name == "float" and content in ("inf", "-inf", "nan"):
            return float(content)
        if name in ("array", "turned") and isinstance(content, str) and content in self._given:
            if (name, content) not in self._arrays:
                array = self._given[content]
                array = array.copy() if content in self._shared else array
                self._arrays[name, content] = array.T if name == "turned" else array
            return self._arrays[name, content]
        number = written.get("number")
        if name in self._kinds and isinstance(content, dict) and isinstance(number, int):
            if number not in self._made:
                parts = {part: self.read(value, depth + 1) for part, value in content.items()}
                check_fields(self._kinds[name].fields, parts, name)
                self._made[number] = (name, self._kinds[name].make(**parts))
            if self._made[number][0] == name:
                return self._made[number][1]
        raise ValueError("this archive holds something unknown")

    def read_state(self, thing: Any, written: Any) -> None:
        """Set the state of an object that was made the same way; what does not fit is refused."""
        names, what = state_names(thing), type(thing).__name__
        if not isinstance(written, dict) or set(written) != set(names):
            raise ValueError(f"this archive does not hold the state of a {what}")
        for name in names:
            old = getattr(thing, name)
            if state_names(old):
                self.read_state(old, written[name])
                continue
            if _several(old):
                check_fields({name: Field(list, (len(old),))}, {name: written[name]}, what)
                for each, state in zip(old, written[name], strict=True):
                    self.read_state(each, state)
                continue
            new = self.read(written[name])
            check_fields({name: _like(old)}, {name: new}, what)
            if isinstance(new, np.ndarray) and self._shared.intersection(
                array_names(written[name])
            ):
                # A file may say that two of them are one array; loops write to each by itself.
                new = np.array(new, order="K")
            setattr(thing, name, new)
        if hasattr(thing, "check_state"):
            thing.check_state()


def state_names(thing: Any) -> list[str]:
    """Return the attributes listed in the ``STATE`` of its classes."""
    return [name for base in type(thing).__mro__ for name in base.__dict__.get("STATE", ())]


def _several(value: Any) -> bool:
    """Whether it is a tuple of objects that have states."""
    return isinstance(value, tuple) and bool(value) and all(map(state_names, value))


def _like(old: Any) -> Field:
    """What may take the place of a value: of arrays, any number of rows."""
    if isinstance(old, int) and not isinstance(old, bool):
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

"""Nested plain data, arrays and objects of a few known kinds, as JSON and named arrays."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Lists within lists: nothing of ours is deeper.
DEEPEST = 40


class Kind(NamedTuple):
    """How objects of one class are taken apart, and put together from what a file says.

    Attributes
    ----------
    of
        The class.
    parts
        Names of the attributes that make it up.
    make
        Makes one from these by name; it checks them, as they may come from anywhere.
    """

    of: type
    parts: tuple[str, ...]
    make: Callable[..., Any]


def array_names(written: Any) -> Iterator[str]:
    """The names of the arrays that JSON of ours speaks of, as often as it does."""
    left = [written]
    while left:  # a file may be nested as deeply as JSON allows
        part = left.pop()
        if isinstance(part, list):
            left += part
        elif isinstance(part, dict):
            for key, value in part.items():
                if key in ("array", "turned") and isinstance(value, str):
                    yield value
                else:
                    left.append(value)


def shared_names(written: Any) -> set[str]:
    """The names of the arrays that JSON of ours speaks of more than once."""
    return {name for name, times in Counter(array_names(written)).items() if times > 1}


class TreeWriter:
    """Turns values into JSON, and puts arrays aside.

    An array, or an object of a known kind, that appears twice is written once, and is one again
    when it is read. Tensors are written as arrays; a class whose ``SAVED_AS`` names a kind, as objects
    of that kind.

    Attributes
    ----------
    arrays
        By the names that the JSON has for them.
    """

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._names = {kind.of: name for name, kind in kinds.items()}
        self._kinds = kinds
        self.arrays: dict[str, NDArray[Any]] = {}
        self._seen: dict[int, tuple[Any, dict[str, Any]]] = {}

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
        if id(value) in self._seen:
            return self._seen[id(value)][1]
        if isinstance(value, np.ndarray) or hasattr(value, "__dlpack_device__"):
            array = value if isinstance(value, np.ndarray) else value.detach().cpu().numpy()
            name = str(len(self.arrays))
            # The order in memory is kept: sums come out the same to the last bit.
            turned = array.flags.f_contiguous and not array.flags.c_contiguous
            self.arrays[name] = array.T if turned else array
            return self._remember(value, {"turned" if turned else "array": name})
        name = self._names.get(type(value), "") or getattr(value, "SAVED_AS", "")
        if not name:
            raise TypeError(f"a {type(value).__name__} cannot be written to a file")
        parts = {part: self.write(getattr(value, part)) for part in self._kinds[name].parts}
        return self._remember(value, {name: parts, "number": len(self._seen)})

    def _remember(self, value: Any, written: dict[str, Any]) -> dict[str, Any]:
        # The value is kept, so that no other can have its id.
        self._seen[id(value)] = (value, written)
        return written


class TreeReader:
    """Turns what `TreeWriter` wrote into values again; anything else is refused with a ValueError.

    Parameters
    ----------
    kinds
        How objects are put together.
    arrays
        Arrays by name. They become parts of what is read, and are not copied.
    shared
        Names of those that are read more than once, or by several readers: these are copied, so that
        every reader has its own. None: all of them.
    """

    def __init__(
        self,
        kinds: Mapping[str, Kind],
        arrays: Mapping[str, NDArray[Any]],
        shared: Collection[str] | None = None,
    ) -> None:
        self._kinds = kinds
        self._given = arrays
        self._shared = arrays.keys() if shared is None else shared
        self._arrays: dict[str, NDArray[Any]] = {}
        self._copies: set[int] = set()
        self._made: dict[int, tuple[str, Any]] = {}

    def read(self, written: Any, depth: int = 0) -> Any:
        """Return the value."""
        if depth > DEEPEST:
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
            return self._array(content, name == "turned")
        if name in self._kinds and isinstance(content, dict):
            return self._object(name, content, written.get("number"), depth)
        raise ValueError("this archive holds something unknown")

    def is_shared(self, array: NDArray[Any]) -> bool:
        """Whether other values that were read, or will be, may hold the same array."""
        return id(array) in self._copies

    def _array(self, name: str, turned: bool) -> NDArray[Any]:
        if name not in self._arrays:
            array = self._given[name]
            self._arrays[name] = array.copy() if name in self._shared else array
        if turned and self._arrays[name].flags.c_contiguous:
            self._arrays[name] = self._arrays[name].T
        if name in self._shared:
            self._copies.add(id(self._arrays[name]))
        return self._arrays[name]

    def _object(self, name: str, content: dict[str, Any], number: Any, depth: int) -> Any:
        kind = self._kinds[name]
        if set(content) != set(kind.parts) or not isinstance(number, int):
            raise ValueError(f"this archive holds a {name} that is not complete")
        if number in self._made:
            known, made = self._made[number]
            if known != name:
                raise ValueError("this archive holds one thing as two kinds")
            return made
        parts = {part: self.read(value, depth + 1) for part, value in content.items()}
        made = kind.make(**parts)
        self._made[number] = (name, made)
        return made

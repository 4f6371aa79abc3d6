"""Numbers for ids, in the order in which they appear."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Ids:
    """Anything hashable, numbered 0, 1, 2, ... in order of appearance.

    >>> ids = Ids(["ann"])
    >>> numbers, new = ids.number(["bob", "ann", "bob"])
    >>> numbers, new
    (array([1, 0, 1]), ['bob'])
    >>> ids.add(new)
    >>> ids.find(["bob", "eve"])
    array([ 1, -1])
    """

    def __init__(self, names: Iterable[Hashable] = ()) -> None:
        self.names: list[Any] = []
        self._numbers: dict[Any, int] = {}
        self.add(names)

    def __len__(self) -> int:
        return len(self.names)

    def find(self, keys: Sequence[Hashable]) -> NDArray[np.int64]:
        """Return the number of each key; -1 for one never seen."""
        get = self._numbers.get
        return np.fromiter((get(key, -1) for key in keys), np.int64, len(keys))

    def number(self, keys: Sequence[Hashable]) -> tuple[NDArray[np.int64], list[Any]]:
        """Return the number that each key has or will have once the new ones, in a list, are added."""
        numbers = self.find(keys)
        new: dict[Any, int] = {}
        for place in np.flatnonzero(numbers < 0).tolist():
            numbers[place] = new.setdefault(keys[place], len(self.names) + len(new))
        return numbers, list(new)

    def add(self, names: Iterable[Hashable]) -> None:
        """Give new keys the next numbers."""
        for name in names:
            self._numbers[name] = len(self.names)
            self.names.append(name)

"""Sets of windows that can be bounded together and split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from driftwolfe.points.kinds import Array

#: Rounds ``start, ..., end - 1``, counted from 0.
Window = tuple[int, int]


class Windows(Protocol):
    """Some windows, not none."""

    @property
    def core(self) -> Window:
        """The rounds that all of them hold; start = end where there are none."""

    @property
    def single(self) -> bool:
        """Whether it is one window only."""

    def best(self, sums: Array) -> tuple[float, Window]:
        """Return the largest ``sums[end] - sums[start]`` of a window, and that window."""

    def split(self) -> list[Windows]:
        """Return two or more smaller sets with the same windows."""


@dataclass(frozen=True, slots=True)
class OneLength:
    """Windows of one length, with starts from `first` to `last`.

    >>> windows = OneLength(3, first=0, last=2)
    >>> windows.core, windows.best(np.array([0.0, 1.0, 5.0, 5.0, 7.0, 7.0]))
    ((2, 3), (6.0, (1, 4)))
    """

    length: int
    first: int
    last: int

    @property
    def core(self) -> Window:
        """The rounds that all of them hold."""
        return self.last, max(self.last, self.first + self.length)

    @property
    def single(self) -> bool:
        """Whether it is one window only."""
        return self.first == self.last

    def best(self, sums: Array) -> tuple[float, Window]:
        """Return the largest difference of sums, and its window."""
        starts, ends = sums[self.first : self.last + 1], sums[self.first + self.length :]
        differences = ends[: len(starts)] - starts
        start = self.first + int(differences.argmax())
        return float(differences.max()), (start, start + self.length)

    def split(self) -> list[Windows]:
        """Return the first and the second half of the starts."""
        middle = (self.first + self.last) // 2
        return [
            OneLength(self.length, self.first, middle),
            OneLength(self.length, middle + 1, self.last),
        ]


@dataclass(frozen=True, slots=True)
class AnyLength:
    """Windows with starts and ends in two ranges, the start before the end.

    >>> windows = AnyLength((0, 1), (2, 4))
    >>> windows.core, windows.best(np.array([0.0, -1.0, 5.0, 4.0, 4.0]))
    ((1, 2), (6.0, (1, 2)))
    """

    starts: tuple[int, int]
    ends: tuple[int, int]

    @property
    def core(self) -> Window:
        """The rounds that all of them hold."""
        return self.starts[1], max(self.starts[1], self.ends[0])

    @property
    def single(self) -> bool:
        """Whether it is one window only."""
        return self.starts[0] == self.starts[1] and self.ends[0] == self.ends[1]

    def best(self, sums: Array) -> tuple[float, Window]:
        """Return the largest difference of sums, and its window."""
        (first, last), (shortest, longest) = self.starts, self.ends
        lowest = np.minimum.accumulate(sums[first : last + 1])
        ends = np.arange(max(shortest, first + 1), longest + 1)
        differences = sums[ends] - lowest[np.minimum(ends - 1, last) - first]
        end = int(ends[differences.argmax()])
        start = first + int(sums[first : min(end, last + 1)].argmin())
        return float(differences.max()), (start, end)

    def split(self) -> list[Windows]:
        """Return the halves of the wider range, without those that hold no window."""
        (first, last), (shortest, longest) = self.starts, self.ends
        halves: list[AnyLength]
        if last - first > longest - shortest:
            middle = (first + last) // 2
            halves = [
                AnyLength((first, middle), self.ends),
                AnyLength((middle + 1, last), self.ends),
            ]
        else:
            middle = (shortest + longest) // 2
            halves = [
                AnyLength(self.starts, (shortest, middle)),
                AnyLength(self.starts, (middle + 1, longest)),
            ]
        return [half for half in halves if half.starts[0] < half.ends[1]]

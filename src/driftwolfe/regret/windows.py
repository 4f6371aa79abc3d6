"""The window of a game with the largest regret."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from driftwolfe.points.kinds import Array, Point
from driftwolfe.regret.objective import floor, pool
from driftwolfe.regret.offline import minimise
from driftwolfe.regret.record import Record, Regret, check_record
from driftwolfe.regret.solvers import Bracket

#: Rounds ``start, ..., end - 1``, counted from 0.
Window: TypeAlias = tuple[int, int]

#: Error of a single window's minimum, as a share of the accuracy asked for, and of the minimum that
#: bounds several, as a share of what they must lose to be ruled out.
_SINGLE_ACCURACY, _CORE_ACCURACY = 0.25, 0.1


@dataclass(frozen=True, slots=True)
class Windows:
    """All windows with starts and ends in two inclusive ranges, the start before the end.

    With a `length`, only those of that length; the ranges are then equally long.

    >>> sums = np.array([0.0, -1.0, 5.0, 4.0, 4.0])
    >>> windows = Windows((0, 1), (2, 4))
    >>> windows.core, windows.best(sums)
    ((1, 2), (6.0, (1, 2)))
    >>> windows = Windows.of_length(3, first=0, last=1)
    >>> windows.core, windows.best(sums)
    ((1, 3), (5.0, (1, 4)))
    """

    starts: tuple[int, int]
    ends: tuple[int, int]
    length: int | None = None

    @classmethod
    def of_length(cls, length: int, first: int, last: int) -> Windows:
        """Return the windows of one length with starts from `first` to `last`."""
        return cls((first, last), (first + length, last + length), length)

    @property
    def core(self) -> Window:
        """The rounds that all of them hold; start = end where there are none."""
        return self.starts[1], max(self.starts[1], self.ends[0])

    @property
    def single(self) -> bool:
        """Whether it is one window only."""
        return self.starts[0] == self.starts[1] and self.ends[0] == self.ends[1]

    def best(self, sums: Array) -> tuple[float, Window]:
        """Return the largest ``sums[end] - sums[start]`` of a window, and that window."""
        (first, last), (first_end, last_end) = self.starts, self.ends
        if self.length is not None:
            differences = sums[first_end : last_end + 1] - sums[first : last + 1]
            start = first + int(differences.argmax())
            return float(differences.max()), (start, start + self.length)
        lowest = np.minimum.accumulate(sums[first : last + 1])
        ends = np.arange(max(first_end, first + 1), last_end + 1)
        differences = sums[ends] - lowest[np.minimum(ends - 1, last) - first]
        end = int(ends[differences.argmax()])
        start = first + int(sums[first : min(end, last + 1)].argmin())
        return float(differences.max()), (start, end)

    def split(self) -> list[Windows]:
        """Return the halves of the wider range, without those that hold no window."""
        (first, last), (first_end, last_end) = self.starts, self.ends
        if self.length is not None:
            return [self.of_length(self.length, *half) for half in _halves(first, last)]
        if last - first > last_end - first_end:
            halves = [Windows(starts, self.ends) for starts in _halves(first, last)]
        else:
            halves = [Windows(self.starts, ends) for ends in _halves(first_end, last_end)]
        return [half for half in halves if half.starts[0] < half.ends[1]]


def _halves(first: int, last: int) -> list[tuple[int, int]]:
    middle = (first + last) // 2
    return [(first, middle), (middle + 1, last)]


@dataclass(frozen=True, slots=True)
class _Node:
    """Some windows, whose losses sum to `lower` at least on the rounds of `core`.

    `final`: this is a single window, and its minimum has been found.
    """

    windows: Windows
    core: Window
    lower: float
    start: Point
    final: bool = False


class WindowSearch:
    r"""Best-first branch and bound over windows.

    A window W that holds a core C has
    :math:`\min F_W \ge \min F_C + \sum_{t \in W \setminus C} \min f_t`. So one certified minimum over
    the rounds that a set of windows shares bounds all their regrets from above, and its minimiser
    bounds one of them from below. The set with the largest upper bound comes first: its core is
    solved, then it is split. The search ends when no upper bound exceeds the largest regret found by
    more than the accuracy.

    Parameters
    ----------
    record
        The game.
    tolerance
        Accuracy, relative to the larger of the regret found and the absolute losses on its window.
    """

    def __init__(self, record: Record, tolerance: float) -> None:
        check_record(record)
        self._domain, self._functions = record.domain, record.functions
        for function in self._functions:
            function.check_shape(self._domain.shape)
        self._tolerance = tolerance
        self._origin = self._domain.origin()
        at_origin = [function.value(self._origin) for function in self._functions]
        self._floors = _sums([floor(function, self._domain) for function in self._functions])
        self._suffered = _sums(record.losses)
        self._sizes = _sums(np.abs(record.losses))
        self._beyond_origin = self._suffered - _sums(at_origin)
        self._best = Regret(-math.inf)

    def run(self, roots: Iterable[Windows], lengths: Sequence[int]) -> Regret:
        """Return the largest regret on any of the windows, which have these lengths, certified."""
        heap: list[tuple[float, int, _Node]] = []
        order = itertools.count()
        for windows in roots:
            self._offer(*windows.best(self._beyond_origin), self._origin)
            node = _Node(windows, (0, 0), 0.0, self._origin)
            heapq.heappush(heap, (-self._upper(node), next(order), node))
        ceiling = -math.inf
        while heap and -heap[0][0] > self._best + self._accuracy:
            upper, _, node = heapq.heappop(heap)
            children = self._children(node, -upper)
            if not children:
                ceiling = max(ceiling, -upper)
            for child in children:
                bound = min(-upper, self._upper(child))
                heapq.heappush(heap, (-bound, next(order), child))
        if heap:
            ceiling = max(ceiling, -heap[0][0])
        best = self._best
        return Regret(best, max(0.0, ceiling - best), best.window, best.comparators, lengths)

    @property
    def _accuracy(self) -> float:
        return self._tolerance * max(abs(self._best), _on(self._best.window, self._sizes))

    def _children(self, node: _Node, upper: float) -> list[_Node]:
        """The node with its core solved, or its parts; none if it is final."""
        if node.final:
            return []
        start, end = node.windows.core
        if node.windows.single or end - start > node.core[1] - node.core[0]:
            return [self._solve(node, upper)]
        return [_Node(part, node.core, node.lower, node.start) for part in node.windows.split()]

    def _upper(self, node: _Node) -> float:
        """An upper bound on the regret of every window of a node."""
        excess = self._suffered - self._floors
        most, _ = node.windows.best(excess)
        return most - _on(node.core, excess) + _on(node.core, self._suffered) - node.lower

    def _solve(self, node: _Node, upper: float) -> _Node:
        """The node with the minimum over all rounds that its windows have in common."""
        core = node.windows.core
        unsolved = _Node(node.windows, core, 0.0, node.start)  # for the target below
        accuracy = _SINGLE_ACCURACY * self._accuracy
        if not node.windows.single:
            accuracy = max(accuracy, _CORE_ACCURACY * (upper - self._best))
        bracket = Bracket(
            self._domain,
            allowed=accuracy,
            lower=_on(core, self._floors),
            # If the minimum is at least this, no window of the node can beat the best one.
            target=self._upper(unsolved) - self._best - self._accuracy,
        )
        objective = pool(self._functions[slice(*core)])
        starts = (node.start, self._origin, *self._best.comparators)
        minimise(objective, min(starts, key=objective.value), bracket)
        # The most promising window, against the minimiser of the core:
        _, (start, end) = node.windows.best(self._suffered - self._floors)
        outside = (*self._functions[start : core[0]], *self._functions[core[1] : end])
        total = bracket.value + math.fsum(loss.value(bracket.point) for loss in outside)
        self._offer(_on((start, end), self._suffered) - total, (start, end), bracket.point)
        return _Node(node.windows, core, bracket.lower, bracket.point, node.windows.single)

    def _offer(self, value: float, window: Window, comparator: Point) -> None:
        if value > self._best:
            self._best = Regret(value, window=window, comparators=(comparator,))


def _sums(values: Array | list[float]) -> Array:
    """The sums of the first 0, 1, 2, ... values."""
    return np.concatenate(([0.0], np.cumsum(values)))


def _on(window: Window, sums: Array) -> float:
    return float(sums[window[1]] - sums[window[0]])

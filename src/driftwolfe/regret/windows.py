"""Regret with its certificate, and the window of a game where it is largest."""

from __future__ import annotations

import heapq
import itertools
import math
import sys
import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self, TypeAlias

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.losses import Loss
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Point
from driftwolfe.regret.objective import floor, pool
from driftwolfe.regret.offline import Bracket, minimise

#: Rounds ``start, ..., end - 1``, counted from 0.
Window: TypeAlias = tuple[int, int]


class Record(Protocol):
    """A finished game, as the measures need it; `driftwolfe.game.History` is one."""

    domain: Domain
    losses: Array  # of the decisions
    functions: list[Loss]


def check_record(history: Record, on_set: bool = True) -> int:
    """Return the number of rounds, or raise `ValueError` if the game cannot be measured."""
    if on_set and history.domain is None:
        raise ValueError("the game names no set; play a Stream with its domain")
    rounds = len(history.losses)
    if rounds == 0:
        raise ValueError("the history holds no rounds; play at least one before measuring")
    if len(history.functions) != rounds:
        raise ValueError(
            "the history lacks loss functions; keep them by play(..., keep_losses=True)"
        )
    return rounds


class Certified(float):
    """A float with a certificate: the truth lies between it and `upper`, which is it plus `gap`.

    Parameters
    ----------
    value, gap
        The lower end of the interval, and its width: 0 where the number is exact up to rounding.

    Examples
    --------
    >>> length = Certified(3.0, gap=0.5)
    >>> length + 1, length.gap, length.upper
    (4.0, 0.5, 3.5)
    """

    gap: float

    def __new__(cls, value: float, gap: float = 0.0) -> Self:
        number = super().__new__(cls, value)
        number.gap = float(gap)
        return number

    @property
    def upper(self) -> float:
        """The upper end of the interval."""
        return float(self) + self.gap

    def __repr__(self) -> str:
        return f"{type(self).__name__}({float(self):.6g}, gap={self.gap:.2g})"

    def __str__(self) -> str:
        return repr(float(self))


class Regret(Certified):
    """The loss of a learner beyond that of its comparators.

    Parameters
    ----------
    value, gap
        The regret against `comparators`, and how much larger it may be, in units of the loss.
    window, comparators, lengths
        The rounds ``losses[start:end]`` it was measured on; a point for each, or one for all; and the
        lengths of the windows among which this one has the largest regret, empty for the whole game.

    Examples
    --------
    >>> Regret(7.25, gap=0.5, window=(0, 100))
    Regret(7.25, gap=0.5, window=(0, 100))
    """

    window: Window
    comparators: tuple[Point, ...]
    lengths: Sequence[int]

    def __new__(
        cls,
        value: float,
        gap: float = 0.0,
        window: Window = (0, 0),
        comparators: tuple[Point, ...] = (),
        lengths: Sequence[int] = (),
    ) -> Self:
        regret = super().__new__(cls, value, gap)
        regret.window, regret.comparators, regret.lengths = window, comparators, lengths
        return regret

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, window={self.window})"


class Windows(NamedTuple):
    """All windows, or those of one length, with starts and ends in two inclusive ranges."""

    starts: tuple[int, int]
    ends: tuple[int, int]
    length: int | None = None

    @classmethod
    def of_length(cls, length: int, first: int, last: int) -> Windows:
        return cls((first, last), (first + length, last + length), length)

    @property
    def core(self) -> Window:
        """The rounds that all of them hold; start = end where there are none."""
        return self.starts[1], max(self.starts[1], self.ends[0])

    @property
    def single(self) -> bool:
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
        starts, ends, length = self
        by_start = length is not None or starts[1] - starts[0] > ends[1] - ends[0]
        first, last = starts if by_start else ends
        middle = (first + last) // 2
        halves = [(first, middle), (middle + 1, last)]
        if length is not None:
            return [self.of_length(length, *half) for half in halves]
        parts = [Windows(half, ends) if by_start else Windows(starts, half) for half in halves]
        return [part for part in parts if part.starts[0] < part.ends[1]]


class _Node(NamedTuple):
    """Some windows, whose losses sum to `lower` at least on the rounds of `core`."""

    windows: Windows
    core: Window
    lower: float
    start: Point


class WindowSearch:
    r"""Best-first branch and bound over windows.

    A window W with the core C has :math:`\min F_W \ge \min F_C + \sum_{t \in W \setminus C} \min f_t`.
    So a certified minimum over the rounds that windows share bounds all their regrets from above, and its
    minimiser one from below. The set with the largest bound comes first: its core is solved, then it is split.
    """

    def __init__(
        self, record: Record, tolerance: float, time_limit: float | None, progress: bool | None
    ) -> None:
        limit = math.inf if time_limit is None else checks.nonnegative(time_limit, "time_limit")
        self._deadline = time.monotonic() + limit
        self._tolerance = checks.nonnegative(tolerance, "tolerance")
        self._progress = sys.stderr.isatty() if progress is None else progress
        self._domain, self._functions = record.domain, record.functions
        self._origin = self._domain.origin()
        at_origin = [function.value(self._origin) for function in self._functions]
        self._floors = _sums([floor(function, self._domain) for function in self._functions])
        self._suffered = _sums(record.losses)
        self._sizes = _sums(np.abs(record.losses))
        self._beyond_origin = self._suffered - _sums(at_origin)
        self._excess = self._suffered - self._floors
        self._best = Regret(-math.inf)

    def run(self, lengths: Sequence[int]) -> Regret:
        """Return the largest regret on any window of one of these lengths, certified."""
        heap: list[tuple[float, int, _Node]] = []
        order, rounds = itertools.count(), len(self._functions)
        roots = [Windows.of_length(length, 0, rounds - length) for length in lengths]
        if len(lengths) == rounds:  # all windows: one set of them is searched with fewer minima
            roots = [Windows((0, rounds - 1), (1, rounds))]
        for windows in roots:
            self._offer(*windows.best(self._beyond_origin), self._origin)
            node = _Node(windows, (0, 0), 0.0, self._origin)
            heapq.heappush(heap, (-self._upper(node), next(order), node))
        from tqdm import tqdm  # slow to import

        ceiling = -math.inf
        bar = tqdm(unit="minimum", leave=False, delay=1.0, disable=not self._progress)
        while heap and -heap[0][0] > self._best + self._accuracy:
            if time.monotonic() >= self._deadline:
                break
            bar.set_postfix_str(f"gap {-heap[0][0] - self._best:.3g}", refresh=False)
            bar.update()
            negative, _, node = heapq.heappop(heap)
            upper, (start, end) = -negative, node.windows.core
            if node.windows.single:
                ceiling = max(ceiling, min(upper, self._upper(self._solve(node, upper))))
                continue
            if end - start > node.core[1] - node.core[0]:
                children = [self._solve(node, upper)]
            else:
                children = [node._replace(windows=part) for part in node.windows.split()]
            for child in children:
                bound = min(upper, self._upper(child))
                heapq.heappush(heap, (-bound, next(order), child))
        bar.close()
        if heap:
            ceiling = max(ceiling, -heap[0][0])
        best = self._best
        return Regret(best, max(0.0, ceiling - best), best.window, best.comparators, lengths)

    @property
    def _accuracy(self) -> float:
        return self._tolerance * max(abs(self._best), _on(self._best.window, self._sizes))

    def _upper(self, node: _Node) -> float:
        """An upper bound on the regret of every window of a node."""
        most, _ = node.windows.best(self._excess)
        return most + _on(node.core, self._floors) - node.lower

    def _solve(self, node: _Node, upper: float) -> _Node:
        """The node with the minimum over all rounds that its windows have in common."""
        core, accuracy = node.windows.core, 0.25 * self._accuracy
        if not node.windows.single:  # a tenth of what the windows must lose to be ruled out
            accuracy = max(accuracy, 0.1 * (upper - self._best))
        bracket = Bracket(
            self._domain,
            absolute=accuracy,
            lower=_on(core, self._floors),
            deadline=self._deadline,
            # If the minimum is at least this, no window of the node can beat the best one.
            target=self._upper(node._replace(core=core, lower=0.0)) - self._best - self._accuracy,
        )
        objective = pool(self._functions[slice(*core)])
        starts = (node.start, self._origin, *self._best.comparators)
        minimise(objective, min(starts, key=objective.value), bracket)
        # The most promising window, against the minimiser of the core:
        _, (start, end) = node.windows.best(self._excess)
        outside = (*self._functions[start : core[0]], *self._functions[core[1] : end])
        total = bracket.value + math.fsum(loss.value(bracket.point) for loss in outside)
        self._offer(_on((start, end), self._suffered) - total, (start, end), bracket.point)
        return _Node(node.windows, core, bracket.lower, bracket.point)

    def _offer(self, value: float, window: Window, comparator: Point) -> None:
        if value > self._best:
            self._best = Regret(value, window=window, comparators=(comparator,))


def _sums(values: Array | list[float]) -> Array:
    """The sums of the first 0, 1, 2, ... values."""
    return np.concatenate(([0.0], np.cumsum(values)))


def _on(window: Window, sums: Array) -> float:
    return float(sums[window[1]] - sums[window[0]])

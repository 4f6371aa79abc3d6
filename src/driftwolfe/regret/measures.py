"""Static, dynamic and adaptive regret, each with its certificate; path length, variation, violation."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from itertools import count, pairwise
from typing import NamedTuple, Self, TypeAlias

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.game import History
from driftwolfe.losses import LinearLoss, Loss, SquaredDistance
from driftwolfe.points import checks, distance
from driftwolfe.points.kinds import Array, Point
from driftwolfe.regret.objective import floor, pool
from driftwolfe.regret.offline import Bracket, OfflineMinimum, minimise, offline_minimum

#: Rounds ``start, ..., end - 1``, counted from 0.
Window: TypeAlias = tuple[int, int]


def check_record(history: History, on_set: bool = True) -> int:
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
    window, comparators
        The rounds ``losses[start:end]`` it was measured on; and a point for each, or one for all.

    Examples
    --------
    >>> Regret(7.25, gap=0.5, window=(0, 100))
    Regret(7.25, gap=0.5, window=(0, 100))
    """

    window: Window
    comparators: tuple[Point, ...]

    def __new__(
        cls,
        value: float,
        gap: float = 0.0,
        window: Window = (0, 0),
        comparators: tuple[Point, ...] = (),
    ) -> Self:
        regret = super().__new__(cls, value, gap)
        regret.window, regret.comparators = window, comparators
        return regret

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, window={self.window})"


def static_regret(history: History, tolerance: float = 1e-6) -> Regret:
    r"""Return the regret against the best fixed point in hindsight.

    .. math:: \sum_{t=1}^T f_t(x_t) - \min_{x \in K} \sum_{t=1}^T f_t(x)

    The result is against the point found, its comparator; the true regret is at most `gap` larger.

    Parameters
    ----------
    history, tolerance
        A game with its losses kept, and the relative gap of the minimum; see `offline_minimum`.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> losses = [dw.losses.LinearLoss([sign, 0.0]) for sign in (1.0, -1.0, 1.0)]
    >>> history = dw.play(dw.OGD(dw.L1Ball(2), horizon=3, lipschitz=1.0), losses)
    >>> regret = dw.regret.static_regret(history)
    >>> round(regret, 4), regret.comparators[0], regret.gap < 1e-9
    (2.1547, array([-1.,  0.]), True)
    """
    check_record(history)
    return _regret(history, [offline_minimum(history.domain, history.functions, None, tolerance)])


def dynamic_regret(history: History, comparators: Sequence[Point] | Array) -> Regret:
    r"""Return the regret against a sequence of comparators, exact up to rounding.

    .. math:: \sum_{t=1}^T f_t(x_t) - \sum_{t=1}^T f_t(u_t)

    Parameters
    ----------
    history, comparators
        A game with its losses kept, and one point :math:`u_t` of the set per round.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> losses = [dw.losses.LinearLoss([sign, 0.0]) for sign in (1.0, -1.0, 1.0)]
    >>> history = dw.play(dw.OGD(dw.L1Ball(2), horizon=3, lipschitz=1.0), losses)
    >>> round(dw.regret.dynamic_regret(history, [[-1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]), 4)
    4.1547
    """
    rounds = check_record(history, on_set=False)
    if (number := len(comparators)) != rounds:
        raise ValueError(
            f"comparators must hold one point for each of {rounds} rounds, got {number}"
        )
    check = checks.as_point if history.domain is None else history.domain.check_point
    points = [check(point, "a comparator") for point in comparators]
    pairs = zip(history.functions, points, strict=True)
    return _regret(history, [OfflineMinimum(u, loss.value(u), 0.0, 0) for loss, u in pairs])


def worst_case_dynamic_regret(history: History, tolerance: float = 1e-4) -> Regret:
    r"""Return the regret against the minimiser of every single round.

    .. math:: \sum_{t=1}^T f_t(x_t) - \sum_{t=1}^T \min_{x \in K} f_t(x)

    No comparators are harder; with noisy losses it says little. The result is against those found;
    the true regret is at most `gap` larger.

    Parameters
    ----------
    history, tolerance
        As in `static_regret`; the gap is that of every minimum.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> losses = [dw.losses.LinearLoss([sign, 0.0]) for sign in (1.0, -1.0, 1.0)]
    >>> history = dw.play(dw.OGD(dw.L1Ball(2), horizon=3, lipschitz=1.0), losses)
    >>> round(dw.regret.worst_case_dynamic_regret(history), 4)
    4.1547
    """
    check_record(history)
    best: list[OfflineMinimum] = []
    for function in history.functions:
        start = best[-1].point if best else None  # the last minimiser may be near
        best.append(offline_minimum(history.domain, [function], start, tolerance))
    return _regret(history, best)


def _regret(history: History, best: Sequence[OfflineMinimum]) -> Regret:
    """Return the regret on the whole game against minima that add up to it."""
    value = math.fsum(history.losses) - math.fsum(each.value for each in best)
    points = tuple(each.point for each in best)
    return Regret(value, math.fsum(each.gap for each in best), (0, len(history.losses)), points)


def adaptive_regret(
    history: History, tau: int, tolerance: float = 1e-4, *, progress: bool | None = None
) -> Regret:
    r"""Return the largest regret on any window of `tau` rounds, against its own best fixed point.

    .. math:: \max_{1 \le s \le T-\tau+1} \Big(\sum_{t=s}^{s+\tau-1} f_t(x_t)
              - \min_{x \in K} \sum_{t=s}^{s+\tau-1} f_t(x)\Big)

    The result is that on its `window` against the point found there; the maximum is at most `gap`
    larger (Daniely, Gonen, Shalev-Shwartz 2015, Strongly adaptive online learning). The search is quick
    where the regret has a peak, as after an abrupt change.

    Parameters
    ----------
    history, tau
        A game with its losses kept, and the length of the windows, in rounds.
    tolerance
        Gap to stop at, relative to the larger of the regret and the absolute losses on its window.
    progress
        Whether to show a progress bar with the gap, by default only on a terminal.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> losses = [dw.losses.LinearLoss([slope, 0.0]) for slope in [1.0] * 20 + [-1.0] * 20]
    >>> history = dw.play(dw.OGD(dw.L1Ball(2), horizon=40, lipschitz=1.0), losses)
    >>> regret = dw.regret.adaptive_regret(history, tau=10)
    >>> round(regret, 3), regret.window, regret.gap < 1e-2
    (7.359, (20, 30), True)
    """
    rounds = check_record(history)
    length = _window(tau, rounds)
    windows = Windows.of_length(length, 0, rounds - length)
    return WindowSearch(history, tolerance).run(windows, progress)


def _window(tau: int, rounds: int) -> int:
    if (length := checks.count(tau, "tau")) > rounds:
        raise ValueError(f"tau must be at most the {rounds} rounds of the history, got {tau}")
    return length


def weak_adaptive_regret(
    history: History, tolerance: float = 1e-4, *, progress: bool | None = None
) -> Regret:
    r"""Return the largest regret on any window, against its own best fixed point.

    .. math:: \max_{1 \le s \le e \le T} \Big(\sum_{t=s}^{e} f_t(x_t)
              - \min_{x \in K} \sum_{t=s}^{e} f_t(x)\Big)

    The result is the regret on its `window` against the point found there; the maximum over all
    windows is at most `gap` larger (Hazan, Seshadhri 2009, Efficient learning algorithms for
    changing environments).

    Parameters
    ----------
    history, tolerance, progress
        As in `adaptive_regret`.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> losses = [dw.losses.LinearLoss([slope, 0.0]) for slope in [1.0] * 20 + [-1.0] * 20]
    >>> history = dw.play(dw.OGD(dw.L1Ball(2), horizon=40, lipschitz=1.0), losses)
    >>> regret = dw.regret.weak_adaptive_regret(history)
    >>> round(regret, 3), regret.gap < 1e-2
    (7.359, True)
    """
    rounds = check_record(history)
    return WindowSearch(history, tolerance).run(Windows((0, rounds - 1), (1, rounds)), progress)


def violation(history: History, tau: int | None = None) -> float:
    r"""Return how much the decisions of a game violated the constraints, in units of the constraints.

    .. math:: \sum_t \max(g_t(x_t), 0), \qquad\text{or}\qquad
              \max_s \sum_{t=s}^{s+\tau-1} \max(g_t(x_t), 0).

    Parameters
    ----------
    history, tau
        A game played with constraints; and rounds of a window, for the largest violation on any
        window of that length.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> loss, limit = dw.losses.LinearLoss([1.0]), dw.losses.LinearLoss([-1.0], constant=-0.5)
    >>> learner = dw.OGD(dw.L2Ball(1), horizon=4, lipschitz=1.0)
    >>> history = dw.play(learner, [loss] * 4, constraints=[limit] * 4)  # x >= -0.5 is wanted
    >>> dw.regret.violation(history), dw.regret.violation(history, tau=2)
    (1.5, 1.0)
    """
    rounds, values = len(history.losses), history.constraint_values
    if len(values) != rounds:
        raise ValueError("the game was played without constraints: give them to play")
    positive = np.maximum(values, 0.0)
    if tau is None:
        return math.fsum(positive)
    return float(np.convolve(positive, np.ones(_window(tau, rounds)), "valid").max())


def path_length(comparators: Sequence[Point] | Array) -> float:
    r"""Return the path length of comparators, :math:`P = \sum_{t=2}^T \lVert u_t - u_{t-1}\rVert`.

    See Zinkevich (2003), Online convex programming and generalized infinitesimal gradient ascent.

    Parameters
    ----------
    comparators
        The points :math:`u_t`: a sequence, or an array with the rounds along its first axis.

    Examples
    --------
    >>> import numpy as np
    >>> path_length(np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 4.0], [3.0, 5.0]]))
    6.0
    """
    points = (checks.as_point(point, "a comparator") for point in comparators)
    return math.fsum(distance(now, before) for before, now in pairwise(points))


def function_variation(losses: Sequence[Loss], domain: Domain) -> Certified:
    r"""Return the variation of losses, :math:`V = \sum_{t=2}^T \sup_{x \in K} |f_t(x) - f_{t-1}(x)|`.

    Exact, by two LMO calls per round, where the difference of two losses is linear (linear losses,
    squared distances of one weight). For others it is an interval, usually wide: its lower end is from
    vertices found by the LMO; its upper end, `gap` above, from Lipschitz bounds, or infinite. See
    Besbes, Gur, Zeevi (2015), Non-stationary stochastic optimization.

    Parameters
    ----------
    losses, domain
        The losses, in order, and the set K.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> losses = [dw.losses.LinearLoss(g) for g in ([1.0, 0.0], [0.0, 1.0], [0.0, -1.0])]
    >>> function_variation(losses, dw.L1Ball(2))
    Certified(3, gap=0)
    """
    changes = [_change(before, now, domain) for before, now in pairwise(losses)]
    lower = math.fsum(low for low, _ in changes)
    return Certified(lower, math.fsum(high for _, high in changes) - lower)


def _change(before: Loss, now: Loss, domain: Domain) -> tuple[float, float]:
    """Return bounds on the largest difference of two losses on the set, from below and from above."""
    if before is now:
        return 0.0, 0.0
    linear = type(before) is type(now) is LinearLoss or (
        type(before) is type(now) is SquaredDistance and before.weight == now.weight
    )
    largest = upper = 0.0
    for sign in (1.0, -1.0):  # vertices in the direction of its growth, and of its fall
        x = domain.origin()
        for _ in range(1 if linear else 8):
            old_value, old_slope = before.value_and_gradient(x)
            new_value, new_slope = now.value_and_gradient(x)
            largest = max(largest, abs(new_value - old_value))
            x, error = domain.lmo_with_error((old_slope - new_slope) * sign)
        last = abs(now.value(x) - before.value(x))
        largest = max(largest, last)
        upper = max(upper, largest, last + error)
    if linear:
        return largest, upper
    rise, new_rise = before.lipschitz(domain), now.lipschitz(domain)
    if rise is None or new_rise is None:
        return largest, math.inf
    # By the slopes of the difference, or by the ranges of both, whichever is smaller.
    old, new = (loss.value(domain.origin()) for loss in (before, now))
    by_slopes = abs(new - old) + (rise + new_rise) * domain.radius
    highest, new_highest = old + rise * domain.radius, new + new_rise * domain.radius
    by_ranges = max(highest - floor(now, domain), new_highest - floor(before, domain))
    return largest, min(by_slopes, by_ranges)


# -- the worst window ---------------------------------------------------------------------------------


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
    r"""Best-first branch and bound: a minimum over rounds that windows share bounds the regrets of all of them."""

    def __init__(self, record: History, tolerance: float) -> None:
        self._tolerance = checks.nonnegative(tolerance, "tolerance")
        self._domain, self._functions = record.domain, record.functions
        self._origin = self._domain.origin()
        at_origin = [function.value(self._origin) for function in self._functions]
        self._floors = _sums([floor(function, self._domain) for function in self._functions])
        self._suffered = _sums(record.losses)
        self._sizes = _sums(np.abs(record.losses))
        self._beyond_origin = self._suffered - _sums(at_origin)
        self._excess = self._suffered - self._floors
        self._best = Regret(-math.inf)

    def run(self, windows: Windows, progress: bool | None) -> Regret:
        """Return the largest regret on any of these windows, certified."""
        self._offer(*windows.best(self._beyond_origin), self._origin)
        root, order, ceiling = _Node(windows, (0, 0), 0.0, self._origin), count(), -math.inf
        heap = [(-self._upper(root), next(order), root)]
        from tqdm import tqdm  # slow to import

        hidden = None if progress is None else not progress
        bar = tqdm(unit="minimum", leave=False, delay=1.0, disable=hidden)
        while heap and -heap[0][0] > self._best + self._accuracy:
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
        return Regret(best, max(0.0, ceiling - best), best.window, best.comparators)

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

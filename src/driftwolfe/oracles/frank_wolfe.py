"""Frank-Wolfe runs towards a point: the pair (x, y), when to stop, known vertices, half-spaces."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.points import FactoredMatrix, checks, inner, norm
from driftwolfe.points.kinds import Point
from driftwolfe.points.ops import FactorBuffer, line_search_step
from driftwolfe.state import POINT, Field, Stateful
from driftwolfe.storage import require

R = TypeVar("R")
#: A run that yields a direction, an accuracy and, or None, a value that is `enough` for each LMO call, is sent
#: the vertex and its error, and returns its result.
LMORequests: TypeAlias = Generator[tuple[Point, float, float | None], tuple[Point, float], R]
#: ||x||^2, <x, y>, ||y||^2.
Scalars: TypeAlias = tuple[float, float, float]

#: Largest error of a vertex, as a fraction of the gap, that `approach` does not try to avoid.
_ERROR_FRACTION = 0.03
#: A gap of at most this fraction of ||x - y||^2 makes y' = x' nearer to every point of K than y is.
COLLAPSE = 0.5
#: Columns of y' beyond twice those of x' from which it is recompressed.
_SPARE_COLUMNS = 40
#: `HalfspaceRun` makes at most this times D^2 / tolerance calls of an exact oracle; the proof is in
#: docs/theory/oracles.md.
CALLS = 2.6


class Pair:
    """A feasible point x that moves by Frank-Wolfe steps, and its target y.

    Dense points keep the residual x - y. Others keep the `scalars`, and never touch all entries; if x lies in a
    `buffer`, its steps copy nothing.
    """

    scalars: Scalars

    def __init__(
        self, x: Point, y: Point, scalars: Scalars | None = None, buffer: FactorBuffer | None = None
    ) -> None:
        self.dense = isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
        self.x, self.y = x, y
        self._residual: Point = None
        if self.dense:
            self.x, self._residual = np.array(x), x - y
            self.squared = inner(self._residual, self._residual)
            return
        self._buffer = buffer or FactorBuffer(None, None, 0)  # which holds no point
        self._expand(*(scalars or (inner(x, x), inner(x, y), inner(y, y))))
        self._ranks = [getattr(point, "rank", 0) for point in (x, y)]

    @property
    def distance(self) -> float:
        """||x - y||."""
        return math.sqrt(self.squared)

    def direction(self) -> Point:
        """The gradient x - y of half the squared distance."""
        if self._residual is None:
            self._residual = self.x - self.y
        return self._residual

    def gap_at(self, vertex: Point) -> float:
        """Return the gap <x - y, x - v>, and remember it and v for `step`."""
        if self.dense:
            self._move = vertex - self.x
            self.gap = -inner(self._residual, self._move)
            return self.gap
        self._move = vertex
        self.slope, self._xv = self._buffer.inner(vertex, self.direction(), self.x)
        self.gap = self.scalars[0] - self.scalars[1] - self.slope  # the slope is <x - y, v>
        return self.gap

    def enough(self, gap: float) -> float | None:
        """Return the value <x - y, v> below which v has a larger gap; None for dense points."""
        return None if self.dense else self.scalars[0] - self.scalars[1] - gap

    def step(self) -> bool:
        """Move x to the nearest point to y on the segment to v; return whether that gained anything."""
        if not self.gap > 0:
            return False
        before, vv = self.squared, inner(self._move, self._move)
        if self.dense:
            self._move *= line_search_step(self.gap, vv)
            self.x = self.x + self._move  # results keep earlier ones
            self._residual += self._move
            self.squared = inner(self._residual, self._residual)
            return self.squared < before
        (xx, xy, yy), xv, yv = self.scalars, self._xv, self._xv - self.slope
        fraction = line_search_step(self.gap, vv - 2 * xv + xx)
        rest = 1.0 - fraction
        mixed = self._buffer.mix(rest, self.x, fraction, self._move)
        self.x, self._residual = self._trimmed(0, mixed), None
        xx = rest**2 * xx + 2 * fraction * rest * xv + fraction**2 * vv
        self._expand(xx, rest * xy + fraction * yv, yy)
        return self.squared < before

    def pull(self, fraction: float) -> None:
        """Move the target towards x: y <- y + fraction (x - y)."""
        if self.dense:
            self._residual *= 1.0 - fraction
            self.y = self.x - self._residual
        else:
            self.y = self._trimmed(1, (1.0 - fraction) * self.y + fraction * self.x)
            self._residual = None
            xx, xy, yy = self.scalars
            yy = (1 - fraction) ** 2 * yy + 2 * fraction * (1 - fraction) * xy + fraction**2 * xx
            self.scalars = xx, (1 - fraction) * xy + fraction * xx, yy
        self.squared *= (1.0 - fraction) ** 2

    def _expand(self, xx: float, xy: float, yy: float) -> None:
        """Compute ||x - y||^2 from the scalars, or directly where they cancel."""
        if not xx + yy < 1e307:
            raise ValueError("a target is beyond the range of numbers; use a smaller step_scale")
        self.scalars = xx, xy, yy
        self.squared = xx - 2 * xy + yy
        if self.squared < 1e-6 * (xx + yy):  # too many digits are lost
            length = norm(self.direction())
            self.squared = length * length  # infinite where ** would raise

    def _trimmed(self, which: int, point: Point) -> Point:
        """The new x (0) or y (1), recompressed once its columns have about doubled."""
        if not isinstance(point, FactoredMatrix) or point.rank <= 2 * self._ranks[which] + 40:
            return point
        trimmed = point.recompress()
        self._ranks[which] = trimmed.rank
        return trimmed


_SCALARS = Field(tuple, (3,), items=Field(float), optional=True)


class Memory(NamedTuple):
    """What one Frank-Wolfe run with factored points tells the next; all of it may be left out."""

    #: Those of x and y; the accuracy to ask of the first vertex; where x lies.
    scalars: Annotated[Scalars | None, _SCALARS] = None
    hint: Annotated[float | None, Field(float, optional=True)] = None
    buffer: Annotated[FactorBuffer | None, Field(FactorBuffer, optional=True)] = None
    #: How far x may move before its objective rises by about its gap.
    length: Annotated[float, Field(float)] = 0.0


class Approach(NamedTuple):
    """The end of a Frank-Wolfe run: x, a bound on <x - y, x - v> one step before it at most, calls, `Memory`."""

    point: Point
    gap: float
    lmo_calls: int
    memory: Memory


def run_together(domain: Domain, runs: Sequence[LMORequests[R]]) -> list[R]:
    """Return the results of runs that go in lockstep: the set answers their LMO calls together."""
    results: dict[int, R] = {}
    answers: dict[int, Any] = dict.fromkeys(range(len(runs)))
    while answers:
        requests: dict[int, tuple[Point, float, float | None]] = {}
        for i, answer in answers.items():
            try:
                requests[i] = runs[i].send(answer)
            except StopIteration as end:
                results[i] = end.value
        if not requests:
            break
        found = domain.lmo_many_with_error(*zip(*requests.values(), strict=True))
        answers = dict(zip(requests, found, strict=True))
    return [results[i] for i in range(len(runs))]


def approach(
    radius: float,
    x: Point,
    y: Point,
    gap: float,
    max_lmo_calls: int | None = None,
    known: Memory | None = None,
) -> LMORequests[Approach]:
    r"""Move from x towards y inside a set of that radius until the gap is small; yields the LMO calls.

    At most :math:`27 D^2/(4 gap)` of them, by exact line searches; the error of an inexact vertex counts towards
    the gap, and errors below 3 % of it are accepted.
    """
    known = known or Memory()
    pair, calls = Pair(x, y, known.scalars, known.buffer), 0
    careful = gap / (8.0 * radius**2)
    hint = careful if known.hint is None else known.hint
    while True:
        # Where calls are limited, each is to bring what it can.
        spare = pair.enough(gap) if max_lmo_calls is None else None
        vertex, error = yield pair.direction(), hint, spare
        calls += 1
        rough, error = error == math.inf, error if error < math.inf else 0.0
        reached = pair.gap_at(vertex) + error
        spent = max_lmo_calls is not None and calls >= max_lmo_calls
        if not pair.dense:
            wanted, size = _ERROR_FRACTION * max(reached, gap), abs(pair.slope)
            asked = min(_ERROR_FRACTION, wanted / size) if size > 0 else _ERROR_FRACTION
            # Where the last error was larger than asked, as far from the origin, ask for less.
            hint = asked if error <= wanted else min(asked, hint * wanted / error)
            if reached <= 2.0 * gap:  # the next gap may end the run
                hint = min(hint, careful)
        if (reached <= gap and not rough) or not pair.step() or spent:
            break
    if pair.dense:
        return Approach(pair.x, reached, calls, Memory())
    length = max(0.0, reached) / pair.distance if pair.squared > 0 else 0.0
    if rough:  # a step too small to gain anything
        reached = 2.0 * radius * pair.distance
    return Approach(pair.x, reached, calls, Memory(pair.scalars, hint, known.buffer, length))


@dataclass(frozen=True, slots=True)
class InfeasibleProjection:
    r"""A feasible point x' and an infeasible one y' beside it.

    Attributes
    ----------
    feasible, infeasible
        :math:`x' \in K`, and :math:`y'` in the ball, which is to no point of K farther than y was.
    lmo_calls, method
        LMO calls made, and the method that ran.
    gap
        Bound on :math:`\max_{z \in K}\langle y - x', z - x'\rangle`, a squared distance: x' is within
        its root of the projection of y (for ``"halfspace"`` and ``"paper"``, of y moved to the ball).
    distance, converged
        :math:`\lVert x' - y'\rVert`, and whether its square is within the tolerance: not so only where
        `max_lmo_calls` ended the work early; the other three points of the contract hold even then.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> result = dw.infeasible_projection(dw.L1Ball(2), [0.0, 0.0], [3.0, 1.0], 0.01, "halfspace")
    >>> round(result.distance, 3), result.lmo_calls, result.converged
    (0.037, 3, True)
    """

    feasible: Point
    infeasible: Point
    lmo_calls: int
    gap: float
    distance: float
    method: str
    converged: bool = True


class Stopping(NamedTuple):
    """When a `Run` ends."""

    tolerance: float
    accuracy: float  # infinite for none
    max_lmo_calls: int | None
    largest_squared: float = math.inf  # without it, any x is accurate for a target far away
    gap: float | None = None  # if given, it alone decides: x is within its root of the projection


class Run:
    r"""A projection under way: its points, the LMO calls made, and the ways to end it.

    With :math:`d = \lVert x - y\rVert` and a certified gap g, it may return (x, x) once g is at most the gap asked
    for, or `accuracy`, at most 1/2, times :math:`d^2`; (x, y) once :math:`d^2 \le tolerance`; else x and the
    half-space step :math:`y + (1 - g/d^2)(x - y)`, once :math:`g \le \sqrt{tolerance}\, d`.
    """

    def __init__(self, domain: Domain, stop: Stopping, method: str, pair: Pair) -> None:
        self.domain, self.stop, self.method, self.pair = domain, stop, method, pair
        self.calls = 0
        self.atoms: Atoms | None = None

    def near(self) -> bool:
        """Whether x and y are as near as asked."""
        return self.pair.squared <= self.stop.tolerance

    def spent(self) -> bool:
        """Whether no further LMO call is allowed."""
        limit = self.stop.max_lmo_calls
        return limit is not None and self.calls >= limit

    def half_space_gap(self) -> float:
        """The largest gap whose half-space step lands within the tolerance."""
        return math.sqrt(self.stop.tolerance) * self.pair.distance

    def final_gap(self) -> float:
        """The gap at which the run may end."""
        squared, accuracy = self.pair.squared, self.stop.accuracy
        if self.stop.gap is not None:
            return self.stop.gap
        if accuracy <= COLLAPSE:
            return accuracy * min(squared, self.stop.largest_squared)
        return min(self.half_space_gap(), accuracy * squared)

    def hint(self, usual: float) -> float:
        """The relative accuracy to ask of the LMO, whose values are at most about ||x - y|| R."""
        if self.stop.gap is None or not self.pair.squared > 0:
            return usual
        return min(0.1, 0.1 * self.stop.gap / (self.pair.distance * self.domain.radius))

    def ask(self, accuracy: float, final: float) -> tuple[Point, float]:
        """Call the LMO; return the vertex and a gap that holds at x, rough if v's is above `final`."""
        pair, direction = self.pair, self.pair.direction()
        self.calls += 1
        enough = pair.enough(final) if self.stop.max_lmo_calls is None else None  # as in `approach`
        [(vertex, error)] = self.domain.lmo_many_with_error([direction], [accuracy], [enough])
        if self.atoms is not None:
            self.atoms.add(vertex)
        return vertex, min(pair.gap_at(vertex) + error, 2.0 * self.domain.radius * pair.distance)

    def known(self) -> Point | None:
        """Return a vertex found before whose gap proves that the run must go on, if there is one."""
        vertex = self.atoms.best(self.pair.direction()) if self.atoms else None
        proves = vertex is not None and self.pair.gap_at(vertex) > self.final_gap()
        return vertex if proves else None

    def accept(self, gap: float) -> InfeasibleProjection | None:
        """Return the result if the certified gap is small enough, else None."""
        if not gap <= self.final_gap():
            return None
        collapses = self.stop.gap is not None or self.stop.accuracy <= COLLAPSE
        return self.collapse(gap) if collapses else self.half_space_step(gap)

    def give_up(self, gap: float) -> InfeasibleProjection:
        """Return the best that the last gap allows: no call is left, or none would help."""
        collapses = gap <= COLLAPSE * self.pair.squared
        return self.collapse(gap) if collapses else self.half_space_step(gap)

    def stay(self) -> InfeasibleProjection:
        """Return (x, y) as they are; ||x - y|| D bounds the gap without a call."""
        pair, near = self.pair, self.near()
        y, apart = pair.y.copy() if pair.dense else pair.y, pair.distance
        gap = apart * 2 * self.domain.radius
        return InfeasibleProjection(pair.x, y, self.calls, gap, apart, self.method, near)

    def collapse(self, gap: float) -> InfeasibleProjection:
        """Return (x, x)."""
        x = self.pair.x
        return InfeasibleProjection(x, x, self.calls, gap, 0.0, self.method)

    def half_space_step(self, gap: float) -> InfeasibleProjection:
        """Return x and the projection of y on the half-space that the gap certifies."""
        pair, lands = self.pair, gap <= self.half_space_gap()
        fraction = max(0.0, 1.0 - max(gap, 0.0) / pair.squared)
        apart, moved = (1.0 - fraction) * pair.distance, fraction * pair.distance
        if isinstance(pair.y, FactoredMatrix) and isinstance(pair.x, FactoredMatrix):
            y = (1.0 - fraction) * pair.y + fraction * pair.x if fraction else pair.y
            if fraction and y.rank > 2 * pair.x.rank + _SPARE_COLUMNS:
                # ||y' - z||^2 <= ||y - z||^2 - moved^2: an error of what that gains for the farthest z
                # keeps the contract.
                error = moved * moved / (2.0 * math.hypot(apart + 2.0 * self.domain.radius, moved))
                if lands:
                    error = min(error, max(0.0, math.sqrt(self.stop.tolerance) - apart))
                y, error = y.truncate(error)
                apart += error
        else:
            y = pair.y + fraction * pair.direction()
        return InfeasibleProjection(pair.x, y, self.calls, gap, apart, self.method, lands)


class Atoms(Stateful):
    r"""The vertices found last; the oldest are forgotten first.

    Any point v of the set with :math:`\langle x - y, x - v\rangle` above the gap that a Frank-Wolfe
    run stops at makes as valid a step as the minimiser: only the certificate needs an LMO call.

    Parameters
    ----------
    size
        How many to keep, at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> atoms = Atoms(2)
    >>> for vertex in np.eye(3):
    ...     atoms.add(vertex)
    >>> atoms.best(np.array([-5.0, 1.0, 0.0])), len(atoms)
    (array([0., 0., 1.]), 2)
    """

    points: Annotated[list[Point], Field(list, items=POINT)]

    def __init__(self, size: int) -> None:
        self.size = checks.count(size, "size")
        self.points = []
        self._table: Any = None  # dense ones, as rows

    def __len__(self) -> int:
        return len(self.points)

    def add(self, vertex: Point) -> None:
        """Remember a vertex."""
        self.points = [*self.points, vertex][-self.size :]
        self._table = None

    def best(self, direction: Point) -> Point | None:
        """Return the one with the least inner product with `direction`, or None if there is none."""
        if not self.points:
            return None
        if isinstance(direction, np.ndarray):
            if self._table is None:
                self._table = np.stack([point.ravel() for point in self.points])
            values = self._table @ direction.ravel()
        else:
            values = np.array([inner(direction, point) for point in self.points])
        return self.points[int(values.argmin())]

    def derive(self) -> None:
        self._table = None

    def check(self) -> None:
        require(len(self.points) <= self.size, "vertices")


class HalfspaceRun(Run):
    r"""One Frank-Wolfe run and one half-space step, by one LMO call at a time.

    At most :math:`2.6\, D^2/tolerance` calls, or :math:`6.75\, D^2/gap` of plain Frank-Wolfe where the gap decides.
    """

    def __init__(
        self, domain: Domain, x: Point, y: Point, stop: Stopping, atoms: Atoms | None = None
    ) -> None:
        super().__init__(domain, stop, "halfspace", Pair(x, y))
        self.atoms = atoms
        # With an error of 3/8 sqrt(tolerance) ||x - y|| the run still ends.
        self._hint = 3 / 8 * math.sqrt(stop.tolerance) / domain.radius
        squared = (2.0 * domain.radius) ** 2
        self._cap = CALLS * squared / stop.tolerance if stop.gap is None else math.inf
        self._fallback: InfeasibleProjection | None = None

    def advance(self) -> InfeasibleProjection | None:
        """Make one LMO call, or none if x is near y; return the result once there is one."""
        pair, stop = self.pair, self.stop
        for _ in range(32):  # more bring ever less
            if self.near() or self.known() is None or not pair.step():
                break
        if self.near():
            return self.stay()
        _, gap = self.ask(self.hint(self._hint), max(self.final_gap(), self.half_space_gap()))
        if (result := self.accept(gap)) is not None:
            return result
        if self.spent() and stop.accuracy == math.inf and gap <= COLLAPSE * pair.squared:
            return self.collapse(gap)
        if gap <= self.half_space_gap():
            self._fallback = self.half_space_step(gap)
        ends = self._fallback and (self.spent() or self.calls + 1 > self._cap)
        if ends or not pair.step():
            result = self.give_up(gap)
            if result.converged or self._fallback is None:
                return result
            return replace(self._fallback, lmo_calls=self.calls)  # which kept the contract
        return self.stay() if self.spent() else None

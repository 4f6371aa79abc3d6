"""Frank-Wolfe runs towards a point: the pair (x, y), stop rules, cached atoms, the half-space step."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.points import FactoredMatrix, checks, inner, norm
from driftwolfe.points.factor_buffer import FactorBuffer
from driftwolfe.points.kinds import Point
from driftwolfe.points.rounding import line_search_share
from driftwolfe.storage import require


@dataclass(frozen=True, slots=True)
class InfeasibleProjection:
    r"""A feasible point and an infeasible one beside it.

    Attributes
    ----------
    feasible
        :math:`x' \in K`.
    infeasible
        :math:`y'`, in the ball, and to no point of K farther than y was.
    lmo_calls
        Linear minimisations spent.
    gap
        Bound on :math:`\max_{z \in K}\langle y - x', z - x'\rangle`, a squared distance: x' is within
        the root of it of the projection of y. Where y lies outside the ball, ``"halfspace"`` and
        ``"paper"`` move it there first, and this is about that point.
    distance
        :math:`\lVert x' - y'\rVert`, in units of the points.
    method
        The method that ran.
    converged
        Whether distance^2 <= tolerance. False only when `max_lmo_calls` ended the work early; the
        other three points of the contract hold even then.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> ball = dw.L2Ball(2)
    >>> result = dw.infeasible_projection(
    ...     ball, [0.0, 0.0], [3.0, 4.0], tolerance=0.01, method="halfspace", max_lmo_calls=0
    ... )
    >>> result.feasible, result.infeasible, result.converged
    (array([0., 0.]), array([0.6, 0.8]), False)
    """

    feasible: Point
    infeasible: Point
    lmo_calls: int
    gap: float
    distance: float
    method: str
    converged: bool = True


#: ||x||^2, <x, y>, ||y||^2.
Scalars: TypeAlias = tuple[float, float, float]

#: Below this share of ||x||^2 + ||y||^2 the expanded square has lost too many digits.
_CANCELLED = 1e-6
#: Squared lengths beyond this leave the range of numbers when they are added up.
_LARGEST = 1e307
#: Columns that a factored x may gain before it is recompressed.
_SLACK_COLUMNS = 40


class Pair:
    """The feasible x that moves by Frank-Wolfe steps, and the target y.

    Dense points keep the residual x - y, updated in place. Factored ones keep the scalars
    ||x||^2, <x, y>, ||y||^2, which a caller who knows them may pass as `scalars`, and never touch
    all entries; where x lies on a `shelf`, steps need no copy of it.
    """

    def __init__(
        self, x: Point, y: Point, scalars: Scalars | None = None, shelf: FactorBuffer | None = None
    ) -> None:
        self.dense = isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
        self.y = y
        if self.dense:
            self.x = np.array(x)
            self._residual = x - y
            self.squared = inner(self._residual, self._residual)
        else:
            self.x = x
            self._shelf = shelf
            self._xx, self._xy, self._yy = scalars or (inner(x, x), inner(x, y), inner(y, y))
            if not self._xx + self._yy < _LARGEST:
                raise ValueError(
                    "a target is beyond the range of numbers; use a smaller step_scale"
                )
            self._columns = _Columns(x), _Columns(y)
            self._residual = None
            self._expand()

    def direction(self) -> Point:
        """The gradient x - y of half the squared distance."""
        if not self.dense and self._residual is None:
            self._residual = self.x - self.y
        return self._residual

    def gap_at(self, vertex: Point) -> float:
        """Return the gap <x - y, x - v>, and remember v for `step`."""
        if self.dense:
            self._move = vertex - self.x
            self._gap = -inner(self._residual, self._move)
        else:
            self._move = vertex
            self._slope, self._xv = self._products(vertex)
            self._gap = self._xx - self._xy - self._slope
        return self._gap

    @property
    def reach(self) -> float:
        """The size of <x - y, v>, of points that are not dense."""
        return abs(self._slope)

    def step(self) -> bool:
        """Move x to the nearest point to y on the segment to v; say whether it moved at all."""
        if not self._gap > 0:
            return False
        before = self.squared
        if self.dense:
            length2 = inner(self._move, self._move)
            self._move *= line_search_share(self._gap, length2)
            self.x += self._move
            self._residual += self._move
            self.squared = inner(self._residual, self._residual)
        else:
            self._step_factored()
        return self.squared < before

    def pull(self, share: float) -> None:
        """Move the target towards x: y <- y + share (x - y)."""
        if self.dense:
            self._residual *= 1.0 - share
            self.y = self.x - self._residual
        else:
            self.y = self._columns[1].trim((1.0 - share) * self.y + share * self.x)
            self._residual = None
            xx, xy, yy = self._xx, self._xy, self._yy
            self._xy = (1 - share) * xy + share * xx
            self._yy = (1 - share) ** 2 * yy + 2 * share * (1 - share) * xy + share**2 * xx
        self.squared *= (1.0 - share) ** 2

    def snapshot(self) -> Point:
        """Return x as it is now, safe from later steps."""
        return self.x.copy() if self.dense else self.x

    def between(self, share: float) -> Point:
        """Return y + share (x - y)."""
        return self.y + share * self.direction()

    def _products(self, vertex: Point) -> tuple[float, float]:
        """<x - y, v> and <x, v>."""
        if self._shelf is None:
            return inner(self.direction(), vertex), inner(self.x, vertex)
        slope, xv = self._shelf.inner(vertex, self.direction(), self.x)
        return slope, xv

    def _step_factored(self) -> None:
        vertex, vv = self._move, inner(self._move, self._move)
        xv, yv = self._xv, self._xv - self._slope
        share = line_search_share(self._gap, vv - 2 * xv + self._xx)
        rest = 1.0 - share
        if self._shelf is None:
            mixed = rest * self.x + share * vertex
        else:
            mixed = self._shelf.mix(rest, self.x, share, vertex)
        self.x = self._columns[0].trim(mixed)
        self._xy = rest * self._xy + share * yv
        self._xx = rest**2 * self._xx + 2 * share * rest * xv + share**2 * vv
        self._residual = None
        self._expand()

    def _expand(self) -> None:
        self.squared = self._xx - 2 * self._xy + self._yy
        if self.squared < _CANCELLED * (self._xx + self._yy):
            length = norm(self.direction())
            self.squared = length * length  # infinite where ** would raise

    @property
    def scalars(self) -> Scalars | None:
        """||x||^2, <x, y>, ||y||^2 of factored points."""
        return None if self.dense else (self._xx, self._xy, self._yy)

    @property
    def distance(self) -> float:
        """||x - y||."""
        return math.sqrt(self.squared)


class _Columns:
    """Recompresses a factored point whenever appending has about doubled its columns."""

    def __init__(self, point: Point) -> None:
        self._held = getattr(point, "rank", 0)

    def trim(self, point: Point) -> Point:
        if not isinstance(point, FactoredMatrix) or point.rank <= 2 * self._held + _SLACK_COLUMNS:
            return point
        trimmed = point.recompress()
        self._held = trimmed.rank
        return trimmed


#: Up to this share of the squared distance, the gap lets y' = x' keep the non-expansion property.
COLLAPSE = 0.5


@dataclass(frozen=True, slots=True)
class Stopping:
    r"""The stopping rule of every Frank-Wolfe-like method.

    With :math:`d = \lVert x - y\rVert` and a certified gap g, so that
    :math:`\lVert x - z\rVert^2 \le \lVert y - z\rVert^2 - d^2 + 2g` for all z in K:

    - :math:`d^2 \le tolerance`: (x, y);
    - :math:`g \le accuracy \cdot \min(d^2, reach)` with accuracy <= 1/2: (x, x), non-expansive by
      the line above; a target far away would else be content with any x;
    - no accuracy asked, or one above 1/2: :math:`g \le \sqrt{tolerance}\, d` and the half-space step
      :math:`y' = y + (1 - g/d^2)(x - y)`, the projection of y on a half-space that holds K.
    """

    tolerance: float
    accuracy: float | None
    max_lmo_calls: int | None
    reach: float = math.inf

    def near(self, pair: Pair) -> bool:
        """Whether x and y are already as near as asked."""
        return pair.squared <= self.tolerance

    def collapses(self, squared: float, gap: float) -> bool:
        """Whether the asked accuracy is reached and y' = x' will do."""
        return self._collapsing and gap <= (self.accuracy or 0.0) * min(squared, self.reach)

    def slices(self, squared: float, gap: float) -> bool:
        """Whether the half-space step is asked for and lands near enough."""
        return (
            not self._collapsing
            and self.within_reach(squared, gap)
            and (self.accuracy is None or gap <= self.accuracy * squared)
        )

    def within_reach(self, squared: float, gap: float) -> bool:
        """Whether the half-space step would land within the tolerance."""
        return gap <= math.sqrt(self.tolerance) * math.sqrt(squared) and gap <= squared

    def enough(self, squared: float) -> float:
        """The gap at which a run may end."""
        if self._collapsing:
            return (self.accuracy or 0.0) * min(squared, self.reach)
        share = math.inf if self.accuracy is None else self.accuracy
        return min(math.sqrt(self.tolerance) * math.sqrt(squared), share * squared)

    def spent(self, lmo_calls: int) -> bool:
        """Whether no further oracle call is allowed."""
        return self.max_lmo_calls is not None and lmo_calls >= self.max_lmo_calls

    @property
    def _collapsing(self) -> bool:
        return self.accuracy is not None and self.accuracy <= COLLAPSE


def stay(pair: Pair, lmo_calls: int, gap: float, method: str) -> InfeasibleProjection:
    """Return (x, y)."""
    y = pair.y.copy() if pair.dense else pair.y
    return InfeasibleProjection(pair.snapshot(), y, lmo_calls, gap, pair.distance, method)


def collapse(pair: Pair, lmo_calls: int, gap: float, method: str) -> InfeasibleProjection:
    """Return (x, x)."""
    x = pair.snapshot()
    return InfeasibleProjection(x, x, lmo_calls, gap, 0.0, method)


def slice_off(
    pair: Pair, lmo_calls: int, gap: float, method: str, converged: bool = True
) -> InfeasibleProjection:
    """Return x and the projection of y on the half-space that the gap certifies."""
    share = max(0.0, 1.0 - max(gap, 0.0) / pair.squared)
    x, distance = pair.snapshot(), (1.0 - share) * pair.distance
    return InfeasibleProjection(x, pair.between(share), lmo_calls, gap, distance, method, converged)


def cut_short(
    pair: Pair, stop: Stopping, lmo_calls: int, diameter: float, method: str
) -> InfeasibleProjection:
    """Return (x, y) as they are: no call is left that could tell how good they are."""
    gap = pair.distance * diameter
    return replace(stay(pair, lmo_calls, gap, method), converged=stop.near(pair))


def give_up(
    pair: Pair, stop: Stopping, lmo_calls: int, gap: float, method: str
) -> InfeasibleProjection:
    """Return the best that the last certified gap allows: no call is left, or none would help."""
    if gap <= COLLAPSE * pair.squared:
        return collapse(pair, lmo_calls, gap, method)
    reached = stop.within_reach(pair.squared, gap)
    return slice_off(pair, lmo_calls, gap, method, converged=reached)


class Atoms:
    r"""The vertices found last, the oldest forgotten first.

    Any point v of the set with :math:`\langle x - y, x - v\rangle` above the gap that a Frank-Wolfe run
    stops at makes as valid a step as the minimiser: only the claim that none is left needs the
    oracle.

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

    STATE: ClassVar[tuple[str, ...]] = ("points",)

    def __init__(self, size: int) -> None:
        self.size = checks.count(size, "size")
        self.points: list[Point] = []
        self._table: Any = None  # dense ones, as rows

    def __len__(self) -> int:
        return len(self.points)

    def add(self, vertex: Point) -> None:
        """Remember a vertex."""
        self.points = [*self.points[-self.size + 1 :], vertex] if self.size > 1 else [vertex]
        self._table = None

    def best(self, direction: Point) -> Point | None:
        """Return the one with the least inner product with `direction`; None where there is none."""
        if not self.points:
            return None
        if isinstance(direction, np.ndarray):
            if self._table is None:
                self._table = np.stack([point.ravel() for point in self.points])
            values = self._table @ direction.ravel()
        else:
            values = np.array([inner(direction, point) for point in self.points])
        return self.points[int(values.argmin())]

    def check_state(self) -> None:
        """Refuse a state, read from a file, whose parts do not fit together."""
        require(len(self.points) <= self.size, "vertices")
        self._table = None


#: Error of a linear minimisation that is worth avoiding, as a share of the gap.
_SHARE = 0.03


class Memory(NamedTuple):
    """What one run may tell the next; all of it may be left out.

    Attributes
    ----------
    scalars
        Those of a factored x and y, see `Pair`.
    hint
        Accuracy at which to ask for the first vertex.
    shelf
        Where a factored x lies, so that vertices are added without a copy.
    length
        How far x may move before its objective rises by about the gap that it had.
    """

    scalars: Scalars | None = None
    hint: float | None = None
    shelf: FactorBuffer | None = None
    length: float = 0.0


class Approach(NamedTuple):
    r"""Where a Frank-Wolfe run towards y ended.

    Attributes
    ----------
    point
        The point x of the set.
    gap
        What it reached: :math:`\max_{v \in K}\langle x - y, x - v\rangle` at most, a squared distance.
        Of the point before the last step where `max_lmo_calls` ended the run.
    lmo_calls
        Linear minimisations spent.
    memory
        What may be told to the next run; a `Memory`.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> end = frank_wolfe(dw.L1Ball(2), np.zeros(2), np.array([2.0, 0.5]), gap=1e-6)
    >>> end.gap <= 1e-6, end.lmo_calls
    (True, 2)
    """

    point: Point
    gap: float
    lmo_calls: int
    memory: Memory


def frank_wolfe(
    domain: Domain,
    x: Point,
    y: Point,
    gap: float,
    max_lmo_calls: int | None = None,
    accuracy: float | None = None,
    memory: Memory | None = None,
) -> Approach:
    r"""Move from x towards y inside the set until the Frank-Wolfe gap is small.

    Minimises :math:`\tfrac12\lVert x - y\rVert^2` by exact line searches until
    :math:`\langle x - y, x - v\rangle \le gap`; at most :math:`27 D^2/(4 gap)` calls, or as many as
    allowed. With `accuracy`, a gap of that share of :math:`\lVert x - y\rVert^2` ends it as well.
    The error of a vertex counts towards the gap; less than 3 % of it is not asked for.

    Parameters
    ----------
    domain
        The set.
    x
        A point of the set: the start, not changed.
    y
        The point to move towards, not changed; in the set or not.
    gap
        Where to stop: a squared distance, positive.
    max_lmo_calls
        Linear minimisations at most, at least 1; None for no limit.
    accuracy
        Share of :math:`\lVert x - y\rVert^2` at which a gap ends the run too; None for none.
    memory
        That of an earlier run with the same factored x; nothing is lost without.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> frank_wolfe(dw.L1Ball(2), np.zeros(2), np.array([2.0, 0.5]), gap=1e-6).point
    array([1., 0.])
    """
    known = memory or Memory()
    pair, calls = Pair(x, y, known.scalars, known.shelf), 0
    careful = gap / (8.0 * domain.radius**2)
    hint = careful if known.hint is None else known.hint
    while True:
        vertex, error = domain.lmo_with_error(pair.direction(), hint)
        calls += 1
        reached = pair.gap_at(vertex) + error
        spent = max_lmo_calls is not None and calls >= max_lmo_calls
        enough = max(gap, (accuracy or 0.0) * pair.squared)
        if not pair.dense:
            hint = _next_hint(hint, error, _SHARE * max(reached, enough), pair.reach)
            if reached <= 2.0 * enough:  # a claim is near
                hint = min(hint, careful)
        if reached <= enough or not pair.step() or spent:
            return Approach(pair.snapshot(), reached, calls, _memory(pair, known, hint, reached))


def _memory(pair: Pair, known: Memory, hint: float, reached: float) -> Memory:
    if pair.dense:
        return Memory()
    length = max(0.0, reached) / pair.distance if pair.squared > 0 else 0.0
    return Memory(pair.scalars, hint, known.shelf, length)


def _next_hint(hint: float, error: float, wanted: float, reach: float) -> float:
    """The accuracy that makes the error as wanted, judged by the size of the last vertex's value.

    Where an error came out larger, as it may with sets far from the origin, the hint shrinks.
    """
    asked = min(_SHARE, wanted / reach) if reach > 0 else _SHARE
    return asked if error <= wanted else min(asked, hint * wanted / error)


#: Yields a direction and the relative accuracy that will do, is sent a vertex and its error, and
#: returns a result; as `Domain.lmo_with_error` has them.
Asking: TypeAlias = Generator[tuple[Point, float], tuple[Point, float], InfeasibleProjection]


def answered(domain: Domain, projections: Sequence[Asking]) -> list[InfeasibleProjection]:
    """Run projections to their ends, answering in each turn what all that are left ask for."""
    results: dict[int, InfeasibleProjection] = {}
    answers: dict[int, tuple[Point, float] | None] = dict.fromkeys(range(len(projections)))
    while answers:
        asked: dict[int, tuple[Point, float]] = {}
        for i, answer in answers.items():
            try:
                asked[i] = projections[i].send(answer)  # type: ignore[arg-type]
            except StopIteration as end:
                results[i] = end.value
        answers = {}
        if asked:
            directions, accuracies = zip(*asked.values(), strict=True)
            found = domain.lmo_many_with_error(directions, accuracies)
            answers.update(zip(asked, found, strict=True))
    return [results[i] for i in range(len(projections))]


METHOD = "halfspace"
#: LMO calls <= this * D^2 / tolerance with an exact oracle; `docs/theory/oracles.md` has the proof.
CALLS = 2.6
#: Steps towards known vertices between two calls: more of them bring ever less.
FREE_STEPS = 32
#: Error of an inexact oracle, in units of sqrt(tolerance) * d, that the run is sure to end with.
ORACLE_ERROR = 3 / 8


def halfspace(
    domain: Domain, x: Point, y: Point, stop: Stopping, atoms: Atoms | None = None
) -> InfeasibleProjection:
    r"""Project infeasibly by one Frank-Wolfe run and one half-space step.

    Line-search Frank-Wolfe on :math:`\tfrac12\lVert x - y\rVert^2` until the gap g falls to
    :math:`\sqrt{tolerance}\, d`. The last oracle answer bounds a half-space that holds K; y' is the
    projection of y on it, which lies on the segment to x at distance :math:`g/d`.

    At most :math:`2.6\, D^2/tolerance` oracle calls with an exact oracle, 6.66 in place of 2.6 with
    one that has the error asked of it, whatever `accuracy` asks for: where accuracy is
    finer, the run goes on to it as long as that cap allows, and otherwise returns the answer that
    was good enough on the way. Vertices found before (`atoms`) are tried before the oracle is asked.
    """
    run = HalfspaceRun(domain, x, y, stop, atoms)
    answer = run.ask()
    while answer is None:
        answer = run.ask()
    return answer


class HalfspaceRun:
    """A run of `halfspace`, one oracle call at a time.

    Parameters
    ----------
    domain
        The set.
    x, y
        The start, in the set, and the target, in its ball.
    stop
        When to stop.
    atoms
        Vertices found before, to be tried before the oracle is asked; new ones are added.

    Attributes
    ----------
    pair
        Where x and y are.
    calls
        Oracle calls made.
    """

    def __init__(
        self, domain: Domain, x: Point, y: Point, stop: Stopping, atoms: Atoms | None = None
    ) -> None:
        self.domain, self.stop, self.atoms = domain, stop, atoms
        self.pair, self.calls = Pair(x, y), 0
        # Up to this relative error the run still ends, after 6.66 D^2 / tolerance calls.
        self._hint = ORACLE_ERROR * math.sqrt(stop.tolerance) / domain.radius
        self._cap = CALLS * (2.0 * domain.radius) ** 2 / stop.tolerance
        self._fallback: InfeasibleProjection | None = None

    def ask(self) -> InfeasibleProjection | None:
        """Move on by one oracle call, or none where x is near; return the answer once there is one."""
        pair, stop = self.pair, self.stop
        if self.atoms is not None:
            self._try_atoms(self.atoms)
        if stop.near(pair):
            return stay(pair, self.calls, pair.distance * 2 * self.domain.radius, METHOD)
        gap = self._call()
        if stop.slices(pair.squared, gap):
            return slice_off(pair, self.calls, gap, METHOD)
        if stop.collapses(pair.squared, gap):
            return collapse(pair, self.calls, gap, METHOD)
        if stop.within_reach(pair.squared, gap):
            self._fallback = slice_off(pair, self.calls, gap, METHOD)
        if self._fallback and (stop.spent(self.calls) or self.calls + 1 > self._cap):
            return self._better(give_up(pair, stop, self.calls, gap, METHOD))
        if stop.spent(self.calls) and stop.accuracy is None and gap <= 0.5 * pair.squared:
            return collapse(pair, self.calls, gap, METHOD)
        if not pair.step():
            return self._better(give_up(pair, stop, self.calls, gap, METHOD))
        return self.leave() if stop.spent(self.calls) else None

    def leave(self) -> InfeasibleProjection:
        """Return where the run has got to."""
        return cut_short(self.pair, self.stop, self.calls, 2.0 * self.domain.radius, METHOD)

    def _call(self) -> float:
        """Ask the oracle, and return the gap that it certifies."""
        vertex, error = self.domain.lmo_with_error(self.pair.direction(), self._hint)
        self.calls += 1
        if self.atoms is not None:
            self.atoms.add(vertex)
        return self.pair.gap_at(vertex) + error

    def _try_atoms(self, atoms: Atoms) -> None:
        """Step towards known vertices as long as one of them proves that the run must go on."""
        for _ in range(FREE_STEPS):
            if self.stop.near(self.pair):
                return
            vertex = atoms.best(self.pair.direction())
            if vertex is None:
                return
            gap = self.pair.gap_at(vertex)
            if not gap > self.stop.enough(self.pair.squared) or not self.pair.step():
                return

    def _better(self, last: InfeasibleProjection) -> InfeasibleProjection:
        """The last answer if it keeps the contract, else an earlier one that did."""
        if last.converged or self._fallback is None:
            return last
        return replace(self._fallback, lmo_calls=last.lmo_calls)

"""Experts that take blocked gradient steps with infeasible projections."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.domains.base import require_feasible, same_kind
from driftwolfe.ensemble.experts import Experts
from driftwolfe.ensemble.plan import AGILE, FOREVER, KEEPS_SUM, LMOBudget, Plan, ProjectionConfig
from driftwolfe.losses import Loss
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.oracles import Atoms, InfeasibleProjection
from driftwolfe.oracles.methods import Request, infeasible_projections
from driftwolfe.points import FactoredMatrix, inner, norm
from driftwolfe.points.devices import HOST, namespace, to_host
from driftwolfe.points.kinds import Array, Indices, Point
from driftwolfe.points.ops import POINTS, in_kind_of, trimmed
from driftwolfe.state import POSITIVE, Count, Field, Size

#: The plans of the experts, a column each, in the order of `Plan`.
PLAN_COLUMNS = ("steps", "blocks", "tolerances", "reserved", "lifetimes")
#: Columns from which a factored point is recompressed.
TOO_MANY_COLUMNS = 65


@dataclass(eq=False)
class HalfSpace:
    r"""The half-space :math:`\{z : \langle\nu, z\rangle \le b\}`, into which targets of projections are moved."""

    normal: Point  # nu, of length 1
    offset: float  # b

    def into(self, y: Point) -> Point:
        """Return the nearest point of the half-space."""
        excess = inner(self.normal, y) - self.offset
        return y - excess * self.normal if excess > 0.0 else y


class Descent(Experts):
    r"""N experts that take blocked gradient steps with infeasible projections.

    Expert i plays :math:`x_i`, adds up gradients for `block` rounds, and then
    :math:`(x_i, y_i) \leftarrow IP(x_i, y_i - c h_i \sum g)`: Algorithm 1 of the paper, on the
    expert's own clock. A *lazy* expert keeps the sum of all its gradients and :math:`y_i`, where it
    started: its points are projections of :math:`y_i - c h_i \sum g`, the regularised leader.
    """

    steps: Annotated[Array, Field(np.float64, ("experts",), POSITIVE)]
    blocks: Annotated[Indices, Field(np.int64, ("experts",), 1)]
    tolerances: Annotated[Array, Field(np.float64, ("experts",), 0.0)]
    reserved: Annotated[Array, Field(np.float64, ("experts",), 0.0)]
    lifetimes: Annotated[Indices, Field(np.int64, ("experts",), 1)]
    clocks: Annotated[Indices, Field(np.int64, ("experts",), 0)]
    largest_distance: Size
    projections: Count
    pooled_budget: LMOBudget | None
    atoms: Atoms | None
    LEARNED = ("largest_gradient", "largest_distance", "pooled_budget", "atoms")
    #: Of the round: a learner with constraints sets it where a block ends.
    cut: HalfSpace | None = None

    def __init__(self, domain: Domain, oracle: ProjectionConfig, step_scale: float | None) -> None:
        super().__init__(domain, step_scale)
        self.oracle = oracle
        # Of the projections that were cut off before their own tolerance: between x and y, or, for
        # lazy experts, between x and the projection.
        self.largest_distance = 0.0
        self.projections = 0
        self.steps, self.tolerances, self.reserved = np.empty((3, 0))
        self.blocks, self.lifetimes, self.clocks = np.empty((3, 0), dtype=np.int64)
        self.set_rules([])
        pooled = oracle.budget is not None and (oracle.pooled or oracle.even)
        self.pooled_budget = LMOBudget(oracle.budget or 0.0) if pooled else None
        self.atoms = Atoms(oracle.cached_vertices) if oracle.cached_vertices else None
        # Exact projections need no start and no tolerance.
        cheap = oracle.method == "auto" and domain.cheap_projection
        self.exact = cheap or oracle.method == "exact"

    @property
    def size(self) -> int:
        return int(self.steps.size)

    @abstractmethod
    def _new_expert(self, start: Point) -> dict[str, Any]:
        """What an expert at a point starts with: items of lists, and rows of arrays."""

    def add(self, start: Point, plans: Sequence[Plan]) -> None:
        if not plans:
            return
        *columns, rules = zip(*plans, strict=True)
        self.set_rules([*self.rules, *rules])
        planned = dict(zip(PLAN_COLUMNS, columns, strict=True))
        for name, new in (planned | self._new_expert(start)).items():
            held = getattr(self, name)
            if isinstance(held, list):
                longer = held + [new] * len(plans)
            else:
                xp, shape = namespace(held), (len(plans), *held.shape[1:])
                rows = xp.zeros(shape, dtype=held.dtype, device=held.device)
                rows[:] = new
                longer = xp.concat((held, rows))
            setattr(self, name, longer)

    def restart(self, which: Any, start: Point, keep: Collection[str] = ()) -> None:
        for name, new in self._new_expert(start).items():
            held = getattr(self, name)
            if name in keep:
                continue
            if isinstance(held, list):
                for place in range(self.size)[which] if isinstance(which, slice) else which:
                    held[place] = new
            else:
                held[which] = new

    def replan(self, i: int, plan: Plan) -> None:
        """Give an expert that never leaves another plan, from the coming round on."""
        self.clocks = self.clocks.copy()
        self.clocks[i] %= self.blocks[i]  # the block under way ends when the new one is full
        for name, value in zip(PLAN_COLUMNS, plan, strict=False):
            column = getattr(self, name).copy()
            column[i] = value
            setattr(self, name, column)

    def set_rules(self, rules: Sequence[int]) -> None:
        """Say how each expert moves, as its plan does: no state, so learners say it when they are loaded."""
        self.rules = np.array(rules, dtype=np.int64)
        self.lazy = KEEPS_SUM[self.rules]

    def derive(self) -> None:
        self.set_rules([AGILE] * self.size)

    def check(self) -> None:
        require_feasible(self.domain, self.atoms.points if self.atoms else ())

    @property
    def leaving(self) -> Any:
        """Which experts play their last round: they need no further point."""
        return self.clocks + 1 == self.lifetimes

    def due(self) -> Indices:
        """Return the experts that project in this round: their block ends and they play on."""
        return (((self.clocks + 1) % self.blocks == 0) > self.leaving).nonzero()[0]

    @property
    def independent(self) -> bool:
        """Whether an expert's projections do not depend on what others have found or spent."""
        return self.atoms is None and self.pooled_budget is None

    def limit(self, i: int) -> int | None:
        """Return the calls that expert i may make when its block ends, by what is reserved for it."""
        if self.oracle.budget is None:
            return self.oracle.max_lmo_calls
        return math.floor(self.reserved[i] * self.blocks[i])

    def request(
        self, i: int, y: Point, number: int, limit: int | None, atoms: Atoms | None = None
    ) -> Request:
        """Return what expert i asks for to project y; `number` gives each in a round its random numbers."""
        tolerance, oracle = float(self.tolerances[i]), self.oracle
        pair = self.point(i), self.domain.check_point(y, "y")
        gap = tolerance if oracle.by_gap and self.lazy[i] else None
        rng = oracle.seed, self.projections + number
        return Request(*pair, tolerance, oracle.method, oracle.accuracy, limit, rng, atoms, gap)

    def project(self, *asked: Any) -> InfeasibleProjection:
        """Return the projection of a `request`."""
        return infeasible_projections(self.domain, [self.request(*asked)])[0]

    def project_in_turn(self, due: Indices, targets: Iterable[Point]) -> list[InfeasibleProjection]:
        """Project one expert after the other, sharing vertices and the pooled budget of a round."""
        atoms, pool, results = copy(self.atoms), self.pooled_budget, []
        if pool is not None:
            pool, most = pool.next_round(), self.oracle.max_lmo_calls or FOREVER
            savings = np.where(self.leaving, 0.0, self.reserved * (self.clocks % self.blocks + 1))
        for number, (i, target) in enumerate(zip(due.tolist(), targets, strict=True)):
            limit = self.limit(i)
            if pool is not None:
                savings[i] = 0.0  # what it saved is its own; that of others is reserved
                limit = min(most, pool.limit(reserved=float(savings.sum())))
            result = self.project(i, target, number, limit, atoms)
            if pool is not None:
                pool.spent += result.lmo_calls
            results.append(result)
        self.atoms, self.pooled_budget = atoms, pool
        return self._counted(due, results)

    def _counted(
        self, due: Indices, results: list[InfeasibleProjection]
    ) -> list[InfeasibleProjection]:
        """Count projections, and keep the largest distance that bounds must allow for."""
        self.projections += len(results)
        for i, result in zip(due, results, strict=True):
            self._ended(i, result)
        return results

    def _ended(self, i: int, result: InfeasibleProjection) -> None:
        if self.lazy[i]:  # from the projection itself: at most the root of the gap
            self._left(i, math.sqrt(max(0.0, result.gap)))
        elif not result.converged:  # from y
            self._left(i, result.distance)

    def _left(self, i: int, apart: float) -> None:
        """Keep how far an expert may be from where it should be, if that is more than planned."""
        apart = min(apart, 2.0 * self.domain.radius)
        if apart > math.sqrt(self.tolerances[i]) * (1.0 + 1e-12):
            self.largest_distance = max(self.largest_distance, apart)


_PLACES = Field(list, ("gradients",), items=Field(np.int64, (None,), 0))
_NUMBERS = Field(list, ("gradients",), items=Field(np.float64, (None,)))


@dataclass(eq=False)
class GradientSum:
    """A sum of gradients at points that are not dense."""

    # Entries of sparse gradients: adding sparse matrices round by round takes many times as long.
    rows: Annotated[list[Indices], _PLACES] = field(default_factory=list)
    cols: Annotated[list[Indices], _PLACES] = field(default_factory=list)
    values: Annotated[list[Array], _NUMBERS] = field(default_factory=list)
    rest: Annotated[Point | None, Field(POINTS, optional=True)] = None

    @classmethod
    def of(cls, total: Point) -> GradientSum:
        """The sum that is this point, with entries of its own: files could not tell shared ones."""
        total = trimmed(total, TOO_MANY_COLUMNS)
        return cls(rest=total.copy() if isinstance(total, FactoredMatrix) else total)

    def with_entries(self, rows: Any, cols: Any, slope: Any) -> GradientSum:
        """Return a new sum with one more gradient that has only these entries."""
        lists = [*self.rows, rows], [*self.cols, cols], [*self.values, slope]
        return GradientSum(*lists, self.rest)

    def plus(
        self, loss: Loss, slope: Any, like: Point, domain: Domain
    ) -> tuple[GradientSum, float]:
        """Return a new sum with the part of one more gradient along a set, and its norm."""
        if isinstance(loss, EntryLoss) and isinstance(like, FactoredMatrix):
            size = float(loss.gradient_norms(slope[None])[0])
            return self.with_entries(*loss.places(like.device), slope), size
        gradient = domain.tangent(in_kind_of(loss.pull_back(slope, like), like))
        total = gradient if self.rest is None else self.rest + gradient
        # No two sums share a list.
        return GradientSum([*self.rows], [*self.cols], [*self.values], total), norm(gradient)

    def fits(self, like: Point) -> bool:
        """Whether a sum read from a file can be one of gradients at such a point."""
        if self.rest is not None and not same_kind(self.rest, like):
            return False
        sides = zip((self.rows, self.cols), like.shape, strict=False)
        held = ((to_host(each), size) for side, size in sides for each in side)
        return all(each.min(initial=0) >= 0 and each.max(initial=0) < size for each, size in held)

    def total(self, like: Point) -> Point:
        """The sum, as a point of the same kind as `like`."""
        if not self.rows:
            return 0.0 * like if self.rest is None else self.rest
        concat, parts = namespace(self.rows[0]).concat, (self.rows, self.cols, self.values)
        entries = (concat(part) if len(part) > 1 else part[0] for part in parts)
        stored = FactoredMatrix._stored(like.shape, *entries)
        return stored if self.rest is None else self.rest + stored


def scaled_totals(
    sums: Sequence[GradientSum], factors: Sequence[float], like: Sequence[Point]
) -> list[Point]:
    """Return several sums, times factors; on a device, sums of entries by calls that they share."""
    entries = [(each.rows, each.cols, each.values) for each in sums]
    shared = len(sums) > 1 and all(each.rows and each.rest is None for each in sums)
    if not shared or like[0].device is HOST:
        return [a * each.total(x) for each, a, x in zip(sums, factors, like, strict=True)]
    return [*FactoredMatrix._stored_of_each(like[0].shape, entries, factors)]

"""Experts that take blocked gradient steps with infeasible projections."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.domains.base import require_feasible, require_kind, same_kind
from driftwolfe.ensemble.budget import LMOBudget, RoundBudget, granted
from driftwolfe.ensemble.evaluate import Scores
from driftwolfe.ensemble.plan import FOREVER, Plan, ProjectionConfig
from driftwolfe.losses import Loss
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.oracles import Atoms, InfeasibleProjection, infeasible_projection
from driftwolfe.points import FactoredMatrix, norm
from driftwolfe.points.devices import namespace, to_host
from driftwolfe.points.kinds import Array, Indices, Point
from driftwolfe.points.product import at_home
from driftwolfe.storage import require


@dataclass(eq=False)
class GradientSum:
    """A sum of gradients of points that are not dense.

    Gradients of entry losses are kept as lists of entries and made into one sparse matrix at the
    end, which costs a fraction of adding sparse matrices round by round.
    """

    rows: list[Indices] = field(default_factory=list)
    cols: list[Indices] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)
    rest: Point | None = None

    def plus(self, loss: Loss, slope: Any, like: Point) -> tuple[GradientSum, float | None]:
        """Return the sum with one more gradient, and that gradient's norm; this one stays.

        Norms of gradients of entries are None: `EntryLoss.gradient_norms` has those of several at
        once.
        """
        if isinstance(loss, EntryLoss) and isinstance(like, FactoredMatrix):
            rows, cols = loss.places(like.device)
            lists = ([*self.rows, rows], [*self.cols, cols], [*self.values, slope])
            return GradientSum(*lists, self.rest), None
        gradient = at_home(loss.pull_back(slope, like), like)
        total = gradient if self.rest is None else self.rest + gradient
        return GradientSum(self.rows, self.cols, self.values, total), norm(gradient)

    def fits(self, like: Point) -> bool:
        """Whether a sum that was read from a file can be one of gradients at such a point."""
        if self.rest is not None and not same_kind(self.rest, like):
            return False
        sides = zip((self.rows, self.cols), like.shape, strict=False)
        held = ((to_host(each), size) for side, size in sides for each in side)
        return all(each.min(initial=0) >= 0 and each.max(initial=0) < size for each, size in held)

    def total(self, like: Point) -> Point:
        """The sum, as a point of the same kind as `like`."""
        if not self.rows:
            return 0.0 * like if self.rest is None else self.rest
        concat = namespace(self.rows[0]).concat
        entries = (concat(part) for part in (self.rows, self.cols, self.values))
        stored = FactoredMatrix._stored(like.shape, *entries)
        return stored if self.rest is None else self.rest + stored


class Projections(NamedTuple):
    """What the projections of one round came to.

    Attributes
    ----------
    results
        Of each expert whose block ended.
    atoms
        The vertices known afterwards.
    paid
        Calls made out of the common purse.
    """

    results: list[InfeasibleProjection]
    atoms: Atoms | None = None
    paid: int = 0

    @property
    def farthest(self) -> float:
        """The largest distance of those that were cut off; 0 where none was."""
        return max((each.distance for each in self.results if not each.converged), default=0.0)


#: What a stack keeps of the plans, in their order.
_COLUMNS = ("steps", "blocks", "tolerances", "shares", "lifetimes")


class Descent(ABC):
    r"""N experts that take blocked gradient steps with infeasible projections.

    Expert i plays :math:`x_i`, adds up gradients for `block` rounds, and then
    :math:`(x_i, y_i) \leftarrow IP(x_i, y_i - c h_i \sum g)`: Algorithm 2 of the paper, on the
    expert's own clock. `prepare` works out a round without changing anything, `commit` carries it
    out, so that a loss or an oracle that fails leaves every expert as it was.

    Parameters
    ----------
    domain
        The set; its calls are the experts' calls.
    oracle
        How to project.
    step_scale
        c, in units of D/G; None: D over the largest gradient norm seen so far.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        "largest_gradient",
        "largest_distance",
        "projections",
        "steps",
        "blocks",
        "tolerances",
        "shares",
        "lifetimes",
        "clocks",
        "purse",
        "atoms",
    )

    def __init__(self, domain: Domain, oracle: ProjectionConfig, step_scale: float | None) -> None:
        self.domain = domain
        self.oracle = oracle
        self.step_scale = step_scale
        self.largest_gradient = 0.0
        # Between x and y, of the projections that were cut off before their own tolerance.
        self.largest_distance = 0.0
        self.projections = 0
        self.steps: Array = np.empty(0)
        self.blocks: Indices = np.empty(0, dtype=np.int64)
        self.tolerances: Array = np.empty(0)
        self.shares: Array = np.empty(0)
        self.lifetimes: Indices = np.empty(0, dtype=np.int64)
        self.purse = _purse(oracle)
        self.atoms = Atoms(oracle.lazy) if oracle.lazy else None
        self.clocks: Indices = np.empty(0, dtype=np.int64)

    @property
    def size(self) -> int:
        """Number of experts."""
        return int(self.steps.size)

    def scale_for(self, largest_gradient: float) -> float:
        """The factor c in eta = c h once gradients up to that norm have been seen."""
        if self.step_scale is not None:
            return self.step_scale
        return 2.0 * self.domain.radius / largest_gradient if largest_gradient > 0 else 0.0

    def tolerance_for(self, plan: Plan) -> float:
        """The squared distance that a bound must allow for: what was asked, or what was left."""
        return max(plan.tolerance, self.largest_distance**2)

    def remember(self, before: Descent | None) -> None:
        """Take over what the experts of an earlier epoch found out for steps and bounds."""
        if before is not None:
            self.largest_gradient = before.largest_gradient
            self.largest_distance = before.largest_distance
            self.purse, self.atoms = before.purse, before.atoms

    def add(self, start: Point, plans: Sequence[Plan]) -> None:
        """Add an expert for each plan, all starting at the feasible point `start`."""
        if not plans:
            return
        for name, column in zip(_COLUMNS, zip(*plans, strict=True), strict=True):
            held = getattr(self, name)
            setattr(self, name, np.concatenate((held, np.array(column, held.dtype))))
        self.clocks = np.concatenate((self.clocks, np.zeros(len(plans), dtype=np.int64)))
        self._add_points(start, len(plans))

    def remove(self, gone: Any) -> None:
        """Remove the experts that a mask marks."""
        stay = ~np.asarray(gone, dtype=bool)
        for name in (*_COLUMNS, "clocks"):
            setattr(self, name, getattr(self, name)[stay])
        self._keep_points(stay)

    def restart(self, number: int, start: Point) -> None:
        """Let the first experts start afresh at the feasible point `start`, with the same plans."""
        self.clocks[:number] = 0
        self._restart_points(number, start)

    def due(self, skip: Any = None) -> Indices:
        """Positions of the experts whose block ends with the coming round."""
        ends = (self.clocks + 1) % self.blocks == 0
        return (ends if skip is None else ends > skip).nonzero()[0]

    def check_state(self) -> None:
        """Refuse a state, read from a file, whose parts do not fit together."""
        columns = [getattr(self, name) for name in (*_COLUMNS, "clocks")]
        require(all(column.size == self.size for column in columns), "experts")
        require((self.blocks > 0).all() and (self.clocks >= 0).all(), "clocks of experts")
        require((self.steps > 0.0).all() and (self.tolerances >= 0.0).all(), "plans of experts")
        numbers = (self.largest_gradient, self.largest_distance, self.projections)
        require(min(numbers) >= 0, "experts")
        require((self.shares >= 0.0).all() and (self.lifetimes > 0).all(), "plans of experts")
        if self.atoms is not None:
            require_kind(self.domain, self.atoms.points, "vertices")
            require_feasible(self.domain, self.atoms.points)

    @property
    def exact(self) -> bool:
        """Whether experts project exactly, which needs no start and no tolerance."""
        method = self.oracle.method
        return method == "exact" or (method == "auto" and self.domain.cheap_projection)

    @property
    def side_by_side(self) -> bool:
        """Whether one expert's projections do not depend on what others have found or spent."""
        return self.atoms is None and self.purse is None

    def limit(self, i: int) -> int | None:
        """Calls that expert i may make when its block ends, where it has only its own share."""
        if self.oracle.budget is None:
            return self.oracle.max_lmo_calls
        return granted(float(self.shares[i]), int(self.blocks[i]))

    def project_in_turn(self, due: Indices, targets: Iterable[Point], skip: Any) -> Projections:
        """Project the experts whose blocks end, one after the other; nothing else changes."""
        atoms, round_budget = copy(self.atoms), self._round_budget(skip)
        most = self.oracle.max_lmo_calls or FOREVER
        results = []
        for number, (i, target) in enumerate(zip(due.tolist(), targets, strict=True)):
            limit = self.limit(i) if round_budget is None else min(most, round_budget.limit(i))
            result = self.project(i, self.point(i), target, number, limit, atoms=atoms)
            if round_budget is not None:
                round_budget.pay(i, result.lmo_calls)
            results.append(result)
        return Projections(results, atoms, 0 if round_budget is None else round_budget.paid)

    def settle(self, projections: Projections) -> None:
        """Carry out what projections have cost and found."""
        self.atoms = projections.atoms
        if self.purse is not None:
            self.purse.close(projections.paid)

    def _round_budget(self, skip: Any) -> RoundBudget | None:
        if self.purse is None:
            return None
        savings = self.shares * (self.clocks % self.blocks + 1)
        return self.purse.round_budget(savings if skip is None else np.where(skip, 0.0, savings))

    def project(
        self,
        i: int,
        x: Point,
        y: Point,
        number: int,
        limit: int | None,
        domain: Domain | None = None,
        atoms: Atoms | None = None,
    ) -> InfeasibleProjection:
        """Project for expert i with so many calls at most.

        `number` tells this call's random columns from others'; `domain` may count the calls in
        place of the experts' own.
        """
        return infeasible_projection(
            domain or self.domain,
            x,
            y,
            float(self.tolerances[i]),
            self.oracle.method,
            self.oracle.accuracy,
            limit,
            rng=(self.oracle.seed, self.projections + number),
            atoms=atoms,
        )

    @abstractmethod
    def point(self, i: int) -> Point:
        """What expert i plays."""

    @abstractmethod
    def mean(self, weights: Array) -> Point:
        """The weighted mean of what the experts play."""

    @abstractmethod
    def evaluate(self, loss: Loss) -> Scores:
        """What the loss sees of every expert."""

    @abstractmethod
    def prepare(self, loss: Loss, slopes: Any, shared: bool, skip: Any = None) -> Any:
        """Work out the coming round: gradients from `slopes`, projections where a block ends.

        `shared`: one slope for all experts; `skip` marks experts that will not play on.
        """

    @abstractmethod
    def commit(self, prepared: Any) -> None:
        """Carry out what `prepare` worked out."""

    @abstractmethod
    def _add_points(self, start: Point, number: int) -> None: ...

    @abstractmethod
    def _keep_points(self, stay: Any) -> None: ...

    @abstractmethod
    def _restart_points(self, number: int, start: Point) -> None: ...


def _purse(oracle: ProjectionConfig) -> LMOBudget | None:
    """What experts spend from together; None where each has its own, or no limit."""
    if oracle.budget is None or not (oracle.pooled or oracle.even):
        return None
    return LMOBudget(oracle.budget)

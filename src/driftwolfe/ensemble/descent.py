"""Experts that take blocked gradient steps with infeasible projections."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.domains.base import require_feasible, require_kind, same_kind
from driftwolfe.ensemble.evaluate import Evaluation, Scores, evaluate
from driftwolfe.ensemble.plan import FOREVER, LMOBudget, Plan, ProjectionConfig, granted
from driftwolfe.losses import Loss
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.oracles import Atoms, InfeasibleProjection, infeasible_projection
from driftwolfe.points import FactoredMatrix, norm
from driftwolfe.points.devices import namespace, to_host
from driftwolfe.points.kinds import Array, Indices, Point
from driftwolfe.points.ops import in_kind_of
from driftwolfe.storage import require


@dataclass(eq=False)
class GradientSum:
    """A sum of gradients at points that are not dense.

    Gradients of entry losses are kept as lists of entries and become one sparse matrix at the end,
    which costs a fraction of adding sparse matrices round by round.
    """

    rows: list[Indices] = field(default_factory=list)
    cols: list[Indices] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)
    rest: Point | None = None

    def plus(self, loss: Loss, slope: Any, like: Point) -> tuple[GradientSum, float | None]:
        """Return a new sum with one more gradient, and that gradient's norm.

        The norm is None for entry losses: `EntryLoss.gradient_norms` has those of several at once.
        """
        if isinstance(loss, EntryLoss) and isinstance(like, FactoredMatrix):
            rows, cols = loss.places(like.device)
            lists = ([*self.rows, rows], [*self.cols, cols], [*self.values, slope])
            return GradientSum(*lists, self.rest), None
        gradient = in_kind_of(loss.pull_back(slope, like), like)
        total = gradient if self.rest is None else self.rest + gradient
        return GradientSum(self.rows, self.cols, self.values, total), norm(gradient)

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
        concat = namespace(self.rows[0]).concat
        entries = (concat(part) for part in (self.rows, self.cols, self.values))
        stored = FactoredMatrix._stored(like.shape, *entries)
        return stored if self.rest is None else self.rest + stored


#: The plans of the experts, a column each, in the order of `Plan`.
_COLUMNS = ("steps", "blocks", "tolerances", "shares", "lifetimes")


class Descent(ABC):
    r"""N experts that take blocked gradient steps with infeasible projections.

    Expert i plays :math:`x_i`, adds up gradients for `block` rounds, and then
    :math:`(x_i, y_i) \leftarrow IP(x_i, y_i - c h_i \sum g)`: Algorithm 2 of the paper, on the
    expert's own clock.

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
        *_COLUMNS,
        "clocks",
        "pooled_budget",
        "atoms",
    )
    #: Names in files that are not those of the attributes.
    STATE_KEYS: ClassVar[dict[str, str]] = {"pooled_budget": "purse"}

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
        self.clocks: Indices = np.empty(0, dtype=np.int64)
        pooled = oracle.budget is not None and (oracle.pooled or oracle.even)
        self.pooled_budget = LMOBudget(oracle.budget or 0.0) if pooled else None
        self.atoms = Atoms(oracle.lazy) if oracle.lazy else None

    @property
    def size(self) -> int:
        """Number of experts."""
        return int(self.steps.size)

    def scale_for(self, largest_gradient: float) -> float:
        """Return the factor c in eta = c h once gradients up to that norm have been seen."""
        if self.step_scale is not None:
            return self.step_scale
        return 2.0 * self.domain.radius / largest_gradient if largest_gradient > 0 else 0.0

    def tolerance_for(self, plan: Plan) -> float:
        """Return the squared distance that a bound must allow for: as planned, or what was left."""
        return max(plan.tolerance, self.largest_distance**2)

    @property
    def gradient_factor(self) -> float:
        """How much longer the gradients of a step may be than those of the losses."""
        return 1.0

    def take_over(self, before: Descent) -> None:
        """Take over what the experts of an earlier epoch have learned for steps and bounds."""
        for name in ("largest_gradient", "largest_distance", "pooled_budget", "atoms"):
            setattr(self, name, getattr(before, name))

    # -- which experts there are -----------------------------------------------------------------

    def add(self, start: Point, plans: Sequence[Plan]) -> None:
        """Add an expert for each plan, all starting at the feasible point `start`."""
        if not plans:
            return
        for name, column in zip(_COLUMNS, zip(*plans, strict=True), strict=True):
            held = getattr(self, name)
            setattr(self, name, np.concatenate((held, np.array(column, held.dtype))))
        self.clocks = np.concatenate((self.clocks, np.zeros(len(plans), dtype=np.int64)))
        self._add_points(start, len(plans))

    def restart(self, number: int, start: Point) -> None:
        """Restart the first experts at the feasible point `start`, with the same plans."""
        self.clocks[:number] = 0
        self._restart_points(number, start)

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

    # -- a round ---------------------------------------------------------------------------------

    def evaluate(self, loss: Loss, weights: Array, linear: bool) -> Evaluation:
        """Evaluate a loss, or its linearisation, at every expert and at their weighted mean."""
        return evaluate(loss, self.scores(loss), weights, linear)

    @abstractmethod
    def step(self, loss: Loss, evaluation: Evaluation, leaving: Any = None) -> None:
        """Add each expert's gradient; where its block ends, take a step and project.

        `leaving` marks experts that will not play on. Nothing is written into arrays before all that
        can fail is done: whoever catches an error puts the attributes back.
        """

    @abstractmethod
    def scores(self, loss: Loss) -> Scores:
        """Return the scores of every expert under a loss."""

    @abstractmethod
    def point(self, i: int) -> Point:
        """Return what expert i plays."""

    @abstractmethod
    def mean(self, weights: Array) -> Point:
        """Return the weighted mean of what the experts play."""

    def restart_point(self, weights: Array, heaviest: Callable[[Array], int]) -> Point:
        """Return the mean, or, where its factors would pile up, what the heaviest expert plays."""
        leader = self.point(heaviest(weights))
        return leader if isinstance(leader, FactoredMatrix) else self.mean(weights)

    @property
    def exact(self) -> bool:
        """Whether experts project exactly, which needs no start and no tolerance."""
        method = self.oracle.method
        return method == "exact" or (method == "auto" and self.domain.cheap_projection)

    @property
    def independent(self) -> bool:
        """Whether an expert's projections do not depend on what others have found or spent."""
        return self.atoms is None and self.pooled_budget is None

    def due(self, leaving: Any = None) -> Indices:
        """Return the positions of the experts whose block ends with the coming round."""
        ends = (self.clocks + 1) % self.blocks == 0
        return (ends if leaving is None else ends > leaving).nonzero()[0]

    def limit(self, i: int) -> int | None:
        """Return the calls that expert i may make when its block ends, by its own share."""
        if self.oracle.budget is None:
            return self.oracle.max_lmo_calls
        return granted(float(self.shares[i]), int(self.blocks[i]))

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
        """Project y for expert i, starting from x.

        `number` gives each projection of a round its own random numbers; `domain` may count the calls
        in place of the experts' own.
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

    def project_in_turn(
        self, due: Indices, targets: Iterable[Point], leaving: Any
    ) -> list[InfeasibleProjection]:
        """Project one expert after the other, sharing vertices and the pooled budget of a round."""
        atoms, pool, results = copy(self.atoms), self.pooled_budget, []
        if pool is not None:
            savings = self.shares * (self.clocks % self.blocks + 1)
            shared = pool.round_budget(
                savings if leaving is None else np.where(leaving, 0, savings)
            )
        most = self.oracle.max_lmo_calls or FOREVER
        for number, (i, target) in enumerate(zip(due.tolist(), targets, strict=True)):
            limit = self.limit(i) if pool is None else min(most, shared.limit(i))
            result = self.project(i, self.point(i), target, number, limit, atoms=atoms)
            if pool is not None:
                shared.pay(i, result.lmo_calls)
            results.append(result)
        self.atoms = atoms
        if pool is not None:
            self.pooled_budget = pool.after(shared.paid)
        self._count(results)
        return results

    def _count(self, results: Sequence[InfeasibleProjection]) -> None:
        """Count projections, and keep the largest distance of those that were cut off."""
        cut_off = (each.distance for each in results if not each.converged)
        self.projections += len(results)
        self.largest_distance = max(self.largest_distance, *cut_off, 0.0)

    @abstractmethod
    def _add_points(self, start: Point, number: int) -> None: ...

    @abstractmethod
    def _restart_points(self, number: int, start: Point) -> None: ...

"""Options shared by all learners: their names, defaults and texts, and how they are checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

from driftwolfe.bounds.ensembles import Measured
from driftwolfe.domains import Domain
from driftwolfe.ensemble import block_length, projection_eps
from driftwolfe.ensemble.descent import Descent
from driftwolfe.ensemble.list import descent
from driftwolfe.ensemble.plan import FOREVER, Plan, ProjectionConfig, budgeted_plan
from driftwolfe.oracles import DEFAULT_ACCURACY, METHODS
from driftwolfe.points import checks
from driftwolfe.points.kinds import Point


class StepOptions(TypedDict, total=False):
    """Options of learners that take steps and project."""

    step_scale: float | None
    tolerance_scale: float | None
    accuracy: float | None
    tuning: str


class WeightOptions(StepOptions, total=False):
    """Options of learners that weigh experts."""

    loss_scale: float | str | None
    feedback: str


class BudgetOptions(StepOptions, total=False):
    """Options of learners that can keep a budget of LMO calls."""

    method: str
    seed: int
    lmo_budget: float | None
    schedule: str


class CacheOptions(BudgetOptions, total=False):
    """Options of learners that can cache vertices."""

    cache: int


class EnsembleOptions(WeightOptions, CacheOptions, total=False):
    """Options of POLD and POLA."""


class LeaderOptions(WeightOptions, BudgetOptions, total=False):
    """Options of POLAR, which has a default of its own for the cache."""


#: Vertices that leaders cache where LMO calls are scarce: with 16, vectors in benchmarks/budget had 6 %
#: more regret, with 256 as much.
CACHED = 64

#: Default and text of all shared options. `Learner` puts the texts of those that a docstring does not
#: describe in place of its ``{options}``.
OPTIONS: dict[str, tuple[Any, str]] = {
    "domain": (None, "The set."),
    "horizon": (None, "Rounds T; None: epochs of doubling length."),
    "lipschitz": ("auto", """G, a bound on gradient norms; ``"auto"``: the largest seen so far."""),
    "start": (
        "current",
        """New experts start at ``"current"``, the last point, or ``"origin"``.""",
    ),
    "step_scale": (None, "c, in place of D/G."),
    "loss_scale": (
        None,
        """B, the range of losses over the set in one round: a number, ``"certified"`` (G * diameter) or
        ``"auto"``, the largest difference between losses so far.""",
    ),
    "tolerance_scale": (
        None,
        r"Factor on the oracle's tolerances :math:`3\epsilon`; smaller tightens the bound.",
    ),
    "accuracy": (None, "Accuracy of the oracle, see `infeasible_projection`."),
    "method": (
        "auto",
        "Method of the oracle, see `infeasible_projection`; the bound allows for its tolerance.",
    ),
    "feedback": (
        "full",
        """``"full"``: each expert has its own gradient; ``"linear"``: one gradient per round, at the
        decision, with the same bound.""",
    ),
    "tuning": (
        "practical",
        """``"practical"``: tolerance_scale 1e-6, so that the oracle's accuracy decides, and loss_scale
        ``"auto"``; ``"certified"``: the constants of theory, tolerance_scale 1 and loss_scale
        ``"certified"``.""",
    ),
    "seed": (0, "Seed of the oracle's random numbers."),
    "lmo_budget": (
        None,
        """LMO calls per round b, for all experts together; None: no limit. After every round t, at most
        b t calls have been made. The certified tuning has the blocks and tolerances that b surely
        affords with an exact oracle; the practical tuning keeps its own, and experts use what others
        leave. Where the budget ends a projection early, `bound` allows for the distance that was left.""",
    ),
    "schedule": (
        "blocks",
        """``"blocks"``: LMO calls are made when blocks end; ``"even"``: with a budget of 1, at most one
        in every round. `POLAR` has less regret with blocks.""",
    ),
    "cache": (
        0,
        """Number of vertices to cache and to try before the LMO is called (`Atoms`); for methods
        ``"halfspace"`` and, except on trace-norm balls, ``"corrective"``.""",
    ),
    "inner_steps": (1, "Frank-Wolfe steps per round, on the same loss."),
}


@dataclass(frozen=True, slots=True)
class Options:
    """Checked options, as learners use them."""

    D: float  # twice the radius of the set
    horizon: int | None
    lipschitz: float | None  # None: the largest gradient norm so far
    step_scale: float | None  # c in eta = c h; None: D over the largest gradient norm so far
    loss_scale: float | Literal["auto"]
    tolerance_scale: float  # factor on the paper's 3 eps
    certified: bool  # whether the constants are those of theory
    linear: bool  # whether experts and weights see the linearised loss
    oracle: ProjectionConfig
    #: Where gradients are random: bounds on the norms of their means and on their root mean square norms,
    #: for bounds in expectation.
    random_gradients: tuple[float, float] | None = None

    @property
    def delay_factor(self) -> float:
        """Factor on the step term of bounds: calls when a block ends, or spread over the next."""
        return 3.0 if self.oracle.even else 1.0

    @property
    def planned(self) -> bool:
        """Whether blocks and tolerances are what a budget can surely afford."""
        return self.oracle.budget is not None and not self.oracle.pooled

    def scale_for(self, largest_gradient: float) -> float:
        """Return c, D over the largest gradient norm so far where it is learned."""
        if self.step_scale is not None:
            return self.step_scale
        return self.D / largest_gradient if largest_gradient > 0 else 0.0

    def tolerance(self, h: float) -> float:
        """Return the paper's 3 eps for the step h, times `tolerance_scale`."""
        return 3.0 * self.D**2 * projection_eps(h) * self.tolerance_scale

    def plan(self, h: float, reserved: float = 0.0, lifetime: int = FOREVER) -> Plan:
        """Return the expert with the step h, by the paper, or as the calls reserved for it surely afford."""
        if not self.planned:
            return Plan(h, block_length(h), self.tolerance(h), reserved, lifetime)
        plan = budgeted_plan(h, reserved, self.delay_factor)
        tolerance = plan.tolerance * self.D**2 * self.tolerance_scale
        return plan._replace(tolerance=tolerance, lifetime=lifetime)

    def experts(self, domain: Domain, plans: Sequence[Plan], start: Point) -> Descent:
        """Return experts that descend with these plans, all from one feasible point."""
        experts = descent(domain, self.oracle, self.step_scale)
        experts.add(start, plans)
        return experts

    def unblocked_plan(self, h: float, lifetime: int = FOREVER) -> Plan:
        """Return the expert with the step h that projects after every round."""
        plan = self.plan(h, lifetime=lifetime)._replace(block=1)
        return plan._replace(tolerance=0.0) if self.oracle.method == "exact" else plan

    def ball_plan(self, h: float, rounds: int, lifetime: int = FOREVER) -> Plan:
        """Return the expert with the step h whose tolerance costs G D sqrt(T) in so many rounds T."""
        exact = self.oracle.method == "exact"
        tolerance = 0.0 if exact else self.tolerance_scale * self.D**2 / rounds
        return Plan(h, 1, tolerance, 0.0, lifetime)

    def measured(self, experts: Any) -> Measured:
        """Return what bounds need to know of a game with these experts."""
        G = max(self.lipschitz or 0.0, experts.largest_gradient)
        mean, noise = self.random_gradients or (G, 0.0)
        return Measured(
            G=G,
            D=self.D,
            diameter=experts.diameter,
            step_scale=experts.scale_for(G),
            shrinking_steps=self.step_scale is None,
            largest_distance=experts.largest_distance,
            delay_factor=self.delay_factor,
            surrogates=experts.gradient_factor * mean,
            noise=noise,
        )


def make_options(
    domain: Domain,
    horizon: Any = None,
    lipschitz: Any = "auto",
    leaders: bool = False,
    on_ball: bool = False,
    **given: Any,
) -> Options:
    """Check the options of a learner and fill in the defaults of its tuning.

    With `leaders`, experts that project sums of gradients, ``"auto"`` with cached vertices is the set's
    own method, as ``"halfspace"`` would project another point; and a budget pays for a cache.
    With `on_ball`, experts lie in the ball around the set, over which losses have a larger range.
    """
    check_set(domain)
    o = {name: default for name, (default, _) in OPTIONS.items()} | given
    checks.one_of(o["tuning"], "tuning", ("practical", "certified"))
    checks.one_of(o["feedback"], "feedback", ("full", "linear"))
    checks.one_of(o["method"], "method", ("auto", *METHODS))
    certified, budget = o["tuning"] == "certified", o["lmo_budget"]
    defaults = {
        "tolerance_scale": 1.0 if certified else 1e-6,  # small beside any step
        "loss_scale": "certified" if certified else "auto",
        "accuracy": None if certified else DEFAULT_ACCURACY,
    }
    o |= {name: value for name, value in defaults.items() if o[name] is None}
    method = _method(domain, o, leaders)
    if o["cache"] is None:
        scarce = leaders and budget is not None and not certified and o["schedule"] == "blocks"
        dense = method == "corrective" and not domain.rank_one_atoms
        o["cache"] = CACHED if scarce and dense else 0
    D = 2.0 * domain.radius
    learned = isinstance(lipschitz, str) and lipschitz == "auto"
    G = None if learned else checks.positive(lipschitz, 'lipschitz, if not "auto",')
    step_scale = None if G is None else D / G
    if o["step_scale"] is not None:
        step_scale = checks.positive(o["step_scale"], "step_scale")
    return Options(
        D=D,
        horizon=None if horizon is None else checks.count(horizon, "horizon"),
        lipschitz=G,
        step_scale=step_scale,
        loss_scale=_loss_scale(o["loss_scale"], G, D if on_ball else domain.diameter),
        tolerance_scale=checks.positive(o["tolerance_scale"], "tolerance_scale"),
        certified=certified,
        linear=o["feedback"] == "linear",
        oracle=ProjectionConfig(
            method,
            None if o["accuracy"] is None else checks.positive(o["accuracy"], "accuracy"),
            None if certified else 200,  # LMO calls per projection
            checks.count(o["seed"], "seed", least=0, most=math.inf),
            budget=None if budget is None else checks.positive(budget, "lmo_budget"),
            pooled=budget is not None and not certified,
            even=o["schedule"] == "even",
            cached_vertices=checks.count(o["cache"], "cache", least=0),
            by_gap=certified,
        ),
    )


def check_set(domain: Any) -> None:
    """Refuse what is no set, and one that is too large."""
    if not isinstance(domain, Domain):
        raise TypeError(f"domain must be a Domain, got {type(domain).__name__}")
    if domain.radius > 1e150:
        raise ValueError(
            f"domain has the radius {domain.radius:g}, whose square leaves the range of numbers: "
            "use larger units"
        )


def require_projection(domain: Domain, learner: str, instead: str) -> None:
    """Refuse a set that cannot project, and name a learner that needs no projections."""
    if not domain.can("project"):
        raise ValueError(
            f"{learner} projects, and {type(domain.unwrapped).__name__} has no projection; "
            f"use {instead}, which needs only linear minimisation"
        )


def _method(domain: Domain, o: Mapping[str, Any], leaders: bool) -> str:
    """The method asked for; with a budget, one whose only cost is LMO calls."""
    method, budget, schedule, cache = (o[n] for n in ("method", "lmo_budget", "schedule", "cache"))
    checks.one_of(schedule, "schedule", ("blocks", "even"))
    if schedule == "even" and budget is None:
        raise ValueError('schedule="even" spreads a budget over the rounds; give lmo_budget=1.0')
    if schedule == "even" and cache:
        raise ValueError('cache works with schedule="blocks"; leave one of the two out')
    if schedule == "even":
        checks.one_of(
            method, "with an even schedule, method", ("auto", "halfspace")
        )  # runs that can pause
        return "halfspace"
    if cache:
        checks.one_of(method, "with a cache, method", ("auto", "halfspace", "corrective"))
    if method != "auto" or (budget is None and not cache):
        return str(method)
    return (
        "halfspace" if o["tuning"] == "certified" or (cache and not leaders) else domain.lmo_method
    )


def _loss_scale(given: Any, G: float | None, diameter: float) -> float | Literal["auto"]:
    if not isinstance(given, str):
        return checks.positive(given, "loss_scale")
    checks.one_of(given, "loss_scale, if not a number,", ("auto", "certified"))
    if given == "auto":
        return "auto"
    if G is None:
        raise ValueError(
            "a certified loss scale is lipschitz * diameter, so lipschitz must be a number; "
            'give one, or use loss_scale="auto"'
        )
    return G * diameter

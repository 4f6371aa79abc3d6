"""Options shared by all learners: their names, defaults and texts, and how they are checked."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypedDict

import numpy as np

from driftwolfe.bounds.ensembles import Measured
from driftwolfe.domains import Domain
from driftwolfe.ensemble.descent import Descent
from driftwolfe.ensemble.list import descent
from driftwolfe.ensemble.plan import (
    FOREVER,
    Plan,
    ProjectionConfig,
    block_length,
    budgeted_plan,
    projection_eps,
)
from driftwolfe.oracles import Oracle
from driftwolfe.oracles.infeasible_projection import CACHE_MOVED
from driftwolfe.oracles.methods import DEFAULT_ACCURACY
from driftwolfe.points import checks
from driftwolfe.points.kinds import Point


class StepOptions(TypedDict, total=False):
    """Options of learners that take steps."""

    step_scale: float | None
    tuning: str


class ScaleOptions(TypedDict, total=False):
    """Options of learners that weigh experts, and set their own steps."""

    loss_scale: float | str | None
    feedback: str
    tuning: str


class WeightOptions(StepOptions, ScaleOptions, total=False):
    """Options of learners that weigh experts."""


#: Vertices that leaders cache where LMO calls are scarce: with 16, vectors in benchmarks/budget had 6 %
#: more regret, with 256 as much.
CACHED = 64

#: Default and text of all shared options. `Learner` puts the texts of those that a docstring does not
#: describe in place of its ``{options}``.
OPTIONS: dict[str, tuple[Any, str]] = {
    "domain": (None, "The set."),
    "learner": (
        None,
        """A learner's class, or a function called as ``learner(domain, horizon=..., lipschitz=..., ...)``;
        or a learner on this set that has played no round, which is copied.""",
    ),
    "horizon": (None, "Rounds T; None: epochs of doubling length."),
    "lipschitz": ("auto", """G, a bound on gradient norms; ``"auto"``: the largest seen so far."""),
    "seed": (0, "Seed of what is drawn at random."),
    "options": (None, "Of the learner."),
    "start": ("current", """New experts start at ``"current"``, the last point or ``"origin"``."""),
    "step_scale": (None, "c, in place of D/G."),
    "loss_scale": (
        None,
        """B, the range of losses over the set in one round: a number, ``"certified"`` (G * diameter) or
        ``"auto"``, the largest difference between losses so far.""",
    ),
    "oracle": (
        "auto",
        """How to project: a method of `infeasible_projection`, or an `Oracle` with that, its accuracy, a
        budget of LMO calls and more.""",
    ),
    "feedback": (
        "full",
        """``"full"``: each expert has its own gradient; ``"linear"``: one gradient per round, at the
        decision, with the same bound.""",
    ),
    "tuning": (
        "practical",
        """``"practical"``: projections as accurate as the oracle says, and loss_scale ``"auto"``;
        ``"certified"``: the constants of theory, its tolerances, and loss_scale ``"certified"``.""",
    ),
}


@dataclass(frozen=True, slots=True)
class Options:
    """Checked options, as learners use them."""

    D: float  # twice the radius of the set
    horizon: int | None
    lipschitz: float | None  # None: the largest gradient norm so far
    step_scale: float | None  # c in eta = c h; None: D over the largest gradient norm so far
    loss_scale: float | Literal["auto"]
    tolerance_scale: float  # factor on the paper's 3 eps, see `Oracle`
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

    def experts(
        self, domain: Domain, plans: Sequence[Plan], start: Point, several: bool = False
    ) -> Descent:
        """Return experts that descend with these plans, all from one feasible point; `several` rules."""
        experts = descent(domain, self.oracle, self.step_scale, several)
        experts.add(start, plans)
        return experts

    def unblocked_plan(self, h: float, lifetime: int = FOREVER) -> Plan:
        """Return the expert with the step h that projects after every round."""
        plan = self.plan(h, lifetime=lifetime)._replace(block=1)
        return plan._replace(tolerance=0.0) if self.oracle.method == "exact" else plan

    def interval_plan(self, length: int) -> Plan:
        """Return the expert for an interval of that length, with the step 1/sqrt(length)."""
        return self.unblocked_plan(length**-0.5, length)

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
    *,
    oracle: Oracle | str = "auto",
    step_scale: Any = None,
    loss_scale: Any = None,
    feedback: str = "full",
    tuning: str = "practical",
    leaders: bool = False,
    on_ball: bool = False,
) -> Options:
    """Check the options of a learner and fill in the defaults of its tuning.

    With `leaders`, experts that project sums of gradients, ``"auto"`` with cached vertices is the set's own method,
    and where calls are dear, with a budget or on a set that is known by its LMO alone, there is a cache by default.
    With `on_ball`, experts lie in the ball around the set, over which losses have a larger range.
    """
    check_set(domain)
    checks.one_of(tuning, "tuning", ("practical", "certified"))
    checks.one_of(feedback, "feedback", ("full", "linear"))
    given, certified, D = Oracle.of(oracle), tuning == "certified", 2.0 * domain.radius
    cache, budget = domain.cached_vertices, given.lmo_budget
    if cache:
        cached = ("auto", "halfspace", "corrective")
        checks.one_of(given.method, "on a CachedDomain, method", cached)
    if cache or leaders:  # targets that are a block old do worse, and share no vertices
        whose = "on a CachedDomain" if cache else "for POLAR"
        checks.one_of(given.schedule, f"{whose}, schedule", ("blocks",))
    by_calls = leaders and not certified
    dear = budget is not None or (by_calls and domain.known_by_lmo and not domain.can("project"))
    method = _method(domain, given, certified, leaders, dear)
    if cache is None:
        dense = method == "corrective" and not domain.rank_one_atoms
        cache = CACHED if dear and by_calls and dense else 0
    learned = isinstance(lipschitz, str) and lipschitz == "auto"
    G = None if learned else checks.positive(lipschitz, 'lipschitz, if not "auto",')
    steps = None if G is None else D / G
    if step_scale is not None:
        steps = checks.positive(step_scale, "step_scale")
    if loss_scale is None:
        loss_scale = "certified" if certified else "auto"
    return Options(
        D=D,
        horizon=None if horizon is None else checks.count(horizon, "horizon"),
        lipschitz=G,
        step_scale=steps,
        loss_scale=_loss_scale(loss_scale, G, D if on_ball else domain.diameter),
        # Small beside any step, or that of theory.
        tolerance_scale=given.tolerance_scale or (1.0 if certified else 1e-6),
        certified=certified,
        linear=feedback == "linear",
        oracle=ProjectionConfig(
            method,
            given.accuracy or (None if certified else DEFAULT_ACCURACY),
            None if certified else 200,  # LMO calls per projection
            given.seed,
            budget=budget,
            pooled=budget is not None and not certified,
            even=given.schedule == "even",
            cached_vertices=cache,
            by_gap=certified,
        ),
    )


def projecting_options(
    learner: str, instead: str, domain: Domain, *given: Any, oracle: Oracle | str, **more: Any
) -> Options:
    """Check the options of a learner that projects exactly, or by an oracle without a budget."""
    check_set(domain)
    if Oracle.of(oracle).lmo_budget is not None or domain.cached_vertices:
        raise ValueError(
            f"{learner} has no budget of LMO calls and no cache; leave lmo_budget out of its oracle, give "
            f"the set without CachedDomain, or use {instead}"
        )
    checked = make_options(domain, *given, oracle=oracle, **more)
    if checked.oracle.method == "exact":
        require_projection(domain, learner, instead)
    return checked


#: Former keywords of learners, which are now of their oracle.
MOVED = {field.name for field in fields(Oracle)}


def check_moved(learner: str, taken: Container[str], given: Mapping[str, Any]) -> None:
    """Raise a TypeError for a keyword that the oracle of a learner has now."""
    for name in given:
        if "oracle" in taken and name in ("cache", "lazy"):
            raise TypeError(CACHE_MOVED.format(learner, given[name]))
        if "oracle" in taken and name in MOVED and name not in taken:
            way = f"driftwolfe.Oracle({name}={given[name]!r})"
            way = repr(given[name]) if name == "method" else way
            raise TypeError(f"{learner} has no {name}: give oracle={way}")


def check_set(domain: Any) -> None:
    """Refuse what is no set, and one that is too large."""
    if not isinstance(domain, Domain):
        raise TypeError(f"domain must be a Domain, got {type(domain).__name__}")
    if domain.radius > 1e150:
        raise ValueError(
            f"domain has the radius {domain.radius:g}, whose square leaves the range of numbers: "
            "use larger units"
        )


def require_arrays(domain: Domain, learner: str, instead: str, most: float = math.inf) -> None:
    """Refuse a set whose points are no arrays, or too large, and name a learner for it."""
    point = domain.origin()
    if not isinstance(point, np.ndarray) or point.size > most:
        limit = f" of at most {most:,} numbers" if most < math.inf else ""
        raise ValueError(
            f"{learner} works on dense arrays{limit}, not on {type(domain.unwrapped).__name__} of "
            f"shape {domain.shape}; use {instead}"
        )


def require_projection(domain: Domain, learner: str, instead: str) -> None:
    """Refuse a set that cannot project, and name a learner that needs no projections."""
    if not domain.can("project"):
        raise ValueError(
            f"{learner} projects, and {type(domain.unwrapped).__name__} has no projection; "
            f"use {instead}, which needs only linear minimisation"
        )


def _method(domain: Domain, oracle: Oracle, certified: bool, leaders: bool, dear: bool) -> str:
    """The method asked for; where LMO calls are dear, one whose only cost they are."""
    if oracle.schedule == "even":
        return "halfspace"
    cache = domain.cached_vertices
    if oracle.method != "auto" or not (dear or cache):
        return oracle.method
    return "halfspace" if certified or (cache and not leaders) else domain.lmo_method


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

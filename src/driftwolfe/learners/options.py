"""Validated options shared by all learners, and epochs of doubling length."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from driftwolfe.domains import Domain
from driftwolfe.ensemble.plan import DELAY_AT_BLOCK_END, DELAY_SPREAD, ProjectionConfig
from driftwolfe.learners.base import Learner
from driftwolfe.oracles import DEFAULT_ACCURACY, METHODS
from driftwolfe.points import checks
from driftwolfe.points.kinds import Point
from driftwolfe.storage import require

#: Tolerance of the practical tuning, in units of the paper's 3 eps: small beside any step.
PRACTICAL_TOLERANCE = 1e-6
#: Methods that make one Frank-Wolfe run.
_ONE_RUN = ("auto", "halfspace")
#: Linear minimisations that one projection of the practical tuning may take.
PRACTICAL_CALLS = 200


@dataclass(frozen=True, slots=True)
class Options:
    """Checked options; D = 2 R and G as the bounds use them.

    Attributes
    ----------
    horizon
        Rounds T, or None.
    lipschitz
        G, or None where it is learned: the largest gradient norm so far.
    step_scale
        c in eta = c h, or None for D / (largest gradient norm so far).
    loss_scale
        Range of the losses that the meta works with, or ``"auto"`` to learn it.
    tolerance_scale
        Factor on the paper's 3 eps.
    linear
        Whether experts and meta see the linearised loss.
    oracle
        How to project.
    """

    horizon: int | None
    lipschitz: float | None
    step_scale: float | None
    loss_scale: float | Literal["auto"]
    tolerance_scale: float
    linear: bool
    oracle: ProjectionConfig

    @property
    def delay_factor(self) -> float:
        """Factor on the step term of bounds: calls when a block ends, or spread over the next."""
        return DELAY_SPREAD if self.oracle.even else DELAY_AT_BLOCK_END

    @property
    def planned(self) -> bool:
        """Whether blocks and tolerances are what a budget can surely afford."""
        return self.oracle.budget is not None and not self.oracle.pooled


def make_options(
    domain: Domain,
    *,
    horizon: Any = None,
    lipschitz: Any = "auto",
    step_scale: Any = None,
    loss_scale: Any = None,
    tolerance_scale: Any = None,
    accuracy: Any = None,
    method: Any = "auto",
    feedback: Any = "full",
    tuning: Any = "practical",
    seed: Any = 0,
    lmo_budget: Any = None,
    schedule: Any = "blocks",
    lazy: Any = 0,
) -> Options:
    """Check the options and fill in what the tuning says."""
    if not isinstance(domain, Domain):
        raise TypeError(f"domain must be a Domain, got {type(domain).__name__}")
    _one_of(tuning, "tuning", ("practical", "certified"))
    _one_of(feedback, "feedback", ("full", "linear"))
    _one_of(method, "method", ("auto", *METHODS))
    certified = tuning == "certified"
    G = None if _is(lipschitz, "auto") else checks.positive(lipschitz, "lipschitz")
    if step_scale is None:
        step_scale = None if G is None else 2.0 * domain.radius / G
    else:
        step_scale = checks.positive(step_scale, "step_scale")
    if tolerance_scale is None:
        tolerance_scale = 1.0 if certified else PRACTICAL_TOLERANCE
    if loss_scale is None:
        loss_scale = "certified" if certified else "auto"
    return Options(
        horizon=None if horizon is None else checks.count(horizon, "horizon"),
        lipschitz=G,
        step_scale=step_scale,
        loss_scale=_loss_scale(loss_scale, G, domain),
        tolerance_scale=checks.positive(tolerance_scale, "tolerance_scale"),
        linear=feedback == "linear",
        oracle=ProjectionConfig(
            _method(domain, method, lmo_budget, schedule, lazy, certified),
            _accuracy(accuracy, certified),
            None if certified else PRACTICAL_CALLS,
            checks.count(seed, "seed", least=0, most=math.inf),
            budget=None if lmo_budget is None else checks.positive(lmo_budget, "lmo_budget"),
            pooled=lmo_budget is not None and not certified,
            even=schedule == "even",
            lazy=checks.count(lazy, "lazy", least=0),
        ),
    )


def require_projection(domain: Domain, learner: str, instead: str) -> None:
    """Refuse a set that cannot project, and say which learner can do without."""
    if not domain.can("project"):
        raise ValueError(
            f"{learner} projects, and {type(domain.unwrapped).__name__} has no projection; "
            f"use {instead}, which needs only linear minimisation"
        )


def _method(
    domain: Domain, method: str, lmo_budget: Any, schedule: Any, lazy: Any, certified: bool
) -> str:
    """The method asked for; where calls are counted, one that needs nothing but those."""
    _one_of(schedule, "schedule", ("blocks", "even"))
    if schedule == "even" and lmo_budget is None:
        raise ValueError('schedule="even" spreads a budget over the rounds; give lmo_budget=1.0')
    if schedule == "even" or lazy:
        _one_of(method, f"with {'lazy' if lazy else 'an even schedule'}, method", _ONE_RUN)
        if schedule == "even" and lazy:
            raise ValueError('lazy works with schedule="blocks"; leave one of the two out')
        return "halfspace"
    if method != "auto" or lmo_budget is None:
        return method
    return "halfspace" if certified else domain.lmo_method


def _accuracy(given: Any, certified: bool) -> float | None:
    if given is None:
        return None if certified else DEFAULT_ACCURACY
    return checks.positive(given, "accuracy")


def _loss_scale(given: Any, G: float | None, domain: Domain) -> float | Literal["auto"]:
    if _is(given, "auto"):
        return "auto"
    if _is(given, "certified"):
        if G is None:
            raise ValueError(
                "a certified loss scale is lipschitz * diameter, so lipschitz must be a number; "
                'give one, or use loss_scale="auto"'
            )
        return G * domain.diameter
    if isinstance(given, str):
        raise ValueError(f'loss_scale must be "auto", "certified" or a number, got {given!r}')
    return checks.positive(given, "loss_scale")


def _is(given: Any, word: str) -> bool:
    return isinstance(given, str) and given == word


def _one_of(given: Any, name: str, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        known = ", ".join(f'"{word}"' for word in allowed)
        raise ValueError(f"{name} must be one of {known}, got {given!r}")


#: Rounds of the first epoch where the horizon is not known.
FIRST_EPOCH = 64


class EpochLearner(Learner):
    """A learner whose parameters come from a horizon T.

    With ``horizon=None`` it runs in epochs of 64, 128, 256, ... rounds, each with the parameters
    of its own length and starting where the last one ended. Played beyond a given horizon, it goes
    on with the same parameters; the bound then grows with the rounds.
    """

    STATE: ClassVar[tuple[str, ...]] = ("_epoch_start", "_epoch_length")

    def __init__(self, domain: Domain, options: Options) -> None:
        super().__init__(domain)
        self.options = options
        self._epoch_start = 0
        self._epoch_length = options.horizon or FIRST_EPOCH
        self._begin(self._epoch_length, domain.origin())

    def check_state(self) -> None:
        """As `Learner.check_state`; rounds of an epoch that is under way."""
        super().check_state()
        start, length = 0, self.options.horizon or FIRST_EPOCH
        while self.options.horizon is None and self.t >= start + length:
            start, length = start + length, 2 * length
        require((self._epoch_start, self._epoch_length) == (start, length), "epochs and rounds")

    @property
    def lmo_budget(self) -> float | None:
        """Linear minimisations a round, for all experts together; None for no limit."""
        return self.options.oracle.budget

    @property
    def lipschitz(self) -> float:
        """G: the larger of what was given and the largest gradient norm seen."""
        return max(self.options.lipschitz or 0.0, self._largest_gradient())

    def _rounds_left(self) -> int | None:
        """Rounds until the epoch ends; None where there is only one."""
        if self.options.horizon is not None:
            return None
        return self._epoch_start + self._epoch_length - self.t

    def _advance(self) -> None:
        """Count a round, and start the next epoch where one ends."""
        self.t += 1
        if self.options.horizon is None and self.t - self._epoch_start == self._epoch_length:
            start = self._restart_point()
            self._epoch_start, self._epoch_length = self.t, 2 * self._epoch_length
            self._begin(self._epoch_length, start)

    def _epochs(self) -> Iterator[tuple[int, int, bool]]:
        """Horizon, rounds played, and whether it is the first, for every epoch so far."""
        length = self.options.horizon or FIRST_EPOCH
        start, first = 0, True
        while start < self.t:
            rounds = self.t - start if self.options.horizon else min(length, self.t - start)
            yield length, rounds, first
            start, length, first = start + rounds, 2 * length, False

    @abstractmethod
    def _begin(self, horizon: int, start: Point) -> None:
        """Set up for an epoch of that length from a feasible point."""

    @abstractmethod
    def _restart_point(self) -> Point:
        """Where the next epoch starts."""

    @abstractmethod
    def _largest_gradient(self) -> float:
        """The largest gradient norm seen."""

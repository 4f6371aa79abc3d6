"""What descent experts are told: a `Plan` each, and an `Oracle` for all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

#: More rounds than any game has.
FOREVER = 1 << 61


class Plan(NamedTuple):
    """What tells one expert from another.

    Attributes
    ----------
    step
        The dimensionless step h; the step taken is `step_scale` * h.
    block
        Rounds between two projections.
    tolerance
        Squared distance allowed between the feasible and the infeasible point.
    share
        Linear minimisations a round that are its own, where there is a budget for all.
    lifetime
        Rounds that it plays.
    """

    step: float
    block: int
    tolerance: float
    share: float = 0.0
    lifetime: int = FOREVER


@dataclass(frozen=True, slots=True)
class Oracle:
    """How experts project: the options of `infeasible_projection`, and what it may cost.

    Attributes
    ----------
    budget
        Linear minimisations a round for all experts together; None for no limit.
    pooled
        Whether what one expert does not need of the budget is of use to the others.
    even
        Whether calls are spread evenly over the rounds, not made when blocks end.
    lazy
        Vertices to keep, and to try before the set is asked.
    """

    method: str = "auto"
    accuracy: float | None = None
    max_lmo_calls: int | None = None
    seed: int = 0
    budget: float | None = None
    pooled: bool = False
    even: bool = False
    lazy: int = 0

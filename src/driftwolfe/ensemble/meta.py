"""What combines experts: the protocols that `Hedge` and the sleeping-expert methods keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from driftwolfe.points import checks
from driftwolfe.points.kinds import Array

#: The range B of the losses: a number that is certified, or learned from what was seen.
LossScale: TypeAlias = float | Literal["auto"]

#: Share of the losses up to which differences between them may be all rounding. Experts at one point
#: differ by that much, and a range learned from it would turn it into weights.
ROUNDING = 64 * 2.0**-52


class Meta(Protocol):
    """Something that weighs experts."""

    @property
    def weights(self) -> Array:
        """The weights of the experts, each >= 0, of sum 1; a new array."""


class FixedMeta(Meta, Protocol):
    """Weighs experts that are all there from the first round to the last."""

    def update(self, losses: Any) -> None:
        """Take the losses of the experts in this round."""


class SleepingMeta(Meta, Protocol):
    """Weighs experts that come and go: those of the intervals of a cover."""

    def add(self, new: Sequence[int]) -> None:
        """Add experts behind the present ones, given the lengths of their intervals in rounds."""

    def restart(self, number: int) -> None:
        """Put new experts in the places of the first ones, for intervals of the same lengths."""

    def remove(self, which: Any) -> None:
        """Remove experts, given their positions or a mask; the others close the ranks."""

    def update(self, learner_loss: float, expert_losses: Any) -> None:
        """Take the loss of the combined decision and those of the experts in this round."""

    @property
    def size(self) -> int:
        """Experts that are awake."""

    @property
    def scale(self) -> float:
        """The bound B on differences of losses in use, in units of the loss."""

    @property
    def largest_difference(self) -> float:
        """The largest difference seen so far, which a given B may be too small for."""

    def regret_bound(
        self, length: int, end: int, scale: float, created: int | None = None
    ) -> float:
        """Return a bound on the regret against the expert of one interval.

        The interval has `length` rounds and ends by round `end`; losses differ by at most `scale`;
        `created` experts had come by then, as many as a geometric cover has if None.
        """


def check_loss_scale(value: Any) -> LossScale:
    """Return the scale as given, or say what it may be.

    >>> check_loss_scale("automatic")
    Traceback (most recent call last):
        ...
    ValueError: loss_scale must be "auto" or a positive number, got 'automatic'
    """
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f'loss_scale must be "auto" or a positive number, got {value!r}')
        return "auto"
    return checks.positive(value, "loss_scale")


def normalised(log_weights: Array) -> Array:
    """Return weights of sum 1 from their logarithms up to a constant; no overflow."""
    weights = np.exp(log_weights - log_weights.max(initial=-np.inf))
    normal: Array = weights / weights.sum()
    return normal

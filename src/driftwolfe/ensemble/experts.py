"""What an ensemble asks of its experts, and the stack that suits a set's points."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.ensemble.dense import DenseDescent
from driftwolfe.ensemble.descent import Descent
from driftwolfe.ensemble.evaluate import Scores
from driftwolfe.ensemble.list import EvenDescent, ListDescent
from driftwolfe.ensemble.plan import ProjectionConfig
from driftwolfe.losses import Loss
from driftwolfe.points.kinds import Array, Point


class Experts(Protocol):
    """Several points in play, moved by gradients; `Descent`, `GaugeDescent` and `Leaders`."""

    def point(self, i: int) -> Point:
        """What expert i plays."""

    def mean(self, weights: Array) -> Point:
        """The weighted mean of what the experts play."""

    def evaluate(self, loss: Loss) -> Scores:
        """What the loss sees of every expert."""

    def prepare(self, loss: Loss, slopes: Any, shared: bool, skip: Any = None) -> Any:
        """Work out the coming round without changing anything."""

    def commit(self, prepared: Any) -> None:
        """Carry out what `prepare` worked out."""


def descent(domain: Domain, oracle: ProjectionConfig, step_scale: float | None) -> Descent:
    """Return an empty stack of descent experts: stacked arrays, or a list of larger points."""
    if oracle.even:
        return EvenDescent(domain, oracle, step_scale)
    if isinstance(domain.origin(), np.ndarray):
        return DenseDescent(domain, oracle, step_scale)
    return ListDescent(domain, oracle, step_scale)

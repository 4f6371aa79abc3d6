"""`Learner`: a decision each round, then a loss."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

from driftwolfe.domains import Domain
from driftwolfe.losses import Loss
from driftwolfe.points.kinds import Array, Point


@dataclass(slots=True)
class OracleCalls:
    """How often a learner has asked each oracle of its set."""

    lmo: int = 0
    projection: int = 0
    gauge: int = 0


class Learner(ABC):
    """Plays points of a convex set against convex losses that come one at a time.

    ``x = learner.decision`` is the point for the coming round; ``learner.update(loss)`` reveals the
    loss, returns what the decision suffered and moves on. A refused update changes nothing.

    Attributes
    ----------
    domain
        The set that decisions lie in.
    t
        Rounds played.
    oracle_calls
        Linear minimisations, projections and gauges asked for so far.
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.t = 0
        self.oracle_calls = OracleCalls()

    @property
    @abstractmethod
    def decision(self) -> Point:
        """The feasible point for the coming round."""

    @abstractmethod
    def update(self, loss: Loss) -> float:
        """Reveal the loss of this round, return its value at the decision, move to the next."""

    @property
    def lmo_calls(self) -> int:
        """Linear minimisations asked for so far."""
        return self.oracle_calls.lmo

    @property
    def expert_weights(self) -> Array | None:
        """The weights of an ensemble's experts in the coming round; None for a single learner."""
        return None

    def bound(self, path_length: float = 0.0, tau: int | None = None) -> float:
        """Return a proved bound on the regret so far, with the parameters really used.

        Parameters
        ----------
        path_length
            That of the comparators, for dynamic regret; 0 is static regret.
        tau
            Length of the interval, for adaptive regret.
        """
        raise NotImplementedError(f"no bound is known for {type(self).__name__} in this setting")

    def clone(self) -> Self:
        """An independent copy in the same state, on the same set."""
        return copy.deepcopy(self, {id(self.domain): self.domain})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.domain!r}, t={self.t})"

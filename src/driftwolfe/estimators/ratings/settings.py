"""Which experts there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

#: Steps of the mean and the biases, in units of error: of experts without interactions, of those
#: with, and of restarted ones without and with.
PLAIN_STEPS, LOW_RANK_STEPS = (0.3, 1.0), (0.2, 0.4)
PLAIN_RESTARTED, LOW_RANK_RESTARTED = 0.5, 0.4
#: Shortest intervals of the cover, and shortest in which interactions can be learned: 64 and 4,096
#: ratings.
FIRST_LEVEL, FIRST_LOW_RANK_LEVEL = 6, 12


class Expert(NamedTuple):
    """One expert.

    Attributes
    ----------
    step
        Of the mean and the biases, in units of error.
    radius
        Of the interactions, in units of error times the root of users x items; 0: none.
    level
        Restarted every 2^level ratings; -1: never.
    """

    step: float
    radius: float = 0.0
    level: int = -1

    @property
    def name(self) -> str:
        """What tells it apart."""
        radius = f", radius {self.radius:g}" if self.radius else ""
        level = f", every {1 << self.level:,}" if self.level >= 0 else ""
        return f"step {self.step:g}{radius}{level}"


@dataclass(frozen=True)
class PoolSettings:
    """What a `RatingPool` is made of; `MatrixCompleter` says what each means."""

    loss: str
    learner: str
    radii: tuple[float, ...]
    rank: int
    weighting: float
    memory: int
    seed: int
    keep_seen: bool = True

    def grid(self) -> list[Expert]:
        """The experts that never restart: steps times radii."""
        if self.learner == "pola":
            return [Expert(LOW_RANK_STEPS[-1], max(self.radii, default=0.0))]
        return [Expert(step) for step in PLAIN_STEPS] + [
            Expert(step, radius) for radius in self.radii for step in LOW_RANK_STEPS
        ]

    def restarted(self, level: int) -> Expert | None:
        """The expert for intervals of 2^level ratings, if there is one."""
        if self.learner == "pold" or level < FIRST_LEVEL:
            return None
        # Beyond what is remembered, interactions learned since a restart are those of the grid.
        remembered = 1 << level <= 2 * self.memory
        if level < FIRST_LOW_RANK_LEVEL or not remembered or not self.radii:
            return Expert(PLAIN_RESTARTED, 0.0, level)
        return Expert(LOW_RANK_RESTARTED, max(self.radii), level)

"""The problem of the demo: a target that hides in one of a few places, and jumps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from driftwolfe.domains import Simplex
from driftwolfe.losses import LinearLoss
from driftwolfe.points.kinds import Array, Indices

PLACES, ROUNDS = 8, 1000
#: Rounds before the first jump, and between jumps.
CALM, STAY = 300, 100
#: Standard deviation of a sighting; the target itself is 1.
NOISE = 0.4
#: A jump leads at least so many places away, so that it is seen in a chart.
_FAR = 2


@dataclass(frozen=True, eq=False)
class Hunt:
    """A target's places, and the losses that tell of them.

    Attributes
    ----------
    domain
        Weights over the places.
    losses
        One a round: 1 less what the weights catch of a noisy sighting.
    places
        Where the target is in each round.
    jumps
        Rounds in which it is somewhere else than in the round before.
    """

    domain: Simplex
    losses: list[LinearLoss]
    places: Indices
    jumps: list[int]

    @cached_property
    def targets(self) -> Array:
        """All weight on the target, one row a round: the comparators."""
        return np.eye(self.domain.shape[0])[self.places]

    @cached_property
    def steepest(self) -> float:
        """The largest gradient norm of all rounds: G."""
        return max(float(np.linalg.norm(np.asarray(loss.g))) for loss in self.losses)


def hunt(seed: int = 0, rounds: int = ROUNDS) -> Hunt:
    """Hide a target: calm at first, then a jump every 100 rounds.

    >>> made = hunt(seed=0)
    >>> len(made.losses), made.jumps
    (1000, [300, 400, 500, 600, 700, 800, 900])
    """
    rng = np.random.default_rng(seed)
    jumps = list(range(CALM, rounds, STAY))
    places = np.empty(rounds, dtype=np.int64)
    last = -_FAR
    for start in [0, *jumps]:
        last = int(rng.choice([i for i in range(PLACES) if abs(i - last) >= _FAR]))
        places[start:] = last
    sightings = np.eye(PLACES)[places] + NOISE * rng.standard_normal((rounds, PLACES))
    losses = [LinearLoss(-sighting, constant=1.0) for sighting in sightings]
    return Hunt(Simplex(PLACES), losses, places, jumps)

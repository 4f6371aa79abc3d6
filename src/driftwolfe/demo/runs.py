"""Playing the demo's learners, and what is measured of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from driftwolfe.demo.hunt import STAY, Hunt
from driftwolfe.game import History, play
from driftwolfe.learners import OGD, POLA, Learner
from driftwolfe.points.kinds import Array, Indices
from driftwolfe.regret import dynamic_regret

#: Steps that OGD might have taken, in units of the one that its theory gives.
HINDSIGHT = (0.5, 1, 2, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True, eq=False)
class Run:
    """A learner's game.

    Attributes
    ----------
    name
        Of the learner.
    hunt
        What it played.
    history
        What happened, with the decisions.
    """

    name: str
    hunt: Hunt
    history: History

    @cached_property
    def weights(self) -> Array:
        """The decisions, one row a round."""
        return np.array(self.history.decisions)

    @cached_property
    def on_target(self) -> Array:
        """In each round, the weight on the target's place."""
        return np.asarray((self.weights * self.hunt.targets).sum(axis=1))

    @cached_property
    def excess(self) -> Array:
        """In each round, the loss above that of all weight on the target."""
        best = [f.value(u) for f, u in zip(self.hunt.losses, self.hunt.targets, strict=True)]
        return self.history.losses - np.array(best)

    @cached_property
    def regret(self) -> float:
        """Against the moving target."""
        return float(dynamic_regret(self.history, self.hunt.targets))

    @cached_property
    def worst_window(self) -> float:
        """The largest regret against the target on any window as long as it stays in a place."""
        sums = np.concatenate([[0.0], np.cumsum(self.excess)])
        return float((sums[STAY:] - sums[:-STAY]).max())

    @cached_property
    def catches(self) -> Indices:
        """For each jump, the rounds until half the weight is on the target; -1 for not before the next."""
        ends = [*self.hunt.jumps[1:], len(self.history)]
        waits = []
        for start, end in zip(self.hunt.jumps, ends, strict=True):
            caught = np.flatnonzero(self.on_target[start:end] >= 0.5)
            waits.append(int(caught[0]) if caught.size else -1)
        return np.array(waits, dtype=np.int64)


def play_both(hunt: Hunt) -> tuple[Run, Run]:
    """Play OGD and POLA; OGD is told more."""
    for learner in _learners(hunt):  # compiled code is loaded before the clock starts
        play(learner, hunt.losses[:4], progress=False)
    first, second = (
        Run(
            type(learner).__name__,
            hunt,
            play(learner, hunt.losses, record_decisions=True, progress=False),
        )
        for learner in _learners(hunt)
    )
    return first, second


def _learners(hunt: Hunt) -> tuple[Learner, Learner]:
    """OGD with the step of its theory; POLA, which asks for linear minimisations alone."""
    ogd = OGD(hunt.domain, horizon=len(hunt.losses), lipschitz=hunt.steepest)
    return ogd, POLA(hunt.domain, method="corrective")


def best_in_hindsight(hunt: Hunt) -> tuple[float, float]:
    """Which multiple of its step would have served OGD best, and its regret with that."""
    usual = 2.0 * hunt.domain.radius / hunt.steepest
    found = []
    for times in HINDSIGHT:
        learner = OGD(hunt.domain, horizon=len(hunt.losses), step_scale=times * usual)
        history = play(learner, hunt.losses, progress=False)
        found.append((float(dynamic_regret(history, hunt.targets)), times))
    regret, times = min(found)
    return times, regret

"""The parts that ensembles are wired from: step-size grids, covers of time, and metas.

A *meta* weighs experts. All keep one small protocol (`Meta`): ``weights`` is an array >= 0 of
sum 1 for the coming round, ``update(...)`` takes what the round cost. There are two kinds:

- `FixedMeta`: all experts are there all the time. ``update(losses)``. `Hedge`.
- `SleepingMeta`: experts come and go. ``add(lengths)`` puts new ones behind the present ones,
  ``restart(number)`` puts them in the places of the first, ``remove(which)`` takes some away,
  ``update(learner_loss, expert_losses)`` compares each one awake with the combined decision.
  `AdaNormalHedge`, `MultiplicativeWeights`.

A meta is a dataclass of arrays and numbers: its options and its state, nothing hidden. An update
replaces arrays and never writes into them, so a shallow copy is a snapshot. A call with wrong
input is refused before anything changes. Each has ``regret_bound(...)``, proved in its docstring.

A *cover* (`GeometricCover`, `CompactCover`) says which intervals start in a round; a *grid*
(`pold_grid` and others) is an array of dimensionless step sizes.
"""

from driftwolfe.ensemble.cover import CompactCover, Cover, GeometricCover, Interval
from driftwolfe.ensemble.hedge import FixedMeta, Hedge, LossScale, Meta, SleepingMeta, ader_prior
from driftwolfe.ensemble.plan import (
    ader_grid,
    block_length,
    experiment_grid,
    paper_grid,
    pold_grid,
    projection_eps,
)
from driftwolfe.ensemble.sleeping import AdaNormalHedge, MultiplicativeWeights

__all__ = [
    "AdaNormalHedge",
    "CompactCover",
    "Cover",
    "FixedMeta",
    "GeometricCover",
    "Hedge",
    "Interval",
    "LossScale",
    "Meta",
    "MultiplicativeWeights",
    "SleepingMeta",
    "ader_grid",
    "ader_prior",
    "block_length",
    "experiment_grid",
    "paper_grid",
    "pold_grid",
    "projection_eps",
]

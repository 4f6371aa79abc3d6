"""The parts of ensembles: step-size grids, covers of time, and weights.

A *meta* weighs experts: ``weights`` is an array >= 0 of sum 1 for the coming round. `Hedge` has all
experts from the first round to the last, ``update(losses)``. For a `SleepingMeta` (`AdaNormalHedge`,
`MultiplicativeWeights`) experts come and go: ``add(lengths)``, ``restart(number)``,
``remove(which)``, ``update(learner_loss, expert_losses)``. A meta is a dataclass of arrays and
numbers; an update replaces arrays and never writes into them, so a shallow copy is a snapshot. Wrong
input is refused before anything changes. Each has ``regret_bound(...)``, proved in its docstring.

A *cover* (`GeometricCover`) says which intervals start in a round; a *grid* (`pold_grid` and others)
is an array of dimensionless step sizes.
"""

from driftwolfe.ensemble.plan import (
    GeometricCover,
    Interval,
    ader_grid,
    ader_prior,
    block_length,
    experiment_grid,
    paper_grid,
    pold_grid,
    projection_eps,
)
from driftwolfe.ensemble.weights import (
    AdaNormalHedge,
    Hedge,
    LossScale,
    MultiplicativeWeights,
    SleepingMeta,
)

__all__ = [
    "AdaNormalHedge",
    "GeometricCover",
    "Hedge",
    "Interval",
    "LossScale",
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

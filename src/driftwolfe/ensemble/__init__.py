"""The parts of ensembles: weights of experts, step-size grids, and covers of time.

``weights`` is an array >= 0 of sum 1 for the coming round. `Hedge` and `ExpConcaveHedge` have all experts from the
first round to the last; for a `SleepingMeta` they come and go with the intervals of a `GeometricCover`. An update
replaces arrays and never writes into them. Each has a proved ``regret_bound(...)``.
"""

from driftwolfe.ensemble.plan import GeometricCover, ader_grid, pold_grid
from driftwolfe.ensemble.sleeping_weights import AdaNormalHedge, MultiplicativeWeights, SleepingMeta
from driftwolfe.ensemble.weights import AdaHedge, ExpConcaveHedge, Hedge, LossScale, OptimisticHedge

__all__ = ["AdaHedge", "AdaNormalHedge", "ExpConcaveHedge", "GeometricCover", "Hedge"]
__all__ += ["LossScale", "MultiplicativeWeights", "OptimisticHedge", "SleepingMeta"]
__all__ += ["ader_grid", "pold_grid"]

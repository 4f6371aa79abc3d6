"""Infeasible projections and Frank-Wolfe runs, built on linear minimisation."""

from driftwolfe.oracles.frank_wolfe import Atoms, InfeasibleProjection
from driftwolfe.oracles.infeasible_projection import Oracle, infeasible_projection
from driftwolfe.oracles.minimise import Minimum, minimise

__all__ = [
    "Atoms",
    "InfeasibleProjection",
    "Minimum",
    "Oracle",
    "infeasible_projection",
    "minimise",
]

"""Infeasible projections and Frank-Wolfe runs, built on linear minimisation."""

from driftwolfe.oracles.frank_wolfe import Approach, Atoms, InfeasibleProjection, frank_wolfe
from driftwolfe.oracles.infeasible_projection import (
    Oracle,
    gauge_by_bisection,
    infeasible_projection,
)
from driftwolfe.oracles.methods import DEFAULT_ACCURACY
from driftwolfe.oracles.minimise import Minimum, minimise

__all__ = [
    "DEFAULT_ACCURACY",
    "Approach",
    "Atoms",
    "InfeasibleProjection",
    "Minimum",
    "Oracle",
    "frank_wolfe",
    "gauge_by_bisection",
    "infeasible_projection",
    "minimise",
]

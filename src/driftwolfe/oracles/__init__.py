"""Infeasible projections and Frank-Wolfe runs, built on linear minimisation."""

from driftwolfe.oracles.frank_wolfe import Atoms, InfeasibleProjection
from driftwolfe.oracles.infeasible_projection import (
    Oracle,
    gauge_by_bisection,
    infeasible_projection,
)
from driftwolfe.oracles.methods import DEFAULT_ACCURACY
from driftwolfe.oracles.minimise import Minimum, minimise

__all__ = [
    "DEFAULT_ACCURACY",
    "Atoms",
    "InfeasibleProjection",
    "Minimum",
    "Oracle",
    "gauge_by_bisection",
    "infeasible_projection",
    "minimise",
]

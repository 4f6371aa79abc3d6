"""Oracles: from linear minimisation to points that regret theorems can work with."""

from driftwolfe.oracles.gauge import gauge_by_bisection
from driftwolfe.oracles.infeasible_projection import METHODS, infeasible_projection
from driftwolfe.oracles.result import InfeasibleProjection

__all__ = ["METHODS", "InfeasibleProjection", "gauge_by_bisection", "infeasible_projection"]

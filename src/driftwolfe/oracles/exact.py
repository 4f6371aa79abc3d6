"""The set's own projection."""

from __future__ import annotations

from driftwolfe.domains import Domain
from driftwolfe.oracles.result import InfeasibleProjection
from driftwolfe.points.kinds import Point

METHOD = "exact"


def exact(domain: Domain, y: Point) -> InfeasibleProjection:
    """Project exactly: x' = y' is the projection of y, no linear minimisation at all."""
    nearest = domain.project(y)
    return InfeasibleProjection(nearest, nearest, 0, 0.0, 0.0, METHOD)

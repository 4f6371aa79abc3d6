"""Convex sets: what a decision may be."""

from driftwolfe.domains.base import Domain
from driftwolfe.domains.l1_ball import L1Ball
from driftwolfe.domains.trace_norm_ball import TraceNormBall

__all__ = [
    "Domain",
    "L1Ball",
    "TraceNormBall",
]

"""Convex sets: what a decision may be."""

from driftwolfe.domains.base import Domain
from driftwolfe.domains.l1_ball import L1Ball

__all__ = [
    "Domain",
    "L1Ball",
]

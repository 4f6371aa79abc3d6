"""Explicit regret bounds, with every constant and the parameters used; `docs/theory` has the proofs."""

from driftwolfe.bounds.inequalities import (
    ANYWHERE,
    AT_CENTER,
    SLOW_WEIGHTS,
    asked,
    blocked_descent,
    curved_distance,
    cut_violation,
    frank_wolfe_tracking,
    gradient_variation,
    lazy_descent,
    over_game,
    over_windows,
    smooth_frank_wolfe,
    strongly_convex_frank_wolfe,
    strongly_convex_leader,
    weighing,
)

__all__ = [
    "ANYWHERE",
    "AT_CENTER",
    "SLOW_WEIGHTS",
    "asked",
    "blocked_descent",
    "curved_distance",
    "cut_violation",
    "frank_wolfe_tracking",
    "gradient_variation",
    "lazy_descent",
    "over_game",
    "over_windows",
    "smooth_frank_wolfe",
    "strongly_convex_frank_wolfe",
    "strongly_convex_leader",
    "weighing",
]

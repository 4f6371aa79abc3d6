"""Decisions of a `RatingPool` that come from a file: they lie in their sets, as if learned."""

from __future__ import annotations

import numpy as np

from driftwolfe.estimators.ratings.pool import RatingPool
from driftwolfe.points.kinds import Array
from driftwolfe.storage.state import require

#: Of ratings, errors and steps: ratings are at most 1e100, and errors count as 1,000 units.
LARGEST = 1e110
#: Of weights of rows, which fall with the root of the number of ratings at most.
LARGEST_METRIC = 1e20
#: What holds exactly may be off by that share.
ROUNDING = 1e-6


def check_decisions(pool: RatingPool) -> None:
    """Raise ValueError unless means, biases and interactions lie in their sets; shapes are known to fit."""
    numbers, slots = pool.scale.numbers, pool.slots
    low, high = numbers[1:3].tolist()
    require((np.abs(numbers) <= LARGEST).all(), "ratings")
    require(((slots.means >= low) & (slots.means <= high)).all(), "means")
    require(low <= numbers[3] <= high, "means")
    for grown in pool.sides:
        side = grown.side
        require(_largest(side.biases) <= (1.0 + ROUNDING) * (high - low), "biases")
        metric = side.metric
        require(
            (metric * LARGEST_METRIC >= 1.0).all() and (metric <= LARGEST_METRIC).all(), "weights"
        )
    older = [table for each in pool.older.values() for table in (each.users, each.items)]
    for table in (pool.recent.steps, *older):
        require(_largest(table) <= LARGEST, "steps")
    for e in np.flatnonzero(slots.low >= 0).tolist():
        _check_interactions(pool, e)


def _check_interactions(pool: RatingPool, e: int) -> None:
    """The bound on the trace norm that the loop keeps up to date is one, and within the radius."""
    k, rank = int(pool.slots.low[e]), pool.settings.rank
    users, items = (
        grown.side.rows[:, k * rank : (k + 1) * rank] * grown.side.metric[:, None]
        for grown in pool.sides
    )
    users[pool.users.side.touched < pool.slots.starts[e]] = 0.0  # what the expert does not know
    spread, radius, norm = pool.low.spreads[k], float(pool.low.radii[k]), float(pool.low.norms[k])
    require(
        max(_largest(users), _largest(items), float(spread.sum()), radius) <= LARGEST, "factors"
    )
    require(norm <= (1.0 + ROUNDING) * radius, "interactions")
    squares = (users**2).sum(axis=0)
    known = squares > 0.0
    require((spread[known] > 0.0).all(), "interactions")
    least = 0.5 * (squares[known] / spread[known]).sum() + 0.5 * spread.sum()
    require(norm >= (1.0 - ROUNDING) * least, "interactions")
    # With directions of items that are at most orthonormal, the bound is one on the trace norm.
    require(not items.size or np.linalg.norm(items, 2) <= 1.0 + ROUNDING, "factors")


def _largest(table: Array) -> float:
    return max(float(table.max(initial=0.0)), -float(table.min(initial=0.0)))

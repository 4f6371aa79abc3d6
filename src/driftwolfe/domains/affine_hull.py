"""Sets without interior: when a point counts as lying in their affine hull."""

from __future__ import annotations

from driftwolfe.points import norm
from driftwolfe.points.kinds import Point

#: How far from the affine hull a point may be and count as lying in it, in units of the larger of
#: the set's radius and the point's distance from the centre. Rounding in sums is far below.
AFFINE_TOLERANCE = 1e-9


def leaves_affine_hull(offset: float, step: Point, radius: float) -> bool:
    """Whether a point at ``center + step``, `offset` away from the affine hull, is outside it."""
    return offset > AFFINE_TOLERANCE * max(radius, norm(step))

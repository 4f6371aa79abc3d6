"""Points that come from a file: whoever wrote it may have put them anywhere."""

from __future__ import annotations

from collections.abc import Iterable

from driftwolfe.domains.base import Domain
from driftwolfe.points.kinds import Point
from driftwolfe.points.ops import distance

#: In units of the radius: sums of many feasible points may be as far outside.
SLACK = 1e-6


def require_feasible(domain: Domain, points: Iterable[Point]) -> None:
    """Raise ValueError unless all points lie in the set; no call is counted."""
    distinct = {id(point): point for point in points}  # experts may share one
    if not all(_is_feasible(domain.unwrapped, point) for point in distinct.values()):
        raise ValueError("this archive holds points that are not in the set")


def _is_feasible(domain: Domain, point: Point) -> bool:
    try:
        return domain.contains(point, atol=SLACK)
    except NotImplementedError:  # it cannot tell; the ball around it can
        return bool(distance(point, domain.origin()) <= (1.0 + SLACK) * domain.radius)
    except ValueError:  # of another shape, or beyond the range of numbers
        return False

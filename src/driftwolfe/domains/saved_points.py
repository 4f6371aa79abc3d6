"""Points that come from a file: whoever wrote it may have put them anywhere."""

from __future__ import annotations

from collections.abc import Iterable

from driftwolfe.domains.base import Domain
from driftwolfe.points.kinds import Point
from driftwolfe.points.ops import distance
from driftwolfe.storage.state import require

#: In units of the radius: sums of many feasible points may be as far outside.
SLACK = 1e-6


def same_kind(point: Point, like: Point) -> bool:
    """Whether a point is of another one's kind and shape."""
    return type(point) is type(like) and bool(point.shape == like.shape)


def require_kind(domain: Domain, points: Iterable[Point], what: str) -> None:
    """Raise ValueError unless all points are of the set's kind and shape."""
    like = domain.origin()
    require(all(same_kind(point, like) for point in points), what)


def in_ball(domain: Domain, point: Point) -> bool:
    """Whether a point lies in the ball around the set."""
    return bool(distance(point, domain.origin()) <= (1.0 + SLACK) * domain.radius)


def require_feasible(domain: Domain, points: Iterable[Point]) -> None:
    """Raise ValueError unless all points lie in the set; no call is counted."""
    distinct = {id(point): point for point in points}  # experts may share one
    if not all(_is_feasible(domain.unwrapped, point) for point in distinct.values()):
        raise ValueError("this archive holds points that are not in the set")


def _is_feasible(domain: Domain, point: Point) -> bool:
    try:
        return domain.contains(point, atol=SLACK)
    except NotImplementedError:  # it cannot tell; the ball around it can
        return in_ball(domain, point)
    except ValueError:  # of another shape, or beyond the range of numbers
        return False

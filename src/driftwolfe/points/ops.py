"""Inner products and norms of points of any kind."""

from __future__ import annotations

import numpy as np

from driftwolfe.points.kinds import Point


def inner(a: Point, b: Point) -> float:
    """Return the Euclidean inner product of two points of one shape.

    >>> inner(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    if isinstance(a, np.ndarray):
        # ravel of a contiguous array is a view; vdot then runs in BLAS.
        return float(np.vdot(a, b)) if isinstance(b, np.ndarray) else float(b.inner(a))
    return float(a.inner(b))


def norm(a: Point) -> float:
    """Return the Euclidean (Frobenius) norm of a point.

    >>> norm(np.array([3.0, 4.0]))
    5.0
    """
    if isinstance(a, np.ndarray):
        # dnrm2 through the flat view scales internally, so 1e-200 and 1e200 do not under- or overflow.
        return float(np.linalg.norm(a.ravel()))
    return float(a.norm())


def distance(a: Point, b: Point) -> float:
    """Return the Euclidean distance of two points."""
    return norm(a - b)


def clip_to_ball(y: Point, center: Point | None, radius: float) -> Point:
    """Return y moved to the ball around the centre if it lies outside, else y itself."""
    offset = y if center is None else y - center
    length = norm(offset)
    if length <= radius:
        return y
    inside = offset * (radius / length)
    return inside if center is None else inside + center

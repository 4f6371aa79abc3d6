"""Inner products and norms of points of any kind."""

from __future__ import annotations

import math

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
    if not isinstance(a, np.ndarray):
        return float(a.norm())
    flat = a.ravel()
    with np.errstate(over="ignore"):
        length = math.sqrt(flat.dot(flat))
    if not 1e-150 < length < 1e150:  # squares have under- or overflowed, or soon will
        largest = float(np.abs(flat).max(initial=0.0))
        return largest * float(np.linalg.norm(flat / largest)) if largest > 0 else 0.0
    return length


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

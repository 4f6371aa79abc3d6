"""Inner products, norms and the like, for points of any kind."""

from __future__ import annotations

import math

import numpy as np

from driftwolfe.points.devices import device_of, is_array, namespace
from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.kinds import Point


def inner(a: Point, b: Point) -> float:
    """Return the Euclidean inner product of two points.

    Parameters
    ----------
    a, b
        Points of one shape, of the same kind or one of them dense.

    Examples
    --------
    >>> inner(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        # ravel of a contiguous array is a view; vdot then runs in BLAS.
        return float(np.vdot(a, b))
    if not is_array(a):
        return float(a.inner(b))
    if not is_array(b):
        return float(b.inner(a))
    one, other = (b, a) if isinstance(a, np.ndarray) else (a, b)
    return float((one * device_of(one).put(other)).sum())


def norm(a: Point) -> float:
    """Return the Euclidean (Frobenius) norm of a point, also where its square would overflow.

    Parameters
    ----------
    a
        The point.

    Examples
    --------
    >>> norm(np.array([3.0, 4.0]))
    5.0
    """
    if not isinstance(a, np.ndarray):
        return float(namespace(a).linalg.vector_norm(a) if is_array(a) else a.norm())
    flat = a.ravel()
    with np.errstate(over="ignore"):
        size = math.sqrt(flat.dot(flat))
    if not 1e-150 < size < 1e150:  # squares have under- or overflowed, or soon will
        largest = float(np.abs(flat).max(initial=0.0))
        return largest * float(np.linalg.norm(flat / largest)) if largest > 0 else 0.0
    return size


def distance(a: Point, b: Point) -> float:
    """Return the Euclidean distance of two points.

    Parameters
    ----------
    a, b
        Points of one shape.

    Examples
    --------
    >>> distance(np.array([1.0, 1.0]), np.array([4.0, 5.0]))
    5.0
    """
    return norm(a - b)


def clip_to_ball(y: Point, center: Point | None, radius: float) -> Point:
    r"""Return the nearest point of a ball: :math:`c + (y - c)\min(1, R/\lVert y - c\rVert)`.

    Parameters
    ----------
    y
        The point; it is returned itself where it lies in the ball.
    center
        The ball's centre c; None for 0.
    radius
        Its radius R, in units of the points.

    Examples
    --------
    >>> clip_to_ball(np.array([3.0, 4.0]), None, 1.0)
    array([0.6, 0.8])
    """
    offset = y if center is None else y - center
    length = norm(offset)
    if length <= radius:
        return y
    inside = offset * (radius / length)
    return inside if center is None else inside + center


def trimmed(point: Point, columns: int = 0) -> Point:
    """Return a factored point of at least that many columns recompressed; any other as it is."""
    if isinstance(point, FactoredMatrix) and point.rank >= columns:
        return point.recompress()
    return point

"""`gauge_by_bisection`: the gauge of a set by membership tests alone."""

from __future__ import annotations

import math

from driftwolfe.domains import Domain
from driftwolfe.points import checks, norm
from driftwolfe.points.kinds import Point
from driftwolfe.points.rounding import whole_above


def gauge_by_bisection(domain: Domain, y: Point, accuracy: float = 1e-9) -> float:
    r"""Return the gauge of y about the centre by bisection on membership, from above.

    :math:`\inf\{t : c + (y - c)/t \in K\}` lies in :math:`[\lVert y - c\rVert/R,\ \lVert y - c\rVert/r]`;
    :math:`\lceil\log_2(1/accuracy)\rceil` membership tests halve the interval for 1/t. The answer is at
    most `accuracy` times the width too large, so that c + (y - c)/t is in K.

    Parameters
    ----------
    domain
        The set; its `inner_radius` r must be known.
    y
        The point, in the affine hull of the set.
    accuracy
        Width at which to stop, relative to the first interval.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> round(gauge_by_bisection(dw.L2Ball(2), np.array([3.0, 4.0])), 6)
    5.0
    """
    y = domain.check_point(y, "y")
    accuracy = checks.positive(accuracy, "accuracy")
    if domain.inner_radius <= 0:
        raise ValueError(
            f"{type(domain.unwrapped).__name__} has no known inner_radius, which bisection starts "
            "from; give the set one, or use a method that needs only its lmo"
        )
    offset = y if domain.center is None else y - domain.center
    length = norm(offset)
    if length == 0:
        return 0.0
    low, high = domain.inner_radius / length, domain.radius / length  # bounds on 1/t
    for _ in range(whole_above(math.log2(1 / accuracy))):
        middle = 0.5 * (low + high)
        scaled = middle * offset if domain.center is None else domain.center + middle * offset
        low, high = (middle, high) if domain.contains(scaled, atol=1e-12) else (low, middle)
    return 1.0 / low

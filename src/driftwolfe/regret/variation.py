"""How much comparators and losses move."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from driftwolfe.domains import Domain
from driftwolfe.losses import LinearLoss, Loss, SquaredDistance
from driftwolfe.points import checks, distance, inner
from driftwolfe.points.kinds import Array, Point
from driftwolfe.regret.certified import Certified
from driftwolfe.regret.floors import floor

#: Vertices tried in each of the two directions.
_VERTICES = 8


def path_length(comparators: Sequence[Point] | Array) -> float:
    r"""Return how far comparators travel: :math:`P = \sum_{t=2}^T \lVert u_t - u_{t-1}\rVert`.

    Parameters
    ----------
    comparators
        The points :math:`u_t`: a sequence, or an array with the rounds along its first axis.

    Examples
    --------
    >>> import numpy as np
    >>> path_length(np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 4.0], [3.0, 5.0]]))
    6.0

    References
    ----------
    Zinkevich (2003), Online convex programming and generalized infinitesimal gradient ascent.
    """
    points = (checks.as_point(point, "a comparator") for point in comparators)
    return math.fsum(distance(now, before) for before, now in pairwise(points))


def function_variation(losses: Sequence[Loss], domain: Domain) -> Certified:
    r"""Return how much the losses change: :math:`V = \sum_{t=2}^T \sup_{x \in K} |f_t(x) - f_{t-1}(x)|`.

    Exact where the difference of two losses is linear (linear losses, squared distances of one
    weight): two oracle calls a round. A difference of other losses is neither convex nor concave,
    and what is returned is an interval: its lower end from the vertices that a search by the oracle
    finds, its upper end from Lipschitz bounds around the set's centre, usually far apart. The upper
    end is infinite where a loss knows no Lipschitz bound.

    Parameters
    ----------
    losses
        The losses, in order.
    domain
        The set K.

    Returns
    -------
    Certified
        The lower end; the variation is at most `gap` larger.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> losses = [dw.losses.LinearLoss(g) for g in ([1.0, 0.0], [0.0, 1.0], [0.0, -1.0])]
    >>> function_variation(losses, dw.L1Ball(2))
    Certified(3, gap=0)

    References
    ----------
    Besbes, Gur, Zeevi (2015), Non-stationary stochastic optimization.
    """
    changes = [_change(before, now, domain) for before, now in pairwise(losses)]
    lower = math.fsum(change.lower for change in changes)
    return Certified(lower, math.fsum(change.upper for change in changes) - lower)


class _Interval(NamedTuple):
    lower: float
    upper: float


def _change(before: Loss, now: Loss, domain: Domain) -> _Interval:
    """Bounds on the largest difference of two losses on the set."""
    if before is now:
        return _Interval(0.0, 0.0)
    if type(before) is LinearLoss and type(now) is LinearLoss:
        return _largest_linear(now.g - before.g, now.constant - before.constant, domain)
    if type(before) is SquaredDistance and type(now) is SquaredDistance:
        weight, a, b = now.weight, now.target, before.target
        if before.weight == weight:
            # w |x - a|^2 - w |x - b|^2 = <2 w (b - a), x> + w <a - b, a + b>
            constant = weight * inner(a - b, a + b)
            return _largest_linear((b - a) * (2.0 * weight), constant, domain)
    return _Interval(_found(before, now, domain), _bound(before, now, domain))


def _largest_linear(slope: Point, constant: float, domain: Domain) -> _Interval:
    """Bounds on the largest |<slope, x> + constant|, equal where the oracle is exact."""
    ends = []
    for sign in (1.0, -1.0):
        vertex, error = domain.lmo_with_error(slope * sign)
        ends.append((abs(inner(slope, vertex) + constant), error))
    return _Interval(max(end for end, _ in ends), max(end + error for end, error in ends))


def _found(before: Loss, now: Loss, domain: Domain) -> float:
    """The largest difference at the vertices that lie in the direction of its growth."""
    largest = 0.0
    for sign in (1.0, -1.0):
        x = domain.origin()
        for _ in range(_VERTICES):
            old_value, old_slope = before.value_and_gradient(x)
            new_value, new_slope = now.value_and_gradient(x)
            largest = max(largest, abs(new_value - old_value))
            x = domain.lmo_with_error((old_slope - new_slope) * sign)[0]
        largest = max(largest, abs(now.value(x) - before.value(x)))
    return largest


def _bound(before: Loss, now: Loss, domain: Domain) -> float:
    """The smaller of two bounds: by the Lipschitz bound of the difference, and by the ranges."""
    old_slope, new_slope = before.lipschitz(domain), now.lipschitz(domain)
    if old_slope is None or new_slope is None:
        return math.inf
    origin, reach = domain.origin(), domain.radius
    old, new = before.value(origin), now.value(origin)
    by_difference = abs(new - old) + (old_slope + new_slope) * reach
    by_ranges = max(
        old + old_slope * reach - floor(now, domain),
        new + new_slope * reach - floor(before, domain),
    )
    return min(by_difference, by_ranges)

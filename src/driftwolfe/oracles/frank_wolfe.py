"""Line-search Frank-Wolfe towards a point."""

from __future__ import annotations

from typing import NamedTuple

from driftwolfe.domains import Domain
from driftwolfe.oracles.pair import Pair
from driftwolfe.points.kinds import Point


class Approach(NamedTuple):
    """A point of the set, the gap that it reached, and the linear minimisations spent."""

    point: Point
    gap: float
    lmo_calls: int


def frank_wolfe(
    domain: Domain,
    x: Point,
    y: Point,
    gap: float,
    max_lmo_calls: int | None = None,
    accuracy: float | None = None,
) -> Approach:
    r"""Move from x towards y inside the set until the Frank-Wolfe gap is small.

    Minimises :math:`\tfrac12\lVert x - y\rVert^2` by exact line searches until
    :math:`\langle x - y, x - v\rangle \le gap`; at most :math:`27 D^2/(4 gap)` calls, or as many as
    allowed. With `accuracy`, a gap of that share of :math:`\lVert x - y\rVert^2` ends it as well.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> frank_wolfe(dw.L1Ball(2), np.zeros(2), np.array([2.0, 0.5]), gap=1e-6).point
    array([1., 0.])
    """
    pair, calls = Pair(x, y), 0
    hint = gap / (8.0 * domain.radius**2)
    while True:
        vertex, error = domain.lmo_with_error(pair.direction(), hint)
        calls += 1
        reached = pair.look(vertex) + error
        spent = max_lmo_calls is not None and calls >= max_lmo_calls
        enough = max(gap, (accuracy or 0.0) * pair.squared)
        if reached <= enough or not pair.step() or spent:
            return Approach(pair.snapshot(), reached, calls)

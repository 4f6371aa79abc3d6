"""Frank-Wolfe that re-optimises over all it has found."""

from __future__ import annotations

import math

import numpy as np

from driftwolfe.domains import Domain, TraceNormBall
from driftwolfe.domains.hull import Hull
from driftwolfe.oracles.pair import Pair
from driftwolfe.oracles.result import InfeasibleProjection
from driftwolfe.oracles.span import Span
from driftwolfe.oracles.stopping import (
    COLLAPSE,
    Stopping,
    collapse,
    cut_short,
    give_up,
    slice_off,
    stay,
)
from driftwolfe.points.kinds import Point

METHOD = "corrective"


def corrective(domain: Domain, x: Point, y: Point, stop: Stopping) -> InfeasibleProjection:
    r"""Project infeasibly by fully corrective Frank-Wolfe.

    After every oracle call x becomes the nearest point to y in everything found so far: the convex
    hull of x and the vertices (Wolfe's min-norm-point method), or, on a trace-norm ball, all
    matrices of the ball whose row and column spaces lie in those of x and the atoms, where the
    nearest one is a small singular value decomposition away. The distance falls at least as fast as
    with line search, so every bound on the calls stays; on polytopes the end is finite.
    """
    found: Span | Hull
    if isinstance(domain.unwrapped, TraceNormBall):
        found = Span(x, y, domain.unwrapped.scale)
    elif isinstance(y, np.ndarray):
        found = Hull(np.asarray(x))
    else:
        raise ValueError(
            f'method "corrective" needs dense points or a TraceNormBall, got {type(y).__name__}; '
            'use method="halfspace"'
        )
    hint = 0.1 * math.sqrt(stop.tolerance) / domain.radius
    pair, calls = Pair(x, y), 0
    while not stop.near(pair):
        vertex, error = domain.lmo_with_error(pair.direction(), hint)
        calls += 1
        gap = pair.look(vertex) + error
        if stop.collapses(pair.squared, gap):
            return collapse(pair, calls, gap, METHOD)
        if stop.slices(pair.squared, gap):
            return slice_off(pair, calls, gap, METHOD)
        found.add(vertex)
        nearer = Pair(found.correct(y), y)
        if stop.spent(calls) and (stop.accuracy is not None or gap > COLLAPSE * pair.squared):
            nearest = nearer if nearer.squared < pair.squared else pair
            return cut_short(nearest, stop, calls, 2 * domain.radius, METHOD)
        if stop.spent(calls) or not nearer.squared < pair.squared:
            return give_up(pair, stop, calls, gap, METHOD)
        pair = nearer
    return stay(pair, calls, pair.distance * 2 * domain.radius, METHOD)

"""One Frank-Wolfe run and one half-space step."""

from __future__ import annotations

import math
from dataclasses import replace

from driftwolfe.domains import Domain
from driftwolfe.oracles.pair import Pair
from driftwolfe.oracles.result import InfeasibleProjection
from driftwolfe.oracles.stopping import Stopping, collapse, give_up, slice_off, stay
from driftwolfe.points.kinds import Point

METHOD = "halfspace"
#: LMO calls <= this * D^2 / tolerance with an exact oracle; `docs/theory/oracles.md` has the proof.
CALLS = 2.6
#: Error of an inexact oracle, in units of sqrt(tolerance) * d, that the run is sure to end with.
ORACLE_ERROR = 3 / 8


def halfspace(domain: Domain, x: Point, y: Point, stop: Stopping) -> InfeasibleProjection:
    r"""Project infeasibly by one Frank-Wolfe run and one half-space step.

    Line-search Frank-Wolfe on :math:`\tfrac12\lVert x - y\rVert^2` until the gap g falls to
    :math:`\sqrt{tolerance}\, d`. The last oracle answer bounds a half-space that holds K; y' is the
    projection of y on it, which lies on the segment to x at distance :math:`g/d`.

    At most :math:`2.6\, D^2/tolerance` oracle calls, whatever `accuracy` asks for: where accuracy is
    finer, the run goes on to it as long as that cap allows, and otherwise returns the answer that
    was good enough on the way.
    """
    pair = Pair(x, y)
    D = 2.0 * domain.radius
    # Up to this relative error of the oracle the run still ends, after 27 D^2 / (4 tolerance) calls.
    hint = ORACLE_ERROR * math.sqrt(stop.tolerance) / domain.radius
    cap = CALLS * D**2 / stop.tolerance
    calls, fallback = 0, None
    while not stop.near(pair):
        vertex, error = domain.lmo_with_error(pair.direction(), hint)
        calls += 1
        gap = pair.look(vertex) + error
        if stop.slices(pair.squared, gap):
            return slice_off(pair, calls, gap, METHOD)
        if stop.collapses(pair.squared, gap):
            return collapse(pair, calls, gap, METHOD)
        if stop.within_reach(pair.squared, gap):
            fallback = slice_off(pair, calls, gap, METHOD)
        if stop.spent(calls) or (fallback and calls + 1 > cap) or not pair.step():
            return _better(fallback, give_up(pair, stop, calls, gap, METHOD))
    return stay(pair, calls, pair.distance * D, METHOD)


def _better(
    fallback: InfeasibleProjection | None, last: InfeasibleProjection
) -> InfeasibleProjection:
    """The last answer if it keeps the contract, else an earlier one that did, with the true count."""
    if last.converged or fallback is None:
        return last
    return replace(fallback, lmo_calls=last.lmo_calls)

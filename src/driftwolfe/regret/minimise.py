"""Which method minimises which objective over which set."""

from __future__ import annotations

import math

import numpy as np

from driftwolfe.domains import Domain, Spectrahedron, TraceNormBall
from driftwolfe.domains.trace_norm_ball import FULL_SVD_ENTRIES
from driftwolfe.points import FactoredMatrix
from driftwolfe.points.kinds import Point
from driftwolfe.regret.accelerated import accelerated
from driftwolfe.regret.bracket import Bracket
from driftwolfe.regret.bundle import bundle
from driftwolfe.regret.corrective import corrective
from driftwolfe.regret.newton import newton
from driftwolfe.regret.objective import Objective
from driftwolfe.regret.reduction import reduce

#: Smoothing of kinks, as a share of the natural size of the scores: the first, the factor to the
#: next, and where doubles end it.
_FIRST_SHARE, _NEXT_SHARE, _LAST_SHARE = 0.3, 0.25, 1e-11
#: Looks that smooth methods get at functions of unknown smoothness before the bundle takes over.
_TRIAL = 200


def minimise(objective: Objective, start: Point, bracket: Bracket) -> None:
    """Narrow a bracket around the minimum of an objective until it has no more work."""
    reduced = reduce(objective, bracket.domain)
    if reduced is None:
        _minimise(objective, start, bracket)
        bracket.point = _like(bracket.domain.origin(), bracket.point)
    else:
        inside = bracket.over(reduced.domain)
        _minimise(reduced.objective, reduced.restrict(start), inside)
        bracket.take(inside, reduced.embed(inside.point, bracket.domain.origin()))


def _minimise(objective: Objective, start: Point, bracket: Bracket) -> None:
    bracket.offer(start, objective.value(start))
    if objective.linear:
        vertex = bracket.look(objective, start, objective.evaluate(start)).vertex
        bracket.offer(vertex, objective.value(vertex))
        return
    projects = _projects(bracket.domain)
    x = _dense(start) if projects or objective.unknown else start
    limit = bracket.limit
    if objective.unknown:
        bracket.limit = min(limit, bracket.looks + _TRIAL)
    _follow_smoothings(objective, x, bracket, projects)
    bracket.limit = limit
    if objective.unknown and bracket.is_open():
        bundle(objective, _dense(bracket.point), bracket)


def _follow_smoothings(objective: Objective, x: Point, bracket: Bracket, projects: bool) -> None:
    """Minimise ever less smoothed objectives, each from the last one's minimiser."""
    share = _FIRST_SHARE
    while True:
        bracket.unsettle()
        x = _descend(objective.softened(share), x, bracket, projects)
        share *= _NEXT_SHARE
        if not (bracket.is_open() and objective.kinked and share > _LAST_SHARE):
            return


def _descend(objective: Objective, x: Point, bracket: Bracket, projects: bool) -> Point:
    """Minimise a smooth objective by the method that fits."""
    if not projects:
        return corrective(objective, x, bracket)
    if objective.has_hessian(math.prod(bracket.domain.shape)) and not objective.quadratic:
        x = newton(objective, x, bracket)
    return accelerated(objective, x, bracket)


def _projects(domain: Domain) -> bool:
    """Whether projected steps beat oracle steps.

    For matrices they do even where a projection costs a full decomposition: minimisers have high
    rank, and every oracle answer brings a single direction.
    """
    if isinstance(domain.unwrapped, TraceNormBall | Spectrahedron):
        return int(np.prod(domain.shape)) <= FULL_SVD_ENTRIES
    return domain.cheap_projection


def _dense(x: Point) -> Point:
    return x.toarray() if isinstance(x, FactoredMatrix) else x


def _like(origin: Point, point: Point) -> Point:
    """The point in the representation that the set's points have."""
    if isinstance(origin, FactoredMatrix) and isinstance(point, np.ndarray):
        return FactoredMatrix.from_dense(point)
    return point

"""The best fixed point in hindsight, to a certified gap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.losses import HuberEntries, Loss
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.points import FactoredMatrix, checks
from driftwolfe.points.kinds import Indices, Point
from driftwolfe.regret.objective import Objective, pool
from driftwolfe.regret.solvers import Bracket, accelerated, bundle, corrective, newton


@dataclass(frozen=True, slots=True)
class OfflineMinimum:
    """The minimum of a sum of losses over a set, with its certificate.

    Attributes
    ----------
    point, value, gap
        A point of the set, the sum there, and how much less the minimum may be, in units of the loss.
    iterations
        Gradients of the sum that were evaluated.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> best = offline_minimum(dw.L1Ball(2), [dw.losses.LinearLoss([1.0, 0.0])] * 3)
    >>> best.point, best.value, best.gap < 1e-12
    (array([-1.,  0.]), -3.0, True)
    """

    point: Point
    value: float
    gap: float
    iterations: int

    @property
    def lower(self) -> float:
        """The certified lower bound."""
        return self.value - self.gap


def offline_minimum(
    domain: Domain,
    losses: Sequence[Loss],
    start: Any = None,
    tolerance: float = 1e-6,
    max_iterations: int = 2000,
) -> OfflineMinimum:
    r"""Minimise a sum of losses over a set: :math:`\min_{x \in K} \sum_t f_t(x)`.

    Losses of one class are joined first, so that a thousand rounds cost one matrix product per
    evaluation. Then, whichever fits:

    - linear losses: one LMO call, exact;
    - few entries (up to 256) and a cheap projection: Newton steps over the set;
    - a cheap projection, or matrices: accelerated projected gradient steps;
    - other sets: fully corrective Frank-Wolfe, which needs only the LMO;
    - absolute and hinge losses: the same on smoothed losses, with less and less smoothing;
    - your own functions: a bundle method, where gradient steps do not reach the tolerance.

    The certificate, one LMO call on a tangent, holds whether or not the tolerance was reached.

    Parameters
    ----------
    domain, losses, start
        The set K, the losses :math:`f_t`, and a point of K to start from, else `domain.origin()`.
    tolerance
        Gap to stop at, relative to the larger of the absolute minimum and sum at the origin.
    max_iterations
        Most gradients of the sum to evaluate; the gap may then be larger.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> targets = np.array([[2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
    >>> losses = [dw.losses.SquaredDistance(target) for target in targets]
    >>> best = offline_minimum(dw.L1Ball(2, radius=2.0), losses)
    >>> best.point, round(best.value, 6), best.gap < 1e-6
    (array([1., 1.]), 3.0, True)

    References
    ----------
    Jaggi (2013), Revisiting Frank-Wolfe; Nesterov (2005), Smooth minimization of non-smooth functions.
    """
    origin = domain.origin()
    first = origin if start is None else domain.check_point(start, "start")
    if start is not None and domain.cheap_membership and not domain.contains(first, atol=1e-6):
        raise ValueError(
            f"start must be a point of {domain!r}, but it lies outside; project it first"
        )
    if not losses:
        raise ValueError("losses must hold at least one loss, got none")
    for loss in losses:
        loss.check_shape(domain.shape)
    objective = pool(losses)
    bracket = Bracket(
        domain,
        tolerance=checks.nonnegative(tolerance, "tolerance"),
        scale=abs(objective.value(origin)),
        lower=objective.lower_bound,
        limit=checks.count(max_iterations, "max_iterations"),
    )
    minimise(objective, first, bracket)
    return OfflineMinimum(bracket.point, bracket.value, bracket.gap, bracket.evaluations)


def minimise(objective: Objective, start: Point, bracket: Bracket) -> None:
    """Narrow a new bracket around the minimum of an objective until it has no more work.

    Losses of matrix entries are minimised on the rows and columns that they use: neither taking a
    submatrix nor filling up with zeros raises the trace norm or the losses.
    """
    domain, factored = bracket.domain, isinstance(bracket.domain.origin(), FactoredMatrix)
    if (part := _submatrix(objective, domain)) is None:
        _run_solvers(objective, start, bracket)
        if factored and isinstance(bracket.point, np.ndarray):
            bracket.point = FactoredMatrix.from_dense(bracket.point)
        return
    smaller, rows, cols, bracket.domain = part
    places = np.meshgrid(rows, cols, indexing="ij")
    if isinstance(start, FactoredMatrix):
        flat = [indices.ravel() for indices in places]
        part_of_start = start.entries(*flat).reshape(places[0].shape)
    else:
        part_of_start = start[*places]
    _run_solvers(smaller, part_of_start, bracket)
    bracket.domain, found = domain, bracket.point
    if factored:
        found = FactoredMatrix.from_dense(found)
        U, V = (np.zeros((size, found.rank)) for size in domain.shape)
        U[rows], V[cols] = found.U, found.V
        bracket.point = FactoredMatrix(U, found.s, V)
    else:
        bracket.point = np.zeros(domain.shape)
        bracket.point[*places] = found


def _submatrix(
    objective: Objective, domain: Domain
) -> tuple[Objective, Indices, Indices, Domain] | None:
    """The problem on the rows and columns that its losses use, or None if that is hardly smaller."""
    losses = [term.loss for term in objective.terms if isinstance(term.loss, EntryLoss)]
    if not losses or len(losses) < len(objective.terms) or objective.unknown:
        return None
    rows = np.unique(np.concatenate([loss.rows for loss in losses]))
    cols = np.unique(np.concatenate([loss.cols for loss in losses]))
    small = domain.restricted_to((rows.size, cols.size))
    if small is None or rows.size * cols.size > 0.7 * math.prod(domain.shape):
        return None
    terms = []
    for term, loss in zip(objective.terms, losses, strict=True):
        places = np.searchsorted(rows, loss.rows), np.searchsorted(cols, loss.cols)
        width = (loss.width,) if isinstance(loss, HuberEntries) else ()
        terms.append(term._replace(loss=type(loss)(*places, loss.targets, *width)))
    return Objective(terms, objective.constant), rows, cols, small


def _run_solvers(objective: Objective, x: Any, bracket: Bracket) -> None:
    """Run the solvers that fit, on less and less smoothed objectives."""
    domain, limit = bracket.domain, bracket.limit
    bracket.offer(x, objective.value(x))
    if objective.unknown:  # it may have kinks: after 200 evaluations the bundle method takes over
        bracket.limit = min(limit, bracket.evaluations + 200)
    if domain.affordable_projection or objective.unknown:
        x = _dense(x)
    share = 0.3  # of the natural size of the scores, by which kinks are smoothed
    while True:
        bracket.settled = False
        smooth = objective.smoothed(share)
        if smooth.linear:
            _, x = bracket.gap_at(smooth, x, smooth.evaluate(x))
            bracket.offer(x, smooth.value(x))
        elif not domain.affordable_projection:
            x = corrective(smooth, x, bracket)
        else:
            if smooth.has_hessian(math.prod(domain.shape)) and not smooth.quadratic:
                x = newton(smooth, x, bracket)
            x = accelerated(smooth, x, bracket)
        share *= 0.25
        if not (bracket.is_open() and objective.kinked and share > 1e-11):
            break
    bracket.limit = limit
    if objective.unknown and bracket.is_open():
        bundle(objective, _dense(bracket.point), bracket)


def _dense(x: Point) -> Point:
    return x.toarray() if isinstance(x, FactoredMatrix) else x

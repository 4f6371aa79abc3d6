"""The best fixed point in hindsight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from driftwolfe.domains import Domain
from driftwolfe.losses import Loss
from driftwolfe.points import checks
from driftwolfe.points.kinds import Point
from driftwolfe.regret.bracket import Bracket
from driftwolfe.regret.floors import objective_floor
from driftwolfe.regret.minimise import minimise
from driftwolfe.regret.objective import Objective
from driftwolfe.regret.pooling import pool


@dataclass(frozen=True, slots=True)
class OfflineMinimum:
    r"""The minimum of a sum of losses over a set, with its certificate.

    Attributes
    ----------
    point
        A point of the set.
    value
        The sum there: :math:`value - gap \le \min_K F \le value`.
    gap
        Width of the certified interval, in units of the loss.
    iterations
        Gradients of the sum that were looked at.

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
    r"""Minimise a sum of losses over a set: :math:`\min_{x \in K} \sum_t f_t(x)`, with a certificate.

    Losses of one kind are joined first, so that a window of a thousand rounds costs one matrix
    product a look, not a thousand calls. Then, whichever fits:

    - linear losses: one oracle call, exact;
    - few entries (up to 256) and a cheap projection: Newton steps over the set;
    - a cheap projection, or matrices: accelerated projected gradient steps;
    - other sets: fully corrective Frank-Wolfe, which needs only the oracle;
    - absolute and hinge losses: the same on smoothed losses, with less and less smoothing;
    - your own functions: a bundle method, where gradient steps do not reach the tolerance.

    The certificate is a linear function below the sum, minimised over the set by one oracle call:
    for smooth losses the Frank-Wolfe gap, for losses with kinks one made of slopes that need not be
    the gradient's. It holds whether or not the tolerance was reached.

    Parameters
    ----------
    domain
        The set K.
    losses
        The losses :math:`f_t`, at least one.
    start
        A point of the set to start from; `domain.origin()` if not given.
    tolerance
        Gap to stop at, relative to the larger of the minimum and the sum at the origin, in absolute
        values.
    max_iterations
        Most gradients of the sum to look at; the answer may then have a larger gap.

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
    Jaggi (2013), Revisiting Frank-Wolfe, for the certificate; Nesterov (2005), Smooth minimization
    of non-smooth functions.
    """
    origin = domain.origin()
    first = origin if start is None else _feasible(domain, start)
    objective = summed(domain, losses)
    bracket = Bracket(
        domain,
        tolerance=checks.nonnegative(tolerance, "tolerance"),
        scale=abs(objective.value(origin)),
        floor=objective_floor(objective),
        limit=checks.count(max_iterations, "max_iterations"),
    )
    minimise(objective, first, bracket)
    return OfflineMinimum(bracket.point, bracket.value, bracket.gap, bracket.looks)


def summed(domain: Domain, losses: Sequence[Loss]) -> Objective:
    """Return the sum of losses that can look at points of the set, or raise `ValueError`."""
    if not losses:
        raise ValueError("losses must hold at least one loss, got none")
    for loss in losses:
        loss.check_shape(domain.shape)
    return pool(losses)


def _feasible(domain: Domain, start: Any) -> Point:
    point = domain.check_point(start, "start")
    if domain.cheap_membership and not domain.contains(point, atol=1e-6):
        raise ValueError(
            f"start must be a point of {domain!r}, but it lies outside; project it first, or leave "
            "it out to start from domain.origin()"
        )
    return point

"""`Bracket`: the minimum of an objective over a set, known from both sides."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.points import inner
from driftwolfe.points.kinds import Point
from driftwolfe.regret.objective import Evaluation, Objective

#: What rounding may do to a sum of products, in units of its terms.
_ROUNDING = 16 * float(np.finfo(np.float64).eps)


class Look(NamedTuple):
    r"""What one linear minimisation told.

    Attributes
    ----------
    gap
        The Frank-Wolfe gap of the function at hand: it is within this of its minimum.
    vertex
        The minimiser of the linearised function.
    """

    gap: float
    vertex: Point


class Bracket:
    r"""The best point found and the best lower bound proved.

    For convex F with slope g at x and v a minimiser of :math:`\langle g, \cdot\rangle` over K,

    .. math:: \min_K F \ge F(x) - \langle g, x - v\rangle,

    so every look at a point of K moves one end or both.

    Parameters
    ----------
    domain
        The set K.
    tolerance, scale, allowed
        The bracket is narrow enough at ``tolerance * max(|value|, scale) + allowed``.
    floor
        A lower bound known from the start.
    target
        The search may end once the minimum is known to be at least this.
    limit
        Most looks before giving up.
    """

    def __init__(
        self,
        domain: Domain,
        *,
        tolerance: float = 0.0,
        scale: float = 0.0,
        allowed: float = 0.0,
        floor: float = -math.inf,
        target: float = math.inf,
        limit: int = 2000,
    ) -> None:
        self.domain = domain
        self.point: Point = None
        self.value = math.inf
        self.lower = floor
        self.looks = 0
        self.limit = limit
        self._settled = False
        self._tolerance, self._scale, self._allowed = tolerance, scale, allowed
        self._target = target

    def over(self, domain: Domain) -> Bracket:
        """Return a bracket with the same aims and no point yet, for the same problem on another set."""
        return Bracket(
            domain,
            tolerance=self._tolerance,
            scale=self._scale,
            allowed=self._allowed,
            floor=self.lower,
            target=self._target,
            limit=self.limit - self.looks,
        )

    def take(self, other: Bracket, point: Point) -> None:
        """Take over what another bracket of the same problem has found, with its point as `point`."""
        self.looks += other.looks
        self.lower = max(self.lower, other.lower)
        self.offer(point, other.value)

    @property
    def gap(self) -> float:
        """Width of the bracket."""
        return max(0.0, self.value - self.lower)

    @property
    def allowed(self) -> float:
        """The width that will do."""
        size = 0.0 if self.point is None else abs(self.value)
        return self._tolerance * max(size, self._scale) + self._allowed

    def is_open(self) -> bool:
        """Whether there is work left and looks to do it with."""
        done = self.gap <= self.allowed or self.lower >= self._target
        return not done and self.looks < self.limit

    def has_work(self) -> bool:
        """Whether more looks at the objective at hand will help."""
        return self.is_open() and not self._settled

    def look(self, objective: Objective, x: Point, seen: Evaluation) -> Look:
        """Learn from the objective's evaluation at a point of the set, with one call of the oracle.

        A smoothed objective settles once its gap is below half its blur: then only less smoothing
        can help.
        """
        self.looks += 1
        true = objective.true_value(x, seen)
        self.offer(x, true)
        vertex, error = self.domain.lmo_with_error(seen.gradient)
        here, there = inner(seen.gradient, x), inner(seen.gradient, vertex)
        noise = _ROUNDING * (abs(seen.value) + abs(seen.slack) + abs(here) + abs(there))
        gap = max(0.0, here - there) + error + noise
        tangent = seen.value + seen.slack
        self.lower = max(self.lower, tangent - gap)
        self._settled = gap <= 0.5 * (true - tangent)
        return Look(gap, vertex)

    def unsettle(self) -> None:
        """Get ready for the next objective."""
        self._settled = False

    def offer(self, x: Point, value: float) -> None:
        """Keep x if its value is the lowest so far."""
        if value < self.value:
            self.point, self.value = x, value

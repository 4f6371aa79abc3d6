"""Online Newton steps on arrays: sums of gradients, and the minimum of the quadratic that they make."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from driftwolfe.domains import Domain, Simplex
from driftwolfe.domains.base import require_feasible
from driftwolfe.ensemble.experts import Experts, require_in_range
from driftwolfe.losses import Loss
from driftwolfe.losses.base import LONGEST
from driftwolfe.points import norm
from driftwolfe.points.kinds import Array, Indices, Point
from driftwolfe.state import Field, Size
from driftwolfe.storage import require

#: Gap at which a minimisation stops; by LMO calls it is dearer.
ACCURACY, LMO_ACCURACY = 1e-10, 1e-5
#: Most accelerated steps of one; by LMO calls, most calls, and steps after each.
STEPS, CALLS, LMO_STEPS = 300, 12, 40
#: The matrix has as many rows and columns as a point has numbers.
MOST_NUMBERS = 5_000


@dataclass(frozen=True)
class NewtonSums:
    """What is kept of the gradients g at points x, in units of the radius: of R g and (x - c)/R."""

    squares: Annotated[Array, Field(np.float64, ("numbers", "numbers"))]  # sum of g g^T
    slopes: Annotated[Array, Field(np.float64, (2, "numbers"))]  # sums of g, and of g <g, x>
    largest: Size = 0.0  # norm of g
    unit: Size = 0.0  # a power of two above the largest number of a gradient
    gap: Size = 0.0  # of the last minimum
    slack: Size = 0.0  # sum of 2 |g| sqrt(2 gap / ridge)

    @classmethod
    def of(cls, numbers: int) -> NewtonSums:
        """Return those of no gradients, for points of so many numbers."""
        return cls(np.zeros((numbers, numbers)), np.zeros((2, numbers)))

    def check(self, numbers: int) -> None:
        """Raise ValueError unless these can be sums of gradients of so many numbers."""
        require(len(self.squares) == numbers, "sums")
        values = np.linalg.eigvalsh(self.squares)
        require(values[0] >= -1e-6 * max(1.0, values[-1]), "sums")


@dataclass(frozen=True)
class NewtonRule:
    r"""The rate :math:`\rho` and the ridge :math:`\epsilon` of Newton steps on a set, or what they follow from."""

    domain: Domain
    lipschitz: float | None  # G; None: the largest seen
    alpha: float | None  # exp-concavity; None: not known
    rate: float | None = None
    ridge: float | None = None

    def constants(self, largest: float) -> tuple[float, float]:
        """Return rate and ridge, of points over R, for the largest norm of R g."""
        R, rate = self.domain.radius, self.rate
        if rate is None:
            steepest = max(largest, R * (self.lipschitz or 0.0))
            known = 0.0 if self.alpha is None else 1.0 / self.alpha
            rate = 2.0 * max(steepest * (self.domain.diameter / R), known)
        return rate, rate**2 if self.ridge is None else (R * math.sqrt(self.ridge)) ** 2

    def step(self, x: Array, gradient: Array, sums: NewtonSums) -> tuple[Array, NewtonSums]:
        """Return the point after x, and the sums with the gradient there."""
        center, R = self.domain.origin(), self.domain.radius
        g, y = R * self.domain.tangent(gradient).ravel(), (x - center).ravel() / R
        size = norm(g)
        require_in_range(size / R, self.domain.diameter)
        if size < 1.0 / LONGEST:  # its square is nothing
            return x, sums
        squares, slopes = sums.squares + np.outer(g, g), sums.slopes + np.stack((g, g * (g @ y)))
        largest = max(sums.largest, size)
        unit = max(sums.unit, 2.0 ** math.frexp(float(np.abs(g).max()))[1])
        rate, ridge = self.constants(largest)
        one = max(unit, abs(rate)) ** 2
        quadratic = (squares + ridge * np.eye(g.size)) / one
        y, gap = minimum(self.domain, quadratic, (rate * slopes[0] - slopes[1]) / one, y)
        slack = sums.slack + 2.0 * size * math.sqrt(2.0 * sums.gap / ridge)
        found = NewtonSums(squares, slopes, largest, unit, gap * one, slack)
        return center + R * y.reshape(self.domain.shape), found


class NewtonExperts(Experts):
    """Newton steps of which some end, and one starts at the centre, after each round."""

    x: Annotated[Array, Field(np.float64)]  # along the first axis
    sums: Annotated[list[NewtonSums], Field(list, ("experts",), items=Field(NewtonSums))]
    slack: Size  # the most that inexact minima may have cost one

    def __init__(self, rule: NewtonRule) -> None:
        super().__init__(rule.domain, None)
        self.rule, self.sums, self.slack = rule, list[NewtonSums](), 0.0
        self.x = np.empty((0, *rule.domain.shape))
        self.keep(np.arange(0))

    @property
    def size(self) -> int:
        return len(self.x)

    def point(self, i: int) -> Point:
        return self.x[i]

    def step(self, loss: Loss, slopes: Any, shared: bool = False) -> None:
        gradients = map(loss.pull_back, slopes, self.x)
        learned = list(map(self.rule.step, self.x, gradients, self.sums))
        self.x, self.sums = np.stack([x for x, _ in learned]), [sums for _, sums in learned]
        self.slack = max(self.slack, *(each.slack for each in self.sums))
        longest = max(each.largest for each in self.sums) / self.domain.radius
        self.largest_gradient = max(self.largest_gradient, longest)

    def keep(self, which: Indices) -> None:
        """Keep some, and start one."""
        x = self.domain.origin()
        self.x = np.concatenate((self.x[which], x[None]))
        self.sums = [*(self.sums[i] for i in which), NewtonSums.of(x.size)]

    def check(self) -> None:
        require(self.x.shape == (len(self.sums), *self.domain.shape), "points")
        require_feasible(self.domain, self.x)
        for sums in self.sums:
            sums.check(self.x[0].size)


def minimum(domain: Domain, H: Array, c: Array, x: Array) -> tuple[Array, float]:
    """Return a minimiser of <x, H x>/2 + <c, x> over a set, and a bound on its primal gap.

    Points are (z - centre)/R, for z in the set; x is the one to start from.
    """
    center, radius, shape = domain.origin(), domain.radius, domain.shape

    def project(y: Array) -> Array:
        z = domain.project_many(center + radius * y.reshape(1, *shape))
        return (z - center).ravel() / radius

    if domain.cheap_projection:
        return accelerated(H, c, x, project, domain.diameter / radius, ACCURACY, STEPS)
    points, weights, gap = x[None], np.ones(1), math.inf
    for _ in range(CALLS):
        slope = H @ x + c
        answer, error = domain.lmo_with_error(slope.reshape(shape))
        vertex = (answer - center).ravel() / radius
        gap = max(0.0, float(slope @ (x - vertex))) + error / radius
        if gap <= LMO_ACCURACY:
            break
        points, weights = np.vstack((points, vertex)), np.append(weights, 0.0)
        among = Simplex(len(points)).project
        inner, stop = points @ H @ points.T, (math.sqrt(2.0), 0.5 * LMO_ACCURACY, LMO_STEPS)
        weights, _ = accelerated(inner, points @ c, weights, among, *stop)
        x = weights @ points
        points, weights = points[weights > 0.0], weights[weights > 0.0]
    return x, gap


def accelerated(
    H: Array,
    c: Array,
    x: Array,
    project: Callable[[Any], Array],
    diameter: float,
    accuracy: float,
    steps: int,
) -> tuple[Array, float]:
    """Minimise a quadratic by accelerated projected steps with restarts; return a bound on the gap too."""
    flattest, *_, steepest = np.linalg.eigvalsh(H).tolist() if len(H) > 1 else 2 * [float(H[0, 0])]
    if steepest <= 0.0:  # all rounding: nothing to gain
        return x, 0.0
    y, momentum, gap = x, 1.0, math.inf
    for _ in range(steps):
        z = project(y - (H @ y + c) / steepest)
        # <H z + c, z - v> <= <(H - L)(z - y), z - v> for all v of the set; and by strong convexity.
        residual = steepest * math.sqrt((z - y) @ (z - y))
        gap = min(residual * diameter, residual * residual / (2.0 * max(flattest, 1e-200)))
        if gap <= accuracy:
            return z, gap
        if (y - z) @ (z - x) > 0.0:  # momentum points uphill
            momentum, y, x = 1.0, z, z
            continue
        following = 0.5 + math.sqrt(0.25 + momentum**2)
        y, x, momentum = z + ((momentum - 1.0) / following) * (z - x), z, following
    return x, gap

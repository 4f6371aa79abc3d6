"""`GaugeDescent`: experts that step in a ball and are pulled into the set by its gauge."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.ensemble.dense_descent import DenseDescent
from driftwolfe.ensemble.plan import Oracle
from driftwolfe.losses import Loss
from driftwolfe.oracles import gauge_by_bisection
from driftwolfe.points import clip_to_ball
from driftwolfe.points.kinds import Array, Point
from driftwolfe.points.rounding import TIE
from driftwolfe.storage.state import require


class _Round(NamedTuple):
    x: Array
    y: Array
    gauges: Array
    largest_gradient: float


class GaugeDescent(DenseDescent):
    r"""Gradient descent on the ball R B, reduced to the set by its gauge.

    Expert i holds u in the ball around the centre c and plays :math:`w = c + (u - c)/\max(1, \gamma)`,
    :math:`\gamma = gauge(u)`. With g the gradient at w and s a subgradient of the gauge at u, it steps
    along

    .. math:: \tilde g = g - 1\{\gamma > 1, \langle g, u - c\rangle < 0\}\,\langle g, w - c\rangle\, s

    for which :math:`\langle g, w - z\rangle \le \langle\tilde g, u - z\rangle` for all z in K, and
    :math:`\lVert\tilde g\rVert \le (1 + R/r) G`.

    Parameters
    ----------
    domain
        A set with a gauge, a subgradient of it, and a known inner radius r.
    step_scale
        c in eta = c h; None: D over (1 + R/r) times the largest gradient norm so far.
    bisection
        Accuracy of the gauge by bisection on membership, or None for the set's own gauge.
    """

    STATE = ("gauges",)
    ON_DEVICES = False  # a gauge at a time, on the host

    def __init__(
        self, domain: Domain, oracle: Oracle, step_scale: float | None, bisection: float | None
    ) -> None:
        super().__init__(domain, oracle, step_scale)
        self.bisection = bisection
        self.gauges: Array = np.empty(0)

    @property
    def kappa(self) -> float:
        """R / r, the aspect ratio of the set."""
        return self.domain.radius / self.domain.inner_radius

    def scale_for(self, largest_gradient: float) -> float:
        """The factor c in eta = c h once gradients up to that norm have been seen."""
        return super().scale_for(largest_gradient * (1.0 + self.kappa))

    def prepare(self, loss: Loss, slopes: Any, shared: bool, skip: Any = None) -> Any:
        """Work out the coming round."""
        table, largest = self._gradients(loss, slopes, shared)
        gradients = self._stacked(table)
        x, y, gauges = self.x.copy(), self.y.copy(), self.gauges.copy()
        for i in self._playing_on(skip):
            g = self.domain.tangent(gradients[i if len(gradients) > 1 else 0])
            step = self.scale_for(largest) * self.steps[i]
            target = y[i] - step * self._surrogate(i, g)
            y[i] = clip_to_ball(target, self.domain.center, self.domain.radius)
            gauges[i] = self._gauge(y[i])
            x[i] = self._pulled_in(y[i], gauges[i])
        return _Round(x, y, gauges, largest)

    def commit(self, prepared: Any) -> None:
        """Carry out what `prepare` worked out."""
        self.x[:], self.y[:], self.gauges, self.largest_gradient = prepared
        self.clocks = self.clocks + 1

    def _playing_on(self, skip: Any) -> list[int]:
        return [i for i in range(self.size) if skip is None or not skip[i]]

    def _surrogate(self, i: int, g: Array) -> Array:
        c = self.domain.center
        inside, outside = (v if c is None else v - c for v in (self.x[i], self.y[i]))
        # Clipped to a ball that touches the set, u has the gauge 1 but for rounding, which must not
        # decide; so near to it, w is u.
        if self.gauges[i] <= 1.0 + TIE or np.vdot(g, outside) >= 0:
            return g
        return g - np.vdot(g, inside) * self.domain.gauge_subgradient(self.y[i])

    def _gauge(self, u: Array) -> float:
        if self.bisection is None:
            return self.domain.gauge(u)
        if self.domain.contains(u, atol=1e-12):
            return 1.0  # at most; what it is inside does not matter
        return gauge_by_bisection(self.domain, u, self.bisection)

    def _pulled_in(self, u: Array, gauge: float) -> Array:
        if gauge <= 1.0:
            return u
        c = self.domain.center
        return u / gauge if c is None else c + (u - c) / gauge

    def check_state(self) -> None:
        """As `DenseDescent.check_state`."""
        super().check_state()
        require(self.gauges.size == self.size and (self.gauges >= 0.0).all(), "gauges of experts")

    def _add_points(self, start: Point, number: int) -> None:
        super()._add_points(start, number)
        self.gauges = np.concatenate((self.gauges, np.ones(number)))

    def _keep_points(self, stay: Any) -> None:
        super()._keep_points(stay)
        self.gauges = self.gauges[stay]

    def _restart_points(self, number: int, start: Point) -> None:
        super()._restart_points(number, start)
        self.gauges[:number] = 1.0

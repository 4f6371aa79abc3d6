"""Follow the perturbed leader: one linear minimisation per round."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.learners.options import require_arrays
from driftwolfe.learners.single_point import SinglePointLearner
from driftwolfe.oracles import Oracle
from driftwolfe.points.kinds import Point
from driftwolfe.state import POINT, Count, Size

#: E|z| of a standard normal z: bounds the curvature of a support function that noise has smoothed.
_NORMAL = math.sqrt(2.0 / math.pi)


class FTPL(SinglePointLearner):
    r"""Follow the perturbed leader: the minimiser of all past losses plus noise, by one LMO call.

    .. math:: x_{t+1} = \arg\min_{v \in K} \Big\langle\sum_{s \le t} g_s + \eta_t\xi_t,\ v\Big\rangle, \qquad
              \eta_t^2 = \frac{0.8}{\sqrt n}\Big(\sum_{s \le t}\lVert g_s\rVert^2 + G^2\Big)

    with :math:`\xi_t` standard normal. For linear losses of n numbers the expected regret against a fixed point is
    at most

    .. math:: 0.9\, D\, n^{1/4}\,\sqrt{G^2 + \textstyle\sum_t\lVert g_t\rVert^2}

    also against adversaries that know all past decisions (then in expectation of both sides): :math:`\sqrt T`
    by one LMO call per round, where deterministic learners need :math:`T^{3/4}` in high dimension. Where G is
    learned, `bound` has the larger cost of gradients that were longer than all before
    (`docs/theory/benign.md`). It does not follow drift; mix it with restarts of itself in a `Mixture`, or take
    `POLAR`.

    Parameters
    ----------
    domain, horizon
        A set of dense arrays; the horizon is not used.
    {options}

    References
    ----------
    Kalai and Vempala (2005), Efficient algorithms for online decision problems, Journal of Computer and
    System Sciences; Abernethy, Lee, Sinha and Tewari (2014), Online linear optimization via smoothing,
    COLT. Constants are ours.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.contrib.FTPL(dw.BirkhoffPolytope(3), lipschitz=2.0)
    >>> history = dw.play(learner, [dw.losses.LinearLoss([[0, 1, 1], [1, 0, 1], [1, 1, 0]])] * 100)
    >>> bool(learner.decision.trace() == 3.0), learner.lmo_calls
    (True, 101)
    """

    _gradients: Annotated[Point, POINT]
    _squares: Size  # of their norms
    _largest: Size
    _scale: Size  # of the noise
    _costs: Size  # of the steps between leaders
    _draws: Count

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        seed: int = 0,
    ) -> None:
        super().__init__(domain, horizon, lipschitz, oracle=Oracle(seed=seed))
        require_arrays(domain, "FTPL", "POLAR")
        #: At least the mean of the largest <xi, v - c>, for v in the set.
        self._width = domain.radius * math.sqrt(self._x.size)
        self._gradients, self._draws = 0.0 * self._x, 0
        self._squares = self._largest = self._scale = self._costs = 0.0
        if self.options.lipschitz is not None:
            self._draw()

    def _step(self, gradient: Point, size: float) -> None:
        R = self.domain.radius
        self._largest = max(self._largest, size)
        smooth = 0.5 * _NORMAL * R * size**2 / self._scale if self._scale > 0.0 else math.inf
        self._costs += min(smooth, size * self.domain.diameter)
        self._squares += size**2
        self._gradients = self._gradients + gradient
        self._draw()

    def _draw(self) -> None:
        expected = self._squares + self.lipschitz**2
        self._scale = math.sqrt(_NORMAL * self.domain.radius / self._width * expected)
        if self._scale == 0.0:  # nothing but zeros so far
            return
        rng = np.random.default_rng((self.options.oracle.seed, self._draws))
        noise = self._scale * rng.standard_normal(self._x.shape)
        self._x = self._counted.lmo(self._gradients + noise)
        self._draws += 1

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        if path_length or tau is not None or self.domain.lmo_error:
            return None
        return self._scale * self._width + self._costs

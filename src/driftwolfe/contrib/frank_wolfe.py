"""Online Frank-Wolfe with bounds: without a horizon, and for strongly convex losses."""

from __future__ import annotations

import math
from typing import Annotated

from driftwolfe import bounds
from driftwolfe.domains import Domain
from driftwolfe.domains.base import require_feasible
from driftwolfe.learners.single_point import SinglePointLearner
from driftwolfe.points import checks, inner, norm
from driftwolfe.points.kinds import Point
from driftwolfe.points.ops import line_search_step
from driftwolfe.state import POINT, Size


class AnytimeOFW(SinglePointLearner):
    r"""Online Frank-Wolfe whose steps need no horizon: one LMO call per round.

    .. math::

        v_t = \arg\min_{v \in K}\Big\langle x_t - x_1 + \eta_t\sum_{s \le t} g_s,\ v\Big\rangle, \qquad
        x_{t+1} = x_t + \sigma_t(v_t - x_t)

    with :math:`\sigma_t = \min(1, \sqrt{3/t})`, :math:`\eta_t = \tfrac{d}{2G}(3/t)^{3/4}`, d the diameter of
    the set and G the largest gradient norm so far: `OnlineFrankWolfe` without a horizon has D for d, and no
    bound. Regret against a fixed point is at most about
    :math:`5\cdot 3^{-3/4}\,G\,d\,T^{3/4} = 2.2\,G\,d\,T^{3/4}`; `bound` has the cost of each round as measured,
    by gradients and distances to vertices. The proof is ours (`docs/theory/bounds.md`), and holds too where the
    LMO has a declared error. It does not follow drift.

    Parameters
    ----------
    domain, horizon
        A set; the horizon is not used.
    {options}

    References
    ----------
    Weibel, Gaillard, Koolen and Taylor (2026), Optimized projection-free algorithms for online learning:
    construction and worst-case analysis, AISTATS (the abstract; steps and theorem 3.3 as its code has them).

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.contrib.AnytimeOFW(dw.L1Ball(2))
    >>> history = dw.play(learner, [dw.losses.LinearLoss([1.0, 0.0])] * 100)
    >>> learner.lmo_calls, bool(learner.decision[0] < -0.9), bool(learner.bound() < 100)
    (100, True, True)
    """

    _first: Annotated[Point, POINT]
    _gradients: Annotated[Point, POINT]
    _largest: Size
    _inverse: Size  # 1/eta, 0 before the first gradient
    _costs: Size  # of the rounds so far

    def __init__(
        self, domain: Domain, horizon: int | None = None, lipschitz: float | str = "auto"
    ) -> None:
        super().__init__(domain, horizon, lipschitz)
        self._first, self._gradients = self._x.copy(), 0.0 * self._x
        self._largest = self._inverse = self._costs = 0.0

    def _step(self, gradient: Point, size: float) -> None:
        t, diameter = self.t + 1, self.domain.diameter
        self._largest = max(self._largest, size)
        if (G := self.lipschitz) == 0.0:
            return
        before, share = self._inverse, min(1.0, math.sqrt(3.0 / t))
        self._inverse = 2.0 * G * (t / 3.0) ** 0.75 / diameter
        self._gradients = self._gradients + gradient
        direction = self._x - self._first + self._gradients * (1.0 / self._inverse)
        vertex, error = self._counted.lmo_with_error(direction)
        growth = 0.5 * (self._inverse - before) if before > 0.0 else 0.0
        bend = share * self._inverse / 3.0 - 4.0 * growth / 9.0
        far = min(diameter, size / (1.5 * bend)) if bend > 0.0 else diameter
        length = norm(vertex - self._x)
        self._costs += (4.0 * size / 3.0 - bend * far) * far
        self._costs += share * self._inverse * (share * length * length / 6.0 + error / 3.0)
        self._move(vertex, share)

    def check(self) -> None:
        super().check()
        require_feasible(self.domain, [self._first])

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        if path_length or tau is not None:
            return None
        return 0.5 * self._inverse * self.domain.radius**2 + self._costs


class StronglyConvexOFW(SinglePointLearner):
    r"""Online Frank-Wolfe for strongly convex losses: :math:`T^{2/3}` with one LMO call per round.

    .. math:: F_t(x) = \sum_{s \le t}\Big(\langle g_s, x\rangle + \frac\lambda2\lVert x - x_s\rVert^2\Big),
              \\ v_t = \arg\min_{v \in K}\langle\nabla F_t(x_t), v\rangle, \qquad
              x_{t+1} = x_t + s_t(v_t - x_t)

    with the best :math:`s_t \in [0, 1]` for :math:`F_t`. Static regret :math:`O(T^{2/3})`, anytime; it does not
    follow drift (for that, see `MultiOCG`).
    :math:`\lVert x_t - \arg\min F_t\rVert \le d_t = \sqrt{2 H_t/(\lambda t)}` for any bound :math:`H_t` on the
    gap of :math:`F_t` at :math:`x_t`, and regret is at most
    :math:`\sum_t\lVert g_t\rVert d_t - \lambda d_t^2/2`. `bound` is the smaller of that with the measured
    Frank-Wolfe gaps, and with the :math:`H_t` that follow from a given G before the game
    (`bounds.strongly_convex_frank_wolfe`; proof in `docs/theory/benign.md`); with a declared error of the
    oracle it is the first, with the error in the gaps.

    Parameters
    ----------
    horizon
        Accepted so that all learners share a signature; not used.
    strong_convexity
        :math:`\lambda` of the losses, in [f]/[x]².
    {options}

    References
    ----------
    Wan and Zhang (2021), Projection-free online learning over strongly convex sets, AAAI; Kretzu and
    Garber (2021), Revisiting projection-free online learning: the strongly convex case, AISTATS. Both
    from their abstracts; the constants are ours.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> learner = dw.contrib.StronglyConvexOFW(dw.L1Ball(2), strong_convexity=1.0)
    >>> history = dw.play(learner, [dw.losses.SquaredDistance(np.array([0.9, 0.1]))] * 100)
    >>> learner.decision.round(1), learner.lmo_calls
    (array([0.9, 0.1]), 100)
    """

    _gradients: Annotated[Point, POINT]
    _points: Annotated[Point, POINT]  # x_1 + ... + x_t
    _largest: Size
    _costs: Size  # what regret may be by the gaps so far

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        strong_convexity: float = 1.0,
    ) -> None:
        super().__init__(domain, horizon, lipschitz)
        self.strong_convexity = checks.positive(strong_convexity, "strong_convexity")
        self._gradients, self._points = 0.0 * self._x, 0.0 * self._x
        self._largest = self._costs = 0.0

    def _step(self, gradient: Point, size: float) -> None:
        rounds, bend = self.t + 1, self.strong_convexity
        self._largest = max(self._largest, size)
        self._gradients = self._gradients + gradient
        self._points = self._points + self._x
        slope = self._gradients + bend * (rounds * self._x - self._points)
        vertex, error = self._counted.lmo_with_error(slope)
        away = vertex - self._x
        gap, length = max(0.0, -inner(slope, away)), norm(away)
        most = math.sqrt(2.0 * (gap + error) / bend / rounds)
        self._costs += bounds.curved_distance(size, bend, most)
        fraction = line_search_step(gap, bend * rounds * length * length)
        if fraction > 0.0:
            self._move(vertex, fraction)

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        if path_length or tau is not None:
            return None
        if self.domain.lmo_error:
            return self._costs
        known = self.lipschitz, self.strong_convexity, self.domain.diameter, self.t
        return min(self._costs, bounds.strongly_convex_frank_wolfe(*known))

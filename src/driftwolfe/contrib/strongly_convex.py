"""Online Frank-Wolfe for strongly convex losses."""

from __future__ import annotations

import math
from typing import Annotated

from driftwolfe import bounds
from driftwolfe.domains import Domain
from driftwolfe.learners.single_point import SinglePointLearner
from driftwolfe.points import checks, inner, norm
from driftwolfe.points.kinds import Point
from driftwolfe.points.ops import line_search_step
from driftwolfe.state import POINT, Size


class StronglyConvexOFW(SinglePointLearner):
    r"""Online Frank-Wolfe for strongly convex losses: :math:`T^{2/3}` with one LMO call per round.

    .. math:: F_t(x) = \sum_{s \le t}\Big(\langle g_s, x\rangle + \frac\lambda2\lVert x - x_s\rVert^2\Big),
              \\ v_t = \arg\min_{v \in K}\langle\nabla F_t(x_t), v\rangle, \qquad
              x_{t+1} = x_t + s_t(v_t - x_t)

    with the best :math:`s_t \in [0, 1]` for :math:`F_t`. Static regret :math:`O(T^{2/3})`, anytime; it does not
    follow drift (for that, see `MultiOCG`).

    Parameters
    ----------
    horizon
        Accepted so that all learners share a signature; not used.
    strong_convexity
        :math:`\lambda` of the losses, in [f]/[x]².
    {options}

    Notes
    -----
    :math:`\lVert x_t - \arg\min F_t\rVert \le d_t = \sqrt{2 H_t/(\lambda t)}` for any bound :math:`H_t` on the
    gap of :math:`F_t` at :math:`x_t`, and regret is at most :math:`\sum_t\lVert g_t\rVert d_t - \lambda d_t^2/2`.
    `bound` is the smaller of that with the measured Frank-Wolfe gaps, and with the :math:`H_t` that follow
    from a given G before the game (`bounds.strongly_convex_frank_wolfe`); `docs/theory/benign.md` has the
    proof. With a declared error of the oracle it is the first, with the error in the gaps.

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

    def _step(self, gradient: Point) -> None:
        size, rounds, bend = self._size(gradient), self.t + 1, self.strong_convexity
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

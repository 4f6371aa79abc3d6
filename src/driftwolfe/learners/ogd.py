"""OGD: online gradient descent with exact projections."""

from __future__ import annotations

import math
from typing import Any

from driftwolfe.domains import Domain
from driftwolfe.learners import bounds
from driftwolfe.learners.frank_wolfe import SinglePointLearner
from driftwolfe.learners.options import make_options, require_projection
from driftwolfe.points import norm
from driftwolfe.storage import require


class OGD(SinglePointLearner):
    r"""Online gradient descent: :math:`x_{t+1} = P_K(x_t - \eta_t \nabla f_t(x_t))`.

    :math:`\eta = c/\sqrt T` with a horizon, :math:`\eta_t = c/\sqrt t` without; c = D/G. One gradient
    and one projection a round.

    Parameters
    ----------
    domain
        A set that can project.
    horizon
        Rounds T, or None.
    lipschitz
        G, or ``"auto"``: the largest gradient norm seen so far.
    step_scale
        c, in place of D/G.

    Notes
    -----
    Regret at most :math:`(v_0 D^2 + D P/2)/\eta + \eta T G^2/2` with a horizon (1.125 to 1 times
    :math:`G D\sqrt T` at P = 0), :math:`(D^2/2 + D P)/\eta_T + G^2\sum_t\eta_t/2` without.

    References
    ----------
    Zinkevich (2003), Online convex programming and generalized infinitesimal gradient ascent, ICML.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.OGD(dw.L2Ball(2), horizon=4, lipschitz=1.0)
    >>> learner.update(dw.losses.LinearLoss([1.0, 0.0]))
    0.0
    >>> learner.decision
    array([-1.,  0.])
    """

    STATE = ("_largest", "_steps")

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        step_scale: float | None = None,
    ) -> None:
        super().__init__(domain)
        self.options = make_options(
            domain, horizon=horizon, lipschitz=lipschitz, step_scale=step_scale
        )
        require_projection(domain, "OGD", "BOGDIP")
        self._largest = 0.0
        self._steps = 0.0  # sum of eta_t

    def check_state(self) -> None:
        """As `SinglePointLearner.check_state`; sums of what is positive."""
        super().check_state()
        require(min(self._largest, self._steps) >= 0.0, "steps")

    @property
    def lipschitz(self) -> float:
        """G: the larger of what was given and the largest gradient norm seen."""
        return max(self.options.lipschitz or 0.0, self._largest)

    def update(self, loss: Any) -> float:
        """Play x, take a gradient step, project."""
        value, gradient = self._evaluate(loss)
        largest = max(self._largest, norm(gradient))
        eta = self._eta(max(self.options.lipschitz or 0.0, largest), self.t + 1)
        self._x = self._counted.project(self._x - eta * gradient)
        self._largest, self._steps = largest, self._steps + eta
        self.t += 1
        return value

    def bound(self, path_length: float = 0.0, tau: int | None = None) -> float:
        """Return the bound with the steps used; see `Learner.bound`."""
        path_length, tau = bounds.asked(path_length, tau)
        if tau is not None:
            return super().bound(path_length, tau)
        G, D = self.lipschitz, 2.0 * self.domain.radius
        if G == 0:
            return 0.0
        eta = self._eta(G, max(1, self.t))
        if self.options.horizon and self.options.step_scale is not None:
            return bounds.blocked_descent(G, D, self.t, eta, 1, 0.0, path_length, bounds.AT_CENTER)
        # Steps shrink: 1/eta_T for the distances, and each step's own size for the rest.
        return (0.5 * D**2 + D * path_length) / eta + 0.5 * G**2 * self._steps

    def _eta(self, G: float, t: int) -> float:
        if self.options.step_scale is not None:
            scale = self.options.step_scale
        else:
            scale = 2.0 * self.domain.radius / G if G > 0 else 0.0
        return scale / math.sqrt(self.options.horizon or t)

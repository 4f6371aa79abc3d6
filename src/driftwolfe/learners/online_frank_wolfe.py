"""Online Frank-Wolfe: one linear minimisation a round."""

from __future__ import annotations

import math
from typing import Any

from driftwolfe.domains import Domain
from driftwolfe.domains.saved_points import require_feasible
from driftwolfe.learners import bounds
from driftwolfe.learners.options import make_options
from driftwolfe.learners.single_point import SinglePointLearner
from driftwolfe.points import norm
from driftwolfe.storage.state import require


class OnlineFrankWolfe(SinglePointLearner):
    r"""Online Frank-Wolfe (online conditional gradient), with one linear minimisation a round.

    .. math::

        v_t = \arg\min_{v \in K}\Big\langle x_t - x_1 + \eta\sum_{\tau \le t} g_\tau,\ v\Big\rangle,
        \qquad x_{t+1} = (1 - s) x_t + s v_t

    with :math:`\eta = c\,\tfrac12 (3/T)^{3/4}`, c = D/G, and :math:`s = \min(1, \sqrt{3/T})`; without
    a horizon, t in place of T. This is the tuning of Weibel et al. (2026); that of Hazan and Kale,
    ``variant="classic"``, leaves out the newest gradient and has
    :math:`\eta = c\,\tfrac12 T^{-3/4}`, :math:`s_t = \min(1, 2/\sqrt t)`, with twice the regulariser.

    Parameters
    ----------
    domain
        The set.
    horizon
        Rounds T, or None.
    lipschitz
        G, or ``"auto"``: the largest gradient norm seen so far.
    step_scale
        c, in place of D/G.
    variant
        ``"optimized"`` or ``"classic"``.

    Notes
    -----
    Static regret :math:`O(T^{3/4})`. `bound`, for the optimised variant with a horizon and a given G,
    is :math:`D^2/(8\eta) + G T\sqrt{2H}` with H the largest gap that the step can leave behind, about
    :math:`2.24\, G D T^{3/4}`: derived for this library. It does not follow drift.

    References
    ----------
    Hazan and Kale (2012), Projection-free online learning, ICML; Weibel et al. (2026), Optimized
    projection-free algorithms for online learning, AISTATS (step rule read in its code).

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.OnlineFrankWolfe(dw.L1Ball(2), horizon=100, lipschitz=1.0)
    >>> for _ in range(100):
    ...     suffered = learner.update(dw.losses.LinearLoss([1.0, 0.0]))
    >>> learner.lmo_calls, bool(learner.decision[0] < -0.9)
    (100, True)
    """

    STATE = ("_first", "_gradients", "_largest")

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        step_scale: float | None = None,
        variant: str = "optimized",
    ) -> None:
        super().__init__(domain)
        if variant not in ("optimized", "classic"):
            raise ValueError(f'variant must be "optimized" or "classic", got {variant!r}')
        self.variant = variant
        self.options = make_options(
            domain, horizon=horizon, lipschitz=lipschitz, step_scale=step_scale
        )
        self._first = self._x
        self._gradients = 0.0 * self._x
        self._largest = 0.0

    def check_state(self) -> None:
        """As `SinglePointLearner.check_state`, for the first point too; gradients of that shape."""
        super().check_state()
        require_feasible(self.domain, [self._first])
        require(self._gradients.shape == self._x.shape and self._largest >= 0.0, "gradients")

    @property
    def lipschitz(self) -> float:
        """G: the larger of what was given and the largest gradient norm seen."""
        return max(self.options.lipschitz or 0.0, self._largest)

    def update(self, loss: Any) -> float:
        """Play x, add its gradient, move towards the minimiser of the linearised objective."""
        value, gradient = self._look(loss)
        largest = max(self._largest, norm(gradient))
        gradients = self._gradients + gradient
        optimized = self.variant == "optimized"
        eta, share = self._rates(max(self.options.lipschitz or 0.0, largest), self.t + 1)
        regulariser = (1.0 if optimized else 2.0) * (self._x - self._first)
        vertex = self._counted.lmo(
            regulariser + eta * (gradients if optimized else self._gradients)
        )
        self._move(vertex, share)
        self._gradients, self._largest = gradients, largest
        self.t += 1
        return value

    def bound(self, path_length: float = 0.0, tau: int | None = None) -> float:
        """Return the static bound of the optimised variant; see `Learner.bound`."""
        path_length, tau = bounds.asked(path_length, tau)
        fixed = self.options.horizon and self.options.step_scale is not None
        if path_length or tau is not None or not fixed or self.variant != "optimized":
            return super().bound(path_length, tau)
        G, D = self.lipschitz, 2.0 * self.domain.radius
        eta, share = self._rates(G, 1)
        return bounds.frank_wolfe_tracking(G, D, self.domain.diameter, self.t, eta, share)

    def _rates(self, G: float, t: int) -> tuple[float, float]:
        T = self.options.horizon or t
        scale = self.options.step_scale
        if scale is None:
            scale = 2.0 * self.domain.radius / G if G > 0 else 0.0
        if self.variant == "classic":
            return scale * 0.5 * T**-0.75, min(1.0, 2.0 / math.sqrt(t))
        return scale * 0.5 * (3.0 / T) ** 0.75, min(1.0, math.sqrt(3.0 / T))

"""The online Newton step, for exp-concave losses."""

from __future__ import annotations

from typing import Annotated

from driftwolfe import bounds
from driftwolfe.domains import Domain
from driftwolfe.ensemble.newton import MOST_NUMBERS, NewtonRule, NewtonSums
from driftwolfe.learners.options import require_arrays
from driftwolfe.learners.single_point import SinglePointLearner
from driftwolfe.points import checks
from driftwolfe.points.kinds import Point
from driftwolfe.state import Field


class OnlineNewtonStep(SinglePointLearner):
    r"""Online Newton step: logarithmic regret for exp-concave losses, such as `PortfolioLoss`.

    .. math:: x_{t+1} = \arg\min_{x \in K}\ \frac\epsilon2\lVert x - c\rVert^2 + \sum_{s \le t}
              \Big(\rho\,\langle g_s, x - x_s\rangle + \tfrac12\langle g_s, x - x_s\rangle^2\Big)

    with :math:`g_s` the gradients at :math:`x_s` along the affine hull of K, and c the centre. For n numbers,
    :math:`O(n^2)` memory and, per round, one gradient and :math:`O(n^3)` operations; the minimum is found by
    projected steps, or, where projections are not cheap, by LMO calls. For :math:`\alpha`-exp-concave losses, a
    given G and at least the default rate, static regret is at most

    .. math:: \frac{\epsilon R^2}{2\rho} + \rho\,\ln\det\Big(I + \frac1\epsilon\sum_t g_t g_t^\top\Big)
              \le \rho\Big(\frac12 + n\ln\big(1 + \tfrac{T}{4n}\big)\Big),

    the last with the default ridge; `bound` adds what the inexact minima may cost.

    Parameters
    ----------
    domain, horizon
        A set of arrays of at most 5,000 numbers; the horizon is not used.
    alpha
        The exp-concavity of the losses (:math:`e^{-\alpha f}` is concave), over units of the loss; 1 for
        `PortfolioLoss`. None: not known, :math:`\rho = 2\,G\,diam`, and no bound.
    rate
        :math:`\rho`, in units of the loss; :math:`2\max(1/\alpha, G\,diam)` if not given. A negative one goes
        against the gradients: ``rate=-0.75, ridge=1.0`` are the constants of Agarwal et al. for portfolios
        (docs/theory/exp_concave.md). They bet on assets that fell; no bound holds.
    ridge
        :math:`\epsilon`, in squared units of the loss over a length; :math:`(\rho/R)^2` if not given.
    {options}

    References
    ----------
    Hazan, Agarwal and Kale (2007), Logarithmic regret algorithms for online convex optimization, Machine
    Learning ("follow the approximate leader"); Agarwal, Hazan, Kale and Schapire (2006), Algorithms for
    portfolio management based on the Newton method, ICML.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.contrib.OnlineNewtonStep(dw.Simplex(2), lipschitz=1.0, alpha=1.0)
    >>> history = dw.play(learner, [dw.losses.PortfolioLoss([1.1, 1.0])] * 200)
    >>> learner.decision.round(2)
    array([1., 0.])
    """

    _sums: Annotated[NewtonSums, Field(NewtonSums)]

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        alpha: float | None = None,
        rate: float | None = None,
        ridge: float | None = None,
    ) -> None:
        super().__init__(domain, horizon, lipschitz)
        require_arrays(domain, "OnlineNewtonStep", "POLAR", MOST_NUMBERS)
        if rate is not None and (rate := float(checks.finite_array(rate, "rate", ()))) == 0.0:
            raise ValueError("rate must not be 0: gradients would not matter")
        alpha = None if alpha is None else checks.positive(alpha, "alpha")
        ridge = None if ridge is None else checks.positive(ridge, "ridge")
        self._rule = NewtonRule(self._counted, self.options.lipschitz, alpha, rate, ridge)
        self._sums = NewtonSums.of(self._x.size)

    def _step(self, gradient: Point) -> None:
        self._x, self._sums = self._rule.step(self._x, gradient, self._sums)

    @property
    def lipschitz(self) -> float:
        """G: the larger of what was given and the largest gradient seen, along the affine hull."""
        return max(self.options.lipschitz or 0.0, self._sums.largest / self.domain.radius)

    def check(self) -> None:
        super().check()
        self._sums.check(self._x.size)

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        G, alpha, given = self.options.lipschitz, self._rule.alpha, self._rule.rate
        if path_length or tau is not None or alpha is None:
            return None
        if given is None and (G is None or self.lipschitz > G):
            return None  # the rate has changed
        needed = 2.0 * max(1.0 / alpha, self.lipschitz * self.domain.diameter)
        rate = needed if given is None else given
        if rate < needed:
            return None  # the models are no lower bounds
        _, ridge = self._rule.constants(self._sums.largest)
        return bounds.newton_steps(rate, ridge, self._sums.squares, self._sums.slack)

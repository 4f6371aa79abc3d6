"""Newton steps for exp-concave losses: one learner, and one that starts anew in every round."""

from __future__ import annotations

from typing import Annotated, Any

from driftwolfe import bounds
from driftwolfe.domains import Domain
from driftwolfe.ensemble.newton import MOST_NUMBERS, NewtonExperts, NewtonRule, NewtonSums
from driftwolfe.ensemble.sleeping_weights import SpecialistWeights
from driftwolfe.learners.base import Learner, as_loss, largest_gradient
from driftwolfe.learners.options import Options, make_options, require_arrays
from driftwolfe.learners.single_point import SinglePointLearner
from driftwolfe.points import checks
from driftwolfe.points.kinds import Point
from driftwolfe.state import Field
from driftwolfe.storage import require


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
        against the gradients, and no bound holds: ``rate=-0.75, ridge=1.0`` are the constants of Agarwal et al.
        for portfolios, which bet on assets that fell (`docs/theory/exp_concave.md`).
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

    def _step(self, gradient: Point, size: float) -> None:
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


class AFLH(Learner):
    r"""A Newton step learner that starts in every round, and natural weights: for exp-concave losses.

    The one that starts in round t plays until round :math:`t + 2^k - 1`, :math:`2^k` the largest power of two
    that divides t: at most :math:`\lfloor\log_2 t\rfloor + 1` are awake. They are weighted as specialists,

    .. math:: w_i \leftarrow w_i\, e^{-\alpha(f_t(x^i_t) - m_t)}, \qquad
              m_t = -\tfrac1\alpha\ln\sum_j \frac{w_j}{\sum w} e^{-\alpha f_t(x^j_t)}

    over those awake, from :math:`w_i = 1/(i(i + 1))`, i the round in which it starts. Each awake `OnlineNewtonStep`
    has one gradient and :math:`O(n^3)` operations per round. For a given G regret on tau rounds is at most

    .. math:: \lceil\log_2(\tau + 1)\rceil\Big(\frac{\ln(T(T + 1))}{\alpha}
              + \rho\big(\tfrac12 + n\ln(1 + \tfrac{\tau}{4n})\big)\Big), \qquad
              \rho = 2\max(1/\alpha, G\,diam)

    and what inexact minima may cost: logarithmic, where methods for convex losses have the root of tau.

    Parameters
    ----------
    domain, horizon
        A set of arrays of at most 5,000 numbers; the horizon is not used.
    alpha
        The exp-concavity of the losses (:math:`e^{-\alpha f}` is concave), over units of the loss: 1 for
        `PortfolioLoss`, :math:`\lambda/G^2` for :math:`\lambda`-strongly convex losses.
    {options}

    References
    ----------
    Hazan and Seshadhri (2009), Efficient learning algorithms for changing environments, ICML, reconstructed:
    with longer lifetimes there, and weights 1/t; Freund, Schapire, Singer and Warmuth (1997), Using and
    combining predictors that specialize, STOC; Zhang, Liu and Zhou (2019), ICML, for the lifetimes.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.contrib.AFLH(dw.Simplex(2), lipschitz=1.0, alpha=1.0)
    >>> rise, fall = dw.losses.PortfolioLoss([2.0, 1.0]), dw.losses.PortfolioLoss([1.0, 2.0])
    >>> history = dw.play(learner, [rise] * 150 + [fall] * 150)
    >>> bool(learner.decision[1] > 0.8), len(learner.expert_names)
    (True, 5)
    """

    _experts: NewtonExperts
    _meta: SpecialistWeights
    options: Options

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        alpha: float = 1.0,
    ) -> None:
        super().__init__(domain)
        self.options = make_options(domain, horizon, lipschitz)
        require_arrays(domain, "AFLH", "POLAR", MOST_NUMBERS)
        self.alpha = checks.positive(alpha, "alpha")
        self._experts = NewtonExperts(NewtonRule(self._counted, self.options.lipschitz, self.alpha))
        self._meta = SpecialistWeights(self.alpha)

    def update(self, loss: Any, ticket: Any = None) -> float:
        """Play the mean of those awake; weigh them; let each learn; retire some and wake one."""
        f = as_loss(loss)
        evaluation = self._experts.evaluate(f, self._meta.weights, linear=False)
        self._experts.step(f, evaluation.slopes)
        self._experts.keep(self._meta.update(evaluation.losses))
        self.t += 1
        return evaluation.value

    @property
    def decision(self) -> Point:
        return self._experts.mean(self._meta.weights)

    @property
    def expert_names(self) -> list[str]:
        """The rounds in which they started."""
        return [f"since {start:,}" for start in self._meta.births]

    lipschitz = property(largest_gradient)

    def check(self) -> None:
        super().check()
        require(self._experts.size == self._meta.births.size, "experts and weights")
        require(self._meta.births[-1] == self.t + 1, "experts and rounds")

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        G, n = self.options.lipschitz, self.domain.origin().size
        if path_length or G is None or self.lipschitz > G * (1.0 + 1e-9):
            return None
        rounds = self.t if tau is None else min(tau, self.t)
        rate = 2.0 * max(1.0 / self.alpha, G * self.domain.diameter)
        return bounds.newton_on_intervals(self.alpha, rate, n, rounds, self.t, self._experts.slack)

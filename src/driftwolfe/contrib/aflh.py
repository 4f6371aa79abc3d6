"""AFLH: Newton steps that start in every round, for exp-concave losses whose best point changes."""

from __future__ import annotations

from typing import Any

from driftwolfe import bounds
from driftwolfe.domains import Domain
from driftwolfe.ensemble.newton import MOST_NUMBERS, NewtonExperts, NewtonRule
from driftwolfe.ensemble.sleeping_weights import SpecialistWeights
from driftwolfe.learners.base import Learner, as_loss, largest_gradient
from driftwolfe.learners.options import Options, make_options, require_arrays
from driftwolfe.points import checks
from driftwolfe.points.kinds import Point
from driftwolfe.storage import require


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
        """The weighted mean of the experts that are awake."""
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

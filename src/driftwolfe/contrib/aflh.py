"""AFLH: exp-concave losses whose best point changes."""

from __future__ import annotations

import copy
import math
from typing import Annotated, Any

import numpy as np

from driftwolfe.contrib.newton import OnlineNewtonStep
from driftwolfe.domains import Domain
from driftwolfe.ensemble.experts import combine, require_finite, stack, weighted_sum
from driftwolfe.learners.base import Learner, as_loss
from driftwolfe.learners.options import Options, make_options
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Indices, Point
from driftwolfe.state import Field, Size, check_fields, declared
from driftwolfe.storage import require

#: The state of an expert, beside its set.
_PARTS = {n: f for n, f in declared(OnlineNewtonStep).items() if isinstance(f, Field)}
del _PARTS["_tickets"]


class AFLH(Learner):
    r"""A Newton step learner that starts in every round, and natural weights: for exp-concave losses.

    The one that starts in round t plays until round :math:`t + 2^k - 1`, :math:`2^k` the largest power of two
    that divides t: at most :math:`\lfloor\log_2 t\rfloor + 1` are awake. They are weighted as specialists,

    .. math:: w_i \leftarrow w_i\, e^{-\alpha(f_t(x^i_t) - m_t)}, \qquad
              m_t = -\tfrac1\alpha\ln\sum_j \frac{w_j}{\sum w} e^{-\alpha f_t(x^j_t)}

    over those awake, from :math:`w_i = 1/(i(i + 1))`, i the round in which it starts. Each awake `OnlineNewtonStep`
    has one gradient and :math:`O(n^3)` operations per round.

    Parameters
    ----------
    domain, horizon
        A set of arrays of at most 5,000 numbers; the horizon is not used.
    alpha
        The exp-concavity of the losses (:math:`e^{-\alpha f}` is concave), over units of the loss: 1 for
        `PortfolioLoss`, :math:`\lambda/G^2` for :math:`\lambda`-strongly convex losses.
    {options}

    Notes
    -----
    An interval of tau rounds is covered by at most :math:`\lceil\log_2(\tau + 1)\rceil` experts in turn, each
    of which started at its first round. So for a given G regret on it is at most

    .. math:: \lceil\log_2(\tau + 1)\rceil\Big(\frac{\ln(T(T + 1))}{\alpha}
              + \rho\big(\tfrac12 + n\ln(1 + \tfrac{\tau}{4n})\big)\Big), \qquad
              \rho = 2\max(1/\alpha, G\,diam)

    and what inexact minima may cost. So it is logarithmic on every interval, where methods for convex losses
    have the root of tau; for few rounds and many numbers n that is the smaller one.

    Reconstructed: the original (Hazan and Seshadhri) has lifetimes up to four times as long, and gives new
    experts the weight 1/t. That of PyNOL has gradient descent for experts and is for convex losses.

    References
    ----------
    Hazan and Seshadhri (2009), Efficient learning algorithms for changing environments, ICML; Freund,
    Schapire, Singer and Warmuth (1997), Using and combining predictors that specialize, STOC; the lifetimes
    are those of Zhang, Liu and Zhou (2019), ICML.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.contrib.AFLH(dw.Simplex(2), lipschitz=1.0, alpha=1.0)
    >>> for t in range(300):
    ...     price = [2.0, 1.0] if t < 150 else [1.0, 2.0]
    ...     suffered = learner.update(dw.losses.PortfolioLoss(price))
    >>> bool(learner.decision[1] > 0.8), len(learner.expert_names)
    (True, 5)
    """

    _held: Annotated[list[list[Any]], Field(list, ("experts",), items=Field(list, (len(_PARTS),)))]
    _log_weights: Annotated[Array, Field(np.float64, ("experts",), most=1e-6)]
    _births: Annotated[Indices, Field(np.int64, ("experts",), 1)]  # first round of each
    _slack: Size  # the most that inexact minima may have cost an expert
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
        self.alpha = checks.positive(alpha, "alpha")
        self.experts: list[OnlineNewtonStep] = []
        self._log_weights, self._births = np.empty(0), np.empty(0, dtype=np.int64)
        self._slack = 0.0
        given = "auto" if self.options.lipschitz is None else self.options.lipschitz
        self._first = OnlineNewtonStep(domain, None, given, alpha=self.alpha)  # as all start
        self._wake()

    def update(self, loss: Any, ticket: Any = None) -> float:
        """Play the mean of those awake; weigh them; let each learn; retire some and wake one."""
        f = as_loss(loss)
        scores = stack([f.scores(each._x) for each in self.experts])
        value = float(f.value_at(combine(self.expert_weights, scores)))
        pairs = [f.value_and_slope_at(each) for each in scores]
        losses = np.array([float(each) for each, _ in pairs])
        require_finite(value, losses, *(slope for _, slope in pairs))
        gains = self._log_weights - self.alpha * (losses - losses.min())
        mixed = _log_sum(gains) - _log_sum(self._log_weights)
        experts = [self._copied(each) for each in self.experts]  # one may refuse the loss
        for each, (_, slope) in zip(experts, pairs, strict=True):
            each._step(f.pull_back(slope, each._x))
            each.t += 1
        self.t += 1
        stay = self._births + (self._births & -self._births) > self.t + 1
        self._slack = max([self._slack, *(_slack_of(each) for each in experts)])
        self.experts = [each for each, keep in zip(experts, stay, strict=True) if keep]
        self._log_weights, self._births = (gains - mixed)[stay], self._births[stay]
        self._wake()
        return value

    def _wake(self) -> None:
        """Start the expert of the coming round."""
        start = self.t + 1
        self.experts = [*self.experts, self._new()]
        self._births = np.append(self._births, start)
        self._log_weights = np.append(self._log_weights, -math.log(start) - math.log(start + 1))

    def _new(self) -> OnlineNewtonStep:
        expert, parts = self._copied(self._first), vars(self._first).items()
        vars(expert).update((k, v.copy()) for k, v in parts if isinstance(v, np.ndarray))
        expert._counted = self._counted  # calls are counted here
        return expert

    def _copied(self, expert: OnlineNewtonStep) -> OnlineNewtonStep:
        """A copy that shares what an update replaces, and the counts."""
        return copy.copy(expert)

    @property
    def decision(self) -> Point:
        """The weighted mean of the experts that are awake."""
        return weighted_sum(self.expert_weights, [each.decision for each in self.experts])

    @property
    def expert_weights(self) -> Array:
        """The weights of those awake in the coming round."""
        weights = np.exp(self._log_weights - self._log_weights.max())
        return weights / weights.sum()

    @property
    def expert_names(self) -> list[str]:
        """The rounds in which they started."""
        return [f"since {start:,}" for start in self._births]

    @property
    def lipschitz(self) -> float:
        """G: the larger of what was given and the largest gradient that those awake have seen."""
        return max(each.lipschitz for each in self.experts)

    @property  # type: ignore[no-redef]
    def _held(self) -> list[list[Any]]:
        """The experts as plain data for a file."""
        return [[getattr(each, name) for name in _PARTS] for each in self.experts]

    @_held.setter
    def _held(self, written: list[list[Any]]) -> None:
        experts = []
        for parts in written:
            expert, state = self._new(), dict(zip(_PARTS, parts, strict=True))
            check_fields(_PARTS, state, "AFLH", **expert.own_sizes())
            vars(expert).update(state)
            expert.check()
            experts.append(expert)
        self.experts = experts

    def check(self) -> None:
        super().check()
        now, births = self.t + 1, self._births
        levels = [1 << k for k in range(now.bit_length() - 1, -1, -1)]
        awake = [now // size * size for size in levels if now // size % 2]
        require(births.tolist() == awake, "experts and rounds")
        require([each.t for each in self.experts] == (now - births).tolist(), "experts and rounds")

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        G = self.options.lipschitz
        if path_length or G is None or self.lipschitz > G * (1.0 + 1e-9):
            return None
        rounds = self.t if tau is None else min(tau, self.t)
        if not rounds:
            return 0.0
        n, pieces = self.domain.origin().size, math.ceil(math.log2(rounds + 1))
        rate = 2.0 * max(1.0 / self.alpha, G * self.domain.diameter)
        newton = rate * (0.5 + n * math.log1p(rounds / (4.0 * n))) + self._slack
        return pieces * (math.log(self.t * (self.t + 1.0)) / self.alpha + newton)


def _log_sum(logs: Array) -> float:
    largest = float(logs.max())
    return largest + math.log(np.exp(logs - largest).sum())


def _slack_of(expert: OnlineNewtonStep) -> float:
    """What its inexact minima may have cost, in units of the loss."""
    return math.ldexp(expert._slack, expert._exponent)

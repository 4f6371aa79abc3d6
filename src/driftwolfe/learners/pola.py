"""POLA: projection-free online learning with adaptive regret."""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack

from driftwolfe import bounds
from driftwolfe.domains import Domain
from driftwolfe.ensemble import AdaNormalHedge
from driftwolfe.ensemble.plan import Plan, budgeted_step, cover_part
from driftwolfe.learners.base import as_loss
from driftwolfe.learners.ensembles import CoverLearner
from driftwolfe.learners.options import Options, WeightOptions, make_options
from driftwolfe.oracles import Oracle


class POLA(CoverLearner):
    r"""Projection-free learning with small regret on every interval of time; nothing to tune.

    POLA plays the weighted mean of experts that live for intervals of time. In round t an expert starts
    for every k with :math:`2^k \mid t` and plays for :math:`2^k` rounds, so that on every interval some
    expert is about as old as the interval is long:

    .. math:: x_t = \sum_i w_t^i x_t^i \quad\text{over the } \lfloor\log_2 t\rfloor + 1 \text{ experts awake}

    The expert of L rounds is a `BOGDIP`: it sums gradients over a block of :math:`\lfloor\sqrt L\rfloor` rounds,
    takes a step :math:`y - c L^{-3/4} \sum g` with c = D/G, and projects infeasibly, by linear minimisations (LMO
    calls), with tolerance :math:`\epsilon = D^2 L^{-1/2}`. `AdaNormalHedge` weighs experts by how much less than
    POLA each has lost. O(log t) gradients (one with linear feedback) and on average O(log t) LMO calls per
    round, or as few as the budget of its `Oracle` says. On every interval of length tau regret is at most

    .. math:: 1.745\, a\, G D \tau^{3/4} + 3.415\, B \sqrt{3 c(T) \tau}, \quad
              a = \sqrt3 + \tfrac12 + v_0, \quad c(T) = O(\log T)

    and against comparators of path length P inside the interval :math:`O(\tau^{3/4}(1 + P/D)^{1/4})`, up to a
    logarithm, for the whole game too; ``bound(path_length=..., tau=...)`` has all constants. D is twice the
    radius of the set, G bounds gradient norms, B the range of losses over the set in one round, and
    :math:`v_0 = 1/2`. Where B is learned, weights cost B more on each interval of the cover;
    `docs/theory/budget.md` has the terms with a budget.

    Parameters
    ----------
    horizon
        Accepted so that all learners share a signature; not used.
    {options}

    References
    ----------
    Wang et al. (2024), Non-stationary projection-free online learning with dynamic and adaptive regret
    guarantees, AAAI, Algorithm 3, Theorems 3 and 4; `docs/theory/errata.md` lists what is different here.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.POLA(dw.L1Ball(2), lipschitz=1.0)
    >>> for t in range(200):
    ...     suffered = learner.update(dw.losses.LinearLoss([1.0 if t < 100 else -1.0, 0.0]))
    >>> learner.decision.round(2)
    array([1., 0.])
    """

    def update(self, loss: Any, ticket: Any = None) -> float:
        """Play the mean of the experts awake; weigh them by their losses; step; wake and retire."""
        f = as_loss(loss)
        evaluation = self._experts.evaluate(f, self._weights, self.options.linear)
        start = self._restart_point()
        self._meta.update(evaluation.played, evaluation.losses)
        self._experts.step(f, evaluation.slopes, evaluation.shared)
        self.t += 1
        self._turn_over(start)
        return evaluation.value

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        start: str = "current",
        oracle: Oracle | str = "auto",
        **options: Unpack[WeightOptions],
    ) -> None:
        checked = make_options(domain, horizon, lipschitz, oracle=oracle, **options)
        meta = AdaNormalHedge(checked.loss_scale)
        super().__init__(domain, checked, partial(_plan, checked), meta, start)


def _plan(options: Options, length: int) -> Plan:
    """BOGD_IP for an interval of that length, with its part of the budget."""
    part = (options.oracle.budget or 0.0) * cover_part(length)
    h = float(length) ** -0.75
    if options.planned:
        h = budgeted_step(length, bounds.ANYWHERE, part, options.delay_factor)
    return options.plan(h, part, length)

"""Sword: regret that shrinks where gradients are small or hardly change."""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Any, Unpack

import numpy as np

from driftwolfe import bounds
from driftwolfe.domains import Domain
from driftwolfe.ensemble import OptimisticHedge
from driftwolfe.ensemble.ball import OptimisticDescent, OwnOptimisticDescent
from driftwolfe.ensemble.plan import Plan
from driftwolfe.learners.base import as_loss
from driftwolfe.learners.ensembles import PAST, GridLearner, anytime
from driftwolfe.learners.options import Options, StepOptions, projecting_options
from driftwolfe.oracles import Oracle
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Point


class Sword(GridLearner):
    r"""Optimistic gradient descent with many step sizes, and optimistic weights: one gradient per round, or more.

    .. math:: \hat x^i \leftarrow P_K(\hat x^i - \eta_i g_t), \qquad
              x^i_{t+1} = P_K(\hat x^i - \eta_i m_{t+1}), \qquad g_t = \nabla f_t(x_t)

    All expect the fraction :math:`\kappa_t \in [0, 1]` of the last gradient again, :math:`m_{t+1} = \kappa_t g_t`,
    which is best so far by least squares, and so do the weights (`OptimisticHedge`). Steps are
    :math:`\eta_i = c\, 2^{i-1}/(4\sqrt T)` up to c = D/G. With :math:`q_t = \lVert g_t - m_t\rVert`,
    :math:`A = \sum_t q_t^2 \ge G^2`, regret against comparators of path length :math:`P \le A D/G^2` is at most

    .. math:: 1.07\sqrt{(D^2/4 + D P)\,A} + D\sqrt{A \ln N} + 2 D\max_t q_t

    Parameters
    ----------
    oracle
        ``"exact"``: the set projects, twice per expert and round, as published. Other methods: experts live on
        the ball around the set, their mean is projected, and A is that of surrogate gradients.
    gradients
        ``"one"``, at the decision, for all; ``"own"``, with arrays and exact projections: each expert follows those
        at its own points, N more per round, which say more where losses have kinks.
    smoothness
        :math:`\beta` of the losses: then :math:`\kappa = 1`, experts are charged :math:`2\beta` times their squared
        moves, as published, and regret is small where gradients change little as functions.
    {options}

    References
    ----------
    Zhao, Zhang, Zhang and Zhou (2024), Adaptivity and non-stationarity: problem-dependent dynamic regret
    for online convex optimization, JMLR (Sword++; appendix not read, constants are ours: `docs/theory/benign.md`).

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner, loss = dw.contrib.Sword(dw.L2Ball(2), 1000, 1.5), dw.losses.SquaredDistance([0.5, 0.0])
    >>> history = dw.play(learner, [loss] * 1000)
    >>> bool(history.losses.sum() < learner.bound() < 0.1 * dw.Ader(dw.L2Ball(2), 1000, 1.5).bound() + 9)
    True
    """

    _past: Annotated[list[Array], PAST]

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        gradients: str = "one",
        smoothness: float | None = None,
        oracle: Oracle | str = "exact",
        **options: Unpack[StepOptions],
    ) -> None:
        checks.one_of(gradients, "gradients", ("one", "own"))
        given: dict[str, Any] = {"oracle": oracle, "loss_scale": "auto", **options}
        checked = projecting_options("Sword", "POLAR", domain, horizon, lipschitz, **given)
        self._past, exact = [], checked.oracle.method == "exact"
        if gradients == "own" and not (exact and isinstance(domain.origin(), np.ndarray)):
            raise ValueError('gradients="own" needs points that are arrays, and oracle="exact"')
        beta = 0.0 if smoothness is None else checks.positive(smoothness, "smoothness")
        kind = OwnOptimisticDescent if gradients == "own" else OptimisticDescent
        experts = partial(kind, checked.oracle, checked.step_scale, 2.0 * beta, exact)
        start = bounds.SLOW_WEIGHTS * beta * checked.D**2
        weights = partial(anytime, OptimisticHedge, start=start)
        super().__init__(domain, checked, partial(_plans, checked), experts, weights)

    def update(self, loss: Any, ticket: Any = None) -> float:
        """Play the mean of the experts; weigh them; let all expect this gradient again."""
        f, weights = as_loss(loss), self._meta.weights
        evaluation = self._experts.evaluate(f, weights)
        self._meta.update(evaluation.losses)
        self._experts.charge(weights, evaluation.slopes)
        self._experts.step(f, evaluation.slopes, evaluation.shared)
        self._meta.expect(self._experts.hints())
        self._next_round()
        self._experts.settle(self._meta.weights)
        return evaluation.value

    def _restart_point(self) -> Point:
        return self._experts.x

    def _epoch_costs(self) -> Array:
        experts, rounds, D = self._experts, self.t - self._epoch_start, self.options.D
        if experts.scale == 0.0:
            return np.zeros((2, experts.size))
        shrinking, lengths = self.options.step_scale is None, D / (experts.scale * experts.steps)
        start = bounds.ANYWHERE if self._epoch_start or shrinking else bounds.AT_CENTER
        apart = max(math.sqrt(experts.tolerance), experts.largest_distance)
        fixed = self._meta.regret_bound() + self.lipschitz * rounds * apart
        own = start * D * lengths + experts.costs + fixed
        return np.stack((own, (1.0 if shrinking else 0.5) * lengths))


def _plans(options: Options, horizon: int) -> list[Plan]:
    """Steps from D/(4 G sqrt(T)), best where gradients alternate, doubling up to D/G."""
    number = math.ceil(math.log2(4.0 * math.sqrt(horizon)) - 1e-9) + 1
    return [options.ball_plan(2.0**-i, horizon) for i in reversed(range(number))]

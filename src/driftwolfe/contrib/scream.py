"""Scream: dynamic regret where moving the decision has a cost."""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Any, Unpack

import numpy as np

from driftwolfe.bounds import ANYWHERE, AT_CENTER
from driftwolfe.bounds.ensembles import expert_regret
from driftwolfe.domains import Domain
from driftwolfe.ensemble import OptimisticHedge
from driftwolfe.ensemble.plan import Plan
from driftwolfe.ensemble.weights import Totals
from driftwolfe.learners.base import Epoch, as_loss
from driftwolfe.learners.ensembles import PAST, GridLearner, anytime
from driftwolfe.learners.options import Options, StepOptions, projecting_options, require_arrays
from driftwolfe.points import checks, norm
from driftwolfe.points.devices import to_host
from driftwolfe.points.kinds import Array, Point
from driftwolfe.state import Field, Size


class Scream(GridLearner):
    r"""Ader for losses with a switching cost: every unit that the decision moves costs :math:`\lambda`.

    .. math:: x^i_{t+1} = P_K(x^i_t - \eta_i g_t), \qquad
              \ell_t^i = \langle g_t, x^i_t\rangle + \lambda\lVert x^i_t - x^i_{t-1}\rVert, \qquad
              g_t = \nabla f_t(x_t)

    `OptimisticHedge`, without hints, weighs the experts by :math:`\ell_t^i`. The N = O(log T) steps are
    :math:`\eta_i = c\,2^{i-1}/\sqrt{(4 + 8\lambda/G) T}`, c = D/G. Against comparators of path length P,

    .. math:: \sum_t f_t(x_t) + \lambda\lVert x_t - x_{t-1}\rVert - f_t(u_t) \le \\
              \min_i \frac{D^2/8 + DP/2}{\eta_i} + \frac{\eta_i T G^2}{2} + \lambda(M_i - \bar M + M) + 2 a\ln N

    with M (`moved`), :math:`M_i` and :math:`\bar M` how far the decision, expert i and, on average, the experts
    have moved, and a the inverse rate of the weights, as measured (proof: `docs/theory/benign.md`). In advance,
    :math:`M_i \le \eta_i T G` and :math:`2 a\ln N = O(\sqrt T)`.

    Parameters
    ----------
    domain, switching
        A set of arrays that can project; :math:`\lambda`, in [f]/[x]: a multiple of G is a cost that matters.
    {options}

    References
    ----------
    Zhao, Wang and Zhou (2022), Non-stationary online learning with memory and non-stochastic control,
    AISTATS (its abstract, and ``Scream`` in PyNOL).

    Examples
    --------
    >>> import driftwolfe as dw
    >>> signs = [dw.losses.LinearLoss([1.0 if t % 2 else -1.0, 0.0]) for t in range(200)]
    >>> quiet, free = (dw.contrib.Scream(dw.L2Ball(2), 200, 1.0, switching=s) for s in (10.0, 0.01))
    >>> _ = [dw.play(each, signs) for each in (quiet, free)]
    >>> bool(quiet.moved < 0.5 * free.moved)
    True
    """

    moved: Size
    _moves: Totals  # of the last step
    _excess: Annotated[Array, Field(np.float64, ("experts",))]  # M_i less their mean
    _past: Annotated[list[Array], PAST]

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        switching: float = 1.0,
        **options: Unpack[StepOptions],
    ) -> None:
        self.switching, self.moved, self._past = checks.positive(switching, "switching"), 0.0, []
        own: dict[str, Any] = {"oracle": "exact", "feedback": "linear", "loss_scale": "auto"}
        checked = projecting_options("Scream", "POLD", domain, horizon, lipschitz, **own, **options)
        require_arrays(domain, "Scream", "Ader")
        parts = partial(_plans, checked, self.switching), None, partial(anytime, OptimisticHedge)
        super().__init__(domain, checked, *parts)

    def update(self, loss: Any, ticket: Any = None) -> float:
        """Play the mean of the experts; weigh them by their losses and moves; let each step."""
        f, weights, experts = as_loss(loss), self._meta.weights, self._experts
        evaluation = experts.evaluate(f, weights, True)
        before, mean = np.array(to_host(experts.x)), experts.mean(weights)
        self._meta.update(evaluation.losses + self.switching * self._moves)
        self._excess = self._excess + self._moves - float(weights @ self._moves)
        experts.step(f, evaluation.slopes, evaluation.shared)
        self._moves = np.sqrt(((to_host(experts.x) - before) ** 2).reshape(experts.size, -1).sum(1))
        self._next_round()
        self.moved += norm(self._experts.mean(self._meta.weights) - mean)
        self._experts.settle(self._meta.weights)
        return evaluation.value

    def _begin(self, epoch: Epoch, start: Point) -> None:
        super()._begin(epoch, start)
        self._moves, self._excess = np.zeros((2, self._experts.size))

    def _epoch_costs(self) -> Array:
        plans, known = self._plans(self._epoch_length), self.options.measured(self._experts)
        rounds, start = self.t - self._epoch_start, ANYWHERE if self._epoch_start else AT_CENTER
        both = [[expert_regret(p, known, rounds, u, start) for p in plans] for u in (0.0, known.D)]
        own, more = np.array(both)
        fixed = self._meta.regret_bound() + self.switching * self._excess
        return np.stack((own + fixed, (more - own) / known.D))

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        found = super()._bound(path_length, tau)
        return None if found is None else found + self.switching * self.moved


def _plans(options: Options, switching: float, horizon: int) -> list[Plan]:
    """Steps from the best one for P = 0, doubling up to that for P = T D."""
    first = 0.125 / ((0.5 + switching / (options.lipschitz or switching)) * horizon)
    number = math.ceil(0.5 * math.log2(1.0 + 4.0 * horizon)) + 1
    return [Plan(2.0**i * math.sqrt(first), 1, 0.0) for i in range(number)]

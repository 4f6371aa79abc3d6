"""Scream: dynamic regret where moving the decision has a cost."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Unpack

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.ensemble import Hedge
from driftwolfe.ensemble.plan import Plan
from driftwolfe.learners.base import Epoch, as_loss
from driftwolfe.learners.options import Options, StepOptions, make_options, require_projection
from driftwolfe.learners.pold import GridLearner
from driftwolfe.points import checks, norm
from driftwolfe.points.kinds import Array, Point
from driftwolfe.storage import require


class Scream(GridLearner):
    r"""Ader for losses with a switching cost: every unit that the decision moves costs :math:`\lambda`.

    .. math:: x^i_{t+1} = P_K(x^i_t - \eta_i g_t), \qquad
              \ell_t^i = \langle g_t, x^i_t\rangle + \lambda\lVert x^i_t - x^i_{t-1}\rVert, \qquad
              g_t = \nabla f_t(x_t)

    Hedge weighs the experts by :math:`\ell_t^i`: those that move pay for it, so that the mean moves little.
    One gradient and N = O(log T) projections per round. Against comparators of path length P, the total

    .. math:: \sum_t f_t(x_t) + \lambda\lVert x_t - x_{t-1}\rVert - f_t(u_t)

    is at most :math:`\min_i (D^2/8 + DP/2)/\eta_i + \eta_i T(G^2/2 + \lambda G) + \tilde B\sqrt{T/8}\,(1 +
    2\ln(i + 1))`, :math:`O(\sqrt{T(1 + P)})`, where :math:`\tilde B^2 = B^2 + 2\lambda B\,diam` and
    :math:`B = G\,diam + \lambda\min(diam, \eta_N G)`. `bound` evaluates this, which is on the losses alone too.

    Parameters
    ----------
    domain
        A set that can project.
    switching
        :math:`\lambda`, in [f]/[x]: a multiple of G is a price that matters.
    {options}

    Notes
    -----
    `moved` has the sum of the :math:`\lVert x_t - x_{t-1}\rVert` so far. If `lipschitz` is learned, so is the
    range of the losses, and there is no bound. Constants are derived here (`docs/theory/benign.md`).

    References
    ----------
    Zhao, Wang and Zhou (2022), Non-stationary online learning with memory and non-stochastic control,
    AISTATS (its abstract, and ``Scream`` in PyNOL).

    Examples
    --------
    >>> import driftwolfe as dw
    >>> signs = [dw.losses.LinearLoss([1.0 if t % 2 else -1.0, 0.0]) for t in range(200)]
    >>> quiet, free = (dw.Scream(dw.L2Ball(2), 200, 1.0, switching=s) for s in (10.0, 0.01))
    >>> _ = [dw.play(each, signs) for each in (quiet, free)]
    >>> bool(quiet.moved < 0.5 * free.moved)
    True
    """

    STATE = ("moved", "_moves")

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        switching: float = 1.0,
        **options: Unpack[StepOptions],
    ) -> None:
        self.switching = checks.positive(switching, "switching")
        own: dict[str, Any] = {"method": "exact", "feedback": "linear", "loss_scale": "auto"}
        checked = make_options(domain, horizon, lipschitz, **own, **options)
        require_projection(domain, "Scream", "POLD")
        self.moved = 0.0
        plans = partial(_plans, checked, self.switching)
        weights = partial(_weights, checked, self.switching, domain.diameter, plans)
        super().__init__(domain, checked, plans, weights=weights)

    def update(self, loss: Any, ticket: Any = None) -> float:
        """Play the mean of the experts; weigh them by their losses and moves; let each step."""
        f, weights, experts = as_loss(loss), self._meta.weights, self._experts
        evaluation = experts.evaluate(f, weights, True)
        before = [*self._points(), experts.mean(weights)]
        self._meta.update(evaluation.losses + self.switching * self._moves)
        experts.step(f, evaluation)
        self._moves = self._moved(before)
        self._next_round()
        now = self._experts.mean(self._meta.weights)
        self.moved += norm(now - before[-1])
        self._experts.settle(self._meta.weights)
        return evaluation.value

    def _points(self) -> list[Point]:
        return [self._experts.point(i) for i in range(self._experts.size)]

    def _moved(self, before: list[Point]) -> Array:
        return np.array([norm(now - then) for now, then in zip(self._points(), before, strict=False)])

    def _begin(self, epoch: Epoch, start: Point) -> None:
        super()._begin(epoch, start)
        self._moves = np.zeros(self._experts.size)  # of the last step

    def check_state(self) -> None:
        super().check_state()
        require(self._moves.size == self._experts.size, "moves")
        require(min(self.moved, self._moves.min()) >= 0.0, "moves")

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        G = self.options.lipschitz
        return None if G is None or self.lipschitz > G * (1.0 + 1e-9) else super()._bound(path_length, tau)

    def _expert_bound(self, plan: Plan, epoch: Epoch, path_length: float) -> float:
        G, eta = self.lipschitz, self._experts.scale_for(self.lipschitz) * plan.step
        moving = self.switching * eta * G * epoch.rounds
        # Where an epoch begins, all experts are moved to the mean.
        jump = self.switching * self.domain.diameter if epoch.start else 0.0
        return super()._expert_bound(plan, epoch, path_length) + moving + jump

    def _price(self, i: int, size: int, epoch: Epoch) -> float:
        meta = self._make_weights(size, epoch.horizon)
        return float(meta.regret_bound(i, epoch.rounds, meta.scale))  # type: ignore[call-arg, arg-type]


def _plans(options: Options, switching: float, horizon: int) -> list[Plan]:
    r"""Steps from the best one for P = 0, doubling up to that for P = T D."""
    relative = switching / options.lipschitz if options.lipschitz else 1.0
    first = 0.125 / ((0.5 + relative) * horizon)
    number = math.ceil(0.5 * math.log2(1.0 + 4.0 * horizon)) + 1
    return [Plan(2.0**i * math.sqrt(first), 1, 0.0) for i in range(number)]


def _weights(
    options: Options, switching: float, diameter: float, plans: Any, size: int, horizon: int
) -> Hedge:
    """Weights whose rate allows for what their own moves cost."""
    G = options.lipschitz
    if G is None:
        return Hedge(size, horizon)
    longest = options.scale_for(G) * plans(horizon)[-1].step * G
    spread = G * diameter + switching * min(diameter, longest)
    return Hedge(size, horizon, math.sqrt(spread * (spread + 2.0 * switching * diameter)))

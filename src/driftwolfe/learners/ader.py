"""Ader, with a projection for each expert, one for all, or one Frank-Wolfe run in its place."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Unpack

import numpy as np

from driftwolfe import bounds
from driftwolfe.domains import Domain
from driftwolfe.domains.base import require_feasible
from driftwolfe.ensemble import Hedge, ader_grid
from driftwolfe.ensemble.ball import BallDescent, BallExperts, approach, surrogate
from driftwolfe.ensemble.descent import GradientSum
from driftwolfe.ensemble.experts import require_finite, require_in_range
from driftwolfe.ensemble.plan import Plan
from driftwolfe.learners.base import Epoch, Learner, as_loss
from driftwolfe.learners.ensembles import GridLearner
from driftwolfe.learners.options import (
    Options,
    StepOptions,
    WeightOptions,
    make_options,
    projecting_options,
)
from driftwolfe.oracles import Oracle
from driftwolfe.oracles.frank_wolfe import CALLS
from driftwolfe.points.kinds import Point
from driftwolfe.state import POINT, Count, Field, Size
from driftwolfe.storage import require


class Ader(GridLearner):
    r"""Gradient descent with many step sizes and exact projections, and Hedge over them.

    .. math:: x^i_{t+1} = P_K(x^i_t - \eta_i \nabla f_t(x^i_t)), \quad
              \eta_i = c\, 2^{i-1}\sqrt{7/(2T)}, \quad c = D/G

    N projections and N gradients per round, :math:`N = O(\log T)`; the improved Ader, ``feedback="linear"``, has
    one gradient. Regret at most :math:`\tfrac{3G}{4}\sqrt{2T(7D^2 + 4DP)} + B\sqrt{T/8}(1 + 2\ln(k+1))`; `bound`
    evaluates the sharper :math:`\min_i (D^2/8 + DP/2)/\eta_i + \eta_i T G^2/2 + \dots`. Constants re-derived; with
    linear feedback the rate of the weights is twice the original's.

    Parameters
    ----------
    domain
        A set that can project, unless `oracle` is another than ``"exact"``.
    {options}

    References
    ----------
    Zhang, Lu and Zhou (2018), Adaptive online learning in dynamic environments, NeurIPS.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.Ader(dw.L2Ball(2), horizon=50, lipschitz=1.0)
    >>> history = dw.play(learner, [dw.losses.LinearLoss([1.0, 0.0])] * 50)
    >>> learner.decision.round(3), learner.oracle_calls.projection
    (array([-1.,  0.]), 200)
    """

    def update(self, loss: Any, ticket: Any = None) -> float:
        """Play the mean of the experts; weigh them by their losses; let each take its step."""
        f = as_loss(loss)
        evaluation = self._experts.evaluate(f, self._meta.weights, self.options.linear)
        self._meta.update(evaluation.losses)
        self._experts.step(f, evaluation.slopes, evaluation.shared)
        self._next_round()
        return float(evaluation.value)

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        oracle: Oracle | str = "exact",
        **options: Unpack[WeightOptions],
    ) -> None:
        checked = projecting_options(
            "Ader", "POLD", domain, horizon, lipschitz, oracle=oracle, **options
        )
        super().__init__(domain, checked, partial(_plans, checked))


def _plans(options: Options, horizon: int) -> list[Plan]:
    return [options.unblocked_plan(h) for h in ader_grid(horizon).tolist()]


class OneProjectionAder(GridLearner):
    r"""Ader with one projection and one gradient per round.

    Experts live on the ball of radius R around the set, where a projection is a rescaling,
    :math:`\eta_i = c\, 2^{i-1}\sqrt{7/(2T)}`, c = D/G. Hedge combines them to y, and :math:`x = P_K(y)` is
    played. With :math:`g = \nabla f_t(x)` and :math:`\nu = (y - x)/\lVert y - x\rVert`, all learn from

    .. math:: \tilde g = g - \min(0, \langle g, \nu\rangle)\,\nu, \qquad
              \langle g, x - u\rangle \le \langle\tilde g, y - u\rangle \text{ for all } u \in K

    Regret against comparators of path length P is at most that of Ader on the ball,
    :math:`\min_i (D^2/8 + DP/2)/\eta_i + \eta_i T G^2/2 + B\sqrt{T/8}(1 + 2\ln(i+1))`, B = G D. Another method
    than ``"exact"``, such as ``"block"`` on large trace-norm balls, makes it projection-free, and the bound has
    :math:`G T \delta` more, :math:`\delta` the largest of all :math:`\mathrm{gap}/\lVert y - x\rVert` (of
    :math:`\lVert y - x\rVert`, where that is smaller): in the certified tuning at most :math:`D/\sqrt T`, by
    O(T) LMO calls per round at worst; in the practical one as measured, which may be vacuous.

    Factored matrices on the host are dense arrays here, one for each expert (12 MB for 943 x 1,682): sums of
    sparse gradients and of projections have full rank. On a device they stay factored.

    Parameters
    ----------
    domain
        A set that can project, unless `oracle` is another than ``"exact"``.
    loss_scale
        Range of a round's losses over the ball: a number, ``"certified"`` (2 G R) or ``"auto"``.
    {options}

    References
    ----------
    Zhao, Xie, Zhang and Zhou (2022), Efficient methods for non-stationary online learning, NeurIPS
    (arXiv 2309.08911); ``Ader_1p`` in PyNOL. The surrogate is from Cutkosky (2020), Parameter-free,
    dynamic, and strongly-adaptive online learning, ICML.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.learners.OneProjectionAder(dw.L1Ball(2), horizon=50, lipschitz=1.0)
    >>> history = dw.play(learner, [dw.losses.LinearLoss([1.0, 0.0])] * 50)
    >>> learner.decision.round(3), learner.oracle_calls.projection
    (array([-1.,  0.]), 50)
    """

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        oracle: Oracle | str = "exact",
        loss_scale: float | str | None = None,
        **options: Unpack[StepOptions],
    ) -> None:
        own: dict[str, Any] = {"oracle": oracle, "loss_scale": loss_scale, "feedback": "linear"}
        given = "OneProjectionAder", "OneOracleAder", domain, horizon, lipschitz
        checked = projecting_options(*given, on_ball=True, **own, **options)
        experts = partial(BallDescent, checked.oracle, checked.step_scale)
        super().__init__(domain, checked, partial(_ball_plans, checked), experts)


def _ball_plans(options: Options, horizon: int) -> list[Plan]:
    return [options.ball_plan(h, horizon) for h in ader_grid(horizon).tolist()]


class OneOracleAder(Learner):
    r"""Ader on the ball around the set, and one Frank-Wolfe run for its combined point.

    Experts with steps :math:`\eta_i` live on the ball of radius R, where projecting costs nothing, and
    Hedge combines them to y. Only y is brought to the set: x is where a Frank-Wolfe run towards y
    ends, and is played for a block of K rounds. With :math:`\Delta` the sum of the block's gradients at
    x, :math:`d = \lVert y - x\rVert` and :math:`\nu = (y - x)/d`, all experts learn from

    .. math:: \tilde g = \Delta - \min(0, \langle\Delta, \nu\rangle)\,\nu

    (:math:`\tilde g = \Delta` where :math:`d^2 \le tol`): what would draw y farther from the set is left out. One
    gradient per round, and at most b LMO calls per round in total. With :math:`K = \lceil\sqrt{T/b}\,\rceil`,
    :math:`tol = 2.6 D^2/(bK)` and Ader's grid for :math:`\lceil T/K\rceil` rounds, regret is at most

    .. math::

        G T \sqrt{tol} + \min_i\Big[\frac{D^2/8 + D P/2}{\eta_i} + \frac{\eta_i K T G^2}{2} + H_i\Big]
        + (K - 1) G P \\ = O\big(G D\, T^{3/4} (1 + P/D)^{1/2}\big)

    against comparators of path length P, :math:`H_i` the regret of Hedge for losses of range K G D, with an exact
    oracle: weaker in P than `POLD` with the same budget, for sets where even a few runs at a time are too many.

    Parameters
    ----------
    loss_scale
        Range of a round's losses over the ball: a number, ``"certified"`` (2 G R) or ``"auto"``.
    tuning
        ``"certified"``: these constants, method ``"halfspace"``. ``"practical"``: a block for every call of the
        budget, :math:`K = \lceil 1/b\rceil`, and a small tolerance, so that each run spends what the budget has
        left, up to the oracle's accuracy.
    oracle
        A method of `infeasible_projection`, or an `Oracle`, whose `lmo_budget` is b, 1 if not given.
    {options}

    References
    ----------
    A design of this library (proof in `docs/theory/budget.md`), after the reductions of Cutkosky (2020),
    Parameter-free, dynamic, and strongly-adaptive online learning, ICML; and Zhao et al. (2022), Efficient methods
    for non-stationary online learning, NeurIPS.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.learners.OneOracleAder(dw.L1Ball(2), horizon=400, lipschitz=1.0)
    >>> for t in range(400):
    ...     suffered = learner.update(dw.losses.LinearLoss([1.0 if t < 200 else -1.0, 0.0]))
    >>> learner.decision.round(2), learner.lmo_calls <= 400
    (array([1., 0.]), True)
    """

    _x: Annotated[Point, POINT]
    _sum: Annotated[GradientSum, Field(GradientSum)]  # of the block's gradients
    _clock: Count  # rounds of the block so far
    #: Whether y is surely outside the set, and x is near its projection.
    _outside: Annotated[bool, Field(bool)]
    _steepest: Size  # the largest gradient norm
    _error: Size  # the largest distance that the bound must allow for
    _experts: BallExperts
    _meta: Hedge
    options: Options

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        loss_scale: float | str | None = None,
        oracle: Oracle | str = "auto",
        **options: Unpack[StepOptions],
    ) -> None:
        super().__init__(domain)
        asked = Oracle.of(oracle)
        self._budget = 1.0 if asked.lmo_budget is None else asked.lmo_budget
        own: dict[str, Any] = {"loss_scale": loss_scale, "on_ball": True, "feedback": "linear"}
        own["oracle"] = replace(asked, lmo_budget=self._budget)
        self.options = make_options(domain, horizon, lipschitz, **own, **options)
        self._steepest = self._error = 0.0
        self._begin(next(self._epochs()), domain.origin())

    def update(self, loss: Any, ticket: Any = None) -> float:
        """Play x, add its gradient to the block; at its end move the experts, and x after y."""
        f = as_loss(loss)
        value, slope = f.value_and_slope_at(f.scores(self._x))
        require_finite(value, slope)
        self._sum, size = self._sum.plus(f, slope, self._x, self.domain)
        require_in_range(size, self.domain.diameter)
        self._steepest = max(self._steepest, size)
        self._clock += 1
        if self._clock == self._block(self._epoch_length):
            self._end_block()
        self._next_round()
        return float(value)

    def _end_block(self) -> None:
        """Move the experts by the block's gradients, combine them to y, and project that."""
        plan, oracle = self._plans(self._epoch_length)[0], self.options.oracle
        gradient = self._sum.total(self._x)
        if self._outside:
            gradient = surrogate(gradient, self._experts.combined(self._meta.weights) - self._x)
        # Per round of a block, so that the range of losses is that of one round.
        self._meta.update(self._experts.losses(gradient) / plan.block)
        self._experts.move(gradient, self.options.scale_for(self._steepest) / plan.block)
        y = self._experts.combined(self._meta.weights)
        limit = math.floor(self._budget * plan.block)
        if not self.options.planned:  # what the budget has left
            left = math.floor(self._budget * (self.t + 1)) - self.lmo_calls
            limit = max(0, min(left, oracle.max_lmo_calls or left))
        rng = (oracle.seed, self.t)
        near = approach(self._counted, oracle, self._x, y, plan.tolerance, limit, rng)
        self._x, self._outside = near.x, near.outside
        self._error = max(self._error, near.error)
        self._sum, self._clock = GradientSum(), 0

    @property
    def decision(self) -> Point:
        return self._x.copy()

    @property
    def expert_names(self) -> list[str]:
        """Their steps, relative to c."""
        return [f"h = {step:.3g}" for step in self._experts.steps]

    @property
    def lipschitz(self) -> float:
        """G: the larger of what was given and the largest gradient norm seen."""
        return max(self.options.lipschitz or 0.0, self._steepest)

    def check(self) -> None:
        super().check()
        require_feasible(self.domain, [self._x])
        require(self._sum.fits(self._x), "sums of gradients")
        require(self._clock < self._block(self._epoch_length), "clocks")
        require(self._meta.size == len(self._plans(self._epoch_length)), "experts and weights")

    def _block(self, horizon: int) -> int:
        block = max(1, math.ceil(math.sqrt(horizon / self._budget)))
        # Shorter blocks are better where measured, as long as each can make a call.
        return block if self.options.planned else min(block, math.ceil(1.0 / self._budget))

    def _plans(self, horizon: int) -> list[Plan]:
        """The experts on the ball, all with the block and the tolerance of their mean."""
        block, D = self._block(horizon), self.options.D
        tolerance = min(1.0, CALLS / (self._budget * block) * self.options.tolerance_scale) * D**2
        steps = ader_grid(math.ceil(horizon / block)).tolist()
        return [Plan(h, block, float(tolerance)) for h in steps]

    def _begin(self, epoch: Epoch, start: Point) -> None:
        super()._begin(epoch, start)
        self._x, self._sum, self._clock, self._outside = start, GradientSum(), 0, False
        steps = np.array([plan.step for plan in self._plans(epoch.horizon)])
        self._experts = BallExperts(self.domain, steps, start.copy())
        self._meta = self._weights(epoch.horizon)

    def _weights(self, horizon: int) -> Hedge:
        rounds = math.ceil(horizon / self._block(horizon))
        return Hedge(len(self._plans(horizon)), rounds, self.options.loss_scale)

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        if tau is not None:
            return None
        return self._over_epochs(partial(self._epoch_bound, path_length=path_length))

    def _epoch_bound(self, epoch: Epoch, path_length: float) -> float:
        G, D, weights = self.lipschitz, self.options.D, self._weights(epoch.horizon)
        plans, spread = self._plans(epoch.horizon), G * D
        block, tolerance = plans[0].block, max(plans[0].tolerance, self._error**2)
        start = bounds.ANYWHERE if epoch.start else bounds.AT_CENTER
        blocks, regrets = math.ceil(epoch.rounds / block), list[float]()
        given = tolerance, path_length, start, self.options.step_scale is None
        for i, plan in enumerate(plans, start=1):
            eta = self.options.scale_for(G) / block * plan.step
            own = bounds.blocked_descent(G, D, epoch.rounds, eta, block, *given)
            weighing = block * weights.regret_bound(i, blocks, spread) if spread > 0 else 0.0
            regrets.append(own + weighing)
        return min(regrets)

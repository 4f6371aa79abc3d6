"""OneOracleAder: Ader on a ball, and one Frank-Wolfe run for its combined point."""

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
from driftwolfe.ensemble.ball import BallExperts, approach, surrogate
from driftwolfe.ensemble.descent import GradientSum
from driftwolfe.ensemble.experts import require_finite, require_in_range
from driftwolfe.ensemble.plan import Plan
from driftwolfe.learners.base import Epoch, Learner, as_loss
from driftwolfe.learners.options import Options, StepOptions, make_options
from driftwolfe.oracles import Oracle
from driftwolfe.oracles.frank_wolfe import CALLS
from driftwolfe.points.kinds import Point
from driftwolfe.state import POINT, Count, Field, Size
from driftwolfe.storage import require


class OneOracleAder(Learner):
    r"""Ader on the ball around the set, and one Frank-Wolfe run for its combined point.

    Experts with steps :math:`\eta_i` live on the ball of radius R, where projecting costs nothing, and
    Hedge combines them to y. Only y is brought to the set: x is where a Frank-Wolfe run towards y
    ends, and is played for a block of K rounds. With :math:`\Delta` the sum of the block's gradients at
    x, :math:`d = \lVert y - x\rVert` and :math:`\nu = (y - x)/d`, all experts learn from

    .. math:: \tilde g = \Delta - \min(0, \langle\Delta, \nu\rangle)\,\nu

    (:math:`\tilde g = \Delta` where :math:`d^2 \le tol`): what would draw y farther from the set is left
    out. One gradient per round, and at most b LMO calls per round in total: for sets where even
    a few runs at a time are too many.

    Parameters
    ----------
    loss_scale
        Range of a round's losses over the ball: a number, ``"certified"`` (2 G R) or ``"auto"``.
    tuning
        ``"certified"``: the constants of the Notes, method ``"halfspace"``. ``"practical"``: a block for
        every call of the budget, :math:`K = \lceil 1/b\rceil`, and a small tolerance, so that each run
        spends what the budget has left, up to the oracle's accuracy.
    oracle
        A method of `infeasible_projection`, or an `Oracle`, whose `lmo_budget` is b, 1 if not given.
    {options}

    Notes
    -----
    With :math:`K = \lceil\sqrt{T/b}\,\rceil`, :math:`tol = 2.6 D^2/(bK)` and Ader's grid for
    :math:`\lceil T/K\rceil` rounds, regret against comparators of path length P is at most

    .. math::

        G T \sqrt{tol} + \min_i\Big[\frac{D^2/8 + D P/2}{\eta_i} + \frac{\eta_i K T G^2}{2} + H_i\Big]
        + (K - 1) G P \\ = O\big(G D\, T^{3/4} (1 + P/D)^{1/2}\big)

    :math:`H_i` the regret of Hedge for losses of range K G D, with an exact oracle: weaker in P than `POLD`
    with the same budget. A design of this library; `docs/theory/budget.md` has the proof.

    References
    ----------
    After the reductions of Cutkosky (2020), Parameter-free, dynamic, and strongly-adaptive online
    learning, ICML; and Zhao et al. (2022), Efficient methods for non-stationary online learning, NeurIPS.

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
        """The feasible point x."""
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
        self._meta = self._make_meta(epoch.horizon)

    def _make_meta(self, horizon: int) -> Hedge:
        rounds = math.ceil(horizon / self._block(horizon))
        return Hedge(len(self._plans(horizon)), rounds, self.options.loss_scale)

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        if tau is not None:
            return None
        return self._over_epochs(partial(self._epoch_bound, path_length=path_length))

    def _epoch_bound(self, epoch: Epoch, path_length: float) -> float:
        G, D, meta = self.lipschitz, self.options.D, self._make_meta(epoch.horizon)
        plans, spread = self._plans(epoch.horizon), G * D
        block, tolerance = plans[0].block, max(plans[0].tolerance, self._error**2)
        start = bounds.ANYWHERE if epoch.start else bounds.AT_CENTER
        best, shrinking = math.inf, self.options.step_scale is None
        for i, plan in enumerate(plans, start=1):
            eta = self.options.scale_for(G) / block * plan.step
            expert = bounds.blocked_descent(
                G, D, epoch.rounds, eta, block, tolerance, path_length, start, shrinking
            )
            if spread > 0:
                expert += block * meta.regret_bound(i, math.ceil(epoch.rounds / block), spread)
            best = min(best, expert)
        return best

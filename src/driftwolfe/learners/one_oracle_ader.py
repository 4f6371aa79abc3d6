"""OneOracleAder: Ader on a ball, and one Frank-Wolfe run for its combined point."""

from __future__ import annotations

import math
from typing import Any, Unpack

from driftwolfe.domains import Domain
from driftwolfe.domains.base import require_feasible
from driftwolfe.ensemble import Hedge, ader_grid
from driftwolfe.ensemble.descent import BallExperts, GradientSum
from driftwolfe.ensemble.experts import require_finite
from driftwolfe.ensemble.plan import granted
from driftwolfe.learners import bounds
from driftwolfe.learners.base import Learner, as_loss
from driftwolfe.learners.options import Epoch, Options, StepOptions, epochs, make_options
from driftwolfe.oracles import infeasible_projection
from driftwolfe.oracles.frank_wolfe import CALLS
from driftwolfe.points import distance, inner, norm
from driftwolfe.points.kinds import Array, Point
from driftwolfe.storage import require


class OneOracleAder(Learner):
    r"""Ader on the ball around the set, and one Frank-Wolfe run for its combined point.

    Experts with steps :math:`\eta_i` live on the ball of radius R, where projecting costs nothing, and
    Hedge combines them to y. Only y is brought to the set: x is where a Frank-Wolfe run towards y
    ends, and is played for a block of K rounds. With :math:`\Delta` the sum of the block's gradients at
    x, :math:`d = \lVert y - x\rVert` and :math:`\nu = (y - x)/d`, all experts learn from

    .. math:: \tilde g = \Delta - \min(0, \langle\Delta, \nu\rangle)\,\nu

    (:math:`\tilde g = \Delta` where :math:`d^2 \le tol`): what would draw y farther from the set is left out.
    For every u in K then :math:`\langle\Delta, x - u\rangle \le \langle\tilde g, y - u\rangle +
    \lVert\Delta\rVert\sqrt{tol}`.

    One gradient per round, at most `lmo_budget` LMO calls per round in total, and vector operations
    for the experts: for sets where even a few runs at a time are too many.

    Parameters
    ----------
    domain
        The set.
    loss_scale
        Range of a round's losses over the ball: a number, ``"certified"`` (2 G R) or ``"auto"``.
    tolerance_scale
        Factor on the tolerance :math:`2.6 D^2/(b K)`.
    method, seed
        Method of the oracle, see `infeasible_projection`, and the seed of its random numbers.
    tuning
        ``"certified"``: the constants of the Notes, method ``"halfspace"``. ``"practical"``: a block for
        every call that the budget allows, :math:`K = \lceil 1/b\rceil`, and tolerance_scale 1e-6, so
        that each run spends what the budget has left, up to the oracle's accuracy.
    lmo_budget
        b: after every round t, at most b t LMO calls have been made.
    {options}

    Notes
    -----
    With :math:`K = \lceil\sqrt{T/b}\,\rceil`, :math:`tol = 2.6 D^2/(bK)` and Ader's grid for
    :math:`\lceil T/K\rceil` rounds, regret against comparators of path length P is at most

    .. math::

        G T \sqrt{tol} + \min_i\Big[\frac{D^2/8 + D P/2}{\eta_i} + \frac{\eta_i K T G^2}{2} + H_i\Big]
        + (K - 1) G P = O\big(G D\, T^{3/4} (1 + P/D)^{1/2}\big)

    :math:`H_i` the price of Hedge for losses of range K G D, with an exact oracle (see `POLD`). Weaker
    in P than `POLD` with the same budget; `docs/theory/budget.md` has the proof. A design of this
    library, after the reductions of Cutkosky and of Zhao et al. for projections.

    References
    ----------
    Cutkosky (2020), Parameter-free, dynamic, and strongly-adaptive online learning, ICML; Zhao et
    al. (2022), Efficient methods for non-stationary online learning, NeurIPS.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.OneOracleAder(dw.L1Ball(2), horizon=400, lipschitz=1.0)
    >>> for t in range(400):
    ...     suffered = learner.update(dw.losses.LinearLoss([1.0 if t < 200 else -1.0, 0.0]))
    >>> learner.decision.round(2), learner.lmo_calls <= 400
    (array([1., 0.]), True)
    """

    _experts: BallExperts
    _meta: Hedge
    _x: Point
    _sum: GradientSum  # of the block's gradients
    _clock: int  # rounds of the block so far
    _outside: bool  # whether y is surely outside the set, and x is near its projection

    STATE = (
        *("_epoch_start", "_epoch_length", "_experts", "_meta", "_x", "_sum", "_clock", "_outside"),
        *("_error", "_steepest"),
    )
    PARTS = ("_experts", "_meta")
    options: Options

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        loss_scale: float | str | None = None,
        method: str = "auto",
        seed: int = 0,
        lmo_budget: float = 1.0,
        **options: Unpack[StepOptions],
    ) -> None:
        super().__init__(domain)
        budgeted = {"loss_scale": loss_scale, "method": method, "lmo_budget": lmo_budget}
        self.options = make_options(
            domain, horizon, lipschitz, feedback="linear", seed=seed, **budgeted, **options
        )
        if lmo_budget is None:
            raise ValueError("lmo_budget must be a positive number, got None; use Ader or POLD")
        self._budget = float(lmo_budget)
        certified = loss_scale is None and options.get("tuning") == "certified"
        # What makes a certified range, of the set, one of the ball.
        on_ball = certified or loss_scale == "certified"
        self._on_ball = self.options.D / domain.diameter if on_ball else 1.0
        self._steepest = 0.0  # the largest gradient norm
        self._error = 0.0  # the largest distance that the bound must allow for
        self._begin(next(epochs(self.options.horizon, 0)), domain.origin())

    def update(self, loss: Any) -> float:
        """Play x, add its gradient to the block; at its end move the experts, and x after y."""
        f = as_loss(loss)
        value, slope = f.value_and_slope_at(f.scores(self._x))
        require_finite(value, slope)
        self._sum, size = self._sum.plus(f, slope, self._x)
        if size is None:
            size = f.gradient_norm(slope)  # type: ignore[attr-defined]
        require_finite(size)
        self._steepest = max(self._steepest, size)
        self._clock += 1
        if self._clock == self._block(self._epoch_length):
            self._end_block()
        self.t += 1
        if self.options.horizon is None and self.t == self._epoch_start + self._epoch_length:
            self._begin(Epoch(self.t, 2 * self._epoch_length, 0), self._x)
        return float(value)

    def _end_block(self) -> None:
        """Move the experts by the block's gradients, combine them to y, and project that."""
        block = self._block(self._epoch_length)
        gradient = self._corrected(self.domain.tangent(self._sum.total(self._x)))
        # Per round of a block, so that the range of losses is that of one round.
        self._meta.update(self._experts.losses(gradient) / block)
        self._experts.step(gradient, self._scale(self._steepest, block))
        y, oracle = self._experts.mean(self._meta.weights), self.options.oracle
        tolerance = self._tolerance(self._epoch_length)
        result = infeasible_projection(
            self._counted,
            self._x,
            y,
            tolerance,
            oracle.method,
            oracle.accuracy,
            self._limit(),
            rng=(oracle.seed, self.t),
        )
        apart = distance(result.feasible, y)
        certified = max(0.0, result.gap) / apart if apart > 0 else 0.0
        self._outside = apart * apart > tolerance and certified < apart
        self._error = max(self._error, certified if self._outside else apart)
        self._x, self._sum, self._clock = result.feasible, GradientSum(), 0

    def _corrected(self, gradient: Point) -> Point:
        """The gradient without the part that would draw y farther from the set."""
        if not self._outside:
            return gradient
        away = self._experts.mean(self._meta.weights) - self._x
        along, length = inner(gradient, away), norm(away)  # <away, away> would cancel near x
        if along >= 0 or length == 0:
            return gradient
        return gradient - (along / length / length) * away

    @property
    def decision(self) -> Point:
        """The feasible point x."""
        return self._x.copy()

    @property
    def expert_weights(self) -> Array:
        """The weights of the experts on the ball."""
        return self._meta.weights

    @property
    def expert_names(self) -> list[str]:
        """Their steps, relative to c."""
        return [f"h = {step:.3g}" for step in self._experts.steps]

    @property
    def lipschitz(self) -> float:
        """G: the larger of what was given and the largest gradient norm seen."""
        return max(self.options.lipschitz or 0.0, self._steepest)

    def bound(self, path_length: float = 0.0, tau: int | None = None) -> float:
        """Return the bound of the Notes with the parameters used; see `Learner.bound`."""
        path_length, tau = bounds.asked(path_length, tau)
        if tau is not None:
            return super().bound(path_length, tau)
        G, D, total = self.lipschitz, self.options.D, 0.0
        for epoch in epochs(self.options.horizon, self.t):
            if not epoch.rounds:
                continue
            block, meta = self._block(epoch.horizon), self._make_meta(epoch.horizon)
            count, spread = math.ceil(epoch.rounds / block), G * D
            total += min(
                bounds.blocked_descent(
                    G,
                    D,
                    epoch.rounds,
                    self._scale(G, block) * step,
                    block,
                    max(self._tolerance(epoch.horizon), self._error**2),
                    path_length,
                    bounds.ANYWHERE if epoch.start else bounds.AT_CENTER,
                    shrinking_steps=self.options.step_scale is None,
                )
                + (block * meta.regret_bound(i, count, spread) if spread > 0 else 0.0)
                for i, step in enumerate(self._steps(epoch.horizon), start=1)
            )
        return total

    def check_state(self) -> None:
        super().check_state()
        *_, epoch = epochs(self.options.horizon, self.t)
        require((self._epoch_start, self._epoch_length) == epoch[:2], "epochs and rounds")
        require_feasible(self.domain, [self._x])
        require(type(self._sum) is GradientSum and self._sum.fits(self._x), "sums of gradients")
        require(0 <= self._clock < self._block(self._epoch_length), "clocks")
        require(min(self._steepest, self._error) >= 0, "experts")
        number = self._steps(self._epoch_length).size
        require(self._meta.size == self._experts.steps.size == number, "experts and weights")

    def _limit(self) -> int:
        """LMO calls that the run at the end of this round may make."""
        if self.options.planned:
            return granted(self._budget, self._block(self._epoch_length))
        left = math.floor(self._budget * (self.t + 1)) - self.lmo_calls
        return max(0, min(left, self.options.oracle.max_lmo_calls or left))

    def _block(self, horizon: int) -> int:
        block = max(1, math.ceil(math.sqrt(horizon / self._budget)))
        # Shorter blocks are better where measured, as long as each can make a call.
        return block if self.options.planned else min(block, math.ceil(1.0 / self._budget))

    def _tolerance(self, horizon: int) -> float:
        share = CALLS / (self._budget * self._block(horizon))
        return float(min(1.0, share * self.options.tolerance_scale) * self.options.D**2)

    def _steps(self, horizon: int) -> Array:
        return ader_grid(math.ceil(horizon / self._block(horizon)))

    def _scale(self, largest_gradient: float, block: int) -> float:
        """The factor on steps: c over the rounds of a block."""
        return self.options.scale_for(largest_gradient) / block

    def _make_meta(self, horizon: int) -> Hedge:
        number, blocks = self._steps(horizon).size, math.ceil(horizon / self._block(horizon))
        scale = self.options.loss_scale
        given = scale if scale == "auto" else self._on_ball * float(scale)
        return Hedge(number, horizon=blocks, loss_scale=given)

    def _begin(self, epoch: Epoch, start: Point) -> None:
        self._epoch_start, self._epoch_length = epoch.start, epoch.horizon
        self._x, self._sum, self._clock, self._outside = start, GradientSum(), 0, False
        self._experts = BallExperts(self.domain, self._steps(epoch.horizon), start.copy())
        self._meta = self._make_meta(epoch.horizon)

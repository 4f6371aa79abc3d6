"""Ader: gradient descent with many step sizes; with projections, or with one linear oracle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

from driftwolfe.domains import Domain
from driftwolfe.domains.base import require_feasible
from driftwolfe.ensemble import Hedge, ader_grid
from driftwolfe.ensemble.budget import granted
from driftwolfe.ensemble.dense import BallExperts, combined
from driftwolfe.ensemble.descent import GradientSum
from driftwolfe.ensemble.evaluate import require_finite
from driftwolfe.ensemble.plan import Plan, projection_eps
from driftwolfe.learners import bounds
from driftwolfe.learners.base import as_loss
from driftwolfe.learners.grid import GridEnsemble
from driftwolfe.learners.options import EpochLearner, make_options, require_projection
from driftwolfe.oracles import infeasible_projection
from driftwolfe.oracles.frank_wolfe import CALLS
from driftwolfe.points import distance, inner, norm
from driftwolfe.points.kinds import Array, Point
from driftwolfe.storage import require


class Ader(GridEnsemble):
    r"""Gradient descent with many step sizes and exact projections, and Hedge over them.

    .. math:: x^i_{t+1} = P_K(x^i_t - \eta_i \nabla f_t(x^i_t)), \quad
              \eta_i = c\, 2^{i-1}\sqrt{7/(2T)}, \quad c = D/G

    N projections and N gradients a round, :math:`N = O(\log T)`; the improved Ader,
    ``feedback="linear"``, has one gradient.

    Parameters
    ----------
    domain
        A set that can project.
    horizon, lipschitz, step_scale, loss_scale, feedback
        As for `POLD`.
    method
        ``"exact"`` is Ader; any other method of `infeasible_projection` makes it approximate, and the
        bound allows for that.
    tolerance_scale, accuracy
        As for `POLD`, where the method is not exact.
    tuning
        ``"practical"``: loss_scale ``"auto"``; ``"certified"``: G * diameter.

    Notes
    -----
    Regret at most :math:`\tfrac{3G}{4}\sqrt{2T(7D^2 + 4DP)} + B\sqrt{T/8}(1 + 2\ln(k+1))`; `bound`
    evaluates the sharper :math:`\min_i (D^2/8 + DP/2)/\eta_i + \eta_i T G^2/2 + \dots`. Constants
    re-derived; with linear feedback the rate is :math:`\sqrt{8/T}/B`, twice the original's, which
    allowed for a range of 2B.

    References
    ----------
    Zhang, Lu and Zhou (2018), Adaptive online learning in dynamic environments, NeurIPS.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.Ader(dw.L2Ball(2), horizon=50, lipschitz=1.0)
    >>> for _ in range(50):
    ...     suffered = learner.update(dw.losses.LinearLoss([1.0, 0.0]))
    >>> learner.decision.round(3), learner.oracle_calls.projection
    (array([-1.,  0.]), 200)
    """

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        step_scale: float | None = None,
        loss_scale: float | str | None = None,
        tolerance_scale: float | None = None,
        accuracy: float | None = None,
        method: str = "exact",
        feedback: str = "full",
        tuning: str = "practical",
    ) -> None:
        options = make_options(
            domain,
            horizon=horizon,
            lipschitz=lipschitz,
            step_scale=step_scale,
            loss_scale=loss_scale,
            tolerance_scale=tolerance_scale,
            accuracy=accuracy,
            method=method,
            feedback=feedback,
            tuning=tuning,
        )
        if method == "exact":
            require_projection(domain, "Ader", "POLD")
        super().__init__(domain, options)

    def _plans(self, horizon: int) -> Sequence[Plan]:
        unit = 3.0 * (2.0 * self.domain.radius) ** 2 * self.options.tolerance_scale
        exact = self.options.oracle.method == "exact"
        return [
            Plan(float(h), 1, 0.0 if exact else unit * projection_eps(float(h)))
            for h in ader_grid(horizon)
        ]


class _Block(NamedTuple):
    """What the end of a block brings."""

    points: list[Point]
    meta: Hedge
    x: Point
    outside: bool
    error: float


class OneOracleAder(EpochLearner):
    r"""Ader on the ball around the set, and one Frank-Wolfe run for its combined point.

    Experts with steps :math:`\eta_i` live on the ball of radius R, where projecting costs nothing, and
    Hedge combines them to y. Only y is brought to the set: x is where a Frank-Wolfe run towards y
    ends, and is played for a block of K rounds. With :math:`\Delta` the sum of the block's gradients at
    x, :math:`d = \lVert y - x\rVert` and :math:`\nu = (y - x)/d`, all experts learn from

    .. math:: \tilde g = \Delta - \min(0, \langle\Delta, \nu\rangle)\,\nu

    (:math:`\tilde g = \Delta` where :math:`d^2 \le tol`): what would draw y farther from the set is left out.
    For every u in K then :math:`\langle\Delta, x - u\rangle \le \langle\tilde g, y - u\rangle +
    \lVert\Delta\rVert\sqrt{tol}`.

    One gradient a round, at most `lmo_budget` linear minimisations a round in all, and vector
    operations for the experts: for sets where even a few runs at a time are too many.

    Parameters
    ----------
    domain
        The set.
    horizon
        Rounds T; None: epochs of doubling length.
    lipschitz
        G, a bound on gradient norms; ``"auto"``: the largest norm seen so far.
    step_scale
        c, in place of D/G.
    loss_scale
        Range of a round's losses over the ball: a number, ``"certified"`` (2 G R) or ``"auto"``.
    tolerance_scale
        Factor on the tolerance :math:`2.6 D^2/(b K)`.
    accuracy, method, seed
        Options of the oracle, see `infeasible_projection`.
    tuning
        ``"certified"``: the constants of the Notes, method ``"halfspace"``. ``"practical"``: a block for
        every call that the budget allows, :math:`K = \lceil 1/b\rceil`, and tolerance_scale 1e-6, so
        that each run spends what the budget has left, up to the oracle's accuracy.
    lmo_budget
        b: after every round t, at most b t linear minimisations have been made.

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

    STATE = ("_experts", "_meta", "_x", "_sum", "_clock", "_outside", "_error", "_steepest")

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        step_scale: float | None = None,
        loss_scale: float | str | None = None,
        tolerance_scale: float | None = None,
        accuracy: float | None = None,
        method: str = "auto",
        tuning: str = "practical",
        seed: int = 0,
        lmo_budget: float = 1.0,
    ) -> None:
        options = make_options(
            domain,
            horizon=horizon,
            lipschitz=lipschitz,
            step_scale=step_scale,
            loss_scale=loss_scale,
            tolerance_scale=tolerance_scale,
            accuracy=accuracy,
            method=method,
            feedback="linear",
            tuning=tuning,
            seed=seed,
            lmo_budget=lmo_budget,
        )
        if lmo_budget is None:
            raise ValueError("lmo_budget must be a positive number, got None; use Ader or POLD")
        self._budget = float(lmo_budget)
        self._on_ball = 1.0  # what makes a certified range, of the set, one of the ball
        if loss_scale == "certified" or (loss_scale is None and tuning == "certified"):
            self._on_ball = 2.0 * domain.radius / domain.diameter
        self._steepest = self._error = 0.0
        super().__init__(domain, options)

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

    def update(self, loss: Any) -> float:
        """Play x, add its gradient to the block; at its end move the experts, and x after y."""
        f = as_loss(loss)
        value, slope = f.value_and_slope_at(f.scores(self._x))
        require_finite(value, slope)
        total, size = self._sum.plus(f, slope, self._x)
        if size is None:
            size = f.gradient_norm(slope)  # type: ignore[attr-defined]
        require_finite(size)
        steepest = max(self._steepest, size)
        clock = self._clock + 1
        if clock == self._block(self._epoch_length):
            block = self._end_block(total, steepest)
            self._experts.points, self._meta, self._x = block.points, block.meta, block.x
            self._outside, self._error = block.outside, max(self._error, block.error)
            total, clock = GradientSum(), 0
        self._sum, self._clock, self._steepest = total, clock, steepest
        self._advance()
        return float(value)

    def bound(self, path_length: float = 0.0, tau: int | None = None) -> float:
        """Return the bound of the Notes with the parameters used; see `Learner.bound`."""
        path_length, tau = bounds.asked(path_length, tau)
        if tau is not None:
            return super().bound(path_length, tau)
        G, D = self.lipschitz, 2.0 * self.domain.radius
        total = 0.0
        for horizon, rounds, first in self._epochs():
            block, meta = self._block(horizon), self._make_meta(horizon)
            count, spread = math.ceil(rounds / block), G * D
            total += min(
                bounds.blocked_descent(
                    G,
                    D,
                    rounds,
                    self._scale(G, block) * step,
                    block,
                    max(self._tolerance(horizon), self._error**2),
                    path_length,
                    bounds.AT_CENTER if first else bounds.ANYWHERE,
                    shrinking_steps=self.options.step_scale is None,
                )
                + (block * meta.regret_bound(i, count, spread) if spread > 0 else 0.0)
                for i, step in enumerate(self._steps(horizon), start=1)
            )
        return total

    def check_state(self) -> None:
        """As `EpochLearner.check_state`; a point of the set, and a block that is under way."""
        super().check_state()
        require_feasible(self.domain, [self._x])
        require(type(self._sum) is GradientSum and self._sum.fits(self._x), "sums of gradients")
        require(0 <= self._clock < self._block(self._epoch_length), "clocks")
        require(min(self._steepest, self._error) >= 0, "experts")
        number = self._steps(self._epoch_length).size
        require(self._meta.size == self._experts.steps.size == number, "experts and weights")

    def _end_block(self, total: GradientSum, steepest: float) -> _Block:
        """Move the experts by the block's gradients, combine them, and go after what they say."""
        block = self._block(self._epoch_length)
        gradient = self._corrected(self.domain.tangent(total.total(self._x)))
        meta = copy(self._meta)  # an update replaces its arrays
        # Per round of a block, so that the range of losses is that of one round.
        meta.update(self._experts.losses(gradient) / block)
        points = self._experts.moved(gradient, self._scale(steepest, block))
        y = combined(meta.weights, points)
        tolerance = self._tolerance(self._epoch_length)
        oracle = self.options.oracle
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
        outside = apart * apart > tolerance and certified < apart
        error = certified if outside else apart
        return _Block(points, meta, result.feasible, outside, error)

    def _corrected(self, gradient: Point) -> Point:
        """The gradient without what would draw y farther from the set."""
        if not self._outside:
            return gradient
        away = combined(self._meta.weights, self._experts.points) - self._x
        along, length = inner(gradient, away), norm(away)  # <away, away> would cancel near x
        return (
            gradient if along >= 0 or length == 0 else gradient - (along / length / length) * away
        )

    def _limit(self) -> int:
        """Linear minimisations that the run at the end of this round may make."""
        oracle, budget = self.options.oracle, self._budget
        if self.options.planned:
            return granted(budget, self._block(self._epoch_length))
        left = math.floor(budget * (self.t + 1)) - self.lmo_calls
        return max(0, min(left, oracle.max_lmo_calls or left))

    def _block(self, horizon: int) -> int:
        block = max(1, math.ceil(math.sqrt(horizon / self._budget)))
        # Shorter blocks are better where measured, as long as each can make a call.
        return block if self.options.planned else min(block, math.ceil(1.0 / self._budget))

    def _tolerance(self, horizon: int) -> float:
        share = CALLS / (self._budget * self._block(horizon))
        return float(min(1.0, share * self.options.tolerance_scale) * (2 * self.domain.radius) ** 2)

    def _steps(self, horizon: int) -> Array:
        return ader_grid(math.ceil(horizon / self._block(horizon)))

    def _scale(self, largest_gradient: float, block: int) -> float:
        """The factor on steps: c over the rounds of a block."""
        if self.options.step_scale is not None:
            return self.options.step_scale / block
        steep = block * largest_gradient
        return 2.0 * self.domain.radius / steep if steep > 0 else 0.0

    def _make_meta(self, horizon: int) -> Hedge:
        number, blocks = self._steps(horizon).size, math.ceil(horizon / self._block(horizon))
        scale = self.options.loss_scale
        given = scale if scale == "auto" else self._on_ball * float(scale)
        return Hedge(number, horizon=blocks, loss_scale=given)

    def _begin(self, horizon: int, start: Point) -> None:
        self._x, self._sum, self._clock, self._outside = start, GradientSum(), 0, False
        self._experts = BallExperts(self.domain, self._steps(horizon), start.copy())
        self._meta = self._make_meta(horizon)

    def _restart_point(self) -> Point:
        return self._x

    def _largest_gradient(self) -> float:
        return self._steepest

"""BOGD_IP: blocked gradient descent with infeasible projections; LOO-BOGD."""

from __future__ import annotations

import math
from typing import Any

from driftwolfe.domains import Domain
from driftwolfe.ensemble.descent import Descent
from driftwolfe.ensemble.evaluate import require_finite
from driftwolfe.ensemble.experts import descent
from driftwolfe.ensemble.plan import (
    Plan,
    block_length,
    budgeted_plan,
    budgeted_step,
    projection_eps,
)
from driftwolfe.learners import bounds
from driftwolfe.learners.base import as_loss
from driftwolfe.learners.options import EpochLearner, make_options
from driftwolfe.points.kinds import Point
from driftwolfe.points.rounding import whole_below
from driftwolfe.storage import require


class BOGDIP(EpochLearner):
    r"""Blocked online gradient descent with infeasible projections (Algorithm 2 of the paper).

    Plays x, adds up gradients for K rounds, and then

    .. math:: (x, y) \leftarrow IP\Big(x,\ y - \eta \sum_{\text{block}} \nabla f_t(x)\Big)

    with :math:`h = T^{-3/4}`, :math:`\eta = c h` (c = D/G), :math:`K = \lfloor h^{-2/3}\rfloor`
    :math:`= \lfloor\sqrt T\rfloor` and :math:`\epsilon = D^2 h^{2/3}`: the paper's parameters in
    units that are consistent for any D and G (it assumes D = G = 1).

    One gradient a round; linear minimisations only when a block ends, O(1) a round on average.

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
    tolerance_scale
        Factor on the tolerance :math:`3\epsilon`; smaller only tightens the bound.
    accuracy, method, seed
        Options of the oracle, see `infeasible_projection`.
    tuning
        ``"practical"``: tolerance_scale 1e-6, so that the oracle's accuracy decides;
        ``"certified"``: tolerance_scale 1, the paper's constants. On large sets those leave the
        decision where it is for long: 3 eps exceeds any distance unless T > 144.
    lmo_budget, schedule, lazy
        As for `POLD`. With a budget b and the certified tuning, static regret is at most
        :math:`3.021\, G D\, (r v_0/b)^{1/4} T^{3/4} + \tfrac r2 G D h T`: about 1.80 G D T^(3/4) with
        at most T calls of an exact oracle.

    Notes
    -----
    Regret against any :math:`u_1, \dots, u_T` in K of path length P is at most

    .. math:: G D T^{3/4}(\sqrt3 + \tfrac12 + v_0 + \tfrac{P}{2D}) + G \sqrt T P

    with :math:`v_0 = 1/8` (start at the centre); `bound` evaluates it with the parameters used.

    Errata of the paper resolved here: 3 (units), 5 (K rounded down), 6 (last block shorter), 11,
    12 (local clock), 15 (constants), 16 (counts).

    References
    ----------
    Garber and Kretzu (2022), New projection-free algorithms for online convex optimization with
    adaptive regret guarantees, COLT; Wang et al. (2024), AAAI, Theorem 1.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> learner = dw.BOGDIP(dw.L1Ball(3), horizon=100, lipschitz=1.0)
    >>> for _ in range(100):
    ...     suffered = learner.update(dw.losses.LinearLoss([1.0, 0.0, 0.0]))
    >>> learner.decision
    array([-1.,  0.,  0.])
    """

    _expert: Descent

    STATE = ("_expert",)

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        step_scale: float | None = None,
        tolerance_scale: float | None = None,
        accuracy: float | None = None,
        method: str = "auto",
        tuning: str = "practical",
        seed: int = 0,
        lmo_budget: float | None = None,
        schedule: str = "blocks",
        lazy: int = 0,
    ) -> None:
        options = make_options(
            domain,
            horizon=horizon,
            lipschitz=lipschitz,
            step_scale=step_scale,
            loss_scale="auto",
            tolerance_scale=tolerance_scale,
            accuracy=accuracy,
            method=method,
            tuning=tuning,
            seed=seed,
            lmo_budget=lmo_budget,
            schedule=schedule,
            lazy=lazy,
        )
        super().__init__(domain, options)

    @property
    def decision(self) -> Point:
        """The feasible point x."""
        return self._expert.point(0).copy()

    def update(self, loss: Any) -> float:
        """Play x, add its gradient to the block, project when the block ends."""
        f = as_loss(loss)
        value, slope = f.value_and_slope_at(f.scores(self._expert.point(0)))
        require_finite(value, slope)
        self._expert.commit(self._expert.prepare(f, slope, shared=True))
        self._advance()
        return float(value)

    def bound(self, path_length: float = 0.0, tau: int | None = None) -> float:
        """Return the master inequality with the parameters used; see `Learner.bound`.

        With `tau`, on any interval of that length: a start anywhere, and two cut-off blocks.
        """
        path_length, tau = bounds.asked(path_length, tau)
        G, D = self.lipschitz, 2.0 * self.domain.radius
        total = 0.0
        for horizon, rounds, first in self._epochs():
            plan = self._plan(horizon)
            rounds = rounds if tau is None else min(tau, rounds)
            total += bounds.blocked_descent(
                G,
                D,
                rounds,
                self._expert.scale_for(G) * plan.step,
                plan.block,
                self._expert.tolerance_for(plan),
                path_length,
                bounds.AT_CENTER if first and tau is None else bounds.ANYWHERE,
                shrinking_steps=self.options.step_scale is None,
                delay_factor=self.options.delay_factor,
            )
            total += 0.0 if tau is None else 2.0 * plan.block * G * D
        return total

    def check_state(self) -> None:
        """As `EpochLearner.check_state`; there is one expert."""
        super().check_state()
        require(self._expert.size == 1, "experts")

    def _plan(self, horizon: int) -> Plan:
        squared, scale = (2.0 * self.domain.radius) ** 2, self.options.tolerance_scale
        budget = self.options.oracle.budget or 0.0
        if self.options.planned:
            h = budgeted_step(horizon, bounds.AT_CENTER, budget, self.options.delay_factor)
            plan = budgeted_plan(h, budget, self.options.delay_factor)
            return plan._replace(tolerance=plan.tolerance * squared * scale)
        h = float(horizon) ** -0.75
        eps = squared * projection_eps(h)
        return Plan(h, block_length(h), 3.0 * eps * scale, budget)

    def _begin(self, horizon: int, start: Point) -> None:
        before = self._expert if self.t else None
        self._expert = descent(self._counted, self.options.oracle, self.options.step_scale)
        self._expert.remember(before)
        self._expert.add(start, [self._plan(horizon)])

    def _restart_point(self) -> Point:
        return self._expert.point(0)

    def _largest_gradient(self) -> float:
        return self._expert.largest_gradient


class LOOBOGD(BOGDIP):
    r"""LOO-BOGD, with Garber & Kretzu's own constants.

    `BOGDIP` with :math:`\eta = (R/G) T^{-3/4}`, :math:`K = 5\sqrt T`,
    :math:`\epsilon = 60 R^2/\sqrt T`: at most T linear minimisations in all, and regret
    :math:`O(G R T^{3/4})` on every sub-interval.

    With the certified tuning the tolerance :math:`3\epsilon = 180 R^2/\sqrt T` exceeds any distance
    from the centre until T > 32,400: the decision does not move before. The practical tuning, as
    for `BOGDIP`, makes the tolerance small.

    One gradient a round; linear minimisations only when a block ends.

    Parameters
    ----------
    domain
        The set.
    horizon
        Rounds T; None: epochs of doubling length.
    lipschitz
        G, a bound on gradient norms; ``"auto"``: the largest norm seen so far.
    step_scale
        In place of D/G; :math:`\eta` is half of it times :math:`T^{-3/4}`.
    tolerance_scale, accuracy, method, tuning, seed, lmo_budget, schedule, lazy
        As for `BOGDIP`; but blocks and tolerances do not follow the budget, and where that ends a
        projection early, `bound` allows for the distance that was left.

    Notes
    -----
    `bound` is the master inequality of `BOGDIP` with these parameters. Constants reconstructed from
    the description of their Theorem 3, re-derived, not read in the original.

    References
    ----------
    Garber and Kretzu (2022), New projection-free algorithms for online convex optimization with
    adaptive regret guarantees, COLT.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.LOOBOGD(dw.L2Ball(2), horizon=100, lipschitz=1.0)
    >>> learner.update(dw.losses.LinearLoss([1.0, 0.0]))
    0.0
    """

    def _plan(self, horizon: int) -> Plan:
        root = math.sqrt(horizon)
        eps = 60.0 * self.domain.radius**2 / root
        block = max(1, whole_below(5.0 * root))
        # The step is in units of D/G, and R is half of D.
        tolerance = 3.0 * eps * self.options.tolerance_scale
        return Plan(0.5 * horizon**-0.75, block, tolerance, self.options.oracle.budget or 0.0)

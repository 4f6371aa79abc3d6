"""BOGD_IP: blocked gradient descent with infeasible projections; LOO-BOGD."""

from __future__ import annotations

import math
from typing import Any, Unpack

from driftwolfe import bounds
from driftwolfe.bounds.ensembles import expert_regret
from driftwolfe.domains import Domain
from driftwolfe.ensemble.descent import Descent
from driftwolfe.ensemble.experts import require_finite
from driftwolfe.ensemble.plan import Plan, budgeted_step
from driftwolfe.learners import ahead
from driftwolfe.learners.base import Epoch, Learner, as_loss, largest_gradient
from driftwolfe.learners.options import Options, StepOptions, make_options
from driftwolfe.oracles import Oracle
from driftwolfe.points.kinds import Point
from driftwolfe.points.ops import whole_below
from driftwolfe.storage import require


class BOGDIP(Learner):
    r"""Blocked online gradient descent with infeasible projections (Algorithm 1 of the paper).

    Plays x, adds up gradients for K rounds, and then

    .. math:: (x, y) \leftarrow IP\Big(x,\ y - \eta \sum_{\text{block}} \nabla f_t(x)\Big)

    with :math:`h = T^{-3/4}`, :math:`\eta = c h` (c = D/G), :math:`K = \lfloor h^{-2/3}\rfloor`
    :math:`= \lfloor\sqrt T\rfloor` and :math:`\epsilon = D^2 h^{2/3}`: the paper's, which assume D = G = 1,
    for any D and G. One gradient per round; LMO calls only when a block ends, O(1) per round on average. Regret
    against any comparators of path length P is at most

    .. math:: G D T^{3/4}(\sqrt3 + \tfrac12 + v_0 + \tfrac{P}{2D}) + G \sqrt T P

    with :math:`v_0 = 1/8` (start at the centre); `bound` evaluates it with the parameters used. With a
    budget b and the certified tuning, static regret is at most
    :math:`3.021\, G D\, (r v_0/b)^{1/4} T^{3/4} + \tfrac r2 G D h T`, r = 1, or 3 for the even schedule:
    about 1.80 G D T^(3/4) with at most T calls of an exact oracle.

    Parameters
    ----------
    tuning
        ``"practical"``: projections as accurate as the oracle says; ``"certified"``: the paper's
        constants. With those nothing moves unless T > 144, as 3 eps exceeds any distance.
    {options}

    References
    ----------
    Garber and Kretzu (2022), New projection-free algorithms for online convex optimization with adaptive regret
    guarantees, COLT; Wang et al. (2024), AAAI, Theorem 1, with the corrections of `docs/theory/errata.md`.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.BOGDIP(dw.L1Ball(3), horizon=100, lipschitz=1.0)
    >>> history = dw.play(learner, [dw.losses.LinearLoss([1.0, 0.0, 0.0])] * 100)
    >>> learner.decision
    array([-1.,  0.,  0.])
    """

    options: Options
    _experts: Descent
    by_blocks = True

    def update(self, loss: Any, ticket: Any = None) -> float:
        """Play x, add its gradient to the block, step and project when the block ends."""
        f = as_loss(loss)
        value, slope = f.value_and_slope_at(f.scores(self._experts.point(0)))
        require_finite(value, slope)
        self._experts.step(f, slope, shared=True)
        self._next_round()
        return float(value)

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        oracle: Oracle | str = "auto",
        **options: Unpack[StepOptions],
    ) -> None:
        super().__init__(domain)
        self.options = make_options(
            domain, horizon, lipschitz, oracle=oracle, loss_scale="auto", **options
        )
        self._begin(next(self._epochs()), domain.origin())

    def _begin(self, epoch: Epoch, start: Point) -> None:
        super()._begin(epoch, start)
        experts = self.options.experts(self._counted, [self._plan(epoch.horizon)], start)
        if self.t:
            experts.take_over(self._experts)
        self._experts = experts

    @property
    def decision(self) -> Point:
        return self._experts.point(0).copy()

    lipschitz = property(largest_gradient)
    update_many = ahead.update_many

    def check(self) -> None:
        super().check()
        require(self._experts.size == 1, "experts")

    def _plan(self, horizon: int) -> Plan:
        budget, h = self.options.oracle.budget or 0.0, float(horizon) ** -0.75
        if self.options.planned:
            h = budgeted_step(horizon, bounds.AT_CENTER, budget, self.options.delay_factor)
        return self.options.plan(h, budget)

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        known = self.options.measured(self._experts)

        def bound(epoch: Epoch) -> float:
            plan, rounds = self._plan(epoch.horizon), min(tau or epoch.rounds, epoch.rounds)
            # An interval starts anywhere, and cuts off two blocks.
            start = bounds.ANYWHERE if tau or epoch.start else bounds.AT_CENTER
            own = expert_regret(plan, known, rounds, path_length, start)
            return own + (2.0 * plan.block * known.G * known.D if tau else 0.0)

        return self._over_epochs(bound)


class LOOBOGD(BOGDIP):
    r"""LOO-BOGD, with Garber & Kretzu's own constants.

    `BOGDIP` with :math:`\eta = (R/G) T^{-3/4}`, :math:`K = 5\sqrt T`, :math:`\epsilon = 60 R^2/\sqrt T`: one
    gradient per round, at most T LMO calls in total, when blocks end, and regret :math:`O(G R T^{3/4})` on every
    sub-interval. With the certified tuning nothing moves unless T > 32,400, as :math:`3\epsilon` exceeds any
    distance from the centre. Blocks and tolerances do not follow a budget.

    Parameters
    ----------
    step_scale
        In place of D/G; :math:`\eta` is half of it times :math:`T^{-3/4}`.
    {options}

    References
    ----------
    Garber and Kretzu (2022), New projection-free algorithms for online convex optimization with
    adaptive regret guarantees, COLT; constants re-derived from a description of their Theorem 3.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.learners.LOOBOGD(dw.L2Ball(2), horizon=100, lipschitz=1.0)
    >>> learner.update(dw.losses.LinearLoss([1.0, 0.0]))
    0.0
    """

    def _plan(self, horizon: int) -> Plan:
        root = math.sqrt(horizon)
        tolerance = 180.0 * self.domain.radius**2 / root * self.options.tolerance_scale
        block = max(1, whole_below(5.0 * root))
        # The step is in units of D/G, and R is half of D.
        return Plan(0.5 * horizon**-0.75, block, tolerance, self.options.oracle.budget or 0.0)


class SOOGD(BOGDIP):
    r"""Online gradient descent with separations in place of projections.

    `BOGDIP` with blocks of one round, :math:`h = 1/\sqrt T`, a tolerance of :math:`(D h)^2` and method
    ``"separation"``: one gradient per round and, where the steps are those of known constants, at most
    :math:`8\kappa^2\ln(4\kappa) + 2` cuts, :math:`\kappa = R/r`, each of one gauge or of some tens of
    calls of a `SeparationDomain`'s function. They are counted as membership tests. Static regret is at most
    :math:`\tfrac{13}{8} G D \sqrt T`, that against comparators of path length P :math:`\tfrac12 G P\sqrt T` more;
    `bound` evaluates it with the parameters used, on intervals too.

    Parameters
    ----------
    domain
        A `SeparationDomain`, or a set with a gauge, its subgradient and an inner radius.
    {options}

    References
    ----------
    Garber and Kretzu (2022), New projection-free algorithms for online convex optimization with
    adaptive regret guarantees, COLT, SO-OGD; reconstructed, with deep cuts in place of a shrunk set.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.learners.SOOGD(dw.L1Ball(3), horizon=100, lipschitz=1.0)
    >>> history = dw.play(learner, [dw.losses.LinearLoss([1.0, 0.0, 0.0])] * 100)
    >>> learner.decision.round(2) + 0.0, learner.oracle_calls.membership < 200
    (array([-1.,  0.,  0.]), True)
    """

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        step_scale: float | None = None,
    ) -> None:
        if isinstance(domain, Domain) and not domain.can("separate"):
            raise ValueError(
                f"SOOGD separates points from the set, which {type(domain.unwrapped).__name__} cannot; "
                "use BOGDIP, which needs only linear minimisation"
            )
        super().__init__(domain, horizon, lipschitz, oracle="separation", step_scale=step_scale)

    def _plan(self, horizon: int) -> Plan:
        h = horizon**-0.5
        return Plan(h, 1, (self.options.D * h) ** 2)

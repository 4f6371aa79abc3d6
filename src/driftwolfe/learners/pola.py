"""POLA: projection-free online learning with adaptive regret."""

from __future__ import annotations

from driftwolfe.domains import Domain
from driftwolfe.ensemble import AdaNormalHedge, GeometricCover
from driftwolfe.ensemble.plan import (
    Plan,
    block_length,
    budgeted_plan,
    budgeted_step,
    cover_share,
    projection_eps,
)
from driftwolfe.learners import bounds
from driftwolfe.learners.cover_ensemble import CoverEnsemble
from driftwolfe.learners.options import make_options


class POLA(CoverEnsemble):
    r"""A `BOGDIP` for every interval of a geometric cover, combined by AdaNormalHedge (Algorithm 4).

    In round t an expert starts for every k with :math:`2^k | t` and plays for :math:`2^k` rounds with
    :math:`h = |I|^{-3/4}`, so :math:`\lfloor\log_2 t\rfloor + 1` are awake. Anytime: no horizon, no
    step size to tune.

    O(log t) gradients a round (one with linear feedback), O(log t) linear minimisations a round on
    average, or as few as `lmo_budget` says.

    Parameters
    ----------
    domain
        The set.
    horizon
        Accepted so that learners are made alike; not needed, and not used.
    lipschitz
        G, a bound on gradient norms; ``"auto"``: the largest norm seen so far.
    step_scale
        c in :math:`\eta = c h`, in place of D/G.
    loss_scale
        B, a bound on :math:`|f_t(x_t) - f_t(x_{t,I})|`: a number, ``"certified"`` (G * diameter), or
        ``"auto"``, the largest difference so far; the bound is then conditional, see
        `AdaNormalHedge`.
    tolerance_scale, accuracy, method, feedback, tuning, seed
        As for `POLD`.
    start
        Where new experts start: ``"current"``, the point played last, or ``"origin"``.
    lmo_budget
        Linear minimisations a round for all experts together; None: no limit. See Notes.
    schedule
        ``"blocks"``: calls are made when blocks end; ``"even"``: with a budget of 1, at most one in
        every single round.
    lazy
        Vertices to keep and to try before the set is asked (`Atoms`); for method ``"halfspace"``.

    Notes
    -----
    On every interval of length tau the regret is at most

    .. math:: 1.745\, a\, G D \tau^{3/4} + 3.415\, B \sqrt{3 c(T) \tau}, \quad
              a = \sqrt3 + \tfrac12 + v_0, \quad c(T) = O(\log T)

    and against comparators of path length P inside the interval
    :math:`O(\tau^{3/4}(1 + P/D)^{1/4})`, up to a logarithm, for the whole game too;
    ``bound(path_length=..., tau=...)`` evaluates them with all constants.

    With a budget b, the total of linear minimisations is at most b t after every round t; intervals
    of length :math:`2^k` share :math:`b_k = b/((k+1)(k+2))` of it. The certified tuning makes blocks and
    tolerances what that surely affords: on an interval of the cover regret is at most
    :math:`3.021\, G D\, (r v_0 (k+1)(k+2)/b)^{1/4} |I|^{3/4} + \tfrac r2 G D h |I|` (the last term, of
    lower order, for rounding blocks up) and the price of weighing, with r = 1, or 3 for the even
    schedule. That is a statement about long runs: with b = 1, experts on fewer than 256 rounds
    (even: 2048) never ask the set. It needs an exact oracle, see `POLD`. The practical tuning keeps
    its short blocks, and spends on any interval what nobody has a claim to.

    Errata of the paper resolved here: 1 (the weight function), 2 (experts leave after they have
    played), 3, 8, 12 (local clock), 13, 14, 18-20 (dynamic bound), 24, 25.

    References
    ----------
    Wang et al. (2024), Non-stationary projection-free online learning with dynamic and adaptive
    regret guarantees, AAAI, Theorems 3 and 4.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> learner = dw.POLA(dw.L1Ball(2), lipschitz=1.0)
    >>> for t in range(200):
    ...     suffered = learner.update(dw.losses.LinearLoss([1.0 if t < 100 else -1.0, 0.0]))
    >>> learner.decision.round(2)
    array([1., 0.])
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
        method: str = "auto",
        feedback: str = "full",
        start: str = "current",
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
            loss_scale=loss_scale,
            tolerance_scale=tolerance_scale,
            accuracy=accuracy,
            method=method,
            feedback=feedback,
            tuning=tuning,
            seed=seed,
            lmo_budget=lmo_budget,
            schedule=schedule,
            lazy=lazy,
        )
        meta = AdaNormalHedge(options.loss_scale)
        super().__init__(domain, options, GeometricCover(), meta, start)

    def _plan(self, length: int) -> Plan:
        squared, scale = (2.0 * self.domain.radius) ** 2, self.options.tolerance_scale
        share = (self.options.oracle.budget or 0.0) * cover_share(length)
        if self.options.planned:
            h = budgeted_step(length, bounds.ANYWHERE, share, self.options.delay_factor)
            plan = budgeted_plan(h, share, self.options.delay_factor)
            return plan._replace(tolerance=plan.tolerance * squared * scale, lifetime=length)
        h = float(length) ** -0.75
        tolerance = 3.0 * squared * projection_eps(h) * scale
        return Plan(h, block_length(h), tolerance, share, length)

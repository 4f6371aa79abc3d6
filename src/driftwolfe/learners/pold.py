"""POLD: projection-free online learning with dynamic regret."""

from __future__ import annotations

from collections.abc import Sequence

from driftwolfe.domains import Domain
from driftwolfe.ensemble.plan import (
    Plan,
    block_length,
    budgeted_grid,
    budgeted_plan,
    experiment_grid,
    grid_shares,
    paper_grid,
    pold_grid,
    projection_eps,
)
from driftwolfe.learners import bounds
from driftwolfe.learners.grid import GridEnsemble
from driftwolfe.learners.options import make_options

GRIDS = {
    "tight": lambda horizon: pold_grid(horizon, bounds.AT_CENTER),
    "paper": paper_grid,
    "experiment": experiment_grid,
}


class POLD(GridEnsemble):
    r"""Many `BOGDIP` with different step sizes, and Hedge tracking the best (Algorithm 3).

    .. math:: x_t = \sum_i w_t^i x_t^i, \qquad w_{t+1}^i \propto w_t^i\, e^{-a f_t(x_t^i)}

    Expert i runs BOGD_IP with :math:`h_i = 2^{i-1} h_1`, :math:`\eta_i = c h_i` (c = D/G),
    :math:`K_i = \lfloor h_i^{-2/3}\rfloor`, :math:`\epsilon_i = D^2 h_i^{2/3}`; there are
    :math:`N = O(\log T)`. The prior is :math:`(1 + 1/N)/(i(i+1))` and :math:`a = \sqrt{8/T}/B`.

    N gradients a round (one with linear feedback), O(log T) linear minimisations a round on
    average, or as few as `lmo_budget` says.

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
        B, the range of losses over the set in one round: a number, ``"certified"`` (G * diameter) or
        ``"auto"``, the largest range between experts so far.
    tolerance_scale
        Factor on the oracle's tolerances :math:`3\epsilon_i`.
    accuracy, method, seed
        Options of the oracle, see `infeasible_projection`.
    feedback
        ``"full"``: every expert its own gradient, as in the paper; ``"linear"``: one gradient a
        round, at :math:`x_t`, with the same bound.
    grid
        ``"tight"``: the steps with the best bound; ``"paper"``: those of the paper's theorem;
        ``"experiment"``: those of its experiments.
    tuning
        ``"practical"``: tolerance_scale 1e-6, loss_scale ``"auto"``; ``"certified"``: the paper's
        constants, tolerance_scale 1, loss_scale ``"certified"``.
    lmo_budget
        Linear minimisations a round for all experts together; None: no limit. See Notes.
    schedule
        ``"blocks"``: calls are made when blocks end; ``"even"``: with a budget of 1, at most one in
        every single round.
    lazy
        Vertices to keep and to try before the set is asked (`Atoms`); for method ``"halfspace"``.

    Notes
    -----
    With the tight grid, regret against any comparators of path length P is at most

    .. math::

        3.51\, G D T^{3/4} v^{1/4} + 1.94\, G D \sqrt{T P/D}
        + B \sqrt{T/8}\,(1 + 2\ln(k + 1)), \quad v = \tfrac18 + \tfrac{P}{2D}

    with :math:`k = \lfloor 0.75 \log_2(1 + 4P/D)\rfloor + 1`; `bound` evaluates the sharper form with
    the parameters used. A learned B keeps a guarantee of the same order (see `Hedge`).

    With a budget b, the total of linear minimisations is at most b t after every round t. In the
    certified tuning expert i has the share :math:`b_i = b (1 + 1/N)/(i(i+1))` of it, and its block and
    tolerance are what that surely affords; regret is then at most

    .. math::

        3.31\, G D\, (r v\, k(k+1)/b)^{1/4}\, T^{3/4} + (K_k - 1) G P
        + B \sqrt{T/8}\,(1 + 2\ln(k + 1)) + \tfrac r2 G D h_k T

    with r = 1, or r = 3 for the even schedule, and the last term, of lower order, for rounding blocks
    up. The theorem is for an exact oracle. Where that is inexact, as on a trace-norm ball with a shorter
    side above 48, a run may be cut short of its tolerance; the budget is kept, and `bound` allows for
    the distance that was left.

    The practical tuning keeps its short blocks and near-exact projections, gives all
    experts equal shares and lets them use what others leave over; where the budget ends a projection
    early, `bound` allows for the distance that was left, which may make it vacuous.

    Errata of the paper resolved here: 3 (units), 4 (c is a guess of D/G), 5, 7 (no step h > 1),
    8 (losses outside [0, 1]), 17, 22 (unknown T), 24 (one gradient), 25 (mean never formed).

    References
    ----------
    Wang et al. (2024), Non-stationary projection-free online learning with dynamic and adaptive
    regret guarantees, AAAI, Theorem 2.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> learner = dw.POLD(dw.L1Ball(2), horizon=200, lipschitz=1.0)
    >>> for t in range(200):
    ...     suffered = learner.update(dw.losses.LinearLoss([1.0 if t < 100 else -1.0, 0.0]))
    >>> learner.decision.round(2), learner.expert_weights.size
    (array([1., 0.]), 8)
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
        grid: str = "tight",
        tuning: str = "practical",
        seed: int = 0,
        lmo_budget: float | None = None,
        schedule: str = "blocks",
        lazy: int = 0,
    ) -> None:
        if grid not in GRIDS:
            known = ", ".join(f'"{name}"' for name in GRIDS)
            raise ValueError(f"grid must be one of {known}, got {grid!r}")
        self.grid = grid
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
        super().__init__(domain, options)

    def _plans(self, horizon: int) -> Sequence[Plan]:
        budget, squared = self.options.oracle.budget, (2.0 * self.domain.radius) ** 2
        if self.options.planned and budget is not None:
            return [
                plan._replace(tolerance=plan.tolerance * squared * self.options.tolerance_scale)
                for plan in self._budgeted_plans(horizon, budget)
            ]
        unit = 3.0 * squared * self.options.tolerance_scale
        steps = GRIDS[self.grid](horizon)
        share = (budget or 0.0) / len(steps)  # all alike: better than by prior, where measured
        return [Plan(float(h), block_length(h), unit * projection_eps(h), share) for h in steps]

    def _budgeted_plans(self, horizon: int, budget: float) -> Sequence[Plan]:
        """What every expert's share of the budget surely affords, in units of D = 1."""
        if self.grid == "tight":
            return budgeted_grid(horizon, bounds.AT_CENTER, budget, self.options.delay_factor)
        steps = GRIDS[self.grid](horizon)
        shares = budget * grid_shares(len(steps))
        pairs = zip(steps, shares, strict=True)
        return [
            budgeted_plan(float(h), float(share), self.options.delay_factor) for h, share in pairs
        ]

"""POLD: projection-free online learning with dynamic regret."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Unpack

import numpy as np

from driftwolfe import bounds
from driftwolfe.domains import Domain
from driftwolfe.ensemble import plan, pold_grid
from driftwolfe.ensemble.plan import Plan
from driftwolfe.learners.base import as_loss
from driftwolfe.learners.ensembles import GridLearner
from driftwolfe.learners.options import Options, WeightOptions, make_options
from driftwolfe.oracles import Oracle
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array


class POLD(GridLearner):
    r"""Projection-free learning that follows moving comparators: many step sizes, weighted by Hedge.

    POLD plays the weighted mean of N experts, as the best step depends on how far the comparators will move:

    .. math:: x_t = \sum_i w_t^i x_t^i, \qquad w_{t+1}^i \propto w_t^i\, e^{-a f_t(x_t^i)}

    Expert i is a `BOGDIP`: it sums gradients over blocks of :math:`K_i = \lfloor h_i^{-2/3}\rfloor` rounds, takes
    a step :math:`\eta_i = c h_i` with c = D/G, and projects infeasibly, by linear minimisations, with tolerance
    :math:`\epsilon_i = D^2 h_i^{2/3}`. The grid is :math:`h_i = 2^{i-1} h_1`, the prior
    :math:`(1 + 1/N)/(i(i+1))`, and the rate :math:`a = \sqrt{8/T}/B`. N gradients (one with linear feedback) and
    on average O(log T) LMO calls per round, or as few as the budget of its `Oracle` says. With the tight grid,
    regret against any comparators of path length P is at most

    .. math:: 3.51\, G D T^{3/4} v^{1/4} + 1.94\, G D \sqrt{T P/D} + B \sqrt{T/8}\,(1 + 2\ln(k + 1))

    with :math:`v = \tfrac18 + \tfrac P{2D}`, :math:`k = \lfloor 0.75 \log_2(1 + 4P/D)\rfloor + 1`; D is twice
    the radius of the set, G bounds gradient norms, B the range of losses in one round. `bound` evaluates a
    sharper form. `docs/theory/bounds.md` has the proof, `docs/theory/budget.md` the terms with a budget.

    Parameters
    ----------
    grid
        ``"tight"``: the steps with the best bound; ``"paper"``: those of the paper's theorem;
        ``"experiment"``: those of its experiments.
    {options}

    References
    ----------
    Wang et al. (2024), Non-stationary projection-free online learning with dynamic and adaptive
    regret guarantees, AAAI, Algorithm 2, Theorem 2; `docs/theory/errata.md` lists what is different here.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.POLD(dw.L1Ball(2), horizon=200, lipschitz=1.0)
    >>> for t in range(200):
    ...     suffered = learner.update(dw.losses.LinearLoss([1.0 if t < 100 else -1.0, 0.0]))
    >>> learner.decision.round(2), learner.expert_weights.size
    (array([1., 0.]), 8)
    """

    by_blocks = True

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
        grid: str = "tight",
        oracle: Oracle | str = "auto",
        **options: Unpack[WeightOptions],
    ) -> None:
        checks.one_of(grid, "grid", GRIDS)
        self.grid = grid
        checked = make_options(domain, horizon, lipschitz, oracle=oracle, **options)
        super().__init__(domain, checked, partial(_plans, checked, grid))


GRIDS: dict[str, Callable[[int], Array]] = {
    "tight": lambda horizon: pold_grid(horizon, bounds.AT_CENTER),
    "paper": plan.paper_grid,
    "experiment": plan.experiment_grid,
}


def _plans(options: Options, grid: str, horizon: int) -> list[Plan]:
    """One BOGD_IP for each step of the grid, with its part of the budget."""
    budget = options.oracle.budget or 0.0
    if options.planned and grid == "tight":
        best = plan.budgeted_grid(horizon, bounds.AT_CENTER, budget, options.delay_factor)
        steps = [each.step for each in best]
    else:
        steps = GRIDS[grid](horizon).tolist()
    number = len(steps)  # equal parts are better where measured, those of the prior are proved
    parts = plan.ader_prior(number) if options.planned else np.full(number, 1.0 / number)
    return [options.plan(h, budget * part) for h, part in zip(steps, parts.tolist(), strict=True)]

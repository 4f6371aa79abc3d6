"""POLD: projection-free online learning with dynamic regret."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, TypeAlias, Unpack

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.ensemble import (
    AdaHedge,
    Hedge,
    experiment_grid,
    paper_grid,
    pold_grid,
    threads,
)
from driftwolfe.ensemble.experts import combine, require_finite, stack
from driftwolfe.ensemble.list import ListDescent
from driftwolfe.ensemble.plan import SHARES, Plan, budgeted_grid
from driftwolfe.learners import bounds
from driftwolfe.learners.base import Epoch, Learner, Round, all_or_nothing, as_loss
from driftwolfe.learners.options import EnsembleOptions, Options, make_options
from driftwolfe.losses import FunctionLoss
from driftwolfe.points import checks
from driftwolfe.points.devices import to_host
from driftwolfe.points.kinds import Array, Point
from driftwolfe.points.rounding import near_largest
from driftwolfe.storage import require

GRIDS: dict[str, Callable[[int], Array]] = {
    "tight": lambda horizon: pold_grid(horizon, bounds.AT_CENTER),
    "paper": paper_grid,
    "experiment": experiment_grid,
}


#: The weights of so many experts for so many rounds.
Weights: TypeAlias = Callable[[int, int], Any]


class GridLearner(Learner):
    """A fixed number of experts, one for each step size of a grid, weighted by Hedge or AdaHedge.

    `plans` is the grid: the experts for an epoch of so many rounds, smallest step first. `experts` makes
    those of some plans on the counted set, at a point, and `weights` the weights of so many experts for
    so many rounds; by default these are gradient descents and Hedge.
    """

    STATE: ClassVar[tuple[str, ...]] = ("_epoch_start", "_epoch_length", "_experts", "_meta")
    PARTS = ("_experts", "_meta")
    options: Options
    _experts: Any

    def __init__(
        self,
        domain: Domain,
        options: Options,
        plans: Callable[[int], Sequence[Plan]],
        experts: Callable[[Domain, Sequence[Plan], Point], Any] | None = None,
        weights: Weights | None = None,
    ) -> None:
        super().__init__(domain)
        self.options = options
        self._plans = plans
        self._make_experts = experts or partial(Options.experts, options)
        self._make_weights = weights or partial(Hedge, loss_scale=options.loss_scale)
        self._begin(next(self._epochs()), domain.origin())

    def update(self, loss: Any, ticket: Any = None) -> float:
        """Play the mean of the experts; weigh them by their losses; let each take its step."""
        f = as_loss(loss)
        evaluation = self._experts.evaluate(f, self._meta.weights, self.options.linear)
        self._meta.update(evaluation.losses)
        self._experts.step(f, evaluation)
        self._next_round()
        self._experts.settle(self._meta.weights)
        return float(evaluation.value)

    @property
    def decision(self) -> Point:
        """The weighted mean of the experts' points."""
        return self._experts.mean(self._meta.weights)

    @property
    def expert_names(self) -> list[str]:
        """The step sizes; relative to c where that is learned."""
        c, steps = self.options.step_scale, [plan.step for plan in self._plans(self._epoch_length)]
        if c is None:
            return [f"h = {step:.3g}" for step in steps]
        return [f"η = {float(f'{c * step:.3g}'):,g}" for step in steps]

    @property
    def lipschitz(self) -> float:
        """G: the larger of what was given and the largest gradient norm seen."""
        return max(self.options.lipschitz or 0.0, self._experts.largest_gradient)

    def check_state(self) -> None:
        super().check_state()
        number = len(self._plans(self._epoch_length))
        require(self._experts.size == self._meta.size == number, "experts and weights")

    def _restart_point(self) -> Point:
        return self._experts.restart_point(self._meta.weights, lambda w: int(near_largest(w)[0]))

    def _begin(self, epoch: Epoch, start: Point) -> None:
        super()._begin(epoch, start)
        plans = self._plans(epoch.horizon)
        experts = self._make_experts(self._counted, plans, start)
        if self.t:
            experts.take_over(self._experts)
        self._experts, self._meta = experts, self._make_weights(len(plans), epoch.horizon)

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        if tau is not None:
            return None
        return self._over_epochs(partial(self._epoch_bound, path_length=path_length))

    def _epoch_bound(self, epoch: Epoch, path_length: float) -> float:
        """The best expert's bound plus the price of finding it."""
        plans = self._plans(epoch.horizon)
        return min(
            self._expert_bound(plan, epoch, path_length) + self._price(i, len(plans), epoch)
            for i, plan in enumerate(plans, start=1)
        )

    def _price(self, i: int, size: int, epoch: Epoch) -> float:
        """The regret of the weights against expert i.

        Losses of one round differ by at most G * diameter; none learns a larger range.
        """
        meta, spread = (
            self._make_weights(size, epoch.horizon),
            self.lipschitz * self._experts.diameter,
        )
        if spread == 0.0:
            return 0.0
        if isinstance(meta, Hedge):
            return float(meta.regret_bound(i, epoch.rounds, spread))
        if epoch.start == self._epoch_start:  # by the rate that it has
            return float(self._meta.regret_bound())
        return meta.regret_bound(0, epoch.rounds, spread)

    def _expert_bound(self, plan: Plan, epoch: Epoch, path_length: float) -> float:
        start = bounds.ANYWHERE if epoch.start else bounds.AT_CENTER
        return self.options.expert_bound(
            plan, self._experts, self.lipschitz, epoch.rounds, path_length, start
        )

    @property
    def runs_ahead(self) -> bool:
        """With several threads, where experts follow their own gradients at their own steps."""
        experts = self._experts
        alone = isinstance(experts, ListDescent) and experts.step_scale is not None
        return alone and experts.independent and not self.options.linear and threads.threads() > 1

    def update_many(self, losses: Sequence[Any]) -> list[Round]:
        # Experts run ahead in threads and are combined afterwards. A user's own functions are evaluated
        # in order and in one thread.
        own = any(isinstance(as_loss(loss), FunctionLoss) for loss in losses)
        if own or not (self.runs_ahead and self._experts.ahead_pays):
            return super().update_many(losses)
        rounds: list[Round] = []
        while len(rounds) < len(losses):
            left = None if self.options.horizon else self._epoch_start + self._epoch_length - self.t
            batch = losses[len(rounds) :][:left]
            try:
                rounds += self._run_ahead(batch)
            except Exception:  # nothing has changed: play up to the loss that is refused
                rounds += super().update_many(batch)
        return rounds

    @all_or_nothing
    def _run_ahead(self, losses: Sequence[Any]) -> list[Round]:
        functions, rounds = [as_loss(loss) for loss in losses], []
        experts, met = self._experts.run_ahead(functions)
        for f, each in zip(functions, met, strict=True):
            scores, values, slopes, calls = zip(*each, strict=True)
            value = float(f.value_at(combine(self._meta.weights, stack(scores))))
            suffered = to_host(stack(values))
            require_finite(value, suffered, *slopes)
            self._meta.update(suffered)
            rounds.append(Round(value, *map(sum, zip(*calls, strict=True))))
        self._experts = experts
        for done in rounds:
            self._counted.calls.add(*done[1:])
            self._next_round()
        return rounds


class POLD(GridLearner):
    r"""Projection-free learning that follows moving comparators: many step sizes, weighted by Hedge.

    POLD plays the weighted mean of N experts, one for each step size of a grid, since the best step
    depends on how far the comparators move, which nobody knows. Hedge weighs the experts by their losses:

    .. math:: x_t = \sum_i w_t^i x_t^i, \qquad w_{t+1}^i \propto w_t^i\, e^{-a f_t(x_t^i)}

    Expert i is a `BOGDIP`: it sums gradients over a block of :math:`K_i = \lfloor h_i^{-2/3}\rfloor`
    rounds, takes one step of size :math:`\eta_i = c h_i` with c = D/G, and replaces the projection
    onto the set by an infeasible projection of tolerance :math:`\epsilon_i = D^2 h_i^{2/3}`, which needs
    only linear minimisations (LMO calls). The grid is :math:`h_i = 2^{i-1} h_1`, with
    :math:`N = O(\log T)` steps, the prior :math:`w_1^i = (1 + 1/N)/(i(i+1))`, and the rate
    :math:`a = \sqrt{8/T}/B`.

    Per round it takes N gradients (one with linear feedback) and on average O(log T) LMO calls, or as
    few as `lmo_budget` says. Without a horizon T it plays epochs of doubling length.

    Parameters
    ----------
    grid
        ``"tight"``: the steps with the best bound; ``"paper"``: those of the paper's theorem;
        ``"experiment"``: those of its experiments.
    weights
        ``"hedge"``, the paper's; or ``"share"``: `AdaHedge`, which needs no range of losses and follows
        experts that are best in turn.
    shares
        How experts share a budget in the certified tuning: ``"prior"``, :math:`(1 + 1/N)/(i(i+1))`, which
        favours short paths; or ``"mixed"``, the mean of that and equal shares, for long ones.
    {options}

    Notes
    -----
    With the tight grid, regret against any comparators of path length P is at most

    .. math::

        3.51\, G D T^{3/4} v^{1/4} + 1.94\, G D \sqrt{T P/D}
        + B \sqrt{T/8}\,(1 + 2\ln(k + 1)), \quad v = \tfrac18 + \tfrac{P}{2D}

    with :math:`k = \lfloor 0.75 \log_2(1 + 4P/D)\rfloor + 1`, where D is twice the radius of the set,
    G bounds gradient norms, and B the range of losses over the set in one round. `bound` evaluates the
    sharper form with the parameters used. A learned B keeps a guarantee of the same order (see `Hedge`); with
    ``weights="share"`` the last term is that of `AdaHedge`, against one expert.

    With a budget b and the certified tuning, expert i has the share
    :math:`b_i = b (1 + 1/N)/(i(i+1))` of it, and the first term becomes
    :math:`3.31\, G D\, (v\, k(k+1)/b)^{1/4}\, T^{3/4}`, or :math:`3^{1/4}` times that with the even schedule.
    Mixed shares have the smaller of :math:`2k(k+1)` and 2N for :math:`k(k+1)`.
    `docs/theory/budget.md` has all terms. An oracle that is inexact, as on a trace-norm ball with a
    shorter side above 48, may be cut short of its tolerance. In the practical tuning all experts have
    equal shares, and the bound may be vacuous.

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

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        grid: str = "tight",
        weights: str = "hedge",
        shares: str = "prior",
        **options: Unpack[EnsembleOptions],
    ) -> None:
        checks.one_of(grid, "grid", GRIDS)
        checks.one_of(weights, "weights", ("hedge", "share"))
        checks.one_of(shares, "shares", SHARES)
        self.grid = grid
        if weights == "share" and options.get("loss_scale") is None:  # no range to certify
            options["loss_scale"] = "auto"
        checked = make_options(domain, horizon, lipschitz, **options)
        plans = partial(_plans, checked, grid, shares)
        super().__init__(domain, checked, plans, weights=_share if weights == "share" else None)


def _share(size: int, horizon: int) -> AdaHedge:
    """Weights that need to know no horizon."""
    return AdaHedge(size)


def _plans(options: Options, grid: str, shares: str, horizon: int) -> list[Plan]:
    """One BOGD_IP for each step of the grid, with its share of the budget."""
    budget = options.oracle.budget or 0.0
    if options.planned and grid == "tight":
        best = budgeted_grid(horizon, bounds.AT_CENTER, budget, options.delay_factor, shares)
        steps = [plan.step for plan in best]
    else:
        steps = GRIDS[grid](horizon).tolist()
    number = len(steps)  # equal shares are better where measured, those of the prior are proved
    parts = SHARES[shares](number) if options.planned else np.full(number, 1.0 / number)
    return [options.plan(h, budget * part) for h, part in zip(steps, parts.tolist(), strict=True)]

"""Multi-OCG: online conditional gradient with restarts at many rates."""

from __future__ import annotations

import math
from functools import partial
from typing import Unpack

from driftwolfe.bounds.ensembles import best_expert, leader_regret
from driftwolfe.domains import Domain
from driftwolfe.ensemble import Hedge
from driftwolfe.ensemble.leaders import Leaders
from driftwolfe.ensemble.plan import Plan
from driftwolfe.learners.base import Epoch
from driftwolfe.learners.ensembles import GridLearner, anytime
from driftwolfe.learners.options import WeightOptions, make_options
from driftwolfe.points import checks


class MultiOCG(GridLearner):
    r"""Online conditional gradient restarted every :math:`\gamma_i = 2^{i-1}` rounds, Hedge over i.

    Each expert follows the regularised leader inside its epochs, by Frank-Wolfe to a gap of
    :math:`D^2/\gamma_i` (see `Leaders`); :math:`\eta_i = c/\sqrt{\gamma_i}`, c = 2D/G. N gradients
    per round (one with linear feedback) and O(log T) Frank-Wolfe runs of at most
    :math:`8\gamma_i + 1` LMO calls, few in practice as each starts from the last.

    Each epoch has regret at most :math:`2 G D\sqrt\gamma`. Against comparators of path length P,
    :math:`\min_\gamma (T/\gamma + 1)\,2GD\sqrt\gamma + \gamma G P` plus the regret of the weights; against
    minimisers, :math:`2\gamma V_T` in place of the last term, V_T the function variation
    (``bound(2 * V_T / G)``). With
    `strong_convexity` and a given G that no gradient exceeds, an epoch has at most about
    :math:`2.41\,(G^2/\lambda)\ln\gamma` (`bounds.strongly_convex_leader`), and weights at the rate
    :math:`\lambda/G^2`, with full feedback, cost :math:`(G^2/\lambda)\ln(1/p_i)` (`docs/theory/benign.md`).

    Parameters
    ----------
    horizon
        Rounds T; sets the number of epoch lengths, :math:`\lceil\log_2 T\rceil + 1`, and the rate of
        the weights. None: epochs of doubling length.
    step_scale
        c, in place of 2D/G.
    strong_convexity
        :math:`\lambda` of the losses, in [f]/[x]², for the strongly convex version, or None.
    max_inner
        Limit on LMO calls per expert and round; the bound is lost once it cuts a run short.
    tuning
        ``"practical"``: max_inner 20, loss_scale ``"auto"``; ``"certified"``: no limit, G * diameter.
    {options}

    References
    ----------
    Wan, Xue and Zhang (2021), Projection-free online learning in dynamic environments, AAAI; reconstructed from the
    abstract and an extract. Its experiments make 4 steps per round and tune the rate of the weights.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.learners.MultiOCG(dw.L1Ball(2), horizon=100, lipschitz=1.0)
    >>> history = dw.play(learner, [dw.losses.LinearLoss([1.0, 0.0])] * 100)
    >>> bool(learner.decision[0] < -0.8), learner.oracle_calls.projection
    (True, 0)
    """

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        strong_convexity: float | None = None,
        max_inner: int | None = None,
        **options: Unpack[WeightOptions],
    ) -> None:
        if max_inner is None and options.get("tuning", "practical") == "practical":
            max_inner = 20
        self.max_inner = None if max_inner is None else checks.count(max_inner, "max_inner")
        if strong_convexity is not None:
            strong_convexity = checks.positive(strong_convexity, "strong_convexity")
        self.strong_convexity = curvature = strong_convexity
        checked = make_options(domain, horizon, lipschitz, **options)
        scale, G = checked.step_scale, checked.lipschitz
        if scale is not None and options.get("step_scale") is None:
            scale *= 2.0  # the default step is c = 2D/G where other learners have D/G
        experts = partial(
            Leaders, step_scale=scale, strong_convexity=curvature, max_calls=self.max_inner
        )
        # Strongly convex losses are exp-concave: a constant rate lambda/G^2 pays only a log.
        weights = None
        if curvature is not None and G is not None:
            weights = partial(anytime, Hedge, horizon=8, loss_scale=G**2 / curvature)
        super().__init__(domain, checked, _plans, experts, weights)

    @property
    def expert_names(self) -> list[str]:
        """The rounds between their restarts."""
        return [f"γ = {plan.lifetime:,}" for plan in self._plans(self._epoch_length)]

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        options, G = self.options, self.options.lipschitz
        proved = self._experts.step_scale is not None
        if self.strong_convexity is not None:  # the rate of the weights is for the given G
            proved = G is not None and self.lipschitz <= G * (1.0 + 1e-9) and not options.linear
        if not proved or self._experts.cut_short or not options.horizon:
            return None
        return super()._bound(path_length, tau)

    def _epoch_bound(self, epoch: Epoch, path_length: float) -> float:
        G, D, curvature = self.lipschitz, self.options.D, self.strong_convexity
        scale, game = self._experts.scale_for(G), (epoch.rounds, path_length, curvature)
        regrets = [
            leader_regret(G, D, scale / math.sqrt(plan.lifetime), plan.lifetime, *game)
            for plan in self._plans(epoch.horizon)
        ]
        if curvature is None:
            spread = G * self._experts.diameter
            return best_expert(regrets, self._weights_of(epoch), spread, epoch.rounds)
        finding = [-math.log(p) * G**2 / curvature for p in self._meta.prior]
        return min(own + cost for own, cost in zip(regrets, finding, strict=True))


def _plans(horizon: int) -> list[Plan]:
    """An expert for each epoch length 1, 2, 4, ... up to the first that is at least the horizon."""
    lengths = [1 << i for i in range((horizon - 1).bit_length() + 1)]
    return [Plan(1.0 / math.sqrt(length), 1, 0.0, lifetime=length) for length in lengths]

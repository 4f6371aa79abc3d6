"""Multi-OCG: restarted online conditional gradient for many epoch lengths."""

from __future__ import annotations

import math
from typing import Unpack

from driftwolfe.domains import Domain
from driftwolfe.ensemble import Hedge
from driftwolfe.ensemble.leaders import GapRule, Leaders
from driftwolfe.ensemble.plan import Plan
from driftwolfe.learners.epochs import Epoch
from driftwolfe.learners.options import WeightOptions
from driftwolfe.learners.pold import GridLearner
from driftwolfe.points import checks
from driftwolfe.points.kinds import Point

#: LMO calls per expert and round in the practical tuning.
_PRACTICAL_INNER = 20


class MultiOCG(GridLearner):
    r"""Online conditional gradient restarted every :math:`\gamma_i = 2^{i-1}` rounds, Hedge over i.

    Each expert follows the regularised leader inside its epochs, by Frank-Wolfe to a gap of
    :math:`D^2/\gamma_i` (see `Leaders`); :math:`\eta_i = c/\sqrt{\gamma_i}`, c = 2D/G. N gradients
    per round (one with linear feedback) and O(log T) Frank-Wolfe runs of at most
    :math:`8\gamma_i + 1` LMO calls, few in practice as each starts from the last.

    Parameters
    ----------
    horizon
        Rounds T; sets the number of epoch lengths, :math:`\lceil\log_2 T\rceil + 1`, and the rate of
        the weights. None: epochs of doubling length.
    step_scale
        c, in place of 2D/G.
    tolerance_scale
        Factor on the gaps that Frank-Wolfe runs to; 1 in both tunings, and larger loses the bound.
    accuracy
        Stop a run also at a gap of this share of the squared distance to its target; the bound is
        lost once that ends a run early.
    strong_convexity
        :math:`\lambda` of the losses, in [f]/[x]², for the strongly convex version; None for convex losses.
    max_inner
        Limit on LMO calls per expert and round; the bound is lost once it cuts a run
        short. The original's experiments have 4.
    tuning
        ``"practical"``: max_inner 20, loss_scale ``"auto"``; ``"certified"``: no limit, G * diameter.
    {options}

    Notes
    -----
    Each epoch has regret at most :math:`2 G D\sqrt\gamma`. Against comparators of path length P,
    :math:`\min_\gamma (T/\gamma + 1)\,2GD\sqrt\gamma + \gamma G P` plus the price of the meta; against
    minimisers, :math:`2\gamma V_T` in place of the last term, V_T the function variation.

    Reconstructed from the abstract and an extract: the original (AAAI 2021) could not be read in
    full. Its experiments make K = 4 conditional-gradient steps per round, with the rate of the weights
    tuned; here a run goes on to its gap, in at most `max_inner` steps, and the rate is that of the
    theory. Known for sure are the improved OCG tuned to V_T, several instances, a meta-algorithm,
    and the rates :math:`O(\max\{T^{2/3}V_T^{1/3}, \sqrt T\})` and, for strongly convex losses,
    :math:`O(\max\{\sqrt{T V_T\log T}, \log T\})`.

    References
    ----------
    Wan, Xue and Zhang (2021), Projection-free online learning in dynamic environments, AAAI.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.MultiOCG(dw.L1Ball(2), horizon=100, lipschitz=1.0)
    >>> for _ in range(100):
    ...     suffered = learner.update(dw.losses.LinearLoss([1.0, 0.0]))
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
        if options.get("tolerance_scale") is None:
            options["tolerance_scale"] = 1.0
        if max_inner is None and options.get("tuning", "practical") == "practical":
            max_inner = _PRACTICAL_INNER
        self.max_inner = None if max_inner is None else checks.count(max_inner, "max_inner")
        self.strong_convexity = strong_convexity
        if strong_convexity is not None:
            self.strong_convexity = checks.positive(strong_convexity, "strong_convexity")
        self._own_step = options.get("step_scale") is not None
        self._own_accuracy = options.get("accuracy") is not None
        super().__init__(domain, horizon, lipschitz, **options)

    @property
    def expert_names(self) -> list[str]:
        """The rounds between their restarts."""
        return [f"γ = {plan.lifetime:,}" for plan in self._plans(self._epoch_length)]

    def bound(
        self, path_length: float = 0.0, tau: int | None = None, variation: float | None = None
    ) -> float:
        """Return the bound for convex losses; see `Learner.bound`.

        Parameters
        ----------
        path_length
            That of the comparators.
        tau
            Not offered.
        variation
            V_T: if given, the bound is against the minimiser of each round, whatever path these
            take; then leave `path_length` out.
        """
        if variation is None:
            return super().bound(path_length, tau)
        if path_length:
            raise ValueError(
                "give path_length or variation, not both: with variation the bound is against "
                "the minimiser of each round"
            )
        drift, G = 2.0 * checks.nonnegative(variation, "variation"), self.lipschitz
        return super().bound(drift / G if G > 0 else 0.0, tau)  # 2 V_T takes the place of G P

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        proved = self._experts.step_scale is not None and self.strong_convexity is None
        loose = self._experts.cut_short or self.options.tolerance_scale > 1.0
        if not proved or loose or not self.options.horizon:
            return None
        return super()._bound(path_length, tau)

    def _expert_bound(self, plan: Plan, epoch: Epoch, path_length: float) -> float:
        """D^2/eta + eta G^2 gamma/4 + G gamma sqrt(gap) for each of its epochs, and gamma G P."""
        G, D, gamma = self.lipschitz, self.options.D, plan.lifetime
        eta = self._experts.scale_for(G) / math.sqrt(gamma)
        one = D**2 / eta + eta * G**2 * gamma / 4.0 + G * gamma * D / math.sqrt(gamma)
        return math.ceil(epoch.rounds / gamma) * one + gamma * G * path_length

    def _plans(self, horizon: int) -> list[Plan]:
        """An expert for each epoch length 1, 2, 4, ... up to the first that is at least the horizon."""
        lengths = [1 << i for i in range((horizon - 1).bit_length() + 1)]
        return [Plan(1.0 / math.sqrt(length), 1, 0.0, lifetime=length) for length in lengths]

    def _make_experts(self, horizon: int, start: Point) -> Leaders:
        options, scale = self.options, self.options.step_scale
        accuracy = options.oracle.accuracy if self._own_accuracy else None
        if scale is not None and not self._own_step:
            scale *= 2.0  # the default step is c = 2D/G where other learners have D/G
        leaders = Leaders(
            self._counted,
            [plan.lifetime for plan in self._plans(horizon)],
            start,
            step_scale=scale,
            strong_convexity=self.strong_convexity,
            stopping=GapRule(options.tolerance_scale, accuracy, self.max_inner),
        )
        leaders.largest_gradient = self._experts.largest_gradient if self.t else 0.0
        return leaders

    def _make_meta(self, horizon: int) -> Hedge:
        G = self.options.lipschitz
        if self.strong_convexity is None or G is None:
            return super()._make_meta(horizon)
        # Strongly convex losses are exp-concave: a constant rate lambda/G^2 pays only a log.
        size = len(self._plans(horizon))
        return Hedge(size, horizon=8, loss_scale=G**2 / self.strong_convexity)

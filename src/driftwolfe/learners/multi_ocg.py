"""Multi-OCG: restarted online conditional gradient for many epoch lengths."""

from __future__ import annotations

import math
from typing import Unpack, cast

from driftwolfe.domains import Domain
from driftwolfe.ensemble import Hedge
from driftwolfe.ensemble.leaders import Leaders
from driftwolfe.ensemble.plan import Plan
from driftwolfe.learners import bounds
from driftwolfe.learners.base import Learner
from driftwolfe.learners.options import WeightOptions, make_options
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
    domain
        The set.
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
        checked = make_options(domain, horizon, lipschitz, **options)
        if max_inner is None and options.get("tuning", "practical") == "practical":
            max_inner = _PRACTICAL_INNER
        self.max_inner = None if max_inner is None else checks.count(max_inner, "max_inner")
        self.strong_convexity = strong_convexity
        if strong_convexity is not None:
            self.strong_convexity = checks.positive(strong_convexity, "strong_convexity")
        self._accuracy = None if options.get("accuracy") is None else checked.oracle.accuracy
        # The default step is c = 2D/G where other learners have D/G.
        doubled = options.get("step_scale") is None and checked.step_scale is not None
        self._scale = 2.0 * (checked.step_scale or 0.0) if doubled else checked.step_scale
        super().__init__(domain, checked, _plans)

    @property
    def _leaders(self) -> Leaders:
        return cast(Leaders, self._experts)

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
        path_length, tau = bounds.asked(path_length, tau)
        if variation is not None:
            variation = checks.nonnegative(variation, "variation")
            if path_length:
                raise ValueError(
                    "give path_length or variation, not both: with variation the bound is against "
                    "the minimiser of each round"
                )
        proved = self._scale is not None and self.strong_convexity is None
        loose = self._leaders.cut_short or self.options.tolerance_scale > 1.0
        if tau is not None or not proved or loose or not self.options.horizon:
            return Learner.bound(self, path_length, tau)  # none is known
        G, D = self.lipschitz, 2.0 * self.domain.radius
        return min(
            self._epoch_bound(1 << i, G, D)
            + (1 << i) * (G * path_length if variation is None else 2.0 * variation)
            + self._meta.regret_bound(i + 1, max(1, self.t), G * self.domain.diameter)
            for i in range(self._experts.size)
        )

    def _epoch_bound(self, gamma: int, G: float, D: float) -> float:
        """All epochs: D^2/eta + eta G^2 gamma/4 + G gamma sqrt(gap) each."""
        eta = self._leaders.scale_for(G) / math.sqrt(gamma)
        one = D**2 / eta + eta * G**2 * gamma / 4.0 + G * gamma * D / math.sqrt(gamma)
        return math.ceil(self.t / gamma) * one

    def _make_experts(self, horizon: int, start: Point) -> Leaders:
        leaders = Leaders(
            self._counted,
            [plan.lifetime for plan in self._plans(horizon)],
            start,
            self._scale,
            self.strong_convexity,
            self.options.tolerance_scale,
            self._accuracy,
            self.max_inner,
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


def _plans(horizon: int) -> list[Plan]:
    """An expert for each epoch length 1, 2, 4, ... up to the first that is at least the horizon."""
    lengths = [1 << i for i in range((horizon - 1).bit_length() + 1)]
    return [Plan(1.0 / math.sqrt(length), 1, 0.0, lifetime=length) for length in lengths]

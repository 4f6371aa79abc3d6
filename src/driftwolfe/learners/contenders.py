"""The contenders of the paper's methods that are ensembles: Ader, SAOL, PAMO, Multi-OCG."""

from __future__ import annotations

import math
from functools import partial
from typing import Unpack

from driftwolfe.domains import Domain
from driftwolfe.ensemble import Hedge, MultiplicativeWeights, ader_grid
from driftwolfe.ensemble.dense import GaugeDescent
from driftwolfe.ensemble.leaders import Leaders
from driftwolfe.ensemble.plan import Plan
from driftwolfe.learners import bounds
from driftwolfe.learners.base import Epoch
from driftwolfe.learners.options import (
    Options,
    WeightOptions,
    make_options,
    require_projection,
)
from driftwolfe.learners.pola import CoverLearner
from driftwolfe.learners.pold import GridLearner
from driftwolfe.points import checks


class Ader(GridLearner):
    r"""Gradient descent with many step sizes and exact projections, and Hedge over them.

    .. math:: x^i_{t+1} = P_K(x^i_t - \eta_i \nabla f_t(x^i_t)), \quad
              \eta_i = c\, 2^{i-1}\sqrt{7/(2T)}, \quad c = D/G

    N projections and N gradients per round, :math:`N = O(\log T)`; the improved Ader,
    ``feedback="linear"``, has one gradient. Regret at most
    :math:`\tfrac{3G}{4}\sqrt{2T(7D^2 + 4DP)} + B\sqrt{T/8}(1 + 2\ln(k+1))`; `bound` evaluates the sharper
    :math:`\min_i (D^2/8 + DP/2)/\eta_i + \eta_i T G^2/2 + \dots`. Constants re-derived; with linear
    feedback the rate of the weights is twice the original's.

    Parameters
    ----------
    domain
        A set that can project, unless `method` is another than ``"exact"``.
    {options}

    References
    ----------
    Zhang, Lu and Zhou (2018), Adaptive online learning in dynamic environments, NeurIPS.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.Ader(dw.L2Ball(2), horizon=50, lipschitz=1.0)
    >>> history = dw.play(learner, [dw.losses.LinearLoss([1.0, 0.0])] * 50)
    >>> learner.decision.round(3), learner.oracle_calls.projection
    (array([-1.,  0.]), 200)
    """

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        method: str = "exact",
        **options: Unpack[WeightOptions],
    ) -> None:
        checked = make_options(domain, horizon, lipschitz, method=method, **options)
        if method == "exact":
            require_projection(domain, "Ader", "POLD")
        super().__init__(domain, checked, partial(_ader_plans, checked))


def _ader_plans(options: Options, horizon: int) -> list[Plan]:
    return [options.unblocked_plan(h) for h in ader_grid(horizon).tolist()]


class SAOL(CoverLearner):
    r"""Projected gradient descent on every interval of a geometric cover, multiplicative weights.

    The expert on I steps with :math:`\eta = c/\sqrt{|I|}`, c = D/G; weights start at
    :math:`\eta_I = \min(1/2, 1/\sqrt{|I|})` and are multiplied by
    :math:`1 + \eta_I (f_t(x_t) - f_t(x_{t,I}))/B`. O(log t) gradients and projections per round. Regret
    :math:`O(\sqrt{\tau(1 + P/D)}\log T)` on every interval of length tau, against comparators of path
    length P inside it; `bound` has the constants, derived here and not the original's.

    Parameters
    ----------
    domain, horizon
        A set that can project, unless `method` is another than ``"exact"``; the horizon is not used.
    {options}

    References
    ----------
    Daniely, Gonen and Shalev-Shwartz (2015), Strongly adaptive online learning, ICML.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.SAOL(dw.L2Ball(2), lipschitz=1.0)
    >>> for t in range(100):
    ...     suffered = learner.update(dw.losses.LinearLoss([1.0 if t < 50 else -1.0, 0.0]))
    >>> bool(learner.decision[0] > 0.5)
    True
    """

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        method: str = "exact",
        start: str = "current",
        **options: Unpack[WeightOptions],
    ) -> None:
        checked = make_options(domain, horizon, lipschitz, method=method, **options)
        if method == "exact":
            require_projection(domain, "SAOL", "POLA")
        meta = MultiplicativeWeights(checked.loss_scale)
        super().__init__(domain, checked, partial(_saol_plan, checked), meta, start)


def _saol_plan(options: Options, length: int) -> Plan:
    return options.unblocked_plan(length**-0.5, length)


class PAMO(CoverLearner):
    r"""Projection-free adaptive regret with membership oracles (reconstructed).

    On every interval I of a geometric cover, gradient descent in the ball R B with
    :math:`\eta = c/\sqrt{|I|}`, :math:`c = D/((1 + \kappa) G)`, reduced to the set by its gauge
    (`GaugeDescent`); multiplicative weights as in `SAOL`. :math:`\kappa = R/r` is the aspect ratio
    of the set, :math:`\sqrt{\min(m, n)}` for a trace-norm ball. Every expert needs a gauge per round:
    O(log T) membership tests by bisection, or one exact evaluation where the set offers it. Regret
    :math:`O((1 + \kappa)\sqrt{\tau(1 + P/D)}\log T)` on every interval of length tau, against
    comparators of path length P inside it; `bound` has the constants.

    Parameters
    ----------
    domain
        A set with a gauge and a known inner radius; dense points.
    horizon
        Rounds T: sets the accuracy of the bisection, :math:`1/(\kappa T^2)`; 10,000 where None.
    accuracy, tolerance_scale
        Accuracy of the bisection, or a factor on the default one; 1 in both tunings.
    gauge
        ``"bisection"``: on membership; ``"exact"``: the set's own gauge.
    steps
        ``"agile"``: each step starts at the last point; ``"lazy"``: where the expert started, by the sum
        of its gradients so far. Lazy ones have the same bound against a fixed point, and a comparator of
        path length P inside an interval I adds :math:`G |I| P`.
    {options}

    Notes
    -----
    Reconstructed from the abstract, "a simple lazy gradient-based algorithm with a Minkowski
    regularization", and from the paper that compares with it: not the published algorithm. Lazy
    steps are nearer to those words; the regularisation is the gauge in the
    gradient; the constants of the weights are SAOL's.

    References
    ----------
    Lu, Brukhim, Gradu and Hazan (2023), Projection-free adaptive regret with membership oracles,
    ALT; Mhammedi (2022), Efficient projection-free online convex optimization with membership
    oracle, COLT.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.PAMO(dw.L1Ball(2), lipschitz=1.0, gauge="exact")
    >>> for t in range(100):
    ...     suffered = learner.update(dw.losses.LinearLoss([1.0 if t < 50 else -1.0, 0.0]))
    >>> learner.oracle_calls.projection, bool(learner.decision[0] > 0.3)
    (0, True)
    """

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        gauge: str = "bisection",
        steps: str = "agile",
        start: str = "current",
        **options: Unpack[WeightOptions],
    ) -> None:
        checks.one_of(gauge, "gauge", ("bisection", "exact"))
        checks.one_of(steps, "steps", ("agile", "lazy"))
        lazy = steps == "lazy"
        if options.get("tolerance_scale") is None:
            options["tolerance_scale"] = 1.0
        checked = make_options(domain, horizon, lipschitz, **options)
        gauged = domain.can("gauge") and domain.can("gauge_subgradient")
        if not (gauged and domain.inner_radius > 0):
            raise ValueError(
                "PAMO needs a gauge, its subgradient and an inner radius, which "
                f"{type(domain.unwrapped).__name__} does not offer; use POLA, which needs only "
                "linear minimisation"
            )
        if not hasattr(domain.origin(), "flat"):
            raise ValueError(
                "PAMO works on dense arrays; for a large trace-norm ball say "
                'representation="dense", or use POLA'
            )
        self.gauge, self.steps = gauge, steps
        self.kappa = domain.radius / domain.inner_radius
        step_scale = checked.step_scale
        if step_scale is not None and options.get("step_scale") is None:
            # Surrogate gradients are up to 1 + kappa times as long as true ones.
            step_scale /= 1.0 + self.kappa
        bisection = None
        if gauge == "bisection":
            T = checked.horizon or 10_000
            default = min(0.5, checked.tolerance_scale / (self.kappa * T**2))
            bisection = default if options.get("accuracy") is None else checked.oracle.accuracy
        super().__init__(
            domain,
            checked,
            _pamo_plan,
            MultiplicativeWeights(checked.loss_scale),
            start,
            lambda counted, *_: GaugeDescent(counted, checked.oracle, step_scale, bisection, lazy),
        )

    def _expert_bound(self, length: int, path_length: float = 0.0) -> float:
        if self.steps == "agile":
            return super()._expert_bound(length, path_length)
        G, found = self.lipschitz, self._experts
        eta = found.scale_for(G) * self._plan(length).step
        static = bounds.lazy_descent(
            found.gradient_factor * G,
            self.options.D,
            eta,
            eta * length,
            longest=1,
            apart=0.0,
            shrinking_steps=self.options.step_scale is None,
        )
        return static + G * length * path_length


def _pamo_plan(length: int) -> Plan:
    return Plan(1.0 / math.sqrt(length), 1, 0.0, lifetime=length)


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
        Stop a run also at a gap of this share of the squared distance to its target, which may lose
        the bound.
    strong_convexity
        :math:`\lambda` of the losses, in [f]/[x]², for the strongly convex version, or None.
    max_inner
        Limit on LMO calls per expert and round; the bound is lost once it cuts a run short.
    tuning
        ``"practical"``: max_inner 20, loss_scale ``"auto"``; ``"certified"``: no limit, G * diameter.
    {options}

    Notes
    -----
    Each epoch has regret at most :math:`2 G D\sqrt\gamma`. Against comparators of path length P,
    :math:`\min_\gamma (T/\gamma + 1)\,2GD\sqrt\gamma + \gamma G P` plus the price of the meta; against
    minimisers, :math:`2\gamma V_T` in place of the last term, V_T the function variation.

    With `strong_convexity` and a given G that no gradient exceeds, an epoch has at most about
    :math:`2.41\,(G^2/\lambda)\ln\gamma` (`bounds.strongly_convex_leader`), and the meta, at the rate
    :math:`\lambda/G^2` and with full feedback, costs :math:`(G^2/\lambda)\ln(1/p_i)`. Proof in
    `docs/theory/benign.md`.

    Reconstructed from the abstract and an extract. The original's experiments make 4 steps per round and
    tune the rate of the weights; here a run goes on to its gap, and the rate is that of the theory.

    References
    ----------
    Wan, Xue and Zhang (2021), Projection-free online learning in dynamic environments, AAAI.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.MultiOCG(dw.L1Ball(2), horizon=100, lipschitz=1.0)
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
        if options.get("tolerance_scale") is None:
            options["tolerance_scale"] = 1.0
        if max_inner is None and options.get("tuning", "practical") == "practical":
            max_inner = 20
        self.max_inner = None if max_inner is None else checks.count(max_inner, "max_inner")
        self.strong_convexity = strong_convexity
        if strong_convexity is not None:
            self.strong_convexity = checks.positive(strong_convexity, "strong_convexity")
        checked = make_options(domain, horizon, lipschitz, **options)
        scale, G, curvature = checked.step_scale, checked.lipschitz, self.strong_convexity
        if scale is not None and options.get("step_scale") is None:
            scale *= 2.0  # the default step is c = 2D/G where other learners have D/G
        experts = partial(
            Leaders,
            step_scale=scale,
            strong_convexity=curvature,
            gap_scale=checked.tolerance_scale,
            accuracy=options.get("accuracy") and checked.oracle.accuracy,
            max_calls=self.max_inner,
        )
        # Strongly convex losses are exp-concave: a constant rate lambda/G^2 pays only a log.
        weights = None if curvature is None or G is None else partial(_steady, G**2 / curvature)
        super().__init__(domain, checked, _ocg_plans, experts, weights)

    @property
    def expert_names(self) -> list[str]:
        """The rounds between their restarts."""
        return [f"γ = {plan.lifetime:,}" for plan in self._plans(self._epoch_length)]

    def bound(
        self, path_length: float = 0.0, tau: int | None = None, variation: float | None = None
    ) -> float:
        """Return the bound, for convex losses or strongly convex ones.

        Parameters
        ----------
        path_length, tau
            That of the comparators; `tau` is not offered.
        variation
            V_T, in place of `path_length`, for the bound against the minimiser of each round.
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
        options = self.options
        proved = self._experts.step_scale is not None
        if self.strong_convexity is not None:  # the rate of the weights is for the given G
            G = options.lipschitz
            proved = G is not None and self.lipschitz <= G * (1.0 + 1e-9) and not options.linear
        loose = self._experts.cut_short or options.tolerance_scale > 1.0
        if not proved or loose or not options.horizon:
            return None
        return super()._bound(path_length, tau)

    def _price(self, i: int, size: int, epoch: Epoch) -> float:
        if self.strong_convexity is None:
            return super()._price(i, size, epoch)
        return -math.log(self._meta.prior[i - 1]) * self.lipschitz**2 / self.strong_convexity

    def _expert_bound(self, plan: Plan, epoch: Epoch, path_length: float) -> float:
        """D^2/eta + eta G^2 gamma/4 + G gamma sqrt(gap) for each of its epochs, and gamma G P."""
        G, D, gamma = self.lipschitz, self.options.D, plan.lifetime
        if self.strong_convexity is not None:
            whole, rest = divmod(epoch.rounds, gamma)
            one, last = (
                bounds.strongly_convex_leader(G, self.strong_convexity, rounds)
                for rounds in (gamma, rest)
            )
            return whole * one + last + gamma * G * path_length
        eta = self._experts.scale_for(G) / math.sqrt(gamma)
        one = D**2 / eta + eta * G**2 * gamma / 4.0 + G * gamma * D / math.sqrt(gamma)
        return math.ceil(epoch.rounds / gamma) * one + gamma * G * path_length


def _steady(loss_scale: float, size: int, horizon: int) -> Hedge:
    """Weights whose rate does not depend on the horizon."""
    return Hedge(size, horizon=8, loss_scale=loss_scale)


def _ocg_plans(horizon: int) -> list[Plan]:
    """An expert for each epoch length 1, 2, 4, ... up to the first that is at least the horizon."""
    lengths = [1 << i for i in range((horizon - 1).bit_length() + 1)]
    return [Plan(1.0 / math.sqrt(length), 1, 0.0, lifetime=length) for length in lengths]

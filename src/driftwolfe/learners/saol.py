"""SAOL, with a projection for each expert or one for all; PAMO, with gauges in their place."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Unpack

from driftwolfe import bounds
from driftwolfe.domains import Domain
from driftwolfe.ensemble import MultiplicativeWeights
from driftwolfe.ensemble.ball import BallDescent
from driftwolfe.ensemble.dense import GaugeDescent
from driftwolfe.ensemble.plan import Plan
from driftwolfe.learners.ensembles import CoverLearner
from driftwolfe.learners.options import (
    Options,
    StepOptions,
    WeightOptions,
    make_options,
    projecting_options,
)
from driftwolfe.oracles import Oracle
from driftwolfe.points import checks


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
        A set that can project, unless `oracle` is another than ``"exact"``; the horizon is not used.
    {options}

    References
    ----------
    Daniely, Gonen and Shalev-Shwartz (2015), Strongly adaptive online learning, ICML.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.learners.SAOL(dw.L2Ball(2), lipschitz=1.0)
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
        oracle: Oracle | str = "exact",
        start: str = "current",
        **options: Unpack[WeightOptions],
    ) -> None:
        given = "SAOL", "POLA", domain, horizon, lipschitz
        checked = projecting_options(*given, oracle=oracle, **options)
        meta = MultiplicativeWeights(checked.loss_scale)
        super().__init__(domain, checked, partial(Options.interval_plan, checked), meta, start)


class OneProjectionSAOL(CoverLearner):
    r"""Strongly adaptive learning with one projection and one gradient per round.

    On every interval I of a geometric cover an expert descends on the ball of radius R around the set
    with :math:`\eta = c/\sqrt{|I|}`, c = D/G. Multiplicative weights as in `SAOL` combine those awake to y,
    and :math:`x = P_K(y)` is played. With :math:`g = \nabla f_t(x)` and
    :math:`\nu = (y - x)/\lVert y - x\rVert`, all learn from

    .. math:: \tilde g = g - \min(0, \langle g, \nu\rangle)\,\nu

    Regret :math:`O(\sqrt{\tau(1 + P/D)}\log T)` on every interval of length tau, against comparators of path
    length P inside it; `bound` has the constants. Where B is learned, weights cost B more on each. With another
    method than ``"exact"`` an interval I of the cover has :math:`G |I| \delta` more, :math:`\delta` the largest of
    all :math:`\mathrm{gap}/\lVert y - x\rVert` (of :math:`\lVert y - x\rVert`, where that is smaller): in the
    certified tuning at most :math:`D/\sqrt{|I|}`; in the practical one as measured, which may be vacuous.

    Factored matrices on the host are dense arrays here, one for each expert: sums of sparse gradients and of
    projections have full rank. On a device they stay factored.

    Parameters
    ----------
    domain, horizon
        A set that can project, unless `oracle` is another than ``"exact"``; the horizon is not used.
    loss_scale
        Range of a round's losses over the ball: a number, ``"certified"`` (2 G R) or ``"auto"``.
    {options}

    References
    ----------
    Zhao, Xie, Zhang and Zhou (2022), Efficient methods for non-stationary online learning, NeurIPS
    (arXiv 2309.08911); ``EAPAR`` in PyNOL has other experts and weights on the same reduction.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.learners.OneProjectionSAOL(dw.L1Ball(2), lipschitz=1.0)
    >>> for t in range(100):
    ...     suffered = learner.update(dw.losses.LinearLoss([1.0 if t < 50 else -1.0, 0.0]))
    >>> bool(learner.decision[0] > 0.5), learner.oracle_calls.projection
    (True, 100)
    """

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        oracle: Oracle | str = "exact",
        loss_scale: float | str | None = None,
        start: str = "current",
        **options: Unpack[StepOptions],
    ) -> None:
        own: dict[str, Any] = {"oracle": oracle, "loss_scale": loss_scale, "feedback": "linear"}
        given = "OneProjectionSAOL", "POLA", domain, horizon, lipschitz
        checked = projecting_options(*given, on_ball=True, **own, **options)
        experts = partial(BallDescent, checked.oracle, checked.step_scale)
        meta = MultiplicativeWeights(checked.loss_scale)
        super().__init__(domain, checked, partial(_ball_plan, checked), meta, start, experts)


def _ball_plan(options: Options, length: int) -> Plan:
    return options.ball_plan(length**-0.5, length, length)


class PAMO(CoverLearner):
    r"""Projection-free adaptive regret with membership oracles (reconstructed).

    On every interval I of a geometric cover, gradient descent in the ball R B with :math:`\eta = c/\sqrt{|I|}`,
    :math:`c = D/((1 + \kappa) G)`, reduced to the set by its gauge (`GaugeDescent`); multiplicative weights as in
    `SAOL`. :math:`\kappa = R/r` is the aspect ratio of the set, :math:`\sqrt{\min(m, n)}` for a trace-norm ball.
    Every expert needs a gauge per round: O(log T) membership tests by bisection, or one exact evaluation where the
    set offers it. Regret :math:`O((1 + \kappa)\sqrt{\tau(1 + P/D)}\log T)` on every interval of length tau, against
    comparators of path length P inside it; `bound` has the constants.

    Parameters
    ----------
    domain
        A set with a gauge and a known inner radius; dense points.
    horizon
        Rounds T: sets the accuracy of the bisection, :math:`1/(\kappa T^2)`; 10,000 where None.
    gauge
        ``"bisection"``: on membership; ``"exact"``: the set's own gauge.
    steps
        ``"agile"``: each step starts at the last point; ``"lazy"``: where the expert started, by the sum
        of its gradients so far. Lazy ones have the same bound against a fixed point, and a comparator of
        path length P inside an interval I adds :math:`G |I| P`.
    {options}

    References
    ----------
    Lu, Brukhim, Gradu and Hazan (2023), Projection-free adaptive regret with membership oracles, ALT; Mhammedi
    (2022), Efficient projection-free online convex optimization with membership oracle, COLT. Not the published
    algorithm: from the abstract, "a simple lazy gradient-based algorithm with a Minkowski regularization" (lazy
    steps are nearer to that), and the paper that compares with it; the constants of the weights are SAOL's.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.learners.PAMO(dw.L1Ball(2), lipschitz=1.0, gauge="exact")
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
        scale = checked.step_scale
        if scale is not None and options.get("step_scale") is None:
            scale /= 1.0 + self.kappa  # surrogate gradients are so many times as long as true ones
        T, bisection = checked.horizon or 10_000, None
        if gauge == "bisection":
            bisection = min(0.5, 1.0 / (self.kappa * T**2))
        how, meta = (scale, bisection, steps == "lazy"), MultiplicativeWeights(checked.loss_scale)
        parts = _pamo_plan, meta, start, lambda K, *_: GaugeDescent(K, checked.oracle, *how)
        super().__init__(domain, checked, *parts)

    def _level_bound(self, k: int) -> float:
        # A gauge too large by e costs e |<g, w - c>| in the lemma: at most kappa G R times the accuracy.
        rough = (self._experts.bisection or 0.0) * self.kappa * self.lipschitz * self.domain.radius
        rough *= 1 << k
        if self.steps == "agile":
            return super()._level_bound(k) + rough
        known, length = self.options.measured(self._experts), 1 << k
        eta = known.step_scale * self._plan(length).step
        given = known.surrogates, known.D, eta, eta * length, 1, 0.0
        static = bounds.lazy_descent(*given, bounds.ANYWHERE, known.shrinking_steps)
        return static + rough + bounds.weighing(self._meta, length, self.t)

    def _level_per_path(self, k: int) -> float:
        return super()._level_per_path(k) if self.steps == "agile" else self.lipschitz * (1 << k)


def _pamo_plan(length: int) -> Plan:
    return Plan(1.0 / math.sqrt(length), 1, 0.0, lifetime=length)

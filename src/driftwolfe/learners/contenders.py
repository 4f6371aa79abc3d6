"""Ensembles that need more than an LMO: Ader and SAOL project, PAMO needs a gauge."""

from __future__ import annotations

import math
from typing import Unpack

from driftwolfe.domains import Domain
from driftwolfe.ensemble import MultiplicativeWeights, ader_grid
from driftwolfe.ensemble.dense import GaugeDescent
from driftwolfe.ensemble.plan import Plan
from driftwolfe.learners.options import WeightOptions, one_of, require_projection
from driftwolfe.learners.pola import CoverLearner
from driftwolfe.learners.pold import GridLearner


class Ader(GridLearner):
    r"""Gradient descent with many step sizes and exact projections, and Hedge over them.

    .. math:: x^i_{t+1} = P_K(x^i_t - \eta_i \nabla f_t(x^i_t)), \quad
              \eta_i = c\, 2^{i-1}\sqrt{7/(2T)}, \quad c = D/G

    N projections and N gradients per round, :math:`N = O(\log T)`; the improved Ader,
    ``feedback="linear"``, has one gradient.

    Parameters
    ----------
    domain
        A set that can project.
    method
        ``"exact"`` is Ader; any other method of `infeasible_projection` makes it approximate, and the
        bound allows for that.
    tuning
        ``"practical"``: loss_scale ``"auto"``; ``"certified"``: G * diameter.
    {options}

    Notes
    -----
    Regret at most :math:`\tfrac{3G}{4}\sqrt{2T(7D^2 + 4DP)} + B\sqrt{T/8}(1 + 2\ln(k+1))`; `bound`
    evaluates the sharper :math:`\min_i (D^2/8 + DP/2)/\eta_i + \eta_i T G^2/2 + \dots`. Constants
    re-derived; with linear feedback the rate is :math:`\sqrt{8/T}/B`, twice the original's, which
    allowed for a range of 2B.

    References
    ----------
    Zhang, Lu and Zhou (2018), Adaptive online learning in dynamic environments, NeurIPS.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.Ader(dw.L2Ball(2), horizon=50, lipschitz=1.0)
    >>> for _ in range(50):
    ...     suffered = learner.update(dw.losses.LinearLoss([1.0, 0.0]))
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
        super().__init__(domain, horizon, lipschitz, method=method, **options)
        if method == "exact":
            require_projection(domain, "Ader", "POLD")

    def _plans(self, horizon: int) -> list[Plan]:
        return [self.options.unblocked_plan(h) for h in ader_grid(horizon).tolist()]


class SAOL(CoverLearner):
    r"""Projected gradient descent on every interval of a geometric cover, multiplicative weights.

    The expert on I steps with :math:`\eta = c/\sqrt{|I|}`, c = D/G; weights start at
    :math:`\eta_I = \min(1/2, 1/\sqrt{|I|})` and are multiplied by
    :math:`1 + \eta_I (f_t(x_t) - f_t(x_{t,I}))/B`. O(log t) gradients and projections per round.

    Parameters
    ----------
    domain
        A set that can project.
    horizon
        Accepted so that all learners share a signature; not used.
    method
        ``"exact"`` is SAOL; any other method of `infeasible_projection` makes it approximate, and the
        bound allows for that.
    tuning
        ``"practical"``: loss_scale ``"auto"``; ``"certified"``: G * diameter.
    {options}

    Notes
    -----
    Regret :math:`O(\sqrt{\tau}\log T)` on every interval of length tau, and
    :math:`O(\sqrt{\tau(1 + P/D)}\log T)` against comparators of path length P inside it; `bound` has
    the constants, which are derived here and not the original's.

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

    META = MultiplicativeWeights

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
        super().__init__(domain, horizon, lipschitz, start=start, method=method, **options)
        if method == "exact":
            require_projection(domain, "SAOL", "POLA")

    def _plan(self, length: int) -> Plan:
        return self.options.unblocked_plan(length**-0.5)


class PAMO(CoverLearner):
    r"""Projection-free adaptive regret with membership oracles (reconstructed).

    On every interval I of a geometric cover, gradient descent in the ball R B with
    :math:`\eta = c/\sqrt{|I|}`, :math:`c = D/((1 + \kappa) G)`, reduced to the set by its gauge
    (`GaugeDescent`); multiplicative weights as in `SAOL`. :math:`\kappa = R/r` is the aspect ratio
    of the set, :math:`\sqrt{\min(m, n)}` for a trace-norm ball.

    Every expert needs a gauge per round: O(log T) membership tests by bisection, or one exact
    evaluation where the set offers it. On a trace-norm ball each costs a full decomposition.

    Parameters
    ----------
    domain
        A set with a gauge and a known inner radius; dense points.
    horizon
        Rounds T: sets the accuracy of the bisection, :math:`1/(\kappa T^2)`; 10,000 where None.
    accuracy
        Accuracy of the bisection, in place of the default.
    tolerance_scale
        Factor on the default accuracy of the bisection; 1 in both tunings.
    gauge
        ``"bisection"``: on membership; ``"exact"``: the set's own gauge.
    {options}

    Notes
    -----
    Regret :math:`O((1 + \kappa)\sqrt{\tau}\log T)` on every interval of length tau, with
    :math:`\tau(1 + P/D)` for tau against comparators of path length P inside it; `bound` has the
    constants.

    Reconstructed from the abstract and from the paper that compares with it, and not the published
    algorithm: the abstract says lazy experts and Minkowski regularisation, where these are agile,
    descent from the last point with the gauge in the gradient; the original's meta constants were
    not seen, SAOL's stand in.

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

    META = MultiplicativeWeights

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        gauge: str = "bisection",
        start: str = "current",
        **options: Unpack[WeightOptions],
    ) -> None:
        one_of(gauge, "gauge", ("bisection", "exact"))
        self.gauge = gauge
        if options.get("tolerance_scale") is None:
            options["tolerance_scale"] = 1.0
        self._own_step = options.get("step_scale") is not None
        self._own_accuracy = options.get("accuracy") is not None
        super().__init__(domain, horizon, lipschitz, start=start, **options)

    def _make_experts(self) -> GaugeDescent:
        domain, options = self.domain, self.options
        _require_gauge(domain)
        self.kappa = domain.radius / domain.inner_radius
        step_scale = options.step_scale
        if step_scale is not None and not self._own_step:
            # Surrogate gradients are up to 1 + kappa times as long as true ones.
            step_scale /= 1.0 + self.kappa
        bisection = None
        if self.gauge == "bisection":
            T = options.horizon or 10_000
            default = min(0.5, options.tolerance_scale / (self.kappa * T**2))
            bisection = options.oracle.accuracy if self._own_accuracy else default
        return GaugeDescent(self._counted, options.oracle, step_scale, bisection)

    def _plan(self, length: int) -> Plan:
        return Plan(1.0 / math.sqrt(length), 1, 0.0)


def _require_gauge(domain: Domain) -> None:
    name = type(domain.unwrapped).__name__
    if not (domain.can("gauge") and domain.can("gauge_subgradient") and domain.inner_radius > 0):
        raise ValueError(
            f"PAMO needs a gauge, its subgradient and an inner radius, which {name} does not "
            "offer; use POLA, which needs only linear minimisation"
        )
    if not hasattr(domain.origin(), "flat"):
        raise ValueError(
            "PAMO works on dense arrays; for a large trace-norm ball say "
            'representation="dense", or use POLA'
        )

"""PAMO: adaptive regret through membership oracles."""

from __future__ import annotations

import math
from typing import Unpack

from driftwolfe.domains import Domain
from driftwolfe.ensemble import MultiplicativeWeights
from driftwolfe.ensemble.dense import GaugeDescent
from driftwolfe.ensemble.plan import Plan
from driftwolfe.learners.options import WeightOptions, make_options
from driftwolfe.learners.pola import CoverLearner
from driftwolfe.points.kinds import Point


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
    start
        Where new experts start: ``"current"``, the point played last, or ``"origin"``.
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
        if gauge not in ("bisection", "exact"):
            raise ValueError(f'gauge must be "bisection" or "exact", got {gauge!r}')
        if options.get("tolerance_scale") is None:
            options["tolerance_scale"] = 1.0
        checked = make_options(domain, horizon, lipschitz, **options)
        _require_gauge(domain)
        self.gauge = gauge
        self.kappa = domain.radius / domain.inner_radius
        scale, given = checked.step_scale, options.get("step_scale") is not None
        # Surrogate gradients are up to 1 + kappa times as long as true ones.
        step_scale = scale if given or scale is None else scale / (1.0 + self.kappa)
        bisection = None
        if gauge == "bisection":
            T = checked.horizon or 10_000
            default = min(0.5, checked.tolerance_scale / (self.kappa * T**2))
            bisection = default if options.get("accuracy") is None else checked.oracle.accuracy
        super().__init__(
            domain,
            checked,
            _plan,
            MultiplicativeWeights(checked.loss_scale),
            start,
            lambda counted: GaugeDescent(counted, checked.oracle, step_scale, bisection),
        )


def _plan(length: int) -> Plan:
    return Plan(1.0 / math.sqrt(length), 1, 0.0, lifetime=length)


def _require_gauge(domain: Domain) -> None:
    name = type(domain.unwrapped).__name__
    if not (domain.can("gauge") and domain.can("gauge_subgradient") and domain.inner_radius > 0):
        raise ValueError(
            f"PAMO needs a gauge, its subgradient and an inner radius, which {name} does not "
            "offer; use POLA, which needs only linear minimisation"
        )
    origin: Point = domain.origin()
    if not hasattr(origin, "flat"):
        raise ValueError(
            "PAMO works on dense arrays; for a large trace-norm ball say "
            'representation="dense", or use POLA'
        )

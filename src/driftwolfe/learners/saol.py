"""SAOL: strongly adaptive online learning with projections."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from driftwolfe.domains import Domain
from driftwolfe.ensemble import MultiplicativeWeights
from driftwolfe.ensemble.plan import Plan
from driftwolfe.learners.options import Options, WeightOptions, make_options, require_projection
from driftwolfe.learners.pola import CoverLearner


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
    start
        Where new experts start: ``"current"``, the point played last, or ``"origin"``.
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
        super().__init__(domain, checked, partial(_plan, checked), meta, start)


def _plan(options: Options, length: int) -> Plan:
    h = length**-0.5
    tolerance = 0.0 if options.oracle.method == "exact" else options.tolerance(h)
    return Plan(h, 1, tolerance, lifetime=length)

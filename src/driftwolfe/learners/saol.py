"""SAOL: strongly adaptive online learning with projections."""

from __future__ import annotations

from driftwolfe.domains import Domain
from driftwolfe.ensemble import GeometricCover, MultiplicativeWeights
from driftwolfe.ensemble.plan import Plan, projection_eps
from driftwolfe.learners.cover_ensemble import CoverEnsemble
from driftwolfe.learners.options import make_options, require_projection


class SAOL(CoverEnsemble):
    r"""Projected gradient descent on every interval of a geometric cover, multiplicative weights.

    The expert on I steps with :math:`\eta = c/\sqrt{|I|}`, c = D/G; weights start at
    :math:`\eta_I = \min(1/2, 1/\sqrt{|I|})` and are multiplied by
    :math:`1 + \eta_I (f_t(x_t) - f_t(x_{t,I}))/B`. O(log t) gradients and projections a round.

    Parameters
    ----------
    domain
        A set that can project.
    horizon, lipschitz, step_scale, loss_scale, feedback, start
        As for `POLA`.
    method
        ``"exact"`` is SAOL; any other method of `infeasible_projection` makes it approximate, and the
        bound allows for that.
    tolerance_scale, accuracy
        As for `POLA`, where the method is not exact.
    tuning
        ``"practical"``: loss_scale ``"auto"``; ``"certified"``: G * diameter.

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
        step_scale: float | None = None,
        loss_scale: float | str | None = None,
        tolerance_scale: float | None = None,
        accuracy: float | None = None,
        method: str = "exact",
        feedback: str = "full",
        start: str = "current",
        tuning: str = "practical",
    ) -> None:
        options = make_options(
            domain,
            horizon=horizon,
            lipschitz=lipschitz,
            step_scale=step_scale,
            loss_scale=loss_scale,
            tolerance_scale=tolerance_scale,
            accuracy=accuracy,
            method=method,
            feedback=feedback,
            tuning=tuning,
        )
        if method == "exact":
            require_projection(domain, "SAOL", "POLA")
        meta = MultiplicativeWeights(options.loss_scale)
        super().__init__(domain, options, GeometricCover(), meta, start)

    def _plan(self, length: int) -> Plan:
        h = length**-0.5
        if self.options.oracle.method == "exact":
            return Plan(h, 1, 0.0)
        eps = (2.0 * self.domain.radius) ** 2 * projection_eps(h)
        return Plan(h, 1, 3.0 * eps * self.options.tolerance_scale)

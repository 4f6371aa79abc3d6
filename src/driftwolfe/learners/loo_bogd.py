"""LOO-BOGD: BOGD_IP with the constants of its inventors."""

from __future__ import annotations

import math

from driftwolfe.ensemble.plan import Plan
from driftwolfe.learners.bogd_ip import BOGDIP
from driftwolfe.points.rounding import whole_below


class LOOBOGD(BOGDIP):
    r"""LOO-BOGD, with Garber & Kretzu's own constants.

    `BOGDIP` with :math:`\eta = (R/G) T^{-3/4}`, :math:`K = 5\sqrt T`,
    :math:`\epsilon = 60 R^2/\sqrt T`: at most T linear minimisations in all, and regret
    :math:`O(G R T^{3/4})` on every sub-interval.

    With the certified tuning the tolerance :math:`3\epsilon = 180 R^2/\sqrt T` exceeds any distance
    from the centre until T > 32,400: the decision does not move before. The practical tuning, as
    for `BOGDIP`, makes the tolerance small.

    One gradient a round; linear minimisations only when a block ends.

    Parameters
    ----------
    domain
        The set.
    horizon
        Rounds T; None: epochs of doubling length.
    lipschitz
        G, a bound on gradient norms; ``"auto"``: the largest norm seen so far.
    step_scale
        In place of D/G; :math:`\eta` is half of it times :math:`T^{-3/4}`.
    tolerance_scale, accuracy, method, tuning, seed, lmo_budget, schedule, lazy
        As for `BOGDIP`; but blocks and tolerances do not follow the budget, and where that ends a
        projection early, `bound` allows for the distance that was left.

    Notes
    -----
    `bound` is the master inequality of `BOGDIP` with these parameters. Constants reconstructed from
    the description of their Theorem 3, re-derived, not read in the original.

    References
    ----------
    Garber and Kretzu (2022), New projection-free algorithms for online convex optimization with
    adaptive regret guarantees, COLT.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.LOOBOGD(dw.L2Ball(2), horizon=100, lipschitz=1.0)
    >>> learner.update(dw.losses.LinearLoss([1.0, 0.0]))
    0.0
    """

    def _plan(self, horizon: int) -> Plan:
        root = math.sqrt(horizon)
        eps = 60.0 * self.domain.radius**2 / root
        block = max(1, whole_below(5.0 * root))
        # The step is in units of D/G, and R is half of D.
        tolerance = 3.0 * eps * self.options.tolerance_scale
        return Plan(0.5 * horizon**-0.75, block, tolerance, self.options.oracle.budget or 0.0)

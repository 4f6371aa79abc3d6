"""Online Frank-Wolfe on the latest loss, for smooth losses that drift."""

from __future__ import annotations

import math

from driftwolfe.domains import Domain
from driftwolfe.learners import bounds
from driftwolfe.learners.latest_loss import LatestLossLearner
from driftwolfe.points import checks
from driftwolfe.points.kinds import Point


class KalhanOFW(LatestLossLearner):
    r"""A Frank-Wolfe step on the latest loss with a constant step (Kalhan et al. 2021).

    .. math:: v_t = \arg\min_{v \in K}\langle\nabla f_t(x_t), v\rangle, \qquad
              x_{t+1} = x_t + T^{-1/2}(v_t - x_t)

    One gradient and one linear minimisation a round; more with `inner_steps`, each on the same
    loss.

    Parameters
    ----------
    domain
        The set.
    horizon
        Rounds T; without one, :math:`t^{-1/2}`.
    lipschitz
        Accepted so that learners are made alike; not used.
    inner_steps
        Frank-Wolfe steps a round.

    Notes
    -----
    For :math:`\beta`-smooth losses
    :math:`\sum_t f_t(x_t) - \min f_t \le \sqrt T(e_1 + 2V_T) + \beta\, diam^2\sqrt T/2`, with
    :math:`e_1` the first gap and V_T the function variation: derived for this library, without the
    original's gradient-variation term. No guarantee for losses that are not smooth. Reconstructed
    from the abstract.

    References
    ----------
    Kalhan, Bedi, Koppel, Rajawat, Hassani, Gupta and Banerjee (2021), Dynamic online learning via
    Frank-Wolfe algorithm, IEEE Transactions on Signal Processing 69.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> learner = dw.KalhanOFW(dw.L2Ball(2), horizon=100)
    >>> target = dw.losses.SquaredDistance(np.array([0.0, 1.0]))
    >>> suffered = [learner.update(target) for _ in range(100)]
    >>> bool(suffered[-1] < 0.01)
    True
    """

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        inner_steps: int = 1,
    ) -> None:
        super().__init__(domain, inner_steps)
        self.horizon = None if horizon is None else checks.count(horizon, "horizon")

    def bound(
        self,
        path_length: float = 0.0,
        tau: int | None = None,
        *,
        variation: float | None = None,
        first_gap: float | None = None,
        smoothness: float | None = None,
    ) -> float:
        """Return the bound against the minimiser of each round, for smooth losses.

        Parameters
        ----------
        path_length, tau
            Not offered: a bound against the minimisers holds for all comparators.
        variation
            V_T, the function variation.
        first_gap
            f_1(x_1) - min f_1.
        smoothness
            beta.
        """
        path_length, tau = bounds.asked(path_length, tau)
        if path_length or tau is not None:
            raise NotImplementedError(
                f"the bound of {type(self).__name__} is against the minimiser of each round: leave "
                "path_length= and tau= out"
            )
        if variation is None or first_gap is None or smoothness is None or not self.horizon:
            raise NotImplementedError(
                "the bound of KalhanOFW needs a horizon, variation=, first_gap= and smoothness="
            )
        return bounds.smooth_frank_wolfe(
            smoothness, self.domain.diameter, self.t, variation, first_gap, self.horizon**-0.5
        )

    def _share(self, gradient: Point, vertex: Point) -> float:
        return 1.0 / math.sqrt(self.horizon or self.t + 1)

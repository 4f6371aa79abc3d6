"""Online Frank-Wolfe with line search, for smooth losses that drift."""

from __future__ import annotations

from driftwolfe.domains import Domain
from driftwolfe.learners import bounds
from driftwolfe.learners.latest_loss import LatestLossLearner
from driftwolfe.points import checks, inner, norm
from driftwolfe.points.kinds import Point
from driftwolfe.points.rounding import line_search_share


class LineSearchOFW(LatestLossLearner):
    r"""A Frank-Wolfe step on the latest loss with a line search (Wan, Zhang & Song 2023).

    .. math::

        x_{t+1} = x_t + s_t(v_t - x_t), \qquad
        s_t = \min\Big(1, \frac{\langle\nabla f_t(x_t), x_t - v_t\rangle}
                               {\beta\lVert v_t - x_t\rVert^2}\Big)

    One gradient and one linear minimisation a round; more with `inner_steps`.

    Parameters
    ----------
    domain
        The set.
    horizon, lipschitz
        Accepted so that learners are made alike; not needed, and not used.
    smoothness
        :math:`\beta`: a bound on the curvature of the losses, in [f]/[x]².
    inner_steps
        Frank-Wolfe steps a round.

    Notes
    -----
    For :math:`\beta`-smooth losses, :math:`\sum_t f_t(x_t) - \min f_t \le
    \sqrt{2\beta\,diam^2\,T E} + 2E`, :math:`E = e_1 + 2V_T`: derived for this library. No guarantee for
    losses that are not smooth. Reconstructed from the abstract; the step rule from memory.

    References
    ----------
    Wan, Zhang and Song (2023), Improved dynamic regret for online Frank-Wolfe, COLT.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> learner = dw.LineSearchOFW(dw.L2Ball(2), smoothness=2.0)
    >>> target = dw.losses.SquaredDistance(np.array([0.0, 1.0]))
    >>> suffered = [learner.update(target) for _ in range(20)]
    >>> bool(suffered[-1] < 1e-6)
    True
    """

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        smoothness: float = 1.0,
        inner_steps: int = 1,
    ) -> None:
        super().__init__(domain, inner_steps)
        self.smoothness = checks.positive(smoothness, "smoothness")

    def bound(
        self,
        path_length: float = 0.0,
        tau: int | None = None,
        *,
        variation: float | None = None,
        first_gap: float | None = None,
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
        """
        path_length, tau = bounds.asked(path_length, tau)
        if path_length or tau is not None:
            raise NotImplementedError(
                f"the bound of {type(self).__name__} is against the minimiser of each round: leave "
                "path_length= and tau= out"
            )
        if variation is None or first_gap is None:
            raise NotImplementedError("the bound of LineSearchOFW needs variation= and first_gap=")
        return bounds.smooth_frank_wolfe(
            self.smoothness, self.domain.diameter, self.t, variation, first_gap
        )

    def _share(self, gradient: Point, vertex: Point) -> float:
        away = vertex - self._x
        # The norm keeps its digits where x is near the vertex; <away, away> may turn negative.
        length = norm(away)
        return line_search_share(-inner(gradient, away), self.smoothness * length * length)

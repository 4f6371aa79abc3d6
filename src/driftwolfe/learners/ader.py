"""Ader: gradient descent with many step sizes and exact projections."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from driftwolfe.domains import Domain
from driftwolfe.ensemble import ader_grid
from driftwolfe.ensemble.plan import Plan
from driftwolfe.learners.options import Options, WeightOptions, make_options, require_projection
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
        checked = make_options(domain, horizon, lipschitz, method=method, **options)
        if method == "exact":
            require_projection(domain, "Ader", "POLD")
        super().__init__(domain, checked, partial(_plans, checked))


def _plans(options: Options, horizon: int) -> list[Plan]:
    exact = options.oracle.method == "exact"
    steps = ader_grid(horizon).tolist()
    return [Plan(h, 1, 0.0 if exact else options.tolerance(h)) for h in steps]

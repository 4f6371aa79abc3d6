"""One-projection Ader and SAOL: experts on the ball around the set, and one projection per round."""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack

from driftwolfe.domains import Domain
from driftwolfe.ensemble import MultiplicativeWeights, ader_grid
from driftwolfe.ensemble.ball import BallDescent
from driftwolfe.ensemble.plan import FOREVER, Plan
from driftwolfe.learners.options import Options, StepOptions, make_options, require_projection
from driftwolfe.learners.pola import CoverLearner
from driftwolfe.learners.pold import GridLearner


class OneProjectionAder(GridLearner):
    r"""Ader with one projection and one gradient per round.

    Experts live on the ball of radius R around the set, where a projection is a rescaling,
    :math:`\eta_i = c\, 2^{i-1}\sqrt{7/(2T)}`, c = D/G. Hedge combines them to y, and :math:`x = P_K(y)` is
    played. With :math:`g = \nabla f_t(x)` and :math:`\nu = (y - x)/\lVert y - x\rVert`, all learn from

    .. math:: \tilde g = g - \min(0, \langle g, \nu\rangle)\,\nu, \qquad
              \langle g, x - u\rangle \le \langle\tilde g, y - u\rangle \text{ for all } u \in K

    Regret against comparators of path length P is at most that of Ader on the ball,
    :math:`\min_i (D^2/8 + DP/2)/\eta_i + \eta_i T G^2/2 + B\sqrt{T/8}(1 + 2\ln(i+1))`, B = G D.

    Parameters
    ----------
    domain
        A set that can project, unless `method` is another than ``"exact"``.
    loss_scale
        Range of a round's losses over the ball: a number, ``"certified"`` (2 G R) or ``"auto"``.
    tolerance_scale
        Factor on the tolerance :math:`D^2/T` of projections that are not exact.
    tuning
        ``"practical"``: tolerance_scale 1e-6, so that the oracle's accuracy decides, and loss_scale
        ``"auto"``; ``"certified"``: tolerance_scale 1 and loss_scale ``"certified"``.
    {options}

    Notes
    -----
    Another method, such as ``"block"`` on large trace-norm balls, makes it projection-free. The bound then
    has :math:`G T \delta` more, :math:`\delta` the largest of all :math:`\mathrm{gap}/\lVert y - x\rVert` (of
    :math:`\lVert y - x\rVert`, where that is smaller). The certified tuning has
    :math:`\delta \le D/\sqrt T`, by O(T) LMO calls per round at worst; the practical one promises nothing
    before the game, and `bound` uses what was measured, which may be vacuous.

    On sets of factored matrices on the host, each expert is a dense array (12 MB for 943 x 1,682): its
    point, a sum of sparse gradients and of projections, has full rank. On a device it stays factored.

    References
    ----------
    Zhao, Xie, Zhang and Zhou (2022), Efficient methods for non-stationary online learning, NeurIPS
    (arXiv 2309.08911); ``Ader_1p`` in PyNOL. The surrogate is from Cutkosky (2020), Parameter-free,
    dynamic, and strongly-adaptive online learning, ICML.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.OneProjectionAder(dw.L1Ball(2), horizon=50, lipschitz=1.0)
    >>> history = dw.play(learner, [dw.losses.LinearLoss([1.0, 0.0])] * 50)
    >>> learner.decision.round(3), learner.oracle_calls.projection
    (array([-1.,  0.]), 50)
    """

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        method: str = "exact",
        loss_scale: float | str | None = None,
        **options: Unpack[StepOptions],
    ) -> None:
        own: dict[str, Any] = {"method": method, "loss_scale": loss_scale, "feedback": "linear"}
        checked = make_options(domain, horizon, lipschitz, on_ball=True, **own, **options)
        if method == "exact":
            require_projection(domain, "OneProjectionAder", "OneOracleAder")
        experts = partial(BallDescent, checked.oracle, checked.step_scale)
        super().__init__(domain, checked, partial(_ader_plans, checked), experts)


def _ader_plans(options: Options, horizon: int) -> list[Plan]:
    return [_plan(options, h, horizon) for h in ader_grid(horizon).tolist()]


class OneProjectionSAOL(CoverLearner):
    r"""Strongly adaptive learning with one projection and one gradient per round.

    On every interval I of a geometric cover an expert descends on the ball of radius R around the set
    with :math:`\eta = c/\sqrt{|I|}`, c = D/G. Multiplicative weights as in `SAOL` combine those awake to y,
    and :math:`x = P_K(y)` is played. With :math:`g = \nabla f_t(x)` and
    :math:`\nu = (y - x)/\lVert y - x\rVert`, all learn from

    .. math:: \tilde g = g - \min(0, \langle g, \nu\rangle)\,\nu

    Regret :math:`O(\sqrt{\tau(1 + P/D)}\log T)` on every interval of length tau, against comparators of path
    length P inside it; `bound` has the constants. Where B is learned it is conditional.

    Parameters
    ----------
    domain, horizon
        A set that can project, unless `method` is another than ``"exact"``; the horizon is not used.
    loss_scale
        Range of a round's losses over the ball: a number, ``"certified"`` (2 G R) or ``"auto"``.
    start
        New experts start at ``"current"``, the last y, or ``"origin"``.
    tolerance_scale
        Factor on the tolerance :math:`D^2/2^{\lfloor\log_2 t\rfloor}` of projections that are not exact.
    tuning
        ``"practical"``: tolerance_scale 1e-6, so that the oracle's accuracy decides, and loss_scale
        ``"auto"``; ``"certified"``: tolerance_scale 1 and loss_scale ``"certified"``.
    {options}

    Notes
    -----
    With another method than ``"exact"`` the bound on an interval I has :math:`G |I| \delta` more,
    :math:`\delta` the largest of all :math:`\mathrm{gap}/\lVert y - x\rVert` (of :math:`\lVert y - x\rVert`,
    where that is smaller), and at most :math:`D/\sqrt{|I|}` in the certified tuning. The practical one
    promises nothing before the game, and `bound` uses what was measured, which may be vacuous.

    On sets of factored matrices on the host, each expert is a dense array (12 MB for 943 x 1,682): its
    point, a sum of sparse gradients and of projections, has full rank. On a device it stays factored.

    References
    ----------
    Zhao, Xie, Zhang and Zhou (2022), Efficient methods for non-stationary online learning, NeurIPS
    (arXiv 2309.08911); ``EAPAR`` in PyNOL has other experts and weights on the same reduction.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.OneProjectionSAOL(dw.L1Ball(2), lipschitz=1.0)
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
        method: str = "exact",
        loss_scale: float | str | None = None,
        start: str = "current",
        **options: Unpack[StepOptions],
    ) -> None:
        own: dict[str, Any] = {"method": method, "loss_scale": loss_scale, "feedback": "linear"}
        checked = make_options(domain, horizon, lipschitz, on_ball=True, **own, **options)
        if method == "exact":
            require_projection(domain, "OneProjectionSAOL", "POLA")
        experts = partial(BallDescent, checked.oracle, checked.step_scale)
        meta = MultiplicativeWeights(checked.loss_scale)
        super().__init__(domain, checked, partial(_saol_plan, checked), meta, start, experts)


def _saol_plan(options: Options, length: int) -> Plan:
    return _plan(options, length**-0.5, length, length)


def _plan(options: Options, h: float, rounds: int, lifetime: int = FOREVER) -> Plan:
    """The expert with the step h, and the tolerance that costs G D sqrt(T) in so many rounds T."""
    exact = options.oracle.method == "exact"
    return Plan(
        h, 1, 0.0 if exact else options.tolerance_scale * options.D**2 / rounds, 0.0, lifetime
    )

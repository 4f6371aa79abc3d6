"""Ader, with a projection for each expert or one for all."""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack

from driftwolfe.domains import Domain
from driftwolfe.ensemble import ader_grid
from driftwolfe.ensemble.ball import BallDescent
from driftwolfe.ensemble.plan import Plan
from driftwolfe.learners.base import as_loss
from driftwolfe.learners.ensembles import GridLearner
from driftwolfe.learners.options import Options, StepOptions, WeightOptions, projecting_options
from driftwolfe.oracles import Oracle


class Ader(GridLearner):
    r"""Gradient descent with many step sizes and exact projections, and Hedge over them.

    .. math:: x^i_{t+1} = P_K(x^i_t - \eta_i \nabla f_t(x^i_t)), \quad
              \eta_i = c\, 2^{i-1}\sqrt{7/(2T)}, \quad c = D/G

    N projections and N gradients per round, :math:`N = O(\log T)`; the improved Ader, ``feedback="linear"``, has
    one gradient. Regret at most :math:`\tfrac{3G}{4}\sqrt{2T(7D^2 + 4DP)} + B\sqrt{T/8}(1 + 2\ln(k+1))`; `bound`
    evaluates the sharper :math:`\min_i (D^2/8 + DP/2)/\eta_i + \eta_i T G^2/2 + \dots`. Constants re-derived; with
    linear feedback the rate of the weights is twice the original's.

    Parameters
    ----------
    domain
        A set that can project, unless `oracle` is another than ``"exact"``.
    {options}

    References
    ----------
    Zhang, Lu and Zhou (2018), Adaptive online learning in dynamic environments, NeurIPS.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.Ader(dw.L2Ball(2), horizon=50, lipschitz=1.0)
    >>> history = dw.play(learner, [dw.losses.LinearLoss([1.0, 0.0])] * 50)
    >>> learner.decision.round(3), learner.oracle_calls.projection
    (array([-1.,  0.]), 200)
    """

    def update(self, loss: Any, ticket: Any = None) -> float:
        """Play the mean of the experts; weigh them by their losses; let each take its step."""
        f = as_loss(loss)
        evaluation = self._experts.evaluate(f, self._meta.weights, self.options.linear)
        self._meta.update(evaluation.losses)
        self._experts.step(f, evaluation.slopes, evaluation.shared)
        self._next_round()
        return float(evaluation.value)

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        oracle: Oracle | str = "exact",
        **options: Unpack[WeightOptions],
    ) -> None:
        checked = projecting_options(
            "Ader", "POLD", domain, horizon, lipschitz, oracle=oracle, **options
        )
        super().__init__(domain, checked, partial(_plans, checked))


def _plans(options: Options, horizon: int) -> list[Plan]:
    """Steps by Ader's grid, blocks of one round."""
    return [options.unblocked_plan(h) for h in ader_grid(horizon).tolist()]


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
        A set that can project, unless `oracle` is another than ``"exact"``.
    loss_scale
        Range of a round's losses over the ball: a number, ``"certified"`` (2 G R) or ``"auto"``.
    tuning
        ``"practical"``: projections as accurate as the oracle says, and loss_scale ``"auto"``; ``"certified"``: a
        tolerance of :math:`D^2/T` where they are not exact, and loss_scale ``"certified"``.
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
    >>> learner = dw.learners.OneProjectionAder(dw.L1Ball(2), horizon=50, lipschitz=1.0)
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
        oracle: Oracle | str = "exact",
        loss_scale: float | str | None = None,
        **options: Unpack[StepOptions],
    ) -> None:
        own: dict[str, Any] = {"oracle": oracle, "loss_scale": loss_scale, "feedback": "linear"}
        given = "OneProjectionAder", "OneOracleAder", domain, horizon, lipschitz
        checked = projecting_options(*given, on_ball=True, **own, **options)
        experts = partial(BallDescent, checked.oracle, checked.step_scale)
        super().__init__(domain, checked, partial(_ball_plans, checked), experts)


def _ball_plans(options: Options, horizon: int) -> list[Plan]:
    return [options.ball_plan(h, horizon) for h in ader_grid(horizon).tolist()]

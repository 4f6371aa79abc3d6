"""Sword: regret that shrinks where gradients are small or hardly change."""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Any, Unpack

import numpy as np

from driftwolfe import bounds
from driftwolfe.domains import Domain
from driftwolfe.ensemble import OptimisticHedge
from driftwolfe.ensemble.optimistic import OptimisticDescent, OwnOptimisticDescent
from driftwolfe.ensemble.plan import Plan
from driftwolfe.learners.base import Epoch, as_loss
from driftwolfe.learners.ensembles import GridLearner
from driftwolfe.learners.options import Options, StepOptions, projecting_options
from driftwolfe.oracles import Oracle
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Point
from driftwolfe.state import Field
from driftwolfe.storage import require

#: Of each finished epoch a table: a column for each expert.
PAST = Field(list, items=Field(np.float64, (2, None)))


class Sword(GridLearner):
    r"""Optimistic gradient descent with many step sizes, and optimistic weights: one gradient per round, or more.

    .. math:: \hat x^i \leftarrow P_K(\hat x^i - \eta_i g_t), \qquad
              x^i_{t+1} = P_K(\hat x^i - \eta_i m_{t+1}), \qquad g_t = \nabla f_t(x_t)

    All expect a fraction of the last gradient again, :math:`m_{t+1} = \kappa_t g_t`, and so do the weights
    (`OptimisticHedge`); :math:`\kappa_t \in [0, 1]` is the fraction that has been best so far, by least squares.
    :math:`\eta_i = c\, 2^{i-1}/(4\sqrt T)` up to c = D/G. With :math:`q_t = \lVert g_t - m_t\rVert`
    and :math:`A = \sum_t q_t^2`, regret against comparators of path length P is at most

    .. math:: 1.07\sqrt{(D^2/4 + D P)\,A} + D\sqrt{A \ln N} + 2 D\max_t q_t

    where A is at least :math:`G^2` and P at most A D/G² (other cases: `bound`, with all terms as measured).

    Parameters
    ----------
    domain
        A set that can project, unless `oracle` is another than ``"exact"``.
    projections
        ``"each"``: two per expert and round, as published; ``"one"``: experts live on the ball around
        the set, and their mean is projected, as in `OneProjectionAder`. The default is ``"each"``, and
        ``"one"`` with other methods than ``"exact"``.
    gradients
        ``"one"``, at the decision, for all; ``"own"``: each expert follows those at its own points, N more
        per round. They say more where losses have kinks. Needs arrays and ``projections="each"``.
    smoothness
        :math:`\beta` of the losses. If given, :math:`\kappa = 1`, each expert is charged
        :math:`2\beta\lVert x^i_t - x^i_{t-1}\rVert^2`, the published correction, and weights have a rate of
        at most :math:`1/(2.74\,\beta D^2)`: the regret is then small where gradients change little as functions
        (`bounds.gradient_variation`).
    tuning
        ``"practical"``: projections as accurate as the oracle says; ``"certified"``: a tolerance of
        :math:`D^2/T` where they are not exact. Weights need no range of losses.
    {options}

    Notes
    -----
    A is known after the game, and the bound holds for any convex losses. If they are
    :math:`\beta`-smooth and nonnegative on the whole space, then :math:`A \le 8\beta\sum_t f_t(x_t)`, so regret is
    :math:`O(\sqrt{(1 + P + F)(1 + P)})` with F the loss of the comparators. With `smoothness` given and V the
    sum of the largest squared changes of gradients, :math:`V = \sum_t\max_x\lVert\nabla f_t(x) - \nabla
    f_{t-1}(x)\rVert^2`, it is :math:`O(\sqrt{(1 + P + V)(1 + P)})` with projections of each expert and known
    `horizon` and `lipschitz`. With ``projections="one"`` gradients are those of the
    surrogate, and A is measured with these. With ``gradients="own"``, experts have an A of their own, that of
    the weights is as before, and nothing is proved of V. `docs/theory/benign.md` has the proofs.

    Without `smoothness` weights are scale-free where the original's have a rate that needs :math:`\beta`; the
    original expects all of the last gradient, :math:`\kappa = 1`, which is worse where losses have kinks.

    References
    ----------
    Zhao, Zhang, Zhang and Zhou (2024), Adaptivity and non-stationarity: problem-dependent dynamic regret
    for online convex optimization, JMLR (Sword++; its appendix could not be read, constants are ours).

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> target = dw.losses.SquaredDistance(np.array([0.5, 0.0]))
    >>> learner = dw.contrib.Sword(dw.L2Ball(2), horizon=1000, lipschitz=1.5)
    >>> history = dw.play(learner, [target] * 1000)
    >>> other = dw.Ader(dw.L2Ball(2), 1000, 1.5)
    >>> bool(history.losses.sum() < learner.bound() < 0.1 * other.bound() + 9)
    True
    """

    _past: Annotated[list[Array], PAST]  # what finished epochs cost, see `_epoch_costs`

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        projections: str | None = None,
        gradients: str = "one",
        smoothness: float | None = None,
        oracle: Oracle | str = "exact",
        **options: Unpack[StepOptions],
    ) -> None:
        given: dict[str, Any] = {"oracle": oracle, "loss_scale": "auto", **options}
        checked = projecting_options("Sword", "POLAR", domain, horizon, lipschitz, **given)
        method = checked.oracle.method
        checks.one_of(projections, "projections", ("each", "one", None))
        each = projections == "each" or (projections is None and method == "exact")
        if each and method != "exact":
            raise ValueError('projections="each" are exact; for another method say "one"')
        checks.one_of(gradients, "gradients", ("one", "own"))
        own = gradients == "own"
        if own and not (each and isinstance(domain.origin(), np.ndarray)):
            raise ValueError('gradients="own" needs points that are arrays, and projections="each"')
        self.smoothness = None if smoothness is None else checks.positive(smoothness, "smoothness")
        beta = self.smoothness or 0.0
        self._past = []
        kind = OwnOptimisticDescent if own else OptimisticDescent
        experts = partial(kind, checked.oracle, checked.step_scale, 2.0 * beta, each)
        slow = bounds.SLOW_WEIGHTS * beta * checked.D**2
        super().__init__(
            domain, checked, partial(_plans, checked), experts, partial(_optimistic, slow)
        )

    def update(self, loss: Any, ticket: Any = None) -> float:
        """Play the mean of the experts; weigh them; let all expect this gradient again."""
        f, weights = as_loss(loss), self._meta.weights
        evaluation = self._experts.evaluate(f, weights)
        self._meta.update(evaluation.losses)
        self._experts.charge(weights, evaluation.slopes)
        self._experts.step(f, evaluation.slopes, evaluation.shared)
        self._meta.expect(self._experts.hints())
        self._next_round()
        self._experts.settle(self._meta.weights)
        return evaluation.value

    def _begin(self, epoch: Epoch, start: Point) -> None:
        if self.t:
            self._past = [*self._past, self._epoch_costs()]
        super()._begin(epoch, start)

    def _restart_point(self) -> Point:
        return self._experts.x

    def _epoch_costs(self) -> Array:
        """What the epoch has cost each expert: its static regret with the weights', and that per path."""
        experts, rounds = self._experts, self.t - self._epoch_start
        shrinking, first = self.options.step_scale is None, not self._epoch_start
        if experts.scale == 0.0:
            return np.zeros((2, experts.size))
        start = bounds.AT_CENTER if first and not shrinking else bounds.ANYWHERE
        lengths = self.options.D / (experts.scale * experts.steps)
        apart = 0.0
        if self.options.oracle.method != "exact":
            apart = max(math.sqrt(experts.tolerance), experts.largest_distance)
        fixed = self._meta.regret_bound() + self.lipschitz * rounds * apart
        moving = (1.0 if shrinking else 0.5) * lengths
        return np.stack((start * self.options.D * lengths + experts.costs + fixed, moving))

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        if tau is not None:
            return None
        return over_tables([*self._past, self._epoch_costs()], path_length)

    def check(self) -> None:
        super().check()
        check_past(self._past, self)


def over_tables(tables: list[Array], path_length: float) -> float:
    """Return the sum over epochs of their best expert's costs, from tables of static ones and those per path."""
    return float(sum(max(0.0, (own + path_length * per).min()) for own, per in tables))


def check_past(tables: list[Array], learner: GridLearner) -> None:
    """Refuse tables, read from a file, that are not those of the epochs that a learner has finished."""
    *earlier, _ = learner._epochs()
    sizes = [len(learner._plans(epoch.horizon)) for epoch in earlier]
    require([each.shape[1] for each in tables] == sizes, "epochs")


def _optimistic(start: float, size: int, horizon: int) -> OptimisticHedge:
    return OptimisticHedge(size, start)


def _plans(options: Options, horizon: int) -> list[Plan]:
    """Steps from D/(4 G sqrt(T)), best where gradients alternate, doubling up to D/G."""
    exact = options.oracle.method == "exact"
    tolerance = 0.0 if exact else options.tolerance_scale * options.D**2 / horizon
    number = math.ceil(math.log2(4.0 * math.sqrt(horizon)) - 1e-9) + 1
    return [Plan(2.0**-i, 1, tolerance) for i in reversed(range(number))]

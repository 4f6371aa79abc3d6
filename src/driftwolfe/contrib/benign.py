"""Regret that shrinks where losses are benign: Sword and SACS; and Scream, where moving has a cost."""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Any, Unpack

import numpy as np

from driftwolfe import bounds
from driftwolfe.bounds.ensembles import expert_regret
from driftwolfe.domains import Domain
from driftwolfe.ensemble import AdaNormalHedge, OptimisticHedge
from driftwolfe.ensemble.ball import OptimisticDescent, OwnOptimisticDescent, SelfConfidentBall
from driftwolfe.ensemble.dense import SelfConfidentDescent
from driftwolfe.ensemble.plan import Plan
from driftwolfe.ensemble.weights import Totals
from driftwolfe.learners.base import Epoch, as_loss
from driftwolfe.learners.ensembles import PAST, CoverLearner, GridLearner, anytime
from driftwolfe.learners.options import (
    Options,
    ScaleOptions,
    StepOptions,
    projecting_options,
    require_arrays,
)
from driftwolfe.oracles import Oracle
from driftwolfe.points import checks, norm
from driftwolfe.points.devices import to_host
from driftwolfe.points.kinds import Array, Point
from driftwolfe.state import Field, Size


class Sword(GridLearner):
    r"""Optimistic gradient descent with many step sizes, and optimistic weights: one gradient per round, or more.

    .. math:: \hat x^i \leftarrow P_K(\hat x^i - \eta_i g_t), \qquad
              x^i_{t+1} = P_K(\hat x^i - \eta_i m_{t+1}), \qquad g_t = \nabla f_t(x_t)

    All expect the fraction :math:`\kappa_t \in [0, 1]` of the last gradient again, :math:`m_{t+1} = \kappa_t g_t`,
    which is best so far by least squares, and so do the weights (`OptimisticHedge`). Steps are
    :math:`\eta_i = c\, 2^{i-1}/(4\sqrt T)` up to c = D/G. With :math:`q_t = \lVert g_t - m_t\rVert`,
    :math:`A = \sum_t q_t^2 \ge G^2`, regret against comparators of path length :math:`P \le A D/G^2` is at most

    .. math:: 1.07\sqrt{(D^2/4 + D P)\,A} + D\sqrt{A \ln N} + 2 D\max_t q_t

    Parameters
    ----------
    oracle
        ``"exact"``: the set projects, twice per expert and round, as published. Other methods: experts live on
        the ball around the set, their mean is projected, and A is that of surrogate gradients.
    gradients
        ``"one"``, at the decision, for all; ``"own"``, with arrays and exact projections: each expert follows those
        at its own points, N more per round, which say more where losses have kinks.
    smoothness
        :math:`\beta` of the losses: then :math:`\kappa = 1`, experts are charged :math:`2\beta` times their squared
        moves, as published, and regret is small where gradients change little as functions.
    {options}

    References
    ----------
    Zhao, Zhang, Zhang and Zhou (2024), Adaptivity and non-stationarity: problem-dependent dynamic regret
    for online convex optimization, JMLR (Sword++; appendix not read, constants are ours: `docs/theory/benign.md`).

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner, loss = dw.contrib.Sword(dw.L2Ball(2), 1000, 1.5), dw.losses.SquaredDistance([0.5, 0.0])
    >>> history = dw.play(learner, [loss] * 1000)
    >>> bool(history.losses.sum() < learner.bound() < 0.1 * dw.Ader(dw.L2Ball(2), 1000, 1.5).bound() + 9)
    True
    """

    _past: Annotated[list[Array], PAST]

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        gradients: str = "one",
        smoothness: float | None = None,
        oracle: Oracle | str = "exact",
        **options: Unpack[StepOptions],
    ) -> None:
        checks.one_of(gradients, "gradients", ("one", "own"))
        given: dict[str, Any] = {"oracle": oracle, "loss_scale": "auto", **options}
        checked = projecting_options("Sword", "POLAR", domain, horizon, lipschitz, **given)
        self._past, exact = [], checked.oracle.method == "exact"
        if gradients == "own" and not (exact and isinstance(domain.origin(), np.ndarray)):
            raise ValueError('gradients="own" needs points that are arrays, and oracle="exact"')
        beta = 0.0 if smoothness is None else checks.positive(smoothness, "smoothness")
        kind = OwnOptimisticDescent if gradients == "own" else OptimisticDescent
        experts = partial(kind, checked.oracle, checked.step_scale, 2.0 * beta, exact)
        start = bounds.SLOW_WEIGHTS * beta * checked.D**2
        weights = partial(anytime, OptimisticHedge, start=start)
        super().__init__(domain, checked, partial(_sword_plans, checked), experts, weights)

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

    def _restart_point(self) -> Point:
        return self._experts.x

    def _epoch_costs(self) -> Array:
        experts, rounds, D = self._experts, self.t - self._epoch_start, self.options.D
        if experts.scale == 0.0:
            return np.zeros((2, experts.size))
        shrinking, lengths = self.options.step_scale is None, D / (experts.scale * experts.steps)
        start = bounds.ANYWHERE if self._epoch_start or shrinking else bounds.AT_CENTER
        apart = max(math.sqrt(experts.tolerance), experts.largest_distance)
        fixed = self._meta.regret_bound() + self.lipschitz * rounds * apart
        own = start * D * lengths + experts.costs + fixed
        return np.stack((own, (1.0 if shrinking else 0.5) * lengths))


def _sword_plans(options: Options, horizon: int) -> list[Plan]:
    """Steps from D/(4 G sqrt(T)), best where gradients alternate, doubling up to D/G."""
    number = math.ceil(math.log2(4.0 * math.sqrt(horizon)) - 1e-9) + 1
    return [options.ball_plan(2.0**-i, horizon) for i in reversed(range(number))]


class SACS(CoverLearner):
    r"""Self-confident descent on every interval of a geometric cover, combined by AdaNormalHedge.

    .. math:: x \leftarrow P_K(x - \eta_t g_t), \qquad
              \eta_t = \frac{D}{\sqrt{9 G^2 + 6\Gamma_t}}, \qquad
              \Gamma_t = \sum_{s \le t}\lVert g_s\rVert^2

    since the start of the interval, with D the diameter and G the largest norm of a gradient so far: nothing
    to set. Regret on an interval J of the cover is at most

    .. math:: \sqrt{1.5 G^2 + \Gamma_J}\,(1.64\,D + 2.45\,P) + \sqrt{3 B\, C_J\, c(t)}, \quad
              C_J = \sum_{t \in J}|f_t(x_t) - f_t(x_t^J)|, \quad c(t) = O(\log t)

    with P the path length of the comparators inside it, and on every interval the sum over its pieces; `bound`
    has the largest :math:`\Gamma_J` and :math:`C_J` of each length that were met, and B more where it is learned.
    `docs/theory/benign.md` has the proofs, and what follows for smooth losses.

    Parameters
    ----------
    domain, horizon
        A set that can project, unless `oracle` is another than ``"exact"``; the horizon is not used.
    lipschitz
        G for a certified `loss_scale`; steps have the largest seen.
    projections
        ``"each"``: one per expert; ``"one"``: experts live on the ball around the set, their mean is
        projected, and all learn from one gradient, as in `OneProjectionSAOL`. Then D is twice the radius,
        :math:`\eta_t = D/\sqrt{32 G^2 + 8\Gamma_t}`, and the first term of the bound
        :math:`\sqrt{4 G^2 + \Gamma_J}\,(1.77\,D + 2.83\,P)`, with surrogate gradients.
    {options}

    References
    ----------
    Zhang, Liu and Zhou (2019), Adaptive regret of convex and smooth functions, ICML, with half of the intervals
    and longer steps; Orabona and Pál (2018), Scale-free online learning, Theoretical Computer Science.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.contrib.SACS(dw.L2Ball(2), lipschitz=2.0, tuning="certified")
    >>> for t in range(400):
    ...     suffered = learner.update(dw.losses.SquaredDistance([0.5 if t < 200 else -0.5, 0.0]))
    >>> learner.decision.round(2), bool(learner.bound(tau=200) < 100)
    (array([-0.5,  0. ]), True)
    """

    _costs: Annotated[Array, Field(np.float64, ("experts",), 0.0)]  # the largest C of each length
    _meta: Any

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        oracle: Oracle | str = "exact",
        projections: str = "each",
        **options: Unpack[ScaleOptions],
    ) -> None:
        checks.one_of(projections, "projections", ("each", "one"))
        one = projections == "one"
        given = options | ({"feedback": "linear"} if one else {})
        checked = projecting_options(
            "SACS", "POLA", domain, horizon, lipschitz, oracle=oracle, on_ball=one, **given
        )
        if not one:
            require_arrays(domain, "SACS", 'projections="one", or POLA')
        self._costs = np.zeros(1)
        meta, plan = AdaNormalHedge(checked.loss_scale), partial(Options.interval_plan, checked)
        experts = partial(SelfConfidentBall if one else SelfConfidentDescent, checked.oracle)
        super().__init__(domain, checked, plan, meta, experts)

    def _turn_over(self, start: Point) -> None:
        costs = np.maximum(self._costs, self._meta.scale * self._meta.movements)
        super()._turn_over(start)
        self._costs = np.append(costs, np.zeros(self._meta.size - costs.size))

    def _level_bound(self, k: int) -> float:
        found, meta = self._experts, self._meta
        if k >= len(found.worst):  # no such interval has begun
            return math.inf
        a = found.a
        own = found.reach * (0.5 / a * self._root(k) + a * math.sqrt(found.worst[k]))
        apart = math.sqrt(found.tolerances[k]) if found.tolerances[k] > 0.0 else 0.0
        own += self.lipschitz * (1 << k) * max(apart, found.largest_distance)
        if meta.scale == 0.0:
            return own
        movement = float(self._costs[k]) / meta.scale  # C, in units of B
        return own + bounds.weighing(meta, movement, self.t)

    def _level_per_path(self, k: int) -> float:
        found = self._experts
        return self._root(k) / found.a if k < len(found.worst) else math.inf

    def _root(self, k: int) -> float:
        found = self._experts
        return math.sqrt(found.k * found.largest_gradient**2 + found.worst[k])


class Scream(GridLearner):
    r"""Ader for losses with a switching cost: every unit that the decision moves costs :math:`\lambda`.

    .. math:: x^i_{t+1} = P_K(x^i_t - \eta_i g_t), \qquad
              \ell_t^i = \langle g_t, x^i_t\rangle + \lambda\lVert x^i_t - x^i_{t-1}\rVert, \qquad
              g_t = \nabla f_t(x_t)

    `OptimisticHedge`, without hints, weighs the experts by :math:`\ell_t^i`. The N = O(log T) steps are
    :math:`\eta_i = c\,2^{i-1}/\sqrt{(4 + 8\lambda/G) T}`, c = D/G. Against comparators of path length P,

    .. math:: \sum_t f_t(x_t) + \lambda\lVert x_t - x_{t-1}\rVert - f_t(u_t) \le \\
              \min_i \frac{D^2/8 + DP/2}{\eta_i} + \frac{\eta_i T G^2}{2} + \lambda(M_i - \bar M + M) + 2 a\ln N

    with M (`moved`), :math:`M_i` and :math:`\bar M` how far the decision, expert i and, on average, the experts
    have moved, and a the inverse rate of the weights, as measured (proof: `docs/theory/benign.md`). In advance,
    :math:`M_i \le \eta_i T G` and :math:`2 a\ln N = O(\sqrt T)`.

    Parameters
    ----------
    domain
        A set of arrays that can project.
    switching
        :math:`\lambda`, in [f]/[x]: a multiple of G is a cost that matters.
    {options}

    References
    ----------
    Zhao, Wang and Zhou (2022), Non-stationary online learning with memory and non-stochastic control,
    AISTATS (its abstract, and ``Scream`` in PyNOL).

    Examples
    --------
    >>> import driftwolfe as dw
    >>> signs = [dw.losses.LinearLoss([1.0 if t % 2 else -1.0, 0.0]) for t in range(200)]
    >>> quiet, free = (dw.contrib.Scream(dw.L2Ball(2), 200, 1.0, switching=s) for s in (10.0, 0.01))
    >>> _ = [dw.play(each, signs) for each in (quiet, free)]
    >>> bool(quiet.moved < 0.5 * free.moved)
    True
    """

    moved: Size
    _moves: Totals  # of the last step
    _excess: Annotated[Array, Field(np.float64, ("experts",))]  # M_i less their mean
    _past: Annotated[list[Array], PAST]

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        switching: float = 1.0,
        **options: Unpack[StepOptions],
    ) -> None:
        self.switching, self.moved, self._past = checks.positive(switching, "switching"), 0.0, []
        own: dict[str, Any] = {"oracle": "exact", "feedback": "linear", "loss_scale": "auto"}
        checked = projecting_options("Scream", "POLD", domain, horizon, lipschitz, **own, **options)
        require_arrays(domain, "Scream", "Ader")
        parts = (
            partial(_scream_plans, checked, self.switching),
            None,
            partial(anytime, OptimisticHedge),
        )
        super().__init__(domain, checked, *parts)

    def update(self, loss: Any, ticket: Any = None) -> float:
        """Play the mean of the experts; weigh them by their losses and moves; let each step."""
        f, weights, experts = as_loss(loss), self._meta.weights, self._experts
        evaluation = experts.evaluate(f, weights, True)
        before, mean = np.array(to_host(experts.x)), experts.mean(weights)
        self._meta.update(evaluation.losses + self.switching * self._moves)
        self._excess = self._excess + self._moves - float(weights @ self._moves)
        experts.step(f, evaluation.slopes, evaluation.shared)
        step = (to_host(experts.x) - before).reshape(experts.size, -1)
        self._moves = np.sqrt(np.add.reduce(step * step, axis=1))
        self._next_round()
        self.moved += norm(self._experts.mean(self._meta.weights) - mean)
        self._experts.settle(self._meta.weights)
        return evaluation.value

    def _begin(self, epoch: Epoch, start: Point) -> None:
        super()._begin(epoch, start)
        self._moves, self._excess = np.zeros((2, self._experts.size))

    def _epoch_costs(self) -> Array:
        plans, known = self._plans(self._epoch_length), self.options.measured(self._experts)
        rounds = self.t - self._epoch_start
        start = bounds.ANYWHERE if self._epoch_start else bounds.AT_CENTER
        both = [[expert_regret(p, known, rounds, u, start) for p in plans] for u in (0.0, known.D)]
        own, more = np.array(both)
        fixed = self._meta.regret_bound() + self.switching * self._excess
        return np.stack((own + fixed, (more - own) / known.D))

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        found = super()._bound(path_length, tau)
        return None if found is None else found + self.switching * self.moved


def _scream_plans(options: Options, switching: float, horizon: int) -> list[Plan]:
    """Steps from the best one for P = 0, doubling up to that for P = T D."""
    relative = switching / options.lipschitz if options.lipschitz else 1.0
    first = 0.125 / ((0.5 + relative) * horizon)
    number = math.ceil(0.5 * math.log2(1.0 + 4.0 * horizon)) + 1
    return [Plan(2.0**i * math.sqrt(first), 1, 0.0) for i in range(number)]

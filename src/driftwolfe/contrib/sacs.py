"""SACS: regret on every interval that shrinks where losses are small."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from driftwolfe import bounds
from driftwolfe.domains import Domain
from driftwolfe.ensemble import AdaNormalHedge
from driftwolfe.ensemble.ball import SelfConfidentBall
from driftwolfe.ensemble.dense import SelfConfidentDescent
from driftwolfe.ensemble.experts import Evaluation
from driftwolfe.ensemble.plan import FOREVER, Plan
from driftwolfe.ensemble.weights import Totals
from driftwolfe.learners.base import as_loss
from driftwolfe.learners.ensembles import CoverLearner
from driftwolfe.learners.options import Options, projecting_options
from driftwolfe.oracles import Oracle
from driftwolfe.points import checks
from driftwolfe.points.kinds import Point
from driftwolfe.state import Count, Size
from driftwolfe.storage import require


class SACS(CoverLearner):
    r"""Self-confident descent on every interval of a geometric cover, combined by AdaNormalHedge.

    .. math:: x \leftarrow P_K(x - \eta_t g_t), \qquad
              \eta_t = \frac{D}{\sqrt{9 G^2 + 6\Gamma_t}}, \qquad
              \Gamma_t = \sum_{s \le t}\lVert g_s\rVert^2

    since the start of the interval, with D the diameter and G the largest norm of a gradient so far: nothing
    to set. O(log t) gradients per round (one with linear feedback) and projections. Regret on an interval
    J of the cover is at most

    .. math:: \sqrt{1.5 G^2 + \Gamma_J}\,(1.64\,D + 2.45\,P) + \sqrt{3 B\, C_J\, c(t)}, \\
              C_J = \sum_{t \in J}|f_t(x_t) - f_t(x_t^J)|, \quad c(t) = O(\log t)

    with P the path length of the comparators inside it, and on every interval the sum over its pieces.

    Parameters
    ----------
    domain, horizon
        A set that can project, unless `oracle` is another than ``"exact"``; of arrays, where each expert
        projects. The horizon is not used.
    lipschitz
        G for a certified `loss_scale`; steps have the largest seen.
    projections
        ``"each"``: one per expert; ``"one"``: experts live on the ball around the set, their mean is
        projected, and all learn from one gradient, as in `OneProjectionSAOL`. Then D is twice the radius,
        :math:`\eta_t = D/\sqrt{32 G^2 + 8\Gamma_t}`, and the first term of the bound
        :math:`\sqrt{4 G^2 + \Gamma_J}\,(1.77\,D + 2.83\,P)`.
    loss_threshold
        For losses that are never negative, in their units: the shortest intervals are not rounds, but end
        when their expert has lost more than this, and longer ones count these instead of rounds. Fewer
        experts, and none that restart where losses are small. Not with linear feedback.
    {options}

    Notes
    -----
    `bound` has the largest :math:`\Gamma_J` and :math:`C_J` of each length that were met. For losses
    that are nonnegative and :math:`\beta`-smooth on the whole space,
    :math:`\Gamma_J \le 2\beta\sum_J f_t(x_t^J)`, and
    :math:`C_J \le \sum_J f_t(x_t) + f_t(x_t^J)`, which makes both terms :math:`\tilde O(\sqrt{1 + F_J})`, F
    the loss of the best point on J. Where B is learned the bound is conditional, see
    `AdaNormalHedge`. The original has half of the intervals (its cover is compact); its steps are longer.
    With a `loss_threshold`, the original's variant, c(t) is logarithmic in the losses of experts rather than in
    rounds, and a window that begins inside a shortest interval costs what that interval's expert lost, and
    :math:`\sqrt{3 B\, C_J\, c(t)}`, more. `docs/theory/benign.md` has the proofs.

    With ``projections="one"``, :math:`\Gamma` is that of the surrogate gradients, which are no longer than the true
    ones at the decision, and C that of their linear losses.

    References
    ----------
    Zhang, Liu and Zhou (2019), Adaptive regret of convex and smooth functions, ICML; the steps are from
    Orabona and Pál (2018), Scale-free online learning, Theoretical Computer Science.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> learner = dw.contrib.SACS(dw.L2Ball(2), lipschitz=2.0, tuning="certified")
    >>> for t in range(400):
    ...     suffered = learner.update(dw.losses.SquaredDistance([0.5 if t < 200 else -0.5, 0.0]))
    >>> learner.decision.round(2), bool(learner.bound(tau=200) < 100)
    (array([-0.5,  0. ]), True)
    """

    _passed: Count
    _lost: Size
    _most_lost: Size
    _experts: Any
    _meta: Any

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        oracle: Oracle | str = "exact",
        projections: str = "each",
        loss_threshold: float | None = None,
        start: str = "current",
        loss_scale: float | str | None = None,
        feedback: str = "full",
        tuning: str = "practical",
    ) -> None:
        checks.one_of(projections, "projections", ("each", "one"))
        one = projections == "one"
        checked = projecting_options(
            "SACS",
            "POLA",
            domain,
            horizon,
            lipschitz,
            oracle=oracle,
            loss_scale=loss_scale,
            feedback="linear" if one else feedback,
            tuning=tuning,
            on_ball=one,
        )
        if not (one or isinstance(domain.origin(), np.ndarray)):
            raise ValueError(
                f"SACS works on dense arrays, not on {type(domain.unwrapped).__name__} of shape "
                f'{domain.shape}; say projections="one", or use POLA'
            )
        self.loss_threshold = None
        if loss_threshold is not None:
            self.loss_threshold = checks.positive(loss_threshold, "loss_threshold")
            self._unit = "interval"
            if checked.linear:
                raise ValueError('loss_threshold needs losses as they are, not feedback="linear"')
        self._passed = 0  # shortest intervals that are over, if they end by losses
        self._lost = self._most_lost = 0.0  # in the one under way, and at most in any
        meta = _TrackedHedge(checked.loss_scale)
        experts = partial(SelfConfidentBall, checked.oracle) if one else partial(_experts, checked)
        plan = partial(_plan, checked, self.loss_threshold is None)
        super().__init__(domain, checked, plan, meta, start, experts)

    def update(self, loss: Any, ticket: Any = None) -> float:
        """Play the mean of the experts awake; weigh them; step; wake and retire where an interval ends."""
        f = as_loss(loss)
        evaluation = self._experts.evaluate(f, self._weights, self.options.linear)
        start, over = self._first_point(), self._interval_over(evaluation)
        self._meta.update(evaluation.played, evaluation.losses)
        self._experts.step(f, evaluation.slopes, evaluation.shared)
        self.t += 1
        if over:
            self._turn_over(start)
        self._weights = self._meta.weights
        self._experts.settle(self._weights)
        return evaluation.value

    def _interval_over(self, evaluation: Evaluation) -> bool:
        """Whether the shortest interval ends with this round: after one, or by the losses."""
        if self.loss_threshold is None:
            return True
        if evaluation.losses.min() < 0.0:
            raise ValueError(
                "with a loss_threshold losses must not be negative; add a constant to them"
            )
        self._lost += float(evaluation.losses[0])  # of the expert that began last
        self._most_lost = max(self._most_lost, self._lost)
        over = self._lost > self.loss_threshold
        if over:
            self._passed, self._lost = self._passed + 1, 0.0
        return over

    @property
    def _interval(self) -> int:
        return super()._interval if self.loss_threshold is None else self._passed + 1

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        if self.loss_threshold is None:
            return super()._bound(path_length, tau)
        rounds = self.t if tau is None else min(tau, self.t)
        number = min(rounds, self._interval)
        path_length = min(path_length, max(0, rounds - 1) * self.domain.diameter)
        if tau is None:
            return bounds.over_game(number, self._level_bound, self._level_per_path, path_length)
        # A window has at most that many intervals, two runs of shorter ones around some of length 2^k.
        best, shorter, per_path = math.inf if number else 0.0, 0.0, 0.0
        for k in range(number.bit_length()):
            one, per_path = self._level_bound(k), max(per_path, self._level_per_path(k))
            best = min(best, 2.0 * shorter + (number >> k) * one + path_length * per_path)
            shorter += one
        # It may begin inside a shortest interval, all of which costs no more than this.
        return best + self._most_lost + self._weighing(0)

    def check(self) -> None:
        super().check()
        by_rounds = self.loss_threshold is None
        require(self._passed <= (0 if by_rounds else self.t), "intervals")
        require(self._lost <= self._most_lost, "losses of intervals")

    def _level_bound(self, k: int) -> float:
        worst, found = self._experts.worst, self._experts
        if k >= len(worst):  # no such interval has begun
            return math.inf
        a = found.confidence.a
        own = found.reach * (0.5 / a * self._root(k) + a * math.sqrt(worst[k]))
        apart = math.sqrt(found.tolerances[k]) if found.tolerances[k] > 0.0 else 0.0
        rounds = (1 << k) if self.loss_threshold is None else self.t
        own += self.lipschitz * rounds * max(apart, found.largest_distance)
        return own + self._weighing(k)

    def _weighing(self, k: int) -> float:
        """What the weights cost on an interval of 2^k shortest ones."""
        meta = self._meta
        if meta.scale == 0.0:
            return 0.0
        created = None if self.loss_threshold is None else self._cover.created(self._interval)
        one = bounds.weighing(meta, 1, self.t, created)  # for a C of 1 in units of B
        return one * math.sqrt(meta.worst[k] / meta.scale)

    def _level_per_path(self, k: int) -> float:
        found = self._experts
        return self._root(k) / found.confidence.a if k < len(found.worst) else math.inf

    def _root(self, k: int) -> float:
        found = self._experts
        return math.sqrt(found.confidence.k * found.largest_gradient**2 + found.worst[k])


@dataclass(eq=False)
class _TrackedHedge(AdaNormalHedge):
    """AdaNormalHedge that keeps the largest C of each place, in units of the loss."""

    worst: Totals = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.worst = np.zeros(0)

    def add(self, new: int | Sequence[int]) -> None:
        super().add(new)
        self.worst = np.concatenate((self.worst, np.zeros(self.size - self.worst.size)))

    def update(self, learner_loss: float, expert_losses: Any) -> None:
        super().update(learner_loss, expert_losses)
        self.worst = np.maximum(self.worst, self.scale * self.movements)


def _plan(options: Options, by_rounds: bool, length: int) -> Plan:
    """For an interval of that length: of so many rounds, or of rounds that nobody knows yet."""
    return options.unblocked_plan(length**-0.5, length if by_rounds else FOREVER)


def _experts(
    options: Options, domain: Domain, plans: Sequence[Plan], start: Point
) -> SelfConfidentDescent:
    experts = SelfConfidentDescent(domain, options.oracle)
    experts.add(start, plans)
    return experts

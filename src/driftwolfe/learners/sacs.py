"""SACS: regret on every interval that shrinks where losses are small."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Unpack

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.ensemble import AdaNormalHedge
from driftwolfe.ensemble.ball import SelfConfidentBall
from driftwolfe.ensemble.dense import SelfConfidentDescent
from driftwolfe.ensemble.plan import Plan
from driftwolfe.learners import bounds
from driftwolfe.learners.options import (
    Options,
    WeightOptions,
    make_options,
    one_of,
    require_projection,
)
from driftwolfe.learners.pola import CoverLearner
from driftwolfe.points.kinds import Array, Point
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
        A set that can project, unless `method` is another than ``"exact"``; of arrays, where each expert
        projects. The horizon is not used.
    lipschitz
        G for a certified `loss_scale`; steps have the largest seen.
    projections
        ``"each"``: one per expert; ``"one"``: experts live on the ball around the set, their mean is
        projected, and all learn from one gradient, as in `OneProjectionSAOL`. Then D is twice the radius,
        :math:`\eta_t = D/\sqrt{32 G^2 + 8\Gamma_t}`, and the first term of the bound
        :math:`\sqrt{4 G^2 + \Gamma_J}\,(1.77\,D + 2.83\,P)`.
    {options}

    Notes
    -----
    `bound` has the largest :math:`\Gamma_J` and :math:`C_J` of each length that were met. For losses
    that are nonnegative and :math:`\beta`-smooth on the whole space,
    :math:`\Gamma_J \le 2\beta\sum_J f_t(x_t^J)`, and
    :math:`C_J \le \sum_J f_t(x_t) + f_t(x_t^J)`, which makes both terms :math:`\tilde O(\sqrt{1 + F_J})`, F
    the loss of the best point on J. Where B is learned the bound is conditional, see
    `AdaNormalHedge`. The original has half of the intervals (its cover is compact) and, in a variant,
    intervals whose ends depend on the losses; its steps are longer. `docs/theory/benign.md` has the proofs.

    With ``projections="one"``, :math:`\Gamma` is that of the surrogate gradients, which are no longer than the true
    ones at the decision, and C that of their linear losses.

    References
    ----------
    Zhang, Liu and Zhou (2019), Adaptive regret of convex and smooth functions, ICML; the steps are from
    Orabona and Pál (2018), Scale-free online learning, Theoretical Computer Science.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> learner = dw.SACS(dw.L2Ball(2), lipschitz=2.0, tuning="certified")
    >>> for t in range(400):
    ...     suffered = learner.update(dw.losses.SquaredDistance([0.5 if t < 200 else -0.5, 0.0]))
    >>> learner.decision.round(2), bool(learner.bound(tau=200) < 100)
    (array([-0.5,  0. ]), True)
    """

    _experts: Any
    _meta: Any

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        method: str = "exact",
        projections: str = "each",
        start: str = "current",
        **options: Unpack[WeightOptions],
    ) -> None:
        if "step_scale" in options and options["step_scale"] is not None:
            raise ValueError("step_scale: SACS sets its steps by itself; leave it out")
        one_of(projections, "projections", ("each", "one"))
        one = projections == "one"
        if one:
            options["feedback"] = "linear"
        checked = make_options(domain, horizon, lipschitz, method=method, on_ball=one, **options)
        if not (one or isinstance(domain.origin(), np.ndarray)):
            raise ValueError(
                f"SACS works on dense arrays, not on {type(domain.unwrapped).__name__} of shape "
                f'{domain.shape}; say projections="one", or use POLA'
            )
        if method == "exact":
            require_projection(domain, "SACS", "POLA")
        meta = _TrackedHedge(checked.loss_scale)
        experts = partial(SelfConfidentBall, checked.oracle) if one else partial(_experts, checked)
        super().__init__(domain, checked, partial(_plan, checked), meta, start, experts)

    def _level_bound(self, k: int) -> float:
        worst, movements = self._experts.worst, self._meta.worst
        if k >= len(worst):  # no such interval has begun
            return math.inf
        found, meta = self._experts, self._meta
        a = found.confidence.a
        own = found.reach * (0.5 / a * self._root(k) + a * math.sqrt(worst[k]))
        apart = math.sqrt(found.tolerances[k]) if found.tolerances[k] > 0.0 else 0.0
        own += self.lipschitz * (1 << k) * max(apart, found.largest_distance)
        if meta.scale == 0.0:
            return own
        one = bounds.weighing(meta, 1, self.t)  # for a C of 1 in units of B
        return own + one * math.sqrt(movements[k] / meta.scale)

    def _level_price(self, k: int) -> float:
        found = self._experts
        return self._root(k) / found.confidence.a if k < len(found.worst) else math.inf

    def _root(self, k: int) -> float:
        found = self._experts
        return math.sqrt(found.confidence.k * found.largest_gradient**2 + found.worst[k])


@dataclass(eq=False)
class _TrackedHedge(AdaNormalHedge):
    """AdaNormalHedge that keeps the largest C of each place, in units of the loss."""

    STATE: ClassVar = ("worst",)  # type: ignore[assignment]

    worst: Array = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.worst = np.zeros(0)

    def add(self, new: int | Sequence[int]) -> None:
        super().add(new)
        self.worst = np.concatenate((self.worst, np.zeros(self.size - self.worst.size)))

    def update(self, learner_loss: float, expert_losses: Any) -> None:
        super().update(learner_loss, expert_losses)
        self.worst = np.maximum(self.worst, self.scale * self.movements)

    def check_state(self) -> None:
        super().check_state()
        require(self.worst.size == self.size and (self.worst >= 0.0).all(), "weights")


def _plan(options: Options, length: int) -> Plan:
    return options.unblocked_plan(length**-0.5, length)


def _experts(
    options: Options, domain: Domain, plans: Sequence[Plan], start: Point
) -> SelfConfidentDescent:
    experts = SelfConfidentDescent(domain, options.oracle)
    experts.add(start, plans)
    return experts

"""SACS: regret on every interval that shrinks where losses are small."""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Any, Unpack

import numpy as np

from driftwolfe import bounds
from driftwolfe.domains import Domain
from driftwolfe.ensemble import AdaNormalHedge
from driftwolfe.ensemble.ball import SelfConfidentBall
from driftwolfe.ensemble.dense import SelfConfidentDescent
from driftwolfe.learners.ensembles import CoverLearner
from driftwolfe.learners.options import Options, ScaleOptions, projecting_options, require_arrays
from driftwolfe.oracles import Oracle
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Point
from driftwolfe.state import Field


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
        start: str = "current",
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
        super().__init__(domain, checked, plan, meta, start, experts)

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

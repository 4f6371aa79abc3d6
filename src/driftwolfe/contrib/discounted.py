"""Learners that discount the past: a magnitude and a direction, and steps for all time scales."""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Unpack

import numpy as np
from scipy.special import erfi

from driftwolfe.bounds.ensembles import expert_regret
from driftwolfe.domains import Domain
from driftwolfe.ensemble.ball import INSIDE, surrogate
from driftwolfe.ensemble.plan import Plan
from driftwolfe.ensemble.weights import NormalPredictors
from driftwolfe.learners.ensembles import PAST, GridLearner
from driftwolfe.learners.options import (
    Options,
    WeightOptions,
    projecting_options,
    require_arrays,
    require_projection,
)
from driftwolfe.learners.single_point import SinglePointLearner
from driftwolfe.oracles import Oracle
from driftwolfe.points import checks, inner, norm
from driftwolfe.points.kinds import Array, Point
from driftwolfe.state import POINT, Field, Size


class DiscountedAdaptive(SinglePointLearner):
    r"""Plays :math:`P_K(c + y z)`: a direction z in the unit ball, a magnitude y in [0, R], c the centre.

    .. math:: y = R\,\Big(\int_0^{q} e^{v^2}dv - \tfrac{h}{\sqrt W}\,e^{q^2}\Big), \quad q = \tfrac{S}{2\sqrt W},\
              W = V + 2hS + 16h^2, \qquad z \leftarrow P_{ball}\big(z - \sqrt{2/N}\,g\big)

    S is the sum of the slopes :math:`-\langle g_s, z_s\rangle`, each cut to the size of the largest before it, h;
    V is that of their squares, N that of :math:`\lVert g_s\rVert^2`, all weighed by :math:`\lambda^{t-s}`, squares
    twice. g is the surrogate gradient of `OneProjectionAder` at :math:`c + y z`; slopes that would drive y out of
    [0, R] are 0. Regret weighed by :math:`\lambda^{t-s}` is at most

    .. math:: B_t = R\,\big(\max(0, S) + \sqrt W(e^{q^2} - 2q\textstyle\int_0^q e^{v^2}dv) + h + \sqrt{8N}\big)

    after round t, and regret against comparators of path length P at most :math:`B_T + (1 - \lambda)
    \sum_{t<T} B_t + P\max_t\sum_{s<t}\lambda^{t-s}\lVert g_s\rVert` (`docs/theory/benign.md`).

    Parameters
    ----------
    domain, horizon, lipschitz
        A set of arrays that can project; the others are not used.
    discount
        :math:`\lambda`, above 0 and at most 1: the last :math:`1/(1 - \lambda)` rounds count. Theirs by default.
    {options}

    References
    ----------
    Zhang, Bombara and Yang (2024), Discounted adaptive online learning: towards better regularization, ICML
    (code and abstract; R is its unit of length, the way into K ours); Zhang, Yang, Cutkosky and Paschalidis
    (2024), Improving adaptive online learning using refined discretization, ALT (the potential).

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.contrib.DiscountedAdaptive(dw.L2Ball(2), discount=0.99)
    >>> history = dw.play(learner, [dw.losses.LinearLoss([1.0, 0.0])] * 100)
    >>> learner.decision.round(2), bool(learner.bound() < 100)
    (array([-1.,  0.]), True)
    """

    _z: Annotated[Point, POINT]
    _y: Annotated[float, Field(float)]  # before it is cut to [0, R]
    _ahead: Size  # S + h, which is never negative
    _h: Size
    _V: Size
    _N: Size
    _mass: Size  # the weighed sum of the norms of gradients,
    _reach: Size  # and the largest that it was
    _costs: Size  # (1 - discount) times the sum of all B_t but the last,
    _last: Size  # which is this

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        discount: float = 0.999,
    ) -> None:
        super().__init__(domain, horizon, lipschitz)
        require_arrays(domain, "DiscountedAdaptive", "POLAR")
        require_projection(domain, "DiscountedAdaptive", "POLAR")
        self.discount = checks.positive(discount, "discount")
        if self.discount > 1.0:
            raise ValueError(f"discount must be at most 1, got {discount}")
        self._z = 0.0 * self._x
        self._y = self._ahead = self._h = self._V = self._N = 0.0
        self._mass = self._reach = self._costs = self._last = 0.0

    def _outside(self) -> tuple[float, Point]:
        """The magnitude, and the point whose projection is played."""
        y = min(max(0.0, self._y), self.domain.radius)
        return y, self.domain.origin() + y * self._z

    def _step(self, gradient: Point, size: float) -> None:
        keep, R, (y, outside) = self.discount, self.domain.radius, self._outside()
        away = outside - self._x
        gradient = surrogate(gradient, away) if norm(away) > INSIDE * R else gradient
        size, slope = norm(gradient), inner(gradient, self._z)  # of what replaces it
        slope *= slope * (self._y - y) >= 0.0
        before = keep * self._h
        cut = min(max(slope, -before), before)
        h, S = max(before, abs(slope)), keep * (self._ahead - self._h) - cut
        self._h, self._ahead, self._V = h, max(0.0, S + h), keep**2 * self._V + cut**2
        self._N, self._mass = keep**2 * self._N + size**2, keep * self._mass + size
        if self._N > 0.0:
            z = self._z - math.sqrt(2.0 / self._N) * gradient
            self._z = z * (1.0 / max(1.0, norm(z)))
        root = math.sqrt(self._V + 2.0 * h * self._ahead + 14.0 * h * h)
        q = 0.5 * S / (root or 1.0)
        bend, power = 0.5 * math.sqrt(math.pi) * float(erfi(q)), math.exp(q * q)
        self._y = R * (bend - h / (root or 1.0) * power)
        own = max(0.0, S) + root * (power - 2.0 * q * bend) + h
        self._x = self._counted.project(self._outside()[1])
        self._costs += (1.0 - keep) * self._last
        self._last = R * max(0.0, own + math.sqrt(8.0 * self._N))
        self._reach = max(self._reach, self._mass)

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        if tau is not None:
            return None
        return self._costs + self._last + self.discount * self._reach * path_length


class SmoothedOGD(GridLearner):
    r"""Gradient descent with a step for every time scale, mixed in a chain: the longest first.

    .. math:: \eta_i = c\sqrt{2/n_i}, \quad n_i = T/2^{i-1} \ge 16\ln T, \qquad
              y^i = (1 - \omega_i)\, y^{i-1} + \omega_i x^i, \quad y^1 = x^1

    The last y is played. :math:`z_i \leftarrow (1 - 1/n_i) z_i + b_i`, where :math:`b_i \in [-1, 1]` is what
    :math:`x^i` gained on :math:`y^{i-1}`, over the largest range of losses so far (left out where it confirms a
    share of 0 or 1), and :math:`\omega_i = \frac1T\sqrt{n_i/8}\ e^{s^2/2}\int_0^s e^{-v^2}dv`, within
    0 and 1, for :math:`s = z_i/\sqrt{8n_i}`. Regret is :math:`O(G\sqrt{T D (D + P)\ln T})`, and with a horizon
    :math:`O(G\sqrt{\tau D (D + P)\ln T})` on intervals of :math:`16\ln T` rounds or more: proofs, for discounted
    regret too, in `docs/theory/benign.md`.

    Parameters
    ----------
    loss_scale
        The range of losses to start from: a number, ``"certified"`` (G times the diameter) or ``"auto"`` (0).
    {options}

    References
    ----------
    Yang, Yang and Zhang (2026), Discounted online convex optimization: uniform regret across a continuous
    interval, ICLR (its abstract, and a summary with algorithms and theorems; proofs are ours).

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.contrib.SmoothedOGD(dw.L2Ball(2), horizon=500, lipschitz=1.0)
    >>> learner.expert_names
    ['η = 0.126', 'η = 0.179', 'η = 0.253']
    """

    _past: Annotated[list[Array], PAST]

    def __init__(
        self,
        domain: Domain,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        oracle: Oracle | str = "exact",
        **options: Unpack[WeightOptions],
    ) -> None:
        given = "SmoothedOGD", "POLD", domain, horizon, lipschitz
        checked = projecting_options(*given, oracle=oracle, **options)
        scale = 0.0 if checked.loss_scale == "auto" else checked.loss_scale
        self._past, chain = [], partial(NormalPredictors, scale)
        super().__init__(domain, checked, partial(_plans, checked), weights=chain)

    def _costs(self, rounds: int, path: float, whole: bool) -> Array:
        """Bounds by expert: on so many rounds from the start of the epoch, or anywhere in it."""
        chain, known = self._meta, self.options.measured(self._experts)
        plans = self._plans(self._epoch_length)
        own = [expert_regret(plan, known, rounds, path) for plan in plans]
        slack, U = 0.5 * rounds / chain.horizon, chain.limits
        mixing = (U + 1.0) * (1.0 + rounds / chain.lengths) + slack + (1.0 if whole else 2.0)
        later = np.full(chain.size, slack + 1.0) + (0.0 if whole else 0.5 * U + 1.0)
        mixing[0] = later[0] = 0.0
        return np.array(own) + chain.scale * (mixing + later.sum() - np.cumsum(later))

    def _epoch_costs(self) -> Array:
        rounds, D = self.t - self._epoch_start, self.options.D
        own, more = (self._costs(rounds, path, True) for path in (0.0, D))
        return np.stack((own, (more - own) / D))

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        if tau is None:
            return super()._bound(path_length, tau)
        if self.options.horizon is None:  # intervals may lie across epochs
            return None
        return float(self._costs(min(tau, self.t), path_length, False).min())


def _plans(options: Options, horizon: int) -> list[Plan]:
    """The steps of the time scales: the horizon, and its halves that are at least 16 ln T and 8 e."""
    least = max(8.0 * math.e, 16.0 * math.log(horizon))
    number = max(1, math.floor(math.log2(horizon / least)) + 1)
    return [options.unblocked_plan(math.sqrt(2.0**i / horizon)) for i in range(1, number + 1)]

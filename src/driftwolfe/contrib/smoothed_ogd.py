"""Smoothed online gradient descent: steps for all time scales, mixed one after the other."""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Any, Unpack

import numpy as np

from driftwolfe.bounds.ensembles import expert_regret
from driftwolfe.domains import Domain
from driftwolfe.ensemble.plan import Plan
from driftwolfe.ensemble.weights import NormalPredictors
from driftwolfe.learners.ensembles import PAST, GridLearner
from driftwolfe.learners.options import Options, WeightOptions, projecting_options
from driftwolfe.oracles import Oracle
from driftwolfe.points.kinds import Array


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
        given: dict[str, Any] = {"oracle": oracle, **options}
        checked = projecting_options("SmoothedOGD", "POLD", domain, horizon, lipschitz, **given)
        scale = 0.0 if checked.loss_scale == "auto" else checked.loss_scale
        self._past = []
        super().__init__(
            domain, checked, partial(_plans, checked), None, partial(NormalPredictors, scale)
        )

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

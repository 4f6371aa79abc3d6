"""A mixture of whole learners."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated, Any

import numpy as np

from driftwolfe.domains import Domain, OracleCalls
from driftwolfe.ensemble import AdaHedge, ExpConcaveHedge
from driftwolfe.ensemble.experts import combine, products, require_finite, stack, weighted_sum
from driftwolfe.learners import POLAR, Constant, Learner
from driftwolfe.learners.base import as_loss
from driftwolfe.learners.options import make_options
from driftwolfe.points import checks
from driftwolfe.points.kinds import Point
from driftwolfe.state import Nested
from driftwolfe.storage import require


class Mixture(Learner):
    r"""Plays the weighted mean of other learners on the same set, yours among them.

    With ``weights="adahedge"`` it follows the best (`AdaHedge`, on losses linearised at its decision); with
    ``"natural"``, for exp-concave losses, it loses at most :math:`\ln(1/p_i)/\alpha` more than learner i.

    Parameters
    ----------
    learners
        Learners on this set that have played no round, which are copied (to `learners`), or classes and
        functions, called as ``make(domain, horizon=..., lipschitz=...)``. By default `Constant` and `POLAR`.
    weights, alpha, prior
        ``"adahedge"`` or ``"natural"``; for the latter, the exp-concavity of the losses, over their units (1 for
        `PortfolioLoss`), and a positive number for each learner, its part p_i of their sum (None: all alike).
    {options}

    Examples
    --------
    >>> import driftwolfe as dw
    >>> fund = dw.contrib.Mixture(dw.Simplex(2), [dw.learners.Constant, dw.POLAR], weights="natural")
    >>> history = dw.play(fund, [dw.losses.PortfolioLoss([1.1, 1.0])] * 50)
    >>> fund.expert_names, bool(fund.expert_weights[1] > 0.7)
    (['Constant', 'POLAR'], True)
    """

    learners: tuple[Learner, ...]
    _meta: Annotated[Any, Nested()]

    def __init__(
        self,
        domain: Domain,
        learners: Sequence[Learner | Callable[..., Learner]] = (Constant, POLAR),
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        weights: str = "adahedge",
        alpha: float = 1.0,
        prior: Any = None,
    ) -> None:
        super().__init__(domain)
        make_options(domain, horizon, lipschitz)  # checks them
        checks.one_of(weights, "weights", ("adahedge", "natural"))
        if not isinstance(learners, Sequence) or not learners:
            raise TypeError(f"learners must be a list of learners or classes, got {learners!r:.80}")
        known = {"horizon": horizon, "lipschitz": lipschitz}
        self.learners = tuple(self._inner(each, **known) for each in learners)
        self._arguments["learners"] = tuple(each.clone() for each in self.learners)  # for `load`
        size, self.natural = len(learners), weights == "natural"
        if prior is not None and not self.natural:
            raise ValueError('prior goes with weights="natural"; leave one of the two out')
        self._meta = ExpConcaveHedge(size, alpha, prior) if self.natural else AdaHedge(size)

    def update(self, loss: Any, ticket: Any = None) -> float:
        """Play the mean of what the learners play; weigh them; let each see the loss."""
        f, learners = as_loss(loss), self.learners
        scores = stack([f.scores(each.decision) for each in learners])
        value, slope = f.value_and_slope_at(combine(self._meta.weights, scores))
        require_finite(float(value), slope)
        values = (float(f.value_at(each)) for each in scores)
        losses = np.fromiter(values, float) if self.natural else products(slope, scores)
        require_finite(losses)
        self._meta.update(losses)
        kept = {id(part): part for each in learners for part in (each.domain, each._arguments)}
        self.learners = (*copy.deepcopy(learners[:-1], kept), learners[-1])  # one may refuse
        for each in self.learners:
            each.update(f)
        self.t += 1
        return float(value)

    @property
    def decision(self) -> Point:
        return weighted_sum(self._meta.weights, [each.decision for each in self.learners])

    @property
    def expert_names(self) -> list[str]:
        return [type(each).__name__ for each in self.learners]

    @property
    def oracle_calls(self) -> OracleCalls:
        return OracleCalls(*np.sum([x.oracle_calls.numbers() for x in self.learners], 0).tolist())

    def check(self) -> None:
        super().check()
        require(self._meta.size == len(self.learners), "learners and weights")
        require(all(each.t == self.t for each in self.learners), "learners and rounds")

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        if tau is not None:
            return None  # weights forget nothing, so a late change may cost more
        found = []
        for i, each in enumerate(self.learners):
            with suppress(NotImplementedError):
                found.append(each.bound(path_length) + self._meta.regret_bound(i * self.natural))
        return min(found, default=None)

"""A mixture of whole learners."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np

from driftwolfe.domains import Domain, OracleCalls
from driftwolfe.ensemble import AdaHedge, ExpConcaveHedge
from driftwolfe.ensemble.experts import combine, products, require_finite, stack, weighted_sum
from driftwolfe.learners.base import Learner, as_loss
from driftwolfe.learners.options import make_options
from driftwolfe.learners.polar import POLAR
from driftwolfe.learners.single_point import Constant
from driftwolfe.points import checks
from driftwolfe.points.kinds import Point
from driftwolfe.state import Nested
from driftwolfe.storage import require


class Mixture(Learner):
    r"""Plays the weighted mean of other learners on the same set, yours among them.

    Each learner plays its own game and sees every loss. With ``weights="adahedge"`` the mixture follows the
    best of them (`AdaHedge` on the losses linearised at the mixture's decision); with
    ``weights="natural"``, for exp-concave losses, it loses at most :math:`\ln(1/p_i)/\alpha` more than
    learner i, in any number of rounds (`ExpConcaveHedge`). So to try a learner of your own, mix it with
    one that you trust.

    Parameters
    ----------
    learners
        Learners on this set that have played no round, which the mixture copies (`learners` holds the
        copies), or classes and functions that make one when called as ``make(domain, horizon=...,
        lipschitz=...)``. By default `Constant` and `POLAR`.
    horizon, lipschitz
        Passed on to those that are made here.
    weights
        ``"adahedge"`` or ``"natural"``.
    alpha
        For natural weights, the exp-concavity of the losses, over units of the loss: 1 for
        `PortfolioLoss`.
    prior
        For natural weights, a positive number for each learner: its part p_i of their sum. All alike
        if not given.
    {options}

    Notes
    -----
    The bound is the smallest bound of a learner plus that of the weights against it, on the whole game.
    Oracle calls are those of all learners. `save` takes learners of this library.

    Examples
    --------
    A fund of two funds, equal weights and one that follows what rises:

    >>> import driftwolfe as dw
    >>> fund = dw.contrib.Mixture(dw.Simplex(2), [dw.learners.Constant, dw.POLAR], weights="natural")
    >>> history = dw.play(fund, [dw.losses.PortfolioLoss([1.1, 1.0])] * 50)
    >>> fund.expert_names, bool(fund.expert_weights[1] > 0.7), bool(fund.decision[0] > 0.8)
    (['Constant', 'POLAR'], True, True)
    """

    learners: tuple[Learner, ...]
    _meta: Annotated[Any, Nested()]

    def __init__(
        self,
        domain: Domain,
        learners: Sequence[Learner | Callable[..., Learner]] | None = None,
        horizon: int | None = None,
        lipschitz: float | str = "auto",
        *,
        weights: str = "adahedge",
        alpha: float = 1.0,
        prior: Any = None,
    ) -> None:
        super().__init__(domain)
        make_options(domain, horizon, lipschitz)  # checked as for any learner
        checks.one_of(weights, "weights", ("adahedge", "natural"))
        given = (Constant, POLAR) if learners is None else learners
        if isinstance(given, Learner) or not isinstance(given, Sequence) or not given:
            raise TypeError(f"learners must be a list of learners or classes, got {given!r:.80}")
        made = (
            each
            if isinstance(each, Learner)
            else each(domain, horizon=horizon, lipschitz=lipschitz)
            for each in given
        )
        self.learners = tuple(map(self._inner, made))
        # What `load` makes the mixture again from: they stay as they are.
        self._arguments["learners"] = tuple(each.clone() for each in self.learners)
        size = len(self.learners)
        self.natural = weights == "natural"
        if prior is not None and not self.natural:
            raise ValueError('prior goes with weights="natural"; leave one of the two out')
        self._meta = ExpConcaveHedge(size, alpha, prior) if self.natural else AdaHedge(size)

    def update(self, loss: Any, ticket: Any = None) -> float:
        """Play the mean of what the learners play; weigh them; let each see the loss."""
        f = as_loss(loss)
        scores = stack([f.scores(each.decision) for each in self.learners])
        value, slope = f.value_and_slope_at(combine(self._meta.weights, scores))
        require_finite(float(value), slope)
        losses = products(slope, scores)
        if self.natural:
            losses = np.array([float(f.value_at(each)) for each in scores])
        require_finite(losses)
        self._meta.update(losses)
        # If one refuses the loss, none has seen it. The last needs no copy: it undoes its own update.
        learners = (*map(_copied, self.learners[:-1]), self.learners[-1])
        for each in learners:
            each.update(f)
        self.learners = learners
        self.t += 1
        return float(value)

    @property
    def decision(self) -> Point:
        """The weighted mean of what the learners play."""
        return weighted_sum(self._meta.weights, [each.decision for each in self.learners])

    @property
    def expert_names(self) -> list[str]:
        """The classes of the learners."""
        return [type(each).__name__ for each in self.learners]

    @property
    def oracle_calls(self) -> OracleCalls:
        """Calls of all learners so far."""
        numbers = zip(*(each.oracle_calls.numbers() for each in self.learners), strict=True)
        return OracleCalls(*map(sum, numbers))

    def check(self) -> None:
        super().check()
        require(self._meta.size == len(self.learners), "learners and weights")
        require(all(each.t == self.t for each in self.learners), "learners and rounds")

    def _bound(self, path_length: float, tau: int | None) -> float | None:
        if tau is not None:
            return None  # weights forget nothing, so a late change may cost more
        found = []
        for i, each in enumerate(self.learners):
            try:
                own = each.bound(path_length)
            except NotImplementedError:
                continue
            found.append(own + self._meta.regret_bound(i if self.natural else 0))
        return min(found, default=None)


def _copied(learner: Learner) -> Learner:
    """A copy that shares what never changes."""
    return copy.deepcopy(learner, {id(each): each for each in (learner.domain, learner._arguments)})

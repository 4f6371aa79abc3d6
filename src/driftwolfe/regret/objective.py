"""`Objective`: a sum of losses as one function."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import NamedTuple

from driftwolfe.losses import FunctionLoss, LinearLoss, Loss, SquaredDistance
from driftwolfe.points.kinds import Array, Point
from driftwolfe.regret.curvature import has_hessian, hessian
from driftwolfe.regret.smoothing import SoftLoss, can_soften, soften

#: Coordinates up to which a dense Hessian is worth its price.
HESSIAN_SIZE = 256


class Term(NamedTuple):
    """One loss of a sum and the factor before it."""

    weight: float
    loss: Loss


class Evaluation(NamedTuple):
    r"""What is known of an objective F at a point x.

    The slopes found there bound the true sum from below everywhere:
    :math:`F(z) \ge value + slack + \langle gradient, z - x\rangle`. The slack is 0 for a sum that is
    differentiable as it is.
    """

    value: float
    gradient: Point
    slack: float


class Objective:
    r""":math:`F(x) = \sum_k w_k f_k(x) + b`, a few vectorised terms for a whole window of rounds.

    Parameters
    ----------
    terms
        The losses and their weights :math:`w_k > 0`.
    constant
        The number b.
    """

    def __init__(self, terms: Sequence[Term], constant: float = 0.0) -> None:
        self.terms = tuple(terms)
        self.constant = constant

    @property
    def linear(self) -> bool:
        """Whether every term is."""
        return all(type(term.loss) is LinearLoss for term in self.terms)

    @property
    def quadratic(self) -> bool:
        """Whether it is a squared distance plus a linear function, which one projection minimises."""
        return all(type(term.loss) in (LinearLoss, SquaredDistance) for term in self.terms)

    @property
    def kinked(self) -> bool:
        """Whether it has terms that are not differentiable but have smooth stand-ins."""
        return any(can_soften(term.loss) for term in self.terms)

    @property
    def unknown(self) -> bool:
        """Whether it has terms that may have kinks, nobody knows where."""
        return any(
            isinstance(term.loss, FunctionLoss)
            or not (has_hessian(term.loss) or can_soften(term.loss))
            for term in self.terms
        )

    def has_hessian(self, size: int) -> bool:
        """Whether `hessian` works and is cheap for points of that many entries."""
        return size <= HESSIAN_SIZE and all(has_hessian(term.loss) for term in self.terms)

    def value(self, x: Point) -> float:
        """Return F(x)."""
        return self.constant + math.fsum(term.weight * term.loss.value(x) for term in self.terms)

    def evaluate(self, x: Point) -> Evaluation:
        """Return the value, a gradient and the slack at x."""
        value, slack, gradient = self.constant, 0.0, None
        for weight, loss in self.terms:
            scores = loss.scores(x)
            part, slope = loss.value_and_slope_at(scores)
            value += weight * float(part)
            if isinstance(loss, SoftLoss):
                slack += weight * loss.slack_at(scores)
            pulled = loss.pull_back(slope, x) * weight
            gradient = pulled if gradient is None else gradient + pulled
        return Evaluation(value, gradient, slack)

    def hessian(self, x: Array) -> Array:
        """Return the matrix of second derivatives, for x flattened."""
        parts = (term.weight * hessian(term.loss, x) for term in self.terms)
        return functools.reduce(operator.add, parts)

    def true_value(self, x: Point, seen: Evaluation) -> float:
        """Return the value at x of the sum that is to be minimised in the end."""
        return seen.value

    def softened(self, share: float) -> Objective:
        """Return a smooth function below this one that comes near it as `share` falls to 0."""
        if not self.kinked:
            return self
        soft = [
            Term(weight, soften(loss, share) if can_soften(loss) else loss)
            for weight, loss in self.terms
        ]
        return Softened(soft, self)


class Softened(Objective):
    """A smooth function below another objective."""

    def __init__(self, terms: Sequence[Term], exact: Objective) -> None:
        super().__init__(terms, exact.constant)
        self.exact = exact

    def true_value(self, x: Point, seen: Evaluation) -> float:
        """Return the value of the objective that this one stands in for."""
        return self.exact.value(x)

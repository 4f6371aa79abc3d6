"""Sums of losses as one objective, smoothed where they have kinks."""

from __future__ import annotations

import functools
import math
import operator
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax

from driftwolfe.losses import (
    AbsoluteEntries,
    FunctionLoss,
    HingeLoss,
    HuberEntries,
    LinearLoss,
    LogisticLoss,
    Loss,
    MulticlassLogistic,
    SquaredDistance,
    SquaredEntries,
)
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.losses.inputs import dense_features
from driftwolfe.losses.classification import MarginLoss
from driftwolfe.points.kinds import Array, Point


class SoftLoss(Loss):
    """A loss with smoothed kinks."""

    #: How far from a kink it differs from the loss, in units of the scores.
    width: float

    @abstractmethod
    def slack_at(self, scores: Array) -> float:
        """Return by how much the bound on the loss itself lies above the value here, at scores."""


class SoftAbsoluteEntries(SoftLoss, AbsoluteEntries):
    """The absolute loss, quadratic where an error is below the width."""

    def __init__(self, loss: AbsoluteEntries, width: float) -> None:
        super().__init__(loss.rows, loss.cols, loss.targets, loss.shape)
        self.width = width

    def value_at(self, scores: Array) -> Array:
        """Return the sum of the Huber function of the errors over its width."""
        errors = np.abs(self.errors(scores))
        near = np.minimum(errors, self.width)
        total: Array = (near * (errors - 0.5 * near)).sum(axis=-1)
        return total / self.width

    def slope_at(self, scores: Array) -> Array:
        """Return every error in units of the width, clipped to [-1, 1]."""
        return np.clip(self.errors(scores) / self.width, -1.0, 1.0)

    def slack_at(self, scores: Array) -> float:
        """Return half the width times the squared slopes."""
        slopes = self.slope_at(scores)
        return 0.5 * self.width * float(slopes @ slopes)


class SoftHinge(SoftLoss, HingeLoss):
    """The hinge loss, quadratic where a margin lacks less than the width to 1."""

    def __init__(self, loss: HingeLoss, width: float) -> None:
        super().__init__(loss.features, loss.labels)
        self.width = width

    def value_at(self, scores: Array) -> Array:
        """Return the mean of what the margins lack to 1, less the smoothing."""
        lacking = 1.0 - self.labels * scores
        active = np.clip(lacking / self.width, 0.0, 1.0)
        mean: Array = (active * (lacking - 0.5 * self.width * active)).mean(axis=-1)
        return mean

    def slope_at(self, scores: Array) -> Array:
        """Return minus the label times the active share of a row, over the number of rows."""
        return self._active(scores) * (-self.labels / self.labels.size)

    def slack_at(self, scores: Array) -> float:
        """Return half the width times the mean squared active share."""
        active = self._active(scores)
        return 0.5 * self.width * float(active @ active) / self.labels.size

    def _active(self, scores: Array) -> Array:
        return np.clip((1.0 - self.labels * scores) / self.width, 0.0, 1.0)


def can_soften(loss: Loss) -> bool:
    """Whether the loss has kinks that are known here."""
    return type(loss) in (AbsoluteEntries, HingeLoss)


def soften(loss: Loss, share: float) -> SoftLoss:
    """Return a smooth stand-in whose width is that share of the natural size of the scores."""
    if isinstance(loss, AbsoluteEntries):
        size = float(np.abs(loss.targets).mean())
        return SoftAbsoluteEntries(loss, share * (size if size > 0 else 1.0))
    assert isinstance(loss, HingeLoss)
    return SoftHinge(loss, share)


def has_hessian(loss: Loss) -> bool:
    """Whether `hessian` knows this very kind of loss."""
    return type(loss) in _HESSIANS


def hessian(loss: Loss, x: Array) -> Array:
    """Return the matrix of second derivatives at x, for x flattened."""
    return _HESSIANS[type(loss)](loss, x)


def _none(loss: LinearLoss, x: Array) -> Array:
    return np.zeros((x.size, x.size))


def _squared_distance(loss: SquaredDistance, x: Array) -> Array:
    return 2.0 * loss.weight * np.eye(x.size)


def _on_entries(curvatures: Callable[[Any, Array], Array]) -> Callable[[Any, Array], Array]:
    """The diagonal matrix with a loss's second derivatives at the entries that it looks at."""

    def diagonal(loss: EntryLoss, x: Array) -> Array:
        along = np.zeros(x.size)
        np.add.at(along, loss.rows * x.shape[1] + loss.cols, curvatures(loss, loss.scores(x)))
        return np.diag(along)

    return diagonal


def _on_margins(curvatures: Callable[[Any, Array], Array]) -> Callable[[Any, Array], Array]:
    """The sum of outer products of rows, weighted by a loss's second derivatives."""

    def gram(loss: MarginLoss, x: Array) -> Array:
        features = dense_features(loss.features)
        weights = curvatures(loss, loss.scores(x)) / loss.labels.size
        product: Array = (features.T * weights) @ features
        return product

    return gram


def _multiclass(loss: MulticlassLogistic, x: Array) -> Array:
    """The sum over rows a with probabilities p of (diag(p) - p p^T) times a a^T, by Kronecker."""
    features = dense_features(loss.features)
    rows, n_features = features.shape
    probabilities = softmax(loss.scores(x), axis=1)
    outer = (probabilities[:, :, None] * features[:, None, :]).reshape(rows, -1)
    matrix = -(outer.T @ outer)
    for c in range(loss.n_classes):
        block = slice(c * n_features, (c + 1) * n_features)
        matrix[block, block] += outer[:, block].T @ features
    return matrix / rows if loss.reduction == "mean" else matrix


def _logistic(loss: LogisticLoss, scores: Array) -> Array:
    right: Array = expit(loss.labels * scores)
    return right * (1.0 - right)


def _soft_hinge(loss: SoftHinge, scores: Array) -> Array:
    lacking = 1.0 - loss.labels * scores
    return ((lacking > 0) & (lacking < loss.width)) / loss.width


def _squared(loss: SquaredEntries, scores: Array) -> Array:
    return np.full(scores.shape, 2.0)


def _huber(loss: HuberEntries, scores: Array) -> Array:
    return (np.abs(scores - loss.targets) < loss.width).astype(np.float64)


def _soft_absolute(loss: SoftAbsoluteEntries, scores: Array) -> Array:
    return (np.abs(scores - loss.targets) < loss.width) / loss.width


_HESSIANS: dict[type[Loss], Callable[[Any, Array], Array]] = {
    HuberEntries: _on_entries(_huber),
    LinearLoss: _none,
    LogisticLoss: _on_margins(_logistic),
    MulticlassLogistic: _multiclass,
    SoftAbsoluteEntries: _on_entries(_soft_absolute),
    SoftHinge: _on_margins(_soft_hinge),
    SquaredDistance: _squared_distance,
    SquaredEntries: _on_entries(_squared),
}


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

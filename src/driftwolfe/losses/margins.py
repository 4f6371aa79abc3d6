"""Losses of classification margins: hinge and logistic."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftwolfe.losses.base import Ball, Copies, Loss, combinations, products
from driftwolfe.losses.inputs import batch_of_features, batch_of_numbers, row_norms
from driftwolfe.points.kinds import Array, Point


class MarginLoss(Loss):
    r"""A mean of losses of margins.

    .. math:: f(x) = \frac1b \sum_{k=1}^b \varphi(y_k \langle a_k, x\rangle)

    A new one gives :math:`\varphi`, whose slopes lie in [-1, 0], by `value_at` and `slope_at`.

    Parameters
    ----------
    features
        The b rows :math:`a_k`, shape (b, n_features); a dense array or a scipy sparse matrix.
    labels
        The signs :math:`y_k`, each -1 or +1.
    """

    on_devices = True

    def __init__(self, features: Any, labels: Any) -> None:
        self.features = batch_of_features(features)
        self._copies = Copies(self.features)
        rows, n_features = self.features.shape
        self.labels = batch_of_numbers(labels, "labels", rows)
        strange = self.labels[np.abs(self.labels) != 1.0]
        if strange.size:
            raise ValueError(f"labels must be -1 or +1, got {strange[0]:g}")
        self.shape = (n_features,)

    def scores(self, x: Point) -> Array:
        """Return <a, x> for every row a."""
        self.check_shape(x.shape)
        scores: Array = self.features @ x
        return scores

    def pull_back(self, slope: Array, like: Point) -> Point:
        """Return the rows, weighted by their slopes and added up."""
        gradient: Array = slope @ self.features
        return gradient

    def stacked_scores(self, stack: Array) -> Array:
        """Return <a, x> for every point and row, shape (points, rows)."""
        self.check_shape(tuple(stack.shape[1:]))
        return products(stack, self._copies)

    def stacked_pull_back(self, slopes: Array, stack: Array) -> Array:
        """Return the rows, weighted by their slopes and added up, for every point."""
        return combinations(slopes, stack, self._copies)

    def lipschitz(self, domain: Ball) -> float:
        """Return the mean of the norms of the rows."""
        return float(row_norms(self.features).mean())


class HingeLoss(MarginLoss):
    r"""Binary classification by margins.

    .. math:: f(x) = \frac1b \sum_{k=1}^b \max(0,\; 1 - y_k \langle a_k, x\rangle)

    A subgradient is :math:`-\frac1b \sum_k y_k a_k` over the rows with margin below 1. Its norm is
    at most the mean of the :math:`\lVert a_k\rVert`.

    Parameters
    ----------
    features
        The b rows :math:`a_k`, shape (b, n_features); a dense array or a scipy sparse matrix.
    labels
        The signs :math:`y_k`, each -1 or +1.

    Examples
    --------
    >>> from driftwolfe.losses import HingeLoss
    >>> loss = HingeLoss([[1.0, 0.0], [0.0, 2.0]], [1, -1])
    >>> loss.value_and_gradient([2.0, 0.0])
    (0.5, array([0., 1.]))
    """

    def value_at(self, scores: Array) -> Array:
        """Return the mean of what the margins lack to 1."""
        value: Array = np.maximum(0.0, 1.0 - self.labels * scores).mean(axis=-1)
        return value

    def slope_at(self, scores: Array) -> Array:
        """Return minus the label where the margin is below 1, over the number of rows."""
        return (self.labels * scores < 1.0) * (-self.labels / self.labels.size)


class LogisticLoss(MarginLoss):
    r"""Binary classification by probabilities.

    .. math:: f(x) = \frac1b \sum_{k=1}^b \log\big(1 + e^{-y_k \langle a_k, x\rangle}\big)

    The gradient is :math:`-\frac1b \sum_k \sigma(-y_k \langle a_k, x\rangle)\, y_k a_k` with
    :math:`\sigma(m) = 1/(1 + e^{-m})`. Its norm is at most the mean of the
    :math:`\lVert a_k\rVert`.

    Parameters
    ----------
    features
        The b rows :math:`a_k`, shape (b, n_features); a dense array or a scipy sparse matrix.
    labels
        The signs :math:`y_k`, each -1 or +1.

    Examples
    --------
    >>> from driftwolfe.losses import LogisticLoss
    >>> loss = LogisticLoss([[1.0, 0.0], [0.0, 2.0]], [1, -1])
    >>> round(loss.value([0.0, 0.0]), 6)
    0.693147
    >>> loss.gradient([0.0, 0.0])
    array([-0.25,  0.5 ])
    """

    def value_at(self, scores: Array) -> Array:
        """Return the mean of log(1 + exp(-margin))."""
        value: Array = np.logaddexp(0.0, -self.labels * scores).mean(axis=-1)
        return value

    def slope_at(self, scores: Array) -> Array:
        """Return minus the label times the probability of the other one, over the rows."""
        # 1 / (1 + exp(z)) through its logarithm: no overflow for any z.
        other = np.exp(-np.logaddexp(0.0, self.labels * scores))
        return other * (-self.labels / self.labels.size)

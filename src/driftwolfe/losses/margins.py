"""`MarginLoss`: what losses of the margin of a linear classifier share."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftwolfe.losses.base import Ball, Loss
from driftwolfe.losses.copies import Copies
from driftwolfe.losses.inputs import batch_of_features, batch_of_numbers, row_norms
from driftwolfe.losses.rows import combinations, products
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

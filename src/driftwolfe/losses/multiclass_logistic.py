"""The multiclass logistic loss."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from driftwolfe.losses.base import Ball, Copies, Loss, combinations, products
from driftwolfe.losses.inputs import batch_of_features, batch_of_indices, dense_features, row_norms
from driftwolfe.points import checks
from driftwolfe.points.compiled import compiled
from driftwolfe.points.devices import HOST
from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.kinds import Array, Point

kernels = compiled("driftwolfe.losses.loss_kernels")

#: Multiplications up to which one compiled loop is quicker than calls of BLAS.
_COMPILED = 50_000


class MulticlassLogistic(Loss):
    r"""Classification by a matrix with one row per class.

    .. math::

        f(X) = \frac1b \sum_{k=1}^b \Big(\log \sum_c e^{\langle X_c, a_k\rangle}
               - \langle X_{y_k}, a_k\rangle\Big), \qquad
        \nabla f(X) = \frac1b \sum_k (p_k - e_{y_k})\, a_k^\top

    with :math:`p_k` the class probabilities of row k. Every gradient has norm at most
    :math:`\sqrt2` times the mean (or sum) of the :math:`\lVert a_k\rVert`.

    Parameters
    ----------
    features
        The b rows :math:`a_k`, shape (b, n_features); a dense array or a scipy sparse matrix.
    labels
        The classes :math:`y_k`, from 0 to n_classes - 1.
    n_classes
        Number of classes; points have shape (n_classes, n_features).
    reduction
        ``"mean"`` over the rows (as displayed) or ``"sum"``.

    Examples
    --------
    >>> import numpy as np
    >>> from driftwolfe.losses import MulticlassLogistic
    >>> loss = MulticlassLogistic([[1.0, 0.0], [0.0, 2.0]], [0, 2], n_classes=3)
    >>> round(loss.value(np.zeros((3, 2))), 6)  # log(3)
    1.098612
    >>> loss.gradient(np.zeros((3, 2))).round(3)
    array([[-0.333,  0.333],
           [ 0.167,  0.333],
           [ 0.167, -0.667]])

    References
    ----------
    Wang et al. (2024), Non-stationary projection-free online learning with dynamic and adaptive
    regret guarantees, AAAI, section "Experiments".
    """

    on_devices = True

    def __init__(
        self,
        features: Any,
        labels: Any,
        n_classes: int,
        reduction: Literal["mean", "sum"] = "mean",
    ) -> None:
        if reduction not in ("mean", "sum"):
            raise ValueError(f'reduction must be "mean" or "sum", got {reduction!r}')
        self.n_classes = checks.count(n_classes, "n_classes", least=2)
        self.features = batch_of_features(features)
        self._copies = Copies(self.features)
        self.labels = batch_of_indices(labels, "labels", self.n_classes)
        rows, n_features = self.features.shape
        if self.labels.size != rows:
            raise ValueError(
                f"labels must hold one class for each of {rows} rows of features, "
                f"got {self.labels.size}"
            )
        self.reduction = reduction
        self.shape = (self.n_classes, n_features)
        self._row_weight = 1.0 / rows if reduction == "mean" else 1.0
        self._label_places = np.arange(rows) * self.n_classes + self.labels
        self._indicator = np.zeros((rows, self.n_classes))
        self._indicator.flat[self._label_places] = self._row_weight

    def scores(self, x: Point) -> Array:
        """Return the scores of every row, shape (rows, n_classes)."""
        self.check_shape(x.shape)
        turned = self.features.T
        if isinstance(x, FactoredMatrix) and x.device is HOST:
            return x.times(turned).T
        scores: Array = (x @ turned).T
        return scores

    def value_at(self, scores: Array) -> Array:
        """Return the mean (or sum) over the rows of the negative log probability of the label."""
        shifted, _, totals = _exponentials(scores)
        return self._value(shifted, totals)

    def slope_at(self, scores: Array) -> Array:
        """Return probabilities less the indicator of the label, times the weight of a row."""
        _, exponentials, totals = _exponentials(scores)
        return self._slope(exponentials, totals)

    def value_and_slope_at(self, scores: Array) -> tuple[Array, Array]:
        """Return both from the same exponentials."""
        shifted, exponentials, totals = _exponentials(scores)
        return self._value(shifted, totals), self._slope(exponentials, totals)

    def pull_back(self, slope: Array, like: Point) -> Point:
        """Return the outer products of slopes and rows, low-rank for a `FactoredMatrix`."""
        if isinstance(like, FactoredMatrix):
            return self._low_rank_pull_back(slope)
        gradient: Array = slope.T @ self.features
        return gradient

    def stacked_scores(self, stack: Array) -> Array:
        """Return the scores of every row by every matrix, shape (points, rows, n_classes)."""
        self.check_shape(tuple(stack.shape[1:]))
        if self._all_dense(stack):
            scores: Array = self.features @ stack.swapaxes(1, 2)
            return scores
        seen = products(stack.reshape(-1, stack.shape[2]), self._copies)
        return seen.reshape(*stack.shape[:2], -1).swapaxes(1, 2)

    def stacked_pull_back(self, slopes: Array, stack: Array) -> Array:
        """Return the outer products of slopes and rows for every matrix."""
        turned = slopes.swapaxes(1, 2)
        if self._all_dense(stack):
            gradients: Array = turned @ self.features
            return gradients
        rows = turned.reshape(-1, turned.shape[2])
        return combinations(rows, stack, self._copies).reshape(stack.shape)

    def stacked_round(self, stack: Array, weights: Array) -> tuple[Array, Array, float]:
        """Return values and gradients at a stack of points, and the value at their mean."""
        self.check_shape(tuple(stack.shape[1:]))
        if not self._all_dense(stack) or stack.size * self.labels.size > _COMPILED:
            return super().stacked_round(stack, weights)
        points = np.ascontiguousarray(stack.reshape(-1, stack.shape[2]).T)
        values, pulled = np.zeros(len(stack)), np.zeros(points.shape)
        value = kernels().logistic_round(
            points, weights, self.features, self.labels, self._row_weight, values, pulled
        )
        return values, np.ascontiguousarray(pulled.T).reshape(stack.shape), value

    def lipschitz(self, domain: Ball) -> float:
        r"""Return :math:`\sqrt2` times the mean (or sum) of the norms of the rows."""
        return math.sqrt(2.0) * self._row_weight * float(row_norms(self.features).sum())

    def _all_dense(self, stack: Any) -> bool:
        """Whether features and points are arrays on the host."""
        return isinstance(stack, np.ndarray) and isinstance(self.features, np.ndarray)

    def _value(self, shifted: Array, totals: Array) -> Array:
        flat = shifted.reshape(*shifted.shape[:-2], -1)
        label_scores = flat.take(self._label_places, axis=-1)
        value: Array = (np.log(totals) - label_scores).sum(axis=-1)
        return value * self._row_weight

    def _slope(self, exponentials: Array, totals: Array) -> Array:
        slopes = exponentials * (self._row_weight / totals[..., None])
        slopes -= self._indicator
        return slopes

    def _low_rank_pull_back(self, slope: Array) -> FactoredMatrix:
        rows = self.labels.size
        if rows <= self.n_classes:
            return FactoredMatrix(slope.T, np.ones(rows), dense_features(self.features).T)
        return FactoredMatrix(
            np.eye(self.n_classes), np.ones(self.n_classes), self.features.T @ slope
        )


def _exponentials(scores: Array) -> tuple[Array, Array, Array]:
    """Scores less the largest of their row, their exponentials, and the sums of these by row."""
    shifted = scores - scores.max(axis=-1, keepdims=True)
    exponentials = np.exp(shifted)
    return shifted, exponentials, exponentials.sum(axis=-1)

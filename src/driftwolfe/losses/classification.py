"""Classification losses: hinge, logistic and multiclass logistic."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from driftwolfe.losses import inputs
from driftwolfe.losses.base import Ball, Loss
from driftwolfe.points import checks
from driftwolfe.points.devices import HOST, device_of, to_host
from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.kinds import Array, Point, compiled

kernels = compiled("driftwolfe.losses.logistic_kernels")

#: Multiplications up to which one compiled loop is quicker than calls of BLAS.
_COMPILED = 50_000


class FeatureLoss(Loss):
    """A loss of the products of a vector, or of each row of a matrix, with rows of features."""

    on_devices = True

    def __init__(self, features: Any, *classes: int) -> None:
        self.features = inputs.batch_of_features(features)
        self.shape = (*classes, self.features.shape[1])
        self._cache = inputs.DeviceCache(self.features)

    def scores(self, x: Point) -> Array:
        self.check_shape(x.shape)
        if not isinstance(x, FactoredMatrix):
            return (self.features @ x.T).T
        columns = self.features.T
        return x.times(columns) if x.device is HOST else to_host(x @ columns)

    def stacked_scores(self, stack: Array) -> Array:
        self.check_shape(tuple(stack.shape[1:]))
        device, points = device_of(stack), stack.reshape(-1, stack.shape[-1])
        (rows,) = self._cache[device.name]
        products = points @ rows.T if device is HOST else device.host(rows @ points.T).T
        return products.reshape(*stack.shape[:-1], -1)

    def pull_back(self, slope: Array, like: Point) -> Point:
        if not isinstance(like, FactoredMatrix):
            return slope @ self.features
        classes, rows = slope.shape
        if rows <= classes:
            return FactoredMatrix(slope, np.ones(rows), inputs.dense_features(self.features).T)
        return FactoredMatrix(np.eye(classes), np.ones(classes), self.features.T @ slope.T)

    def stacked_pull_back(self, slopes: Array, stack: Array) -> Array:
        device = device_of(stack)
        weights = device.put(slopes.reshape(-1, slopes.shape[-1]))
        return (weights @ self._cache[device.name][0]).reshape(stack.shape)


class MarginLoss(FeatureLoss):
    r"""A mean of losses of margins: :math:`f(x) = \frac1b \sum_k \varphi(y_k \langle a_k, x\rangle)`.

    A new one overrides `value_at` and `slope_at` by a :math:`\varphi` with slopes in [-1, 0].
    """

    def __init__(self, features: Any, labels: Any) -> None:
        super().__init__(features)
        self.labels = inputs.batch_of_numbers(labels, "labels", self.features.shape[0])
        strange = self.labels[np.abs(self.labels) != 1.0]
        if strange.size:
            raise ValueError(f"labels must be -1 or +1, got {strange[0]:g}")

    def lipschitz(self, domain: Ball) -> float:
        return float(inputs.row_norms(self.features).mean())


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
    >>> import driftwolfe as dw
    >>> dw.losses.HingeLoss([[1.0, 0.0], [0.0, 2.0]], [1, -1]).value_and_gradient([2.0, 0.0])
    (0.5, array([0., 1.]))
    """

    def value_at(self, scores: Array) -> Array:
        return np.maximum(0.0, 1.0 - self.labels * scores).mean(axis=-1)

    def slope_at(self, scores: Array) -> Array:
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
    >>> import driftwolfe as dw
    >>> dw.losses.LogisticLoss([[1.0, 0.0], [0.0, 2.0]], [1, -1]).gradient([0.0, 0.0])
    array([-0.25,  0.5 ])
    """

    def value_at(self, scores: Array) -> Array:
        return np.logaddexp(0.0, -self.labels * scores).mean(axis=-1)

    def slope_at(self, scores: Array) -> Array:
        # 1 / (1 + exp(z)) through its logarithm: no overflow for any z.
        other = np.exp(-np.logaddexp(0.0, self.labels * scores))
        return other * (-self.labels / self.labels.size)


class MulticlassLogistic(FeatureLoss):
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
    >>> import numpy as np, driftwolfe as dw
    >>> loss = dw.losses.MulticlassLogistic([[1.0, 0.0], [0.0, 2.0]], [0, 2], n_classes=3)
    >>> loss.gradient(np.zeros((3, 2))).round(3)
    array([[-0.333,  0.333],
           [ 0.167,  0.333],
           [ 0.167, -0.667]])

    References
    ----------
    Wang et al. (2024), Non-stationary projection-free online learning with dynamic and adaptive
    regret guarantees, AAAI, section "Experiments".
    """

    def __init__(
        self, features: Any, labels: Any, n_classes: int, reduction: Literal["mean", "sum"] = "mean"
    ) -> None:
        if reduction not in ("mean", "sum"):
            raise ValueError(f'reduction must be "mean" or "sum", got {reduction!r}')
        self.n_classes = checks.count(n_classes, "n_classes", least=2)
        super().__init__(features, self.n_classes)
        rows = self.features.shape[0]
        self.labels = inputs.batch_of_indices(labels, "labels", self.n_classes, rows)
        self.reduction = reduction
        self._row_weight = 1.0 / rows if reduction == "mean" else 1.0
        self._label_places = self.labels * rows + np.arange(rows)
        self._indicator = np.zeros((self.n_classes, rows))
        self._indicator.flat[self._label_places] = self._row_weight

    def value_at(self, scores: Array) -> Array:
        return self.value_and_slope_at(scores)[0]

    def slope_at(self, scores: Array) -> Array:
        return self.value_and_slope_at(scores)[1]

    def value_and_slope_at(self, scores: Array) -> tuple[Array, Array]:
        shifted = scores - scores.max(axis=-2, keepdims=True)
        label_scores = shifted.reshape(*shifted.shape[:-2], -1).take(self._label_places, axis=-1)
        slope = np.exp(shifted, out=shifted)
        totals = slope.sum(axis=-2)
        value = (np.log(totals) - label_scores).sum(axis=-1)
        slope *= self._row_weight / totals[..., None, :]
        slope -= self._indicator
        return value * self._row_weight, slope

    def stacked_round(self, stack: Array, weights: Array) -> tuple[Array, Array, float]:
        self.check_shape(tuple(stack.shape[1:]))
        dense = isinstance(stack, np.ndarray) and isinstance(self.features, np.ndarray)
        if not dense or stack.size * self.labels.size > _COMPILED:
            return super().stacked_round(stack, weights)
        points = np.ascontiguousarray(stack.reshape(-1, stack.shape[2]).T)
        values, pulled = np.zeros(len(stack)), np.zeros(points.shape)
        value = kernels().logistic_round(
            points, weights, self.features, self.labels, self._row_weight, values, pulled
        )
        return values, np.ascontiguousarray(pulled.T).reshape(stack.shape), value

    def lipschitz(self, domain: Ball) -> float:
        return math.sqrt(2.0) * self._row_weight * float(inputs.row_norms(self.features).sum())

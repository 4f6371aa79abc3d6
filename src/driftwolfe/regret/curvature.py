"""Second derivatives of losses, for points with few entries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from driftwolfe.losses import (
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
from driftwolfe.losses.margins import MarginLoss
from driftwolfe.points.kinds import Array
from driftwolfe.regret.smoothing import SoftAbsoluteEntries, SoftHinge


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

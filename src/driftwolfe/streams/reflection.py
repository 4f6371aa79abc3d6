"""Losses seen in a mirror."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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


def reflected(loss: Loss) -> Loss:
    r"""Return the loss :math:`x \mapsto f(-x)`, of the same class where that is possible.

    Features, targets or gradients change their sign; other losses become a `FunctionLoss`.

    Examples
    --------
    >>> reflected(LinearLoss([1.0, -2.0], constant=3.0)).g
    array([-1.,  2.])
    """
    make = _MIRRORS.get(type(loss))
    if make is not None:
        return make(loss)
    return FunctionLoss(
        lambda x: loss.value(x * -1.0), lambda x: loss.gradient(x * -1.0) * -1.0, shape=loss.shape
    )


def _entries(loss: Any) -> Loss:
    mirrored: Loss = type(loss)(loss.rows, loss.cols, -loss.targets, shape=loss.shape)
    return mirrored


def _huber(loss: HuberEntries) -> Loss:
    return HuberEntries(loss.rows, loss.cols, -loss.targets, loss.width, loss.shape)


def _margins(loss: Any) -> Loss:
    mirrored: Loss = type(loss)(-loss.features, loss.labels)
    return mirrored


def _multiclass(loss: MulticlassLogistic) -> Loss:
    return MulticlassLogistic(-loss.features, loss.labels, loss.n_classes, loss.reduction)


def _linear(loss: LinearLoss) -> Loss:
    return LinearLoss(loss.g * -1.0, loss.constant)


def _squared_distance(loss: SquaredDistance) -> Loss:
    return SquaredDistance(loss.target * -1.0, loss.weight)


_MIRRORS: dict[type[Loss], Callable[[Any], Loss]] = {
    AbsoluteEntries: _entries,
    HingeLoss: _margins,
    HuberEntries: _huber,
    LinearLoss: _linear,
    LogisticLoss: _margins,
    MulticlassLogistic: _multiclass,
    SquaredDistance: _squared_distance,
    SquaredEntries: _entries,
}

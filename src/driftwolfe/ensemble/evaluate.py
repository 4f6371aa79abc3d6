"""Evaluate a loss at every expert and at their mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from driftwolfe.losses import Loss
from driftwolfe.points import FactoredMatrix, checks, inner
from driftwolfe.points.devices import device_of, is_array, namespace, to_host
from driftwolfe.points.kinds import Array, Point

Scores: TypeAlias = Any  # Array with a leading axis, or a list of points


class Evaluation(NamedTuple):
    """A loss at the experts and at their weighted mean, the decision.

    Attributes
    ----------
    value
        The loss of the decision, :math:`f_t(x_t)`.
    played
        What the weights compare the experts with: `value`, or the linearised loss at :math:`x_t`.
    losses
        The experts' losses, or their linearised losses.
    slopes
        A slope for each expert, or one for all; their gradients where experts are stacked.
    shared
        Whether there is one slope for all.
    """

    value: float
    played: float
    losses: Array
    slopes: Any
    shared: bool


def evaluate(loss: Loss, scores: Scores, weights: Array, linear: bool) -> Evaluation:
    r"""Evaluate a loss at experts with these scores, and at their mean.

    As :math:`A\sum_i w_i x_i = \sum_i w_i A x_i`, the mean is never formed. `linear` replaces the loss
    by :math:`\ell_t(x) = \langle\nabla f_t(x_t), x\rangle`: one gradient for all experts.
    """
    combined = combine(weights, scores)
    if linear:
        value, slope = loss.value_and_slope_at(combined)
        require_finite(value, slope)
        losses = products(slope, scores)
        return Evaluation(float(value), float(weights @ losses), losses, slope, True)
    slopes: Any
    if is_array(scores):
        values, slopes = loss.value_and_slope_at(scores)
        losses = to_host(values)
    else:
        pairs: list[Any] = [loss.value_and_slope_at(score) for score in scores]
        losses = np.array([float(value) for value, _ in pairs])
        slopes = [slope for _, slope in pairs]
    suffered = float(loss.value_at(combined))
    require_finite(suffered, losses, slopes)
    return Evaluation(suffered, suffered, losses, slopes, False)


def stack(scores: Sequence[Any]) -> Scores:
    """Return the scores of several points as one array, or as a list where they do not stack."""
    if isinstance(scores[0], np.ndarray | np.floating | float):
        return np.stack(scores)
    return namespace(scores[0]).stack(scores) if is_array(scores[0]) else list(scores)


def combine(weights: Array, scores: Scores) -> Any:
    """Return the scores of the weighted mean of the points."""
    if is_array(scores):
        weights = device_of(scores).put(weights)
        return (weights @ scores.reshape(len(scores), -1)).reshape(scores.shape[1:])
    return weighted_sum(weights, scores)


def products(slope: Any, scores: Scores) -> Array:
    """Return the inner products of one slope with the scores of every expert."""
    if is_array(scores):
        found: Array = to_host(scores.reshape(len(scores), -1) @ slope.ravel())
        return found
    return np.array([inner(slope, score) for score in scores])


def weighted_sum(weights: Array, points: Sequence[Point]) -> Point:
    """Return the sum of w_i x_i, without the experts of weight 0."""
    used = [(float(w), x) for w, x in zip(weights, points, strict=True) if w > 0]
    if isinstance(used[0][1], FactoredMatrix):
        return FactoredMatrix.combination(*zip(*used, strict=True))
    total = used[0][0] * used[0][1]
    for weight, point in used[1:]:
        total = total + weight * point
    return total


def require_finite(*given: Any) -> None:
    """Refuse a loss that returned values or slopes that are not finite; points are not checked."""
    for part in given:
        if isinstance(part, float):
            finite = math.isfinite(part)
        elif isinstance(part, np.ndarray):
            finite = checks.all_finite(part)
        else:
            finite = not is_array(part) or bool(namespace(part).isfinite(part).all())
        if not finite:
            raise ValueError(
                "the loss returned a value or gradient that is not finite at the decision; "
                "nothing was learned from it"
            )

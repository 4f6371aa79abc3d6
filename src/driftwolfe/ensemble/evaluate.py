"""Evaluate a loss at every expert and at their mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from driftwolfe.losses import Loss
from driftwolfe.points import FactoredMatrix, checks, inner
from driftwolfe.points.devices import device_of, is_array, namespace, to_host
from driftwolfe.points.kinds import Array, Point

Scores: TypeAlias = Any  # Array with a leading axis, or a list of points


def stack(looks: Sequence[Any]) -> Scores:
    """One array for what several points look like, or a list where they do not stack."""
    if isinstance(looks[0], np.ndarray | np.floating | float):
        return np.stack(looks)
    return namespace(looks[0]).stack(looks) if is_array(looks[0]) else list(looks)


def combine(weights: Array, scores: Scores) -> Any:
    """What the weighted mean of the points looks like."""
    if is_array(scores):
        weights = device_of(scores).put(weights)
        return (weights @ scores.reshape(len(scores), -1)).reshape(scores.shape[1:])
    return weighted_sum(weights, scores)


def values_and_slopes(loss: Loss, scores: Scores, combined: Any) -> tuple[Array, Any, float]:
    """The loss of every expert and its slope there, and the loss of the combined decision."""
    if is_array(scores):
        values, slopes = loss.value_and_slope_at(scores)
        return to_host(values), slopes, float(loss.value_at(combined))
    pairs = [loss.value_and_slope_at(score) for score in scores]
    values = np.array([float(value) for value, _ in pairs])
    return values, [slope for _, slope in pairs], float(loss.value_at(combined))


def products(slope: Any, scores: Scores) -> Array:
    """The inner product of one slope with what every expert looks like."""
    if is_array(scores):
        looks: Array = to_host(scores.reshape(len(scores), -1) @ slope.ravel())
        return looks
    return np.array([inner(slope, score) for score in scores])


def weighted_sum(weights: Array, points: Sequence[Point]) -> Point:
    """The sum of w_i x_i, without the experts of weight 0."""
    used = [(float(w), x) for w, x in zip(weights, points, strict=True) if w > 0]
    if isinstance(used[0][1], FactoredMatrix):
        return FactoredMatrix.combination(*zip(*used, strict=True))
    total = used[0][0] * used[0][1]
    for weight, point in used[1:]:
        total = total + weight * point
    return total


def require_finite(*given: Any) -> None:
    """Refuse a loss that returned values or slopes that are not finite; points are not looked at."""
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

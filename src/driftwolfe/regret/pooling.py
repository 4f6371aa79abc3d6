"""Many losses of few kinds as one objective: a window costs one product, not one call a round."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from driftwolfe.losses import (
    AbsoluteEntries,
    HingeLoss,
    HuberEntries,
    LinearLoss,
    LogisticLoss,
    Loss,
    MulticlassLogistic,
    SquaredDistance,
    SquaredEntries,
)
from driftwolfe.points import distance
from driftwolfe.regret.objective import Objective, Term


class _Kind(NamedTuple):
    """How losses of one class join: those with equal keys become one term and a constant."""

    key: Callable[[Any], Hashable]
    join: Callable[[Sequence[Any]], tuple[Term, float]]


def pool(losses: Sequence[Loss]) -> Objective:
    """Return the sum of the losses, those of one kind joined into one.

    Rows of features and lists of entries are concatenated, linear functions added, squared
    distances replaced by one to the mean target. Losses of other classes stay as they are.

    Examples
    --------
    >>> from driftwolfe.losses import LinearLoss
    >>> objective = pool([LinearLoss([1.0, 2.0]), LinearLoss([3.0, -1.0], constant=1.0)])
    >>> len(objective.terms), objective.value(np.array([1.0, 1.0]))
    (1, 6.0)
    """
    groups: dict[Hashable, list[Loss]] = {}
    for index, loss in enumerate(losses):
        # Only the very classes below: a subclass may compute something else.
        kind = _KINDS.get(type(loss))
        key = index if kind is None else (type(loss), kind.key(loss))
        groups.setdefault(key, []).append(loss)
    terms, constant = [], 0.0
    for group in groups.values():
        if len(group) == 1:
            terms.append(Term(1.0, group[0]))
            continue
        term, rest = _KINDS[type(group[0])].join(group)
        terms.append(term)
        constant += rest
    return Objective(terms, constant)


def _entries_key(loss: AbsoluteEntries | SquaredEntries) -> Hashable:
    return loss.shape


def _join_entries(losses: Sequence[Any]) -> tuple[Term, float]:
    return Term(1.0, type(losses[0])(*_all_entries(losses), shape=losses[0].shape)), 0.0


def _huber_key(loss: HuberEntries) -> Hashable:
    return loss.width, loss.shape


def _join_huber(losses: Sequence[HuberEntries]) -> tuple[Term, float]:
    rows, cols, targets = _all_entries(losses)
    first = losses[0]
    return Term(1.0, HuberEntries(rows, cols, targets, first.width, first.shape)), 0.0


def _all_entries(losses: Sequence[Any]) -> list[Any]:
    names = ("rows", "cols", "targets")
    return [np.concatenate([getattr(loss, name) for loss in losses]) for name in names]


def _margin_key(loss: HingeLoss | LogisticLoss) -> Hashable:
    return loss.labels.size, sp.issparse(loss.features)


def _join_margins(losses: Sequence[Any]) -> tuple[Term, float]:
    # Means over equally many rows: their sum is the number of losses times the mean over all.
    return Term(float(len(losses)), type(losses[0])(*_all_rows(losses))), 0.0


def _multiclass_key(loss: MulticlassLogistic) -> Hashable:
    return loss.n_classes, _row_weight(loss), sp.issparse(loss.features)


def _join_multiclass(losses: Sequence[MulticlassLogistic]) -> tuple[Term, float]:
    first = losses[0]
    joined = MulticlassLogistic(*_all_rows(losses), first.n_classes, reduction="sum")
    return Term(_row_weight(first), joined), 0.0


def _row_weight(loss: MulticlassLogistic) -> float:
    return 1.0 / loss.labels.size if loss.reduction == "mean" else 1.0


def _all_rows(losses: Sequence[Any]) -> tuple[Any, Any]:
    stack = sp.vstack if sp.issparse(losses[0].features) else np.concatenate
    return (
        stack([loss.features for loss in losses]),
        np.concatenate([loss.labels for loss in losses]),
    )


def _join_linear(losses: Sequence[LinearLoss]) -> tuple[Term, float]:
    gradient = functools.reduce(operator.add, (loss.g for loss in losses))
    return Term(1.0, LinearLoss(gradient)), sum(loss.constant for loss in losses)


def _join_squared_distances(losses: Sequence[SquaredDistance]) -> tuple[Term, float]:
    weight = sum(loss.weight for loss in losses)
    parts = (loss.target * (loss.weight / weight) for loss in losses)
    mean = functools.reduce(operator.add, parts)
    spread = sum(loss.weight * distance(loss.target, mean) ** 2 for loss in losses)
    return Term(1.0, SquaredDistance(mean, weight)), spread


def _one_group(loss: Loss) -> Hashable:
    return None


_KINDS: dict[type[Loss], _Kind] = {
    AbsoluteEntries: _Kind(_entries_key, _join_entries),
    HingeLoss: _Kind(_margin_key, _join_margins),
    HuberEntries: _Kind(_huber_key, _join_huber),
    LinearLoss: _Kind(_one_group, _join_linear),
    LogisticLoss: _Kind(_margin_key, _join_margins),
    MulticlassLogistic: _Kind(_multiclass_key, _join_multiclass),
    SquaredDistance: _Kind(_one_group, _join_squared_distances),
    SquaredEntries: _Kind(_entries_key, _join_entries),
}

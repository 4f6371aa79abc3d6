"""The best fixed point in hindsight, to a certified gap."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from driftwolfe.domains import Domain
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
from driftwolfe.points import checks, distance, inner
from driftwolfe.points.kinds import Point
from driftwolfe.regret.minimise import minimise
from driftwolfe.regret.objective import Objective, Term
from driftwolfe.regret.solvers import Bracket

_NONNEGATIVE = (
    AbsoluteEntries,
    HingeLoss,
    HuberEntries,
    LogisticLoss,
    MulticlassLogistic,
    SquaredDistance,
    SquaredEntries,
)


def floor(loss: Loss, domain: Domain) -> float:
    """Return a number that the loss does not fall below on the set.

    Exact for linear losses; 0 for those that are sums of squares, distances or negative logarithms
    of probabilities; for others from the tangent at the set's origin, with one oracle call.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> floor(dw.losses.LinearLoss([3.0, -4.0]), dw.L1Ball(2))
    -4.0
    """
    if type(loss) in _NONNEGATIVE:
        return 0.0
    origin = domain.origin()
    value, gradient = loss.value_and_gradient(origin)
    vertex, error = domain.lmo_with_error(gradient)
    return value + inner(gradient, vertex) - inner(gradient, origin) - error


def objective_floor(objective: Objective) -> float:
    """Return a number that the sum does not fall below anywhere; minus infinity if none is known."""
    if all(type(term.loss) in _NONNEGATIVE for term in objective.terms):
        return objective.constant
    return -math.inf


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


@dataclass(frozen=True, slots=True)
class OfflineMinimum:
    r"""The minimum of a sum of losses over a set, with its certificate.

    Attributes
    ----------
    point
        A point of the set.
    value
        The sum there: :math:`value - gap \le \min_K F \le value`.
    gap
        Width of the certified interval, in units of the loss.
    iterations
        Gradients of the sum that were looked at.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> best = offline_minimum(dw.L1Ball(2), [dw.losses.LinearLoss([1.0, 0.0])] * 3)
    >>> best.point, best.value, best.gap < 1e-12
    (array([-1.,  0.]), -3.0, True)
    """

    point: Point
    value: float
    gap: float
    iterations: int

    @property
    def lower(self) -> float:
        """The certified lower bound."""
        return self.value - self.gap


def offline_minimum(
    domain: Domain,
    losses: Sequence[Loss],
    start: Any = None,
    tolerance: float = 1e-6,
    max_iterations: int = 2000,
) -> OfflineMinimum:
    r"""Minimise a sum of losses over a set: :math:`\min_{x \in K} \sum_t f_t(x)`, with a certificate.

    Losses of one kind are joined first, so that a window of a thousand rounds costs one matrix
    product a look, not a thousand calls. Then, whichever fits:

    - linear losses: one oracle call, exact;
    - few entries (up to 256) and a cheap projection: Newton steps over the set;
    - a cheap projection, or matrices: accelerated projected gradient steps;
    - other sets: fully corrective Frank-Wolfe, which needs only the oracle;
    - absolute and hinge losses: the same on smoothed losses, with less and less smoothing;
    - your own functions: a bundle method, where gradient steps do not reach the tolerance.

    The certificate is a linear function below the sum, minimised over the set by one oracle call:
    for smooth losses the Frank-Wolfe gap, for losses with kinks one made of slopes that need not be
    the gradient's. It holds whether or not the tolerance was reached.

    Parameters
    ----------
    domain
        The set K.
    losses
        The losses :math:`f_t`, at least one.
    start
        A point of the set to start from; `domain.origin()` if not given.
    tolerance
        Gap to stop at, relative to the larger of the minimum and the sum at the origin, in absolute
        values.
    max_iterations
        Most gradients of the sum to look at; the answer may then have a larger gap.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> targets = np.array([[2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
    >>> losses = [dw.losses.SquaredDistance(target) for target in targets]
    >>> best = offline_minimum(dw.L1Ball(2, radius=2.0), losses)
    >>> best.point, round(best.value, 6), best.gap < 1e-6
    (array([1., 1.]), 3.0, True)

    References
    ----------
    Jaggi (2013), Revisiting Frank-Wolfe, for the certificate; Nesterov (2005), Smooth minimization
    of non-smooth functions.
    """
    origin = domain.origin()
    first = origin if start is None else _feasible(domain, start)
    objective = summed(domain, losses)
    bracket = Bracket(
        domain,
        tolerance=checks.nonnegative(tolerance, "tolerance"),
        scale=abs(objective.value(origin)),
        floor=objective_floor(objective),
        limit=checks.count(max_iterations, "max_iterations"),
    )
    minimise(objective, first, bracket)
    return OfflineMinimum(bracket.point, bracket.value, bracket.gap, bracket.looks)


def summed(domain: Domain, losses: Sequence[Loss]) -> Objective:
    """Return the sum of losses that can look at points of the set, or raise `ValueError`."""
    if not losses:
        raise ValueError("losses must hold at least one loss, got none")
    for loss in losses:
        loss.check_shape(domain.shape)
    return pool(losses)


def _feasible(domain: Domain, start: Any) -> Point:
    point = domain.check_point(start, "start")
    if domain.cheap_membership and not domain.contains(point, atol=1e-6):
        raise ValueError(
            f"start must be a point of {domain!r}, but it lies outside; project it first, or leave "
            "it out to start from domain.origin()"
        )
    return point

"""Sums of losses as one objective: pooled by class, and smoothed where they have kinks."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import block_diag
from scipy.special import expit, softmax

from driftwolfe import losses
from driftwolfe.domains import Domain
from driftwolfe.ensemble.experts import weighted_sum
from driftwolfe.losses import Loss
from driftwolfe.losses.base import dense_features
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.losses.rows import FeatureLoss
from driftwolfe.points import distance, inner
from driftwolfe.points.kinds import Array, Point


class Term(NamedTuple):
    """A loss of a sum and the factor before it."""

    weight: float
    loss: Loss
    blur: float = 0.0  # if smoothed, the tangent plus this times the squared slopes is a bound


class Tangent(NamedTuple):
    r"""An objective at x: the exact one at z is at least value + slack + <gradient, z - x>."""

    value: float
    gradient: Point
    slack: float = 0.0


class Objective:
    r""":math:`F(x) = \sum_k w_k f_k(x) + b`, with weights :math:`w_k > 0`."""

    exact: Objective | None = None  # what a smoothed one stands for

    def __init__(self, terms: Sequence[Term], constant: float = 0.0) -> None:
        self.terms, self.constant = terms, constant
        classes = {type(term.loss) for term in terms}
        self._known = [_KNOWN.get(type(term.loss), _Known()) for term in terms]
        self.linear = classes <= {losses.LinearLoss}
        # One projection minimises it.
        self.quadratic = classes <= {losses.LinearLoss, losses.SquaredDistance}
        self.kinked = any(known.smoothed for known in self._known)  # has kinks that can be smoothed
        self.unknown = not classes <= _WELL_KNOWN  # may have kinks anywhere
        self.lower_bound = constant if classes <= _NONNEGATIVE else -math.inf

    def has_hessian(self, size: int) -> bool:
        """Whether `hessian` works and is cheap for points of that many entries."""
        return size <= 256 and all(known.hessian for known in self._known)

    def value(self, x: Point) -> float:
        return self.constant + math.fsum(term.weight * term.loss.value(x) for term in self.terms)

    def evaluate(self, x: Point) -> Tangent:
        value, slack, gradient = self.constant, 0.0, None
        for weight, loss, blur in self.terms:
            part, slope = loss.value_and_slope_at(loss.scores(x))
            value += weight * float(part)
            if blur > 0.0:
                slack += weight * blur * float(np.vdot(slope, slope))
            pulled = loss.pull_back(slope, x) * weight
            gradient = pulled if gradient is None else gradient + pulled
        return Tangent(value, gradient, slack)

    def hessian(self, x: Array) -> Array:
        """Return the matrix of second derivatives, for x flattened."""
        matrix = np.zeros((x.size, x.size))
        for term, known in zip(self.terms, self._known, strict=True):
            matrix += term.weight * known.hessian(term.loss, x)  # type: ignore[misc]
        return matrix

    def smoothed(self, smoothing: float) -> Objective:
        """Return a smooth function below this one, which approaches it as `smoothing` falls to 0."""
        if not self.kinked:
            return self
        pairs = zip(self.terms, self._known, strict=True)
        terms = [
            known.smoothed(term, smoothing) if known.smoothed else term for term, known in pairs
        ]
        smooth = Objective(terms, self.constant)
        smooth.exact = self
        return smooth


def pool(functions: Sequence[Any]) -> Objective:
    """Return the sum of the losses, those of one known class joined into one term."""
    groups: dict[Hashable, list[Loss]] = {}
    for index, loss in enumerate(functions):
        key: Hashable = index
        if known := _KNOWN.get(type(loss)):
            rows = loss.features.shape[0] if isinstance(loss, FeatureLoss) else 0
            sparse = sp.issparse(getattr(loss, "features", None))
            key = type(loss), rows, sparse, *(getattr(loss, name) for name in known.options)
        groups.setdefault(key, []).append(loss)
    terms, constant = [], 0.0
    for group in groups.values():
        alone = Term(1.0, group[0]), 0.0
        term, rest = _KNOWN[type(group[0])].join(group) if len(group) > 1 else alone
        terms.append(term)
        constant += rest
    return Objective(terms, constant)


def floor(loss: Loss, domain: Domain) -> float:
    """Return a lower bound on a loss over the set: 0, or its tangent's; exact for linear losses."""
    if type(loss) in _NONNEGATIVE:
        return 0.0
    origin = domain.origin()
    value, gradient = loss.value_and_gradient(origin)
    vertex, error = domain.lmo_with_error(gradient)
    return value + inner(gradient, vertex) - inner(gradient, origin) - error


class SmoothHinge(FeatureLoss):
    """The hinge loss, quadratic where a margin lacks less than the width to 1."""

    def __init__(self, loss: Any, width: float) -> None:
        self._take(loss.features)
        self.labels, self.width = loss.labels, width

    def value_at(self, scores: Array) -> Array:
        lacking = 1.0 - self.labels * scores
        active = np.clip(lacking / self.width, 0.0, 1.0)
        return (active * (lacking - 0.5 * self.width * active)).mean(axis=-1)

    def slope_at(self, scores: Array) -> Array:
        active = np.clip((1.0 - self.labels * scores) / self.width, 0.0, 1.0)
        return active * (-self.labels / self.labels.size)


def _smoothed_hinge(term: Term, smoothing: float) -> Term:
    smooth = SmoothHinge(term.loss, smoothing)
    return Term(term.weight, smooth, blur=0.5 * smoothing * smooth.labels.size)


def _smoothed_absolute(term: Term, smoothing: float) -> Term:
    """The Huber loss over its width, a multiple of the mean absolute target."""
    loss: Any = term.loss
    width = smoothing * (float(np.abs(loss.targets).mean()) or 1.0)
    smooth: Loss
    if isinstance(loss, losses.AbsoluteRows):
        smooth, rows = losses.HuberRows(loss.features, loss.targets, width), len(loss.targets)
    else:
        smooth, rows = losses.HuberEntries(loss.rows, loss.cols, loss.targets, width, loss.shape), 1
    return Term(term.weight / width, smooth, blur=0.5 * rows)


def _entry_hessian(loss: EntryLoss, x: Array) -> Array:
    curvatures: Any = 2.0
    if isinstance(loss, losses.HuberEntries):
        curvatures = np.abs(loss.errors(loss.scores(x))) < loss.width
    diagonal = np.zeros(x.size)
    np.add.at(diagonal, loss.rows * x.shape[1] + loss.cols, curvatures)
    return np.diag(diagonal)


def _row_hessian(loss: Any, x: Array) -> Array:
    """One block per output."""
    scores, features = loss.scores(x), dense_features(loss.features)
    if isinstance(loss, losses.LogisticLoss):
        probabilities = expit(loss.labels * scores)
        curvatures = probabilities * (1.0 - probabilities)
    elif isinstance(loss, SmoothHinge):
        lacking = 1.0 - loss.labels * scores
        curvatures = ((lacking > 0.0) & (lacking < loss.width)) / loss.width
    elif isinstance(loss, losses.HuberRows):
        curvatures = 1.0 * (np.abs(loss.errors(scores)) < loss.width)
    else:
        curvatures = np.full(scores.shape, 2.0)
    own = np.atleast_2d(curvatures / features.shape[0])
    return block_diag(*((features.T * each) @ features for each in own))


def _multiclass_hessian(loss: losses.MulticlassLogistic, x: Array) -> Array:
    """The sum over rows a with probabilities p of (diag(p) - p p^T) times a a^T, by Kronecker."""
    features = dense_features(loss.features)
    rows, n_features = features.shape
    probabilities = softmax(loss.scores(x).T, axis=1)
    outer = (probabilities[:, :, None] * features[:, None, :]).reshape(rows, -1)
    matrix = -(outer.T @ outer)
    for c in range(loss.n_classes):
        block = slice(c * n_features, (c + 1) * n_features)
        matrix[block, block] += outer[:, block].T @ features
    return matrix / rows


def _joined(group: Sequence[Any]) -> tuple[Term, float]:
    """One loss with the data of all: the sum of n means over equally many rows is n times a mean."""
    first, known = group[0], _KNOWN[type(group[0])]
    arguments = {name: getattr(first, name) for name in known.options}
    for name in known.data:
        parts = [getattr(loss, name) for loss in group]
        arguments[name] = sp.vstack(parts) if sp.issparse(parts[0]) else np.concatenate(parts)
    weight = float(len(group)) if isinstance(first, FeatureLoss) else 1.0
    return Term(weight, type(first)(**arguments)), 0.0


def _sum_of_linear(group: Sequence[losses.LinearLoss]) -> tuple[Term, float]:
    gradient = weighted_sum(np.ones(len(group)), [loss.g for loss in group])
    return Term(1.0, losses.LinearLoss(gradient)), sum(loss.constant for loss in group)


def _sum_of_squared_distances(group: Sequence[losses.SquaredDistance]) -> tuple[Term, float]:
    weights = np.array([loss.weight for loss in group])
    weight = float(weights.sum())
    mean = weighted_sum(weights / weight, [loss.target for loss in group])
    spread = sum(loss.weight * distance(loss.target, mean) ** 2 for loss in group)
    return Term(1.0, losses.SquaredDistance(mean, weight)), spread


def _sum_of_functions(group: Sequence[Any]) -> tuple[Term, float]:
    """A user's own functions in one loop, with few checks of each: a tenth of the time."""

    def value(x: Point) -> float:
        return math.fsum(float(each._value(x)) for each in group)

    def gradient(x: Point) -> Point:
        if not isinstance(x, np.ndarray):
            return weighted_sum(np.ones(len(group)), [each.slope_at(x) for each in group])
        total = np.zeros(x.shape)
        for each in group:
            slope = each._gradient(x)
            if np.shape(slope) != x.shape:
                each.slope_at(x)  # says what is wrong
            total += slope
        return total

    return Term(1.0, losses.FunctionLoss(value, gradient)), 0.0


class _Known(NamedTuple):
    """What is known of a class of losses, but not of its subclasses, which may override anything."""

    data: tuple[str, ...] = ()  # arguments to stack, where losses with equal options are joined
    options: tuple[str, ...] = ()
    hessian: Callable[[Any, Array], Array] | None = None
    smoothed: Callable[[Term, float], Term] | None = None
    join: Callable[[Sequence[Any]], tuple[Term, float]] = _joined


_ENTRIES, _ROWS = ("rows", "cols", "targets"), ("features", "labels")
_TARGETS = ("features", "targets")
_KNOWN: dict[type[Loss], _Known] = {
    losses.AbsoluteEntries: _Known(_ENTRIES, ("shape",), smoothed=_smoothed_absolute),
    losses.HuberEntries: _Known(_ENTRIES, ("width", "shape"), _entry_hessian),
    losses.SquaredEntries: _Known(_ENTRIES, ("shape",), _entry_hessian),
    losses.AbsoluteRows: _Known(_TARGETS, smoothed=_smoothed_absolute),
    losses.HuberRows: _Known(_TARGETS, ("width",), _row_hessian),
    losses.SquaredRows: _Known(_TARGETS, (), _row_hessian),
    losses.HingeLoss: _Known(_ROWS, smoothed=_smoothed_hinge),
    SmoothHinge: _Known(hessian=_row_hessian),
    losses.LogisticLoss: _Known(_ROWS, hessian=_row_hessian),
    losses.MulticlassLogistic: _Known(_ROWS, ("n_classes",), _multiclass_hessian),
    losses.FunctionLoss: _Known(join=_sum_of_functions),
    losses.LinearLoss: _Known(hessian=lambda f, x: np.zeros((x.size, x.size)), join=_sum_of_linear),
    losses.SquaredDistance: _Known(
        hessian=lambda f, x: 2.0 * f.weight * np.eye(x.size), join=_sum_of_squared_distances
    ),
}
_WELL_KNOWN = _KNOWN.keys() - {losses.FunctionLoss}
_NONNEGATIVE = _WELL_KNOWN - {losses.LinearLoss}

"""Minimise a sum of losses over a set: which solver, in which order."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from driftwolfe.domains import Domain, Simplex
from driftwolfe.losses import AbsoluteEntries, HuberEntries, SquaredEntries
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.oracles import infeasible_projection
from driftwolfe.points import FactoredMatrix
from driftwolfe.points.kinds import Array, Indices, Point
from driftwolfe.regret.objective import Evaluation, Objective, Term
from driftwolfe.regret.solvers import Bracket, accelerated, corrective, newton

#: Share of the predicted gain that moves the centre.
_SERIOUS = 0.1
#: Error of the model's minimum, as a share of the gain that it predicts.
_MODEL_ACCURACY = 0.05
#: Weight below which a cut is dropped, and most cuts held.
_IDLE, _MOST_CUTS = 1e-10, 100
_MODEL_LOOKS = 300
#: Squared distance of the projection onto sets that have only an oracle, in units of the radius.
_PROJECTION = 1e-16


def bundle(objective: Objective, x: Array, bracket: Bracket) -> Array:
    r"""Minimise by proximal steps on the model :math:`\max_i c_i + \langle g_i, z\rangle` of all slopes seen.

    A single slope certifies nothing at a kink; the mixture :math:`\sum_i \lambda_i g_i` that a
    proximal step ends with does, since :math:`F(z) \ge \sum_i \lambda_i (c_i + \langle g_i, z\rangle)`
    for all z. The step is solved by its dual, over the simplex of the weights lambda. One look at
    the function and some hundred projections a step; ends when the bracket is narrow enough or the
    model predicts no gain.

    References
    ----------
    Kiwiel (1990), Proximity control in bundle methods for convex nondifferentiable minimization.
    """
    project = _projection(bracket.domain)
    seen = objective.evaluate(x)
    value = seen.value
    offsets, slopes = _cut(x, seen)
    length = bracket.gap / max(float(np.vdot(seen.gradient, seen.gradient)), 1e-300)
    while bracket.is_open():
        dual = _Dual(project, x, offsets - value, slopes, length)
        weights = _best_weights(dual, len(offsets), bracket.allowed)
        ahead = dual.minimiser(weights)
        mixed = weights @ slopes
        tangent = float(weights @ offsets + mixed @ x.ravel())
        look = Evaluation(value, mixed.reshape(x.shape), tangent - value)
        bracket.gap_at(objective, x, look)
        predicted = value - float((offsets + slopes @ ahead.ravel()).max())
        if predicted <= 0.0 or not bracket.is_open():
            break
        seen = objective.evaluate(ahead)
        bracket.offer(ahead, seen.value)
        offset, slope = _cut(ahead, seen)
        held = np.argsort(weights)[::-1][:_MOST_CUTS]
        held = held[weights[held] > _IDLE]
        offsets = np.concatenate((offsets[held], offset))
        slopes = np.concatenate((slopes[held], slope))
        if seen.value <= value - _SERIOUS * predicted:
            length *= 1.5 if seen.value <= value - 0.5 * predicted else 1.0
            x, value = ahead, seen.value
        elif seen.value - value > predicted:
            length *= 0.7
    return x


def _cut(x: Array, seen: Evaluation) -> tuple[Array, Array]:
    """The tangent at x as offset and slope, each with one row."""
    return (
        np.array([seen.value - float(np.vdot(seen.gradient, x))]),
        seen.gradient.reshape(1, -1),
    )


def _best_weights(dual: _Dual, cuts: int, allowed: float) -> Array:
    """The weights of the cuts at the minimum of model plus distance."""
    if cuts == 1:
        return np.ones(1)
    inside = Bracket(
        Simplex(cuts),
        tolerance=_MODEL_ACCURACY,
        allowed=_MODEL_ACCURACY * allowed,
        limit=_MODEL_LOOKS,
    )
    accelerated(dual, np.full(cuts, 1.0 / cuts), inside)
    return np.asarray(inside.point)


class _Dual(Objective):
    r"""Minus the dual of a proximal step, as a function of the weights of the cuts.

    With offsets relative to the value at x its minimum is the gain that the step predicts.

    .. math:: -\sum_i \lambda_i c_i - \min_{z \in K} \Big\langle \sum_i \lambda_i g_i, z\Big\rangle
              + \frac{1}{2 length}\lVert z - x\rVert^2
    """

    def __init__(
        self,
        project: Callable[[Array], Array],
        x: Array,
        offsets: Array,
        slopes: Array,
        length: float,
    ) -> None:
        super().__init__(())
        self._project = project
        self._x, self._offsets, self._slopes, self._length = x, offsets, slopes, length

    def minimiser(self, weights: Array) -> Array:
        """Return the minimiser z for these weights."""
        mixed = (weights @ self._slopes).reshape(self._x.shape)
        return self._project(self._x - self._length * mixed)

    def value(self, x: Array) -> float:
        """Return the value at weights x."""
        return self.evaluate(x).value

    def evaluate(self, x: Array) -> Evaluation:
        """Return value and gradient at weights x."""
        point = self.minimiser(x)
        cuts = self._offsets + self._slopes @ point.ravel()
        move = point - self._x
        value = -float(x @ cuts) - float(np.vdot(move, move)) / (2.0 * self._length)
        return Evaluation(value, -cuts, 0.0)


def _projection(domain: Domain) -> Callable[[Array], Array]:
    """The set's projection, or one by its oracle alone."""
    if domain.can("project"):
        return domain.project
    start = domain.origin()
    near = _PROJECTION * domain.radius**2

    def nearest(y: Array) -> Array:
        answer = infeasible_projection(domain, start, y, near, method="corrective", accuracy=1e-8)
        point: Array = answer.feasible
        return point

    return nearest


_ENTRY_LOSSES = (AbsoluteEntries, HuberEntries, SquaredEntries)
#: Share of the entries from which on a smaller problem is not worth the copying.
_WORTH = 0.7


class Reduction(NamedTuple):
    r"""The same problem on the rows and columns that its losses look at.

    Taking a submatrix does not raise the trace norm, nor does filling up with zeros, and neither
    changes the losses: both problems have the same minimum.
    """

    objective: Objective
    domain: Domain
    rows: Indices
    cols: Indices

    def restrict(self, x: Point) -> Array:
        """Return the looked-at part of a matrix, as an array."""
        if not isinstance(x, FactoredMatrix):
            part: Array = x[np.ix_(self.rows, self.cols)]
            return part
        part = (x.U[self.rows] * x.s) @ x.V[self.cols].T
        if x.sparse is not None:
            part += x.sparse[self.rows][:, self.cols].toarray()
        return part

    def embed(self, part: Array, like: Point) -> Point:
        """Return the matrix with that part and zeros elsewhere, of the same kind as `like`."""
        if not isinstance(like, FactoredMatrix):
            matrix = np.zeros(like.shape)
            matrix[np.ix_(self.rows, self.cols)] = part
            return matrix
        small = FactoredMatrix.from_dense(part)
        U, V = np.zeros((like.shape[0], small.rank)), np.zeros((like.shape[1], small.rank))
        U[self.rows], V[self.cols] = small.U, small.V
        return FactoredMatrix(U, small.s, V)


def reduce(objective: Objective, domain: Domain) -> Reduction | None:
    """Return the smaller problem, or None where there is none worth the trouble."""
    losses = [term.loss for term in objective.terms]
    looks = [loss for loss in losses if isinstance(loss, EntryLoss) and type(loss) in _ENTRY_LOSSES]
    if not looks or len(looks) < len(losses):
        return None
    rows = np.unique(np.concatenate([loss.rows for loss in looks]))
    cols = np.unique(np.concatenate([loss.cols for loss in looks]))
    small = domain.restricted_to((rows.size, cols.size))
    if small is None or rows.size * cols.size > _WORTH * math.prod(domain.shape):
        return None
    terms = [
        Term(term.weight, _renumbered(loss, rows, cols))
        for term, loss in zip(objective.terms, looks, strict=True)
    ]
    return Reduction(Objective(terms, objective.constant), small, rows, cols)


def _renumbered(loss: EntryLoss, rows: Indices, cols: Indices) -> EntryLoss:
    """The same loss with indices into these rows and columns."""
    places = np.searchsorted(rows, loss.rows), np.searchsorted(cols, loss.cols)
    if isinstance(loss, HuberEntries):
        return HuberEntries(*places, loss.targets, loss.width)
    return type(loss)(*places, loss.targets)


#: Smoothing of kinks, as a share of the natural size of the scores: the first, the factor to the
#: next, and where doubles end it.
_FIRST_SHARE, _NEXT_SHARE, _LAST_SHARE = 0.3, 0.25, 1e-11
#: Looks that smooth methods get at functions of unknown smoothness before the bundle takes over.
_TRIAL = 200


def minimise(objective: Objective, start: Point, bracket: Bracket) -> None:
    """Narrow a bracket around the minimum of an objective until it has no more work."""
    reduced = reduce(objective, bracket.domain)
    if reduced is None:
        _minimise(objective, start, bracket)
        bracket.point = _like(bracket.domain.origin(), bracket.point)
    else:
        inside = bracket.over(reduced.domain)
        _minimise(reduced.objective, reduced.restrict(start), inside)
        bracket.take(inside, reduced.embed(inside.point, bracket.domain.origin()))


def _minimise(objective: Objective, start: Point, bracket: Bracket) -> None:
    bracket.offer(start, objective.value(start))
    if objective.linear:
        vertex = bracket.gap_at(objective, start, objective.evaluate(start)).vertex
        bracket.offer(vertex, objective.value(vertex))
        return
    projects = bracket.domain.affordable_projection
    x = _dense(start) if projects or objective.unknown else start
    limit = bracket.limit
    if objective.unknown:
        bracket.limit = min(limit, bracket.looks + _TRIAL)
    _follow_smoothings(objective, x, bracket, projects)
    bracket.limit = limit
    if objective.unknown and bracket.is_open():
        bundle(objective, _dense(bracket.point), bracket)


def _follow_smoothings(objective: Objective, x: Point, bracket: Bracket, projects: bool) -> None:
    """Minimise ever less smoothed objectives, each from the last one's minimiser."""
    share = _FIRST_SHARE
    while True:
        bracket.unsettle()
        x = _descend(objective.softened(share), x, bracket, projects)
        share *= _NEXT_SHARE
        if not (bracket.is_open() and objective.kinked and share > _LAST_SHARE):
            return


def _descend(objective: Objective, x: Point, bracket: Bracket, projects: bool) -> Point:
    """Minimise a smooth objective by the method that fits."""
    if not projects:
        return corrective(objective, x, bracket)
    if objective.has_hessian(math.prod(bracket.domain.shape)) and not objective.quadratic:
        x = newton(objective, x, bracket)
    return accelerated(objective, x, bracket)


def _dense(x: Point) -> Point:
    return x.toarray() if isinstance(x, FactoredMatrix) else x


def _like(origin: Point, point: Point) -> Point:
    """The point in the representation that the set's points have."""
    if isinstance(origin, FactoredMatrix) and isinstance(point, np.ndarray):
        return FactoredMatrix.from_dense(point)
    return point

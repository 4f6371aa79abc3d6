"""A bundle method, for functions whose kinks nobody knows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from driftwolfe.domains import Domain, Simplex
from driftwolfe.oracles import infeasible_projection
from driftwolfe.points.kinds import Array
from driftwolfe.regret.accelerated import accelerated
from driftwolfe.regret.bracket import Bracket
from driftwolfe.regret.objective import Evaluation, Objective

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
        bracket.look(objective, x, look)
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

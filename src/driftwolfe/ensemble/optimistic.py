"""Experts that expect the last gradient again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.domains.base import require_feasible, same_kind
from driftwolfe.ensemble.ball import BallDescent, PointRows
from driftwolfe.ensemble.experts import Evaluation, require_finite, require_in_range
from driftwolfe.ensemble.plan import Plan, ProjectionConfig
from driftwolfe.ensemble.weights import Totals
from driftwolfe.losses import Loss
from driftwolfe.points import inner, norm
from driftwolfe.points.kinds import Array, Point, compiled
from driftwolfe.points.ops import POINTS
from driftwolfe.state import Field, Size, State
from driftwolfe.storage import require

kernels = compiled("driftwolfe.ensemble.expert_kernels")


class OptimisticDescent(BallDescent):
    r"""Optimistic gradient descent, each with its own step, from one gradient for all.

    .. math:: \hat y \leftarrow P(\hat y - \eta g), \qquad y = P(\hat y - \eta m), \qquad m = \kappa g

    with the fraction :math:`\kappa \in [0, 1]` of gradients that would have been the best hint so far.
    P is the projection on the set (``each``), or the rescaling to the ball around it, and then the mean
    of all y is projected, as in `BallDescent`. For comparators of path length p,

    .. math:: \sum_t\langle g_t, y_t - u_t\rangle \le \frac{v_0 D^2 + D p/2}{\eta}
              + \sum_t\min\big(\tfrac{\eta}{2} q_t^2,\, D q_t\big), \qquad
              q_t = \lVert g_t - m_t\rVert

    `costs` has the last sums. A `correction` c charges each expert :math:`c\lVert y_t - y_{t-1}\rVert^2`
    in its losses and its hints, and `costs` with what that adds; :math:`\kappa` is then 1.
    """

    _bases: PointRows  # the points from which steps start
    last: Annotated[Point, Field(POINTS)]  # gradient
    kept_fraction: Annotated[float, Field(float, None, 0.0, 1.0)]  # of that, expected again
    #: Of gradients with those before, and squares.
    products: Annotated[Array, Field(np.float64, (2,))]
    scale: Size  # the factor c on the steps that led to y
    moves: Totals  # squared moves of the last step, if charged
    costs: Annotated[Array, Field(np.float64, ("experts",))]

    def __init__(
        self,
        oracle: ProjectionConfig,
        step_scale: float | None,
        correction: float,
        each: bool,
        domain: Domain,
        plans: Sequence[Plan],
        start: Point,
    ) -> None:
        self.correction, self.each = correction, each
        self.scale = 0.0
        self.moves, self.costs = np.empty((2, 0))
        super().__init__(oracle, step_scale, domain, plans, start)
        self.last = 0.0 * self.kept(domain.origin())
        self.kept_fraction, self.products = 0.0, np.zeros(2)

    @property
    def diameter(self) -> float:
        return self.domain.diameter if self.each else super().diameter

    def kept(self, point: Point) -> Point:
        return point if self.each else super().kept(point)

    def add(self, start: Point, plans: Sequence[Plan]) -> None:
        super().add(start, plans)
        self._bases = PointRows(self.points)
        self.moves, self.costs = np.zeros((2, len(self.points)))

    def evaluate(
        self, loss: Loss, weights: Array, linear: bool = True, tangent: bool = False
    ) -> Evaluation:
        found = super().evaluate(loss, weights)
        if self.correction == 0.0:
            return found
        losses = found.losses + self.correction * self.moves
        return found._replace(losses=losses, played=float(weights @ losses))

    def hints(self) -> Array:
        """Return what the experts will lose if the hint is right."""
        losses = self.losses(self.hint)
        return losses + self.correction * self.moves if self.correction > 0.0 else losses

    def charge(self, weights: Array, gradient: Any) -> None:
        """Add what this round costs each expert beside its step's distance terms."""
        hint = self.hint
        # Where nothing was expected, y is where the step starts, and that may be the new one.
        scale = self.scale if norm(hint) > 0.0 else self.scale_for(self.largest_gradient)
        error = norm(gradient - hint)
        most = self.diameter * error
        self.costs = self.costs + np.minimum(0.5 * scale * error**2 * self.steps, most)
        self._charge_moves(weights)

    def _charge_moves(self, weights: Array) -> None:
        if self.correction > 0.0:
            self.costs += self.correction * (self.moves - weights.dot(self.moves))

    def move(self, gradient: Any, scale: float) -> None:
        self._learn_share(gradient)
        self.last, self.scale = gradient, scale
        if isinstance(gradient, np.ndarray):
            self._step(gradient, self.hint, scale)
            return
        bases, before = self.moved(self._bases.points, gradient, scale), self.points
        self._bases, self.points = PointRows(bases), self.moved(bases, self.hint, scale)
        if self.correction > 0.0:
            pairs = zip(self.points, before, strict=True)
            self.moves = np.array([norm(now - then) ** 2 for now, then in pairs])

    def _step(self, gradient: Array, hint: Array, scale: float) -> None:
        """Step along a gradient and expect the hint: one of each for all experts, or a row for each."""
        bases, before = self.moved(self._bases.table, gradient, scale), self._rows.table
        self._bases, self._rows = PointRows(bases), PointRows(self.moved(bases, hint, scale))
        if self.correction > 0.0:
            steps = _flat(self._rows.table - before)
            self.moves = np.vecdot(steps, steps)

    def _learn_share(self, gradient: Point) -> None:
        """Choose the fraction of a gradient that was, so far, the best hint of the next."""
        along, square = self.products
        length = norm(self.last)
        if self.correction > 0.0:  # losses are smooth
            self.kept_fraction = 1.0
            return
        if length > 0.0:
            along, square = along + inner(self.last, gradient), square + length * length
        elif square == 0.0:  # nothing is known yet: expect it again
            self.kept_fraction = 1.0
            return
        self.products = np.array([along, square])
        self.kept_fraction = float(min(1.0, max(0.0, along / square)))

    @property
    def hint(self) -> Point:
        """What is expected of the next gradient."""
        return self.kept_fraction * self.last

    def confined(self, ends: Any) -> Any:
        if not self.each:
            return super().confined(ends)
        several = self.domain.project_each if isinstance(ends, list) else self.domain.project_many
        return several(ends)

    def settle(self, weights: Array) -> None:
        if self.each:  # the mean is in the set
            self.x = self.combined(weights)
        else:
            super().settle(weights)

    def check(self) -> None:
        super().check()
        like = self.kept(self.domain.origin())
        bases = self._bases.points
        require(len(bases) == self.size, "experts")
        require(all(same_kind(each, like) for each in (self.last, *bases)), "experts")
        if self.each:
            require_feasible(self.domain, [*self.points, *bases])


class OwnOptimisticDescent(OptimisticDescent):
    """Optimistic gradient descent on arrays, each expert from the gradients at its own points.

    Weights follow the gradient at the mean. `lasts`, `expected` and `agreements` have, first for the mean and then
    for each expert, what `last`, `hint` and `products` are where one gradient serves all.
    """

    lasts: State[Array]
    expected: State[Array]
    agreements: State[Array]

    def add(self, start: Point, plans: Sequence[Plan]) -> None:
        super().add(start, plans)
        self.lasts = np.zeros((1 + self.size, *self.domain.shape))
        self.expected, self.agreements = self.lasts, np.zeros((1 + self.size, 2))

    @property
    def hint(self) -> Point:
        return self.expected[0]

    def evaluate(
        self, loss: Loss, weights: Array, linear: bool = True, tangent: bool = False
    ) -> Evaluation:
        """Evaluate a loss at x, and linearised at all experts; its slopes are gradients there and at these."""
        points = np.concatenate((self.x[None], self._rows.table))
        scores = loss.stacked_scores(points)
        value = float(loss.value_at(scores[0]))
        slopes = loss.stacked_pull_back(loss.slope_at(scores), points)
        along = self.domain.tangent_many(np.asarray(slopes))
        gradients: Array = np.ascontiguousarray(along, dtype=np.float64)
        longest = kernels().largest_norm(_flat(gradients))
        require_finite(value)
        if not math.isfinite(longest):
            require_finite(gradients)
        require_in_range(longest, self.diameter)
        self.largest_gradient = max(self.largest_gradient, longest)
        losses = self.losses(gradients[0]) + self.correction * self.moves
        return Evaluation(value, float(weights @ losses), losses, gradients, True)

    def charge(self, weights: Array, gradient: Any) -> None:
        rows = _flat(gradient)[1:], _flat(self.expected)[1:]
        scales = self.scale, self.scale_for(self.largest_gradient)
        self.costs = self.costs + kernels().costs_of_hints(
            *rows, self.steps, *scales, self.diameter
        )
        self._charge_moves(weights)

    def move(self, gradient: Any, scale: float) -> None:
        found = kernels().expect_again(self.agreements, _flat(self.lasts), _flat(gradient))
        self.lasts, self.scale, self.agreements = gradient, scale, found[0]
        # Where losses are smooth, all of it is expected.
        self.expected = gradient if self.correction > 0.0 else found[1].reshape(gradient.shape)
        self._step(gradient[1:], self.expected[1:], scale)

    def check(self) -> None:
        super().check()
        lasts, expected = self.lasts, self.expected
        require(lasts.shape == expected.shape == (1 + self.size, *self.domain.shape), "experts")
        require((np.abs(expected) <= np.abs(lasts)).all(), "experts")  # a fraction of them
        require((expected * lasts >= 0.0).all(), "experts")
        require(len(self.agreements) == 1 + self.size, "experts")


def _flat(rows: Array) -> Array:
    return rows.reshape(len(rows), -1)

"""`Experts`: points that learn from gradients, and losses evaluated at all of them and at their mean."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.ensemble.plan import Plan
from driftwolfe.ensemble.weights import Totals
from driftwolfe.losses import Loss
from driftwolfe.losses.base import LONGEST
from driftwolfe.points import FactoredMatrix, checks, inner, norm
from driftwolfe.points.devices import device_of, is_array, namespace, to_host
from driftwolfe.points.kinds import Array, Point
from driftwolfe.state import Size, Stateful
from driftwolfe.storage import require

Scores: TypeAlias = Any  # Array with a leading axis, or a list of points


#: Radii from 0 beyond which points are compared from the centre of the set.
FAR = 2.0**20


class Evaluation(NamedTuple):
    """A loss at the experts and at their weighted mean, the decision."""

    value: float  # the loss of the decision
    played: float  # what weights compare experts with: `value`, or the linearised loss there
    losses: Array  # the experts' losses, or linearised losses
    slopes: Any  # a slope for each expert, or one for all; gradients where experts are stacked
    shared: bool  # whether there is one slope for all


class Experts(Stateful, ABC):
    """Several points of a set, each of which moves by the gradients of the losses.

    A learner plays their weighted mean: it calls `evaluate`, updates its weights, and calls `step`, then `settle`.
    """

    largest_gradient: Size
    LEARNED: ClassVar[tuple[str, ...]] = ("largest_gradient",)
    gradient_factor = 1.0  # how much longer gradients of a step may be than those of the losses

    def __init__(self, domain: Domain, step_scale: float | None) -> None:
        self.domain = domain  # its calls are the experts' calls
        self.step_scale = step_scale
        self.largest_gradient = 0.0

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of experts."""

    @abstractmethod
    def point(self, i: int) -> Point:
        """Return what expert i plays."""

    @abstractmethod
    def step(self, loss: Loss, slopes: Any, shared: bool = False) -> None:
        """Let every expert learn from its slope, or from one for all; write into arrays only what cannot fail."""

    def add(self, start: Point, plans: Sequence[Plan]) -> None:
        """Add an expert for each plan, all starting at the feasible point `start`."""

    def restart(self, which: Any, start: Point, keep: Collection[str] = ()) -> None:
        """Restart some experts, a slice or a list, at the feasible point `start`, with their plans.

        `keep` names what they keep: ``"x"`` to play on where they are until their first block ends.
        """

    def settle(self, weights: Array) -> None:
        """Prepare what is played in the coming round, now that its weights are known."""

    @property
    def diameter(self) -> float:
        """That of the set in which the experts' points lie."""
        return self.domain.diameter

    def take_over(self, before: Any) -> None:
        """Take over what the experts of an earlier epoch have learned for steps and bounds."""
        for name in self.LEARNED:
            setattr(self, name, getattr(before, name))

    def scale_for(self, largest_gradient: float) -> float:
        """Return the factor c on all steps: as given, or D over the largest gradient norm."""
        if self.step_scale is not None:
            return self.step_scale
        longest = self.gradient_factor * largest_gradient
        return 2.0 * self.domain.radius / longest if longest > 0 else 0.0

    def scores(self, loss: Loss) -> Scores:
        """Return the scores of every expert under a loss."""
        return stack([loss.scores(self.point(i)) for i in range(self.size)])

    def evaluate(
        self, loss: Loss, weights: Array, linear: bool, tangent: bool = False
    ) -> Evaluation:
        r"""Evaluate a loss at every expert and at their weighted mean.

        As :math:`A\sum_i w_i x_i = \sum_i w_i A x_i`, the mean is never formed. `linear` replaces the
        loss by :math:`\ell_t(x) = \langle\nabla f_t(x_t), x\rangle`: one gradient for all experts.
        `tangent` does so for the weights only, and experts keep their own gradients.
        """
        scores = self.scores(loss)
        combined = combine(weights, scores)
        if linear or tangent:
            suffered, slope = loss.value_and_slope_at(combined)
            require_finite(suffered, slope)
            losses = products(slope, self.about_center(loss, scores))
            found = Evaluation(float(suffered), float(weights @ losses), losses, slope, True)
            if linear:
                return found
        slopes: Any
        if is_array(scores):
            values, slopes = loss.value_and_slope_at(scores)
            losses = to_host(values)
        else:
            told, slopes = map(list, zip(*map(loss.value_and_slope_at, scores), strict=True))
            losses = np.array([float(value) for value in told])
        require_finite(losses, slopes)
        if tangent:
            return found._replace(slopes=slopes, shared=False)
        value = float(loss.value_at(combined))
        require_finite(value)
        return Evaluation(value, value, losses, slopes, False)

    def about_center(self, loss: Loss, scores: Scores) -> Scores:
        """Return scores, where the set is small and far from 0 those of the steps from its centre.

        Else what all points have in common would hide how their losses differ.
        """
        return scores - loss.scores(self.domain.center) if self.far else scores

    @cached_property
    def far(self) -> bool:
        """Whether the centre of the set is many of its radii from 0."""
        center = self.domain.center
        return isinstance(center, np.ndarray) and norm(center) > FAR * self.domain.radius

    def mean(self, weights: Array) -> Point:
        """Return the weighted mean of what the experts play."""
        return weighted_sum(weights, [self.point(i) for i in range(self.size)])

    def restart_point(self, weights: Array, heaviest: Callable[[Array], int]) -> Point:
        """Return the mean, or, where its factors would pile up, what the heaviest expert plays."""
        leader = self.point(heaviest(weights))
        return leader if isinstance(leader, FactoredMatrix) else self.mean(weights)


class SelfConfident(Experts):
    r"""Gradient descent whose steps come from the gradients since each expert started.

    .. math:: \eta_t = \frac{a D}{\sqrt{k G^2 + \Gamma_t}}, \qquad \Gamma_t = \sum_{s \le t}\lVert g_s\rVert^2

    with G the largest norm of a gradient that any expert has seen, and D the `reach`. Bounds are least for
    :math:`a = 1/\sqrt2`; smaller ones do better on the streams of benchmarks/pynol.py, where losses have kinks.
    k makes the first steps smaller, which would cross the set.
    """

    squares: Totals
    worst: Totals  # the largest sum that each, or any in its place before, has had
    steps: Array
    a: ClassVar[float]
    k: ClassVar[float]
    reach: float

    def add(self, start: Point, plans: Sequence[Plan]) -> None:
        super().add(start, plans)
        new = np.zeros(len(plans))
        self.squares, self.worst = (np.append(each, new) for each in (self.squares, self.worst))

    def restart(self, which: Any, start: Point, keep: Collection[str] = ()) -> None:
        super().restart(which, start, keep)
        self.squares = self.squares.copy()
        self.squares[which] = 0.0

    def set_steps(self, squares: Any, largest: float) -> None:
        """Set the steps, over a D, by the squared norms of new gradients and the largest norm so far."""
        self.squares = self.squares + squares
        self.worst = np.maximum(self.worst, self.squares)
        if largest > 0.0:
            self.steps = 1.0 / np.sqrt(self.k * largest**2 + self.squares)

    def check(self) -> None:
        super().check()
        require((self.worst >= self.squares).all(), "experts")


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


def require_in_range(norm: float, diameter: float) -> None:
    """Refuse a gradient that is too long to be computed with, in this round or a later one."""
    if not norm < (most := LONGEST / max(1.0, diameter)):
        allowed = f"on this set the largest allowed is {most:.3g}: use other units"
        raise ValueError(f"the gradient of this loss has the norm {norm:.3g}; {allowed}")


def require_finite(*given: Any) -> None:
    """Refuse a loss that returned values or slopes that are not finite; points are not checked."""
    for part in given:
        if isinstance(part, float):
            finite = math.isfinite(part)
        elif isinstance(part, np.ndarray):
            finite = checks.all_finite(part)
        else:
            finite = not is_array(part) or math.isfinite(device_of(part).largest(part))
        if not finite:
            raise ValueError(
                "the loss returned a value or gradient that is not finite at the decision; "
                "nothing was learned from it"
            )

"""When a projection is good enough, and what is then returned."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from driftwolfe.oracles.pair import Pair
from driftwolfe.oracles.result import InfeasibleProjection

#: Up to this share of the squared distance, the gap lets y' = x' keep the non-expansion property.
COLLAPSE = 0.5


@dataclass(frozen=True, slots=True)
class Stopping:
    r"""The stopping rule of every Frank-Wolfe-like method.

    With :math:`d = \lVert x - y\rVert` and a certified gap g, so that
    :math:`\lVert x - z\rVert^2 \le \lVert y - z\rVert^2 - d^2 + 2g` for all z in K:

    - :math:`d^2 \le tolerance`: (x, y);
    - :math:`g \le accuracy \cdot \min(d^2, reach)` with accuracy <= 1/2: (x, x), non-expansive by
      the line above; a target far away would else be content with any x;
    - no accuracy asked, or one above 1/2: :math:`g \le \sqrt{tolerance}\, d` and the half-space step
      :math:`y' = y + (1 - g/d^2)(x - y)`, the projection of y on a half-space that holds K.
    """

    tolerance: float
    accuracy: float | None
    max_lmo_calls: int | None
    reach: float = math.inf

    def near(self, pair: Pair) -> bool:
        """Whether x and y are already as near as asked."""
        return pair.squared <= self.tolerance

    def collapses(self, squared: float, gap: float) -> bool:
        """Whether the asked accuracy is reached and y' = x' will do."""
        return self._collapsing and gap <= (self.accuracy or 0.0) * min(squared, self.reach)

    def slices(self, squared: float, gap: float) -> bool:
        """Whether the half-space step is asked for and lands near enough."""
        return (
            not self._collapsing
            and self.within_reach(squared, gap)
            and (self.accuracy is None or gap <= self.accuracy * squared)
        )

    def within_reach(self, squared: float, gap: float) -> bool:
        """Whether the half-space step would land within the tolerance."""
        return gap <= math.sqrt(self.tolerance) * math.sqrt(squared) and gap <= squared

    def enough(self, squared: float) -> float:
        """The gap at which a run may end."""
        if self._collapsing:
            return (self.accuracy or 0.0) * min(squared, self.reach)
        share = math.inf if self.accuracy is None else self.accuracy
        return min(math.sqrt(self.tolerance) * math.sqrt(squared), share * squared)

    def spent(self, lmo_calls: int) -> bool:
        """Whether no further oracle call is allowed."""
        return self.max_lmo_calls is not None and lmo_calls >= self.max_lmo_calls

    @property
    def _collapsing(self) -> bool:
        return self.accuracy is not None and self.accuracy <= COLLAPSE


def stay(pair: Pair, lmo_calls: int, gap: float, method: str) -> InfeasibleProjection:
    """Return (x, y)."""
    y = pair.y.copy() if pair.dense else pair.y
    return InfeasibleProjection(pair.snapshot(), y, lmo_calls, gap, pair.distance, method)


def collapse(pair: Pair, lmo_calls: int, gap: float, method: str) -> InfeasibleProjection:
    """Return (x, x)."""
    x = pair.snapshot()
    return InfeasibleProjection(x, x, lmo_calls, gap, 0.0, method)


def slice_off(
    pair: Pair, lmo_calls: int, gap: float, method: str, converged: bool = True
) -> InfeasibleProjection:
    """Return x and the projection of y on the half-space that the gap certifies."""
    share = max(0.0, 1.0 - max(gap, 0.0) / pair.squared)
    x, distance = pair.snapshot(), (1.0 - share) * pair.distance
    return InfeasibleProjection(x, pair.between(share), lmo_calls, gap, distance, method, converged)


def cut_short(
    pair: Pair, stop: Stopping, lmo_calls: int, diameter: float, method: str
) -> InfeasibleProjection:
    """Return (x, y) as they are: no call is left that could tell how good they are."""
    gap = pair.distance * diameter
    return replace(stay(pair, lmo_calls, gap, method), converged=stop.near(pair))


def give_up(
    pair: Pair, stop: Stopping, lmo_calls: int, gap: float, method: str
) -> InfeasibleProjection:
    """Return the best that the last certified gap allows: no call is left, or none would help."""
    if gap <= COLLAPSE * pair.squared:
        return collapse(pair, lmo_calls, gap, method)
    reached = stop.within_reach(pair.squared, gap)
    return slice_off(pair, lmo_calls, gap, method, converged=reached)

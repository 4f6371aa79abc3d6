"""`PoolDescent`: experts of several kinds as rows of one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.ensemble.dense import DenseDescent
from driftwolfe.ensemble.plan import ADAPTIVE, LAZY, OPTIMISTIC, VERTEX, ProjectionConfig
from driftwolfe.ensemble.weights import Totals
from driftwolfe.losses import Loss
from driftwolfe.points import norm
from driftwolfe.points.devices import HOST, to_host
from driftwolfe.points.kinds import Array, Indices, Point
from driftwolfe.state import Field, Size

#: The rules of the experts of `POLAR`, by their kinds.
RULES = {"whole": LAZY, "lazy": LAZY, "origin": LAZY, "agile": OPTIMISTIC, "vertex": VERTEX}
RULES |= {"adaptive": ADAPTIVE, "whole adaptive": ADAPTIVE}


class PoolDescent(DenseDescent):
    r"""Experts that move by the rules of their plans; D is twice the radius of the set.

    - *agile* and *lazy* ones as in `Descent`;
    - *adaptive*: lazy, with steps :math:`h D/\sqrt{\sum\lVert g\rVert^2}`, the sum over its own epoch;
    - *optimistic*: agile, along :math:`g + \phi(g - g')`, with :math:`g'` the gradient of the block before. The
      fraction :math:`\phi` in [0, 1] is what would have predicted the gradients of the first such expert best;
    - *vertex*: :math:`x \leftarrow x + h(v - x)` in every round, v a minimiser of :math:`\langle g, v\rangle`.

    Where there are vertex experts, and projections are neither exact nor certified, D is twice the distance from
    the centre of the farthest vertex that they have met: the set may be long in directions that no loss points to.
    """

    squares: Totals  # of gradients, since the epoch of each began
    expected: Annotated[float, Field(float, least=0.0, most=1.0)]  # phi
    agreement: Annotated[Array, Field(np.float64, (2,))]  # the sums of <g', g> and of <g', g'>
    _last: Annotated[Array, Field(np.float64, ("numbers",))]  # the last gradient of that expert
    farthest: Size  # distance from the centre of a vertex seen, where there are vertex experts

    def __init__(self, domain: Domain, oracle: ProjectionConfig, step_scale: float | None) -> None:
        super().__init__(domain, oracle, step_scale)
        self.squares, self.expected, self.agreement = np.empty(0), 0.0, np.zeros(2)
        self._last, self.farthest = np.zeros(self._x.shape[1]), 0.0
        self._vertices: Any = None  # of the round

    def set_rules(self, rules: Sequence[int]) -> None:
        super().set_rules(rules)
        self._adaptive, self._optimistic, self._vertex = (
            np.flatnonzero(self.rules == rule) for rule in (ADAPTIVE, OPTIMISTIC, VERTEX)
        )

    def step(self, loss: Loss, slopes: Any, shared: bool = False) -> None:
        """Let each expert step by its rule."""
        super().step(loss, slopes, shared)
        if self._vertex.size:
            here, shares = map(self._device.put, (self._vertex, self.steps[self._vertex, None]))
            self._x[here] += shares * (self._device.put(self._vertices) - self._x[here])
            self._vertices = None

    def _gradients(self, loss: Loss, gradients: Any, shared: bool) -> tuple[Any, float]:
        """The gradients, and what the rules learn from them."""
        table, largest = super()._gradients(loss, gradients, shared)
        if self._adaptive.size:
            on_host = self._device is HOST
            squares = (table * table).sum(1) if not on_host else np.vecdot(table, table)
            self.squares = self.squares + to_host(squares)
        if self._optimistic.size:
            first = int(self._optimistic[0])
            self._expect(to_host(table[first if len(table) > 1 else 0]))
        if self._vertex.size:
            held = to_host(self._stacked(table))
            asked = held[self._vertex] if len(held) > 1 else held
            found = [self.domain.lmo(g) for g in asked]
            self._vertices, center = self._table(np.stack(found)), self.domain.origin()
            self.farthest = max(self.farthest, *(norm(v - center) for v in found))
        return table, largest

    def _expect(self, gradient: Array) -> None:
        """Learn from the gradient of the first optimistic expert how much of it to expect again."""
        last, self._last = self._last, gradient.copy()
        self.agreement = self.agreement + np.array([last @ gradient, last @ last])
        along, square = self.agreement.tolist()
        self.expected = min(1.0, max(0.0, along / square)) if square > 0.0 else 1.0

    @property
    def reach(self) -> float:
        """The length D that steps are measured by."""
        # Bounds need steps that never grow: they are for exact projections and the certified tuning.
        seen = 0.0 if self.exact or self.oracle.by_gap else self.farthest
        return 2.0 * min(self.domain.radius, seen or self.domain.radius)

    def scale_for(self, largest_gradient: float) -> float:
        return super().scale_for(largest_gradient) * self.reach / (2.0 * self.domain.radius)

    def _etas(self, scale: float) -> Array:
        etas = scale * self.steps
        if (which := self._adaptive).size:
            roots = np.sqrt(self.squares[which])
            reach = self.reach * self.steps[which]
            etas[which] = np.divide(reach, roots, out=np.zeros_like(roots), where=roots > 0.0)
        if self.expected:
            etas[self._optimistic] *= 1.0 + self.expected
        return etas

    def _bases(self, due: Indices, ends: Any, y: Any) -> Any:
        """Optimistic experts take back that part of the step which expected the gradient again."""
        if not self.expected or not (which := np.isin(due, self._optimistic)).any():
            return y
        here, before = map(self._device.put, (np.flatnonzero(which), due[which]))
        part, bases = self.expected / (1.0 + self.expected), self._device.put(np.array(to_host(y)))
        bases[here] += part * (self._y[before] - ends[here])
        return bases

    def _new_expert(self, start: Point) -> dict[str, Any]:
        return {**super()._new_expert(start), "squares": 0.0}

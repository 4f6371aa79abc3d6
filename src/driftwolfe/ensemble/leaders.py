"""`Leaders`: experts that follow the regularised leader and restart at fixed intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.domains.base import require_feasible, require_kind
from driftwolfe.ensemble.experts import Experts, require_in_range
from driftwolfe.ensemble.plan import Plan
from driftwolfe.losses import Loss
from driftwolfe.oracles.frank_wolfe import Memory, Scalars, approach, run_together
from driftwolfe.points import FactoredMatrix, inner, norm
from driftwolfe.points.kinds import Point
from driftwolfe.points.ops import POINTS, FactorBuffer, without_idle_columns
from driftwolfe.state import Count, Field
from driftwolfe.storage import require

#: Free columns of a new buffer, if an epoch can fill them, and at least this fraction of its rank.
_ROOM, _SHARE_OF_RANK = 64, 0.5
#: Largest move by recompressing a point, as a fraction of the radius, and its cost as one of the gap.
_NEGLIGIBLE, _SHARE_OF_GAP = 5e-4, 0.01
_NO_MEMORY = Memory()


@dataclass(frozen=True, slots=True)
class Leader:
    """One expert: its point, and the gradients of its epoch."""

    epoch: Count  # rounds gamma between restarts
    x: Annotated[Point, Field(POINTS)]  # feasible, played
    #: Where the epoch started; for strongly convex losses the sum of its points.
    anchor: Annotated[Point, Field(POINTS)]
    #: The sum of the epoch's; None before the first.
    gradients: Annotated[Any, Field(POINTS, optional=True)] = None
    rounds: Count = 0  # of the epoch so far
    eta: Annotated[float, Field(float)] = 0.0  # step of the last target
    memory: Annotated[Memory, Field(Memory)] = _NO_MEMORY  # what the last run keeps for the next


class Leaders(Experts):
    r"""Online conditional gradient with restarts.

    Expert i plays, in round s of its epoch of :math:`\gamma_i` rounds, a near-minimiser of

    .. math:: F_s(x) = \eta_i \sum_{\tau < s}\langle g_\tau, x\rangle + \lVert x - x_1\rVert^2,
              \qquad \eta_i = c/\sqrt{\gamma_i}

    found by line-search Frank-Wolfe from its last point until the gap is :math:`D^2/\gamma_i`: as F
    is a squared distance to :math:`x_1 - \tfrac{\eta}{2}\sum g`, that is an approximate projection.
    For losses that are :math:`\lambda`-strongly convex the regulariser is
    :math:`\tfrac{\lambda}{2}\sum_\tau\lVert x - x_\tau\rVert^2` and the gap :math:`G^2/(2\lambda s)`.
    """

    cut_short: Annotated[bool, Field(bool)]  # whether a run has ended before its gap was reached
    experts: Annotated[list[Leader], Field(list, ("experts",), items=Field(Leader))]
    gradient_factor = 0.5  # in effect: c is 2D/G unless given

    def __init__(
        self,
        domain: Domain,
        plans: Sequence[Plan],
        start: Point,
        step_scale: float | None,
        strong_convexity: float | None = None,
        max_calls: int | None = None,  # LMO calls per run
    ) -> None:
        super().__init__(domain, step_scale)
        self.strong_convexity, self.max_calls, self.cut_short = strong_convexity, max_calls, False
        self.experts = [Leader(plan.lifetime, start, start) for plan in plans]

    def check(self) -> None:
        require(self.experts, "experts")
        for each in self.experts:
            require(each.rounds < each.epoch, "experts")
            points = [each.x, each.anchor, *([] if each.gradients is None else [each.gradients])]
            require_kind(self.domain, points, "points of experts")
            buffer = each.memory.buffer
            fits = buffer is None or (len(buffer.U), len(buffer.V)) == self.domain.shape
            require(fits, "buffers of factors")
        require_feasible(self.domain, (each.x for each in self.experts))

    @property
    def size(self) -> int:
        return len(self.experts)

    def point(self, i: int) -> Point:
        return self.experts[i].x

    def step(self, loss: Loss, slopes: Any, shared: bool = False) -> None:
        """Add each expert's gradient and follow the leader, or restart where its epoch ends."""
        pairs = zip([slopes] * self.size if shared else slopes, self.experts, strict=True)
        gradients = [self.domain.tangent(loss.pull_back(slope, each.x)) for slope, each in pairs]
        largest = max(self.largest_gradient, *map(norm, gradients))
        require_in_range(largest, self.diameter)
        given = zip(self.experts, gradients, strict=True)
        experts, runs = [self._seen(*each, largest) for each in given], dict[int, Any]()
        for i, expert in enumerate(experts):
            if expert.rounds and (gap := self._gap(expert, largest)) > 0 and largest > 0:
                how = self._target(expert), gap, self.max_calls, expert.memory
                runs[i] = approach(self.domain.radius, expert.x, *how)
        for i, end in zip(runs, run_together(self.domain, list(runs.values())), strict=True):
            experts[i] = replace(experts[i], x=end.point, memory=end.memory)
            self.cut_short = self.cut_short or not end.gap <= self._gap(experts[i], largest)
        self.experts, self.largest_gradient = experts, largest

    def _gap(self, expert: Leader, largest: float) -> float:
        """Where its run ends."""
        gap = (2.0 * self.domain.radius) ** 2 / (2.0 * expert.epoch)
        if self.strong_convexity is not None:
            steep = largest / self.strong_convexity
            gap = steep * steep / (2.0 * expert.rounds * (expert.rounds + 1))
        if not gap < math.inf:
            raise ValueError("a gradient is beyond the range of numbers; rescale the losses")
        return gap

    def _seen(self, expert: Leader, gradient: Point, largest: float) -> Leader:
        """The expert with one more gradient, and the scalars of its next run where they follow."""
        if expert.rounds + 1 == expert.epoch:  # the next epoch starts where it is
            fresh = Leader(expert.epoch, expert.x, expert.x, memory=expert.memory)
            fresh = self._with_room(fresh, expert.epoch - 1)
            scalars = fresh.memory.scalars and (fresh.memory.scalars[0],) * 3
            return replace(fresh, memory=fresh.memory._replace(scalars=scalars))
        expert = self._with_room(expert, 1)
        total = gradient if expert.gradients is None else expert.gradients + gradient
        anchor, eta, scalars = expert.anchor, expert.eta, None
        if self.strong_convexity is not None:
            anchor = expert.x if expert.rounds == 0 else anchor + expert.x
        else:
            eta = float(self.scale_for(largest) / np.sqrt(expert.epoch))
            scalars = _next_scalars(expert, gradient, eta)
        buffer = copy(expert.memory.buffer)  # columns that a refused update takes are free again
        memory = expert.memory._replace(scalars=scalars, buffer=buffer)
        return Leader(expert.epoch, expert.x, anchor, total, expert.rounds + 1, eta, memory)

    def _target(self, seen: Leader) -> Point:
        """Where the regularised leader would be without the set."""
        if self.strong_convexity is None:
            return seen.anchor + (-0.5 * seen.eta) * seen.gradients
        count, curvature = seen.rounds, self.strong_convexity
        return (1.0 / count) * seen.anchor + (-1.0 / (curvature * count)) * seen.gradients

    def _with_room(self, expert: Leader, columns: int) -> Leader:
        """The expert with its factored points in one buffer that has so many free columns."""
        x, anchor, buffer = expert.x, expert.anchor, expert.memory.buffer
        if not isinstance(x, FactoredMatrix):
            return expert
        if buffer is not None and buffer.holds(x) and buffer.room >= columns:
            return expert
        # Dropping small singular values of x raises the objective by at most about 1 % of its gap. x stays
        # feasible, and the next run starts from there: the gap it finds is that of the point played.
        error = min(_NEGLIGIBLE * self.domain.radius, _SHARE_OF_GAP * expert.memory.length)
        kept = [x.truncate(error)[0]]
        if expert.rounds > 0:
            held = without_idle_columns(anchor)
            kept.append(held if self.strong_convexity is None else held.recompress())
        room = max(min(_ROOM, expert.epoch), int(_SHARE_OF_RANK * kept[0].rank))
        buffer, placed = FactorBuffer.holding(kept, room)
        memory = expert.memory._replace(scalars=None, buffer=buffer)
        return replace(expert, x=placed[0], anchor=placed[-1], memory=memory)


def _next_scalars(expert: Leader, gradient: Point, eta: float) -> Scalars | None:
    """Those of x and y - (eta/2) g from those of x and y, unless these were for another step."""
    if expert.memory.scalars is None or not (expert.rounds == 0 or eta == expert.eta):
        return None
    xx, xy, yy = expert.memory.scalars
    half = 0.5 * eta
    yg = inner(expert.anchor, gradient)
    if expert.gradients is not None:
        yg -= half * inner(expert.gradients, gradient)
    xy -= half * inner(expert.x, gradient)
    step = half * norm(gradient)
    return xx, xy, yy - eta * yg + step * step

"""`Leaders`: experts that follow the regularised leader and start afresh now and then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.ensemble.scores import Scores, stack, weighted_sum
from driftwolfe.losses import Loss
from driftwolfe.oracles import frank_wolfe
from driftwolfe.points import FactoredMatrix, norm
from driftwolfe.points.kinds import Array, Point


@dataclass(frozen=True, slots=True)
class Leader:
    """One expert: its point, and what its epoch has seen.

    Attributes
    ----------
    epoch
        Rounds gamma between restarts.
    x
        The feasible point played.
    anchor
        Where the epoch started.
    gradients
        Sum of the epoch's gradients; None before the first.
    played
        Sum of the epoch's points, for strongly convex losses; None before the first.
    rounds
        Rounds of the epoch so far.
    """

    epoch: int
    x: Point
    anchor: Point
    gradients: Point | None = None
    played: Point | None = None
    rounds: int = 0


@dataclass(frozen=True, slots=True)
class GapRule:
    """When a Frank-Wolfe run of an expert ends.

    Attributes
    ----------
    scale
        Factor on the gap that theory asks for.
    accuracy
        A gap of this share of the squared distance to the target will do as well; None for no.
    max_calls
        Linear minimisations that one run may take; None for no limit.
    """

    scale: float = 1.0
    accuracy: float | None = None
    max_calls: int | None = None


class Leaders:
    r"""Online conditional gradient with restarts.

    Expert i plays, in round s of its epoch of :math:`\gamma_i` rounds, a near-minimiser of

    .. math:: F_s(x) = \eta_i \sum_{\tau < s}\langle g_\tau, x\rangle + \lVert x - x_1\rVert^2,
              \qquad \eta_i = c/\sqrt{\gamma_i}

    found by line-search Frank-Wolfe from its last point until the gap is :math:`D^2/\gamma_i`: as F
    is a squared distance to :math:`x_1 - \tfrac{\eta}{2}\sum g`, that is an approximate projection.
    For losses that are :math:`\lambda`-strongly convex the regulariser is
    :math:`\tfrac{\lambda}{2}\sum_\tau\lVert x - x_\tau\rVert^2` and the gap :math:`G^2/(2\lambda s)`.
    """

    def __init__(
        self,
        domain: Domain,
        epochs: Sequence[int],
        start: Point,
        *,
        step_scale: float | None,
        strong_convexity: float | None,
        stopping: GapRule,
    ) -> None:
        self.domain = domain
        self.step_scale = step_scale
        self.strong_convexity = strong_convexity
        self.stopping = stopping
        self.largest_gradient = 0.0
        self.cut_short = False  # whether a run has ended before its gap was reached
        self.experts = [Leader(epoch, start, start) for epoch in epochs]

    @property
    def size(self) -> int:
        """Number of experts."""
        return len(self.experts)

    def point(self, i: int) -> Point:
        """What expert i plays."""
        return self.experts[i].x

    def mean(self, weights: Array) -> Point:
        """The weighted mean of what the experts play."""
        return weighted_sum(weights, [expert.x for expert in self.experts])

    def look(self, loss: Loss) -> Scores:
        """What the loss sees of every expert."""
        return stack([loss.scores(expert.x) for expert in self.experts])

    def scale_for(self, largest_gradient: float) -> float:
        """The factor c in eta = c / sqrt(gamma); 2D/G unless given."""
        if self.step_scale is not None:
            return self.step_scale
        return 4.0 * self.domain.radius / largest_gradient if largest_gradient > 0 else 0.0

    def prepare(self, loss: Loss, slopes: Any, shared: bool, skip: Any = None) -> Any:
        """Work out the coming round without changing anything."""
        each = [slopes] * self.size if shared else slopes
        gradients = [
            loss.pull_back(slope, expert.x)
            for slope, expert in zip(each, self.experts, strict=True)
        ]
        largest = max(self.largest_gradient, *(norm(g) for g in gradients))
        moved, cut_short = [], self.cut_short
        for expert, g in zip(self.experts, gradients, strict=True):
            leader, reached = self._moved(expert, g, largest)
            moved.append(leader)
            cut_short = cut_short or not reached
        return moved, largest, cut_short

    def commit(self, prepared: Any) -> None:
        """Carry out what `prepare` worked out."""
        self.experts, self.largest_gradient, self.cut_short = prepared

    def _moved(self, expert: Leader, gradient: Point, largest: float) -> tuple[Leader, bool]:
        """The expert after one more gradient, and whether its run reached the gap."""
        if expert.rounds + 1 == expert.epoch:
            return Leader(expert.epoch, expert.x, expert.x), True
        total = gradient if expert.gradients is None else expert.gradients + gradient
        seen = replace(expert, gradients=total, rounds=expert.rounds + 1)
        if self.strong_convexity is None:
            eta = self.scale_for(largest) / np.sqrt(expert.epoch)
            target = seen.anchor - (0.5 * eta) * total
            gap = (2.0 * self.domain.radius) ** 2 / (2.0 * expert.epoch)
        else:
            played = _trimmed(expert.x if expert.played is None else expert.played + expert.x)
            seen = replace(seen, played=played)
            count, curvature = seen.rounds, self.strong_convexity
            target = (1.0 / count) * played - (1.0 / (curvature * count)) * total
            gap = largest**2 / (2.0 * curvature**2 * count * (count + 1))
        if not (largest > 0 and gap > 0):
            return seen, True
        rule = self.stopping
        run = frank_wolfe(
            self.domain, seen.x, target, rule.scale * gap, rule.max_calls, rule.accuracy
        )
        return replace(seen, x=_trimmed(run.point)), run.gap <= rule.scale * gap


def _trimmed(point: Point) -> Point:
    """The point without superfluous factors."""
    if isinstance(point, FactoredMatrix) and point.rank > min(50, min(point.shape)):
        return point.recompress()
    return point

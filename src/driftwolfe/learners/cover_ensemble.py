"""`CoverEnsemble`: an expert for every interval of a cover of time."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.ensemble import Cover, SleepingMeta
from driftwolfe.ensemble.descent import Descent
from driftwolfe.ensemble.experts import descent
from driftwolfe.ensemble.plan import Plan
from driftwolfe.learners import bounds
from driftwolfe.learners.base import Learner, as_loss
from driftwolfe.learners.grid import current_point, view
from driftwolfe.learners.options import Options
from driftwolfe.points.kinds import Array, Indices, Point
from driftwolfe.points.rounding import near_largest
from driftwolfe.storage import require


class CoverEnsemble(Learner):
    """A cover of time, an expert on each of its intervals, and a meta for experts that sleep.

    In each round: experts whose interval has ended leave, those of intervals that start come, the
    weighted mean is played, and every expert takes its step. A named one says how long an interval
    makes an expert (`_plan`).

    Parameters
    ----------
    domain
        The set.
    options
        Checked options.
    cover, meta
        The parts it is wired from, beside the experts that `_make_experts` gives.
    start
        Where a new expert starts: ``"current"``, the point played last (the heaviest expert's where
        points are factored, as the mean would pile up factors; of several as heavy, that of the
        longest interval), or ``"origin"``.
    """

    STATE = ("_experts", "_meta", "_ends", "_lengths")

    def __init__(
        self,
        domain: Domain,
        options: Options,
        cover: Cover,
        meta: SleepingMeta,
        start: str = "current",
    ) -> None:
        super().__init__(domain)
        if start not in ("current", "origin"):
            raise ValueError(f'start must be "current" or "origin", got {start!r}')
        self.options = options
        self.start = start
        self._experts = self._make_experts()
        self._cover = cover
        self._meta = meta
        self._ends: Indices = np.empty(0, dtype=np.int64)  # last round of each expert
        self._lengths: list[int] = []  # rounds of its interval
        self._add(cover.starting(1), domain.origin())

    def check_state(self) -> None:
        """As `Learner.check_state`; an interval and a weight for each expert."""
        super().check_state()
        sizes = {self._experts.size, self._meta.size, self._ends.size, len(self._lengths)}
        require(len(sizes) == 1, "experts and intervals")
        require(all(type(length) is int for length in self._lengths), "intervals")
        # Which experts are awake, the cover says: no file can make them more.
        awake = sorted((each.end, each.length) for each in self._cover.active(self.t + 1))
        held = sorted(zip(self._ends.tolist(), self._lengths, strict=True))
        require(held == awake, "intervals and rounds")

    @property
    def decision(self) -> Point:
        """The weighted mean of the experts that are awake."""
        return self._experts.mean(self._meta.weights)

    @property
    def expert_weights(self) -> Array:
        """The weights of the experts that are awake, in the order of `expert_ends`."""
        return self._meta.weights

    @property
    def expert_ends(self) -> Indices:
        """The last round of each expert that is awake."""
        return self._ends.copy()

    @property
    def expert_names(self) -> list[str]:
        """The lengths of their intervals."""
        return [_rounds(length) for length in self._lengths]

    @property
    def lmo_budget(self) -> float | None:
        """Linear minimisations a round, for all experts together; None for no limit."""
        return self.options.oracle.budget

    @property
    def lipschitz(self) -> float:
        """G: the larger of what was given and the largest gradient norm seen."""
        return max(self.options.lipschitz or 0.0, self._experts.largest_gradient)

    def update(self, loss: Any) -> float:
        """Play the mean, hold it against each expert, let those that play on take their step."""
        f = as_loss(loss)
        weights = self._meta.weights
        seen = view(f, self._experts, weights, self.options.linear)
        leaving = self._ends == self.t + 1
        prepared = self._experts.prepare(f, seen.slopes, self.options.linear, skip=leaving)
        start = current_point(self._experts, weights, self._heaviest(weights))
        self._meta.update(seen.played, seen.experts)
        self._experts.commit(prepared)
        self.t += 1
        self._turn_over(leaving, start if self.start == "current" else self.domain.origin())
        return seen.value

    def _heaviest(self, weights: Array) -> int:
        """The expert of the largest weight; of several as heavy, that of the longest interval."""
        return max(near_largest(weights).tolist(), key=self._lengths.__getitem__)

    def bound(self, path_length: float = 0.0, tau: int | None = None) -> float:
        """Return the bound on dynamic regret, on all windows of length tau or on the whole game.

        `path_length` is that of the comparators inside the window; 0 is adaptive regret. A tau beyond
        the rounds played means all of them. The meta's range B is that given, or the largest
        difference seen where it is learned; there is no bound where losses differed by more than a
        given one.
        """
        length, window = bounds.asked(path_length, tau)
        rounds = self.t if window is None else min(window, self.t)
        # No comparators of the set have a longer path.
        length = min(length, max(0, rounds - 1) * self.domain.diameter)
        if window is not None:
            return bounds.over_windows(rounds, self._level_bound, self._level_price, length)
        levels = range(rounds.bit_length())
        return min((self._dynamic_bound(k, length) for k in levels), default=0.0)

    def _dynamic_bound(self, k: int, path_length: float) -> float:
        """Intervals of lengths 1, 2, ..., 2^(k-1), then all of length 2^k.

        The path is split over them, so its largest price per unit pays for all of it.
        """
        L = 1 << k
        many = math.ceil((self.t - L + 1) / L) if self.t >= L else 0
        static = sum(self._level_bound(j) for j in range(k)) + many * self._level_bound(k)
        return static + path_length * max(self._level_price(j) for j in range(k + 1))

    def _level_bound(self, k: int) -> float:
        """The static regret on one interval of length 2^k: its expert's, and the meta's against it."""
        length = 1 << k
        return self._expert_bound(length) + bounds.weighing(self._meta, length, self.t)

    def _level_price(self, k: int) -> float:
        """What a unit of path inside an interval of length 2^k adds: the expert's bound is affine."""
        D = 2.0 * self.domain.radius
        return (self._expert_bound(1 << k, D) - self._expert_bound(1 << k)) / D

    def _expert_bound(self, length: int, path_length: float = 0.0) -> float:
        plan = self._plan(length)
        return bounds.blocked_descent(
            self._gradient_bound(),
            2.0 * self.domain.radius,
            length,
            self._experts.scale_for(self.lipschitz) * plan.step,
            plan.block,
            self._experts.tolerance_for(plan),
            path_length,
            shrinking_steps=self.options.step_scale is None,
            delay_factor=self.options.delay_factor,
        )

    def _gradient_bound(self) -> float:
        """A bound on the norms of what experts take for gradients."""
        return self.lipschitz

    def _turn_over(self, leaving: Any, start: Point) -> None:
        """Let experts whose interval has ended go, and those whose interval starts come.

        Where the first intervals end and others of the same lengths follow, as always in the
        geometric cover, the newcomers take their places and no array is made anew.
        """
        coming = self._cover.starting(self.t + 1)
        ends = self._ends.tolist()
        number = ends.count(self.t)
        followed = self._lengths[:number] == coming[:number]
        if followed and ends[:number] == [self.t] * number:
            self._restart(number, start)
            coming = coming[number:]
        else:
            self._remove(leaving)
        if coming:
            self._add(coming, start)

    def _restart(self, number: int, start: Point) -> None:
        self._experts.restart(number, start)
        self._meta.restart(number)
        self._ends[:number] = [self.t + length for length in self._lengths[:number]]

    def _remove(self, leaving: Any) -> None:
        self._experts.remove(leaving)
        self._meta.remove(leaving)
        self._ends = self._ends[~leaving]
        self._lengths = [n for n, gone in zip(self._lengths, leaving, strict=True) if not gone]

    def _add(self, lengths: list[int], start: Point) -> None:
        self._experts.add(start, [self._plan(length) for length in lengths])
        self._meta.add(lengths)
        self._lengths += lengths
        self._ends = np.concatenate((self._ends, self.t + np.array(lengths)))

    def _make_experts(self) -> Descent:
        """An empty stack of experts."""
        return descent(self._counted, self.options.oracle, self.options.step_scale)

    @abstractmethod
    def _plan(self, length: int) -> Plan:
        """The expert for an interval of that length."""


def _rounds(number: int) -> str:
    return "1 round" if number == 1 else f"{number:,} rounds"

"""Bounds of ensembles, from the plans of their experts, their weights and measured constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from driftwolfe import bounds
from driftwolfe.ensemble import Hedge
from driftwolfe.ensemble.plan import OPTIMISTIC, Plan


@dataclass(frozen=True)
class Measured:
    """Constants of a game, as given or as measured so far."""

    G: float  # bound on gradient norms
    D: float  # twice the radius of the set
    diameter: float  # that of the set in which the experts' points lie
    step_scale: float  # c: the steps taken are c times those of the plans
    shrinking_steps: bool  # whether c falls as larger gradients are seen
    largest_distance: float  # of projections that ended before their tolerance
    delay_factor: float  # 3 where a block's gradients are worked on during the next, else 1
    surrogates: float  # bound on the norms of the gradients that steps take, or of their means
    noise: float  # bound on the norms of random gradients


def expert_regret(
    plan: Plan,
    known: Measured,
    rounds: int,
    path_length: float = 0.0,
    start: float = bounds.ANYWHERE,
) -> float:
    """Return the bound on one agile expert, see `blocked_descent`; on its mean, if gradients are random."""
    eta, tolerance = known.step_scale * plan.step, max(plan.tolerance, known.largest_distance**2)
    expert = rounds, eta, plan.block, tolerance, path_length, start
    game = known.shrinking_steps, known.delay_factor, known.noise
    return bounds.blocked_descent(known.surrogates, known.D, *expert, *game)


def regret_per_path(plan: Plan, known: Measured, rounds: int) -> float:
    """Return what a unit of path adds to `expert_regret`, which is affine in the path length."""
    still, moving = (expert_regret(plan, known, rounds, path) for path in (0.0, known.D))
    return (moving - still) / known.D


def optimistic_regret(plan: Plan, known: Measured, rounds: int, path_length: float = 0.0) -> float:
    """Return the bound on an optimistic expert: steps cost 15 times as much, distances three times."""
    often = replace(known, delay_factor=15.0, largest_distance=3.0 * known.largest_distance)
    own = expert_regret(plan._replace(tolerance=9.0 * plan.tolerance), often, rounds, path_length)
    return own + plan.block * known.G * (2.0 * known.D + path_length)


def best_expert(regrets: Sequence[float], weights: Hedge, spread: float, rounds: int) -> float:
    """Return the bound of the best expert, with that of Hedge for losses that differ by `spread`."""
    if spread == 0.0:
        return min(regrets)
    pairs = enumerate(regrets, start=1)
    return min(own + weights.regret_bound(i, rounds, spread) for i, own in pairs)


def leader_regret(
    G: float,
    D: float,
    eta: float,
    epoch: int,
    rounds: int,
    path_length: float,
    curvature: float | None,
) -> float:
    """Return the bound on a leader that restarts after each epoch, of convex or strongly convex losses.

    D^2/eta + eta G^2 gamma/4 + G gamma sqrt(gap) for each epoch of gamma rounds, and gamma G P.
    """
    moving = epoch * G * path_length
    if curvature is not None:
        whole, rest = divmod(rounds, epoch)
        one, last = (bounds.strongly_convex_leader(G, curvature, each) for each in (epoch, rest))
        return whole * one + last + moving
    one = D**2 / eta + eta * G**2 * epoch / 4.0 + G * epoch * D / math.sqrt(epoch)
    return math.ceil(rounds / epoch) * one + moving


def on_cover(
    level_bound: Callable[[int], float],
    level_per_path: Callable[[int], float],
    rounds: int,
    path_length: float,
    tau: int | None,
    diameter: float,
) -> float:
    """Return the bound of experts on a cover, in a game or on its windows of tau rounds.

    The levels are as in `over_windows`. No comparators of a set of that diameter have a longer path.
    """
    number = rounds if tau is None else min(tau, rounds)
    path_length = min(path_length, max(0, number - 1) * diameter)
    over = bounds.over_game if tau is None else bounds.over_windows
    return over(number, level_bound, level_per_path, path_length)


@dataclass(frozen=True)
class PolarBound:
    """The bounds of POLAR after some rounds; `docs/theory/polar.md` has the proofs."""

    plan: Callable[[str, int], Plan]  # of the expert of a kind, for epochs of so many rounds
    kinds: tuple[str, ...]  # of `POLAR`
    lengths: Sequence[int]  # rounds of epochs, shortest first; each twice the one before
    agile_lengths: Sequence[int]  # of agile experts, of which the first is there from the start
    squares: float  # sum of the squared gradients of the adaptive expert that never restarts
    shortest: int  # rounds of the shortest, which may not have begun
    weights: Any  # AdaHedge, or AdaNormalHedge
    sleeping: bool  # whether it is the latter
    known: Measured
    exact: bool  # whether projections are
    rounds: int  # played so far

    def bound(self, path_length: float, tau: int | None, diameter: float) -> float | None:
        """Return the bound on the game, or on windows of tau rounds, where one is known."""
        if tau is not None:
            by = self._on_cover if self.sleeping else self._on_windows
            return by(path_length, tau, diameter) if self._restarting else None
        if not self.rounds:
            return 0.0
        path_length = min(path_length, (self.rounds - 1) * diameter)
        moving, weighing = self._moving(self.rounds) * path_length, self._weighing(self.rounds)
        found = [self.whole(self.rounds) + moving + weighing]
        if "adaptive" in self.kinds:
            found.append(self.whole_adaptive() + moving + weighing)
        if self.sleeping and self._restarting:
            found.append(self._on_cover(path_length, tau, diameter))
        return min(found + self._lazy(path_length) + self._agile(path_length))

    def _on_cover(self, path_length: float, tau: int | None, diameter: float) -> float:
        """By a lazy expert on each interval of a cover, with sleeping weights."""

        def level(k: int) -> float:
            own, trivial = self._level(k), self.known.G * diameter * (1 << k)
            return min(trivial, own + self._weighing(1 << k)) if own < math.inf else trivial

        def per_path(k: int) -> float:
            return 0.0 if 1 << k < self.shortest else self._moving(1 << k)

        return on_cover(level, per_path, self.rounds, path_length, tau, diameter)

    def _on_windows(self, path_length: float, tau: int, diameter: float) -> float:
        """By a sequence of lazy experts, one for each piece of a window, with weights that track."""
        tau = min(tau, self.rounds)
        if not tau:
            return 0.0
        path_length = min(path_length, (tau - 1) * diameter)
        levels = self.known.G * diameter, self._level, lambda k: self._moving(1 << k)
        return bounds.over_tracked_windows(tau, self.weights, *levels, path_length)

    def _level(self, k: int) -> float:
        """The static regret of the best lazy expert for epochs of 2^k rounds, if there is one."""
        if 1 << k < self.shortest:
            return math.inf
        return min(self.epoch(kind, 1 << k) for kind in self._restarting)

    def _lazy(self, path_length: float) -> list[float]:
        """By one lazy expert after the whole game's, which plays until the first epoch: one change."""
        found = list[float]()
        for length in () if self.sleeping else self.lengths:
            epochs = math.ceil((self.rounds - length + 1) / length)
            for kind in self._restarting:
                static = self.whole(length - 1) + epochs * self.epoch(kind, length)
                moving = self._moving(length) * path_length
                found.append(static + moving + self.weights.regret_bound(1))
        return found

    def _agile(self, path_length: float) -> list[float]:
        """By one agile expert after another, each until the next joins."""
        if "agile" not in self.kinds:
            return []
        static, per_path, found, D = 0.0, 0.0, list[float](), self.known.D
        joined = [1, *self.agile_lengths[1:]]
        for changes, (length, start) in enumerate(zip(self.agile_lengths, joined, strict=True)):
            plan, rest = self.plan("agile", length), self.rounds - start + 1
            own = partial(optimistic_regret if plan.rule == OPTIMISTIC else expert_regret, plan)
            weighing = self._weighing(rest, changes)
            last = own(self.known, rest)
            per_path = max(per_path, (own(self.known, rest, D) - last) / D)
            found.append(static + last + weighing + per_path * path_length)
            alone = min(rest, ([*joined, self.rounds + 1])[changes + 1] - start)
            static += own(self.known, alone) + (self._weighing(alone) if self.sleeping else 0.0)
        return found

    @property
    def _restarting(self) -> list[str]:
        """The kinds that restart, of every length."""
        return [kind for kind in self.kinds if kind in ("lazy", "origin")]

    def _weighing(self, rounds: int, changes: int = 0) -> float:
        """The regret of the weights against an expert that has played so many rounds, or after changes."""
        if not self.sleeping:
            return float(self.weights.regret_bound(changes))
        begun = sum((self.rounds + 1) // length for length in self.lengths)  # restarts counted
        created, awake = (4 + len(self.kinds) * number for number in (begun, len(self.lengths)))
        return bounds.weighing(self.weights, rounds, self.rounds, created, awake) if rounds else 0.0

    def _moving(self, rounds: int) -> float:
        """What a unit of path inside so many rounds adds to static regret."""
        return self.known.G * max(0, rounds - 1)

    def _apart(self, plan: Plan) -> float:
        """How far an expert may be from its projections."""
        if self.exact:
            return 0.0
        return max(min(self.known.D, math.sqrt(plan.tolerance)), self.known.largest_distance)

    def _descent(self, last: Plan, squares: float, apart: float, start: float) -> float:
        """The static regret of a lazy expert with steps in units of c, see `lazy_descent`."""
        known, c = self.known, self.known.step_scale
        expert = c * last.step, c * squares, last.block, apart, start
        return bounds.lazy_descent(known.G, known.D, *expert, known.shrinking_steps)

    def whole_adaptive(self) -> float:
        """The static regret of the adaptive expert that never restarts."""
        plans = [self.plan("whole adaptive", 1 << k) for k in range(self.rounds.bit_length() + 1)]
        apart = self.known.G * self.rounds * max(map(self._apart, plans))
        return apart + bounds.adaptive_descent(
            self.known.D, self.squares, plans[-1].step, max(plan.block for plan in plans)
        )

    def epoch(self, kind: str, length: int) -> float:
        """The static regret of a lazy expert in an epoch."""
        plan = self.plan(kind, length)
        plan = plan._replace(block=min(plan.block, length))
        parts = plan, plan.step * plan.block * length, length * self._apart(plan)
        if kind == "lazy":
            return self._descent(*parts, bounds.ANYWHERE)
        kept = plan.block * self.known.G * self.known.D  # it plays on where it was for a block
        return kept + self._descent(*parts, bounds.AT_CENTER)

    def whole(self, rounds: int) -> float:
        """The static regret of the expert that never restarts: its steps shrink at powers of two."""
        if not rounds:
            return 0.0
        plans = [self.plan("whole", 1 << k) for k in range((rounds - 1).bit_length() + 1)]
        squares = apart = 0.0
        for k, plan in enumerate(plans):
            number = min(rounds, 1 << k) - (1 << k >> 1)  # rounds in (2^(k-1), 2^k]
            squares += plan.step * plan.block * number
            # A point may have been found two levels before.
            apart += number * max(map(self._apart, plans[max(0, k - 2) : k + 1]))
            if k:  # one block keeps the step of a level or two before
                squares += plans[max(0, k - 2)].step * plan.block**2
        return self._descent(plans[-1], squares, apart, bounds.AT_CENTER)

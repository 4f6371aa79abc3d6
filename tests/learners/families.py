"""Loss families with known best points, adversaries that react, and what play is measured by.

Everything here is worked out apart from the library's own measures: minimisers in closed form, sums
as plain loops.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import driftwolfe as dw
from driftwolfe.losses import (
    AbsoluteEntries,
    LinearLoss,
    Loss,
    SquaredDistance,
)
from driftwolfe.points import FactoredMatrix

#: Exact arithmetic is what the theorems speak of.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Arena:
    """A set, the losses played on it, and a good fixed point for any stretch of rounds.

    `losses` is a list, or a function from the round and the decision to a loss; `best` takes losses
    and their first round.
    """

    domain: dw.domains.Domain
    losses: Sequence[Loss] | Callable[[int, np.ndarray], Loss]
    rounds: int
    lipschitz: float
    best: Callable[[Sequence[Loss], int], np.ndarray]


@dataclass(frozen=True)
class Meeting:
    """A finished game."""

    learner: Any
    arena: Arena
    losses: list[Loss]
    suffered: np.ndarray

    def comparators(self, pieces: int) -> list[np.ndarray]:
        """The best fixed point of each of so many stretches, one point a round."""
        cuts = np.linspace(0, len(self.losses), pieces + 1).astype(int)
        return [
            u
            for a, b in itertools.pairwise(cuts)
            for u in [self.arena.best(self.losses[a:b], int(a))] * int(b - a)
        ]

    def regret(self, comparators: Sequence[np.ndarray], first: int = 0) -> float:
        """Regret against comparators that start in round `first`."""
        rounds = range(first, first + len(comparators))
        return float(
            sum(self.suffered[t] - self.losses[t].value(comparators[t - first]) for t in rounds)
        )

    def window_regret(self, tau: int, windows: int = 50) -> float:
        """The worst regret on some windows of length tau, spread over the game."""
        starts = np.unique(np.linspace(0, len(self.losses) - tau, windows).astype(int))
        return max(
            self.regret([self.arena.best(self.losses[s : s + tau], int(s))] * tau, int(s))
            for s in starts
        )


def budget_of(learner: Any) -> float | None:
    """LMO calls per round of a learner, or of the one within it."""
    options = getattr(learner, "learner", learner).options
    return options and options.oracle.budget


def meet(learner: Any, arena: Arena) -> Meeting:
    """Play a learner through an arena."""
    losses, suffered = [], []
    for t in range(arena.rounds):
        given = arena.losses
        loss = given(t, learner.decision) if callable(given) else given[t]
        losses.append(loss)
        suffered.append(learner.update(loss))
        if (
            budget := budget_of(learner)
        ) is not None:  # in every game of the suite, after every round
            assert learner.lmo_calls <= budget * (t + 1)
    return Meeting(learner, arena, losses, np.array(suffered))


def play_all(learner: Any, losses: Sequence[Loss]) -> Any:
    """The learner, which has seen all losses."""
    for loss in losses:
        learner.update(loss)
    return learner


def bound_after(learner: Any, rounds: int, **wanted: Any) -> float:
    """A bound is a function of the rounds played and of G: no need to play them."""
    learner.t = rounds
    return learner.bound(**wanted)


def normal_hedge(B: float, T: int) -> Callable[[float], float]:
    """AdaNormalHedge's price on an interval: B sqrt(3 |I| c(T)), N experts started by round T."""
    started = sum(T // 2**k for k in range(T.bit_length()))
    c = math.log(started + 1.5 * T * T.bit_length())
    return lambda length: B * math.sqrt(3 * length * c)


def listener() -> tuple[type, list[np.ndarray]]:
    """A learner that stays where it is, and the slopes that it is shown."""
    seen = []

    class Listening(dw.learners.Constant):
        def update(self, loss, ticket=None):
            seen.append(loss.g)
            return super().update(loss)

    return Listening, seen


def path_length(comparators: Sequence[np.ndarray]) -> float:
    """How far comparators travel."""
    return float(sum(np.linalg.norm(b - a) for a, b in itertools.pairwise(comparators)))


def as_array(point: Any) -> np.ndarray:
    """A point as a dense array."""
    return point.toarray() if isinstance(point, FactoredMatrix) else np.asarray(point)


def unit(vector: np.ndarray) -> np.ndarray:
    """The vector with norm 1."""
    return vector / np.linalg.norm(vector)


# -- linear losses ---------------------------------------------------------------------------


def best_vertex(domain):
    """The minimiser of a sum of linear losses."""
    return lambda losses, first: domain.lmo(sum(loss.g for loss in losses))


def linear_arena(domain, slopes, G):
    return Arena(domain, [LinearLoss(g) for g in slopes], len(slopes), G, best_vertex(domain))


def random_signs(domain, rounds, G=1.0, seed=0):
    """Adversarial signs: no learner can expect to gain, and hindsight gains G sqrt(T)."""
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], size=(rounds, *domain.shape))
    return linear_arena(domain, signs * (G / np.sqrt(signs[0].size)), G)


def growing_slopes(domain, rounds, growth=1e6, seed=0):
    """Random directions whose size grows a millionfold: what was learned of scales is too small."""
    rng = np.random.default_rng(seed)
    sizes = np.geomspace(1.0 / growth, 1.0, rounds)
    slopes = [size * unit(rng.standard_normal(domain.shape)) for size in sizes]
    return linear_arena(domain, slopes, 1.0)


def switching_costs(domain, rounds, pieces, G=1.0, seed=0):
    """One cost vector for each of so many stretches: routes, trees and assignments that go bad."""
    rng = np.random.default_rng(seed)
    costs = [G * unit(rng.standard_normal(domain.shape)) for _ in range(pieces)]
    return linear_arena(domain, [costs[t * pieces // rounds] for t in range(rounds)], G)


# -- adversaries that look at the decision -----------------------------------------------------


def against(domain, rounds, slope, G=1.0):
    """Linear losses whose slope is chosen after the decision; `slope` sees it from the centre."""

    def react(t, x):
        return LinearLoss(G * unit(slope(t, x - domain.origin())))

    return Arena(domain, react, rounds, G, best_vertex(domain))


def pushed_back(domain, rounds, G=1.0):
    """The slope points from the centre to the decision: whatever was gained is charged."""
    first = np.ones(domain.shape)
    return against(domain, rounds, lambda t, x: x if np.linalg.norm(x) > 1e-12 else first, G)


def signs_against(domain, rounds, G=1.0):
    """Every coordinate is charged where the decision has moved."""
    return against(domain, rounds, lambda t, x: np.where(x >= 0, 1.0, -1.0), G)


def vertex_against(domain, rounds, G=1.0):
    """The vertex that the decision leans to most is charged."""

    def slope(t, x):
        return domain.lmo(-x if np.linalg.norm(x) > 1e-12 else -np.ones(x.shape)) - domain.origin()

    return against(domain, rounds, slope, G)


def orthogonal(domain, rounds, G=1.0):
    r"""Slopes orthogonal to the decision and to their own sum: regret G R sqrt(T) on a ball."""
    total = np.zeros(domain.shape)

    def slope(t, x):
        nonlocal total
        total = np.zeros(domain.shape) if t == 0 else total
        basis = np.linalg.svd(np.stack((x, total)))[2]
        total = total + basis[-1]
        return basis[-1]

    return against(domain, rounds, slope, G)


# -- squared distances -------------------------------------------------------------------------


def mean_target(losses, first):
    """The minimiser of a sum of squared distances to points of the set."""
    return np.mean([loss.target for loss in losses], axis=0)


def quadratic_arena(domain, targets):
    losses = [SquaredDistance(target) for target in targets]
    G = max(loss.lipschitz(domain) for loss in losses)
    return Arena(domain, losses, len(losses), G, mean_target)


def rotating_quadratics(domain, rounds, turns=2.0, seed=0):
    """Targets that go round an ellipse between vertices of the set."""
    rng = np.random.default_rng(seed)
    c, u, v = (domain.lmo(rng.standard_normal(domain.shape)) for _ in range(3))
    angles = np.linspace(0.0, 2.0 * np.pi * turns, rounds)
    shares = [np.array([2.0, 1.0 + np.cos(a), 1.0 + np.sin(a)]) for a in angles]
    return quadratic_arena(domain, [(s[0] * c + s[1] * u + s[2] * v) / s.sum() for s in shares])


def piecewise_constant_targets(domain, rounds, pieces=4, seed=0):
    """A vertex as the target of each stretch."""
    rng = np.random.default_rng(seed)
    held = [domain.lmo(rng.standard_normal(domain.shape)) for _ in range(pieces)]
    return quadratic_arena(domain, [held[t * pieces // rounds] for t in range(rounds)])


# -- matrices ----------------------------------------------------------------------------------


def low_rank(rng, shape, trace_norm, rank=2):
    """A random matrix of that rank and trace norm."""
    left, right = (np.linalg.qr(rng.standard_normal((size, rank)))[0] for size in shape)
    weights = rng.dirichlet(np.ones(rank))
    return trace_norm * (left * weights) @ right.T


def absolute_entries(domain, rounds, pieces=3, observed=5, seed=0):
    """Noiseless entries of a low-rank matrix that jumps: zero loss for who follows it."""
    rng = np.random.default_rng(seed)
    truths = [low_rank(rng, domain.shape, 0.9 * domain.radius) for _ in range(pieces)]
    losses = []
    for t in range(rounds):
        flat = rng.choice(np.prod(domain.shape), observed, replace=False)
        rows, cols = np.unravel_index(flat, domain.shape)
        losses.append(AbsoluteEntries(rows, cols, truths[t * pieces // rounds][rows, cols]))

    def best(stretch, first):
        return truths[(first + len(stretch) // 2) * pieces // rounds]

    return Arena(domain, losses, rounds, np.sqrt(observed), best)


def some_entries(rounds, shape, observed, seed=0):
    """Random entries, to be found by their absolute errors."""
    rng = np.random.default_rng(seed)
    pairs = ([rng.integers(0, size, observed) for size in shape] for _ in range(rounds))
    return [AbsoluteEntries(*pair, rng.standard_normal(observed)) for pair in pairs]


def turning_entries(kind, rounds, shape, observed=9, noise=0.0, turn=0.6, seed=0):
    """Entries of a matrix of rank 2 that turns its sign, some of them twice."""
    rng = np.random.default_rng(seed)
    left, right = (rng.standard_normal((size, 2)) for size in shape)
    losses = []
    for t in range(rounds):
        rows, cols = (rng.integers(0, size, observed) for size in shape)
        rows[1], cols[1] = rows[0], cols[0]
        targets = (1.0 if t < turn * rounds else -1.0) * (left[rows] * right[cols]).sum(axis=1)
        extra = noise * rng.standard_normal(observed) if noise else 0.0
        losses.append(kind(rows, cols, targets + extra))
    return losses


def ball_projection(radius):
    return lambda y: y * min(1.0, radius / max(np.linalg.norm(y), 1e-300))


def simplex_projection(y):
    """Onto the probability simplex, by sorting."""
    falling = np.sort(y)[::-1]
    thresholds = (np.cumsum(falling) - 1.0) / np.arange(1, y.size + 1)
    return np.maximum(y - thresholds[falling > thresholds][-1], 0.0)


def project_trace_norm(y, radius):
    """The nearest matrix with that trace norm at most, by sorting singular values."""
    u, s, v = np.linalg.svd(y, full_matrices=False)
    if s.sum() <= radius:
        return y
    excess = (np.cumsum(s) - radius) / np.arange(1, s.size + 1)
    threshold = excess[s > excess][-1]
    return (u * np.maximum(s - threshold, 0.0)) @ v

"""Adversaries: losses and sets that answer what a learner does."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from driftwolfe.domains import Domain, LMODomain
from driftwolfe.learners.base import Learner
from driftwolfe.losses import LinearLoss
from driftwolfe.points import checks, inner, norm
from driftwolfe.points.kinds import Array, Point
from driftwolfe.points.rounding import whole_below
from driftwolfe.streams.drift import Seed
from driftwolfe.streams.synthetic import opposite_losses, wide_direction, width_along


class SignAdversary:
    r"""Answers every decision with the linear loss that hurts it.

    Along a unit vector e the set reaches from a to b, with the middle :math:`m = (a + b)/2`. The
    answer to x is :math:`f(z) = \pm G (\langle e, z\rangle - m)` with the sign that makes f(x)
    non-negative. The far end has the loss :math:`-G (b - a)/2`: every round costs at least that much
    against its minimiser.

    Parameters
    ----------
    domain, lipschitz
        The set, and G, the norm of every gradient.
    direction, seed
        The vector e, scaled to unit length; by default a random one in which the set is wide.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> adversary = SignAdversary(dw.L2Ball(2), direction=[1.0, 0.0])
    >>> [adversary.answer(x).value(x) for x in np.array([[0.25, 0.0], [-0.5, 0.0]])]
    [0.25, 0.5]
    """

    def __init__(
        self, domain: Domain, direction: Any = None, lipschitz: float = 1.0, seed: Seed = None
    ) -> None:
        self.lipschitz = checks.positive(lipschitz, "lipschitz")
        if direction is None:
            self.direction, *ends = wide_direction(domain, seed)
        else:
            self.direction, *ends = width_along(domain, domain.check_point(direction, "direction"))
        self.middle = sum(inner(self.direction, end) for end in ends) / 2.0
        self._losses = opposite_losses(self.direction, self.lipschitz, self.middle)

    def answer(self, decision: Point) -> LinearLoss:
        """Return the loss that hurts this decision."""
        rising, falling = self._losses
        return rising if inner(self.direction, decision) >= self.middle else falling


def against(
    learner: Learner, rounds: int, lipschitz: float = 1.0, direction: Any = None, seed: Seed = None
) -> Iterator[LinearLoss]:
    """Yield losses that each answer the learner's current decision; see `SignAdversary`.

    Parameters
    ----------
    learner, rounds, lipschitz, direction, seed
        The learner to `play` with these losses, and their number; the others as in `SignAdversary`.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.OGD(dw.L2Ball(2), horizon=30, lipschitz=1.0)
    >>> history = dw.play(learner, dw.streams.against(learner, 30, seed=0))
    >>> bool(history.losses.min() >= 0)
    True
    """
    adversary = SignAdversary(learner.domain, direction, lipschitz, seed)
    for _ in range(checks.count(rounds, "rounds")):
        yield adversary.answer(learner.decision)


class ResistingOracle:
    r"""A set and losses that force regret on every learner with few linear minimisations.

    The set is decided during the game: the hull of 0, all answers of its oracle, and a comparator u
    that is never shown. A round's loss is G times the distance to the revealed part of u, linearised at
    the decision x. With N answers allowed in all, every decision suffers at least
    :math:`G R / \sqrt{1 + \sqrt{2N}}`, and u nothing:

    .. math:: \mathrm{regret} \ge \frac{G R T}{\sqrt{1 + \sqrt{2N}}}
        \approx 2^{-1/4}\, b^{-1/4}\, G R\, T^{3/4}, \qquad N = b T.

    docs/theory/lower_bound.md has the construction and the proof.

    Parameters
    ----------
    rounds, radius, lipschitz
        T, the number of losses; R, the radius of a ball that holds the set; G, the gradients' norm.
    lmo_budget
        b, linear minimisations per round: N = bT in all, rounded down, at any time. Those that are
        answered by 0 or by an old answer are free.

    Attributes
    ----------
    domain
        The set. It refuses queries with a part along coordinates that are not revealed: the bound
        holds for learners that combine what they have seen. One learner plays one game.
    allowed, answers, played
        N, new answers of the oracle, and rounds so far. Answer number N + 1 is u itself: beyond N
        calls no regret is guaranteed, but the game continues and `lower_bound` holds.
    lower_bound
        The regret against `comparator` in the rounds played; against the best point, no less.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> game = dw.streams.ResistingOracle(100)
    >>> learner = dw.OnlineFrankWolfe(game.domain, horizon=100, lipschitz=1.0)
    >>> _ = dw.play(learner, game.losses(learner))
    >>> round(game.guarantee, 2), bool(game.lower_bound >= game.guarantee)
    (25.7, True)
    """

    def __init__(
        self, rounds: int, lmo_budget: float = 1.0, radius: float = 1.0, lipschitz: float = 1.0
    ) -> None:
        self.rounds = checks.count(rounds, "rounds")
        self.lmo_budget = checks.positive(lmo_budget, "lmo_budget")
        self.lipschitz = checks.positive(lipschitz, "lipschitz")
        self.radius = checks.positive(radius, "radius")
        calls = whole_below(self.lmo_budget * self.rounds)
        self.allowed = checks.count(max(1, calls), "lmo_budget * rounds")
        self.played = self.answers = 0
        self.lower_bound = 0.0
        self._lock = threading.Lock()  # experts may ask from several threads
        # Lengths are in units of R. Coordinates: the directions, then one for every answer, u's last.
        self._most = min(self.rounds, self.allowed + 1)  # directions, at most
        self._revealed = 0  # directions
        self._lengths = np.zeros(self._most)  # a_i
        self._xi_squared = np.ones(self._most + 1)  # for every number of revealed directions
        self._phases = np.zeros(self.allowed + 1, dtype=np.int64)  # m, for every answer
        self._epsilon_squared = 1.0 / (1.0 + math.sqrt(2.0 * self.allowed))
        size = self._most + self.allowed + 1
        self.domain = LMODomain(size, self._lmo, self.radius, contains=self._contains)

    @property
    def guarantee(self) -> float:
        """The regret that T rounds force on every learner with at most N linear minimisations."""
        return self.lipschitz * self.radius * self.rounds * math.sqrt(self._epsilon_squared)

    @property
    def comparator(self) -> Array:
        """The point u, if no more directions are revealed: final when the game is over."""
        return self._vertex(self.allowed, self._revealed)

    def losses(self, learner: Learner) -> Iterator[LinearLoss]:
        """Yield the remaining losses, each answering the learner's current decision."""
        if learner.domain.unwrapped is not self.domain:
            raise ValueError("learner must play on the domain of this game")
        while self.played < self.rounds:
            yield self.answer(learner.decision)

    def answer(self, decision: Point) -> LinearLoss:
        r"""Return the loss :math:`\langle g, z - u\rangle`: g, of norm G, points from u's revealed part to x."""
        if self.played == self.rounds:
            raise ValueError(f"the game has {self.rounds} rounds, and all of them are played")
        x = self.domain.check_point(decision, "decision")
        if not self._contains(x):
            raise ValueError("decision must lie in the set: mix 0 and answers of its oracle")
        m, e2 = self._revealed, self._epsilon_squared
        n = np.count_nonzero(self._phases[: self.answers] == m)
        if self.answers <= self.allowed and (n or not m):
            # A new direction makes up for the n answers since the last one.
            square = e2 if m == 0 else n * e2**2 / (self._xi_squared[m] + n * e2)
            self._lengths[m] = math.sqrt(square)
            self._xi_squared[m + 1] = self._xi_squared[m] - square
            self._revealed = m + 1
        target = self.comparator
        if self.answers <= self.allowed:
            target[-1] = 0.0
        away = x - target
        distance = norm(away)
        gradient = away * (self.lipschitz / distance if distance > 0 else 0.0)
        self.played += 1
        self.lower_bound += self.lipschitz * distance
        return LinearLoss(gradient, constant=-float(gradient @ target))

    def _lmo(self, query: Array) -> Array:
        """The best of 0, the answers so far and a new one, which must be better than those."""
        with self._lock:
            own = self._own(query, "the query")
            along = np.zeros(self._revealed + 1)
            along[1:] = -np.cumsum(self._lengths[: self._revealed] * query[: self._revealed])
            phases = self._phases[: self.answers]
            values = along[phases] + np.sqrt(self._xi_squared[phases]) * own
            least = values.min(initial=0.0)
            if along[-1] < least and self.answers <= self.allowed:
                self._phases[self.answers] = self._revealed
                self.answers += 1
                return self._vertex(self.answers - 1, self._revealed)
            if least >= 0:
                return np.zeros(query.shape)
            best = int(np.argmin(values))
            return self._vertex(best, int(self._phases[best]))

    def _contains(self, x: Array) -> bool:
        """Whether x is a mixture of 0 and the answers so far, up to rounding."""
        slack = 1e-8  # in units of the radius
        sides = self._own(x, "a point") / self.radius
        phases = self._phases[: self.answers]
        weights = sides / np.sqrt(self._xi_squared[phases])
        later = np.cumsum(np.bincount(phases, weights, minlength=self._most + 1)[::-1])[::-1]
        gap = x[: self._most] / self.radius + self._lengths * later[1:]
        inside = np.all(sides >= -slack) and np.all(np.abs(gap) <= slack)
        return bool(inside and weights.sum() <= 1 + slack)

    def _own(self, point: Array, name: str) -> Array:
        """The coordinates that belong to the answers so far; refuse a part along unrevealed ones."""
        first, end = self._most, self._most + self.answers
        if point[self._revealed : first].any() or point[end:].any():
            raise ValueError(
                f"{name} must combine earlier losses and answers, but has a part along coordinates that "
                "no loss and no answer has shown"
            )
        return point[first:end]

    def _vertex(self, index: int, phase: int) -> Array:
        """The answer of that number, given when so many directions were revealed."""
        point = np.zeros(self._most + self.allowed + 1)
        point[:phase] = -self._lengths[:phase]
        point[self._most + index] = math.sqrt(self._xi_squared[phase])
        return point * self.radius

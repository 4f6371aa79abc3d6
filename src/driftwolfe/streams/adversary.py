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
from driftwolfe.points.ops import whole_below
from driftwolfe.streams.drift import Seed
from driftwolfe.streams.synthetic import opposite_losses, wide_direction, width_along


class SignAdversary:
    r"""Answers every decision with the linear loss that hurts it.

    Along a unit vector e the set reaches from a to b, with the middle :math:`m = (a + b)/2`. The answer to x is
    :math:`f(z) = \pm G (\langle e, z\rangle - m)` with the sign that makes f(x) non-negative. The far end has the
    loss :math:`-G (b - a)/2`: every round costs at least that much against its minimiser.

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

    With S segments the comparator moves. Each segment is such a game on coordinates of its own, with
    :math:`n = \lfloor N/S\rfloor` answers; the next answer is the segment's u, and ends it. So u moves
    at most S - 1 times, by :math:`\sqrt2 R`, and regret against these is at least
    :math:`G R T/\sqrt{1 + \sqrt{2n}}`. docs/theory/lower_bound.md has the construction and the proof.

    Parameters
    ----------
    rounds, radius, lipschitz
        T, the number of losses; R, the radius of a ball that holds the set; G, the gradients' norm.
    lmo_budget
        b, linear minimisations per round: N = bT in all, rounded down, at any time. Those that are
        answered by 0 or by an old answer are free.
    segments
        S, how many comparators there are at most: from 1 to N.

    Attributes
    ----------
    domain
        The set. It refuses queries with a part along coordinates that are not revealed: the bound
        holds for learners that combine what they have seen. One learner plays one game.
    allowed, answers, played
        N, new answers of the oracle, and rounds so far. Beyond N calls the last u is returned too: no
        regret is guaranteed then, but the game continues and `lower_bound` holds.
    lower_bound
        The regret against `comparators` in the rounds played; against the best ones, no less.

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
        self,
        rounds: int,
        lmo_budget: float = 1.0,
        radius: float = 1.0,
        lipschitz: float = 1.0,
        segments: int = 1,
    ) -> None:
        self.rounds = checks.count(rounds, "rounds")
        self.lmo_budget = checks.positive(lmo_budget, "lmo_budget")
        self.lipschitz = checks.positive(lipschitz, "lipschitz")
        self.radius = checks.positive(radius, "radius")
        calls = whole_below(self.lmo_budget * self.rounds)
        self.allowed = checks.count(max(1, calls), "lmo_budget * rounds")
        self.segments = checks.count(segments, "segments")
        if self.segments > self.allowed:
            raise ValueError(
                f"segments must be at most the {self.allowed} linear minimisations of the game, one "
                f"for each, got {segments}"
            )
        self.played = self.answers = 0
        self.lower_bound = 0.0
        self._lock = threading.Lock()  # experts may ask from several threads
        self._each = self.allowed // self.segments + 1  # answers of a segment, its u the last
        # Lengths are in units of R. Coordinates: the directions, then one for every answer.
        total = self.segments * self._each
        self._most = min(self.rounds, total)  # directions, at most
        self._starts: list[int] = []  # rounds before each segment
        self._first = 0  # directions revealed before this segment
        self._revealed = 0  # directions
        self._lengths = np.zeros(self._most)  # a_i
        self._xi_squared = np.ones(self._most + 1)  # for every number of revealed directions
        # Of every answer: directions revealed before its segment, and before itself.
        self._firsts, self._phases = np.zeros((2, total), dtype=np.int64)
        self._epsilon_squared = 1.0 / (1.0 + math.sqrt(2.0 * (self._each - 1)))
        size = self._most + total
        self.domain = LMODomain(size, self._lmo, self.radius, contains=self._contains)

    @property
    def guarantee(self) -> float:
        """The regret that T rounds force on every learner with at most N linear minimisations."""
        return self.lipschitz * self.radius * self.rounds * math.sqrt(self._epsilon_squared)

    @property
    def comparator(self) -> Array:
        """The present segment's point u, if no more directions are revealed."""
        return self._target(shown=True)

    @property
    def comparators(self) -> list[Array]:
        """The point u of every round played: final when the game is over."""
        if not self.played:
            return []
        ends = (np.arange(1, len(self._starts)) * self._each - 1).tolist()
        points = [*(self._vertex(last) for last in ends), self.comparator]
        lengths = np.diff([*self._starts, self.played]).tolist()
        return [u for u, rounds in zip(points, lengths, strict=True) for _ in range(rounds)]

    @property
    def path_length(self) -> float:
        """That of the comparators so far: each move is the root of 2 times the radius."""
        return math.sqrt(2.0) * self.radius * max(0, len(self._starts) - 1)

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
        if not self._starts or (self._ended and len(self._starts) < self.segments):
            self._first = self._revealed
            self._starts.append(self.played)
        m, e2 = self._revealed, self._epsilon_squared
        n = np.count_nonzero(self._phases[: self.answers] == m)
        if not self._ended and (n or m == self._first):
            # A new direction makes up for the n answers since the last one.
            left = 1.0 if m == self._first else self._xi_squared[m]
            square = e2 if m == self._first else n * e2**2 / (left + n * e2)
            self._lengths[m] = math.sqrt(square)
            self._xi_squared[m + 1] = left - square
            self._revealed = m + 1
        target = self._target(shown=self._ended)
        away = x - target
        distance = norm(away)
        gradient = away * (self.lipschitz / distance if distance > 0 else 0.0)
        self.played += 1
        self.lower_bound += self.lipschitz * distance
        return LinearLoss(gradient, constant=-float(gradient @ target))

    @property
    def _ended(self) -> bool:
        """Whether the oracle has returned u of the present segment."""
        return self.answers >= max(1, len(self._starts)) * self._each

    def _lmo(self, query: Array) -> Array:
        """The best of 0, the answers so far and a new one, which must be better than those."""
        with self._lock:
            own = self._own(query, "the query")
            along = np.zeros(self._revealed + 1)
            along[1:] = -np.cumsum(self._lengths[: self._revealed] * query[: self._revealed])
            firsts, phases = self._firsts[: self.answers], self._phases[: self.answers]
            values = along[phases] - along[firsts] + np.sqrt(self._xi_squared[phases]) * own
            least = values.min(initial=0.0)
            if along[-1] - along[self._first] < least and not self._ended:
                place = self.answers
                self._firsts[place], self._phases[place] = self._first, self._revealed
                self.answers += 1
                return self._vertex(place)
            return np.zeros(query.shape) if least >= 0 else self._vertex(int(np.argmin(values)))

    def _contains(self, x: Array) -> bool:
        """Whether x is a mixture of 0 and the answers so far, up to rounding."""
        slack = 1e-8  # in units of the radius
        sides = self._own(x, "a point") / self.radius
        firsts, phases = self._firsts[: self.answers], self._phases[: self.answers]
        weights = sides / np.sqrt(self._xi_squared[phases])
        # The weight of the answers that hold a direction: those of its segment given after it.
        before, after = (np.bincount(at, weights, self._most + 1) for at in (phases, firsts))
        gap = x[: self._most] / self.radius + self._lengths * np.cumsum(after - before)[:-1]
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

    def _target(self, shown: bool) -> Array:
        """The present segment's u, or what is revealed of it."""
        if self._ended:
            return self._vertex(len(self._starts) * self._each - 1)
        point = self._revealed_part(self._first, self._revealed)
        if shown:
            place = max(1, len(self._starts)) * self._each - 1
            left = self._xi_squared[self._revealed] if self._revealed > self._first else 1.0
            point[self._most + place] = math.sqrt(left)
        return point * self.radius

    def _vertex(self, place: int) -> Array:
        """The answer of that number."""
        phase = int(self._phases[place])
        point = self._revealed_part(int(self._firsts[place]), phase)
        point[self._most + place] = math.sqrt(self._xi_squared[phase])
        return point * self.radius

    def _revealed_part(self, first: int, phase: int) -> Array:
        """The directions between two numbers of them, each with its length."""
        point = np.zeros(self.domain.shape)
        point[first:phase] = -self._lengths[first:phase]
        return point

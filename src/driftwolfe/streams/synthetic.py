"""Made-up losses: streams with their true comparators, and adversaries that answer what a learner does."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator

import numpy as np

from driftwolfe.domains import Domain, LMODomain, TraceNormBall
from driftwolfe.ensemble.experts import weighted_sum
from driftwolfe.learners.base import Learner
from driftwolfe.losses import AbsoluteEntries, LinearLoss, MulticlassLogistic, SquaredDistance
from driftwolfe.points import FactoredMatrix, checks, norm
from driftwolfe.points.kinds import Array, Point
from driftwolfe.points.ops import whole_below
from driftwolfe.streams.drift import Seed, Stream, change_points

__all__ = ["absolute_entries", "drifting_logistic", "hard_linear", "linear_signs"]
__all__ += ["piecewise_constant", "rotating_quadratic"]


def linear_signs(
    domain: Domain, rounds: int, changes: int = 1, seed: Seed = None, lipschitz: float = 1.0
) -> Stream:
    r"""Linear losses :math:`f_t(x) = \pm G \langle e, x\rangle` whose sign flips from time to time.

    The unit vector e is a direction in which the set is wide; the comparators are the two ends of
    the set along it, each optimal in its rounds.

    Parameters
    ----------
    domain, rounds, changes, seed, lipschitz
        The set, the number of losses, how often the sign flips, at equal distances, the seed of the
        direction, and G, the norm of every gradient.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> stream = linear_signs(dw.L1Ball(3), rounds=100, changes=3, seed=0)
    >>> round(dw.regret.path_length(stream.comparators), 6)  # three times across
    6.0
    """
    count, flips = checks.count(rounds, "rounds"), checks.count(changes, "changes", least=0)
    if flips >= count:
        raise ValueError(f"changes must be fewer than the {count} rounds, got {changes}")
    G = checks.positive(lipschitz, "lipschitz")
    direction, *ends = _wide_direction(domain, seed)
    pair = LinearLoss(direction * G), LinearLoss(direction * -G)  # which all rounds share
    sides = [t * (flips + 1) // count % 2 for t in range(count)]
    losses, points = [pair[side] for side in sides], [ends[side] for side in sides]
    return Stream(losses, "linear signs", G, points, domain, change_points(sides))


def hard_linear(domain: Domain, rounds: int, seed: Seed = None, lipschitz: float = 1.0) -> Stream:
    r"""Linear losses with random signs: the construction behind the :math:`\sqrt T` lower bound.

    :math:`f_t(x) = \epsilon_t G \langle e, x\rangle` with fair random signs. Whatever a learner does,
    its expected loss relative to the middle of the set is 0, while the best fixed point, the
    comparator, gains about :math:`G w \sqrt{T/(2\pi)}`, w the width of the set along e (Abernethy et
    al. 2008, Optimal strategies and minimax lower bounds for online convex games).

    Parameters
    ----------
    domain, rounds, seed, lipschitz
        The set, the number of losses T, the seed of all draws, and G, the norm of every gradient.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> stream = hard_linear(dw.L2Ball(3), rounds=1000, seed=0)
    >>> sum(-loss.value(u) for loss, u in zip(stream, stream.comparators)) > 1
    True
    """
    count, rng = checks.count(rounds, "rounds"), np.random.default_rng(seed)
    G = checks.positive(lipschitz, "lipschitz")
    direction, *ends = _wide_direction(domain, rng)
    pair = LinearLoss(direction * G), LinearLoss(direction * -G)
    sides = [int(draw >= 0.5) for draw in rng.random(count)]
    best = ends[2 * sum(sides) > count]
    return Stream([pair[side] for side in sides], "hard linear", G, [best] * count, domain)


def rotating_quadratic(
    domain: Domain, rounds: int, speed: float = 0.01, seed: Seed = None, weight: float = 0.5
) -> Stream:
    r"""Squared distances :math:`w \lVert x - z_t\rVert^2` to a target on a closed curve in the set.

    The curve runs between three vertices; the target is the comparator: no point has a smaller loss.

    Parameters
    ----------
    domain, rounds, speed, seed, weight
        The set, the number of losses, radians per round, the seed of the vertices, and the factor w.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> stream = rotating_quadratic(dw.L2Ball(3), rounds=50, speed=0.1, seed=0)
    >>> max(loss.value(u) for loss, u in zip(stream, stream.comparators))
    0.0
    """
    count = checks.count(rounds, "rounds")
    targets = _closed_curve(domain, count, speed, np.random.default_rng(seed))
    losses = [SquaredDistance(target, weight) for target in targets]
    steepest = 2.0 * losses[0].weight * domain.diameter
    return Stream(losses, "rotating quadratic", steepest, targets, domain)


def piecewise_constant(
    domain: Domain, rounds: int, pieces: int = 4, seed: Seed = None, weight: float = 0.5
) -> Stream:
    r"""Squared distances :math:`w \lVert x - z_t\rVert^2` to a target that jumps.

    Every ``rounds / pieces`` rounds the target, the comparator, jumps to another random point.

    Parameters
    ----------
    domain, rounds, pieces, seed, weight
        The set, the number of losses and of different targets, their seed, and the factor w.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> stream = piecewise_constant(dw.Simplex(3), rounds=12, pieces=3, seed=0)
    >>> stream[3] is stream[0], stream[4] is stream[0]
    (True, False)
    """
    count, number = checks.count(rounds, "rounds"), checks.count(pieces, "pieces")
    if number > count:
        raise ValueError(f"pieces must be at most the {count} rounds, got {pieces}")
    rng, targets = np.random.default_rng(seed), []
    for _ in range(number):
        vertices = [domain.lmo(_random_direction(domain, rng)) for _ in range(4)]
        targets.append(weighted_sum(rng.dirichlet(np.ones(4)), vertices))
    distances = [SquaredDistance(target, weight) for target in targets]
    steepest = 2.0 * distances[0].weight * domain.diameter
    order = [t * number // count for t in range(count)]
    losses, points = [distances[i] for i in order], [targets[i] for i in order]
    return Stream(losses, "piecewise constant", steepest, points, domain, change_points(order))


def drifting_logistic(
    shape: tuple[int, int],
    rounds: int,
    rows: int = 10,
    speed: float = 0.01,
    seed: Seed = None,
    radius: float = 10.0,
) -> Stream:
    r"""Classification by a matrix that changes slowly: labels are drawn from its class probabilities.

    Every round brings random unit vectors a; labels have probabilities :math:`\mathrm{softmax}(W_t a)`.
    The :math:`W_t` run on a closed curve in a trace-norm ball and are the comparators: they minimise
    the expected loss, not that of the drawn labels.

    Parameters
    ----------
    shape, rounds, rows, speed, seed, radius
        ``(n_classes, n_features)``, the number of losses; vectors, and radians that the matrix moves, per
        round; the seed of all draws, and the radius of the ball, the `domain`.

    Examples
    --------
    >>> stream = drifting_logistic((3, 4), rounds=20, seed=0)
    >>> stream[0].features.shape, stream.domain
    ((10, 4), TraceNormBall(shape=(3, 4), radius=10))
    """
    ball = TraceNormBall(shape, radius, representation="dense")
    n_classes, n_features = ball.shape
    count, rows = checks.count(rounds, "rounds"), checks.count(rows, "rows")
    rng, losses = np.random.default_rng(seed), []
    matrices = _closed_curve(ball, count, speed, rng)
    for matrix in matrices:
        features = rng.standard_normal((rows, n_features))
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        # The largest of scores plus Gumbel noise is a draw from the softmax.
        scores = features @ matrix.T + rng.gumbel(size=(rows, n_classes))
        losses.append(MulticlassLogistic(features, scores.argmax(axis=1), n_classes))
    return Stream(losses, "drifting logistic", math.sqrt(2.0), matrices, ball)


def absolute_entries(
    shape: tuple[int, int],
    rank: int = 3,
    radius: float = 100.0,
    rounds: int = 1000,
    per_round: int = 100,
    drift: float = 0.001,
    seed: Seed = None,
) -> Stream:
    r"""Entries of a low-rank matrix that turns: :math:`f_t(X) = \sum_k |X_{i_k j_k} - (M_t)_{i_k j_k}|`.

    :math:`M_t = U_t\,\mathrm{diag}(s)\,V^\top` has a fixed trace norm; its column space turns. The
    :math:`M_t` are the comparators, with no loss at all; each round shows different entries of one.

    Parameters
    ----------
    shape, rounds, per_round, drift, seed
        ``(m, n)``, the number of losses, entries shown and radians turned per round, and the seed.
    rank, radius
        Rank of the matrices, at most m / 2, and their trace norm, the radius of the `domain`.

    Examples
    --------
    >>> stream = absolute_entries((30, 20), rank=2, rounds=10, per_round=25, seed=0)
    >>> stream[0].targets.size, stream.lipschitz, round(stream.comparators[9].nuclear_norm(), 6)
    (25, 5.0, 100.0)
    """
    ball = TraceNormBall(shape, radius)
    m, n = ball.shape
    k, count = checks.count(rank, "rank"), checks.count(rounds, "rounds")
    if k > min(m / 2, n):
        raise ValueError(f"rank must be at most {min(m // 2, n)}, to have room to turn, got {rank}")
    if (shown := checks.count(per_round, "per_round")) > m * n:
        raise ValueError(f"per_round must be at most the {m * n} entries, got {per_round}")
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((m, 2 * k)))[0]
    V = np.linalg.qr(rng.standard_normal((n, k)))[0]
    sizes = rng.dirichlet(np.ones(k)) * ball.scale
    losses, matrices = [], []
    for angle in checks.nonnegative(drift, "drift") * np.arange(count, dtype=np.float64):
        U = math.cos(angle) * basis[:, :k] + math.sin(angle) * basis[:, k:]
        matrices.append(FactoredMatrix(U, sizes, V))
        rows, cols = np.divmod(rng.choice(m * n, shown, replace=False, shuffle=False), n)
        targets = matrices[-1].entries(rows, cols)
        losses.append(AbsoluteEntries(rows, cols, targets, ball.shape))
    return Stream(losses, "absolute entries", math.sqrt(shown), matrices, ball)


def _width_along(domain: Domain, direction: Point) -> tuple[Point, Point, Point]:
    """Return a direction, scaled to unit length, and the set's lowest and highest point along it."""
    unit = direction / norm(direction)
    return unit, domain.lmo(unit), domain.lmo(unit * -1.0)


def _wide_direction(domain: Domain, seed: Seed) -> tuple[Point, Point, Point]:
    """Return `_width_along` a direction in which the set is wide: vertices are locally most distant."""
    width = _width_along(domain, _random_direction(domain, np.random.default_rng(seed)))
    for _ in range(5):
        _, lowest, highest = width
        across = highest - lowest
        if isinstance(across, FactoredMatrix):
            across = across.recompress()
        width = _width_along(domain, across / norm(across))
    return width


def _random_direction(domain: Domain, rng: np.random.Generator) -> Point:
    """A unit vector of the set's space; of rank one where its matrices are factored."""
    if not isinstance(domain.origin(), FactoredMatrix):
        direction = rng.standard_normal(domain.shape)
        return direction / np.linalg.norm(direction)
    u, v = (rng.standard_normal((size, 1)) for size in domain.shape)
    return FactoredMatrix(u / np.linalg.norm(u), np.ones(1), v / np.linalg.norm(v))


def _closed_curve(
    domain: Domain, count: int, speed: float, rng: np.random.Generator
) -> list[Point]:
    """Points on a closed curve between three vertices, `speed` radians apart."""
    angles = checks.nonnegative(speed, "speed") * np.arange(count, dtype=np.float64)
    _, *vertices = _width_along(domain, _random_direction(domain, rng))
    vertices.append(domain.lmo(_random_direction(domain, rng)))
    offsets = 2.0 * math.pi * np.arange(3) / 3.0
    weights = (1.0 + np.cos(angles[:, None] - offsets)) / 3.0  # non-negative with sum 1
    return [weighted_sum(row, vertices) for row in weights]


class ResistingOracle:
    r"""A set and losses that force regret on every learner with few linear minimisations.

    The set, in the unit ball, is decided during the game: the hull of 0, all answers of its oracle, and a
    comparator u that is never shown. A round's loss is the distance to the revealed part of u, linearised at
    the decision x. With N answers allowed in all, every decision suffers at least
    :math:`1/\sqrt{1 + \sqrt{2N}}`, and u nothing: regret is at least :math:`T/\sqrt{1 + \sqrt{2N}}`.

    With S segments the comparator moves, at most S - 1 times, by :math:`\sqrt2`. Each segment is such a
    game on coordinates of its own, with :math:`n = \lfloor N/S\rfloor` answers; the next one is the
    segment's u, and ends it. Regret against these is at least :math:`T/\sqrt{1 + \sqrt{2n}}`.
    docs/theory/lower_bound.md has the construction and the proof.

    Parameters
    ----------
    rounds
        T, the number of losses, with gradients of norm 1.
    lmo_budget
        b, linear minimisations per round: N = bT in all, rounded down, at any time. Those that are
        answered by 0 or by an old answer are free.
    segments
        S, how many comparators there are at most: from 1 to N.

    Attributes
    ----------
    domain
        The set, for one game of one learner. It refuses queries with a part along coordinates that are
        not revealed: the bound holds for learners that combine what they have seen.
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

    def __init__(self, rounds: int, lmo_budget: float = 1.0, segments: int = 1) -> None:
        self.rounds = checks.count(rounds, "rounds")
        self.lmo_budget = checks.positive(lmo_budget, "lmo_budget")
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
        # Coordinates: the directions, then one for every answer.
        total = self.segments * self._each
        self._most = min(self.rounds, total)  # directions, at most
        self._lengths = np.zeros(self._most)  # of the directions
        self._starts: list[int] = []  # rounds before each segment
        self._first = self._revealed = 0  # directions revealed before this segment, and so far
        self._left = 1.0  # of the squared length of this segment's u
        # Of every answer: directions revealed before its segment, and before itself; its own part.
        self._firsts, self._phases = np.zeros((2, total), dtype=np.int64)
        self._heights = np.zeros(total)
        self._epsilon_squared = 1.0 / (1.0 + math.sqrt(2.0 * (self._each - 1)))
        size = self._most + total
        self.domain = LMODomain(size, self._lmo, 1.0, contains=self._contains)

    @property
    def guarantee(self) -> float:
        """The regret that T rounds force on every learner with at most N linear minimisations."""
        return self.rounds * math.sqrt(self._epsilon_squared)

    @property
    def comparators(self) -> list[Array]:
        """The point u of every round played: final when the game is over."""
        if not self.played:
            return []
        ends = (np.arange(1, len(self._starts)) * self._each - 1).tolist()
        points = [*(self._vertex(last) for last in ends), self._target(shown=True)]
        lengths = np.diff([*self._starts, self.played]).tolist()
        return [u for u, rounds in zip(points, lengths, strict=True) for _ in range(rounds)]

    @property
    def path_length(self) -> float:
        """That of the comparators so far: each move is the root of 2."""
        return math.sqrt(2.0) * max(0, len(self._starts) - 1)

    def losses(self, learner: Learner) -> Iterator[LinearLoss]:
        """Yield the remaining losses, each answering the learner's current decision."""
        if learner.domain.unwrapped is not self.domain:
            raise ValueError("learner must play on the domain of this game")
        while self.played < self.rounds:
            yield self.answer(learner.decision)

    def answer(self, decision: Point) -> LinearLoss:
        r"""Return the loss :math:`\langle g, z - u\rangle`: g, of norm 1, points from u's revealed part to x."""
        if self.played == self.rounds:
            raise ValueError(f"the game has {self.rounds} rounds, and all of them are played")
        x = self.domain.check_point(decision, "decision")
        if not self._contains(x):
            raise ValueError("decision must lie in the set: mix 0 and answers of its oracle")
        if not self._starts or (self._ended and len(self._starts) < self.segments):
            self._first, self._left = self._revealed, 1.0
            self._starts.append(self.played)
        m, e2 = self._revealed, self._epsilon_squared
        n = np.count_nonzero(self._phases[: self.answers] == m)
        if not self._ended and (n or m == self._first):
            # A new direction makes up for the n answers since the last one.
            square = e2 if m == self._first else n * e2**2 / (self._left + n * e2)
            self._lengths[m] = math.sqrt(square)
            self._left -= square
            self._revealed = m + 1
        target = self._target(shown=self._ended)
        away = x - target
        distance = norm(away)
        gradient = away * (1.0 / distance if distance > 0 else 0.0)
        self.played += 1
        self.lower_bound += distance
        return LinearLoss(gradient, constant=-float(gradient @ target))

    @property
    def _last(self) -> int:
        """The number of the answer that is u of the present segment."""
        return max(1, len(self._starts)) * self._each - 1

    @property
    def _ended(self) -> bool:
        """Whether the oracle has returned that."""
        return self.answers > self._last

    def _lmo(self, query: Array) -> Array:
        """The best of 0, the answers so far and a new one, which must be better than those."""
        with self._lock:
            own = self._own(query, "the query")
            along = np.zeros(self._revealed + 1)
            along[1:] = -np.cumsum(self._lengths[: self._revealed] * query[: self._revealed])
            firsts, phases = self._firsts[: self.answers], self._phases[: self.answers]
            values = along[phases] - along[firsts] + self._heights[: self.answers] * own
            least = values.min(initial=0.0)
            if along[-1] - along[self._first] < least and not self._ended:
                place = self.answers
                self._firsts[place], self._phases[place] = self._first, self._revealed
                self._heights[place] = math.sqrt(self._left)
                self.answers += 1
                return self._vertex(place)
            return np.zeros(query.shape) if least >= 0 else self._vertex(int(np.argmin(values)))

    def _contains(self, x: Array) -> bool:
        """Whether x is a mixture of 0 and the answers so far, up to rounding."""
        slack, sides = 1e-8, self._own(x, "a point")
        firsts, phases = self._firsts[: self.answers], self._phases[: self.answers]
        weights = sides / self._heights[: self.answers]
        # The weight of the answers that hold a direction: those of its segment given after it.
        before, after = (np.bincount(at, weights, self._most + 1) for at in (phases, firsts))
        gap = x[: self._most] + self._lengths * np.cumsum(after - before)[:-1]
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
            return self._vertex(self._last)
        height = math.sqrt(self._left) if shown else 0.0
        return self._point(self._first, self._revealed, self._last, height)

    def _vertex(self, place: int) -> Array:
        """The answer of that number."""
        return self._point(self._firsts[place], self._phases[place], place, self._heights[place])

    def _point(self, first: int, end: int, place: int, height: float) -> Array:
        """The directions between two numbers of them, each with its length, and the part of an answer."""
        point = np.zeros(self.domain.shape)
        point[first:end] = -self._lengths[first:end]
        point[self._most + place] = height
        return point

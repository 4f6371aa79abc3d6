"""Synthetic streams with their true comparators."""

from __future__ import annotations

import functools
import math
import operator
from typing import NamedTuple

import numpy as np

from driftwolfe.domains import Domain, TraceNormBall
from driftwolfe.losses import AbsoluteEntries, LinearLoss, MulticlassLogistic, SquaredDistance
from driftwolfe.points import FactoredMatrix, checks, inner, norm
from driftwolfe.points.kinds import Array, Point
from driftwolfe.streams.stream import Stream, boundaries

#: Vertices that a random point is mixed from.
_MIXED = 4
#: Rounds of "from the vertex at one end to the one at the other" that widen a direction.
_WIDENINGS = 5


class Width(NamedTuple):
    """A unit direction and the two ends of the set along it."""

    direction: Point
    lowest: Point
    highest: Point

    @property
    def ends(self) -> tuple[float, float]:
        """The inner products of the direction with the two ends."""
        return inner(self.direction, self.lowest), inner(self.direction, self.highest)


def random_direction(domain: Domain, rng: np.random.Generator) -> Point:
    """Return a unit vector of the set's space; of rank one where its matrices are factored."""
    if isinstance(domain.origin(), FactoredMatrix):
        u, v = (_unit(rng.standard_normal(size)) for size in domain.shape)
        return FactoredMatrix(u[:, None], np.ones(1), v[:, None])
    return _unit(rng.standard_normal(domain.shape))


def wide_direction(domain: Domain, rng: np.random.Generator) -> Width:
    """Return a direction in which the set is wide: a local maximum of the distance of two vertices."""
    direction = random_direction(domain, rng)
    for _ in range(_WIDENINGS):
        width = width_along(domain, direction)
        across = width.highest - width.lowest
        if isinstance(across, FactoredMatrix):
            across = across.recompress()
        direction = across / norm(across)
    return width_along(domain, direction)


def width_along(domain: Domain, direction: Point) -> Width:
    """Return the two ends of the set along a direction, which is scaled to unit length."""
    unit = direction / norm(direction)
    return Width(unit, domain.lmo(unit), domain.lmo(unit * -1.0))


def random_point(domain: Domain, rng: np.random.Generator) -> Point:
    """Return a random mixture of random vertices."""
    vertices = [domain.lmo(random_direction(domain, rng)) for _ in range(_MIXED)]
    return _mix(vertices, rng.dirichlet(np.ones(_MIXED)))


def steady_angles(speed: float, count: int, name: str) -> Array:
    """Return `count` angles from 0 on, `speed` radians apart; `name` is what errors call the speed."""
    return checks.nonnegative(speed, name) * np.arange(count, dtype=np.float64)


def tour(domain: Domain, angles: Array, rng: np.random.Generator) -> list[Point]:
    r"""Return a path in the set, by the angle on a closed curve between three vertices.

    The weights :math:`(1 + \cos(\alpha - 2 \pi i/3))/3` are non-negative and have sum 1, so no point
    leaves the set.
    """
    direction = random_direction(domain, rng)
    ends = width_along(domain, direction)
    vertices = [ends.lowest, ends.highest, domain.lmo(random_direction(domain, rng))]
    offsets = 2.0 * math.pi * np.arange(3) / 3.0
    weights = (1.0 + np.cos(np.asarray(angles)[:, None] - offsets)) / 3.0
    return [_mix(vertices, row) for row in weights]


def _mix(points: list[Point], weights: Array) -> Point:
    parts = (point * float(weight) for point, weight in zip(points, weights, strict=True))
    return functools.reduce(operator.add, parts)


def _unit(vector: Array) -> Array:
    return vector / np.linalg.norm(vector)


Seed = int | np.random.Generator | None


def drifting_logistic(
    shape: tuple[int, int],
    rounds: int,
    rows: int = 10,
    speed: float = 0.01,
    seed: Seed = None,
    radius: float = 10.0,
) -> Stream:
    r"""Classification with a matrix that turns: labels drawn from its class probabilities.

    Every round brings `rows` random unit vectors a with labels drawn with probabilities
    :math:`\mathrm{softmax}(W_t a)`. The matrices :math:`W_t` run on a closed curve in the trace-norm
    ball and are the comparators: they minimise the expected loss, not that of the drawn labels.

    Parameters
    ----------
    shape
        ``(n_classes, n_features)``.
    rounds
        Number of losses.
    rows
        Rows of features a round.
    speed
        Radians a round.
    seed
        Of the matrices, the features and the labels.
    radius
        Of the trace-norm ball that holds the matrices, the stream's `domain`.

    Examples
    --------
    >>> stream = drifting_logistic((3, 4), rounds=20, seed=0)
    >>> stream[0].features.shape, stream.domain
    ((10, 4), TraceNormBall(shape=(3, 4), radius=10))
    """
    ball = TraceNormBall(shape, radius, representation="dense")
    count, rows = checks.count(rounds, "rounds"), checks.count(rows, "rows")
    rng = np.random.default_rng(seed)
    matrices = tour(ball, steady_angles(speed, count, "speed"), rng)
    losses = []
    for matrix in matrices:
        features = rng.standard_normal((rows, ball.shape[1]))
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        # The largest of scores plus Gumbel noise is a draw from the softmax.
        scores = features @ matrix.T + rng.gumbel(size=(rows, ball.shape[0]))
        losses.append(MulticlassLogistic(features, scores.argmax(axis=1), ball.shape[0]))
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

    :math:`M_t = U_t\,\mathrm{diag}(s)\,V^\top` has the trace norm `radius` in every round; its column
    space turns by `drift` radians a round. Each round looks at `per_round` different entries. The
    comparators are the :math:`M_t`, with no loss at all.

    Parameters
    ----------
    shape
        ``(m, n)``.
    rank
        Rank of the matrices; twice that must not exceed m.
    radius
        Their trace norm, in units of the entries; the stream's `domain` is the ball of that radius.
    rounds
        Number of losses.
    per_round
        Entries a round.
    drift
        Radians a round.
    seed
        Of the matrices and the entries.

    Examples
    --------
    >>> stream = absolute_entries((30, 20), rank=2, rounds=10, per_round=25, seed=0)
    >>> stream[0].targets.size, stream.lipschitz, stream.comparators[0]
    (25, 5.0, FactoredMatrix(shape=(30, 20), rank=2, stored=0))
    >>> round(stream.comparators[9].nuclear_norm(), 6)
    100.0
    """
    ball = TraceNormBall(shape, radius)
    m, n = ball.shape
    width, count = checks.count(rank, "rank"), checks.count(rounds, "rounds")
    if 2 * width > m or width > n:
        raise ValueError(
            f"rank must be at most half of {m} rows and at most {n} columns, to have room to turn, "
            f"got {rank}"
        )
    looks = checks.count(per_round, "per_round")
    if looks > m * n:
        raise ValueError(
            f"per_round must be at most the {m * n} entries there are, got {per_round}"
        )
    rng = np.random.default_rng(seed)
    both = np.linalg.qr(rng.standard_normal((m, 2 * width)))[0]
    V = np.linalg.qr(rng.standard_normal((n, width)))[0]
    sizes = rng.dirichlet(np.ones(width)) * ball.scale
    losses, matrices = [], []
    for angle in steady_angles(drift, count, "drift"):
        U = math.cos(angle) * both[:, :width] + math.sin(angle) * both[:, width:]
        matrices.append(FactoredMatrix(U, sizes, V))
        rows, cols = np.divmod(rng.choice(m * n, looks, replace=False, shuffle=False), n)
        targets = matrices[-1].entries(rows, cols)
        losses.append(AbsoluteEntries(rows, cols, targets, ball.shape))
    return Stream(losses, "absolute entries", math.sqrt(looks), matrices, ball)


__all__ = [
    "absolute_entries",
    "drifting_logistic",
    "hard_linear",
    "linear_signs",
    "piecewise_constant",
    "rotating_quadratic",
]


def linear_signs(
    domain: Domain, rounds: int, changes: int = 1, seed: Seed = None, lipschitz: float = 1.0
) -> Stream:
    r"""Linear losses :math:`f_t(x) = \pm G \langle e, x\rangle` whose sign changes now and then.

    The unit vector e points across the set where it is wide. The sign flips `changes` times, at
    equal distances; the comparators are the ends of the set, each optimal in its rounds.

    Parameters
    ----------
    domain
        The set.
    rounds
        Number of losses.
    changes
        How often the sign flips, fewer than `rounds`.
    seed
        Of the direction.
    lipschitz
        G, the norm of every gradient, in units of the loss over those of x.

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
    steepness = checks.positive(lipschitz, "lipschitz")
    width = wide_direction(domain, np.random.default_rng(seed))
    # One pair of losses for all rounds: a thousand copies of a large gradient would fill memory.
    sides = [
        (LinearLoss(width.direction * steepness), width.lowest),
        (LinearLoss(width.direction * -steepness), width.highest),
    ]
    order = [t * (flips + 1) // count for t in range(count)]
    chosen = [sides[piece % 2] for piece in order]
    losses, comparators = (list(column) for column in zip(*chosen, strict=True))
    return Stream(losses, "linear signs", steepness, comparators, domain, boundaries(order))


def hard_linear(domain: Domain, rounds: int, seed: Seed = None, lipschitz: float = 1.0) -> Stream:
    r"""Linear losses with random signs: the construction behind the :math:`\sqrt T` lower bound.

    :math:`f_t(x) = \epsilon_t G \langle e, x\rangle` with fair random signs. Whatever a learner does,
    its expected loss relative to the middle of the set is 0, while the best fixed point gains
    :math:`\frac{G w}2 \mathbb{E}|\sum_t \epsilon_t| \approx G w \sqrt{T/(2\pi)}`, w the width of the set
    along e. The comparator is that best fixed point.

    Parameters
    ----------
    domain
        The set.
    rounds
        Number of losses T.
    seed
        Of the direction and the signs.
    lipschitz
        G, the norm of every gradient, in units of the loss over those of x.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> stream = hard_linear(dw.L2Ball(3), rounds=1000, seed=0)
    >>> regret = sum(-loss.value(stream.comparators[0]) for loss in stream)
    >>> bool(regret > 1)
    True

    References
    ----------
    Abernethy, Bartlett, Rakhlin, Tewari (2008), Optimal strategies and minimax lower bounds for
    online convex games.
    """
    count, steepness = checks.count(rounds, "rounds"), checks.positive(lipschitz, "lipschitz")
    rng = np.random.default_rng(seed)
    width = wide_direction(domain, rng)
    up, down = LinearLoss(width.direction * steepness), LinearLoss(width.direction * -steepness)
    rises = rng.random(count) < 0.5
    best = width.lowest if 2 * int(rises.sum()) >= count else width.highest
    losses = [up if rise else down for rise in rises]
    return Stream(losses, "hard linear", steepness, [best] * count, domain)


def rotating_quadratic(
    domain: Domain, rounds: int, speed: float = 0.01, seed: Seed = None, weight: float = 0.5
) -> Stream:
    r"""Squared distances :math:`w \lVert x - z_t\rVert^2` to a target that goes round in the set.

    The target runs on a closed curve between three vertices, `speed` radians a round, and is the
    comparator: no point has a smaller loss.

    Parameters
    ----------
    domain
        The set.
    rounds
        Number of losses.
    speed
        Radians a round.
    seed
        Of the vertices.
    weight
        The factor w, in units of the loss over squared units of x.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> stream = rotating_quadratic(dw.L2Ball(3), rounds=50, speed=0.1, seed=0)
    >>> max(loss.value(u) for loss, u in zip(stream, stream.comparators))
    0.0
    """
    angles = steady_angles(speed, checks.count(rounds, "rounds"), "speed")
    targets = tour(domain, angles, np.random.default_rng(seed))
    return _squared_distances(domain, targets, weight, "rotating quadratic")


def piecewise_constant(
    domain: Domain, rounds: int, pieces: int = 4, seed: Seed = None, weight: float = 0.5
) -> Stream:
    r"""Squared distances :math:`w \lVert x - z_t\rVert^2` to a target that jumps.

    The target stays where it is for about ``rounds / pieces`` rounds, then jumps to another random
    point of the set. It is the comparator.

    Parameters
    ----------
    domain
        The set.
    rounds
        Number of losses.
    pieces
        How many different targets, at most `rounds`.
    seed
        Of the targets.
    weight
        The factor w, in units of the loss over squared units of x.

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
    rng = np.random.default_rng(seed)
    points = [random_point(domain, rng) for _ in range(number)]
    stream = _squared_distances(domain, points, weight, "piecewise constant")
    order = [t * number // count for t in range(count)]
    return Stream(
        [stream.losses[piece] for piece in order],
        stream.name,
        stream.lipschitz,
        [points[piece] for piece in order],
        domain,
        boundaries(order),
    )


def _squared_distances(domain: Domain, targets: list[Point], weight: float, name: str) -> Stream:
    losses = [SquaredDistance(target, weight) for target in targets]
    # Targets lie in the set, so no point of it is farther than its diameter.
    steepest = 2.0 * losses[0].weight * domain.diameter
    return Stream(losses, name, steepest, targets, domain)

"""Synthetic streams with their true comparators."""

from __future__ import annotations

import math

import numpy as np

from driftwolfe.domains import Domain, TraceNormBall
from driftwolfe.ensemble.experts import weighted_sum
from driftwolfe.losses import AbsoluteEntries, LinearLoss, MulticlassLogistic, SquaredDistance
from driftwolfe.points import FactoredMatrix, checks, norm
from driftwolfe.points.kinds import Point
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
    domain, rounds, seed, lipschitz
        The set, the number of losses, the seed of the direction, and G, the norm of every gradient.
    changes
        How often the sign flips, at equal distances.

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
    direction, *ends = wide_direction(domain, seed)
    pair = opposite_losses(direction, G)
    sides = [t * (flips + 1) // count % 2 for t in range(count)]
    losses, points = [pair[side] for side in sides], [ends[side] for side in sides]
    return Stream(losses, "linear signs", G, points, domain, change_points(sides))


def hard_linear(domain: Domain, rounds: int, seed: Seed = None, lipschitz: float = 1.0) -> Stream:
    r"""Linear losses with random signs: the construction behind the :math:`\sqrt T` lower bound.

    :math:`f_t(x) = \epsilon_t G \langle e, x\rangle` with fair random signs. Whatever a learner does,
    its expected loss relative to the middle of the set is 0, while the best fixed point, the
    comparator, gains about :math:`G w \sqrt{T/(2\pi)}`, w the width of the set along e.

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

    References
    ----------
    Abernethy et al. (2008), Optimal strategies and minimax lower bounds for online convex games.
    """
    count, rng = checks.count(rounds, "rounds"), np.random.default_rng(seed)
    G = checks.positive(lipschitz, "lipschitz")
    direction, *ends = wide_direction(domain, rng)
    pair = opposite_losses(direction, G)
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
    domain, rounds, seed
        The set, the number of losses, and the seed of the vertices.
    speed, weight
        Radians per round, and the factor w, in units of the loss over squared units of x.

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
    domain, rounds, seed
        The set, the number of losses, and the seed of the targets.
    pieces, weight
        How many different targets, and the factor w, in units of the loss over squared units of x.

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
    shape, rounds, seed
        ``(n_classes, n_features)``, the number of losses, and the seed of all draws.
    rows, speed, radius
        Vectors, and radians that the matrix moves, per round; radius of the ball, the `domain`.

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
    shape, rounds, seed
        ``(m, n)``, the number of losses, and the seed of the matrices and the entries.
    rank, radius
        Rank of the matrices, at most m / 2, and their trace norm, the radius of the `domain`.
    per_round, drift
        Entries shown, and radians turned, per round.

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


def width_along(domain: Domain, direction: Point) -> tuple[Point, Point, Point]:
    """Return a direction, scaled to unit length, and the set's lowest and highest point along it."""
    unit = direction / norm(direction)
    return unit, domain.lmo(unit), domain.lmo(unit * -1.0)


def wide_direction(domain: Domain, seed: Seed) -> tuple[Point, Point, Point]:
    """Return `width_along` a direction in which the set is wide: vertices are locally most distant."""
    width = width_along(domain, _random_direction(domain, np.random.default_rng(seed)))
    for _ in range(5):
        _, lowest, highest = width
        across = highest - lowest
        if isinstance(across, FactoredMatrix):
            across = across.recompress()
        width = width_along(domain, across / norm(across))
    return width


def opposite_losses(
    direction: Point, G: float, middle: float = 0.0
) -> tuple[LinearLoss, LinearLoss]:
    """Return G(<e, x> - middle) and its negative, which all rounds share to save memory."""
    slope, height = direction * G, G * middle
    return LinearLoss(slope, constant=-height), LinearLoss(slope * -1.0, constant=height)


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
    _, *vertices = width_along(domain, _random_direction(domain, rng))
    vertices.append(domain.lmo(_random_direction(domain, rng)))
    offsets = 2.0 * math.pi * np.arange(3) / 3.0
    weights = (1.0 + np.cos(angles[:, None] - offsets)) / 3.0  # non-negative with sum 1
    return [weighted_sum(row, vertices) for row in weights]

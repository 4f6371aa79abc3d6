"""Synthetic streams with their true comparators."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from driftwolfe.domains import Domain, TraceNormBall
from driftwolfe.losses import AbsoluteEntries, LinearLoss, MulticlassLogistic, SquaredDistance
from driftwolfe.points import FactoredMatrix, checks, inner, norm
from driftwolfe.points.kinds import Array, Point
from driftwolfe.streams.stream import Seed, Stream, change_points

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
    r"""Linear losses :math:`f_t(x) = \pm G \langle e, x\rangle` whose sign flips from time to time.

    The unit vector e is a direction in which the set is wide. The sign flips `changes` times, at
    equal distances; the comparators are the ends of the set, each optimal in its rounds.

    Parameters
    ----------
    domain, rounds
        The set, and the number of losses.
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
    width, pair = _opposite_losses(domain, lipschitz, np.random.default_rng(seed))
    ends = (width.lowest, width.highest)
    pieces = [t * (flips + 1) // count for t in range(count)]
    return Stream(
        [pair[piece % 2] for piece in pieces],
        "linear signs",
        float(lipschitz),
        [ends[piece % 2] for piece in pieces],
        domain,
        change_points(pieces),
    )


def hard_linear(domain: Domain, rounds: int, seed: Seed = None, lipschitz: float = 1.0) -> Stream:
    r"""Linear losses with random signs: the construction behind the :math:`\sqrt T` lower bound.

    :math:`f_t(x) = \epsilon_t G \langle e, x\rangle` with fair random signs. Whatever a learner does,
    its expected loss relative to the middle of the set is 0, while the best fixed point gains
    :math:`\frac{G w}2 \mathbb{E}|\sum_t \epsilon_t| \approx G w \sqrt{T/(2\pi)}`, w the width of the set
    along e. The comparator is that best fixed point.

    Parameters
    ----------
    domain, rounds
        The set, and the number of losses T.
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
    count, rng = checks.count(rounds, "rounds"), np.random.default_rng(seed)
    width, (rising, falling) = _opposite_losses(domain, lipschitz, rng)
    rises = rng.random(count) < 0.5
    best = width.lowest if 2 * int(rises.sum()) >= count else width.highest
    losses = [rising if rise else falling for rise in rises]
    return Stream(losses, "hard linear", float(lipschitz), [best] * count, domain)


def rotating_quadratic(
    domain: Domain, rounds: int, speed: float = 0.01, seed: Seed = None, weight: float = 0.5
) -> Stream:
    r"""Squared distances :math:`w \lVert x - z_t\rVert^2` to a target on a closed curve in the set.

    The curve runs between three vertices; the target is the comparator: no point has a smaller loss.

    Parameters
    ----------
    domain, rounds
        The set, and the number of losses.
    speed
        Radians per round.
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
    angles = _angles(speed, checks.count(rounds, "rounds"), "speed")
    targets = _closed_curve(domain, angles, np.random.default_rng(seed))
    losses = [SquaredDistance(target, weight) for target in targets]
    bound = 2.0 * losses[0].weight * domain.diameter  # targets lie in the set
    return Stream(losses, "rotating quadratic", bound, targets, domain)


def piecewise_constant(
    domain: Domain, rounds: int, pieces: int = 4, seed: Seed = None, weight: float = 0.5
) -> Stream:
    r"""Squared distances :math:`w \lVert x - z_t\rVert^2` to a target that jumps.

    After about ``rounds / pieces`` rounds the target jumps to another random point of the set. It is
    the comparator.

    Parameters
    ----------
    domain, rounds
        The set, and the number of losses.
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
    targets = [_random_point(domain, rng) for _ in range(number)]
    losses = [SquaredDistance(target, weight) for target in targets]
    bound = 2.0 * losses[0].weight * domain.diameter  # targets lie in the set
    order = [t * number // count for t in range(count)]
    return Stream(
        [losses[piece] for piece in order],
        "piecewise constant",
        bound,
        [targets[piece] for piece in order],
        domain,
        change_points(order),
    )


def drifting_logistic(
    shape: tuple[int, int],
    rounds: int,
    rows: int = 10,
    speed: float = 0.01,
    seed: Seed = None,
    radius: float = 10.0,
) -> Stream:
    r"""Classification by a matrix that changes slowly: labels are drawn from its class probabilities.

    Every round brings `rows` random unit vectors a with labels drawn with probabilities
    :math:`\mathrm{softmax}(W_t a)`. The matrices :math:`W_t` run on a closed curve in the trace-norm
    ball and are the comparators: they minimise the expected loss, not that of the drawn labels.

    Parameters
    ----------
    shape
        ``(n_classes, n_features)``.
    rounds
        Number of losses.
    rows, speed
        Rows of features, and radians that the matrix moves, per round.
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
    matrices = _closed_curve(ball, _angles(speed, count, "speed"), rng)
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
    space turns by `drift` radians per round. Each round shows `per_round` different entries. The
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
    per_round, drift
        Entries, and radians, per round.
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
    k, count = checks.count(rank, "rank"), checks.count(rounds, "rounds")
    if 2 * k > m or k > n:
        raise ValueError(
            f"rank must be at most half of {m} rows and at most {n} columns, to have room to turn, "
            f"got {rank}"
        )
    shown = checks.count(per_round, "per_round")
    if shown > m * n:
        raise ValueError(
            f"per_round must be at most the {m * n} entries there are, got {per_round}"
        )
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((m, 2 * k)))[0]
    V = np.linalg.qr(rng.standard_normal((n, k)))[0]
    sizes = rng.dirichlet(np.ones(k)) * ball.scale
    losses, matrices = [], []
    for angle in _angles(drift, count, "drift"):
        U = math.cos(angle) * basis[:, :k] + math.sin(angle) * basis[:, k:]
        matrices.append(FactoredMatrix(U, sizes, V))
        rows, cols = np.divmod(rng.choice(m * n, shown, replace=False, shuffle=False), n)
        targets = matrices[-1].entries(rows, cols)
        losses.append(AbsoluteEntries(rows, cols, targets, ball.shape))
    return Stream(losses, "absolute entries", math.sqrt(shown), matrices, ball)


class Width(NamedTuple):
    """A unit direction, and the points of the set that are lowest and highest along it."""

    direction: Point
    lowest: Point
    highest: Point

    @property
    def middle(self) -> float:
        """The mean of the direction's inner products with both ends."""
        return (inner(self.direction, self.lowest) + inner(self.direction, self.highest)) / 2.0


def width_along(domain: Domain, direction: Point) -> Width:
    """Return the two ends of the set along a direction, which is scaled to unit length."""
    unit = direction / norm(direction)
    return Width(unit, domain.lmo(unit), domain.lmo(unit * -1.0))


def wide_direction(domain: Domain, rng: np.random.Generator) -> Width:
    """Return a direction in which the set is wide: a local maximum of the distance of two vertices."""
    direction = _random_direction(domain, rng)
    for _ in range(5):
        width = width_along(domain, direction)
        across = width.highest - width.lowest
        if isinstance(across, FactoredMatrix):
            across = across.recompress()
        direction = across / norm(across)
    return width_along(domain, direction)


def _opposite_losses(
    domain: Domain, lipschitz: float, rng: np.random.Generator
) -> tuple[Width, tuple[LinearLoss, LinearLoss]]:
    """A wide direction e with the losses G<e, x> and -G<e, x>, which all rounds share to save memory."""
    G = checks.positive(lipschitz, "lipschitz")
    width = wide_direction(domain, rng)
    return width, (LinearLoss(width.direction * G), LinearLoss(width.direction * -G))


def _random_direction(domain: Domain, rng: np.random.Generator) -> Point:
    """A unit vector of the set's space; of rank one where its matrices are factored."""
    if isinstance(domain.origin(), FactoredMatrix):
        u, v = (_unit(rng.standard_normal(size)) for size in domain.shape)
        return FactoredMatrix(u[:, None], np.ones(1), v[:, None])
    return _unit(rng.standard_normal(domain.shape))


def _unit(vector: Array) -> Array:
    return vector / np.linalg.norm(vector)


def _random_point(domain: Domain, rng: np.random.Generator) -> Point:
    """A random mixture of four random vertices."""
    vertices = [domain.lmo(_random_direction(domain, rng)) for _ in range(4)]
    return _mixture(vertices, rng.dirichlet(np.ones(4)))


def _angles(speed: float, count: int, name: str) -> Array:
    return checks.nonnegative(speed, name) * np.arange(count, dtype=np.float64)


def _closed_curve(domain: Domain, angles: Array, rng: np.random.Generator) -> list[Point]:
    r"""Points on a closed curve between three vertices, by their angles.

    The weights :math:`(1 + \cos(\alpha - 2 \pi i/3))/3` are non-negative with sum 1.
    """
    width = width_along(domain, _random_direction(domain, rng))
    vertices = [width.lowest, width.highest, domain.lmo(_random_direction(domain, rng))]
    offsets = 2.0 * math.pi * np.arange(3) / 3.0
    weights = (1.0 + np.cos(angles[:, None] - offsets)) / 3.0
    return [_mixture(vertices, row) for row in weights]


def _mixture(points: list[Point], weights: Array) -> Point:
    first, *others = (p * float(weight) for p, weight in zip(points, weights, strict=True))
    return sum(others, start=first)

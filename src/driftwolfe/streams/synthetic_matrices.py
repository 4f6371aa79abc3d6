"""Matrices made up so that the best comparators are known; see `driftwolfe.streams.synthetic`."""

from __future__ import annotations

import math

import numpy as np

from driftwolfe.domains import TraceNormBall
from driftwolfe.losses import AbsoluteEntries, MulticlassLogistic
from driftwolfe.points import FactoredMatrix, checks
from driftwolfe.streams.geometry import steady_angles, tour
from driftwolfe.streams.stream import Stream

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

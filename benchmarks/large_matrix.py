"""A large matrix: 162,000 x 62,000, 25 million ratings in 1,000 rounds; the sizes of MovieLens 25M."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import driftwolfe as dw

SHAPE, HORIZON, PER_ROUND = (162_000, 62_000), 1000, 25_000
#: A ball that is small beside the steps keeps ranks near 80: what is measured is time and memory.
RADIUS, STEP_SCALE = 3e3, 9e2
#: A ball with room for higher ranks.
WIDE_RADIUS = 3e4


def stream(shape=SHAPE, per_round=PER_ROUND, rounds=HORIZON) -> Iterator[dw.losses.Loss]:
    """Ratings of a low-rank matrix plus 3, made round by round; low indices are the popular ones."""
    m, n = shape
    rng = np.random.default_rng(0)
    U, V = (rng.standard_normal((size, 10)) / 10**0.25 for size in shape)
    for t in range(rounds):
        rng = np.random.default_rng((1, t))
        rows = (m * rng.random(per_round) ** 2).astype(np.int64)
        cols = (n * rng.random(per_round) ** 2).astype(np.int64)
        ratings = 3.0 + np.einsum("ij,ij->i", U[rows], V[cols])
        yield dw.losses.AbsoluteEntries(rows, cols, ratings, shape=shape)


def bogd_ip(device: str = "cpu") -> dw.BOGDIP:
    """BOGD_IP on the large matrix."""
    ball = dw.TraceNormBall(SHAPE, RADIUS, device=device)
    return dw.BOGDIP(ball, horizon=HORIZON, step_scale=STEP_SCALE)


def pold(device: str = "cpu") -> dw.POLD:
    """POLD on the large matrix."""
    ball = dw.TraceNormBall(SHAPE, RADIUS, device=device)
    return dw.POLD(ball, horizon=HORIZON, step_scale=STEP_SCALE, grid="experiment")


def pold_wide(device: str = "cpu") -> dw.POLD:
    """POLD with ranks from 17 to 599, on a ball that is small enough to learn in.

    Its loss falls below that of the zero matrix.
    """
    ball = dw.TraceNormBall(SHAPE, WIDE_RADIUS, device=device)
    return dw.POLD(ball, horizon=HORIZON, step_scale=WIDE_RADIUS / 25)

"""POLD and BOGD_IP on 162,000 x 62,000 with 25 million ratings, the sizes of MovieLens 25M.

`python -m benchmarks.large_matrix LEARNER ROUNDS` plays one game in a process of its own.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import driftwolfe as dw
from benchmarks.measure import threads
from driftwolfe.points import FactoredMatrix

SHAPE, HORIZON, PER_ROUND = (162_000, 62_000), 1000, 25_000
#: A ball that is small relative to the steps keeps ranks near 80: time and memory are measured.
RADIUS, STEP_SCALE = 3e3, 9e2
#: A ball that allows higher ranks.
WIDE_RADIUS = 3e4
#: The stream that can be learned: rank, deviations of the low-rank part and of the noise, and a
#: radius of 0.15 sqrt(m n), chosen on 1/100 and 1/10 of the rows and columns.
RANK, LOW_RANK, NOISE, LEARNABLE_RADIUS = 5, 1.0, 0.5, 1.5e4
#: Sides over the number of popular rows and columns: at the full size the most active user has 1,700
#: ratings and the median one 47; the most popular film has 40,000 and the median one 16.
POPULAR = (10, 100)


def stream(shape=SHAPE, per_round=PER_ROUND, rounds=HORIZON) -> Iterator[dw.losses.Loss]:
    """Ratings of a low-rank matrix plus 3, made round by round; low indices are popular."""
    m, n = shape
    rng = np.random.default_rng(0)
    U, V = (rng.standard_normal((size, 10)) / 10**0.25 for size in shape)
    for t in range(rounds):
        rng = np.random.default_rng((1, t))
        rows = (m * rng.random(per_round) ** 2).astype(np.int64)
        cols = (n * rng.random(per_round) ** 2).astype(np.int64)
        ratings = 3.0 + np.einsum("ij,ij->i", U[rows], V[cols])
        yield dw.losses.AbsoluteEntries(rows, cols, ratings, shape=shape)


def learnable(
    shape: tuple[int, int] = SHAPE, per_round: int = PER_ROUND, rounds: int = HORIZON
) -> Iterator[dw.losses.Loss]:
    """Ratings of a low-rank matrix plus noise, less their mean; rows and columns are long-tailed."""
    rng = np.random.default_rng(0)
    U, V = (rng.standard_normal((size, RANK)) for size in shape)
    for t in range(rounds):
        rng = np.random.default_rng((1, t))
        rows, cols = (
            _long_tailed(size, size / part, rng.random(per_round))
            for size, part in zip(shape, POPULAR, strict=True)
        )
        ratings = LOW_RANK / RANK**0.5 * np.einsum("ij,ij->i", U[rows], V[cols])
        ratings += NOISE * rng.standard_normal(per_round)
        yield dw.losses.AbsoluteEntries(rows, cols, ratings, shape=shape)


def _long_tailed(size: int, popular: float, uniform: Any) -> Any:
    """Indices below `size` of density (popular + index)^-2, from uniform numbers."""
    shares = uniform * size / (size + popular)
    return np.minimum(popular * shares / (1.0 - shares), size - 1).astype(np.int64)


def bogd_ip(device: str = "cpu") -> dw.BOGDIP:
    ball = dw.TraceNormBall(SHAPE, RADIUS, device=device)
    return dw.BOGDIP(ball, horizon=HORIZON, step_scale=STEP_SCALE)


def pold(device: str = "cpu") -> dw.POLD:
    ball = dw.TraceNormBall(SHAPE, RADIUS, device=device)
    return dw.POLD(ball, horizon=HORIZON, step_scale=STEP_SCALE, grid="experiment")


def pold_wide(device: str = "cpu") -> dw.POLD:
    """POLD with ranks from 17 to 599; its loss falls below that of the zero matrix."""
    ball = dw.TraceNormBall(SHAPE, WIDE_RADIUS, device=device)
    return dw.POLD(ball, horizon=HORIZON, step_scale=WIDE_RADIUS / 25)


def fixed_rank_projection(
    shape: tuple[int, int], ratings: int, rank: int, device: str = "cpu"
) -> Callable[[], Any]:
    """Project 1.3 x plus sparse noise that is too small to change the rank of the answer."""
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.standard_normal((size, rank)))[0] for size in shape)
    x = FactoredMatrix(U, np.linspace(2.0, 1.0, rank), V)
    rows, cols = (rng.integers(size, size=ratings) for size in shape)
    # The spectral norm of the noise is about the sum of the roots of the mean entries per row and
    # per column; at a fifth of the threshold no direction of it reaches the answer.
    edge = sum(np.sqrt(ratings / size) for size in shape)
    signs = rng.choice([-1.0, 1.0], ratings)
    noise = FactoredMatrix.from_entries(shape, rows, cols, 0.06 * signs / edge)
    ball = dw.TraceNormBall(shape, x.s.sum(), device=device)
    start, target = x.to(device), (1.3 * x + noise).to(device)
    job = partial(dw.infeasible_projection, ball, start, target, 1e-9, accuracy=0.1)
    reached = job().feasible.rank
    if reached != rank:
        raise AssertionError(f"the projection has rank {reached}, not {rank}")
    return job


LEARNERS = {"BOGD_IP": bogd_ip, "POLD": pold}


def play(name: str, rounds: int) -> dict:
    """Play a game; return its time, peak memory, losses and final rank."""
    learner, total, ratings = LEARNERS[name](), 0.0, 0.0
    started = time.perf_counter()
    for loss in stream(rounds=rounds):
        total += learner.update(loss)
        ratings += float(np.abs(loss.targets).sum())
    entries = rounds * PER_ROUND
    return {
        "peak_gib": _peak_gib(),
        "seconds": time.perf_counter() - started,
        "mean_loss": total / entries,
        "mean_rating": ratings / entries,
        "rank": learner.decision.rank,
    }


def _peak_gib() -> float:
    """Peak memory of this process, from Linux; getrusage would include the parent's."""
    status = Path("/proc/self/status").read_text().splitlines()
    (peak,) = [line.split()[1] for line in status if line.startswith("VmHWM:")]
    return int(peak) / 2**20


if __name__ == "__main__":
    with threads(1):
        print(json.dumps(play(sys.argv[1], int(sys.argv[2]))))

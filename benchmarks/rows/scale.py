"""How time and memory grow on the large matrix."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial

import numpy as np

import driftwolfe as dw
from benchmarks import ROOT
from benchmarks.large_matrix import HORIZON, PER_ROUND, SHAPE
from benchmarks.measure import medians, race, threads
from benchmarks.ratio import Ratio
from driftwolfe.points import FactoredMatrix

ROW = "scale"
MEMORY_GIB = 8.0
#: Rank of the projections that the ratios are measured on, and ratings in one block of BOGD_IP.
RANK, BLOCK_RATINGS = 60, 31 * PER_ROUND
#: Side lengths and ratings of the short variant, divided by this.
SMALLER = 10
REPEATS = {True: 5, False: 7}
#: Games of the full variant: learner and rounds; every expert of POLD projects twice in 62.
GAMES = {"BOGD_IP": HORIZON, "POLD": 62}


def measure(short: bool) -> list[Ratio]:
    """How the time of a projection grows, and how much memory whole games take."""
    smaller = SMALLER if short else 1
    with threads(1):
        ratios = _growth(smaller, REPEATS[short])
    if short:
        return ratios
    return [*ratios, *(_memory(name, rounds) for name, rounds in GAMES.items())]


def _growth(smaller: int, repeats: int) -> list[Ratio]:
    m, n = (size // smaller for size in SHAPE)
    ratings = BLOCK_RATINGS // smaller
    jobs = {
        "one": _projection((m, n), ratings),
        "ratings twice": _projection((m, n), 2 * ratings),
        "sides twice": _projection((2 * m, 2 * n), ratings),
    }
    timings = race(jobs, repeats)
    middle = medians(timings)
    note = f"one projection to rank {RANK}; once: {m:,} x {n:,}, {ratings:,} ratings"
    return [
        Ratio(
            ROW,
            f"{name} as many" if name == "ratings twice" else f"{name} as long",
            middle[name],
            middle["one"],
            at_most=2.3,
            note=note,
            timings=timings,
        )
        for name in ("ratings twice", "sides twice")
    ]


def _projection(shape, ratings):
    """A projection of 1.3 x plus sparse noise, such that the answer has the rank of x."""
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.standard_normal((size, RANK)))[0] for size in shape)
    x = FactoredMatrix(U, np.linspace(2.0, 1.0, RANK), V)
    rows, cols = (rng.integers(size, size=ratings) for size in shape)
    # The spectral norm of the noise is about the sum of the roots of the mean entries a row and a
    # column; at a fifth of the threshold no direction of it reaches the answer.
    edge = sum(np.sqrt(ratings / size) for size in shape)
    signs = rng.choice([-1.0, 1.0], ratings)
    noise = FactoredMatrix.from_entries(shape, rows, cols, 0.06 * signs / edge)
    ball = dw.TraceNormBall(shape, x.s.sum())
    job = partial(dw.infeasible_projection, ball, x, 1.3 * x + noise, 1e-9, accuracy=0.1)
    reached = job().feasible.rank
    if reached != RANK:
        raise AssertionError(f"the projection has rank {reached}, not {RANK}")
    return job


def _memory(name: str, rounds: int) -> Ratio:
    """Play in a fresh process and read its largest memory."""
    command = [sys.executable, "-m", "benchmarks.scale_game", name, str(rounds)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    return Ratio(
        ROW,
        f"peak memory of {name}, {rounds:,} rounds of {PER_ROUND:,}",
        told["peak_gib"],
        MEMORY_GIB,
        at_most=1,
        unit="GiB",
        note=f"{told['seconds']:,.0f} s in all, mean loss a rating {told['mean_loss']:.3f} "
        f"(zero: {told['mean_rating']:.3f}), rank {told['rank']} at the end",
    )

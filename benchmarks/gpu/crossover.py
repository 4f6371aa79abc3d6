"""From which size on a device is quicker than two cores."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import driftwolfe as dw
from benchmarks.gpu.setting import Setting
from benchmarks.gpu.timing import compared, median_ms
from driftwolfe.points import FactoredMatrix

RANK, RATINGS_A_ROW, REPEATS = 20, 5, 5
#: Side lengths of matrices and lengths of vectors, short or not.
SIDES = {True: (500, 1000), False: (500, 1000, 2000, 4000, 8000, 16_000, 64_000)}
LENGTHS = {True: (1000,), False: (1000, 10_000, 100_000, 1_000_000)}
#: Rounds of vectors that are timed together.
ROUNDS = 10


def measure(setting: Setting, done: dict[str, Any]) -> dict[str, Any]:
    """Single projections of matrices, and rounds of POLD on vectors."""
    sides = [_compared(m, setting, _projection) for m in SIDES[setting.short]]
    return {"rank": RANK, "projections": sides, "rounds": dense(setting)}


def dense(setting: Setting) -> list[dict[str, Any]]:
    """A round of POLD on the l1 ball, where that takes a device."""
    try:
        dw.L1Ball(2, device=setting.device)
    except TypeError:
        print("skipped vectors: L1Ball takes no device")
        return []
    return [_compared(d, setting, _rounds, calls=ROUNDS) for d in LENGTHS[setting.short]]


def _compared(
    size: int, setting: Setting, job: Callable[[int, str], Any], calls: int = 1
) -> dict[str, Any]:
    """Milliseconds of what a job does once, on the host and on the device."""
    took = compared(
        lambda device: median_ms(job(size, device), device, REPEATS, 1) / calls, setting.device
    )
    return {"size": size, **took}


def _projection(m: int, device: str) -> Callable[[], Any]:
    """A projection of 1.3 x plus sparse noise that does not reach the answer; as in `rows/scale.py`."""
    rng = np.random.default_rng(0)
    shape, ratings = (m, m), RATINGS_A_ROW * m
    U, V = (np.linalg.qr(rng.standard_normal((m, RANK)))[0] for _ in shape)
    x = FactoredMatrix(U, np.linspace(2.0, 1.0, RANK), V)
    rows, cols = (rng.integers(m, size=ratings) for _ in shape)
    values = 0.06 * rng.choice([-1.0, 1.0], ratings) / (2 * np.sqrt(RATINGS_A_ROW))
    noise = FactoredMatrix.from_entries(shape, rows, cols, values)
    ball = dw.TraceNormBall(shape, x.s.sum(), device=device)
    start, target = x.to(device), (1.3 * x + noise).to(device)
    job = partial(dw.infeasible_projection, ball, start, target, 1e-9, accuracy=0.1)
    reached = job().feasible.rank
    if reached != RANK:
        raise AssertionError(f"the projection has rank {reached}, not {RANK}")
    return job


def _rounds(d: int, device: str) -> Callable[[], Any]:
    """Some rounds of POLD on the l1 ball with random linear losses, made anew as they are played."""
    rng = np.random.default_rng(0)
    gradients = [rng.standard_normal(d) for _ in range(ROUNDS)]
    learner = dw.POLD(dw.L1Ball(d, device=device), horizon=1000)
    return lambda: [learner.update(dw.losses.LinearLoss(g)) for g in gradients]

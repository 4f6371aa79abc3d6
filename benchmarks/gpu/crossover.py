"""From which size on a device is faster than two cores."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import driftwolfe as dw
from benchmarks.gpu.setting import Setting, compared, median_ms
from benchmarks.large_matrix import fixed_rank_projection
from driftwolfe import losses
from driftwolfe.domains.base import DEVICE_SIZE
from driftwolfe.domains.spectral import DEVICE_ENTRIES

RANK, RATINGS_PER_ROW, REPEATS = 20, 5, 5
#: Side lengths of matrices and lengths of vectors, by `short`.
SIDES = {True: (500, 1000), False: (500, 1000, 2000, 4000, 8000, 16_000, 64_000)}
LENGTHS = {True: (1000,), False: (1000, 10_000, 100_000, 1_000_000)}
#: Rounds on vectors that are timed together.
ROUNDS = 10


def crossover(setting: Setting, done: dict[str, Any]) -> dict[str, Any]:
    """Single projections of matrices, and rounds of POLD on vectors."""
    short = setting.short
    sides = [_compared(m, setting, _projection) for m in SIDES[short]]
    rounds = [_compared(d, setting, _rounds, calls=ROUNDS) for d in LENGTHS[short]]
    return {"rank": RANK, "projections": sides, "rounds": rounds}


def _compared(
    size: int, setting: Setting, job: Callable[[int, str], Any], calls: int = 1
) -> dict[str, Any]:
    """Milliseconds per call of a job, on the host and on the device."""
    took = compared(
        lambda device: median_ms(job(size, device), device, REPEATS, 1) / calls, setting.device
    )
    return {"size": size, **took}


def _projection(m: int, device: str) -> Callable[[], Any]:
    return fixed_rank_projection((m, m), RATINGS_PER_ROW * m, RANK, device)


def _rounds(d: int, device: str) -> Callable[[], Any]:
    """Some rounds of POLD on the l1 ball with fresh random linear losses."""
    rng = np.random.default_rng(0)
    gradients = [rng.standard_normal(d) for _ in range(ROUNDS)]
    learner = dw.POLD(dw.L1Ball(d, device=device), horizon=1000)
    return lambda: [learner.update(dw.losses.LinearLoss(g)) for g in gradients]


# -- the smallest sizes that `device="auto"` takes to a GPU ------------------------------------------------

#: Lengths of vectors and sides of matrices, by `short`.
LENGTH = {True: 50, False: DEVICE_SIZE}
SIDE = {True: 40, False: math.isqrt(DEVICE_ENTRIES - 1) + 1}
#: Rounds timed together, and repeats.
VECTORS, MATRICES = (6, 3), (4, 1)
ROWS, TRUE_RANK = 4, 5
HORIZON = 1000

ENSEMBLES: dict[str, Callable[[Any], dw.Learner]] = {
    "POLD": lambda domain: dw.POLD(domain, horizon=HORIZON),
    "POLA": dw.POLA,
    "Ader": lambda domain: dw.Ader(domain, horizon=HORIZON),
    "SAOL": dw.learners.SAOL,
}
OF_MATRICES: dict[str, Callable[[Any], dw.Learner]] = {
    "POLD": ENSEMBLES["POLD"],
    "POLA": dw.POLA,
    "POLD(lmo_budget=1)": lambda domain: dw.POLD(
        domain, horizon=HORIZON, oracle=dw.Oracle(lmo_budget=1.0)
    ),
    "BOGDIP": lambda domain: dw.BOGDIP(domain, horizon=10),  # its blocks end within these rounds
    "OnlineFrankWolfe": lambda domain: dw.OnlineFrankWolfe(domain, horizon=HORIZON),
    "KalhanOFW": dw.learners.KalhanOFW,
    "LineSearchOFW": lambda domain: dw.learners.LineSearchOFW(domain, smoothness=2.0),
}
SETS: dict[str, Callable[[int, str], dw.Domain]] = {
    "L2Ball": lambda d, device: dw.L2Ball(d, device=device),
    "L1Ball": lambda d, device: dw.L1Ball(d, device=device),
    "LinfBall": lambda d, device: dw.LinfBall(d, device=device),
    "Box": lambda d, device: dw.Box(-np.ones(d), np.ones(d), device=device),
    "Simplex": lambda d, device: dw.Simplex(d, device=device),
}
LOSSES: dict[str, Callable[[np.random.Generator, int], losses.Loss]] = {
    "linear": lambda rng, d: losses.LinearLoss(rng.standard_normal(d)),
    "distance": lambda rng, d: losses.SquaredDistance(rng.standard_normal(d)),
    "logistic": lambda rng, d: losses.LogisticLoss(
        rng.standard_normal((ROWS, d)), rng.choice([-1.0, 1.0], ROWS)
    ),
}


def auto(setting: Setting, done: dict[str, Any]) -> dict[str, Any]:
    """All learners and losses on the L2 ball, which is fastest on the host, and the other sets."""
    d, m = LENGTH[setting.short], SIDE[setting.short]
    games = [(name, "L2Ball", kind) for name in ENSEMBLES for kind in LOSSES]
    games += [(name, each, "linear") for each in list(SETS)[1:] for name in ("POLD", "POLA")]
    vectors = [
        {"name": f"{name} on {each}, {kind}"}
        | compared(partial(_vectors, name, each, kind, d), setting.device)
        for name, each, kind in games
    ]
    matrices = [
        {"name": f"{name} on TraceNormBall"} | compared(partial(_matrices, name, m), setting.device)
        for name in OF_MATRICES
    ]
    return {"length": d, "side": m, "games": [*vectors, *matrices]}


def _vectors(name: str, domain: str, kind: str, d: int, device: str) -> float:
    """Milliseconds per round on vectors."""
    learner, rng = ENSEMBLES[name](SETS[domain](d, device)), np.random.default_rng(0)
    return _round_ms(learner, lambda: LOSSES[kind](rng, d), device, *VECTORS)


def _matrices(name: str, m: int, device: str) -> float:
    """Milliseconds per round: noisy entries of a low-rank matrix outside the ball."""
    rng = np.random.default_rng(0)
    left, right = (rng.standard_normal((m, TRUE_RANK)) for _ in range(2))

    def loss() -> losses.Loss:
        rows, cols = (rng.integers(m, size=RATINGS_PER_ROW * m) for _ in range(2))
        truth = np.einsum("ij,ij->i", left[rows], right[cols])
        return losses.AbsoluteEntries(rows, cols, truth + 0.3 * rng.standard_normal(rows.size))

    ball = dw.TraceNormBall((m, m), 0.25 * m, representation="factored", device=device)
    return _round_ms(OF_MATRICES[name](ball), loss, device, *MATRICES)


def _round_ms(
    learner: dw.Learner, loss: Callable[[], losses.Loss], device: str, rounds: int, repeats: int
) -> float:
    """Median milliseconds per round; losses are made first, and not on a device yet."""
    games = iter([[loss() for _ in range(rounds)] for _ in range(1 + repeats)])
    return median_ms(lambda: dw.play(learner, next(games)), device, repeats, 1) / rounds

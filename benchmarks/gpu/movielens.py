"""MovieLens 100K in the paper's setting, on the device and on two cores."""

from __future__ import annotations

import os
from typing import Any

import driftwolfe as dw
from benchmarks import data
from benchmarks.gpu.games import warm_up
from benchmarks.gpu.setting import Setting
from benchmarks.gpu.timing import THREADS, timed, two_cores
from benchmarks.measure import threads
from benchmarks.skipped import Skipped

HORIZON, STEP_SCALE = 3000, 1e4
#: Rounds that are played, short or not.
ROUNDS = {True: 5, False: HORIZON}


def measure(setting: Setting, done: dict[str, Any]) -> dict[str, Any]:
    """The same game on both."""
    if "DRIFTWOLFE_DATA" not in os.environ:
        raise Skipped("DRIFTWOLFE_DATA does not say where ml-100k lies")
    rounds = ROUNDS[setting.short]
    with two_cores():
        here = _played("cpu", rounds)
    with threads(THREADS):
        there = _played(setting.device, rounds)
    return {
        "rounds": rounds,
        "host": here,
        "device": there,
        "difference_of_losses": abs(there["loss"] - here["loss"]) / here["loss"],
    }


def _played(device: str, rounds: int) -> dict[str, float]:
    warm_up(device)
    stream = data.movielens()
    ball = dw.TraceNormBall(stream.domain.shape, stream.domain.scale, device=device)
    learner = dw.POLD(ball, horizon=HORIZON, step_scale=STEP_SCALE, grid="experiment")
    losses = [stream[t] for t in range(rounds)]
    history, took = timed(lambda: dw.play(learner, losses), device)
    return {"seconds": took, "loss": float(history.losses.sum())}

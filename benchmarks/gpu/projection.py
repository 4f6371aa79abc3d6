"""A projection on the device against one on two cores, from the same saved learner."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import driftwolfe as dw
from benchmarks.gpu.games import Game, games, projections, warm_up
from benchmarks.gpu.setting import Setting
from benchmarks.gpu.timing import THREADS, timed, two_cores
from benchmarks.measure import threads

#: Rounds after the opening, short or not.
ROUNDS = {True: 4, False: 12}


def measure(setting: Setting, done: dict[str, Any]) -> dict[str, Any]:
    """The rounds after the opening of the wide game, on both."""
    game, rounds = games(setting.short)["wide"], ROUNDS[setting.short]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "learner.safetensors"
        with threads(THREADS):
            game.opened(setting.device).save(path)
            there = _played(path, game, rounds, setting.device)
        with two_cores():
            warm_up("cpu")
            here = _played(path, game, rounds, "cpu")
    return {
        "rounds": rounds,
        "opening": game.opening,
        "host": here,
        "device": there,
        "ratio": here["projection_ms"] / there["projection_ms"],
        "difference_of_losses": abs(there["loss"] - here["loss"]) / here["loss"],
    }


def _played(path: Path, game: Game, rounds: int, device: str) -> dict[str, Any]:
    learner = dw.load(path, device=device)
    before = projections(learner)
    losses = game.losses(game.opening + rounds, game.opening)
    history, took = timed(lambda: dw.play(learner, losses), device)
    made = projections(learner) - before
    return {
        "seconds": took,
        "projections": made,
        "projection_ms": 1e3 * took / made,
        "loss": float(history.losses.sum()),
    }

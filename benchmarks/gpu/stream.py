"""The large stream, all rounds: time, memory, ranks and what is learned."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import driftwolfe as dw
from benchmarks.gpu.games import Game, games, projections
from benchmarks.gpu.setting import Setting
from benchmarks.gpu.timing import THREADS, timed
from benchmarks.measure import threads

#: Rounds of another learner before the clock starts.
WARM_UP = 40


def measure(setting: Setting, done: dict[str, Any]) -> dict[str, Any]:
    """Both games from their first round to their last."""
    with threads(THREADS):
        return {name: _played(game, setting) for name, game in games(setting.short).items()}


def _played(game: Game, setting: Setting) -> dict[str, Any]:
    first = game.losses(min(WARM_UP, game.rounds))
    dw.play(game.learner(setting.device), first, keep_losses=False)
    learner, losses = game.learner(setting.device), game.losses(game.rounds)
    if setting.on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(setting.place)
    history, took = timed(lambda: dw.play(learner, losses), setting.device)
    experts, made = learner._experts, projections(learner)
    result = {
        "seconds": took,
        "rounds": len(losses),
        "entries_a_round": game.stream[1],
        "shape": list(game.stream[0]),
        "projections": made,
        "projection_ms": 1e3 * took / made,
        "mean_loss": float(history.losses.sum()) / (len(losses) * game.stream[1]),
        "mean_loss_of_zero": float(np.mean([np.abs(loss.targets).mean() for loss in losses])),
        "ranks": [x.rank for x in experts.x],
        "blocks": experts.blocks.tolist(),
        "threads": THREADS,
    }
    if setting.on_gpu:
        result["peak_gib"] = torch.cuda.max_memory_allocated(setting.place) / 2**30
    return result

"""Games on the device: the large stream, a projection against two cores, MovieLens 100K."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

import driftwolfe as dw
from benchmarks import data, large_matrix
from benchmarks.gpu.setting import THREADS, Setting, timed, two_cores
from benchmarks.measure import Skipped, threads

#: The tiny stream: shape, entries per round, rounds.
TINY = ((810, 310), 125, 12)


@dataclass(frozen=True)
class Game:
    """A learner and the stream that it plays.

    Attributes
    ----------
    learner
        Makes the learner for a device.
    stream
        Shape, entries per round, rounds.
    opening, profiled
        Rounds before the profiled ones, and number of those.
    """

    learner: Callable[[str], dw.POLD]
    stream: tuple[tuple[int, int], int, int]
    opening: int
    profiled: int

    @property
    def rounds(self) -> int:
        """Rounds of the whole game."""
        return self.stream[2]

    def losses(self, stop: int, start: int = 0) -> list[Any]:
        """Fresh losses of some rounds: none of them is on a device yet."""
        shape, per_round, _ = self.stream
        return list(islice(large_matrix.stream(shape, per_round, stop), start, None))

    def opened(self, device: str) -> dw.POLD:
        """The learner after its opening."""
        learner = self.learner(device)
        dw.play(learner, self.losses(self.opening), keep_losses=False)
        return learner


def games(short: bool) -> dict[str, Game]:
    """POLD with high ranks, and with low ones as in the row `scale`."""
    if short:
        wide, low = _tiny_pold(150.0, 60.0), _tiny_pold(15.0, 45.0)
        return {"wide": Game(wide, TINY, 4, 3), "low": Game(low, TINY, 4, 3)}
    stream = (large_matrix.SHAPE, large_matrix.PER_ROUND, large_matrix.HORIZON)
    return {
        "wide": Game(large_matrix.pold_wide, stream, 100, 60),
        "low": Game(large_matrix.pold, stream, 100, 60),
    }


def warm_up(device: str) -> None:
    """Compile and load what the games need, on a tiny one."""
    games(short=True)["wide"].opened(device)


def projections(learner: dw.POLD) -> int:
    """Projections made by the experts so far."""
    return int(learner._experts.projections)


def _tiny_pold(radius: float, scale: float) -> Callable[[str], dw.POLD]:
    def make(device: str) -> dw.POLD:
        ball = dw.TraceNormBall(TINY[0], radius, device=device)
        return dw.POLD(ball, horizon=TINY[2], step_scale=scale)

    return make


# -- the sections ---------------------------------------------------------------------------------------

#: Rounds of another learner before the clock starts.
WARM_UP = 40


def stream(setting: Setting, done: dict[str, Any]) -> dict[str, Any]:
    """Both games in full: time, memory, ranks and losses."""
    with threads(THREADS):
        return {name: _play_whole(game, setting) for name, game in games(setting.short).items()}


def _play_whole(game: Game, setting: Setting) -> dict[str, Any]:
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


#: Rounds after the opening, by `short`.
PROJECTION_ROUNDS = {True: 4, False: 12}


def projection(setting: Setting, done: dict[str, Any]) -> dict[str, Any]:
    """One saved learner continues on the device and on two cores."""
    game, rounds = games(setting.short)["wide"], PROJECTION_ROUNDS[setting.short]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "learner.safetensors"
        with threads(THREADS):
            game.opened(setting.device).save(path)
            there = _play_on(path, game, rounds, setting.device)
        with two_cores():
            warm_up("cpu")
            here = _play_on(path, game, rounds, "cpu")
    return {
        "rounds": rounds,
        "opening": game.opening,
        "host": here,
        "device": there,
        "ratio": here["projection_ms"] / there["projection_ms"],
        "difference_of_losses": abs(there["loss"] - here["loss"]) / here["loss"],
    }


def _play_on(path: Path, game: Game, rounds: int, device: str) -> dict[str, Any]:
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


HORIZON, STEP_SCALE = 3000, 1e4
#: Rounds, by `short`.
MOVIELENS_ROUNDS = {True: 5, False: HORIZON}


def movielens(setting: Setting, done: dict[str, Any]) -> dict[str, Any]:
    """MovieLens 100K in the paper's setting, on the device and on two cores."""
    if "DRIFTWOLFE_DATA" not in os.environ:
        raise Skipped("DRIFTWOLFE_DATA does not say where ml-100k lies")
    rounds = MOVIELENS_ROUNDS[setting.short]
    with two_cores():
        here = _play_movielens("cpu", rounds)
    with threads(THREADS):
        there = _play_movielens(setting.device, rounds)
    return {
        "rounds": rounds,
        "host": here,
        "device": there,
        "difference_of_losses": abs(there["loss"] - here["loss"]) / here["loss"],
    }


def _play_movielens(device: str, rounds: int) -> dict[str, float]:
    warm_up(device)
    stream = data.movielens()
    ball = dw.TraceNormBall(stream.domain.shape, stream.domain.scale, device=device)
    learner = dw.POLD(ball, horizon=HORIZON, step_scale=STEP_SCALE, grid="experiment")
    losses = [stream[t] for t in range(rounds)]
    history, took = timed(lambda: dw.play(learner, losses), device)
    return {"seconds": took, "loss": float(history.losses.sum())}

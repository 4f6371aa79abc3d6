"""POLD and POLAR on the large stream that can be learned: low rank plus noise, long-tailed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import torch

import driftwolfe as dw
from benchmarks import large_matrix
from benchmarks.gpu.floors import Meter
from benchmarks.gpu.games import TINY, projections
from benchmarks.gpu.setting import THREADS, Setting, timed
from benchmarks.measure import threads

#: POLAR, which has nothing to tune, and POLD with two step scales c, in radii: the best for the loss of
#: the few that were tried on this stream, and that of the game with wide ranks. With its default, D over
#: the largest gradient, experts with long blocks need higher ranks than a projection takes.
STEP_SCALES = {"POLAR": None, "POLD, c = 0.3 radius": 0.3, "POLD, c = radius / 25": 0.04}
#: Rounds before the metered ones, and number of those, by `short`.
METERED = {True: (4, 8), False: (250, 50)}
#: Rounds of another learner before the clock starts.
WARM_UP = 40


def learning(setting: Setting, done: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The learners on one stream and ball: losses by tenths, time, memory, calls; one more each time."""
    full = large_matrix.SHAPE, large_matrix.PER_ROUND, large_matrix.HORIZON
    stream = TINY if setting.short else full
    shape, per_round, rounds = stream
    radius = large_matrix.LEARNABLE_RADIUS
    if setting.short:
        radius *= math.sqrt(math.prod(shape) / math.prod(large_matrix.SHAPE))
    zero = [float(np.abs(loss.targets).mean()) for loss in large_matrix.learnable(*stream)]
    facts = {
        "shape": list(shape),
        "rounds": rounds,
        "entries_a_round": per_round,
        "radius": radius,
        "mean_loss_of_zero": float(np.mean(zero)),
        "mean_loss_of_truth": large_matrix.NOISE * math.sqrt(2 / math.pi),
    }
    learners: dict[str, Any] = {}
    for name, step_scale in STEP_SCALES.items():
        make = partial(_learner, shape, radius, rounds, setting.device, step_scale)
        learners[name] = _played(make, stream, setting)
        yield {**facts, "learners": dict(learners)}


def _learner(
    shape: tuple[int, int], radius: float, rounds: int, device: str, step_scale: float | None
) -> Any:
    """POLAR, or POLD with a step scale in radii."""
    ball = dw.TraceNormBall(shape, radius, device=device)
    if step_scale is None:
        return dw.POLAR(ball)
    return dw.POLD(ball, horizon=rounds, step_scale=step_scale * radius)


def _played(make: Callable[[], Any], stream: Any, setting: Setting) -> dict[str, Any]:
    shape, per_round, rounds = stream
    _update(make(), large_matrix.learnable(shape, per_round, min(WARM_UP, rounds)))
    learner, losses = make(), list(large_matrix.learnable(*stream))
    if setting.on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(setting.place)
    with threads(THREADS):
        history, took = timed(lambda: dw.play(learner, losses), setting.device)
    result = {
        "seconds": took,
        "projections": projections(learner),
        "mean_loss": float(history.losses.mean()) / per_round,
        "tenths": [float(part.mean()) / per_round for part in np.array_split(history.losses, 10)],
        "ranks": [x.rank for x in learner._experts.x],
        "blocks": learner._experts.blocks.tolist(),
        "threads": THREADS,
    }
    if setting.on_gpu:
        result["peak_gib"] = torch.cuda.max_memory_allocated(setting.place) / 2**30
    return result | {"calls": _calls(make(), stream, setting.short)}


def _calls(learner: Any, stream: Any, short: bool) -> float:
    """Calls of PyTorch that are more than a view, per projection, in some rounds of one thread."""
    opening, metered = METERED[short]
    shape, per_round, _ = stream
    losses = large_matrix.learnable(shape, per_round, opening + metered)
    with threads(1):  # a meter records only its own thread
        _update(learner, islice(losses, opening))
        before = projections(learner)
        with Meter() as meter:
            _update(learner, losses)
    return meter.calls.total() / max(1, projections(learner) - before)


def _update(learner: Any, losses: Iterable[Any]) -> None:
    for loss in losses:
        learner.update(loss)

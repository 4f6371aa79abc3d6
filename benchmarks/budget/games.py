"""One game each: what was played, and what became of it."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

import driftwolfe as dw
from benchmarks.budget.settings import Setting
from benchmarks.budget.streams import Size, windows
from driftwolfe.streams.stream import Stream

#: Rounds played beforehand by a learner of the same kind, so that nothing is compiled on the clock.
WARM_UP = 8
#: Relative gap of offline minima.
TOLERANCE = 1e-5
#: A learner that stays at the start suffers the guarantee to the last digit, or the last but one.
ROUNDING = 1e-12


def minima(stream: Stream, size: Size) -> dict[str, Any]:
    """The best fixed point's loss over the game and over each window, and the truth's."""
    found = [
        dw.regret.offline_minimum(stream.domain, stream.losses[a:b], tolerance=TOLERANCE)
        for a, b in windows(stream, size)
    ]
    truth = (f.value(u) for f, u in zip(stream.losses, stream.comparators, strict=True))
    return {
        "rounds": size.rounds,
        "window": size.window,
        "every": size.every,
        "truth": math.fsum(truth),
        "minima": [best.value for best in found],
        "largest_gap": max(best.gap for best in found),
    }


def regrets(losses: np.ndarray, stream: Stream, size: Size, best: dict[str, Any]) -> dict[str, Any]:
    """Static, dynamic and worst-window regret of what was suffered."""
    sums = np.concatenate([[0.0], np.cumsum(losses)])
    suffered = [sums[b] - sums[a] for a, b in windows(stream, size)]
    each = np.array(suffered) - np.array(best["minima"])
    return {
        "static_regret": float(each[0]),
        "dynamic_regret": float(sums[-1] - best["truth"]),
        "window_regret": float(each[1:].max()),
    }


def play(setting: Setting, stream: Stream) -> tuple[dict[str, Any], np.ndarray]:
    """The record of a game without its regrets, and the losses suffered."""
    assert stream.domain is not None
    given = (stream.domain, len(stream), stream.lipschitz)
    dw.play(setting.make(*given), stream[:WARM_UP], keep_losses=False, progress=False)
    learner = setting.make(*given)
    started = time.process_time()
    history = dw.play(learner, stream, keep_losses=False, progress=False)
    seconds = time.process_time() - started
    record = {
        "stream": stream.name,
        **setting.record(),
        "rounds": len(stream),
        "lmo_calls": int(history.lmo.sum()),
        "worst_round": int(history.lmo.max()),
        "projections": int(history.projection.sum()),
        "loss": float(history.losses.sum()),
        "seconds": round(seconds, 3),
    }
    _keep_to_the_budget(setting, history.lmo)
    return record, history.losses


def _keep_to_the_budget(setting: Setting, calls: np.ndarray) -> None:
    """Refuse a game that spent more than it had, at any time."""
    if setting.budget is None:
        return
    allowed = setting.budget * np.arange(1, len(calls) + 1)
    if (np.cumsum(calls) > allowed + 1e-6).any():
        raise AssertionError(f"{setting.key} made more linear minimisations than its budget")
    if setting.kind == "even" and calls.max() > math.ceil(setting.budget):
        raise AssertionError(f"{setting.key} made too many linear minimisations in one round")


def resist(title: str, setting: Setting, rounds: int, budget: float) -> dict[str, Any]:
    """A game against `ResistingOracle`: measured regret between what no one can beat and the bound."""
    game = dw.streams.ResistingOracle(rounds, budget)
    learner = setting.make(game.domain, rounds, game.lipschitz)
    started = time.process_time()
    history = dw.play(learner, game.losses(learner), keep_losses=False, progress=False)
    record = {
        "stream": "resisting oracle",
        **setting.record(),
        "title": title,
        "budget": budget,
        "rounds": rounds,
        "lmo_calls": int(history.lmo.sum()),
        "worst_round": int(history.lmo.max()),
        "static_regret": game.lower_bound,
        "guarantee": game.guarantee,
        "bound": float(learner.bound()),
        "seconds": round(time.process_time() - started, 3),
    }
    _keep_to_the_budget(setting, history.lmo)
    low, high = record["guarantee"] * (1 - ROUNDING), record["bound"]
    if not low <= record["static_regret"] <= high:
        raise AssertionError(f"{title} left its bounds: {record}")
    return record

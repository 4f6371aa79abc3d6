"""Run one trial, and note the machine it ran on."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from driftwolfe import learners, regret
from driftwolfe.ensemble import threads
from driftwolfe.experiments.machine import facts
from driftwolfe.experiments.trial import AdaptiveRegret, Result, Trial, Weights
from driftwolfe.game import play
from driftwolfe.learners.base import Learner
from driftwolfe.losses import Loss
from driftwolfe.streams import Stream
from driftwolfe.streams.data_files import Folder

#: Rounds between readings of the curves, and readings of the curves per reading of the weights.
_EVERY, _WEIGHTS_EVERY = 10, 2
#: Offline minima for the adaptive regret are found to this share of their value.
_REGRET_TOLERANCE = 1e-3
#: Ader's steps are c 2^(i-1) sqrt(7/(2T)), those of the paper's experiments c 2^(i-1) T^(-1/2).
_ADER = 1.0 / math.sqrt(3.5)


def run_trial(trial: Trial, folder: Folder | None = None) -> Result:
    """Play the trial's learner on one thread, and measure.

    `folder` holds the real data; by default they are looked for as `driftwolfe.streams` says.

    >>> from driftwolfe.experiments.trial import DataSet
    >>> trial = Trial(method="OGD", data=DataSet(name="jumping-target", rounds=40))
    >>> result = run_trial(trial)
    >>> result.rounds, result.projection
    ([10, 20, 30, 40], [10, 20, 30, 40])
    """
    started = time.perf_counter()
    stream = trial.data.load(trial.seed, folder)
    with threadpool_limits(1):
        before = threads.chosen()
        threads.set_threads(1)
        try:
            return _measured(trial, stream, started)
        finally:
            threads.set_threads(before)


def make_learner(trial: Trial, stream: Stream) -> Learner:
    """The trial's learner, for that stream."""
    options = {**step_options(trial.method, trial.c), **trial.options}
    learner: Learner = getattr(learners, trial.method)(
        stream.domain, horizon=len(stream), lipschitz=stream.lipschitz, **options
    )
    return learner


def step_options(method: str, c: float | None) -> dict[str, Any]:
    """The options that give a learner the steps of the paper's experiments.

    Those are c 2^(i-1) T^(-3/4) in POLD, c T^(-3/4) in BOGD_IP, c 2^(i-1) T^(-1/2) in Ader,
    c |I|^(-3/4) in POLA, c |I|^(-1/2) in PAMO, and c gamma^(-1/2) in Multi-OCG.

    >>> step_options("POLD", 1e4)
    {'step_scale': 10000.0, 'grid': 'experiment'}
    """
    if c is None:
        return {}
    if method == "POLD":
        return {"step_scale": c, "grid": "experiment"}
    return {"step_scale": c * _ADER if method == "Ader" else c}


def _measured(trial: Trial, stream: Stream, started: float) -> Result:
    played = stream if trial.first is None else stream[: trial.first]
    if too_long := [tau for tau in trial.taus if tau > len(played)]:
        raise ValueError(f"taus must be at most the {len(played)} rounds, got {too_long[0]}")
    readings = _Readings(make_learner(trial, stream), played, trial.limit)
    history = play(readings.learner, readings, keep_losses=bool(trial.taus), progress=False)
    adaptive = []
    for tau in trial.taus:
        if tau <= len(history):  # where time ran out there may be no such window
            found = regret.adaptive_regret(history, tau, _REGRET_TOLERANCE)
            window = (found.window[0], found.window[1])
            adaptive.append(AdaptiveRegret(tau, float(found), found.gap, window))
    at = np.array(readings.rounds) - 1
    return Result(
        trial=trial,
        rounds=readings.rounds,
        loss=history.cumulative_loss[at].tolist(),
        seconds=readings.seconds,
        **{name: np.cumsum(calls)[at].tolist() for name, calls in history.oracle_calls.items()},
        drifts=[t for t in stream.drifts if t < len(history)],
        stream=stream.name,
        cut=len(history) < len(played),
        adaptive=adaptive,
        weights=readings.weights(),
        wall=round(time.perf_counter() - started, 3),
        environment=facts(),
    )


class _Readings:
    """Hands out losses until the time limit; reads processor time and weights now and then."""

    def __init__(self, learner: Learner, losses: Stream, limit: float | None) -> None:
        self.learner, self.losses, self.limit = learner, losses, limit or math.inf
        self.rounds: list[int] = []
        self.seconds: list[float] = []
        self._weights: dict[int, dict[str, float]] = {}

    def __iter__(self) -> Iterator[Loss]:
        spent = 0.0
        self._read_weights()
        since = time.thread_time()
        for t, loss in enumerate(self.losses, start=1):
            yield loss
            over = spent + time.thread_time() - since > self.limit
            last = over or t == len(self.losses)
            if t % _EVERY == 0 or last:
                spent += time.thread_time() - since
                self.rounds.append(t)
                self.seconds.append(round(spent, 6))
                if last or len(self.rounds) % _WEIGHTS_EVERY == 0:
                    self._read_weights()
                since = time.thread_time()
            if over:
                return

    def _read_weights(self) -> None:
        weights, names = self.learner.expert_weights, self.learner.expert_names
        if weights is not None and names is not None:
            self._weights[self.learner.t] = dict(zip(names, weights.tolist(), strict=True))

    def weights(self) -> Weights | None:
        """All readings as one table; experts in the order in which they came."""
        if not self._weights:
            return None
        experts = list(dict.fromkeys(name for read in self._weights.values() for name in read))
        values = [
            [round(read[name], 5) if name in read else None for name in experts]
            for read in self._weights.values()
        ]
        return Weights(list(self._weights), experts, values)

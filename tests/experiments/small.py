"""Small trials, an executor in this process, and scripts that run sweeps in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from driftwolfe.experiments.running import run_trial
from driftwolfe.experiments.summary import RegretRow, Summary, summarise
from driftwolfe.experiments.trial import DataSet, Result, StoredWeights, Trial
from driftwolfe.terminal import Spread

DATA = DataSet(name="jumping-target", rounds=40)


def trial(method: str = "OGD", **fields: Any) -> Trial:
    return Trial(method=method, **{"data": DATA, **fields})


def made_up(given: Trial | None = None, **fields: Any) -> Result:
    """A result that nothing was run for."""
    curve = [1, 2, 3]
    made = {
        "trial": given or trial(),
        "rounds": [10, 20, 30],
        "loss": [1.0, 1.5, 1.75],
        "seconds": [0.1, 0.2, 0.3],
        "lmo": curve,
        "projection": curve,
        "gauge": curve,
        "drifts": [10],
        "stream": "made up",
        "wall": 0.5,
        "environment": {"python": "3"},
    }
    return Result(**{**made, **fields})


def result(loss, method="POLD", seed=0, every=10, seconds=1.0, **options):
    """A result whose cumulative loss was read every so many rounds; `seconds` for each reading."""
    fields = {name: options.pop(name) for name in ("adaptive",) if name in options}
    data = options.pop("data", DataSet(name="jumping-target"))
    at, calls = range(1, len(loss) + 1), [0] * len(loss)
    return made_up(
        Trial(method=method, data=data, seed=seed, **options),
        rounds=[every * i for i in at],
        loss=loss,
        seconds=[seconds * i for i in at],
        lmo=[2 * every * i for i in at],
        projection=calls,
        gauge=calls,
        **{"drifts": [], "stream": "by hand", "environment": {}, **fields},
    )


def as_plain(result: Result) -> dict[str, Any]:
    """The content of a result's file, to be spoilt."""
    return msgspec.json.decode(result.encode())


def outcome_of(result: Result) -> dict[str, Any]:
    """All that must be the same wherever a trial is run."""
    clocks = {"seconds", "wall", "environment"}
    return {name: value for name, value in as_plain(result).items() if name not in clocks}


class Here:
    """Makes executors that run one trial after the other in this process; remembers the trials."""

    def __init__(self) -> None:
        self.given: list[Trial] = []

    def __call__(self) -> Executor:
        return _Thread(self.given)


class _Thread(ThreadPoolExecutor):
    def __init__(self, given: list[Trial]) -> None:
        super().__init__(1)
        self.given = given

    def submit(self, call: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        self.given.append(msgspec.json.decode(arguments[0], type=Trial))
        return super().submit(call, *arguments)


def until(ready: Callable[[], Any], what: str, seconds: float = 60.0) -> Any:
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while not (answer := ready()):
        assert time.monotonic() < end, f"{what} took more than {seconds} seconds"
        time.sleep(0.02)
    return answer


@contextmanager
def hears_ctrl_c() -> Iterator[None]:
    """Processes that are started within hear Ctrl-C, even where this one does not.

    A shell that is no terminal ignores it for what it runs in the background, and children inherit
    that. A handler they do not: a new program starts with the default in its place.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def script(path: Path, text: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """A Python script in a session of its own, none of which outlives the test."""
    path.write_text(text)
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "error"}
    with hears_ctrl_c():
        running = subprocess.Popen(
            [sys.executable, str(path), *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,
        )
    try:
        yield running
    finally:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.communicate()


def alive_in_session(session: int) -> list[int]:
    """Processes of a session, zombies left out."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        with suppress(OSError):
            # After the name, which is in brackets: state, parent, group, session.
            state, _, _, of = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(of) == session and state not in "ZX":
                found.append(int(folder.name))
    return found


RUN = DataSet(name="jumping-target", rounds=120)
TWIN = "MovieLens 100K (synthetic twin)"


@cache
def played() -> Summary:
    """Four methods on 120 rounds, one of them with three values of c."""
    trials = [
        Trial(method=method, data=RUN, seed=seed, label=label)
        for method, label in (("OGD", ""), ("POLA", ""), ("BOGDIP", "BOGD_IP"))
        for seed in (0, 1)
    ]
    trials += [Trial(method="POLD", data=RUN, c=c) for c in (0.1, 1.0, 10.0)]
    trials += [Trial(method="POLD", data=RUN, c=1.0, seed=1)]
    (summary,) = summarise([run_trial(trial) for trial in trials])
    return summary


def regrets(summary: Summary) -> list[RegretRow]:
    """Numbers in place of regrets; of one method less is known."""
    rows = [
        RegretRow(
            title,
            Spread(10.0 + i, 1.0),
            {20: Spread(3.0 + i, 0.5), 60: Spread(6.0 + i, 0.0)},
            summary.chosen[title].curve("loss") / 2.0,
        )
        for i, title in enumerate(summary.titles)
    ]
    return [RegretRow(rows[0].title, None, {20: Spread(2.0, 0.25)}), *rows[1:]]


def made(
    title: str,
    *,
    seed: int = 0,
    rounds: int = 300,
    every: int = 10,
    level: float = 1.0,
    speed: float = 0.01,
    experts: int = 0,
    stream: str = TWIN,
    c: float | None = None,
) -> Result:
    """A result to draw, of any size and name."""
    rng = np.random.default_rng(seed)
    at = np.arange(every, rounds + 1, every)
    noise = 1.0 + 0.1 * rng.standard_normal(at.size)
    weights = rng.dirichlet(np.ones(max(1, experts)), size=at.size)
    return made_up(
        Trial(method="POLD", data=RUN, seed=seed, label=title, c=c),
        rounds=at.tolist(),
        loss=np.cumsum(level * every * noise).tolist(),
        seconds=(speed * at * noise).tolist(),
        lmo=(3 * at).tolist(),
        projection=(0 * at).tolist(),
        gauge=(0 * at).tolist(),
        drifts=[rounds // 3, 2 * rounds // 3],
        stream=stream,
        weights=_weights(at, weights) if experts else None,
        wall=1.0,
        environment={"cpu": "an abacus", "python": "3", "date": f"2026-01-0{seed + 1}T00:00:00"},
    )


def _weights(at: np.ndarray, values: np.ndarray) -> StoredWeights:
    """Experts in falling order; the largest asleep in the first line_style."""
    names = [f"{2**i:,} rounds" for i in reversed(range(values.shape[1]))]
    rows: list[list[float | None]] = values.round(5).tolist()
    rows[0][0] = None
    return StoredWeights(at.tolist(), names, rows)


def summary_of(results: Sequence[Result]) -> Summary:
    (summary,) = summarise(results)
    return summary

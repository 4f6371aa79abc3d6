"""Losses of the long runs: `results/long.json`, kept with the code."""

from __future__ import annotations

import fcntl
import json
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.output import write_json

PATH = Path(__file__).parent / "results" / "long.json"
#: Rounds between two stored losses.
EVERY = 50


def records() -> dict[str, Any]:
    """All long runs by name, finished or not."""
    return json.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}


def record(name: str) -> dict[str, Any] | None:
    """One long run, or None if it was never started."""
    return records().get(name)


def save(name: str, content: dict[str, Any]) -> None:
    """Store one run and keep the others, also if several processes do so at once."""
    with _locked():
        write_json(PATH, dict(sorted((records() | {name: content}).items())))


def loss_at(content: dict[str, Any], rounds: int) -> float | None:
    """The cumulative loss of a run after that many rounds, if it was stored."""
    place, beside = divmod(rounds, EVERY)
    if beside or not 0 < place <= len(content["cumulative_loss"]):
        return None
    return content["cumulative_loss"][place - 1]


def best(prefix: str, most: int) -> tuple[str, dict[str, Any], int] | None:
    """The run with the smallest loss among names with this prefix, and after how many rounds.

    Runs are compared after as many rounds as the longest has, at most `most`.
    """
    runs = {name: run for name, run in records().items() if name.startswith(prefix)}
    rounds = min(most, max((run["rounds"] for run in runs.values()), default=0)) // EVERY * EVERY
    losses = {name: loss_at(run, rounds) for name, run in runs.items()}
    known = {name: loss for name, loss in losses.items() if loss is not None}
    if not known:
        return None
    name = min(known, key=known.__getitem__)
    return name, runs[name], rounds


def source(name: str, content: dict[str, Any]) -> str:
    """Name, date and commit of a stored run."""
    return f"{name}: stored on {content['date'][:10]}, commit {content['commit']}"


@contextmanager
def _locked():
    PATH.parent.mkdir(parents=True, exist_ok=True)
    with (PATH.parent / ".long.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

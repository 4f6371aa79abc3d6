"""The result of a trial, and the machine it was measured on."""

from __future__ import annotations

import math
import os
import platform
import subprocess
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from threadpoolctl import threadpool_info

from driftwolfe.experiments.trial import Trial

PACKAGES = ("driftwolfe", "numpy", "scipy", "numba")
#: Lists changed files, without a lock that a commit made meanwhile would trip over.
_CHANGES = ("git", "--no-optional-locks", "status", "--porcelain")


def facts(packages: Iterable[str] = PACKAGES) -> dict[str, Any]:
    """The machine, the versions, the threads, the time and the commit."""
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "memory_gib": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: _version(name) for name in packages},
        "blas": [
            {key: pool.get(key) for key in ("internal_api", "version", "num_threads")}
            for pool in sorted(threadpool_info(), key=lambda pool: str(pool.get("version")))
        ],
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
    }


def cpu_model() -> str:
    """The name of the processor, as far as the system tells it."""
    for line in _output("lscpu").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "Model name":
            return value.strip()
    return platform.processor() or platform.machine()


def commit() -> str | None:
    """The commit of the checkout, with a plus sign where files differ from it; None outside one."""
    name = _output("git", "rev-parse", "--short", "HEAD").strip()
    return name + ("+" if _output(*_CHANGES).strip() else "") or None


def _memory() -> float | None:
    """Gibibytes of memory, where the system tells."""
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _output(*command: str) -> str:
    """What a command of the system prints about the folder of this file; nothing if it fails."""
    folder = Path(__file__).resolve().parent
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


FORMAT = "driftwolfe result 1"


class Weights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Expert weights in some rounds.

    Attributes
    ----------
    rounds
        When they were looked at: before the first round, 0, and after others.
    experts
        What each expert is, see `Learner.expert_names`.
    values
        A row a round, an entry an expert; None where it was not awake.
    """

    rounds: list[int]
    experts: list[str]
    values: list[list[float | None]]


class AdaptiveRegret(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The largest regret over windows of a length; it lies between value and value + gap.

    Attributes
    ----------
    tau
        Length of the windows.
    value, gap
        The regret and the width of its certified interval.
    window
        The worst window: its first round, counted from 0, and the one after its last.
    """

    tau: int
    value: float
    gap: float
    window: tuple[int, int]


class Result(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The curves of a trial, and what it ran on.

    Attributes
    ----------
    trial
        What was run.
    rounds
        Numbers of rounds after which the curves were read, rising; the last is all that were played.
    loss
        Cumulative loss after each.
    seconds
        Processor seconds of one thread, spent on the learner's updates, up to each.
    lmo, projection, gauge, membership
        Oracle calls up to each; of the last, an empty list for none.
    drifts
        Rounds at which the truth changed abruptly.
    stream
        What the data are called.
    cut
        Whether the trial's limit on time ended it.
    adaptive
        Adaptive regret, where it was asked for.
    weights
        Expert weights, where the learner has experts.
    wall
        Seconds by the clock, everything included.
    environment
        The machine and the versions, see `machine.facts`.
    """

    trial: Trial
    rounds: list[int]
    loss: list[float]
    seconds: list[float]
    lmo: list[int]
    projection: list[int]
    gauge: list[int]
    drifts: list[int]
    stream: str
    cut: bool = False
    adaptive: list[AdaptiveRegret] = []
    weights: Weights | None = None
    membership: list[int] = []
    wall: float
    environment: dict[str, Any]
    format: str = FORMAT

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise ValueError(f"format must be {FORMAT!r}, got {self.format[:40]!r}")
        self._check_curves()
        if self.weights is not None:
            self._check_weights(self.weights)
        measured = [number for found in self.adaptive for number in (found.value, found.gap)]
        if not all(math.isfinite(number) for number in (*measured, self.wall)):
            raise ValueError("adaptive regret and wall must be finite")

    def _check_curves(self) -> None:
        curves: list[Sequence[float]] = [self.loss, self.seconds, self.lmo, self.projection]
        curves += [self.gauge, self.membership or self.gauge]
        if not self.rounds or any(len(curve) != len(self.rounds) for curve in curves):
            raise ValueError("rounds and curves must be of one length, and not empty")
        if not all(a < b for a, b in pairwise((0, *self.rounds))):
            raise ValueError("rounds must rise, and start at 1 or later")
        if not all(math.isfinite(value) for curve in curves[:2] for value in curve):
            raise ValueError("curves must be finite")

    @staticmethod
    def _check_weights(weights: Weights) -> None:
        widths = {len(row) for row in weights.values}
        if len(weights.values) != len(weights.rounds) or not widths <= {len(weights.experts)}:
            raise ValueError("weights must have a row a round and an entry an expert")
        if not all(math.isfinite(entry or 0.0) for row in weights.values for entry in row):
            raise ValueError("weights must be finite")

    @property
    def mean_loss(self) -> float:
        """Mean loss of a round, over all that were played."""
        return self.loss[-1] / self.rounds[-1]

    def encode(self) -> bytes:
        """The content of its file."""
        return msgspec.json.format(msgspec.json.encode(self), indent=0) + b"\n"


def decode(content: bytes) -> Result:
    """Read the content of a result file; `ValueError` where it is not one."""
    try:
        return msgspec.json.decode(content, type=Result)
    except msgspec.MsgspecError as problem:
        raise ValueError(str(problem)[:500]) from problem
    except RecursionError as problem:
        raise ValueError("it is nested too deeply") from problem

"""Timing on a device that works behind the program's back, and on two cores of the host."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import torch

from benchmarks.measure import threads

Result = TypeVar("Result")
#: Threads of the experts, on the host and for a device.
THREADS = 2
_TASKS = Path("/proc/self/task")
_SIBLINGS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


def synchronise(device: str) -> None:
    """Wait until a GPU has done all that it was told; the host never lags behind."""
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def timed(job: Callable[[], Result], device: str) -> tuple[Result, float]:
    """What a call returns, and its seconds from a device at rest to a device at rest."""
    synchronise(device)
    started = time.perf_counter()
    result = job()
    synchronise(device)
    return result, time.perf_counter() - started


def median_ms(job: Callable[[], Any], device: str, repeats: int = 15, warm_ups: int = 3) -> float:
    """The median of some calls in milliseconds, after some that do not count."""
    for _ in range(warm_ups):
        job()
    return 1e3 * statistics.median(timed(job, device)[1] for _ in range(repeats))


def compared(game: Callable[[str], float], device: str) -> dict[str, float]:
    """Milliseconds of a game that is told where to be played: on two cores, and on a device."""
    with two_cores():
        here = game("cpu")
    with threads(THREADS):
        there = game(device)
    return {"host_ms": here, "device_ms": there}


@contextmanager
def two_cores() -> Iterator[None]:
    """Two threads for experts, and two cores for the process where the system can say so."""
    with threads(THREADS):
        if not hasattr(os, "sched_setaffinity"):
            yield
            return
        before = os.sched_getaffinity(0)
        _pin(_apart(sorted(before)))
        try:
            yield
        finally:
            _pin(before)


def _pin(cores: Iterable[int]) -> None:
    """Keep every thread of the process, and those that they start, to some cores."""
    for task in _TASKS.iterdir():
        with suppress(ProcessLookupError):  # it has ended meanwhile
            os.sched_setaffinity(int(task.name), cores)


def _apart(cores: list[int]) -> list[int]:
    """Two cores that are not the two halves of one, where there are such."""
    others = [core for core in cores[1:] if _siblings(core) != _siblings(cores[0])]
    return [cores[0], *(others or cores[1:])[:1]]


def _siblings(core: int) -> str:
    try:
        return Path(_SIBLINGS.format(core)).read_text()
    except OSError:
        return str(core)

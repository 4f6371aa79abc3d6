"""Timing: contestants take turns, nothing is compiled on the clock, medians are compared."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Any

from threadpoolctl import threadpool_limits

import driftwolfe as dw

Job = Callable[[], Any]
Timings = dict[str, list[float]]


def seconds(job: Job) -> float:
    """How long one call takes."""
    started = time.perf_counter()
    job()
    return time.perf_counter() - started


def race(contestants: Mapping[str, Job], repeats: int, warm_up: bool = True) -> Timings:
    """Time every contestant `repeats` times, in turns, after one call each that does not count."""
    if warm_up:
        for job in contestants.values():
            job()
    timings: Timings = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, job in contestants.items():
            timings[name].append(seconds(job))
    return timings


def stretch(update: Callable[[Any], Any], losses: Iterable[Any], rounds: int) -> Job:
    """A job that plays on: each call takes the next `rounds` losses."""
    rest = iter(losses)
    return lambda: [update(loss) for loss in islice(rest, rounds)]


def medians(timings: Mapping[str, Iterable[float]]) -> dict[str, float]:
    """The median of every contestant."""
    return {name: statistics.median(each) for name, each in timings.items()}


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let a BLAS have one thread and the library's experts `count`."""
    with threadpool_limits(1):
        dw.set_threads(count)
        try:
            yield
        finally:
            dw.set_threads(None)

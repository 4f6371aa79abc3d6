"""Timing: contestants take turns, nothing compiles on the clock, medians are compared."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import driftwolfe as dw

Job = Callable[[], Any]
Timings = dict[str, list[float]]


class Skipped(Exception):  # noqa: N818 - it is no error
    """A row or section cannot be measured here; the message says what is missing."""


def seconds(job: Job, clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of one call, by default on the wall's clock."""
    started = clock()
    job()
    return clock() - started


def race(
    contestants: Mapping[str, Job],
    repeats: int,
    warm_up: bool = True,
    clock: Callable[[], float] = time.perf_counter,
) -> Timings:
    """Time every contestant `repeats` times, in turns, after one untimed call each."""
    if warm_up:
        for job in contestants.values():
            job()
    timings: Timings = {name: [] for name in contestants}
    for _ in range(repeats):
        for name, job in contestants.items():
            timings[name].append(seconds(job, clock))
    return timings


def stretch(update: Callable[[Any], Any], losses: Iterable[Any], rounds: int) -> Job:
    """A job whose every call plays the next `rounds` losses."""
    rest = iter(losses)
    return lambda: [update(loss) for loss in islice(rest, rounds)]


def medians(timings: Mapping[str, Iterable[float]]) -> dict[str, float]:
    """The median time of every contestant."""
    return {name: statistics.median(each) for name, each in timings.items()}


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Give BLAS one thread and the library's experts `count`."""
    with threadpool_limits(1):
        dw.set_threads(count)
        try:
            yield
        finally:
            dw.set_threads(None)


def thread_gain(repeats: int = 5) -> float:
    """How many times as much two threads that share nothing do as one: 2 on two idle cores, 1 on one."""
    numbers = np.linspace(0.0, 1.0, 10_000)  # within the cache; ufuncs hold no lock

    def work(times: int) -> None:
        for _ in range(times):
            np.sin(numbers)

    def pair() -> None:
        wait([pool.submit(work, 500) for _ in range(2)])

    with ThreadPoolExecutor(2) as pool:
        middle = medians(race({"one": lambda: work(1000), "two": pair}, repeats))
    return middle["one"] / middle["two"]


def read_speed(size: int, repeats: int = 41) -> tuple[float, Timings]:
    """Bytes per second that inner products read from an array of `size` bytes, and the timings.

    The faster of two products that each read the array once: with itself, and of its halves.
    """
    whole = np.ones(size // 16 * 2)
    first, second = np.split(whole, 2)
    timings = race(
        {"reading, one stream": lambda: whole @ whole, "two streams": lambda: first @ second},
        repeats,
    )
    return whole.nbytes / min(medians(timings).values()), timings

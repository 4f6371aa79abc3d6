"""Threads for experts. BLAS runs on one: threads that each start BLAS threads compete for cores."""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache, partial
from typing import TypeVar

from driftwolfe.points import checks
from driftwolfe.points.devices import blas_libraries, one_blas_thread

Result = TypeVar("Result")

_chosen: int | None = None
#: In the threads of `run`, `here` is True: the jobs of a job stay in its thread, where BLAS is limited
#: already. To ask for that again would let another thread take over each time.
_thread = threading.local()


def set_threads(number: int | None) -> None:
    """Set how many threads experts may use where their points are large.

    None, as at the start: as many as BLAS is set to use, so that OPENBLAS_NUM_THREADS=1 or
    `threadpoolctl` govern both. The answers are the same for any number, up to rounding.

    Parameters
    ----------
    number
        Threads, at least 1, or None.

    Examples
    --------
    >>> set_threads(2)
    >>> threads()
    2
    >>> set_threads(None)
    """
    global _chosen
    _chosen = None if number is None else checks.count(number, "number")


def chosen() -> int | None:
    """Return the number that `set_threads` was given."""
    return _chosen


def threads() -> int:
    """Return how many threads experts may use."""
    if _chosen is not None:
        return _chosen
    return min((library.num_threads for library in blas_libraries().lib_controllers), default=1)


def run(jobs: Sequence[Callable[[], Result]], most: float = math.inf) -> list[Result]:
    """Return the jobs' results, from `most` threads at most; errors are raised when all have ended."""
    if getattr(_thread, "here", False):
        return [job() for job in jobs]
    number = int(min(threads(), most))
    with one_blas_thread():
        if number == 1 or len(jobs) < 2:
            return [job() for job in jobs]
        futures = [_pool(number, os.getpid()).submit(job) for job in jobs]
        wait(futures)
        return [future.result() for future in futures]


def run_from_both_ends(
    jobs: Sequence[Callable[[], Result]], sizes: Sequence[float], most: float = math.inf
) -> list[Result]:
    """As `run`, where every second thread takes the largest job left and the others the smallest."""
    order = deque(sorted(range(len(jobs)), key=sizes.__getitem__))
    results: dict[int, Result] = {}

    def work(largest: bool) -> None:
        while order:
            try:
                i = order.pop() if largest else order.popleft()
            except IndexError:  # another thread was quicker
                return
            results[i] = jobs[i]()

    number = int(min(threads(), most))
    run([partial(work, i % 2 == 0) for i in range(number)], most)
    return [results[i] for i in range(len(jobs))]


@cache
def _pool(number: int, process: int) -> ThreadPoolExecutor:
    """The threads of this process: a forked one has none of its parent's."""
    name = f"driftwolfe-{process}"
    return ThreadPoolExecutor(number, name, initializer=setattr, initargs=(_thread, "here", True))

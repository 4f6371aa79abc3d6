"""Trials on this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import Counter, deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from driftwolfe.experiments.trial import Trial, canonical
from driftwolfe.experiments.workers import Outcome, Outcomes, outcome, work

#: How often a trial may be tried whose process dies.
_ATTEMPTS = 3


class LocalWorkers:
    """Processes of this machine, each on one thread.

    Each has an executor to itself: where one dies, only its own trial is run again, and one that
    keeps killing its process is given up.

    Parameters
    ----------
    jobs
        Processes; by default as many as there are cores.
    start
        How they start: ``"spawn"``, afresh, or ``"fork"`` or ``"forkserver"`` where the system has
        them. Results are the same; a fork starts sooner, but not safely in a program with threads.
    """

    def __init__(self, jobs: int | None = None, start: str = "spawn") -> None:
        self.jobs = jobs or os.cpu_count() or 1
        known = multiprocessing.get_all_start_methods()
        if start not in known:
            raise ValueError(f"start must be one of {', '.join(known)}, got {start!r}")
        self._context = multiprocessing.get_context(start)

    def run(self, trials: Sequence[Trial], folder: str | None) -> Outcomes:
        """As `Workers.run`."""
        others = set(multiprocessing.active_children())
        waiting, deaths = deque(trials), Counter[str]()
        idle = [self._process() for _ in range(min(self.jobs, len(waiting)))]
        running: dict[Future[bytes], tuple[Trial, ProcessPoolExecutor]] = {}
        try:
            while waiting or running:
                while waiting and idle:
                    process = idle.pop()
                    try:
                        future = process.submit(work, canonical(waiting[0]), folder)
                    except BrokenProcessPool:  # it died while it had nothing to do
                        idle.append(self._process())
                    else:
                        running[future] = waiting.popleft(), process
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    trial, process = running.pop(future)
                    try:
                        answer = future.result()
                    except BrokenProcessPool:
                        idle.append(self._process())
                        deaths[trial.identity] += 1
                        if deaths[trial.identity] < _ATTEMPTS:
                            waiting.append(trial)
                        else:
                            why = f"its process died {_ATTEMPTS} times; is there enough memory?"
                            yield Outcome(trial, None, why)
                    else:
                        idle.append(process)
                        yield outcome(trial, answer)
        finally:
            for process in (*idle, *(process for _, process in running.values())):
                process.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()

    def _process(self) -> ProcessPoolExecutor:
        """A process that starts with its first trial."""
        return ProcessPoolExecutor(1, self._context, _start_worker)


def _start_worker() -> None:
    """Leave Ctrl-C to the parent, and do not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()

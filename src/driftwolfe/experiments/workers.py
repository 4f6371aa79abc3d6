"""Executors of trials: this process, processes here, a Dask cluster."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
import uuid
from collections import Counter, deque
from collections.abc import Generator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple, Protocol

import msgspec

from driftwolfe.experiments.result import Result, decode
from driftwolfe.experiments.run_trial import run_trial
from driftwolfe.experiments.trial import Trial, canonical
from driftwolfe.terminal import show


class Outcome(NamedTuple):
    """A trial with its result, or with what went wrong."""

    trial: Trial
    result: Result | None
    problem: str = ""


#: Handed out one by one; closing it stops what is under way.
Outcomes = Generator[Outcome, None, None]


class Workers(Protocol):
    """Runs trials, and hands out each outcome as soon as it is there."""

    def run(self, trials: Sequence[Trial], folder: str | None) -> Outcomes:
        """Run the trials; `folder` holds the real data."""


def work(trial: bytes, folder: str | None) -> bytes:
    """Run a trial in a worker: plain bytes in, plain bytes out.

    What goes wrong comes back as a sentence, so that a cluster does not try again what can only go
    wrong again.
    """
    try:
        return run_trial(msgspec.json.decode(trial, type=Trial), folder).encode()
    except Exception as problem:  # a learner or a loss may raise anything
        return msgspec.json.encode({"problem": sentence(problem)})


def outcome(trial: Trial, answer: bytes) -> Outcome:
    """What the answer of `work` means."""
    told: Any = msgspec.json.decode(answer)
    if "problem" in told:
        return Outcome(trial, None, told["problem"])
    try:
        result = decode(answer)
    except ValueError as problem:
        why = f"its worker, another version of driftwolfe perhaps, sent no result ({problem})"
        return Outcome(trial, None, why)
    return Outcome(trial, result)


def sentence(problem: BaseException) -> str:
    """What went wrong, on one line."""
    text = " ".join(f"{type(problem).__name__}: {problem}".split())
    return text.encode(errors="replace").decode()


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


#: Seconds in which a cluster must answer.
_PATIENCE = 10


class DaskWorkers:
    """The workers of a Dask cluster, which must have this version of driftwolfe.

    The cluster moves the trials of a worker that dies to another.
    """

    def __init__(self, address: str) -> None:
        self.address = address

    def run(self, trials: Sequence[Trial], folder: str | None) -> Outcomes:
        """As `Workers.run`."""
        client = self._connect()
        from distributed import as_completed

        if not client.scheduler_info()["workers"]:
            show(f"waiting: the cluster at {self.address} has no workers yet", sys.stderr)

        # Nobody else's trial: another client's data may lie in another folder.
        token = uuid.uuid4().hex
        names = {f"driftwolfe-{trial.identity}-{token}": trial for trial in trials}
        futures = [
            client.submit(work, canonical(trial), folder, key=name, pure=False)
            for name, trial in names.items()
        ]
        try:
            for future in as_completed(futures, loop=client.loop):  # type: ignore[no-untyped-call]
                trial = names[str(future.key)]
                try:
                    # It waits where the worker that held the answer has died: another runs it anew.
                    answer = future.result()
                except Exception as problem:
                    if client.status != "running":
                        raise ValueError(
                            f"the Dask scheduler at {self.address} has gone; start it again, and "
                            "the same command goes on where this one was"
                        ) from problem
                    yield Outcome(trial, None, f"the cluster gave it up: {sentence(problem)}")
                else:
                    yield outcome(trial, answer)
                future.release()
        finally:
            if client.status == "running":
                client.cancel(futures)
            client.close()

    def _connect(self) -> Any:
        try:
            from distributed import Client
            from distributed.comm.core import connect
        except ImportError:
            raise ValueError(
                "a cluster needs Dask: pip install 'driftwolfe[distributed]'"
            ) from None

        async def call() -> None:
            comm = await connect(self.address, timeout=_PATIENCE)  # type: ignore[no-untyped-call]
            await comm.close()

        try:
            # A client whose scheduler does not answer takes long to go, and complains. A thread, as
            # this one may have an event loop already, as in a notebook.
            with ThreadPoolExecutor(1) as thread:
                thread.submit(lambda: asyncio.run(asyncio.wait_for(call(), _PATIENCE + 1))).result()
            return Client(self.address, timeout=_PATIENCE, set_as_default=False)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as problem:
            raise ValueError(
                f"no Dask scheduler answers at {self.address} ({str(problem) or 'silence'}); start "
                "one with `dask scheduler` and workers with `dask worker ADDRESS --nthreads 1`"
            ) from problem

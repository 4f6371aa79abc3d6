"""Executors for trials, processes of this machine or a Dask cluster, and running trials on them."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent import futures
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from driftwolfe.experiments.trial import Result, Trial, canonical, decode, run_trial
from driftwolfe.terminal import Output, show

_ATTEMPTS = 3  # how often a trial is tried whose process dies
_PATIENCE = 10  # seconds in which a cluster must answer


class SchedulerError(ConnectionError, ValueError):
    """A Dask scheduler that does not answer, or answers no more."""


class Outcome(NamedTuple):
    """A trial with its result, or with what went wrong."""

    trial: Trial
    result: Result | None
    problem: str = ""


def run_trials(
    make_executor: Callable[[], futures.Executor],
    trials: Sequence[Trial],
    folder: str | None = None,
    device: str = "cpu",
    checkpoint: Callable[[Trial], Path] | None = None,
) -> Generator[Outcome, None, None]:
    """Run trials, again where their process dies, and yield outcomes.

    `folder` holds the real data, `checkpoint` says where a trial of this machine keeps its checkpoint.
    """
    executor, waiting = make_executor(), list(trials)
    if isinstance(executor, DaskExecutor):  # another machine's files
        checkpoint = None

    def start(trial: Trial) -> futures.Future[bytes]:
        path = None if checkpoint is None else str(checkpoint(trial).absolute())
        return executor.submit(work, canonical(trial), folder, device, path)

    try:
        for _ in range(_ATTEMPTS):
            running = {start(trial): trial for trial in waiting}
            waiting = []
            for future in futures.as_completed(running):
                trial = running.pop(future)
                try:
                    answer = future.result()
                except futures.BrokenExecutor:
                    waiting.append(trial)
                except ConnectionError as problem:
                    raise SchedulerError(
                        f"the {executor} has gone; start it again, and the same command resumes"
                    ) from problem
                except Exception as problem:
                    yield Outcome(trial, None, f"the {executor} gave it up: {_sentence(problem)}")
                else:
                    yield _outcome(trial, answer)
        why = f"its process died {_ATTEMPTS} times; is there enough memory?"
        yield from (Outcome(trial, None, why) for trial in waiting)
    finally:
        executor.shutdown(wait=False, cancel_futures=True)


def work(
    trial: bytes, folder: str | None, device: str = "cpu", checkpoint: str | None = None
) -> bytes:
    """Run a trial in a worker: JSON in, JSON out."""
    try:
        path = None if checkpoint is None else Path(checkpoint)
        with Output.of_command():  # who runs it reads its messages
            return run_trial(msgspec.json.decode(trial, type=Trial), folder, device, path).encode()
    except Exception as problem:  # raised, a cluster would repeat what can only fail again
        return msgspec.json.encode({"problem": _sentence(problem)})


def _outcome(trial: Trial, answer: bytes) -> Outcome:
    content: Any = msgspec.json.decode(answer)
    if "problem" in content:
        return Outcome(trial, None, content["problem"])
    try:
        return Outcome(trial, decode(answer, Result))
    except ValueError as problem:
        why = f"its worker, another version of driftwolfe perhaps, sent no result ({problem})"
        return Outcome(trial, None, why)


def _sentence(problem: BaseException) -> str:
    text = " ".join(f"{type(problem).__name__}: {problem}".split())
    return text.encode(errors="replace").decode()


class ProcessExecutor(futures.ThreadPoolExecutor):
    """Processes of this machine, as many as cores unless `jobs` says otherwise."""

    # A `ProcessPoolExecutor` breaks as a whole when one of its processes dies. So each thread of this
    # executor has one of a single process to itself: only the trial of the dead process is lost.
    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = jobs or os.cpu_count() or 1
        super().__init__(self.jobs)
        self._others = set(multiprocessing.active_children())
        self._own = threading.local()
        self._ended = False
        self._starting = threading.Lock()  # no process starts after the shutdown

    def submit(
        self, call: Callable[..., Any], /, *arguments: Any, **options: Any
    ) -> futures.Future[Any]:
        return super().submit(self._call, call, *arguments, **options)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes; with ``wait=False`` at once, whatever they do."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        with self._starting:
            self._ended = True
            for child in set(multiprocessing.active_children()) - self._others:
                child.terminate()

    def _call(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        try:
            with self._starting:
                if self._ended:
                    raise RuntimeError("the executor was shut down")
                if not hasattr(self._own, "process"):
                    spawn = multiprocessing.get_context("spawn")
                    self._own.process = futures.ProcessPoolExecutor(1, spawn, _start_worker)
                future = self._own.process.submit(call, *arguments, **options)
            return future.result()
        except futures.BrokenExecutor:
            del self._own.process
            raise


def _start_worker() -> None:
    """Leave Ctrl-C to the parent, and do not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


class DaskExecutor(futures.Executor):
    """The workers of a Dask cluster, which must have this version of driftwolfe."""

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
            from distributed.comm.core import connect
        except ImportError:
            raise ValueError(
                "a cluster needs Dask: pip install 'driftwolfe[distributed]'"
            ) from None

        async def call() -> None:
            comm = await connect(address, timeout=_PATIENCE)  # type: ignore[no-untyped-call]
            await comm.close()

        self.address = address
        try:
            # A client whose scheduler does not answer takes long to go, and complains. A thread, as
            # this one may have an event loop already, as in a notebook.
            with futures.ThreadPoolExecutor(1) as thread:
                thread.submit(lambda: asyncio.run(asyncio.wait_for(call(), _PATIENCE + 1))).result()
            options = {"timeout": _PATIENCE, "set_as_default": False}
            self._client: Any = Client(address, **options)  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as problem:
            raise SchedulerError(
                f"no Dask scheduler answers at {address} ({str(problem) or 'silence'}); start "
                "one with `dask scheduler` and workers with `dask worker ADDRESS --nthreads 1`"
            ) from problem
        if not self._client.scheduler_info()["workers"]:
            show(f"waiting: the cluster at {address} has no workers yet", sys.stderr)

    def __str__(self) -> str:
        return f"Dask scheduler at {self.address}"

    def submit(
        self, call: Callable[..., Any], /, *arguments: Any, **options: Any
    ) -> futures.Future[Any]:
        answer: futures.Future[Any] = futures.Future()

        def pass_on(done: Any) -> None:
            try:
                # It waits where the worker that held the answer has died: another runs it anew.
                answer.set_result(done.result())
            except BaseException as problem:
                # A future of `Client.get_executor()` would never end where the scheduler dies
                # while the answer is fetched.
                lost = self._client.status != "running"
                answer.set_exception(ConnectionError() if lost else problem)

        self._client.submit(call, *arguments, pure=False, **options).add_done_callback(pass_on)
        return answer

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._client.close()  # the cluster then forgets what is still to run

"""Run trials: one, with its curves; many, in processes of this machine or on a Dask cluster."""

from __future__ import annotations

import asyncio
import inspect
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent import futures
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from threadpoolctl import threadpool_limits

from driftwolfe import regret
from driftwolfe.doctor import facts
from driftwolfe.ensemble import threads
from driftwolfe.experiments.trial import (
    METHODS,
    AdaptiveRegret,
    Result,
    StoredWeights,
    Trial,
    canonical,
    decode,
    is_own,
    keywords_of,
    own,
)
from driftwolfe.game import CALLS, play
from driftwolfe.learners.base import Learner
from driftwolfe.oracles import Oracle
from driftwolfe.points import devices
from driftwolfe.points.devices import HOST
from driftwolfe.streams import Stream
from driftwolfe.terminal import Output, show

#: Rounds between readings of the curves, and readings of the curves per reading of the weights.
_EVERY, _WEIGHTS_EVERY = 10, 2
_ATTEMPTS = 3  # how often a trial is tried whose process dies
_PATIENCE = 10  # seconds in which a cluster must answer


# -- one trial -------------------------------------------------------------------------------------


def run_trial(trial: Trial, folder: str | Path | None = None, device: str = "cpu") -> Result:
    """Play the trial's learner on one thread, and measure.

    `folder` holds the real data. `device` is where factored points live; it decides how quick a run is,
    not what comes out but for rounding.
    """
    started = time.perf_counter()
    stream = on_device(trial.data.load(trial.seed, folder), device)
    if too_long := [tau for tau in trial.taus if tau > len(stream)]:
        raise ValueError(f"taus must be at most the {len(stream)} rounds, got {too_long[0]}")
    with threadpool_limits(1), ExitStack() as after:
        after.callback(threads.set_threads, threads.chosen())
        threads.set_threads(1)
        learner = make_learner(trial, stream)
        recorder = Recorder(learner, len(stream))
        keep = bool(trial.taus)  # windows need all losses
        history = play(learner, iter(stream), [recorder], keep_losses=keep, progress=False)
        adaptive = []
        for tau in trial.taus:
            found = regret.adaptive_regret(history, tau, tolerance=1e-3)
            adaptive.append(AdaptiveRegret(tau, float(found), found.gap, found.window))
        return Result(
            trial=trial,
            **recorder.curves,
            drifts=[t for t in stream.drifts if t < learner.t],
            stream=stream.name,
            adaptive=adaptive,
            weights=recorder.table(),
            environment=facts(device=learner.domain.device),
            wall=round(time.perf_counter() - started, 3),
        )


def on_device(stream: Stream, device: str) -> Stream:
    """The stream with a set whose points live on a device."""
    if device == "cpu":
        return stream
    domain: Any = stream.domain
    if "device" not in inspect.signature(type(domain)).parameters:
        raise ValueError(f"{type(domain).__name__} is for the cpu only; leave the device out")
    return replace(stream, domain=type(domain)(**domain.arguments() | {"device": device}))


def make_learner(trial: Trial, stream: Stream) -> Learner:
    """The trial's learner, for that stream."""
    made: Any = learner_class(trial)
    told = {"horizon": len(stream), "lipschitz": stream.lipschitz}
    known: dict[str, Any] = {name: told[name] for name in told.keys() & keywords_of(made)}
    options = {**step_options(trial.method, trial.c), **trial.options}
    taken = made.__signature__.parameters
    known |= {name: value for name, value in options.items() if name in taken}
    if others := {name: value for name, value in options.items() if name not in taken}:
        oracle = Oracle.of(known.get("oracle", taken["oracle"].default))
        known["oracle"] = replace(oracle, **others)  # beside what the learner has by default
    learner: Learner = made(stream.domain, **known)
    return learner


def learner_class(trial: Trial) -> type[Learner]:
    """The class of the trial's learner; one of the user's own is imported, and its options checked."""
    if not is_own(trial.method):
        return METHODS[trial.method]
    found = own(trial.method)
    if not (isinstance(found, type) and issubclass(found, Learner)):
        raise ValueError(f"{trial.method} is no learner: it must derive from driftwolfe.Learner")
    trial.check_options(keywords_of(found))
    return found


def step_options(method: str, c: float | None) -> dict[str, Any]:
    """The options that give a learner the steps of the paper's experiments."""
    # Those are c 2^(i-1) T^(-3/4) in POLD, c T^(-3/4) in BOGD_IP, c 2^(i-1) T^(-1/2) in Ader,
    # c |I|^(-3/4) in POLA, c |I|^(-1/2) in PAMO, and c gamma^(-1/2) in Multi-OCG.
    if c is None:
        return {}
    if method in ("Ader", "OneProjectionAder"):  # their own steps are c 2^(i-1) sqrt(7/(2T))
        return {"step_scale": c / math.sqrt(3.5)}
    return {"step_scale": c, **({"grid": "experiment"} if method == "POLD" else {})}


class Recorder:
    """Reads the curves of a trial while it is played."""

    def __init__(self, learner: Learner, last: int) -> None:
        self.learner, self.last = learner, last
        names = ("rounds", "loss", "seconds", *CALLS, "products")
        self.curves: dict[str, Any] = {name: [] for name in names}
        self.weights: dict[int, dict[str, float]] = {}  # by round, then by expert
        self.total = self.spent = 0.0  # loss so far, and seconds at the last reading
        # A thread waits for a device, which its own time need not show.
        self.clock = time.thread_time if learner.domain.device is HOST else time.perf_counter
        self.made = devices.counted_products()
        self._read_weights()
        self.since = self.clock()

    def __call__(self, learner: Learner, value: float) -> None:
        """Take note of a round; a callback of `play`."""
        spent, curves = self.spent + self.clock() - self.since, self.curves
        self.total += value
        ends = learner.t == self.last
        if learner.t % _EVERY and not ends:
            return
        self.spent = round(spent, 6)
        calls = zip(CALLS, learner.oracle_calls.numbers(), strict=True)
        products = devices.counted_products() - self.made
        read = {"rounds": learner.t, "loss": self.total, "seconds": self.spent, **dict(calls)}
        for name, number in (read | {"products": products}).items():
            curves[name].append(number)
        if ends or len(curves["rounds"]) % _WEIGHTS_EVERY == 0:
            self._read_weights()
        self.since = self.clock()

    def _read_weights(self) -> None:
        values, names = self.learner.expert_weights, self.learner.expert_names
        if values is not None and names is not None:
            rounded = (round(weight, 5) for weight in values.tolist())
            self.weights[self.learner.t] = dict(zip(names, rounded, strict=True))

    def table(self) -> StoredWeights | None:
        """The weights with a column for each expert, in the order in which they came."""
        experts = list(dict.fromkeys(name for read in self.weights.values() for name in read))
        rows = [[read.get(name) for name in experts] for read in self.weights.values()]
        return StoredWeights(list(self.weights), experts, rows) if rows else None


# -- many trials -----------------------------------------------------------------------------------


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
) -> Generator[Outcome, None, None]:
    """Run trials, again where their process dies, and yield outcomes; `folder` holds the real data."""
    executor, waiting = make_executor(), list(trials)
    try:
        for _ in range(_ATTEMPTS):
            running = dict[futures.Future[bytes], Trial]()
            for trial in waiting:
                running[executor.submit(work, canonical(trial), folder, device)] = trial
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


def work(trial: bytes, folder: str | None, device: str = "cpu") -> bytes:
    """Run a trial in a worker: JSON in, JSON out."""
    try:
        with Output.of_command():  # who runs it reads its messages
            return run_trial(msgspec.json.decode(trial, type=Trial), folder, device).encode()
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

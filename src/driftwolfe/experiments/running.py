"""Run trials: one, with its curves and a checkpoint; many, in processes of this machine or on a Dask cluster."""

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
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from concurrent import futures
from dataclasses import replace
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from driftwolfe import __version__, regret, storage
from driftwolfe.doctor import facts
from driftwolfe.ensemble import Hedge, threads
from driftwolfe.ensemble.experts import combine
from driftwolfe.experiments.trial import (
    METHODS,
    AdaptiveRegret,
    Curves,
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
from driftwolfe.learners import archive
from driftwolfe.learners.base import Learner
from driftwolfe.learners.ensembles import GridLearner
from driftwolfe.losses import Loss
from driftwolfe.oracles import Oracle
from driftwolfe.points import devices
from driftwolfe.points.devices import HOST
from driftwolfe.state import Field
from driftwolfe.streams import Stream
from driftwolfe.terminal import Output, show

#: Rounds between readings of the curves, and readings of the curves per reading of the weights.
_EVERY, _WEIGHTS_EVERY = 10, 2
#: Seconds between checkpoints, and what these hold.
SAVE_EVERY = 60.0
_CHECKPOINT = archive.LEARNER | {"learner": Field(str), "reading": Field(dict)}
#: s of the rates s/sqrt(T) of the weights, the grid of Multi-OCG's authors.
RATES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
_ATTEMPTS = 3  # how often a trial is tried whose process dies
_PATIENCE = 10  # seconds in which a cluster must answer


# -- one trial -------------------------------------------------------------------------------------


def run_trial(
    trial: Trial,
    folder: str | Path | None = None,
    device: str = "cpu",
    checkpoint: Path | None = None,
) -> Result:
    """Play the trial's learner on one thread, and measure.

    `folder` holds the real data. `device` is where factored points live; it decides how quick a run is,
    not what comes out but for rounding. From the file `checkpoint` a run that was killed resumes.
    """
    started = time.perf_counter()
    stream = on_device(trial.data.load(trial.seed, folder), device)
    with threadpool_limits(1):
        before = threads.chosen()
        threads.set_threads(1)
        try:
            return _measured(trial, stream, started, checkpoint)
        finally:
            threads.set_threads(before)


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
    known: dict[str, Any] = {"horizon": len(stream), "lipschitz": stream.lipschitz}
    if is_own(trial.method):
        made: Any
        made, keywords = own_learner(trial)
        known = {name: value for name, value in known.items() if name in keywords}
    else:
        made = METHODS[trial.method]
    options = {**step_options(trial.method, trial.c), **trial.options}
    taken = made.__signature__.parameters
    known |= {name: value for name, value in options.items() if name in taken}
    if others := {name: value for name, value in options.items() if name not in taken}:
        oracle = Oracle.of(known.get("oracle", taken["oracle"].default))
        known["oracle"] = replace(oracle, **others)  # beside what the learner has by default
    learner: Learner = made(stream.domain, **known)
    return learner


def own_learner(trial: Trial) -> tuple[type[Learner], Collection[str]]:
    """Import the class of a learner of the user's own; return it and the keywords that it takes."""
    found = own(trial.method)
    if not (isinstance(found, type) and issubclass(found, Learner)):
        raise ValueError(f"{trial.method} is no learner: it must derive from driftwolfe.Learner")
    keywords = keywords_of(found)
    trial.check_options(keywords)
    return found, keywords


def step_options(method: str, c: float | None) -> dict[str, Any]:
    """The options that give a learner the steps of the paper's experiments."""
    # Those are c 2^(i-1) T^(-3/4) in POLD, c T^(-3/4) in BOGD_IP, c 2^(i-1) T^(-1/2) in Ader,
    # c |I|^(-3/4) in POLA, c |I|^(-1/2) in PAMO, and c gamma^(-1/2) in Multi-OCG.
    if c is None:
        return {}
    if method in ("Ader", "OneProjectionAder"):  # their own steps are c 2^(i-1) sqrt(7/(2T))
        return {"step_scale": c / math.sqrt(3.5)}
    return {"step_scale": c, **({"grid": "experiment"} if method == "POLD" else {})}


class Reading(Curves, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The curves of a trial so far; with a saved learner, a checkpoint."""

    weights: dict[int, dict[str, float]]  # by round, then by expert
    total: float = 0.0  # loss so far
    rate_totals: list[float]
    version: str = __version__


class Recorder:
    """Reads the curves of a trial while it is played, and keeps a checkpoint."""

    def __init__(
        self, learner: Learner, last: int, started: float, at: Reading, path: Path | None
    ) -> None:
        self.learner, self.last, self.at, self.path = learner, last, at, path
        self.limit, self.total = at.trial.limit or math.inf, at.total
        self.spent = at.seconds[-1] if at.seconds else 0.0  # at the last reading
        # A thread waits for a device, which its own time need not show.
        self.clock = time.thread_time if learner.domain.device is HOST else time.perf_counter
        self.started = started - at.wall  # of the whole run, without the time between its parts
        self.saved = time.perf_counter()
        self.over = False
        self.rated = at.trial.data.source.rates and independent(learner)
        if self.rated and not at.rates:
            at.rates.extend([] for _ in RATES)
            at.rate_totals.extend(0.0 for _ in RATES)
        self.made = devices.counted_products() - (at.products[-1] if at.products else 0)
        if not at.rounds:
            self._read_weights()
        self.since = self.clock()

    @property
    def wall(self) -> float:
        return round(time.perf_counter() - self.started, 3)

    def before(self, loss: Loss) -> bool:
        """Look at the loss of the coming round, on no one's time; return whether it is played."""
        if self.rated and not self.over:
            started = self.clock()
            for i, value in enumerate(losses_by_rate(self.learner, loss)):
                self.at.rate_totals[i] += value
            self.since += self.clock() - started
        return not self.over

    def __call__(self, learner: Learner, value: float) -> None:
        """Take note of a round; a callback of `play`."""
        spent, at = self.spent + self.clock() - self.since, self.at
        self.total += value
        self.over = spent > self.limit
        ends = self.over or learner.t == self.last
        if learner.t % _EVERY and not ends:
            return
        at.rounds.append(learner.t)
        at.loss.append(self.total)
        self.spent = round(spent, 6)
        at.seconds.append(self.spent)
        for name, number in zip(CALLS, learner.oracle_calls.numbers(), strict=True):
            getattr(at, name).append(number)
        at.products.append(devices.counted_products() - self.made)
        for curve, total in zip(at.rates, at.rate_totals, strict=True):
            curve.append(total)
        if ends or len(at.rounds) % _WEIGHTS_EVERY == 0:
            self._read_weights()
        if self.path and not ends and time.perf_counter() - self.saved > SAVE_EVERY:
            self._save(self.path)
        self.since = self.clock()

    def _read_weights(self) -> None:
        values, names = self.learner.expert_weights, self.learner.expert_names
        if values is not None and names is not None:
            rounded = (round(weight, 5) for weight in values.tolist())
            self.at.weights[self.learner.t] = dict(zip(names, rounded, strict=True))

    def _save(self, path: Path) -> None:
        """Write the learner and the curves, whole or not at all."""
        writer = archive.learner_writer()
        at = msgspec.structs.replace(self.at, wall=self.wall, total=self.total)
        settings = archive.learner_settings(self.learner, writer)
        settings["learner"] = type(self.learner).__name__
        settings["reading"] = msgspec.to_builtins(at, str_keys=True)
        storage.write_archive(path, "Trial", settings, writer.arrays)
        self.saved = time.perf_counter()


def _resumed(path: Path | None, trial: Trial, learner: Learner) -> tuple[Learner, Reading]:
    """The learner and the curves of a checkpoint; new ones where there is none to resume from."""
    names = ("rounds", "loss", "seconds", *CALLS, "products", "rates", "rate_totals")
    empty: Any = {name: [] for name in names}
    new = Reading(trial=trial, weights={}, wall=0.0, **empty)
    if path is None or not path.exists():
        return learner, new
    try:
        with storage.enough_memory(path), storage.refused(f"{path} is no checkpoint of it"):
            check = partial(archive.check_settings, fields=_CHECKPOINT, what="trial")
            saved = storage.read_archive(path, check, "Trial")
            at = msgspec.convert(saved.settings["reading"], Reading, str_keys=True)
            if at.trial.identity != trial.identity or at.version != __version__:
                raise ValueError("it is of another trial or another version")
            reached = archive.restored(learner, saved)
            if [reached.t] != at.rounds[-1:]:
                raise ValueError("its learner is at another round")
    except (ValueError, OSError) as problem:
        show(f"{trial.name} starts anew: {problem}", sys.stderr)
        return learner, new
    return reached, at


def _measured(trial: Trial, stream: Stream, started: float, checkpoint: Path | None) -> Result:
    played = stream if trial.first is None else stream[: trial.first]
    if too_long := [tau for tau in trial.taus if tau > len(played)]:
        raise ValueError(f"taus must be at most the {len(played)} rounds, got {too_long[0]}")
    path = None if trial.taus else checkpoint  # windows need all losses; such runs are short
    learner, at = _resumed(path, trial, make_learner(trial, stream))
    recorder = Recorder(learner, len(played), started, at, path)
    losses = takewhile(recorder.before, islice(played, learner.t, None))
    history = play(learner, losses, [recorder], keep_losses=bool(trial.taus), progress=False)
    adaptive = []
    for tau in trial.taus:
        if tau <= len(history):  # where time ran out there may be no such window
            found = regret.adaptive_regret(history, tau, tolerance=1e-3)
            adaptive.append(AdaptiveRegret(tau, float(found), found.gap, found.window))
    # One column per expert, in the order in which they came.
    experts = list(dict.fromkeys(name for read in at.weights.values() for name in read))
    table = [[read.get(name) for name in experts] for read in at.weights.values()]
    curves = {name: getattr(at, name) for name in Curves.__struct_fields__}
    return Result(
        **curves | {"wall": recorder.wall},
        drifts=[t for t in stream.drifts if t < at.rounds[-1]],
        stream=stream.name,
        cut=at.rounds[-1] < len(played),
        adaptive=adaptive,
        weights=StoredWeights(list(at.weights), experts, table) if at.weights else None,
        environment=facts(device=learner.domain.device),
    )


# -- other rates of the weights, from the same run -------------------------------------------------


def loss_scale(s: float) -> float:
    """The option that gives `Hedge`, whose rate is sqrt(8/T)/B, the rate s/sqrt(T)."""
    return math.sqrt(8.0) / s


def independent(learner: Learner) -> bool:
    """Whether experts are weighted by `Hedge` for a known horizon, and do not depend on the weights."""
    if not isinstance(learner, GridLearner) or learner.options.linear:
        return False
    return isinstance(learner._meta, Hedge) and learner.options.horizon is not None


def losses_by_rate(learner: Learner, loss: Loss) -> list[float]:
    """The loss of the mean of the learner's experts in the coming round, for each of `RATES`."""
    meta, scores = learner._meta, learner._experts.scores(loss)  # type: ignore[attr-defined]
    found = []
    for s in RATES:
        weights = meta.prior * np.exp(-s / math.sqrt(meta.horizon) * meta.totals)
        found.append(float(loss.value_at(combine(weights / weights.sum(), scores))))
    return found


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
    checkpoints: Mapping[str, Path] | None = None,
) -> Generator[Outcome, None, None]:
    """Run trials, again where their process dies, and yield outcomes.

    `folder` holds the real data; trials of this machine keep checkpoints in these files, by identity.
    """
    executor, waiting = make_executor(), list(trials)
    if isinstance(executor, DaskExecutor):  # another machine's files
        checkpoints = None
    try:
        for _ in range(_ATTEMPTS):
            running = dict[futures.Future[bytes], Trial]()
            for trial in waiting:
                path = str(checkpoints[trial.identity].absolute()) if checkpoints else None
                running[executor.submit(work, canonical(trial), folder, device, path)] = trial
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

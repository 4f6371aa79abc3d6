"""A real cluster on this machine: a scheduler and two workers, one of which is killed."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from unittest.mock import AsyncMock

import pytest

from driftwolfe.experiments import running as executors
from driftwolfe.experiments import sweep
from driftwolfe.experiments.running import DaskExecutor, ProcessExecutor, run_trials
from driftwolfe.experiments.sweep import Store, run_sweep
from driftwolfe.experiments.trial import DataSet
from experiments.small import outcome_of, trial, until

pytest.importorskip("distributed")


@contextmanager
def _command(tmp_path, name, *arguments):
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    program = sys.executable, "-m", f"distributed.cli.dask_{name.split('-')[0]}"
    with (tmp_path / f"{name}.log").open("w") as log:
        options = {"stdout": log, "stderr": log, "env": environment, "cwd": tmp_path}
        running = subprocess.Popen([*program, *arguments], **options)
    try:
        yield running
    finally:
        running.kill()
        running.wait()


@contextmanager
def _scheduler(tmp_path):
    file = tmp_path / "scheduler.json"
    options = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    options += ["--scheduler-file", str(file)]
    with _command(tmp_path, "scheduler", *options) as running:

        def address():
            assert running.poll() is None, (tmp_path / "scheduler.log").read_text()
            try:
                return json.loads(file.read_text())["address"]
            except (OSError, ValueError, KeyError):  # not yet there, or half of it
                return None

        yield running, until(address, "the start of the scheduler", 60.0)


@pytest.fixture
def cluster(tmp_path):
    """An address and two workers that are at its service."""
    from distributed import Client

    with ExitStack() as stack:
        scheduler, address = stack.enter_context(_scheduler(tmp_path))
        options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"]
        commands = (_command(tmp_path, f"worker-{name}", address, *options) for name in "ab")
        two = [stack.enter_context(command) for command in commands]
        with Client(address, timeout="60s", set_as_default=False) as client:
            client.wait_for_workers(2, timeout=90)
        yield address, scheduler, two


def _trials():
    long, short = (DataSet(name="jumping-target", rounds=rounds) for rounds in (2000, 500))
    return [
        trial(method, data=data, seed=seed, c=0.5, label=f"{method} there")
        for seed in range(6)
        for method, data in (("POLA", long), ("PAMO", short))
    ]


def _watched(monkeypatch, then):
    """Let sweeps note their outcomes, and do something after the second."""
    outcomes = []

    def run(*arguments):
        for outcome in run_trials(*arguments):
            outcomes.append(outcome)
            if len(outcomes) == 2:
                then()
            yield outcome

    monkeypatch.setattr(sweep, "run_trials", run)
    return outcomes


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_gives_the_results_of_this_machine(
    tmp_path, cluster, monkeypatch
):
    address, _, (first, second) = cluster
    impossible = trial(data=DataSet(name="jumping-target", rounds=3))
    there, here = Store(tmp_path / "there"), Store(tmp_path / "here")
    there.add("", [*_trials(), impossible])
    here.add("", _trials())

    with monkeypatch.context() as patch:
        outcomes = _watched(patch, lambda: os.kill(first.pid, signal.SIGKILL))
        assert run_sweep(there, lambda: DaskExecutor(address)) == 1
    assert first.wait() == -signal.SIGKILL
    assert second.poll() is None
    # None is lost, none is doubled, and only the impossible one failed.
    names = [outcome.trial.name for outcome in outcomes]
    assert Counter(names) == Counter(one.name for one in there.trials)
    assert there.missing == [impossible]
    assert len(os.listdir(tmp_path / "there" / "trials")) == 12

    assert run_sweep(here, lambda: ProcessExecutor(2)) == 0
    for one, other in zip(there.results, here.results, strict=True):
        assert outcome_of(one) == outcome_of(other)
        assert one.trial.title.endswith("there")


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_told_in_a_sentence_and_the_sweep_goes_on_later(
    tmp_path, cluster, monkeypatch
):
    address, scheduler, _ = cluster
    store = Store(tmp_path / "sweep")
    store.add("", _trials())
    _watched(monkeypatch, scheduler.kill)
    with pytest.raises(ValueError, match=r"scheduler at tcp://.* has gone; start it again"):
        run_sweep(store, lambda: DaskExecutor(address))
    assert 2 <= len(store.results) < 12


@pytest.mark.parametrize("address", ["foo://bar", "", "localhost", "127.0.0.1:not-a-port"])
def test_an_address_that_is_none_is_refused_at_once(address):
    started = time.monotonic()
    with pytest.raises(ValueError, match=f"no Dask scheduler answers at {address}"):
        list(run_trials(lambda: DaskExecutor(address), [trial()]))
    assert time.monotonic() - started < 10.0


def test_where_no_scheduler_answers_one_sentence_says_what_to_do(tmp_path, monkeypatch):
    """Also where something listens that is no scheduler."""
    assert executors._PATIENCE <= 12
    monkeypatch.setattr(executors, "_PATIENCE", 1)
    store = Store(tmp_path)
    store.add("", [trial()])
    with socket.create_server(("127.0.0.1", 0)) as mute:
        address = f"tcp://127.0.0.1:{mute.getsockname()[1]}"
        started = time.monotonic()
        with pytest.raises(ValueError) as problem:
            run_sweep(store, lambda: DaskExecutor(address))
        assert time.monotonic() - started < 10.0
    said = str(problem.value)
    assert said.startswith(f"no Dask scheduler answers at {address} (")
    assert "start one with `dask scheduler` and workers with `dask worker ADDRESS --n" in said
    assert "\n" not in said


def test_a_cluster_without_workers_is_waited_for_and_no_answer_is_taken_twice(monkeypatch, capsys):
    class Client:
        def __init__(self, address, **options):
            assert options == {"timeout": executors._PATIENCE, "set_as_default": False}

        def scheduler_info(self):
            return {"workers": workers}

        def submit(self, call, *arguments, pure):
            assert not pure  # equal calls are run each by itself
            answer = Future()
            answer.set_result(call(*arguments))
            return answer

    monkeypatch.setattr("distributed.Client", Client)
    monkeypatch.setattr("distributed.comm.core.connect", AsyncMock())
    for workers in ({}, {"tcp://a": {}}):
        executor = DaskExecutor("there")
        assert executor.submit(len, "abc").result() == 3
        told = "" if workers else "waiting: the cluster at there has no workers yet\n"
        assert capsys.readouterr().err == told


def test_it_can_be_called_from_a_notebook_which_has_an_event_loop():
    async def cell():
        list(run_trials(lambda: DaskExecutor("foo://bar"), [trial()]))

    with pytest.raises(ValueError, match="no Dask scheduler answers at foo://bar"):
        asyncio.run(cell())


def test_a_sweep_that_is_done_needs_no_cluster(tmp_path):
    store = Store(tmp_path)
    store.add("", [])
    assert run_sweep(store, lambda: DaskExecutor("nowhere")) == 0

"""Sweeps: stopped, killed, extended, and brought to their end."""

import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from driftwolfe.experiments.running import run_trial
from driftwolfe.experiments.sweep import Store, describe, run_sweep, status
from driftwolfe.experiments.trial import DataSet, Trial
from experiments.small import Here, alive_in_session, made_up, outcome_of, script, trial, until

IMPOSSIBLE = trial(data=DataSet(name="jumping-target", rounds=3))


def _store(folder, *trials):
    store = Store(folder)
    store.add("A sweep", trials)
    return store


def _stamps(store):
    return {path.name: path.stat().st_mtime_ns for path in (store.folder / "trials").iterdir()}


def test_a_sweep_runs_all_of_its_trials(tmp_path):
    store = _store(tmp_path, *(trial(m, seed=s) for s in (0, 1) for m in ("OGD", "POLD")))
    assert run_sweep(store, Here()) == 0
    assert store.missing == []
    for result in store.results:
        assert outcome_of(result) == outcome_of(run_trial(result.trial))


def test_only_what_is_missing_is_run(tmp_path):
    store = _store(tmp_path, *(trial(seed=seed) for seed in range(4)))
    run_sweep(store, Here())
    # A mark in one result, and another is gone.
    marked, gone = store.trials[1], store.trials[2]
    store.write(msgspec.structs.replace(store.read(marked), wall=12345.0))
    store.path(gone).unlink()
    before, workers = _stamps(store), Here()
    assert run_sweep(store, workers) == 0
    assert workers.given == [gone]
    assert store.read(marked).wall == 12345.0
    after = _stamps(store)
    assert {name: after[name] for name in before} == before
    assert run_sweep(store, workers) == 0
    assert workers.given == [gone]  # nothing more to run
    assert _stamps(store) == after


def test_what_fails_is_noted_told_and_tried_again(tmp_path, capsys):
    store = _store(tmp_path, *(trial(seed=seed) for seed in range(7)), IMPOSSIBLE)
    assert run_sweep(store, Here()) == 1
    assert store.missing == [IMPOSSIBLE]
    assert "pieces must be at most the 3 rounds" in store.failures[IMPOSSIBLE.name]
    last = status(store).splitlines()[-1]
    assert last.startswith(f"failed: {IMPOSSIBLE.name}: ValueError: pieces must be")
    said = capsys.readouterr()
    assert "OGD, seed 0 failed: ValueError: pieces must be at most the 3 rounds" in said.err
    assert "7/8" in said.err and said.err.count("\n") <= 3 and said.out == ""
    workers, first = Here(), _store(tmp_path / "first", trial("POLD"), trial("POLA"))
    assert run_sweep(store, workers, before=[first]) == 1
    assert workers.given == [*first.trials, IMPOSSIBLE]
    assert "9/10" in capsys.readouterr().err

    class Mended(ThreadPoolExecutor):
        def submit(self, call, one, *how):
            return super().submit(lambda: made_up(msgspec.json.decode(one, type=Trial)).encode())

    assert run_sweep(store, Mended) == 0
    assert store.failures == {}
    assert "failed" not in status(store)


def test_the_status_counts_by_method(tmp_path):
    trials = [trial(c=c, seed=0) for c in (1.0, 2.0)] + [trial("POLD", label="mine"), trial("POLA")]
    store = _store(tmp_path, *trials)
    for one in trials[:3]:
        store.write(made_up(one))
    assert status(store).splitlines() == [
        f"A sweep: 3 of 4 trials done in {tmp_path}",
        "  OGD: 2 of 2",
        "  mine: 1 of 1",
        "  POLA: 0 of 1",
    ]
    assert describe(trial(label="mine", c=1e4, seed=2)) == "mine, c = 1e4, seed 2"


def test_a_spoilt_result_stops_a_sweep_before_it_runs(tmp_path):
    store, workers = _store(tmp_path, trial(seed=0), trial(seed=1)), Here()
    store.write(made_up(trial(seed=0)))
    store.path(trial(seed=0)).write_bytes(b"{")
    with pytest.raises(ValueError, match=r"is not a result .* delete it"):
        run_sweep(store, workers)
    assert workers.given == []


def test_two_sweeps_do_not_run_in_one_folder(tmp_path):
    store = _store(tmp_path, trial())
    workers = Here()
    with store.locked(), pytest.raises(ValueError, match="another sweep is running in"):
        run_sweep(store, workers)
    assert workers.given == []
    assert run_sweep(store, workers) == 0


def test_workers_are_told_to_stop_when_a_result_cannot_be_written(tmp_path):
    store, ended = _store(tmp_path, trial(seed=0), trial(seed=1)), []

    class Watched(ThreadPoolExecutor):
        def shutdown(self, wait=True, *, cancel_futures=False):
            ended.append((wait, cancel_futures))
            super().shutdown(wait, cancel_futures=cancel_futures)

    (tmp_path / "trials").write_text("a file where the folder should be")
    with pytest.raises(OSError) as problem:
        run_sweep(store, Watched)
    assert ended == [(False, True)]  # although the error still holds on to all that was under way
    assert problem.value.__traceback__ is not None


SWEEP = """
import sys
from driftwolfe.experiments.running import ProcessExecutor
from driftwolfe.experiments.sweep import Store, run_sweep
from driftwolfe.experiments.trial import DataSet, Trial

if __name__ == "__main__":
    store = Store(sys.argv[1])
    data = DataSet(name="jumping-target", rounds=600)
    methods = ("POLA", "POLD")
    store.add("", [Trial(method=m, data=data, seed=s) for s in range(10) for m in methods])
    sys.exit(run_sweep(store, lambda: ProcessExecutor(2)))
"""


def _finished(folder):
    return len(list((folder / "trials").glob("[!.]*.json")))


def _wait_for_results(folder, number, running):
    until(lambda: _finished(folder) >= number or running.poll() is not None, "a result")
    assert running.poll() is None, running.communicate()


def _whole(folder):
    """All results in a folder; fails if a file is not whole."""
    store = Store(folder)
    results = store.results
    assert len(results) == _finished(folder)
    return results


PROCESSES = os.path.exists("/proc/self/stat")
needs_proc = pytest.mark.skipif(not PROCESSES, reason="no list of processes")


@needs_proc
@pytest.mark.slow
def test_a_sweep_that_is_killed_again_and_again_comes_to_its_end(tmp_path):
    folder = tmp_path / "sweep"
    stamps = {}
    for more in (1, 6):
        with script(tmp_path / "sweep.py", SWEEP, folder) as running:
            _wait_for_results(folder, len(stamps) + more, running)
            time.sleep(random.uniform(0.0, 0.1))
            os.kill(running.pid, signal.SIGKILL)  # not the group: its workers must notice
            until(lambda: not alive_in_session(running.pid), "the end of the workers", 10.0)
            running.communicate()
        store = Store(folder)
        _whole(folder)
        now = _stamps(store)
        assert stamps.items() <= now.items()  # what was there was not touched
        stamps = {name: stamp for name, stamp in now.items() if not name.startswith(".")}
    assert len(stamps) >= 7
    with script(tmp_path / "sweep.py", SWEEP, folder) as running:
        _, err = running.communicate(timeout=120)
    assert running.returncode == 0, err
    assert stamps.items() <= _stamps(store).items()
    results = _whole(folder)
    assert len({result.trial.identity for result in results}) == len(results) == 20
    for result in results:
        assert outcome_of(result) == outcome_of(run_trial(result.trial))


@pytest.mark.slow
@needs_proc
def test_ctrl_c_ends_a_sweep_and_its_workers(tmp_path):
    folder = tmp_path / "sweep"
    # Two that would take minutes are under way when the key is pressed.
    text = SWEEP.replace("data = Data", "data = lambda s: Data").replace("=data,", "=data(s),")
    text = text.replace("=600)", "=2_000_000 if s else 40)").replace("range(10)", "range(2)")
    with script(tmp_path / "sweep.py", text, folder) as running:
        _wait_for_results(folder, 2, running)
        until(lambda: len(alive_in_session(running.pid)) >= 4, "the start of the workers")
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does
        _, err = running.communicate(timeout=30)
        until(lambda: not alive_in_session(running.pid), "the end of the workers", 10.0)
    assert running.returncode == -signal.SIGINT
    assert err.rstrip().endswith("KeyboardInterrupt")
    store = Store(folder)
    assert [t.data.rounds for t in store.missing] == [2_000_000] * 2
    assert len(_whole(folder)) == 2
    assert store.failures == {}
    with store.locked():  # nobody holds it any longer
        pass

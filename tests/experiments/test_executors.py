"""Processes that run trials, and what happens when they die."""

import json
import multiprocessing
import os
import signal
from collections import Counter

import pytest

from driftwolfe.experiments.running import ProcessExecutor, run_trial, run_trials, work
from driftwolfe.experiments.trial import DataSet, Result, canonical, decode
from experiments.small import outcome_of, script, trial, until


def two_processes():
    return ProcessExecutor(2)


def _processes():
    return {process.pid: process for process in multiprocessing.active_children()}


def test_work_is_plain_bytes_in_and_plain_bytes_out():
    one = trial("POLA", c=0.5, label="named")
    result = decode(work(canonical(one), None), Result)
    assert result.trial == one
    assert outcome_of(result) == outcome_of(run_trial(one))


IMPOSSIBLE = trial(data=DataSet(name="jumping-target", rounds=3))
ELSEWHERE = trial("POLA", options={"start": "elsewhere"})


@pytest.mark.parametrize(
    ("one", "sentence"),
    [
        (IMPOSSIBLE, "ValueError: pieces must be at most the 3 rounds"),
        (ELSEWHERE, 'ValueError: start must be one of "current", "origin", got'),
        (trial(data=DataSet(name="shuttle")), "FileNotFoundError: "),
    ],
)
def test_what_goes_wrong_comes_back_as_a_sentence(one, sentence, tmp_path):
    told = json.loads(work(canonical(one), str(tmp_path)))
    assert list(told) == ["problem"]
    assert told["problem"].startswith(sentence)
    assert "\n" not in told["problem"]


def test_no_trials_need_no_processes():
    before = _processes().keys()
    assert list(run_trials(two_processes, [])) == []
    assert _processes().keys() == before
    assert ProcessExecutor().jobs == os.cpu_count()
    assert ProcessExecutor(3).jobs == 3


def test_whoever_stops_early_leaves_no_process_behind():
    before = _processes().keys()
    endless = DataSet(name="jumping-target", rounds=400_000)
    executor = ProcessExecutor(1)
    outcomes = run_trials(lambda: executor, [trial(), trial(data=endless)])
    assert next(outcomes).trial == trial()
    assert len(_processes().keys() - before) == 1
    outcomes.close()
    until(lambda: _processes().keys() <= before, "the end of the process", 10.0)
    with pytest.raises(RuntimeError, match="was shut down"):  # one that waits for its process then
        executor._call(len, "")


def test_the_trials_of_processes_that_die_are_run_again_and_failures_are_told():
    before = _processes().keys()
    data = DataSet(name="jumping-target", rounds=200)
    trials = [trial("POLA", data=data, seed=seed, taus=(10,)) for seed in range(3)]
    outcomes, killed = [], []
    for outcome in run_trials(two_processes, [*trials, IMPOSSIBLE]):
        outcomes.append(outcome)
        if len(outcomes) == 1:  # one has nothing to do, and the other has
            killed += [p for pid, p in _processes().items() if pid not in before]
            for process in killed:
                os.kill(process.pid, signal.SIGKILL)
            for process in killed:
                process.join()
    assert [process.exitcode for process in killed] == [-signal.SIGKILL] * 2
    # None is lost, none comes twice, and none is blamed for the death of its process.
    found = {outcome.trial.name: outcome for outcome in outcomes}
    assert len(outcomes) == len(found) == 4
    told = found.pop(IMPOSSIBLE.name)
    assert told.result is None and told.problem.startswith("ValueError: pieces must be at most")
    for trial_, result, problem in found.values():
        assert problem == "" and outcome_of(result) == outcome_of(run_trial(trial_))
    until(lambda: _processes().keys() <= before, "the end of the processes")


#: The main module of a sweep, which every worker imports too.
DEADLY = """
import json, multiprocessing, os, signal, sys, time
from pathlib import Path
from driftwolfe.experiments.running import ProcessExecutor, run_trials
from driftwolfe.experiments.trial import DATA_SETS, DataSet, Trial

log = Path(sys.argv[1])
source = DATA_SETS["jumping-target"]

def deadly(seed, rounds):
    if multiprocessing.parent_process() is not None:
        (log / f"{seed}-{time.time_ns()}").touch()
        if seed == 0:  # kills its process every time
            os.kill(os.getpid(), signal.SIGKILL)
    return source.make(seed=seed, rounds=rounds)

DATA_SETS["deadly"] = source._replace(make=deadly)

if __name__ == "__main__":
    data = DataSet(name="deadly", rounds=40)
    trials = [Trial(method="OGD", data=data, seed=seed) for seed in (1, 0, 2)]
    outcomes = list(run_trials(lambda: ProcessExecutor(2), trials))
    print(json.dumps([(o.trial.seed, o.result is not None, o.problem) for o in outcomes]))
"""


@pytest.mark.slow
def test_a_trial_that_kills_its_process_every_time_is_given_up(tmp_path):
    log = tmp_path / "log"
    log.mkdir()
    with script(tmp_path / "deadly.py", DEADLY, log) as running:
        out, err = running.communicate(timeout=120)
    assert running.returncode == 0, err
    why = "its process died 3 times; is there enough memory?"
    assert sorted(json.loads(out)) == [[0, False, why], [1, True, ""], [2, True, ""]]
    tries = Counter(path.name.split("-")[0] for path in log.iterdir())
    assert tries == {"0": 3, "1": 1, "2": 1}  # those beside it are not run again

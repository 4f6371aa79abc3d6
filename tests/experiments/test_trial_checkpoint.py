"""A trial that is killed resumes, and its result is that of one that was not."""

import os
import signal

import msgspec
import pytest

from driftwolfe import storage
from driftwolfe.experiments import running as module
from driftwolfe.experiments.running import run_trial, work
from driftwolfe.experiments.sweep import Store, run_sweep
from driftwolfe.experiments.trial import DataSet, canonical
from experiments.small import Here, outcome_of, script, trial, until

LONG = DataSet(name="jumping-target", rounds=400)
KILLED = """
import sys
from pathlib import Path
import msgspec
from driftwolfe.experiments import running as module

module.SAVE_EVERY = 0.0
asked = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=module.Trial)
while True:  # until it is killed
    module.run_trial(asked, checkpoint=Path(sys.argv[2]))
"""


def reading(path):
    """The curves of a checkpoint."""
    held = storage.read_archive(path).settings["reading"]
    return msgspec.convert(held, module.Reading, str_keys=True)


def stop_after(monkeypatch, number):
    """Let a run fail after so many checkpoints, the last of them whole."""
    write, left = storage.write_bytes, [number]

    def counted(path, content):
        write(path, content)
        if path.name == "kept.safetensors":
            left[0] -= 1
            if not left[0]:
                raise KeyboardInterrupt

    monkeypatch.setattr(module, "SAVE_EVERY", 0.0)
    monkeypatch.setattr(storage, "write_bytes", counted)


@pytest.mark.parametrize("method", ["POLD", "POLA", "MultiOCG", "POLAR", "OneProjectionAder"])
def test_a_run_that_was_stopped_resumes_with_the_same_curves(method, tmp_path, monkeypatch):
    asked, path = trial(method, data=LONG), tmp_path / "kept.safetensors"
    whole = run_trial(asked)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        stop_after(patched, 7)
        run_trial(asked, checkpoint=path)
    kept = reading(path)
    assert kept.rounds[-1] == 70
    assert list(tmp_path.iterdir()) == [path]
    resumed = run_trial(asked, checkpoint=path)
    one, other = outcome_of(resumed), outcome_of(whole)
    assert one.pop("loss") == pytest.approx(other.pop("loss"), rel=1e-12)
    assert one == other
    assert resumed.seconds[:7] == kept.seconds
    assert resumed.seconds == sorted(resumed.seconds)
    assert resumed.wall > kept.wall > 0.0


@pytest.mark.slow
def test_a_killed_run_resumes(tmp_path):
    asked, path = trial("POLA", data=LONG), tmp_path / "kept" / "kept.safetensors"
    (tmp_path / "trial.json").write_bytes(canonical(asked))
    for least in (1, 40):
        arguments = tmp_path / "trial.json", path
        with script(tmp_path / "run.py", KILLED, *arguments) as running:
            until(
                lambda n=least: path.exists() and len(reading(path).rounds) >= min(n, 39),
                "a checkpoint",
            )
            os.kill(running.pid, signal.SIGKILL)
            running.communicate()
        if least == 1:
            reached = reading(path).rounds[-1]
    assert reached >= 10
    one, other = outcome_of(run_trial(asked, checkpoint=path)), outcome_of(run_trial(asked))
    assert one.pop("loss") == pytest.approx(other.pop("loss"), rel=1e-12)
    assert one == other


def spoil(path, how):
    if how == "cut off":
        path.write_bytes(path.read_bytes()[:-9])
    else:
        kind, settings, arrays = storage.read_archive(path)
        changed = {
            "version": {"version": "0.0"},
            "round": {"rounds": [20]},
            "curves": {"loss": 1.0},
        }
        settings["reading"] |= changed[how]
        storage.write_archive(path, kind, settings, arrays)


@pytest.mark.parametrize("how", ["cut off", "curves", "version", "round"])
def test_a_checkpoint_that_cannot_be_used_is_ignored(how, tmp_path, monkeypatch, capsys):
    asked, path = trial("POLD", data=LONG), tmp_path / "kept.safetensors"
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        stop_after(patched, 1)
        run_trial(asked, checkpoint=path)
    spoil(path, how)
    assert outcome_of(run_trial(asked, checkpoint=path)) == outcome_of(run_trial(asked))
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert "starts anew" in told[0]


def test_a_checkpoint_goes_when_the_result_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SAVE_EVERY", 0.0)
    store, asked = Store(tmp_path), trial("POLD", data=LONG)
    path = store.checkpoint(asked)
    work(canonical(asked), None, "cpu", str(path))
    assert list(path.parent.iterdir()) == [path]
    store.add("A sweep", [asked])
    assert run_sweep(store, Here()) == 0
    assert list(path.parent.iterdir()) == []


def test_runs_with_windows_keep_no_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SAVE_EVERY", 0.0)
    run_trial(trial("POLD", taus=(10,)), checkpoint=tmp_path / "kept.safetensors")
    assert list(tmp_path.iterdir()) == []

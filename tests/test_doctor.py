"""The doctor: what it sees, what it advises, and that it does not fall ill itself."""

import hashlib
import os
import subprocess
import sys
import tomllib
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import driftwolfe as dw
from devices import HAS_TORCH
from driftwolfe import cli, doctor
from driftwolfe.doctor import Finding
from driftwolfe.streams import datasets

PROJECT = Path(__file__).parent.parent / "pyproject.toml"


@pytest.fixture(autouse=True)
def no_data(tmp_path, monkeypatch):
    """A machine without data, in an empty folder, whose downloads would be noticed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DRIFTWOLFE_DATA", raising=False)
    monkeypatch.delenv("DRIFTWOLFE_OFFLINE", raising=False)
    monkeypatch.setenv("DRIFTWOLFE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(datasets, "downloaded", None)


def told(capsys, status=0):
    assert cli.main(["doctor"]) == status
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


def without(monkeypatch, *hidden):
    """Let packages look as if they were not installed."""
    known = metadata.version

    def version(name):
        if name in hidden:
            raise metadata.PackageNotFoundError(name)
        return known(name)

    monkeypatch.setattr(metadata, "version", version)


def one_line(text):
    return " ".join(text.split())


def test_a_healthy_machine(capsys, tmp_path):
    text = told(capsys)
    parts = ["driftwolfe 0.", "Python 3.", "numpy", "scipy", "numba", "BLAS", "cores", "GPU"]
    parts += ["threads of experts", "compiled code", "MovieLens 100K", "Shuttle"]
    assert [part for part in parts if part not in text] == []
    assert "POLA, 256 rounds on an L1 ball: regret 1.7, bound 377" in one_line(text)
    missing = "The core works. First of what is missing, gpu: pip install 'driftwolfe[gpu]'"
    well = "All is well. See it at work: driftwolfe demo"
    assert text.splitlines()[-1] == (well if HAS_TORCH else missing)
    assert not list(tmp_path.iterdir())  # nothing is made


@pytest.mark.skipif(os.name != "posix", reason="closes a stream by its number")
def test_a_closed_output_is_no_fault():
    command = [sys.executable, "-m", "driftwolfe", "doctor"]
    options = {"stderr": subprocess.PIPE, "text": True, "preexec_fn": lambda: os.close(1)}
    done = subprocess.run(command, **options)
    assert (done.returncode, done.stderr) == (0, "")


def test_narrow_and_ascii_terminals(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    text = told(capsys)
    assert text.isascii()
    assert all(len(line) <= 40 or " " not in line.strip() for line in text.splitlines())


def test_what_is_needed_is_what_the_project_says():
    project = tomllib.loads(PROJECT.read_text())["project"]

    def listed(needed):
        return sorted(f"{each.name}{each.specifier}" for each in needed)

    def written(lines):
        """The lines of the project, with those of extras within extras."""
        for line in lines:
            if line.startswith("driftwolfe["):
                yield from written(extras[line.removeprefix("driftwolfe[").removesuffix("]")])
            else:
                yield line

    extras = project["optional-dependencies"]
    assert listed(doctor.requirements()) == sorted(project["dependencies"])
    for name in doctor.EXTRAS:
        assert listed(doctor.requirements(name)) == sorted(written(extras[name]))


def test_a_missing_extra_is_named_with_what_it_is_for(capsys, monkeypatch):
    without(monkeypatch, "msgspec")
    text = one_line(told(capsys))
    assert "note experiments for driftwolfe reproduce, sweep, report; msgspec is missing" in text
    assert "note distributed" in text and "ok plot" in text
    assert text.endswith("is missing, experiments: pip install 'driftwolfe[experiments]'")


def test_a_missing_or_old_package_of_the_core_is_broken(monkeypatch, capsys):
    without(monkeypatch, "tqdm", "matplotlib")
    text = one_line(told(capsys, status=1))
    assert "broken tqdm tqdm is missing" in text and "ok numpy" in text
    assert text.endswith("The core is broken. First, for tqdm: pip install --upgrade 'tqdm>=4.66'")
    monkeypatch.setattr(metadata, "version", lambda name: "0.3")
    assert doctor.fault(Requirement("numba>=0.60")) == "numba is 0.3, but must be >=0.60"
    assert doctor.fault(Requirement("numpy>=0.2")) == ""


def test_data_are_sought_and_never_downloaded(tmp_path, monkeypatch):
    film, _ = doctor.data_sets()
    missing = f"ml-100k/u.data not found in {tmp_path / 'cache'}"
    assert film.text == f"{missing}; driftwolfe reproduce downloads it"
    monkeypatch.setenv("DRIFTWOLFE_DATA", str(tmp_path))
    (tmp_path / "ml-100k").mkdir()
    content = b"1\t2\t3\t4\n"
    (tmp_path / "ml-100k" / "u.data").write_bytes(content)
    film, shuttle = doctor.data_sets()
    assert "is not the published file" in film.text and shuttle.state == "note"
    assert film.remedy.startswith("get ml-100k/u.data again from https://grouplens.org")
    published = replace(doctor.RATINGS, sha256=hashlib.sha256(content).hexdigest())
    monkeypatch.setattr(doctor, "RATINGS", published)
    film, _ = doctor.data_sets()
    assert film == Finding("MovieLens 100K", f"{tmp_path / 'ml-100k' / 'u.data'}, as published")


def test_compiled_code_and_threads(monkeypatch):
    found = doctor.compiled_code()
    assert found.state == "ok" and "kept in" in found.text
    monkeypatch.setattr(doctor.os, "sched_getaffinity", lambda pid: [], raising=False)
    *_, last = doctor.threads()
    assert last.state == "note" and "set_threads" in last.remedy


def test_a_game_beyond_its_bound_is_broken(monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(dw.POLA, "bound", lambda self, **_: 0.0)
        assert doctor.self_test().state == "broken"
    with monkeypatch.context() as patch:
        patch.setattr(dw.L1Ball, "contains", lambda self, point: False)
        assert doctor.self_test().state == "broken"
    assert doctor.self_test().state == "ok"
    monkeypatch.setattr(dw.POLA, "bound", lambda self, **_: 1 / 0)
    assert "broken does it work ZeroDivisionError" in one_line(told(capsys, status=1))


def test_the_doctor_does_not_fall_ill(monkeypatch, capsys):
    def fail():
        raise RuntimeError("no such luck")

    monkeypatch.setattr(doctor, "threads", fail)
    text = told(capsys, status=1)
    assert "RuntimeError: no such luck" in text and "self-test" in text
    assert "Traceback" not in text

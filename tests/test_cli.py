"""The command line as a person meets it."""

import re
import shutil
import signal
import subprocess
import sys

import pytest

import driftwolfe as dw
from driftwolfe import cli
from experiments.small import hears_ctrl_c, until
from reliability.children import python


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["--help"], 0, "linear"),
        (["demo", "--help"], 0, "needs no step size"),
        ([], 2, "driftwolfe: error: "),
        (["fly"], 2, "driftwolfe: error: "),
        (["sweep", "--jobs", "0"], 2, "driftwolfe sweep: error: "),
        (["demo", "--rounds", "many"], 2, "driftwolfe: error: "),
        (["demo", "--seed", "-1"], 2, "whole number >= 0"),
        (["demo", "--seed", "some"], 2, "whole number >= 0"),
    ],
)
def test_help_teaches_and_mistakes_get_a_sentence(arguments, status, told, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(arguments)
    assert end.value.code == status
    out, err = capsys.readouterr()
    assert told in " ".join((err if status else out).split())


def test_the_help_has_every_status_and_the_version_is_told(capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"driftwolfe {dw.__version__}\n"
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    told = capsys.readouterr().out.partition("exit status:\n")[2]
    assert told.splitlines() == [f"  {n:<5}{meaning}" for n, meaning in cli.STATUSES.items()]


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (ValueError("radius must be positive, got -1"), 2, "radius must be positive, got -1"),
        (MemoryError(), 5, "not enough memory"),
    ],
)
def test_errors_of_the_library_are_one_line(error, status, told, monkeypatch, capsys):
    def fail(options):
        raise error

    monkeypatch.setattr(cli, "run_doctor", fail)
    assert cli.main(["doctor"]) == status
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("driftwolfe: ") and told in err
    assert err.count("\n") == 1


SPEC = """
title = "Steps"
seeds = 4
data = { name = "jumping-target", rounds = 40 }
[[methods]]
method = "OGD"
"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A sweep run from the command line, and what it printed."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "steps.toml").write_text(SPEC)
    command = ["sweep", "steps.toml", "--out", "found", "--jobs", "1"]
    return folder, python("-m", "driftwolfe.cli", *command, cwd=folder)


@pytest.fixture
def one_format(monkeypatch):
    """Figures are written once: all formats take seconds, and are in what `swept` wrote."""
    monkeypatch.setattr("driftwolfe.experiments.figures.FORMATS", ["svg"])


def test_a_sweep_ends_with_its_table_and_where_things_lie(swept):
    folder, done = swept
    assert "\n  OGD  " in done.stdout and "report.html" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert len(list(folder.glob("found/trials/*.json"))) == 4
    for suffix in ("png", "pdf", "svg"):
        assert list(folder.glob(f"found/figures/*.{suffix}"))
    assert "4/4" in done.stderr and done.stderr.count("\n") <= 4


def test_the_same_sweep_again_runs_nothing(swept, one_format, capsys):
    folder, _ = swept
    before = {path: path.stat().st_mtime_ns for path in folder.glob("found/trials/*.json")}
    assert cli.main(["sweep", str(folder / "steps.toml"), "--out", str(folder / "found")]) == 0
    assert before == {p: p.stat().st_mtime_ns for p in folder.glob("found/trials/*.json")}


def test_a_packed_sweep_is_read_and_resumed(swept, one_format, capsys, tmp_path):
    folder = shutil.copytree(swept[0], tmp_path / "copy")
    before = (folder / "found" / "summary.md").read_text()
    assert cli.main(["report", str(folder / "found"), "--pack"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("trials.jsonl.xz")
    assert not (folder / "found" / "trials").exists()
    (folder / "found" / "summary.md").unlink()
    command = ["sweep", str(folder / "steps.toml"), "--out", str(folder / "found")]
    assert cli.main(command) == 0
    assert not (folder / "found" / "trials").exists()
    assert (folder / "found" / "summary.md").read_text() == before


def test_status_report_and_claims_read_what_is_there(swept, one_format, capsys):
    found = str(swept[0] / "found")
    assert cli.main(["status", found]) == 0
    assert "Steps: 4 of 4 trials done" in capsys.readouterr().out
    made_by = (swept[0] / "found" / "summary.md").read_text().splitlines()[2]
    assert made_by.startswith("Made by `driftwolfe sweep ")
    assert cli.main(["report", found]) == 0
    assert "report.html" in capsys.readouterr().out
    assert made_by in (swept[0] / "found" / "summary.md").read_text().splitlines()
    assert cli.main(["claims", found]) == 0
    assert "the paper makes no claim about these results" in capsys.readouterr().out


def test_overview_puts_results_into_one_table_and_says_what_to_open(swept, capsys):
    found = swept[0] / "found"
    picture = found / "figures" / "panels.svg"
    assert cli.main(["overview", str(picture), str(found), str(found)]) == 0
    told = capsys.readouterr().out
    assert told.count("  OGD") == 2 and "1 projections" in told
    table, _, opened = told.partition("to open:")
    assert f"{found / 'report.html'}" in opened and str(found / "figures" / "panels.png") in opened
    assert table.startswith("piecewise constant, 40 rounds\nmethod ") and str(picture) in opened
    assert cli.main(["overview", str(picture)]) == 0
    assert capsys.readouterr().out.startswith("to open:")


def test_overview_descends_into_folders_and_passes_over_tuning(swept, tmp_path, capsys):
    results = tmp_path / "results"
    shutil.copytree(swept[0] / "found", results / "inner" / "found")
    shutil.copytree(swept[0] / "found", results / "inner" / "found" / "tuning")
    (results / "demo.png").touch()
    assert cli.main(["overview", str(results)]) == 0
    told = capsys.readouterr().out
    assert told.count("  OGD") == 1 and str(results / "demo.png") in told
    assert str(results / "inner" / "found" / "report.html") in told and "tuning" not in told


def test_every_preset_has_an_estimate_of_its_time(capsys):
    from driftwolfe.experiments.paper import EXPERIMENTS

    with pytest.raises(SystemExit):
        cli.main(["reproduce", "--help"])
    told = capsys.readouterr().out
    parts = re.split("presets of ([a-z-]+)", told)[1:]
    for name, part in zip(parts[::2], parts[1::2], strict=True):
        found = re.findall("^  ([a-z-]+) {3,}.*(?:minute|hour|day).*:", part, re.MULTILINE)
        assert found == list(EXPERIMENTS[name])


def test_the_example_of_a_sweep_is_one(capsys):
    from driftwolfe.experiments.sweep import parse_spec

    assert cli.main(["sweep", "--example"]) == 0
    assert len(parse_spec(capsys.readouterr().out.encode()).trials()) == 27


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["sweep"], 2, "say which sweep to run, or print an example of one with --example"),
        (["sweep", "folder"], 3, "there is no file folder"),
        (["sweep", "a\x00b"], 3, "there is no file"),
        (["sweep", "bad.toml"], 2, "bad.toml: "),
        (["sweep", "unknown.toml"], 2, "unknown.toml: unknown method 'POLDA'"),
        (["sweep", "key.toml"], 2, "key.toml: unknown key `method`; did you mean 'methods'?"),
        (["sweep", "steps.toml", "--scheduler", "tcp://127.0.0.1:9"], 5, "no Dask scheduler"),
        (["sweep", "steps.toml", "--out", "file/deeper"], 5, "file is not a folder"),
        (["sweep", "steps.toml", "--out", "a\x00b"], 2, "null"),
        (["status", "nowhere"], 3, "there is no folder nowhere"),
        (["report", "file"], 3, "holds no sweep"),
        (["claims", "folder"], 3, "holds no sweep"),
        (["overview", "nowhere", "file"], 3, "there is no folder nowhere"),
        (["overview", "."], 3, ". holds no sweep: there is no sweep.json"),
        (["demo", "--out", "file/x.png", "--seed", "1"], 5, "file is not a folder"),
        (["demo", "--out", "folder"], 2, "its name must end in .png"),
        (["reproduce", "classification", "--data", "nowhere"], 3, "; set --data, or set "),
        (["reproduce", "classification", "--data", "."], 3, "neither shuttle"),
        (["reproduce", "matrix-completion", "--preset", "small-radius"], 2, "got 'small-radius'"),
        (["reproduce", "classification", "--seeds", "1000000000"], 2, "must be at most 1000"),
    ],
)
def test_command_lines_that_cannot_be_run_get_one_sentence(
    arguments, status, told, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("driftwolfe.experiments.running._PATIENCE", 1.0)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "bad.toml").write_bytes(b"\x00\xff = [")
    (tmp_path / "unknown.toml").write_text(SPEC.replace("OGD", "POLDA"))
    (tmp_path / "steps.toml").write_text(SPEC)
    (tmp_path / "key.toml").write_text(SPEC.replace("[[methods]]", "[[method]]"))
    before = sorted(tmp_path.rglob("*"))
    assert cli.main(arguments) == status
    printed = capsys.readouterr()
    assert told in printed.err.splitlines()[-1] and len(printed.err) < 700
    assert "Traceback" not in printed.err
    assert printed.err.splitlines()[-1].startswith("driftwolfe: ")
    assert arguments[0] == "demo" or printed.out == ""
    assert "--scheduler" in arguments or sorted(tmp_path.rglob("*")) == before  # nothing was begun


def test_a_missing_extra_is_named_with_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "msgspec", None)
    monkeypatch.setattr(dw, "experiments", dw.experiments)  # put back after the import below
    for name in [n for n in sys.modules if n.startswith("driftwolfe.experiments")]:
        monkeypatch.delitem(sys.modules, name)
    assert cli.main(["status", "nowhere"]) == 4
    told = capsys.readouterr().err
    assert "msgspec is missing; pip install 'driftwolfe[experiments]'" in told


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(tmp_path):
    (tmp_path / "long.toml").write_text(SPEC.replace("seeds = 4", "seeds = 400"))
    command = [sys.executable, "-m", "driftwolfe.cli"]
    command += ["sweep", "long.toml", "--out", "found", "--jobs", "1"]
    with hears_ctrl_c():
        options = {"cwd": tmp_path, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, **options)
    until(lambda: list(tmp_path.glob("found/trials/*.json")), "a result")
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130, told
    assert "Traceback" not in told
    assert "trials are done and kept in found" in told
    assert "resume with: driftwolfe sweep long.toml --out found --jobs 1" in told


def test_the_package_is_the_program_too():
    assert python("-m", "driftwolfe", "--help").stdout.startswith("usage: driftwolfe [-h]")
    assert "driftwolfe: error:" in python("-m", "driftwolfe", status=2).stderr

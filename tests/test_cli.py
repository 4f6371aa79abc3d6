"""The command line as a person meets it."""

import subprocess
import sys

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe import cli
from driftwolfe.experiments import oracle_table


def test_oracles_prints_a_row_for_every_method_that_applies(capsys):
    assert cli.main(["oracles", "--repeats", "1"]) == 0
    table = capsys.readouterr().out
    for text in ("L1 ball", "Birkhoff", "spanning trees", "flows", "trace norm"):
        assert text in table
    for method in ("paper", "halfspace", "corrective", "block", "exact"):
        assert f"`{method}`" in table
    rows = table.strip().splitlines()
    assert len(rows) == 2 + 18
    assert "cut off" not in table


def test_the_cheap_methods_are_cheap_and_the_exact_one_is_exact(monkeypatch):
    monkeypatch.setattr(oracle_table, "problems", _small_problems)
    rows = {row.method: row for row in oracle_table.oracle_table(repeats=1)}
    assert rows["exact"].error < 1e-12
    assert rows["halfspace"].lmo_calls <= rows["paper"].lmo_calls


def _small_problems():
    ball = dw.L1Ball(50)
    yield "small", ball, ball.origin(), np.linspace(-1, 1, 50)


@pytest.mark.parametrize("arguments", [["--help"], ["oracles", "--help"]])
def test_help_teaches(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(arguments)
    assert end.value.code == 0
    assert "linear" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [[], ["fly"], ["oracles", "--repeats", "0"], ["oracles", "--repeats", "many"]]
)
def test_mistakes_get_a_sentence_and_no_traceback(arguments):
    done = subprocess.run(
        [sys.executable, "-m", "driftwolfe.cli", *arguments], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "driftwolfe" in done.stderr


def test_errors_of_the_library_are_one_line(monkeypatch, capsys):
    def fail(options):
        raise ValueError("radius must be a positive finite number, got -1")

    monkeypatch.setattr(cli, "_oracles", fail)
    assert cli.main(["oracles"]) == 2
    assert (
        capsys.readouterr().err == "driftwolfe: radius must be a positive finite number, got -1\n"
    )

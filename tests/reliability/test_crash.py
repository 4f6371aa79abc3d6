"""Kills at random moments: nothing is torn, lost, doubled or ended otherwise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no SIGKILL")


def crash(kills, before=""):
    """Run the script, after a line of Python; return its exit status, its table and its errors."""
    code = f"{before}\nfrom reliability.crash import main\nraise SystemExit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "--kills", str(kills)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "error"},
    )
    lines = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line[:1] == "|"]
    heads = lines[0] if lines else []
    total = {} if not lines else dict(zip(heads, map(int, lines[-1][1:]), strict=True))
    return done.returncode, total, done.stderr


FAULTLESS = dict.fromkeys(
    ("ended otherwise", "files torn", "trials lost", "trials doubled", "parts left at the end"), 0
)


def test_a_few_kills():
    status, total, errors = crash(2)
    assert status == 0, errors
    assert total["kills"] == 2
    assert FAULTLESS.items() <= total.items()


@pytest.mark.slow
def test_a_hundred_kills():
    status, total, errors = crash(100)
    assert status == 0, errors
    assert total["kills"] == 100
    assert total["aimed at a write"] > 20
    assert FAULTLESS.items() <= total.items()


@pytest.mark.slow
def test_files_that_are_written_in_place_are_found():
    """The same kills, with the care taken out of the writing: they must be seen."""
    careless = (
        "from driftwolfe import storage\n"
        "def write(path, fill):\n"
        "    path.parent.mkdir(parents=True, exist_ok=True)\n"
        "    fill(path)\n"
        "storage.write = write"
    )
    for kills in (6, 12, 24, 48):  # where the first kills hit nothing
        status, total, _ = crash(kills, careless)
        if total["files torn"]:
            break
    assert status == 1
    assert total["files torn"] > 0

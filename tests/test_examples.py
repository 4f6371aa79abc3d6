"""Every example runs without a warning, prints its table, and draws the figure that it announces."""

import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.font_manager  # builds its cache here, so that no example has to say it does
import matplotlib.image
import pytest

from reliability.children import same_copy

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.py"))


def test_there_are_examples():
    assert len(EXAMPLES) >= 4
    assert matplotlib.font_manager.fontManager.ttflist


@pytest.mark.slow  # `make docs`, which every change must pass, runs each of them too
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_ends_in_a_table_or_a_figure(path, tmp_path):
    printed = _run(path, tmp_path)
    announced = re.findall(r"^figure: (\S+)$", printed, flags=re.MULTILINE)
    assert sorted(announced) == _files(tmp_path), "a figure for each one announced, nothing else"
    for name in announced:
        assert Path(name).parent == Path("results/examples") and name.endswith(".png")
        picture = matplotlib.image.imread(tmp_path / name)
        assert len({tuple(colour) for colour in picture[::9, ::9].reshape(-1, 4)}) > 5
    assert len(printed.splitlines()) - len(announced) >= 3


def test_without_matplotlib_an_example_still_prints_its_table(tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ModuleNotFoundError('No module matplotlib')")
    printed = _run(FOLDER / "following_drift.py", tmp_path, **same_copy(tmp_path))
    assert "POLA" in printed
    assert printed.splitlines()[-1] == "no figure: it needs pip install 'driftwolfe[plot]'"


def _run(path, folder, **environment):
    done = subprocess.run(
        [sys.executable, "-B", str(path)],
        cwd=folder,
        env={**os.environ, "PYTHONWARNINGS": "error", **environment},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def _files(folder):
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())

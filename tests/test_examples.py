"""Examples and notebooks run without a warning, and print and draw what they announce."""

import contextlib
import io
import json
import os
import re
from pathlib import Path

import matplotlib.font_manager  # builds its cache here, so that no example has to say it does
import matplotlib.image
import pytest

from reliability.children import python, same_copy

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
    environment = {**os.environ, "PYTHONWARNINGS": "error", **environment}
    done = python("-B", path, cwd=folder, env=environment, timeout=180)
    assert done.stderr == ""
    return done.stdout


def _files(folder):
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


pytest.importorskip("sklearn")
matplotlib = pytest.importorskip("matplotlib")

BOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(path, tmp_path, monkeypatch):
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plt, "show", lambda: plt.close("all"))
    names = {"__name__": path.stem}
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert cells
    for cell in cells:
        shown = "".join(
            "".join(output["text"]) for output in cell["outputs"] if output.get("name") == "stdout"
        )
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("".join(cell["source"]), str(path), "exec"), names)
        assert bool(shown) == bool(printed.getvalue())  # it was stored executed
        if "seconds" not in shown:
            assert _words(shown) == _words(printed.getvalue())


def _words(text):
    """What is told without its numbers, which may differ in their last digits."""
    return [word for word in text.split() if not any(letter.isdigit() for letter in word)]

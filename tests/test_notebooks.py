"""The notebooks run from their first cell to the last, and what they print is what they show."""

import contextlib
import io
import json
from pathlib import Path

import pytest

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

"""What the README and the docs say is so."""

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def _names_after(page):
    """What the code of a page leaves behind."""
    names = {}
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    for block in blocks:
        exec(block, names)
    return names


def test_the_code_of_the_readme_runs_and_does_what_it_says(capsys):
    names = _names_after("README.md")
    assert names["learner"].decision[1] > 0.8
    assert np.abs(names["learner"].decision).sum() <= 1 + 1e-9
    assert capsys.readouterr().out
    assert names["completer"].users_ == ["ann", "bob"]


def test_the_code_about_estimators_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    page = (ROOT / "docs/estimators.md").read_text()
    rows = {"X": rng.random((60, 4)), "more": rng.random((9, 4))}
    names = {**rows, "y": rng.integers(0, 3, 60), "labels": rng.integers(0, 3, 9)}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(block, names)
    assert names["completer"].n_ratings_ == 3
    assert (tmp_path / "ratings.safetensors").exists()
    assert names["pipeline"].predict(names["more"]).shape == (9,)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_public_set_and_learner_is_in_the_readme():
    import driftwolfe as dw

    text = (ROOT / "README.md").read_text()
    helpers = {"CountedDomain", "Domain", "Learner", "OracleCalls", "count_calls"}
    for name in {*dw.domains.__all__, *dw.learners.__all__} - helpers:
        assert f"`{name}`" in text, name


@pytest.mark.parametrize("page", ["README.md", "docs/results/README.md"])
def test_results_told_are_those_that_were_measured(page):
    """Every cell of a table under `<!-- from FILE -->` stands in that file, in its method's row."""
    found = re.findall(r"<!-- from (\S+) -->\n((?:\|.*\n)+)", (ROOT / page).read_text())
    assert found
    for source, table in found:
        measured = (ROOT / source).read_text().splitlines()
        for line in table.splitlines()[2:]:
            cells = [cell.strip() for cell in line.strip("| ").split("|")]
            (row,) = [row for row in measured if row.startswith(f"| {cells[0]} |")]
            told = {cell.strip() for cell in row.strip("| ").split("|")}
            assert set(cells) <= told, (cells, told)

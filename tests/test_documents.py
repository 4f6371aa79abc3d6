"""What the README and the docs say is so."""

import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_code_of_the_readme_runs_and_does_what_it_says(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        names = {}
        exec(block, names)
        assert names["learner"].decision[1] > 0.8
        assert np.abs(names["learner"].decision).sum() <= 1 + 1e-9
    assert capsys.readouterr().out


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

"""README and docs: code runs, links work, numbers and files are those of the repository."""

import re
from pathlib import Path

import numpy as np
import pytest

from devices import needs_torch

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "driftwolfe"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
#: What streams are of, in the table of models.
STREAMS = ("labels", "known", "numbers", "ratings", "likes")
#: A block of code, and what it prints where that is told right below.
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)
#: The page on sweeps starts processes and draws figures, as tests/test_cli.py does.
MARKS = {"gpu": needs_torch, "sweeps": pytest.mark.slow}
#: Pages whose code needs nothing but itself, or PyTorch.
PROGRAMS = [
    pytest.param(page, id=page.stem, marks=MARKS.get(page.stem, ()))
    for page in PAGES
    if BLOCK.search(page.read_text()) and page.name != "README.md"
]


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


@pytest.mark.parametrize("page", PROGRAMS)
def test_the_code_of_a_page_runs_and_prints_what_is_told(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page.stem}
    for code, told in BLOCK.findall(page.read_text()):
        exec(compile(code, page, "exec"), names)
        printed = capsys.readouterr().out
        assert not told or printed.rstrip() == told.rstrip()


def test_every_line_of_the_table_of_sets_is_one_that_runs():
    page = (ROOT / "docs/howto/own-set.md").read_text()
    lines = re.findall(
        r"^\| [^`\n]+ \| `(.+)` \|$", page.replace("`linprog`", "linprog"), re.MULTILINE
    )
    run = "".join(code for code, _ in BLOCK.findall(page)).splitlines()
    assert len(lines) == 10
    assert not set(lines) - set(run)


def test_the_landing_page_follows_its_jump(capsys):
    assert _names_after("docs/index.md")["learner"].decision[1] > 0.99
    assert capsys.readouterr().out == "[0. 1. 0.]\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", _without_code(page)):
        place = page.parent / target if target else page
        assert place.exists(), target
        if anchor:
            assert anchor in _anchors(place), f"{target}#{anchor}"


def _without_code(page):
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def _anchors(page):
    """Names of headings, as code hosts and the site make them."""
    headings = re.findall(r"^#+ (.*)$", _without_code(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


def test_public_names_are_in_the_readme_and_among_all_methods():
    import driftwolfe as dw

    text = (ROOT / "README.md").read_text()
    helpers = {"CountedDomain", "Domain", "Learner", "OracleCalls", "count_calls"}
    for name in {*dw.domains.__all__, *dw.learners.__all__} - helpers:
        assert f"`{name}`" in text, name
    text = (ROOT / "docs" / "methods.md").read_text()
    for name in {*dw.learners.__all__, *dw.contrib.__all__} - {"Learner"}:
        assert re.search(rf"^\| `{name}`", text, re.MULTILINE), name


#: Files of `contrib` that may be longer: each has two learners of a kind.
LONG = ("bandit.py", "constrained.py", "discounted.py", "frank_wolfe.py", "newton.py")


def test_a_learner_of_contrib_is_one_short_file():
    """What CONTRIBUTING says of a new learner: its file has at most 120 lines."""
    for path in (SOURCE / "contrib").glob("*.py"):
        assert path.name in LONG or len(path.read_text().splitlines()) <= 120, path.name


@pytest.mark.parametrize(
    "page",
    [
        *("README.md", "docs/gpu.md", "docs/reproduce.md", "docs/results/README.md"),
        "docs/howto/which-model.md",
    ],
)
def test_results_told_are_those_that_were_measured(page):
    """Every cell of a table under `<!-- from FILE -->` stands in that file, in its method's row.

    A column may come from a file of its own, which need not have all rows: `; COLUMN from FILE`.
    """
    table = re.compile(r"<!-- from (\S+?)(?:; (\w+) from (\S+))? -->\n((?:\|.*\n)+)")
    found = table.findall((ROOT / page).read_text())
    assert found
    for source, column, other, text in found:
        head, _, *lines = map(_cells, text.splitlines())
        places = [i for i, name in enumerate(head) if name != column]
        _check_cells(source, head, lines, places)
        if column:
            there = [cells for cells in lines if cells[head.index(column)]]
            assert there
            _check_cells(other, head, there, [0, head.index(column)])


def _check_cells(source, head, lines, places):
    measured = [_cells(row) for row in (ROOT / source).read_text().splitlines()]
    assert any({head[i] for i in places} <= set(row) for row in measured), head
    for cells in lines:
        # A method has a row for each data set.
        rows = [row for row in measured if row[0] == cells[0]]
        assert any({cells[i] for i in places} <= set(row) for row in rows), (cells, rows)


def test_the_share_of_streams_on_which_ours_is_best_is_that_of_the_table():
    rows = [
        _cells(row) for row in (ROOT / "docs/results/streams/summary.md").read_text().split("\n")
    ]
    counts = [[int(row[1]), int(row[2])] for row in rows if row[0] in STREAMS]
    number, best = np.sum(counts, axis=0)
    assert len(counts) == len(STREAMS)
    for page in ("README.md", "docs/index.md", "docs/results/README.md"):
        assert re.findall(r"(\d+) of (\d+)(?: streams|\b)", (ROOT / page).read_text()) == [
            (str(best), str(number))
        ], page


def _cells(row):
    return [cell.strip() for cell in row.removeprefix("|").removesuffix("|").split("|")]


def _files_named(page):
    """The source files that a page names, such as `points/factored.py`."""
    names = re.findall(r"`((?:\w+/)*\w+\.py)`", (ROOT / page).read_text())
    return [name for name in names if not name.endswith("__init__.py")]


def test_the_architecture_page_names_every_source_file_once():
    named = _files_named("docs/architecture.md")
    paths = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")}
    # Of `contrib`, docs/methods.md has a row for each.
    there = {path for path in paths if not path.endswith("__init__.py") and path[:8] != "contrib/"}
    assert (there - set(named), set(named) - there) == (set(), set()), "to add, and to remove"
    assert len(named) == len(set(named)), "each file once"


def test_the_page_on_one_round_names_at_most_15_files_that_exist():
    named = set(_files_named("docs/one_round.md"))
    assert 5 < len(named) <= 15
    assert [name for name in named if not (SOURCE / name).exists()] == []


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/gpu.md", "docs/theory/errata.md"])
def test_source_files_that_a_page_names_exist(page):
    for name in _files_named(page):
        places = [ROOT / name, SOURCE / name, *([] if "/" in name else SOURCE.rglob(name))]
        assert any(place.exists() for place in places), name

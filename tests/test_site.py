"""The documentation site: contains every public name, and finds broken links."""

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import driftwolfe as dw
from driftwolfe import cli

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture
def site(monkeypatch):
    """The modules that build the site, by name."""
    monkeypatch.syspath_prepend(str(DOCS / "site"))
    names = ("contents", "api", "command_line", "examples", "stage", "links")
    yield {name: importlib.import_module(name) for name in names}
    for name in names:
        del sys.modules[name]


def test_every_public_name_is_in_the_reference(site):
    listed = {
        id(getattr(importlib.import_module(name.rpartition(".")[0]), name.rpartition(".")[2]))
        for name in site["api"].full_names()
    }
    rooms = [dw, dw.domains, dw.learners, dw.contrib, dw.losses, dw.oracles, dw.regret, dw.streams]
    rooms += [dw.reference, dw.distributed, dw.estimators, dw.points, dw.ensemble]
    rooms += [dw.streams.drift, dw.streams.synthetic]
    for room in rooms:
        for name in room.__all__:
            value = getattr(room, name)
            if not inspect.ismodule(value) and name != "__version__":
                assert id(value) in listed, f"{room.__name__}.{name}"


def test_every_name_of_the_reference_has_a_page(site):
    pages = site["api"].pages()
    assert all(f"api/{name}.rst" in pages for name in site["api"].full_names())
    assert "   :members:" in pages["api/driftwolfe.POLA.rst"]
    page = pages["api/driftwolfe.POLA.rst"]
    assert "   :inherited-members: Learner\n" in page
    assert dw.POLA.decision.__doc__ and dw.POLA.update.__doc__


def test_the_command_line_has_a_page_with_every_option(site):
    page, parser = site["command_line"].page(), cli.make_parser()
    (commands,) = parser._subparsers._group_actions
    for name, command in commands.choices.items():
        part = page.partition(f"\n## driftwolfe {name}\n")[2].partition("\n## ")[0]
        for action in command._actions:
            if action.dest != "help":
                assert f"| `{(action.option_strings or [action.metavar])[0] or ''}" in part
    assert all(f"| {status} | {meaning} |" in page for status, meaning in cli.STATUSES.items())


def test_every_page_is_in_the_sidebar_once(site):
    sidebar, below = site["contents"].SIDEBAR, site["contents"].BELOW
    assert sum(map(len, sidebar.values())) <= 15
    placed = [page for pages in (*sidebar.values(), *below.values()) for page in pages]
    assert len(placed) == len(set(placed))
    assert set(below) <= set(placed)
    texts = site["stage"]._written() | {"theory/new.md": "# New", "lost.md": "# Lost"}
    staged = site["stage"]._with_contents(texts)
    assert "\nnew\n" in staged["theory/index.md"]
    assert ":caption: More\n\nlost\n" in staged["index.md"]
    assert "classification/report.html" in staged["results/README.md"]


def test_styles_of_sections_have_their_sections(site):
    named = set(re.findall(r"section#([\w-]+)", (DOCS / "site/static/style.css").read_text()))
    text = (DOCS / "index.md").read_text() + "\n# Examples\n"
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    assert named and named <= {re.sub(r"\W+", "-", title.lower()).strip("-") for title in titles}


def test_links_are_led_to_their_place_on_the_site(site):
    relinked = site["stage"]._written()
    assert "(../examples/your_own_set.md)" in relinked["howto/own-set.md"]
    assert "(../contributing.md)" in relinked["howto/own-set.md"]
    assert "(reliability.md)" in relinked["security.md"]
    assert "](figures/lmo.svg)" in relinked["tour.md"]


def test_broken_links_and_what_needs_the_network_are_found(site, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.html").write_text(
        '<h1 id="top-of-a">A</h1><a href="sub/b.html#there">b</a><a href="#top-of-a">a</a>'
        '<a href="https://example.org">outside</a><img src="missing.png">'
    )
    (tmp_path / "sub/b.html").write_text(
        '<p id="there"></p><a href="../a.html#nowhere">a</a><a href="../c.html">c</a>'
        '<script src="https://example.org/x.js"></script>'
    )
    assert site["links"].broken(tmp_path) == [
        "a.html: missing.png",
        "sub/b.html: ../a.html#nowhere",
        "sub/b.html: ../c.html",
    ]
    assert site["links"].outside(tmp_path) == ["sub/b.html: https://example.org/x.js"]


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("tour", marks=pytest.mark.slow),
        "architecture",
        pytest.param("intervals", marks=pytest.mark.slow),
        pytest.param("changes", marks=pytest.mark.slow),
    ],
)
def test_the_figures_are_all_drawn_by_their_scripts(script, tmp_path):
    subprocess.run([sys.executable, str(DOCS / f"figures/{script}.py"), str(tmp_path)], check=True)
    drawn = sorted(path.name for path in tmp_path.glob("*.svg"))
    assert drawn
    assert all((DOCS / "figures" / name).exists() for name in drawn)

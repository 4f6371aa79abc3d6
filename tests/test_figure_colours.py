"""A method has one colour in all figures: that of `figure.METHODS`."""

import ast
import importlib
import re
import sys
from pathlib import Path

import pytest
from matplotlib import rc_context
from matplotlib.colors import to_hex
from matplotlib.text import Text

from driftwolfe.experiments import figure as fs

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "docs", "examples", "benchmarks", "reliability")
TABLE = ROOT / "src/driftwolfe/experiments/figure.py"
#: What gives a colour in a program: its name here, or its code.
NAMES = {"BLUE", "ORANGE", "GREY", "GREEN", "PINK", "AMBER", "SKY"}
CODE = re.compile(r"#[0-9a-fA-F]{6}|38;[25];[\d;]+")


def is_method(text: object) -> bool:
    return isinstance(text, str) and fs.rank(text) < len(fs.METHODS)


def gives_colour(node: ast.AST) -> bool:
    return any(
        (isinstance(each, ast.Name) and each.id in NAMES)
        or (isinstance(each, ast.Constant) and CODE.fullmatch(str(each.value)) is not None)
        for each in ast.walk(node)
    )


def chosen_by_hand(program: str) -> list[int]:
    """Lines in which a method and a colour stand side by side: in a dict's entry, a tuple, a call."""
    found = []
    for node in ast.walk(ast.parse(program)):
        groups: list[list[ast.AST]] = []
        if isinstance(node, ast.Dict):
            groups = [[k, v] for k, v in zip(node.keys, node.values, strict=True) if k]
        elif isinstance(node, ast.Tuple | ast.List):
            groups = [list(node.elts)]
        elif isinstance(node, ast.Call):
            groups = [[*node.args, *(each.value for each in node.keywords)]]
        for group in groups:
            named = [isinstance(n, ast.Constant) and is_method(n.value) for n in group]
            others = [n for n, name in zip(group, named, strict=True) if not name]
            if any(named) and any(map(gives_colour, others)):
                found.append(node.lineno)
    return found


@pytest.mark.parametrize(
    "line",
    ['x = {"POLAR": BLUE}', 'y = ("POLA, tuned", "#D55E00", 3)', 'f("OGD", color="#CC79A7")'],
)
def test_a_colour_that_is_chosen_by_hand_is_found(line):
    assert chosen_by_hand(line) == [1]
    assert chosen_by_hand('x = {"POLAR": 3}; f("mine", color=BLUE); g("POLAR", "corrective")') == []


def test_the_table_is_the_only_place_that_gives_a_method_a_colour():
    programs = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    assert len(programs) > 100
    found = {
        str(path.relative_to(ROOT)): lines
        for path in programs
        if path != TABLE and (lines := chosen_by_hand(path.read_text(encoding="utf-8")))
    }
    assert found == {}, "take the colours of methods from driftwolfe.plot.colours"


def colours_of_names(figure) -> dict[str, set[str]]:
    """Methods that a figure names in colour, at a line's end or in a legend, and the colours."""
    found: dict[str, set[str]] = {}
    for text in figure.findobj(Text):
        colour = to_hex(text.get_color())
        if is_method(name := text.get_text()) and colour not in (fs.INK, "#000000"):
            found.setdefault(name, set()).add(colour)
    for axis in figure.axes:
        for line in axis.lines:
            if is_method(name := str(line.get_label())):
                found.setdefault(name, set()).add(to_hex(line.get_color()))
    return found


@pytest.mark.parametrize(
    ("script", "drawn"),
    [
        ("hero", {"POLAR", "POLA", "POLD", "Multi-OCG", "Ader"}),
        pytest.param("compare", {"POLAR", "POLA", "OGD"}, marks=pytest.mark.slow),
        pytest.param("tour", {"POLAR", "OGD"}, marks=pytest.mark.slow),
        pytest.param("intervals", {"AdaptiveIntervals"}, marks=pytest.mark.slow),
    ],
)
def test_figures_agree_on_the_colours_of_methods(script, drawn, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "figures"))
    figures = []
    monkeypatch.setattr(sys, "argv", [script])
    with rc_context():  # of which the scripts change some
        module = importlib.import_module(script)
        monkeypatch.setattr(module, "save", lambda figure, *_: figures.append(figure))
        module.main()
    for name in (script, "style"):
        del sys.modules[name]
    found: dict[str, set[str]] = {}
    for figure in figures:
        for name, colours in colours_of_names(figure).items():
            found.setdefault(name, set()).update(colours)
    assert drawn <= found.keys()
    wanted = {fs._plain(name): colour.lower() for name, colour in fs.METHODS.items()}
    assert found == {name: {wanted[fs._plain(fs.family(name))]} for name in found}

"""Mutants of source code: which are made, which are drawn, and whether tests notice."""

import ast
from pathlib import Path
from random import Random

import pytest

from reliability import mutants
from reliability.code_mutants import Mutant, difference, sample
from reliability.code_mutants import mutants as mutants_of
from reliability.mutants import (
    KILLED,
    LIVED,
    TIMED_OUT,
    Copy,
    Drawn,
    belonging,
    draw,
    files,
    measure,
    parts,
    users,
)

ELSE = "elif c:\n    d = 1\n    raise ValueError(d)"


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("a = min(max(b, -1.0), c)", {"a = max(max(b, -1.0), c)", "a = max(b, -1.0)"}),
        ("a = math.fsum(b)", {"a = max(b)"}),
        ("a = math.ceil(b / c)", {"a = math.floor(b / c)", "a = math.ceil((b * c))"}),
        ("a = abs(b)", {"a = b"}),
        ("a = b >= 0.5 * c", {"a = (b < 0.5 * c)", "a = b >= 0.6 * c", "a = b >= c"}),
        ("a = b + error", {"a = b", "a = (b - error)"}),
        ("a = b.mean()[:, 0]", {"a = b.mean()[:, 1]"}),
        ("self.a[0] += b", {"pass", "self.a[0] -= b"}),
        ("self.forget(a)", {"pass"}),
        ("a = f(b, error=c)", {"a = f(b)"}),
        ("a = b if c and not d else e", {"a = (e if c and (not d) else b)", "a = b if c else e"}),
        ("a = sorted(b)", {"a = b"}),
        ("a = d.copy()", {"a = d"}),
        ("a = math.sqrt(b)", {"a = b", "a = (b ** 2)"}),
        ("a = b // c", {"a = (b * c)", "a = b"}),
        ("if a > b:\n    raise ValueError(a)", {"pass", "if (a <= b):\n    raise ValueError(a)"}),
        (
            f"if a:\n    b()\n{ELSE}",
            {"if a:\n    b()\npass", f"if a:\n    pass\n{ELSE}"},
        ),
    ],
)
def test_the_faults_that_reviewers_make(line, changed):
    found = {mutant.source for mutant in mutants_of(line)}
    assert changed <= found
    assert line not in found


def test_what_is_for_people_and_type_checkers_is_left_alone():
    source = '''
"""A docstring, 1 + 1."""
from __future__ import annotations

def tell(a: int | None = None) -> dict[str, int]:
    """Return -1."""
    assert a is None
    raise ValueError(f"must be at most {max(a, 3)}, got {a + 1}")

def __repr__(self):
    return "a" + str(self.b + 1)

for each in zip(a, b, strict=True):
    assert each
'''
    assert mutants_of(source) == []


def test_every_mutant_of_the_library_is_a_small_change_that_compiles():
    source = (mutants.ROOT / "src/driftwolfe/regret/measures.py").read_text()
    found = mutants_of(source)
    assert len(found) > 80
    for mutant in found[::5]:
        ast.parse(mutant.source)
        shown = difference(source, mutant, "measures.py").splitlines()
        assert f"-{source.splitlines()[mutant.line - 1]}" in shown
    assert len({mutant.source for mutant in found}) > 0.9 * len(found)


def test_a_seed_draws_a_set_with_one_mutant_of_a_line():
    paths = files(["regret/measures", "regret/offline.py"])
    one, same, other = (draw(paths, 20, seed) for seed in (3, 3, 4))
    assert one == same and one != other and len(one) == 20
    assert len({(each.path, each.mutant.line) for each in one}) == 20
    few = [Mutant(line, str(k), "") for line in (1, 2) for k in range(5)]
    assert len(sample(few, 10, Random(0))) == 2


def test_loops_are_executed_by_what_uses_them():
    names = {
        path.name
        for path in users(Path("src/driftwolfe/estimators/core/shared_kernels.py"), mutants.ROOT)
    }
    assert {"classifier.py", "classifier_kernels.py", "completer_experts.py"} <= names
    assert not users(Path("src/driftwolfe/game.py"), mutants.ROOT)
    with pytest.raises(SystemExit, match="there is no"):
        files(["regret/nothing"])


def test_a_few_tests_come_first_and_those_that_take_too_long_are_left_out():
    seconds = {"a": 4.0, "b": 5.0, "c": 200.0, "d": 250.0}
    assert list(parts("abcd", seconds)) == [(["a", "b"], 9.0), (["c"], 200.0)]
    assert list(parts("dc", seconds)) == [(["d"], 250.0), (["c"], 200.0)]


@pytest.fixture
def project(tmp_path):
    """A library of functions, all but one of which are tested, one of them by a process of its own."""
    root = tmp_path / "project"
    (root / "src/driftwolfe").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "src/driftwolfe/__init__.py").touch()
    (root / "src/driftwolfe/game.py").write_text(
        "LARGE = 7\n\n\n"
        "def largest(a, b):\n    return max(a, b)\n\n\n"
        "def half(a):\n    return a / 2\n\n\n"
        "def down(a):\n    while a > 0:\n        a -= 1\n    return a\n\n\n"
        "def third(a):\n    return a / 3\n"
    )
    (root / "tests/test_other.py").write_text(
        "import subprocess, sys\n\nfrom driftwolfe.game import LARGE, down, half, largest\n\n\n"
        "def test_largest():\n    assert (largest(1, 2), largest(3, 2)) == (2, 3)\n\n\n"
        "def test_down():\n    assert down(3) == 0\n\n\n"
        "def test_half():\n    half(LARGE)\n\n\n"
        "def test_a_process():\n"
        "    program = 'from driftwolfe.game import third; assert third(6) == 2'\n"
        "    assert subprocess.run([sys.executable, '-c', program]).returncode == 0\n\n\n"
        "def test_what_fails_anyway():\n    assert half(LARGE) == 0\n"
    )
    (root / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\naddopts = "-p no:cacheprovider"\nmarkers = ["slow", "gpu"]\n'
    )
    return root


def test_the_tests_notice_what_they_look_at(project, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # to start quickly
    monkeypatch.setattr(mutants, "PATIENCE", 3.0)
    path, tests = Path("src/driftwolfe/game.py"), "tests/test_other.py::test_"
    original = (project / path).read_text()
    copy = Copy(tmp_path / "copy", project)
    executed = copy.executed(1)

    def told(line, what):
        (mutant,) = (
            each for each in mutants_of(original) if (each.line, each.what) == (line, what)
        )
        drawn = Drawn(path, mutant)
        (outcome,) = measure([drawn], [copy], executed, project)
        return [
            test.removeprefix(tests) for test in belonging(drawn, executed, project)
        ], outcome.verdict

    assert told(5, "min for max") == (["largest"], KILLED)
    assert told(9, "right operand dropped") == (["half"], LIVED)
    assert told(14, "operator exchanged") == (["down"], TIMED_OUT)
    assert told(19, "operator exchanged") == (["a_process"], KILLED)
    at_import, verdict = told(1, "8 for 7")
    assert set(at_import) == {"largest", "half", "down", "a_process"} and verdict == LIVED
    # What was changed is put back, and the checkout was never touched.
    assert (copy.folder / path).read_text() == (project / path).read_text() == original
    assert copy.executed(1).seconds == executed.seconds  # noted once
    (copy.folder / "tests/test_other.py").write_text("broken(")
    with pytest.raises(SystemExit, match="no test passed without any mutant; see"):
        copy.executed(1)

"""What is written twice agrees: versions, pins, and requirements in the files that other tools read."""

import ast
import os
import re
import subprocess
import sys
import tarfile
import tomllib
from collections import Counter
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

import driftwolfe as dw
from driftwolfe import cli
from reliability import distribution
from reliability.children import python
from reliability.distribution import FIRST_PAGES, KEPT, commands, extras, faults, snippets
from test_supply_chain import needed

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def found(pattern, file):
    """What a pattern finds in a file of the repository."""
    return re.findall(pattern, (ROOT / file).read_text(), re.MULTILINE)


def test_the_version_is_one_and_the_citation_names_the_paper():
    assert found(r"^version: (.*)$", "CITATION.cff") == [dw.__version__]
    assert found(r'set version = "(.*)"', "recipe/meta.yaml") == [dw.__version__]
    assert found(r"^## (\d+\.\d+\.\d+)", "CHANGELOG.md")[0] == dw.__version__
    families = ["Wang", "Yang", "Jiang", "Lu", "Wang", "Tang", "Wan", "Zhang"]
    assert found(r"family-names: (\w+)", "CITATION.cff") == families
    assert found(r"arXiv:(\S+)\"", "CITATION.cff") == ["2305.11726"]
    assert PROJECT["project"]["urls"]["Paper"].endswith("2305.11726")


@cache
def classes():
    """All classes of the sources, each with its file."""
    paths = sorted((ROOT / "src/driftwolfe").rglob("*.py"))
    nodes = ((node, path) for path in paths for node in ast.walk(ast.parse(path.read_text())))
    return [(node, path) for node, path in nodes if isinstance(node, ast.ClassDef)]


def test_no_two_classes_share_a_name():
    names = Counter(node.name for node, _ in classes())
    shared = {name for name, number in names.items() if number > 1}
    assert shared == {"Keyed"}  # on one machine, and `distributed.Keyed` on a cluster


#: Interfaces, and what a constructor, copies or declared state share: no level of their own.
INTERFACES = {"Domain", "Loss", "OfErrors", "Experts", "Learner"}
INTERFACES |= {"Constructed", "Guarded", "Stateful"}
#: What may be a level deeper. Sets that are another one by a shorter constructor; experts that are others
#: but for their step, or their hints: parts passed in would call back into what holds the points.
DEEPER = {
    *("LinfBall", "UniformMatroidPolytope", "BirkhoffPolytope"),
    *("EvenDescent", "GaugeDescent", "SelfConfidentDescent", "SelfConfidentBall"),
    *("OptimisticDescent", "OwnOptimisticDescent", "PoolDescent"),
}
FOLDERS = ("points", "domains", "losses", "oracles", "ensemble", "learners", "contrib")


def test_classes_inherit_once_below_their_interface():
    bases = {
        node.name: [ast.unparse(base).rpartition(".")[2] for base in node.bases]
        for node, path in classes()
        if path.parent.name in (*FOLDERS, "regret", "streams")
    }

    def levels(name):
        if name not in bases or name in INTERFACES:
            return 0
        return 1 + max(map(levels, bases[name]), default=0)

    assert {name for name in bases if levels(name) > 2} == DEEPER


def test_the_recipe_asks_for_what_the_package_asks_for():
    run = (ROOT / "recipe/meta.yaml").read_text().partition("  run:\n")[2].partition("\n\n")[0]
    asked = {line.strip("- ").replace(" ", "") for line in run.splitlines()}
    python = f"python{PROJECT['project']['requires-python']}"
    assert asked == {python, *PROJECT["project"]["dependencies"]}


def test_tools_and_pythons_are_those_that_are_pinned_and_named():
    (pinned,) = found(r"^ruff==(.*)$", "constraints.txt")
    assert found(r"ruff-pre-commit\n    rev: v(.*)$", ".pre-commit-config.yaml") == [pinned]
    named = [c.rpartition(" ")[2] for c in PROJECT["project"]["classifiers"] if "Python :: 3." in c]
    matrix = found(r"^        python: \[(.*)\]$", ".github/workflows/checks.yml")
    assert [", ".join(f'"{python}"' for python in named)] == matrix


def test_workflows_and_hosts_run_commands_of_the_makefile():
    targets = set(found(r"^([a-z-]+):.*## ", "Makefile"))
    workflow = found(r"run: make ([a-z-]+)", ".github/workflows/checks.yml")
    assert {"run", "test", "check", "docs", "bench-short", "dist"} == set(workflow) <= targets
    assert found(r"- make ([a-z-]+)$", ".readthedocs.yaml") == ["docs"]


def test_the_sdist_holds_code_and_pages_have_one_install_line():
    build = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["only-include"]
    assert set(build) < KEPT and not {"docs", "benchmarks", "tests"} & KEPT
    assert len({extras(page) for page in FIRST_PAGES}) == 1


def test_packages_with_too_much_or_too_little_are_refused(tmp_path):
    package = tmp_path / "driftwolfe-0.1.0.tar.gz"

    def source(member):  # without what Python and numba keep beside it
        return None if "__pycache__" in member.name else member

    def packed(*paths):
        with tarfile.open(package, "w:gz") as sdist:
            for path in paths:
                sdist.add(ROOT / path, f"driftwolfe-0.1.0/{path}", filter=source)
        return faults(package)

    assert packed("src", "README.md") == []
    assert packed("src", "recipe/meta.yaml") == ["it holds recipe"]
    assert "it lacks src/driftwolfe/cli.py" in packed("README.md")


def test_every_command_of_the_first_pages_exists():
    targets = set(found(r"^([a-z-]+):.*## ", "Makefile"))
    parser = cli.make_parser()
    for words in [words for page in FIRST_PAGES for words in commands(page)]:
        match words:
            case ["driftwolfe", *given]:
                parser.parse_args(given)
            case ["make", target]:
                assert target in targets
            case ["pip", "install", what]:
                assert what in (".", f".[{extras('README.md')}]")
            case _:
                assert words == ["python", "-m", "venv", ".venv"]


#: Runs code where some modules cannot be imported.
WITHOUT = """
import sys

class Refuse:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"not installed: {name}", name=name)

sys.meta_path.insert(0, Refuse)
"""
#: What the commands of the README import; `driftwolfe reproduce` itself takes too long.
IMPORTS = (
    "import driftwolfe.experiments.paper, driftwolfe.demo, matplotlib.figure, jinja2, plotly\n"
)


def run_with(asked, code):
    """Run code with the packages of some extras alone, of those installed here."""
    names = {"driftwolfe", *needed(asked)}
    missing = {
        module
        for module, owners in packages_distributions().items()
        if not names & set(map(canonicalize_name, owners))
    }
    program = f"MISSING = {missing!r}\n{WITHOUT}\n{code}"
    return python("-c", program, status=None)


def test_the_install_line_brings_what_the_first_pages_need():
    asked = extras("README.md").split(",")
    assert "torch" not in needed(asked)
    code = IMPORTS + "import river\n" + "\n".join(map(snippets, FIRST_PAGES))
    done = run_with(asked, code)
    assert done.returncode == 0, done.stderr
    less = run_with(["plot"], snippets("README.md"))
    assert less.returncode != 0 and "not installed: sklearn" in less.stderr


@pytest.mark.slow
@pytest.mark.skipif("DRIFTWOLFE_OFFLINE" in os.environ, reason="installs packages, by the network")
def test_a_wheel_installed_by_that_line_runs_all_that_the_first_pages_show(tmp_path):
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    subprocess.run([*build, tmp_path, ROOT], check=True)
    (wheel,) = tmp_path.glob("driftwolfe-*.whl")
    distribution.install_and_run(wheel)

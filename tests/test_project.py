"""What is written twice agrees: versions, pins, and requirements in the files that other tools read."""

import re
import tarfile
import tomllib
from pathlib import Path

import driftwolfe as dw
from reliability.distribution import KEPT, faults

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def found(pattern, file):
    """What a pattern finds in a file of the repository."""
    return re.findall(pattern, (ROOT / file).read_text(), re.MULTILINE)


def test_the_version_is_one():
    assert found(r"^version: (.*)$", "CITATION.cff") == [dw.__version__]
    assert found(r'set version = "(.*)"', "recipe/meta.yaml") == [dw.__version__]
    assert found(r"^## (\d+\.\d+\.\d+)", "CHANGELOG.md")[0] == dw.__version__


def test_the_citation_names_the_paper_and_its_authors():
    families = ["Wang", "Yang", "Jiang", "Lu", "Wang", "Tang", "Wan", "Zhang"]
    assert found(r"family-names: (\w+)", "CITATION.cff") == families
    assert found(r"arXiv:(\S+)\"", "CITATION.cff") == ["2305.11726"]
    assert PROJECT["project"]["urls"]["Paper"].endswith("2305.11726")


def test_the_recipe_asks_for_what_the_package_asks_for():
    run = (ROOT / "recipe/meta.yaml").read_text().partition("  run:\n")[2].partition("\n\n")[0]
    asked = {line.strip("- ").replace(" ", "") for line in run.splitlines()}
    python = f"python{PROJECT['project']['requires-python']}"
    assert asked == {python, *PROJECT["project"]["dependencies"]}


def test_hooks_run_the_pinned_ruff():
    (pinned,) = found(r"^ruff==(.*)$", "constraints.txt")
    assert found(r"ruff-pre-commit\n    rev: v(.*)$", ".pre-commit-config.yaml") == [pinned]


def test_every_python_that_is_named_is_tested():
    named = [c.rpartition(" ")[2] for c in PROJECT["project"]["classifiers"] if "Python :: 3." in c]
    matrix = found(r"^        python: \[(.*)\]$", ".github/workflows/checks.yml")
    assert [", ".join(f'"{python}"' for python in named)] == matrix


def test_workflows_and_hosts_run_commands_of_the_makefile():
    targets = set(found(r"^([a-z-]+):.*## ", "Makefile"))
    workflow = found(r"run: make ([a-z-]+)", ".github/workflows/checks.yml")
    assert {"run", "test", "check", "docs", "bench-short", "dist"} == set(workflow) <= targets
    assert found(r"- make ([a-z-]+)$", ".readthedocs.yaml") == ["docs"]


def test_the_sdist_holds_code_and_no_results():
    build = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["only-include"]
    assert set(build) < KEPT and not {"docs", "benchmarks", "tests"} & KEPT


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

"""What is installed is pinned, known and under a licence that lets people use it."""

import re
import tomllib
from importlib.metadata import distribution
from pathlib import Path

from reliability.licences import licence, pinned

ROOT = Path(__file__).parent.parent


def _normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def test_everything_that_is_asked_for_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    asked = [*project["dependencies"], *(each for extra in extras for each in extra)]
    names = {_normal(re.match(r"[\w.-]+", each)[0]) for each in asked} - {"driftwolfe"}
    assert names <= {_normal(name) for name, _ in pinned()}


def test_make_installs_what_is_pinned_and_nothing_else():
    assert "-c constraints.txt" in (ROOT / "Makefile").read_text()
    for name, version in pinned():
        assert distribution(name).version.partition("+")[0] == version, name  # PyTorch's +cpu


def test_the_page_of_licences_is_that_of_the_pins():
    page = (ROOT / "docs/licences.md").read_text()
    for name, version in pinned():
        told = licence(distribution(name))
        assert told, name
        assert f"| {name} | {version} | {told} |" in page
        assert not re.search(r"\b(A?GPL|SSPL|BUSL)", told), (name, told)


def test_no_unsafe_way_to_read_a_file_is_used():
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text()
        assert not re.search(r"\b(pickle|marshal|shelve|dill|joblib)\b", text), path
        assert "allow_pickle=True" not in text, path
        assert not re.search(r"\b(eval|exec)\(", text), path
        assert not re.search(r"yaml\.load\(|os\.system", text), path

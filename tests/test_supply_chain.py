"""What is installed is pinned, for every system, and under a licence that lets people use it."""

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from reliability.licences import CUDA, installed, licence, pins, row, version

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
#: Those that hold others back, and have pins and an environment of their own.
APART = {"beam", "test-beam"}
PYTHONS = ("3.11.0", "3.11.2", "3.11.5", "3.12.0", "3.13.0", "3.14.0")
SYSTEMS = {
    "linux-x86_64": {"sys_platform": "linux", "platform_system": "Linux"},
    "linux-aarch64": {"sys_platform": "linux", "platform_system": "Linux"},
    "macos-arm64": {"sys_platform": "darwin", "platform_system": "Darwin"},
    "windows-AMD64": {"sys_platform": "win32", "platform_system": "Windows"},
}


def environment(python, system):
    """What markers are held against on another machine."""
    return SYSTEMS[system] | {
        "python_full_version": python,
        "python_version": python.rpartition(".")[0],
        "platform_machine": system.partition("-")[2],
        "implementation_name": "cpython",
        "platform_python_implementation": "CPython",
        "os_name": "nt" if system.startswith("windows") else "posix",
    }


def applicable(where=None):
    """The pins of a machine, by default this one."""
    return [pin for pin in pins() if pin.marker is None or pin.marker.evaluate(where)]


def asked(extras):
    """What the core and some extras ask for; extras within extras too."""
    found = [*PROJECT["dependencies"]]
    for extra in extras:
        for each in map(Requirement, EXTRAS[extra]):
            found += asked(each.extras) if each.name == PROJECT["name"] else [str(each)]
    return list(dict.fromkeys(found))


def needed(extras):
    """The names of all that must be installed for some extras, by what packages here say."""
    seen, waiting = set(), [(Requirement(each), "") for each in asked(extras)]
    while waiting:
        each, extra = waiting.pop()
        if each.marker is not None and not each.marker.evaluate({"extra": extra}):
            continue
        new = {(canonicalize_name(each.name), inner) for inner in ("", *each.extras)} - seen
        seen |= new
        for name, inner in new:
            waiting += [(Requirement(line), inner) for line in installed(name).requires or []]
    return {name for name, _ in seen}


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("python", PYTHONS)
def test_everything_that_is_asked_for_is_pinned_once_on_every_system(python, system):
    there = applicable(environment(python, system))
    assert Counter(pin.name for pin in there).most_common(1)[0][1] == 1
    versions = {pin.name: version(pin) for pin in there}
    for each in map(Requirement, asked(EXTRAS.keys() - APART)):
        if each.marker is not None and not each.marker.evaluate(environment(python, system)):
            continue
        assert each.specifier.contains(versions[canonicalize_name(each.name)]), each


def test_what_has_an_environment_of_its_own_is_pinned_there():
    lines = (ROOT / "constraints-beam.txt").read_text().splitlines()
    there = [Requirement(line) for line in lines if not line.startswith("#")]
    assert not re.search(r"[:/@]|--", "".join(map(str, there)))
    applies = [pin for pin in there if pin.marker is None or pin.marker.evaluate()]
    versions = {pin.name: version(pin) for pin in applies}
    for each in map(Requirement, asked(["test-beam"])):
        assert each.specifier.contains(versions[canonicalize_name(each.name)]), each
    assert "-c constraints-beam.txt" in (ROOT / "Makefile").read_text()


def test_pins_admit_the_oldest_python_that_is_promised():
    oldest = PROJECT["requires-python"].removeprefix(">=") + ".0"
    checked = 0
    for pin in applicable(environment(oldest, "linux-x86_64")):
        found = installed(pin.name)
        if found is not None and found.version.partition("+")[0] == version(pin):
            admitted = SpecifierSet(found.metadata.get("Requires-Python") or "")
            assert admitted.contains(oldest), f"{pin} needs Python {admitted}"
            checked += 1
    assert checked >= 30


def test_make_installs_what_is_pinned_from_no_place_that_is_named():
    assert "-c constraints.txt" in (ROOT / "Makefile").read_text()
    pinned = {pin.name: version(pin) for pin in applicable()}
    for name in needed(["test"] if installed("torch") is None else ["test", "gpu"]):
        assert installed(name).version.partition("+")[0] == pinned[name], name  # PyTorch's +cpu
    text = re.sub(r"^#.*$", "", (ROOT / "constraints.txt").read_text(), flags=re.MULTILINE)
    assert not re.search(r"[:/@]|--", text)


@pytest.mark.parametrize("extra", ["experiments", "test", "check", "docs", "bench"])
def test_pytorch_is_installed_only_where_it_is_asked_for(extra):
    assert "torch" not in {Requirement(each).name for each in asked([extra])}


def test_running_needs_no_tools_of_developers():
    names = needed(["experiments"])
    assert {"numpy", "numba", "matplotlib"} <= names
    assert not names & {"sphinx", "mypy", "ruff", "pytest", "cvxpy", "playwright", "networkx"}


def test_the_page_of_licences_is_that_of_the_pins():
    page = (ROOT / "docs/licences.md").read_text()
    for pin in pins():
        if CUDA.match(pin.name):
            continue
        (told,) = re.findall(rf"^{re.escape(row(pin))}(.+) \|$", page, re.MULTILINE)
        assert told == licence(pin.name) or installed(pin.name) is None
        assert not re.search(r"\b(A?GPL|SSPL|BUSL)", told), (pin.name, told)


def test_no_unsafe_way_to_read_a_file_is_used():
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text()
        assert not re.search(r"\b(pickle|marshal|shelve|dill|joblib)\b", text), path
        assert "allow_pickle=True" not in text, path
        assert not re.search(r"\b(eval|exec)\(", text), path
        assert not re.search(r"yaml\.load\(|os\.system", text), path

"""The doctor's visit: looking at everything, and the report of it."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence

from driftwolfe import __version__
from driftwolfe.doctor import machine, packages, places
from driftwolfe.doctor.finding import Finding
from driftwolfe.doctor.self_test import self_test
from driftwolfe.streams.files import Folder
from driftwolfe.terminal import Terminal

#: ANSI codes: green, yellow, bold red.
_COLOURS = {"ok": "32", "note": "33", "broken": "1;31"}
_NAME, _STATE = 20, 7
#: Columns from which on what was found has a column of its own.
_WIDE = 72

Section = tuple[str, Callable[[], Sequence[Finding]]]


def examine(terminal: Terminal, data: Folder | None = None) -> int:
    """Look at everything and print it; return 1 where the core is broken, else 0.

    Parameters
    ----------
    terminal
        Where it is printed.
    data
        The folder of the real data, if it is not the one of the environment.
    """
    terminal.tell(
        f"driftwolfe {__version__}, Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}"
    )
    found: list[Finding] = []
    for title, look in _sections(data):
        terminal.say()
        terminal.say(terminal.paint(title, "1"))
        for each in _seen(title, look):
            found.append(each)
            _print(terminal, each)
    terminal.say()
    terminal.tell(verdict(found))
    return int(any(each.state == "broken" for each in found))


def _sections(data: Folder | None) -> list[Section]:
    return [
        ("core", packages.core),
        ("threads", machine.threads),
        ("does it work", lambda: [machine.compiled_code(), self_test()]),
        ("data of the paper's experiments", lambda: places.data(data)),
        ("folders", places.folders),
        ("extras", lambda: [*packages.extras(), machine.gpu()]),
        ("for developers of driftwolfe", lambda: [machine.browser()]),
    ]


def _seen(title: str, look: Callable[[], Sequence[Finding]]) -> Sequence[Finding]:
    """What a part of the visit finds; where it fails, that is the finding."""
    try:
        return look()
    except Exception as problem:  # the doctor must not fall ill
        told = f"{type(problem).__name__}: {problem}"
        return [Finding(title, told, "broken", "pip install --force-reinstall driftwolfe")]


def verdict(found: Sequence[Finding]) -> str:
    """One line: all well, or what to do first.

    >>> verdict([Finding("numpy", "2.0"), Finding("river", "missing", "note", "pip install x")])
    'The core works. First of what is missing, river: pip install x'
    """
    first = {each.state: each for each in reversed(found) if each.remedy}
    if broken := first.get("broken"):
        return f"The core is broken. First, for {broken.name}: {broken.remedy}"
    if missing := first.get("note"):
        return f"The core works. First of what is missing, {missing.name}: {missing.remedy}"
    return "All is well. See it at work: driftwolfe demo"


def _print(terminal: Terminal, found: Finding) -> None:
    """A finding on a line, its remedy on another."""
    state = f"  {found.state:{_STATE}}"
    indent = " " * (len(state) + (_NAME if terminal.width >= _WIDE else 2))
    lines = terminal.lines(f"{state}{found.name:{_NAME}}{found.told}", indent)
    painted = terminal.paint(state, _COLOURS[found.state])
    terminal.say(painted + lines[0].removeprefix(state))
    for line in lines[1:]:
        terminal.say(line)
    if found.remedy:
        terminal.tell(f"{indent}-> {found.remedy}", f"{indent}   ")

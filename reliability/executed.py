"""Which lines of the library each test executes: a pytest plugin that notes it, and what reads that.

    EXECUTED=FOLDER python -m pytest -p reliability.executed

Coverage writes files into the folder, one for each process, those that tests start included
(`children_of_tests/`). Others have the seconds of the tests that passed.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage, CoverageData

LIBRARY = Path("src/driftwolfe")


class Notes:
    """Notes what each test executes; outside of tests modules are imported."""

    def __init__(self, folder: str) -> None:
        self.folder, self.seconds = folder, dict[str, float]()
        os.environ["EXECUTED_LIBRARY"] = own = f"{LIBRARY.absolute()}/*"
        self.lines = Coverage(f"{folder}/lines.{os.getpid()}", config_file=False, include=[own])
        self.lines.set_option("run:disable_warnings", ["no-data-collected"])
        self.lines.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        os.environ["EXECUTED_TEST"] = item.nodeid
        self.lines.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self.lines.switch_context("")
            del os.environ["EXECUTED_TEST"]

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" and report.passed:
            self.seconds[report.nodeid] = report.duration

    def pytest_sessionfinish(self) -> None:
        self.lines.stop()
        self.lines.save()
        file = Path(self.folder, f"seconds.{os.getpid()}.json")
        file.write_text(json.dumps(self.seconds), encoding="utf-8")


# Before the library is imported; with xdist in its workers, which the tests of this tool are not.
notes = Notes(os.environ["EXECUTED"]) if "EXECUTED" in os.environ else None


def pytest_configure(config: Any) -> None:
    if notes and (hasattr(config, "workerinput") or not config.getoption("numprocesses", None)):
        config.pluginmanager.register(notes)


class Executed:
    """What was noted in a folder."""

    def __init__(self, folder: Path) -> None:
        self.seconds: dict[str, float] = {}
        for file in folder.glob("seconds.*.json"):
            self.seconds |= json.loads(file.read_text(encoding="utf-8"))
        self._lines: dict[Path, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for file in folder.glob("lines.*"):
            data = CoverageData(str(file))
            data.read()
            for path in data.measured_files():
                own = self._lines[Path(path[path.rindex(LIBRARY.as_posix()) :])]
                for line, tests in data.contexts_by_lineno(path).items():
                    own[line] |= (self.seconds.keys() | {""}) & set(tests)

    def tests(self, path: Path, lines: Container[int] | None = None) -> set[str]:
        """Return the tests that execute one of the lines of a file; all of that file for what is done at import."""
        known = self._lines[path].items()
        found = set().union(*(tests for line, tests in known if lines is None or line in lines))
        return self.tests(path) if lines is not None and "" in found else found - {""}

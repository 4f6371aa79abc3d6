"""Compiling where no cache can be written, and what a terminal is told while it lasts."""

import errno
import io
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.caching import FunctionCache

import driftwolfe
from driftwolfe.points import compiling
from driftwolfe.points.compiling import NUMBERS, jit

PACKAGE = Path(driftwolfe.__file__).parent


@pytest.fixture
def sealed(tmp_path):
    """A copy of the package that nobody can cache beside, and the environment of a user without home.

    Files stand where folders would have to be made, which stops root as well.
    """
    copy = tmp_path / "driftwolfe"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [copy, *(path for path in copy.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()
    nowhere = dict.fromkeys(["HOME", "XDG_CACHE_HOME", "USERPROFILE", "LOCALAPPDATA"], os.devnull)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    return kept | nowhere | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}


def test_without_a_writable_cache_it_compiles_and_says_so_once(sealed, tmp_path):
    code = (
        "import driftwolfe as dw\n"
        "from driftwolfe.doctor import compiled_code\n"
        "print(dw.__file__, dw.L1Ball(2).project([3.0, 0.0]).tolist())\n"
        "from driftwolfe.ensemble import expert_kernels\n"
        "found = compiled_code(); print(found.state, found.text, found.remedy)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], env=sealed, capture_output=True, text=True, cwd=tmp_path
    )
    assert run.returncode == 0, run.stderr
    first, second = run.stdout.splitlines()
    assert first == f"{tmp_path / 'driftwolfe' / '__init__.py'} [1.0, 0.0]"
    assert second.startswith("note compiled in every process") and "NUMBA_CACHE_DIR" in second
    assert run.stderr.count("CompileCacheWarning: driftwolfe found no folder") == 1
    assert run.stderr.count("set NUMBA_CACHE_DIR to a folder that can be written") == 1


def test_a_cache_on_a_full_disk_is_done_without(monkeypatch):
    def full(self, *arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(FunctionCache, "save_overload", full)
    compiling.warn_of_no_cache.cache_clear()
    monkeypatch.setattr(compiling.announcement, "text", "")
    with pytest.warns(compiling.CompileCacheWarning) as heard:
        first, second = jit(NUMBERS)(_first), jit(NUMBERS)(_second)
    assert (first(np.array([3.0, 4.0])), second(np.array([3.0, 4.0]))) == (3.0, 4.0)
    assert len(heard) == 1
    assert compiling.announcement.text == "driftwolfe: compiling"  # not "once"


def _first(numbers):
    return numbers[0]


def _second(numbers):
    return numbers[1]


def test_what_cannot_be_compiled_is_an_error_not_a_warning():
    with warnings.catch_warnings(), pytest.raises(numba.TypingError):
        warnings.simplefilter("error")
        jit(NUMBERS)(_no_loop)


def _no_loop(numbers):
    return numbers.no_such_attribute


#: Compiles one function, as modules of loops do, and is impatient.
PROGRAM = """
from driftwolfe.points import compiling
from driftwolfe.points.compiling import NUMBERS, jit

compiling.announcement = compiling.Announcement(patience=0.001)

@jit(NUMBERS)
def total(numbers):
    result = 0.0
    for number in numbers:
        result += number
    return result
"""


def test_a_terminal_is_told_that_it_compiles_and_only_when_it_does(tmp_path):
    pty = pytest.importorskip("pty", reason="needs a system with pseudo-terminals")
    (tmp_path / "program.py").write_text(PROGRAM)

    def told(cache, terminal=True):
        """What the program says on its stderr."""
        reader, writer = pty.openpty() if terminal else os.pipe()
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / cache)}
        subprocess.run(
            [sys.executable, tmp_path / "program.py"], env=environment, stderr=writer, check=True
        )
        os.close(writer)
        try:
            return os.read(reader, 10_000).decode().split("\r\n")
        except OSError:  # how a terminal that nobody wrote to ends
            return [""]
        finally:
            os.close(reader)

    assert told("one") == ["driftwolfe: compiling, once", ""]
    assert told("one") == [""]  # from the cache
    assert told("other", terminal=False) == [""]


class Terminal(io.StringIO):
    """A terminal that keeps what it is told."""

    def isatty(self):
        return True


class Clock:
    """A clock that stands still but when it is moved, and timers by it."""

    def __init__(self):
        self.now, self.due = 0.0, []

    def perf_counter(self):
        return self.now

    def Timer(self, seconds, call):
        self.due.append((self.now + seconds, call))
        return self

    def start(self):
        pass

    def cancel(self):
        self.due.clear()

    def move(self, seconds):
        self.now += seconds
        for when, call in [each for each in self.due if each[0] <= self.now]:
            self.due.remove((when, call))
            call()


def test_many_short_compilations_are_a_long_one(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(compiling, "time", clock)
    monkeypatch.setattr(compiling, "Timer", clock.Timer)
    announcement = compiling.Announcement()
    for told in (0, 0, 1, 1):  # after 0.4, 0.8, 1.2 and 1.6 seconds of compiling
        announcement.on_start(None)
        announcement.on_start(None)  # a function that the first one calls
        announcement.on_end(None)
        clock.move(0.4)
        announcement.on_end(None)
        clock.move(10.0)  # something else
        assert sys.stderr.getvalue().count("driftwolfe: compiling, once\n") == told


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_no_stderr_or_a_closed_one_is_no_trouble(stream, monkeypatch):
    if stream is not None:
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    announcement = compiling.Announcement(patience=0.001)
    announcement.on_start(None)
    announcement.on_end(None)

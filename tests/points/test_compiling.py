"""Compiling where no cache can be written, and what a terminal is told while it lasts."""

import errno
import gc
import importlib
import io
import os
import shutil
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.caching import FunctionCache

import driftwolfe
from driftwolfe.points import compiling
from driftwolfe.points.compiling import NUMBERS, jit
from reliability.children import python

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
    run = python("-c", code, env=sealed, cwd=tmp_path)
    first, second = run.stdout.splitlines()
    assert first == f"{tmp_path / 'driftwolfe' / '__init__.py'} [1.0, 0.0]"
    assert second.startswith("note compiled in every process") and "NUMBA_CACHE_DIR" in second
    assert run.stderr.count("CompileCacheWarning: driftwolfe found no folder") == 1
    assert run.stderr.count("set NUMBA_CACHE_DIR to a folder that can be written") == 1


def test_code_in_a_folder_that_may_only_be_read_is_used(sealed, tmp_path):
    given = {**sealed, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    ask = (
        "from driftwolfe.domains import set_kernels\n"
        "stats = set_kernels.nearest_rows.ready().stats\n"
        "print(stats.cache_path, sum(stats.cache_hits.values()))"
    )
    closed = (  # for root too, who may write to all folders
        "import os, tempfile\n"
        "def refuse(*_, **__): raise PermissionError\n"
        "tempfile.TemporaryFile = refuse; os.access = lambda path, mode: mode != os.W_OK\n"
    )
    (folder, hits), (same, found) = (
        python("-c", code + ask, env=given, cwd=tmp_path).stdout.split() for code in ("", closed)
    )
    assert folder == same and folder.startswith(given["NUMBA_CACHE_DIR"])
    assert (hits, found) == ("0", "1")
    empty = {**given, "NUMBA_CACHE_DIR": str(tmp_path / "none")}
    run = python("-c", closed + ask, env=empty, cwd=tmp_path)
    assert run.stdout.split() == ["None", "0"] and "CompileCacheWarning" in run.stderr


def test_a_cache_on_a_full_disk_is_done_without(monkeypatch):
    def full(self, *arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(FunctionCache, "save_overload", full)
    compiling.warn_of_no_cache.cache_clear()
    with pytest.warns(compiling.CompileCacheWarning) as heard:
        first, second = jit(NUMBERS)(_first), jit(NUMBERS)(_second)
        assert (first(np.array([3.0, 4.0])), second(np.array([3.0, 4.0]))) == (3.0, 4.0)
    assert len(heard) == 1
    assert first.stats.cache_path is None  # no more is written there


def _first(numbers):
    return numbers[0]


def _second(numbers):
    return numbers[1]


@pytest.mark.parametrize("collects", [True, False])
def test_the_search_for_garbage_is_as_it_was_after_compiling(collects):
    was = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        assert jit(NUMBERS)(lambda numbers: numbers[2])(np.arange(3.0)) == 2.0
        assert gc.isenabled() == collects
    finally:
        (gc.enable if was else gc.disable)()


def test_code_in_the_cache_is_fresh_while_all_that_it_is_made_of_is_the_same(tmp_path, monkeypatch):
    texts = {
        "told": "FACTOR = 2.0",
        "inner": "from driftwolfe.points.compiling import *\n"
        "@jit()\ndef inner(x):\n    return x + 10.0",
        "outer": "from driftwolfe.points.compiling import *\nfrom inner import inner\n"
        "from told import FACTOR\n"
        "@jit(NUMBER)\ndef outer(x):\n    return FACTOR * inner(x) + 100.0",
    }
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    steps = ((None, 122), (None, 122), ("inner", 132), ("told", 148), ("outer", 153))
    for place, (changed, answer) in enumerate(steps):
        if changed:
            text = texts[changed].replace("0.0", "5.0").replace("2.0", "3.0")
            (tmp_path / f"{changed}.py").write_text(text)
        compiling._made_of.cache_clear()
        for name in texts:
            sys.modules.pop(name, None)
        outer = importlib.import_module("outer").outer
        assert outer(1.0) == answer
        assert sum(outer.stats.cache_hits.values()) == (place == 1)


def test_what_cannot_be_compiled_is_an_error_not_a_warning():
    with warnings.catch_warnings(), pytest.raises(numba.TypingError):
        warnings.simplefilter("error")
        jit(NUMBERS)(_no_loop).ready()


def _no_loop(numbers):
    return numbers.no_such_attribute


#: Compiles two functions, as modules of loops do.
PROGRAM = """
from driftwolfe.points.compiling import NUMBERS, announcement, jit

announcement.patience = 0.0

@jit(NUMBERS)
def total(numbers):
    result = 0.0
    for number in numbers:
        result += number
    return result

@jit(NUMBERS)
def first(numbers):
    return numbers[0]

total.ready(), first.ready()
"""


def test_a_loop_is_compiled_once_when_first_called_and_for_its_own_types_only():
    whole = jit(numba.types.Array(numba.float64, 1, "C", readonly=True))(_sum)
    assert not whole.overloads
    frozen = np.ones(3)
    frozen.flags.writeable = False
    assert whole(np.ones(3)) == whole(frozen) == whole.unchecked(frozen) == 3.0
    assert list(whole.overloads) == [(NUMBERS,)] and whole.ready() is whole
    with pytest.raises(TypeError, match="No matching definition"):
        whole(np.ones(3, np.float32))


def test_threads_that_call_a_loop_first_at_the_same_time_all_get_it_compiled():
    loops, together = [jit(NUMBERS)(_sum) for _ in range(4)], threading.Barrier(8)

    def call(number):
        told = []
        for loop in loops:
            together.wait(30)
            told.append((loop if number % 2 else loop.unchecked)(np.ones(3)))
        return told

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(call, range(8))) == [[3.0] * 4] * 8


def _sum(numbers):
    total = 0.0
    for number in numbers:
        total += number
    return total


@pytest.mark.slow
def test_a_terminal_is_told_that_it_compiles_and_only_when_it_does(tmp_path):
    pty = pytest.importorskip("pty", reason="needs a system with pseudo-terminals")

    def told(cache, terminal=True):
        """What the program says on its stderr."""
        (tmp_path / "program.py").write_text(PROGRAM)
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

    line = "driftwolfe: compiling for the first use; the next start is quick"
    assert told("one") == [line, ""]
    assert told("one") == [""]  # from the cache
    assert told("other", terminal=False) == [""]


def announced(patience, times=1):
    """An announcement that has heard of that many compilations."""
    announcement = compiling.Announcement()
    announcement.patience = patience
    for _ in range(times):
        announcement.on_start(None)
        announcement.on_end(None)
    return announcement.announced


@pytest.mark.parametrize(("patience", "heard"), [(1.0, 0), (-1.0, 1)])
def test_a_command_says_that_it_compiles_even_into_a_file_unless_that_is_soon_done(
    patience, heard, monkeypatch, capsys
):
    monkeypatch.setattr("driftwolfe.terminal.Output.command_line", True)
    assert announced(patience, times=2) == bool(heard)
    assert capsys.readouterr().err.count("compiling for the first use") == heard


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_no_stderr_or_a_closed_one_is_no_trouble(stream, monkeypatch):
    if stream is not None:
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    assert announced(-1.0)


def test_interpreted_loops_answer_like_compiled_ones():
    from driftwolfe.domains import balls
    from driftwolfe.points.kinds import interpreted

    with interpreted():
        plain = balls.kernels().nearest_rows
    assert not hasattr(plain, "overloads") and hasattr(balls.kernels().nearest_rows, "overloads")
    rows = np.random.default_rng(0).standard_normal((5, 7))
    for ball in (True, False):
        expected = balls.kernels().nearest_rows(rows, 1.5, ball)
        np.testing.assert_allclose(plain(rows, 1.5, ball), expected, atol=1e-12)

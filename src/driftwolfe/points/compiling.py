"""Compile loops with numba, cache them, and tell a terminal where that takes long."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from threading import Timer
from typing import Any

import numba
from numba.core.event import Listener, install_listener


class CompileCacheWarning(UserWarning):
    """Compiled code could not be written to a cache, so every process compiles anew."""


@cache  # once in a process
def warn_of_no_cache() -> None:
    """Say that compiled code is not cached, and what to do about it."""
    announcement.text = "driftwolfe: compiling"
    warnings.warn(
        "driftwolfe found no folder to cache compiled code in, so every process compiles anew, for "
        "seconds; set NUMBA_CACHE_DIR to a folder that can be written",
        CompileCacheWarning,
        stacklevel=2,
    )


class Announcement(Listener):
    """Prints `text` to a terminal after `patience` seconds of compiling, over all functions.

    numba reports what it compiles, not what it finds in its cache. It holds a lock meanwhile: one
    function at a time, but functions within functions.
    """

    def __init__(self, patience: float = 1.0) -> None:
        self.text = "driftwolfe: compiling, once"
        self._left = patience
        self._depth = 0
        self._began = 0.0
        self._timer: Timer | None = None

    def on_start(self, event: Any) -> None:
        """Wait for what is left of `patience`."""
        self._depth += 1
        if self._depth == 1 and self._left > 0.0 and _on_terminal():
            self._began = time.perf_counter()
            self._timer = Timer(self._left, self._say)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: Any) -> None:
        """Wait no longer."""
        self._depth -= 1
        if self._depth == 0 and self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._left -= time.perf_counter() - self._began

    def _say(self) -> None:
        print(self.text, file=sys.stderr, flush=True)


def _on_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


announcement = Announcement()

#: Arrays that are read: numbers, indices ("places"), booleans ("answers"), matrices, stacks.
NUMBERS = numba.types.Array(numba.float64, 1, "C", readonly=True)
PLACES = numba.types.Array(numba.int64, 1, "C", readonly=True)
ANSWERS = numba.types.Array(numba.boolean, 1, "C", readonly=True)
TABLE = numba.types.Array(numba.float64, 2, "C", readonly=True)
STACK = numba.types.Array(numba.float64, 3, "C", readonly=True)
#: Arrays that are written to.
NEW_NUMBERS, NEW_PLACES, NEW_TABLE = numba.float64[::1], numba.int64[::1], numba.float64[:, ::1]
#: Scalars.
NUMBER, WHOLE, ANSWER = numba.float64, numba.int64, numba.boolean


def jit(*types: Any, **options: Any) -> Any:
    """Return the decorator that compiles a function for these types.

    Without types: for any, but only to be called by compiled functions, which is less to compile.
    """
    options |= {"no_cfunc_wrapper": True, "no_cpython_wrapper": not types}
    options |= {"nogil": True, "error_model": "numpy"}
    return partial(_compile, partial(numba.njit, types or None, **options))


def _compile(decorator: Callable[..., Any], function: Callable[..., Any]) -> Any:
    with install_listener("numba:compile", announcement):  # code of others is not announced
        try:
            return decorator(cache=True)(function)
        except (RuntimeError, OSError):  # "no locator available", or a full disk
            uncached = decorator(cache=False)(function)
    warn_of_no_cache()
    return uncached


def fast_jit(*types: Any) -> Any:
    """As `jit`, for sums that may be reordered, so that they run on vector units."""
    return jit(*types, fastmath={"reassoc", "contract", "nsz"})

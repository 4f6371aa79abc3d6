"""What users are told about compiling: that it takes time now, and that it could not be cached."""

from __future__ import annotations

import sys
import time
import warnings
from contextlib import AbstractContextManager
from functools import cache
from threading import Timer
from typing import Any

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
    """Prints one line to a terminal when compiling takes long.

    numba reports what it compiles, and nothing where it finds code in its cache; one function at a
    time, as it holds a lock while it compiles, but functions within functions.

    Parameters
    ----------
    patience
        Seconds of compiling, over all functions, before the line is printed.

    Attributes
    ----------
    text
        The line.
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


def announced() -> AbstractContextManager[None]:
    """Announce what is compiled within, if it takes long; code of others is not announced."""
    return install_listener("numba:compile", announcement)

"""Runs in processes of their own that end with SIGKILL: at a moment of the clock, or within a write."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

#: Where a write can be cut off.
STAGES = ("half written", "written", "synchronised", "in its place")


def kill_by_clock(run: Callable[[], Any], longest: float, random: Random) -> bool:
    """Start a run, and kill it after at most so many seconds; False where it had ended before."""
    child = start(run)
    time.sleep(random.uniform(0.0, longest))
    os.kill(child, signal.SIGKILL)
    return ended(child) == -signal.SIGKILL


def kill_in_a_write(run: Callable[[], Any], writes: int, random: Random) -> bool:
    """Start a run that is killed within one of its first writes; False where it had fewer."""
    number, stage = random.randint(1, writes), random.choice(STAGES)

    def deadly() -> None:
        arm(number, stage)
        run()

    return ended(start(deadly)) == -signal.SIGKILL


def start(run: Callable[[], Any]) -> int:
    """Run in a copy of this process, which spares it a start of seconds; return its number."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        errors = os.dup(2)
        os.dup2(silence, 2)
        try:
            run()
            status = 0
        except BaseException:
            os.write(errors, traceback.format_exc().encode())
    finally:
        os._exit(status)  # nothing of the parent's is to be tidied up here
    raise AssertionError  # never reached


def ended(child: int) -> int:
    """Wait for a run; return its exit status, or less the number of the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def arm(number: int, stage: str) -> None:
    """Let this process die in a write: what `files.write` calls is replaced by what kills."""
    synchronise, put = os.fsync, Path.replace
    left = number

    def die_at(here: str) -> None:
        nonlocal left
        left -= here == stage
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def write_bytes(path: Path, content: bytes) -> int:
        with path.open("wb") as part:
            part.write(content[: len(content) // 2])
            part.flush()
            die_at("half written")
            part.write(content[len(content) // 2 :])
        die_at("written")
        return len(content)

    def fsync(handle: int) -> None:
        synchronise(handle)
        die_at("synchronised")

    def replace(path: Path, target: Path) -> Path:
        placed = put(path, target)
        die_at("in its place")
        return placed

    Path.write_bytes, os.fsync, Path.replace = write_bytes, fsync, replace  # type: ignore

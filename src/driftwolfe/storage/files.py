"""Files that are written whole or not at all."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from driftwolfe.storage.locks import lock


def write(path: Path, fill: Callable[[Path], Any]) -> None:
    """Let `fill` write a file beside `path`, and put it in its place once it is complete.

    A kill or a power cut at any moment leaves the old file or the new one, each whole. The folder
    itself is not synchronised: that would double the cost, and all it buys is that after a power cut
    it is more likely the new one. What a kill leaves beside the file, the next write removes.
    """
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):  # a folder may be written, and not listed
            _remove_left_over(path)
        with _part(path) as part:
            fill(part)
            with part.open("r+b") as complete:
                os.fsync(complete.fileno())
            part.replace(path)


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes."""
    write(path, lambda part: part.write_bytes(content))


def write_text(path: Path, content: str) -> None:
    """Write text."""
    write_bytes(path, content.encode())


def write_json(path: Path, content: Any) -> None:
    """Write plain data as readable JSON."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn an error of the system into one sentence that says what could not be written, and why."""
    try:
        yield
    except OSError as error:
        blocked = [f for f in path.parents if f.exists() and not f.is_dir()]
        why = f"{blocked[0]} is not a folder" if blocked else error.strerror or str(error)
        told = type(error)(f"could not write {path}: {why}")
        told.errno = error.errno
        raise told from error


@contextmanager
def _part(path: Path) -> Iterator[Path]:
    """The name of a new file beside `path`; gone at the end, if it has not taken its place.

    It is locked as long as it is written: a part without a lock was left by a process that is gone.
    """
    while True:
        part = path.with_name(f"{_beginning(path)}{secrets.token_hex(8)}{path.suffix}")
        claim = part.open("xb")
        locked = lock(claim, wait=True)
        if part.exists():
            break
        claim.close()  # taken for one left over, in the moment before it was locked
    if not locked:
        claim.close()  # where there are no locks, a file that is open may not be replaced either
    try:
        yield part
    finally:
        claim.close()
        with suppress(OSError):
            part.unlink()


def _remove_left_over(path: Path) -> None:
    """Remove what writers of `path` that were killed have left beside it."""
    first, middle, last = _beginning(path), re.compile("[0-9a-f]{16}"), path.suffix
    for beside in os.listdir(path.parent):
        if not (beside.startswith(first) and beside.endswith(last)):
            continue
        if middle.fullmatch(beside, len(first), len(beside) - len(last)):
            with suppress(OSError), path.with_name(beside).open("rb") as part:
                if lock(part):
                    path.with_name(beside).unlink()


def _beginning(path: Path) -> str:
    """What the names of parts begin with: hidden, and not longer than a system allows."""
    return f".{path.stem[:100]}."

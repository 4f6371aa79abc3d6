"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from driftwolfe.storage.locks import lock


def write(path: Path, fill: Callable[[Path], Any]) -> None:
    """Let `fill` write a file beside `path`, and put it in its place once it is complete.

    A kill or a power cut at any moment leaves the old file or the new one, each whole. The folder
    itself is not synchronised: that would double the cost, and all it buys is that after a power cut
    it is more likely the new one. What a kill leaves beside the file, the next write removes.

    A new file gets the usual mode of new files (the umask says which). One that takes the place of
    another keeps that one's mode, and its owner and group where the system permits. Where `path` is a
    link, the file that it leads to is replaced, and the link stays.
    """
    with explained(path):
        place = destination(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):  # a folder may be written, and not listed
            _remove_left_over(place)
        with _part(place) as part:
            fill(part)
            with part.open("r+b") as complete:
                os.fsync(complete.fileno())
            _keep_access(place, part)
            part.replace(place)


def destination(path: Path) -> Path:
    """Return the file that a path leads to: itself, or, of a link, what is at its end.

    Links that lead nowhere, in a circle or to a folder are refused with an OSError.
    """
    if not path.is_symlink():
        return path
    try:
        place = path.resolve(strict=True)
    except FileNotFoundError:
        raise FileNotFoundError(
            errno.ENOENT, f"it is a link to {os.readlink(path)}, which is not there"
        ) from None
    except (OSError, RuntimeError):  # from Python 3.13 on an OSError
        raise OSError(errno.ELOOP, "it is a link that leads back to itself") from None
    if place.is_dir():
        raise IsADirectoryError(errno.EISDIR, f"it is a link to the folder {place}")
    return place


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
    # What takes the place of a file is for this user alone until it has that file's mode.
    mode = 0o600 if path.exists() else 0o666
    while True:
        part = path.with_name(f"{_beginning(path)}{secrets.token_hex(8)}{path.suffix}")
        claim = open(part, "xb", opener=partial(os.open, mode=mode))  # noqa: SIM115 closed below
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


def _keep_access(path: Path, part: Path) -> None:
    """Give what takes the place of a file its mode, owner and group, as far as the system permits."""
    try:
        old = path.stat()
    except FileNotFoundError:
        return
    mode = stat.S_IMODE(old.st_mode)
    if hasattr(os, "chown"):
        with suppress(OSError):  # only root may give files away
            os.chown(part, old.st_uid, -1)
        try:
            os.chown(part, -1, old.st_gid)
        except OSError:  # a group of others may do no more than everyone
            mode &= ~stat.S_IRWXG | (mode & stat.S_IRWXO) << 3
    with suppress(OSError):  # a file system without modes; until now it is for this user alone
        part.chmod(mode)


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

"""The folder of this user that keeps what was downloaded."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

#: Names the cache folder, where it should not be the usual one.
VARIABLE = "DRIFTWOLFE_CACHE"


def folder() -> Path | None:
    """Return the cache folder, whether or not it exists; None for a user without a home.

    It is what the environment variable DRIFTWOLFE_CACHE names, else ``driftwolfe`` where the system
    keeps caches: ``$XDG_CACHE_HOME`` or ``~/.cache``, ``~/Library/Caches`` on macOS,
    ``%LOCALAPPDATA%`` on Windows.
    """
    if given := os.environ.get(VARIABLE):
        return Path(given).expanduser()
    system = Path(os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", ""))
    if system.is_absolute():
        return system / "driftwolfe"
    usual = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    try:
        return Path(usual).expanduser() / "driftwolfe"
    except RuntimeError:
        return None


def keep(path: str, content: bytes) -> None:
    """Write a file into the cache, all of it or nothing.

    The content goes to a file of its own name beside the target, which then takes the target's place
    at once: neither a kill nor another process that keeps the same file can leave half of it.
    """
    place = folder()
    if place is None:
        raise OSError("this user has no home folder")
    target = place / path
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(suffix=".part", prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as part:
            part.write(content)
            part.flush()
            os.fsync(handle)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise

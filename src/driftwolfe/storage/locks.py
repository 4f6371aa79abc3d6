"""Locks on files, which end with the process that holds them, however that ends."""

from __future__ import annotations

from typing import IO, Any


def lock(file: IO[Any], *, wait: bool = False) -> bool:
    """Lock an open file until it is closed; False where another has it, or there are no locks."""
    try:
        import fcntl
    except ImportError:  # not on this system
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # another's, or not on this file system
        return False
    return True

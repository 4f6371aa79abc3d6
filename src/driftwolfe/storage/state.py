"""The state of objects that say what theirs is, written down and set again.

A class lists in ``STATE`` the attributes that change in its life; those of its bases are added. All
else comes from its constructor. `check_state`, where a class has it, raises ValueError if what was
set does not fit together: loops that run compiled trust shapes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftwolfe.storage.tree import TreeReader, TreeWriter


def state_names(thing: Any) -> list[str]:
    """Return the attributes that make up its state; none for what has no state of its own."""
    names = (name for base in type(thing).__mro__ for name in base.__dict__.get("STATE", ()))
    return list(dict.fromkeys(names))


def write_state(thing: Any, writer: TreeWriter) -> dict[str, Any]:
    """Return the state as JSON."""
    written = {}
    for name in state_names(thing):
        value = getattr(thing, name)
        written[name] = write_state(value, writer) if state_names(value) else writer.write(value)
    return written


def read_state(thing: Any, written: Any, reader: TreeReader) -> None:
    """Set the state of an object that was made the same way; what does not fit is refused."""
    names = state_names(thing)
    if not isinstance(written, dict) or set(written) != set(names):
        raise ValueError(f"this archive does not hold the state of a {type(thing).__name__}")
    for name in names:
        old = getattr(thing, name)
        if state_names(old):
            read_state(old, written[name], reader)
            continue
        new = reader.read(written[name])
        if not _alike(old, new):
            raise ValueError(f"this archive holds a {name.strip('_')} that does not fit")
        if isinstance(new, np.ndarray) and reader.is_shared(new):
            # A file may say that two of them are one array; loops write to each by itself.
            new = np.array(new, order="K")
        setattr(thing, name, new)
    check = getattr(thing, "check_state", None)
    if check is not None:
        check()


def require(fits: Any, what: str) -> None:
    """Raise ValueError unless what was read fits together."""
    if not fits:
        raise ValueError(f"this archive holds {what} that do not fit together")


def _alike(old: Any, new: Any) -> bool:
    """Whether a value that was read may take the place of another."""
    if old is None or isinstance(old, bool):
        return type(old) is type(new)
    if isinstance(old, int):
        return type(new) is int and abs(new) < 1 << 62
    if isinstance(old, float):
        return type(new) is float and math.isfinite(new)
    if hasattr(old, "__dlpack_device__") and not isinstance(old, np.ndarray):
        old = np.empty((0, *old.shape[1:]))  # a tensor: read as an array, and put there again
    if isinstance(old, np.ndarray):
        same = type(new) is np.ndarray and new.dtype == old.dtype and new.ndim == old.ndim
        return bool(same and new.shape[1:] == old.shape[1:] and np.isfinite(new).all())
    if type(old) is not type(new):
        return False
    return bool(getattr(old, "shape", None) == getattr(new, "shape", None))

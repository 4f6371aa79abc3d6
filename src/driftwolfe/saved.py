"""`load`: whatever was saved, from its file."""

from __future__ import annotations

import os
from typing import Any

from driftwolfe import estimators
from driftwolfe.storage import read_archive


def load(path: str | os.PathLike[str]) -> Any:
    """Return what was saved to a file, in the state in which it was saved.

    The file says what it holds; nothing in it is ever executed. A damaged or foreign file is refused
    with a ValueError.

    >>> import tempfile, driftwolfe as dw
    >>> path = tempfile.mkdtemp() + "/ratings.safetensors"
    >>> dw.estimators.MatrixCompleter().partial_fit([("ann", "up")], [4.0]).save(path)
    >>> dw.load(path)
    MatrixCompleter(users=1, items=1, ratings=1)
    """
    kind = read_archive(path).kind
    if kind not in estimators.__all__:
        raise ValueError(f"{path} holds a {kind!r}, which this driftwolfe does not know")
    return getattr(estimators, kind).load(path)

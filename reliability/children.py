"""Processes that import the same copy of driftwolfe as this one, wherever that was found."""

from __future__ import annotations

import os
from pathlib import Path

import driftwolfe

ROOT = Path(__file__).parents[1]


def same_copy(*folders: str | os.PathLike[str], **variables: str) -> dict[str, str]:
    """Return the environment for a child, with variables of its own.

    It imports from the given folders first, then from where driftwolfe was found here, then as usual.
    """
    found = Path(str(driftwolfe.__file__)).parents[1]
    usual = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = dict.fromkeys([*map(str, folders), str(found), str(ROOT), *filter(None, usual)])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), **variables}

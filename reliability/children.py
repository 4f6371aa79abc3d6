"""Environment for child processes that import the same copy of driftwolfe."""

from __future__ import annotations

import os
from pathlib import Path

import driftwolfe

ROOT = Path(__file__).parents[1]


def same_copy(*folders: str | os.PathLike[str], **variables: str) -> dict[str, str]:
    """The environment of a child, with more `variables`.

    It imports from `folders` first, then from where this process found driftwolfe, then as usual.
    """
    found = Path(str(driftwolfe.__file__)).parents[1]
    usual = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = dict.fromkeys([*map(str, folders), str(found), str(ROOT), *filter(None, usual)])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), **variables}

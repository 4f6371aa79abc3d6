"""Child processes that import the same copy of driftwolfe."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

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


def python(*arguments: object, status: int | None = 0, **options: Any) -> Any:
    """Run this Python with arguments, such as `"-c", program`, and return what it said, as text.

    An AssertionError tells what it said if it ends with another status; None stands for any. `options` are
    those of `subprocess.run`.
    """
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert status in (None, done.returncode), done.stdout + done.stderr
    return done

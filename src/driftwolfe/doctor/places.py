"""Places: the data, and folders to write to."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from driftwolfe.doctor.finding import Finding
from driftwolfe.streams import cache
from driftwolfe.streams.files import ENVIRONMENT_VARIABLE, OFFLINE_VARIABLE, DataFile, Folder
from driftwolfe.streams.movielens import RATINGS
from driftwolfe.streams.shuttle import ROWS

DATA = {"MovieLens 100K": RATINGS, "Shuttle": ROWS}
RESULTS = Path("results")


def data(folder: Folder | None = None) -> list[Finding]:
    """Whether the real data are here, and as published; nothing is downloaded."""
    return [_data(name, file, folder) for name, file in DATA.items()]


def _data(name: str, file: DataFile, folder: Folder | None) -> Finding:
    named = folder if folder is not None else os.environ.get(ENVIRONMENT_VARIABLE)
    found = file.find(folder)
    if found is None:
        told = f"{file.path} not found; looked in {_looked(named)}"
        if not named and os.environ.get(OFFLINE_VARIABLE, "") in ("", "0"):
            return Finding(name, f"{told}; driftwolfe reproduce downloads it", "note")
        into = f"into {Path(named).absolute()}" if named else "into the cache folder"
        return Finding(name, told, "note", f"put {file.path} from {file.source} {into}")
    try:
        file.read(folder)
    except (OSError, ValueError) as problem:
        return Finding(name, str(problem), "note", f"get {file.path} again from {file.source}")
    return Finding(name, f"{found}, as published")


def _looked(named: Folder | None) -> str:
    if named:
        return f"{Path(named).absolute()} only, as --data or {ENVIRONMENT_VARIABLE} says"
    return f"the cache folder {cache.folder() or '(none: this user has no home)'}"


def folders() -> list[Finding]:
    """Whether the cache and the results can be written."""
    kept = cache.folder()
    other = f"set {cache.VARIABLE} to a folder that you can write to"
    found = (
        Finding("cache", "this user has no home folder", "note", other)
        if kept is None
        else _writable("cache", kept, other)
    )
    here = "run it in a folder that you can write to, or give --out"
    return [found, _writable("results", RESULTS.absolute(), here)]


def _writable(name: str, folder: Path, remedy: str) -> Finding:
    """Write a file without a name where the folder is, or would be made."""
    place = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"driftwolfe")
    except OSError as problem:
        why = problem.strerror or str(problem)
        return Finding(name, f"{folder} cannot be written: {why}", "note", remedy)
    return Finding(name, f"{folder}" + ("" if folder.exists() else ", made when needed"))

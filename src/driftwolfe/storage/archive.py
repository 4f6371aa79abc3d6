"""Archives: named arrays and plain settings in one file, with a checksum and never any code."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from driftwolfe.storage import files

#: Raised when the meaning of an archive's content changes.
VERSION = 1

#: The entry of the safetensors header that holds ours, as JSON.
ENTRY = "driftwolfe"


@dataclass(frozen=True)
class Archive:
    """What an archive holds.

    Attributes
    ----------
    kind
        What was saved: the name of a class.
    settings
        Plain data: numbers, texts, lists and dictionaries of them.
    arrays
        The arrays by name.

    Examples
    --------
    >>> Archive("Example", {"t": 3}, {"x": np.zeros(2)}).settings["t"]
    3
    """

    kind: str
    settings: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def write_archive(
    path: str | os.PathLike[str],
    kind: str,
    settings: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write arrays and settings to one file: whole, or not at all.

    The file is a safetensors file whose header carries the version, the kind, the settings and a
    SHA-256 sum over all of it.

    Parameters
    ----------
    path
        The file; what was there before is replaced.
    kind
        What is saved: the name of a class.
    settings
        Plain data: numbers, texts, lists and dictionaries of them.
    arrays
        The arrays by name.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "state.safetensors"
    >>> write_archive(path, "Example", {"t": 3}, {"x": np.arange(2.0)})
    >>> read_archive(path).arrays["x"]
    array([0., 1.])
    """
    held = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    header = {"version": VERSION, "kind": kind, "settings": dict(settings)}
    text = json.dumps(header, allow_nan=False)
    metadata = {ENTRY: text, "sha256": digest(text, held)}
    try:
        content = safetensors.numpy.save(held, metadata)
    except safetensors.SafetensorError as error:  # a header of more than 100 MB
        raise ValueError(
            f"could not write {path}: {len(held):,} arrays are too many for one file"
        ) from error
    files.write_bytes(Path(path), content)


def read_archive(path: str | os.PathLike[str]) -> Archive:
    """Read what `write_archive` wrote; nothing in it is ever executed.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    FileNotFoundError
        Where there is no such file.
    ValueError
        Where it is damaged, of another version, or something else.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "state.safetensors"
    >>> write_archive(path, "Example", {"t": 3}, {})
    >>> read_archive(path)
    Archive(kind='Example', settings={'t': 3}, arrays={})
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with safetensors.safe_open(path, framework="numpy") as opened:
            metadata = opened.metadata() or {}
            arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
    except (
        safetensors.SafetensorError,
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
    ) as error:
        raise ValueError(f"{path} is not an archive of driftwolfe, or is damaged") from error
    header = _header(path, metadata)
    if metadata.get("sha256") != digest(metadata[ENTRY], arrays):
        raise ValueError(f"{path} is damaged: its checksum does not agree with its content")
    return Archive(header["kind"], header["settings"], arrays)


def _header(path: str | os.PathLike[str], metadata: Mapping[str, str]) -> dict[str, Any]:
    try:
        header = json.loads(metadata[ENTRY])
        version, kind, settings = header["version"], header["kind"], header["settings"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} was not written by driftwolfe") from error
    if version != VERSION:
        raise ValueError(
            f"{path} has version {str(version)[:40]} of the format, this driftwolfe reads {VERSION}: "
            "load it with the version that wrote it"
        )
    if not isinstance(kind, str) or not isinstance(settings, dict):
        raise ValueError(f"{path} was not written by driftwolfe")
    return header


def digest(text: str, arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the checksum of an archive with this header and these arrays."""
    total = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        total.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        total.update(np.ascontiguousarray(array).data)
    return total.hexdigest()

"""Archives: named arrays and plain settings in one file, with a checksum and never any code."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from driftwolfe.storage import files
from driftwolfe.storage.layout import Stored, StoredArray, read_stored

#: Raised when the meaning of an archive's content changes.
VERSION = 1

#: The entry of the safetensors header that holds ours, as JSON.
ENTRY = "driftwolfe"

#: Bytes that are read at once.
CHUNK = 1 << 20


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


class Described(NamedTuple):
    """What a file says of an array that has not been read yet."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Header:
    """What an archive says of itself, before any of its arrays is read.

    Attributes
    ----------
    kind, settings
        As in `Archive`.
    described
        Types and shapes of the arrays, by name.
    """

    kind: str
    settings: dict[str, Any]
    described: dict[str, Described]


#: Looks at a header, and raises ValueError where its arrays need not be read. It returns the names of
#: those that are needed, or None for all.
Check = Callable[[Header], Collection[str] | None]


def read_archive(path: str | os.PathLike[str], check: Check | None = None) -> Archive:
    """Read what `write_archive` wrote; nothing in it is ever executed.

    The header is read first, and `check` may refuse the file for what it says. Then the checksum is
    computed, a chunk at a time, and only if it agrees are arrays made: they take as much memory as they
    do in the file, and nothing else takes more than the header and a chunk.

    Parameters
    ----------
    path
        The file.
    check
        Called with the header.

    Raises
    ------
    FileNotFoundError
        Where there is no such file.
    ValueError
        Where it is damaged, of another version, something else, or larger than the memory.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "state.safetensors"
    >>> write_archive(path, "Example", {"t": 3}, {})
    >>> read_archive(path)
    Archive(kind='Example', settings={'t': 3}, arrays={})
    """
    with _opened(path) as file:
        stored = read_stored(file, path)
        header = _header(path, stored)
        needed = check(header) if check is not None else None
        if stored.metadata.get("sha256") != _stored_digest(file, stored):
            raise ValueError(f"{path} is damaged: its checksum does not agree with its content")
        with enough_memory(path):
            arrays = {
                name: _array(file, each)
                for name, each in stored.arrays.items()
                if needed is None or name in needed
            }
    return Archive(header.kind, header.settings, arrays)


def read_header(path: str | os.PathLike[str]) -> Header:
    """Read what an archive says of itself; its checksum is not looked at.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "state.safetensors"
    >>> write_archive(path, "Example", {"t": 3}, {"x": np.zeros(2)})
    >>> read_header(path).described
    {'x': Described(dtype=dtype('float64'), shape=(2,))}
    """
    with _opened(path) as file:
        return _header(path, read_stored(file, path))


@contextmanager
def enough_memory(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say which file there is not enough memory for, in a ValueError."""
    try:
        yield
    except MemoryError as error:
        raise ValueError(f"{path} is too large: there is not enough memory to load it") from error


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[FileIO]:
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {path}")
    with open(path, "rb", buffering=0) as file, enough_memory(path):
        yield file


def _header(path: str | os.PathLike[str], stored: Stored) -> Header:
    try:
        header = json.loads(stored.metadata[ENTRY])
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
    described = {name: Described(each.dtype, each.shape) for name, each in stored.arrays.items()}
    return Header(kind, settings, described)


def digest(text: str, arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the checksum of an archive with this header and these arrays."""
    total = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        total.update(_description(name, array.dtype, array.shape))
        total.update(np.ascontiguousarray(array).data)
    return total.hexdigest()


def _stored_digest(file: FileIO, stored: Stored) -> str:
    """The same of a file, of which a chunk at a time is in memory."""
    try:
        total = hashlib.sha256(stored.metadata[ENTRY].encode())
    except UnicodeEncodeError:  # half of a pair of surrogates: JSON has it, files of ours do not
        return ""
    for name in sorted(stored.arrays):
        each = stored.arrays[name]
        total.update(_description(name, each.dtype, each.shape))
        file.seek(each.start)
        left = each.size
        while left:
            chunk = file.read(min(left, CHUNK))
            if not chunk:
                return ""
            total.update(chunk)
            left -= len(chunk)
    return total.hexdigest()


def _description(name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    return json.dumps([name, dtype.str, shape]).encode()


def _array(file: FileIO, stored: StoredArray) -> NDArray[Any]:
    array = np.empty(stored.shape, stored.dtype)
    content = array.reshape(-1).view(np.uint8)
    file.seek(stored.start)
    done = 0
    while done < stored.size:
        read = file.readinto(content[done : done + CHUNK].data)
        if not read:
            raise ValueError("this archive has become shorter while it was read")
        done += read
    return array

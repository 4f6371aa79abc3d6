"""Files written whole or not at all, and archives: files of named arrays and plain settings."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

PathLike = str | os.PathLike[str]

# -- files -----------------------------------------------------------------------------------------


def lock(file: IO[Any], *, wait: bool = False) -> bool:
    """Lock an open file until it is closed; False if another has it or the system has no locks."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):  # not on this system or file system, or another's
        return False
    return True


def write(path: Path, fill: Callable[[Path], Any]) -> None:
    """Let `fill` write a temporary file beside `path`, and rename it once it is complete.

    A kill or a power cut at any moment leaves the old file or the new one, each whole. A replaced file keeps its
    mode and, where the system permits, its owner and group; of a link, the file it leads to is replaced.
    """
    with explained(path):
        place = destination(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        with _temporary(place) as part:
            fill(part)
            with part.open("r+b") as complete:
                os.fsync(complete.fileno())
            _keep_access(place, part)
            part.replace(place)


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes to a file, whole or not at all."""
    write(path, lambda part: part.write_bytes(content))


def write_text(path: Path, content: str) -> None:
    """Write text to a file, as UTF-8."""
    write_bytes(path, content.encode())


def destination(path: Path) -> Path:
    """Return the file that a path leads to; refuse a device, and a link to anything but a file."""
    if not path.is_symlink():
        if path.exists() and not path.is_file() and not path.is_dir():
            raise OSError(errno.EINVAL, "it is a device, pipe or socket, not a file")
        return path
    if not path.is_file():
        why = f"it is a link to {os.readlink(path)}, which is not a file"
        raise FileNotFoundError(errno.ENOENT, why)
    return path.resolve()


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn an error of the system into one sentence that says what could not be written, and why."""
    try:
        yield
    except OSError as error:
        blocked = [f for f in path.parents if f.exists() and not f.is_dir()]
        why = f"{blocked[0]} is not a folder" if blocked else error.strerror or str(error)
        clear = type(error)(f"could not write {path}: {why}")
        clear.errno = error.errno
        raise clear from error


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A new file beside `path`, locked while it is written; those that killed processes left are removed."""
    # Hidden, not too long for the system, and a name that nobody else gives.
    start, end = f".{path.stem[:100]}.driftwolfe-", path.suffix
    name = re.compile(f"{re.escape(start)}[0-9a-f]{{16}}{re.escape(end)}")
    with suppress(OSError):  # a folder may be writable and not listable
        beside = map(path.with_name, filter(name.fullmatch, os.listdir(path.parent)))
        for left_over in filter(Path.is_file, beside):
            with suppress(OSError), left_over.open("rb") as opened:
                if lock(opened):
                    left_over.unlink()
    # What replaces a file is for this user alone until it has that file's mode.
    mode = 0o600 if path.exists() else 0o666
    while True:
        part = path.with_name(f"{start}{secrets.token_hex(8)}{end}")
        claim = open(part, "xb", opener=partial(os.open, mode=mode))  # noqa: SIM115 closed below
        locked = lock(claim, wait=True)
        if part.exists():
            break
        claim.close()  # another writer removed it in the moment before it was locked
    if not locked:
        claim.close()  # where there are no locks, an open file may not be replaced either
    try:
        yield part
    finally:
        claim.close()
        with suppress(OSError):
            part.unlink()


def _keep_access(path: Path, part: Path) -> None:
    """Give the new file the mode, owner and group of the one it replaces, where permitted."""
    try:
        old = path.stat()
    except FileNotFoundError:
        return
    mode = stat.S_IMODE(old.st_mode)
    if hasattr(os, "chown"):
        with suppress(OSError):  # only root may give files away
            os.chown(part, old.st_uid, -1)
        try:
            os.chown(part, -1, old.st_gid)
        except OSError:  # another group may do no more than everyone
            mode &= ~stat.S_IRWXG | (mode & stat.S_IRWXO) << 3
    with suppress(OSError):  # a file system without modes; until now it is for this user alone
        part.chmod(mode)


# -- archives --------------------------------------------------------------------------------------

#: Raised when the meaning of an archive's content changes.
VERSION = 3
#: The entry of the safetensors header that holds ours, as JSON; and the longest that safetensors reads.
ENTRY, LONGEST_HEADER = "driftwolfe", 100_000_000
#: Types as safetensors names them: F64, I32, U8, ...
DTYPES = {"BOOL": np.dtype("?"), "C64": np.dtype("<c8")} | {
    f"{name[0].upper()}{8 * int(name[1])}": np.dtype(f"<{name}")
    for name in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
}


class Archive(NamedTuple):
    """The content of an archive."""

    kind: str  # what was saved: the name of a class
    settings: dict[str, Any]  # plain data: numbers, texts, lists and dictionaries of them
    arrays: dict[str, Any]  # by name; `StoredArray` ones where only the header was read


class InMemory:
    """An archive in memory, in the place of a path."""

    def __init__(self, content: Any = b"") -> None:
        if not isinstance(content, bytes | bytearray | memoryview):
            raise TypeError(f"content must be bytes, got {type(content).__name__}")
        self.content = bytes(content)

    def __str__(self) -> str:
        return "the content given"


class StoredArray(NamedTuple):
    """An array that has not been read yet, and where its bytes are in the file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    nbytes: int


def write_archive(
    path: PathLike, kind: str, settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write arrays and settings to a safetensors file, whole or not at all, with a SHA-256 sum over all of it."""
    if not isinstance(path, InMemory) and not os.fspath(path):
        raise ValueError("path must name a file, got ''")
    held = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    content = {"version": VERSION, "kind": kind, "settings": dict(settings)}
    text = json.dumps(content, allow_nan=False)
    header: dict[str, Any] = {"__metadata__": {ENTRY: text, "sha256": digest(text, held)}}
    # Wide types first, so that each array is aligned.
    ordered: Any = sorted(held.items(), key=lambda item: (-item[1].itemsize, item[0]))
    names, end = {dtype: name for name, dtype in DTYPES.items()}, 0
    for name, array in ordered:
        start, end = end, end + array.nbytes
        dtype = names[array.dtype]
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": (start, end)}
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    if len(head) > LONGEST_HEADER:
        raise ValueError(f"could not write {path}: {len(held):,} arrays are too many for one file")
    file = b"".join((len(head).to_bytes(8, "little"), head, *(array for _, array in ordered)))
    if isinstance(path, InMemory):
        path.content = file
    else:
        write_bytes(Path(path), file)


def read_archive(
    path: PathLike, check: Callable[[Archive], None] | None = None, kind: str | None = None
) -> Archive:
    """Read what `write_archive` wrote; what is damaged, too large or something else raises ValueError.

    Nothing in it is executed, and arrays are made only if the checksum agrees. `check` raises ValueError to refuse
    an archive, once its arrays are read and, of a file, before, with `StoredArray` ones.
    """
    with _opened(path) as (file, header, metadata):
        if kind not in (None, header.kind):
            raise ValueError(f"{path} holds a {header.kind[:40]}, not a {kind}")
        if check and not isinstance(path, InMemory):  # whose arrays take no memory yet
            check(header)
        if _is_hollow(file):
            raise ValueError(
                f"{path} is almost empty on the disk, unlike what was saved; if it is yours, copy it with "
                "cp --sparse=never"
            )
        if metadata.get("sha256") != digest(metadata[ENTRY], header.arrays, file):
            raise ValueError(f"{path} is damaged: its checksum does not agree with its content")
        archive = header._replace(arrays={n: _array(file, a) for n, a in header.arrays.items()})
        if check:
            check(archive)
    return archive


def read_header(path: PathLike) -> Archive:
    """Read an archive with `StoredArray` arrays; its checksum is not verified."""
    with _opened(path) as (_, header, _):
        return header


def digest(text: str, arrays: Mapping[str, Any], file: IO[bytes] | None = None) -> str:
    """Return the checksum of an archive with this header and these arrays, or those of a file."""
    total = hashlib.sha256(text.encode(errors="surrogatepass"))
    for name in sorted(arrays):
        array = arrays[
            name
        ]  # below: what JSON makes of a list of the three, in a quarter of the time
        total.update(f'[{json.dumps(name)}, "{array.dtype.str}", {[*array.shape]}]'.encode())
        if file is None:
            total.update(np.ascontiguousarray(array).data)
            continue
        file.seek(array.start)
        left = array.nbytes
        while left and (chunk := file.read(min(left, 1 << 20))):  # 1 MB in memory at a time
            total.update(chunk)
            left -= len(chunk)
    return total.hexdigest()


@contextmanager
def _opened(path: PathLike) -> Iterator[tuple[IO[bytes], Archive, dict[str, str]]]:
    """Yield an archive's open file, its content with `StoredArray` arrays, and the safetensors metadata."""
    if isinstance(path, InMemory):
        opened: IO[bytes] = io.BytesIO(path.content)
    elif Path(path).is_file():
        opened = open(path, "rb")  # noqa: SIM115 closed below
    else:
        if os.path.isdir(path):
            raise IsADirectoryError(f"{path} is a folder; give the file in it")
        raise FileNotFoundError(f"there is no file {path or repr('')}")
    with opened as file, enough_memory(path):
        try:
            metadata, arrays = _container(file)
            held = json.loads(metadata[ENTRY])
            version, kind, settings = held["version"], held["kind"], held["settings"]
            if version == VERSION and (type(kind), type(settings)) != (str, dict):
                raise TypeError("kind or settings of another type")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(f"{path} is not an archive of driftwolfe, or is damaged") from error
        if version != VERSION:
            raise ValueError(
                f"{path} has version {str(version)[:40]} of the format, this driftwolfe reads "
                f"{VERSION}: load it with the version that wrote it"
            )
        yield file, Archive(kind, settings, arrays), metadata


def _container(file: IO[bytes]) -> tuple[dict[str, str], dict[str, Any]]:
    """Read metadata and `StoredArray` arrays; ValueError unless they account for every byte, once."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    length = int.from_bytes(file.read(8), "little")
    if length > min(LONGEST_HEADER, size - 8):
        raise ValueError("the header is too long")
    header = json.loads(file.read(length))
    metadata = header.pop("__metadata__", {})
    if not all(type(text) is str for text in metadata.values()):
        raise TypeError("metadata are texts")
    arrays, first = {}, 8 + length
    for name, each in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        start, end = each["data_offsets"]
        dtype, shape = DTYPES[each["dtype"]], tuple(each["shape"])
        if not all(type(n) is int and n >= 0 for n in (start, end, *shape)):
            raise TypeError("offsets and shapes are whole numbers")
        nbytes = math.prod(shape) * dtype.itemsize
        if len(each) != 3 or first != 8 + length + start or end - start != nbytes:
            raise ValueError("arrays do not lie end to end")
        # NumPy makes no others, even if they have no elements.
        if len(shape) > 32 or math.prod(filter(None, shape)) * dtype.itemsize >= 1 << 62:
            raise ValueError("an array has too many axes, or too long ones")
        arrays[name] = StoredArray(dtype, shape, first, nbytes)
        first += nbytes
    if first != size:
        raise ValueError("the file is longer or shorter than its arrays")
    return metadata, arrays


def _is_hollow(file: IO[bytes]) -> bool:
    """Whether more than 99 % of a file that takes seconds to read are holes, which take no room."""
    size, data, place = file.seek(0, os.SEEK_END), 0, 0
    if size < 1 << 30 or not hasattr(os, "SEEK_DATA") or isinstance(file, io.BytesIO):
        return False
    number = file.fileno()
    with suppress(OSError):  # no data up to the end
        while 100 * data < size:
            start = os.lseek(number, place, os.SEEK_DATA)
            place = os.lseek(number, start, os.SEEK_HOLE)
            data += place - start
    file.seek(0)
    return 100 * data < size


def _array(file: Any, described: Any) -> NDArray[Any]:
    array = np.empty(described.shape, described.dtype)
    file.seek(described.start)
    if file.readinto(array.reshape(-1).view(np.uint8).data) != described.nbytes:
        raise ValueError("this archive has become shorter while it was read")
    return array


# -- refusals --------------------------------------------------------------------------------------


@contextmanager
def enough_memory(path: PathLike) -> Iterator[None]:
    """Turn a MemoryError into a ValueError that names the file."""
    try:
        yield
    except MemoryError as error:
        raise ValueError(f"{path} is too large: there is not enough memory to load it") from error


@contextmanager
def refused(what: str, advice: str = "") -> Iterator[None]:
    """Turn errors about what an archive holds into a ValueError of one line: what, why, and advice."""
    try:
        yield
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        raise ValueError(f"{what}: {one_line(error)}{advice}") from error


def one_line(error: object) -> str:
    """What an error says, in one short line."""
    return " ".join(str(error).split())[:200]


def require(fits: Any, what: str) -> None:
    """Raise ValueError unless what was read fits together."""
    if not fits:
        raise ValueError(f"this archive holds {what} that do not fit together")

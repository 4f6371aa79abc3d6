"""Files written whole or not at all: archives of arrays and plain settings, and what they may hold."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import secrets
import stat
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

__all__ = ["Archive", "read_archive", "write_archive"]

PathLike = str | os.PathLike[str]

# -- files -----------------------------------------------------------------------------------------


def lock(file: IO[Any], *, wait: bool = False) -> bool:
    """Lock an open file until it is closed; False if another has it or the system has no locks."""
    try:
        import fcntl
    except ImportError:  # not on this system
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # another's, or not on this file system
        return False
    return True


def write(path: Path, fill: Callable[[Path], Any]) -> None:
    """Let `fill` write a temporary file beside `path`, and rename it once it is complete.

    A kill or a power cut at any moment leaves the old file or the new one, each whole; the next write
    removes temporary files of killed writers. The folder is not synchronised, which would double the
    cost. A replaced file keeps its mode and, where the system permits, its owner and group. If `path`
    is a link, the file it leads to is replaced.
    """
    with explained(path):
        place = destination(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):  # a folder may be writable and not listable
            _remove_left_over(place)
        with _temporary(place) as part:
            fill(part)
            with part.open("r+b") as complete:
                os.fsync(complete.fileno())
            _keep_access(place, part)
            part.replace(place)


def destination(path: Path) -> Path:
    """Return the file that a path leads to; OSError for a link to nowhere, to itself or to a folder."""
    if not path.is_symlink():
        return path
    try:
        place = path.resolve(strict=True)
    except FileNotFoundError:
        raise FileNotFoundError(
            errno.ENOENT, f"it is a link to {os.readlink(path)}, which is not there"
        ) from None
    except (OSError, RuntimeError):  # from Python 3.13 on an OSError
        raise OSError(errno.ELOOP, "it is a link that leads back to itself") from None
    if place.is_dir():
        raise IsADirectoryError(errno.EISDIR, f"it is a link to the folder {place}")
    return place


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes."""
    write(path, lambda part: part.write_bytes(content))


def write_text(path: Path, content: str) -> None:
    """Write text."""
    write_bytes(path, content.encode())


def write_json(path: Path, content: Any) -> None:
    """Write plain data as readable JSON."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn an error of the system into one sentence that says what could not be written, and why."""
    try:
        yield
    except OSError as error:
        blocked = [f for f in path.parents if f.exists() and not f.is_dir()]
        why = f"{blocked[0]} is not a folder" if blocked else error.strerror or str(error)
        told = type(error)(f"could not write {path}: {why}")
        told.errno = error.errno
        raise told from error


@contextmanager
def _temporary(path: Path) -> Iterator[Path]:
    """A new file beside `path`, removed at the end unless it was renamed.

    It is locked while it is written: one without a lock was left by a process that is gone.
    """
    # What replaces a file is for this user alone until it has that file's mode.
    mode = 0o600 if path.exists() else 0o666
    while True:
        part = path.with_name(f"{_prefix(path)}{secrets.token_hex(8)}{path.suffix}")
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


def _remove_left_over(path: Path) -> None:
    """Remove temporary files of writers of `path` that were killed."""
    name = re.compile(f"{re.escape(_prefix(path))}[0-9a-f]{{16}}{re.escape(path.suffix)}")
    for beside in filter(name.fullmatch, os.listdir(path.parent)):
        with suppress(OSError), path.with_name(beside).open("rb") as part:
            if lock(part):
                path.with_name(beside).unlink()


def _prefix(path: Path) -> str:
    """What names of temporary files begin with: hidden, and not too long for the system."""
    return f".{path.stem[:100]}."


# -- archives --------------------------------------------------------------------------------------

#: Raised when the meaning of an archive's content changes.
VERSION = 1
#: The entry of the safetensors header that holds ours, as JSON.
ENTRY = "driftwolfe"
#: Bytes that are read at once.
CHUNK = 1 << 20
#: As in the safetensors library, which writes no longer ones.
LONGEST_HEADER = 100_000_000
#: Types as safetensors names them: F64, I32, U8, ...
DTYPES = {"BOOL": np.dtype("?"), "C64": np.dtype("<c8")} | {
    f"{name[0].upper()}{8 * int(name[1])}": np.dtype(f"<{name}")
    for name in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
}


@dataclass(frozen=True)
class Archive:
    """The content of an archive.

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


class Described(NamedTuple):
    """An array that has not been read yet, and where its bytes begin in the file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int

    @property
    def nbytes(self) -> int:
        """Its size in the file."""
        return math.prod(self.shape) * self.dtype.itemsize


class Header(NamedTuple):
    """The header of an archive: kind and settings as in `Archive`, and descriptions of its arrays."""

    kind: str
    settings: dict[str, Any]
    described: dict[str, Described]
    text: str
    sha256: str


#: Raises ValueError if an archive can be refused by its header. Returns the names of the arrays that
#: are needed, or None for all.
Check = Callable[[Header], Collection[str] | None]


def write_archive(
    path: PathLike, kind: str, settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write arrays and settings to one file: whole, or not at all.

    The file is a safetensors file whose header carries the version, the kind, the settings and a
    SHA-256 sum over all of it.

    Parameters
    ----------
    path
        The file; an existing one is replaced.
    kind, settings, arrays
        As in `Archive`.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "state.safetensors"
    >>> write_archive(path, "Example", {"t": 3}, {"x": np.arange(2.0)})
    >>> read_archive(path).arrays["x"]
    array([0., 1.])
    """
    held = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    content = {"version": VERSION, "kind": kind, "settings": dict(settings)}
    text = json.dumps(content, allow_nan=False)
    try:
        file = safetensors.numpy.save(held, {ENTRY: text, "sha256": digest(text, held)})
    except safetensors.SafetensorError as error:  # a header of more than 100 MB
        raise ValueError(
            f"could not write {path}: {len(held):,} arrays are too many for one file"
        ) from error
    write_bytes(Path(path), file)


def read_archive(path: PathLike, check: Check | None = None, kind: str | None = None) -> Archive:
    """Read what `write_archive` wrote; nothing in it is ever executed.

    Arrays are made only if the checksum agrees: loading takes as much memory as the arrays take in the
    file, plus the header and a chunk.

    Parameters
    ----------
    path
        The file.
    check
        Called with the header before anything else is read; it may refuse the file.
    kind
        The kind that it must hold, if given.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is damaged, of another version, something else, or larger than the memory.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "state.safetensors"
    >>> write_archive(path, "Example", {"t": 3}, {})
    >>> read_archive(path)
    Archive(kind='Example', settings={'t': 3}, arrays={})
    """
    with _opened(path) as file:
        header = _read_header(file, path)
        if kind not in (None, header.kind):
            raise ValueError(f"{path} holds a {header.kind[:40]}, not a {kind}")
        needed = None if check is None else check(header)
        if header.sha256 != digest(header.text, header.described, file):
            raise ValueError(f"{path} is damaged: its checksum does not agree with its content")
        arrays = {
            name: _array(file, each)
            for name, each in header.described.items()
            if needed is None or name in needed
        }
    return Archive(header.kind, header.settings, arrays)


def read_header(path: PathLike) -> Header:
    """Read the header of an archive; its checksum is not verified."""
    with _opened(path) as file:
        return _read_header(file, path)


def digest(text: str, arrays: Mapping[str, Any], file: IO[bytes] | None = None) -> str:
    """Return the checksum of an archive with this header and these arrays, or `Described` ones.

    Of a file, one chunk at a time is in memory.
    """
    total = hashlib.sha256(text.encode(errors="surrogatepass"))
    for name in sorted(arrays):
        array = arrays[name]
        total.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        if file is None:
            total.update(np.ascontiguousarray(array).data)
            continue
        file.seek(array.start)
        left = array.nbytes
        while left and (chunk := file.read(min(left, CHUNK))):
            total.update(chunk)
            left -= len(chunk)
    return total.hexdigest()


@contextmanager
def enough_memory(path: PathLike) -> Iterator[None]:
    """Turn a MemoryError into a ValueError that names the file."""
    try:
        yield
    except MemoryError as error:
        raise ValueError(f"{path} is too large: there is not enough memory to load it") from error


@contextmanager
def _opened(path: PathLike) -> Iterator[IO[bytes]]:
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {path}")
    with open(path, "rb") as file, enough_memory(path):
        yield file


def _read_header(file: IO[bytes], path: PathLike) -> Header:
    try:
        metadata, described = _container(file)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} is not an archive of driftwolfe, or is damaged") from error
    try:
        text = metadata[ENTRY]
        held = json.loads(text)
        version, kind, settings = held["version"], held["kind"], held["settings"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} was not written by driftwolfe") from error
    if version != VERSION:
        raise ValueError(
            f"{path} has version {str(version)[:40]} of the format, this driftwolfe reads {VERSION}: "
            "load it with the version that wrote it"
        )
    if not isinstance(kind, str) or not isinstance(settings, dict):
        raise ValueError(f"{path} was not written by driftwolfe")
    return Header(kind, settings, described, text, metadata.get("sha256", ""))


def _container(file: IO[bytes]) -> tuple[dict[str, str], dict[str, Described]]:
    """Read the header of a safetensors file; ValueError unless it accounts for every byte, once."""
    size = os.fstat(file.fileno()).st_size
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
        described = Described(DTYPES[each["dtype"]], tuple(each["shape"]), first)
        if not all(type(n) is int and n >= 0 for n in (start, end, *described.shape)):
            raise TypeError("offsets and shapes are whole numbers")
        if len(each) != 3 or first != 8 + length + start or end - start != described.nbytes:
            raise ValueError("arrays do not lie end to end")
        # NumPy makes no others, even if they have no elements.
        longest = math.prod(filter(None, described.shape)) * described.dtype.itemsize
        if len(described.shape) > 32 or longest >= 1 << 62:
            raise ValueError("an array has too many axes, or too long ones")
        arrays[name] = described
        first += described.nbytes
    if first != size:
        raise ValueError("the file is longer or shorter than its arrays")
    return metadata, arrays


def _array(file: Any, described: Described) -> NDArray[Any]:
    array = np.empty(described.shape, described.dtype)
    file.seek(described.start)
    if file.readinto(array.reshape(-1).view(np.uint8).data) != described.nbytes:
        raise ValueError("this archive has become shorter while it was read")
    return array


# -- what a saved state must be --------------------------------------------------------------------

LARGEST_FLOAT = sys.float_info.max


@dataclass(frozen=True)
class Field:
    """What one part of a saved state must be.

    The shape is that of an array, or the length of a list or tuple. Each size is a number, None for
    any size, a name for the same size wherever it appears, or "a b" for the product of two named sizes.
    """

    kind: Any  # the exact type, or several; NumPy's scalar types stand for arrays of them
    shape: tuple[Any, ...] | None = None
    least: float = -LARGEST_FLOAT  # the default bounds refuse NaN and infinities
    most: float = LARGEST_FLOAT
    below: int | str | None = None  # a number or a named size: the bound of indices
    items: Field | None = None  # what each item of a list or tuple must be
    optional: bool = False  # whether it may be None
    newer: bool = False  # whether it may be missing, in files from before there was such a part

    def fits(self, value: Any, sizes: dict[str, int]) -> bool:
        """Whether a value is that; names of sizes that are new are added to `sizes`."""
        if value is None and self.optional:
            return True
        kinds = self.kind if isinstance(self.kind, tuple) else (self.kind,)
        if not any(_is_a(value, kind) for kind in kinds):
            return False
        listed = type(value) in (list, tuple)
        if self.shape is not None:
            shape = (len(value),) if listed else value.shape
            pairs = zip(self.shape, shape, strict=False)
            if len(shape) != len(self.shape) or not all(_fits_size(*p, sizes) for p in pairs):
                return False
        if listed:
            return self.items is None or all(self.items.fits(item, sizes) for item in value)
        if isinstance(value, np.ndarray) and value.dtype.kind == "c":
            return bool(np.isfinite(value).all())
        if isinstance(value, np.ndarray) and value.size:
            with np.errstate(invalid="ignore"):
                low, high = value.min().item(), value.max().item()
        elif isinstance(value, int | float):
            low = high = value
        else:
            return True
        end = sizes[self.below] if isinstance(self.below, str) else self.below
        return bool(self.least <= low and high <= self.most and (end is None or high < end))


def _is_a(value: Any, kind: type) -> bool:
    if issubclass(kind, np.generic):
        return type(value) in (np.ndarray, Described) and value.dtype == kind
    return type(value) is kind


def _fits_size(expected: Any, size: Any, sizes: dict[str, int]) -> bool:
    if not isinstance(expected, str):
        return expected is None or bool(expected == size)
    if expected.isidentifier():
        return sizes.setdefault(expected, size) == size
    return math.prod(sizes[name] for name in expected.split()) == size


def check_fields(
    fields: Mapping[str, Field], values: Any, what: str, **sizes: int
) -> dict[str, int]:
    """Raise ValueError unless named values are what a table of fields says; return the named sizes.

    Of arrays that have not been read yet (`Described`), types and shapes are checked.

    >>> fields = {"x": Field(np.float64, ("n",)), "places": Field(np.int64, ("k",), 0, below="n")}
    >>> check_fields(fields, {"x": np.ones(3), "places": np.array([2])}, "point")
    {'n': 3, 'k': 1}
    >>> check_fields(fields, {"x": np.ones(3), "places": np.array([3])}, "point")
    Traceback (most recent call last):
        ...
    ValueError: this archive holds a point whose places does not fit
    """
    needed = {name for name, field in fields.items() if not field.newer}
    if not isinstance(values, dict) or not needed <= values.keys() <= fields.keys():
        raise ValueError(f"this archive does not hold the state of a {what}")
    for name, field in fields.items():
        if name in values and not field.fits(values[name], sizes):
            raise ValueError(f"this archive holds a {what} whose {name.strip('_')} does not fit")
    return sizes


def require(fits: Any, what: str) -> None:
    """Raise ValueError unless what was read fits together."""
    if not fits:
        raise ValueError(f"this archive holds {what} that do not fit together")


# -- objects as JSON and arrays --------------------------------------------------------------------

#: How deep lists in lists may be.
DEEPEST = 40


class Kind(NamedTuple):
    """How objects of one class are saved."""

    of: type  # the class
    fields: Mapping[str, Field]  # the attributes that make it up
    make: Callable[..., Any]  # makes one from these by name; it checks how they fit together


def array_names(written: Any) -> Iterator[str]:
    """The names of the arrays that JSON of ours refers to, as often as it does."""
    left = [written]
    while left:  # not recursive: a file may be nested as deeply as JSON allows
        part = left.pop()
        if isinstance(part, list):
            left += part
        elif isinstance(part, dict):
            for key, value in part.items():
                if key in ("array", "turned") and isinstance(value, str):
                    yield value
                else:
                    left.append(value)


def shared_names(written: Any) -> set[str]:
    """The names of the arrays that JSON of ours refers to more than once."""
    return {name for name, times in Counter(array_names(written)).items() if times > 1}


class TreeWriter:
    """Turns values into JSON, and collects their arrays.

    An array, or an object of a known kind, that appears twice is written once, and is one again
    when it is read. Tensors are written as arrays; a class whose ``SAVED_AS`` names a kind, as objects
    of that kind.
    """

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._names = {kind.of: name for name, kind in kinds.items()}
        self._kinds = kinds
        self.arrays: dict[str, NDArray[Any]] = {}  # by the names that the JSON has for them
        self._known: dict[int, tuple[Any, dict[str, Any]]] = {}

    def write(self, value: Any) -> Any:
        """Return the value as JSON."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": repr(value)}
        if type(value) is list or type(value) is tuple:
            return {type(value).__name__: [self.write(item) for item in value]}
        if id(value) in self._known:
            return self._known[id(value)][1]
        if isinstance(value, np.ndarray) or hasattr(value, "__dlpack_device__"):
            array = value if isinstance(value, np.ndarray) else value.detach().cpu().numpy()
            name = str(len(self.arrays))
            # The order in memory is kept, so that sums come out bit-identical.
            turned = array.flags.f_contiguous and not array.flags.c_contiguous
            self.arrays[name] = array.T if turned else array
            written: dict[str, Any] = {"turned" if turned else "array": name}
        else:
            name = self._names.get(type(value), "") or getattr(value, "SAVED_AS", "")
            if not name:
                raise TypeError(f"a {type(value).__name__} cannot be written to a file")
            parts = {part: self.write(getattr(value, part)) for part in self._kinds[name].fields}
            written = {name: parts, "number": len(self._known)}
        self._known[id(value)] = (value, written)  # holds the value, so that its id stays its own
        return written


class TreeReader:
    """Turns what `TreeWriter` wrote into values again; anything else is refused with a ValueError.

    Arrays become parts of what is read. Only the `shared` ones, which are read more than once or by
    several readers, are copied, so that every reader has its own. None: all of them.
    """

    def __init__(
        self,
        kinds: Mapping[str, Kind],
        arrays: Mapping[str, NDArray[Any]],
        shared: Collection[str] | None = None,
    ) -> None:
        self._kinds = kinds
        self._given = arrays
        self._shared = arrays.keys() if shared is None else shared
        self._arrays: dict[str, NDArray[Any]] = {}
        self._copies: set[int] = set()
        self._made: dict[int, tuple[str, Any]] = {}

    def read(self, written: Any, depth: int = 0) -> Any:
        """Return the value."""
        if depth > DEEPEST:
            raise ValueError("this archive is nested too deeply")
        if written is None or isinstance(written, bool | int | float | str):
            return written
        if not isinstance(written, dict) or not 1 <= len(written) <= 2:
            raise ValueError("this archive holds something unknown")
        name, content = next(iter(written.items()))
        if name in ("list", "tuple") and isinstance(content, list):
            items = [self.read(item, depth + 1) for item in content]
            return items if name == "list" else tuple(items)
        if name == "float" and content in ("inf", "-inf", "nan"):
            return float(content)
        if name in ("array", "turned") and isinstance(content, str) and content in self._given:
            return self._array(content, name == "turned")
        if name in self._kinds and isinstance(content, dict):
            return self._object(name, content, written.get("number"), depth)
        raise ValueError("this archive holds something unknown")

    def is_shared(self, array: NDArray[Any]) -> bool:
        """Whether other values that were read, or will be, may hold the same array."""
        return id(array) in self._copies

    def _array(self, name: str, turned: bool) -> NDArray[Any]:
        if name not in self._arrays:
            array = self._given[name]
            self._arrays[name] = array.copy() if name in self._shared else array
        if turned and self._arrays[name].flags.c_contiguous:
            self._arrays[name] = self._arrays[name].T
        if name in self._shared:
            self._copies.add(id(self._arrays[name]))
        return self._arrays[name]

    def _object(self, name: str, content: dict[str, Any], number: Any, depth: int) -> Any:
        if not isinstance(number, int) or self._made.get(number, (name, None))[0] != name:
            raise ValueError(f"this archive does not hold the state of a {name}")
        if number not in self._made:
            parts = {part: self.read(value, depth + 1) for part, value in content.items()}
            check_fields(self._kinds[name].fields, parts, name)
            self._made[number] = (name, self._kinds[name].make(**parts))
        return self._made[number][1]


def state_names(thing: Any) -> list[str]:
    """Return the attributes that make up its state; none for what has no state of its own."""
    names = (name for base in type(thing).__mro__ for name in base.__dict__.get("STATE", ()))
    return list(dict.fromkeys(names))


def write_state(thing: Any, writer: TreeWriter) -> dict[str, Any]:
    """Return the state as JSON."""
    written, saved_as = {}, getattr(thing, "STATE_KEYS", {})
    for name in state_names(thing):
        value = getattr(thing, name)
        content = write_state(value, writer) if state_names(value) else writer.write(value)
        written[saved_as.get(name, name)] = content
    return written


def read_state(thing: Any, written: Any, reader: TreeReader) -> None:
    """Set the state of an object that was made the same way; what does not fit is refused."""
    saved_as, what = getattr(thing, "STATE_KEYS", {}), type(thing).__name__
    keys = {name: saved_as.get(name, name) for name in state_names(thing)}
    if not isinstance(written, dict) or set(written) != set(keys.values()):
        raise ValueError(f"this archive does not hold the state of a {what}")
    for name, key in keys.items():
        old = getattr(thing, name)
        if state_names(old):
            read_state(old, written[key], reader)
            continue
        new = reader.read(written[key])
        check_fields({name: _like(old)}, {name: new}, what)
        if isinstance(new, np.ndarray) and reader.is_shared(new):
            # A file may say that two of them are one array; loops write to each by itself.
            new = np.array(new, order="K")
        setattr(thing, name, new)
    if hasattr(thing, "check_state"):
        thing.check_state()


def _like(old: Any) -> Field:
    """What may take the place of a value: of arrays, any number of rows."""
    if isinstance(old, int) and not isinstance(old, bool):
        return Field(int, least=1 - (1 << 62), below=1 << 62)
    if isinstance(old, np.ndarray):
        return Field(old.dtype.type, (None, *old.shape[1:]))
    if hasattr(old, "__dlpack_device__"):  # a tensor: read as an array, and put there again
        return Field(np.float64, (None, *old.shape[1:]))
    return Field(type(old), getattr(old, "shape", None))

"""Files written whole or not at all: archives of arrays and plain settings, never any code."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import secrets
import stat
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from io import FileIO
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray


def lock(file: IO[Any], *, wait: bool = False) -> bool:
    """Lock an open file until it is closed; False where another has it, or there are no locks."""
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
    """Let `fill` write a file beside `path`, and put it in its place once it is complete.

    A kill or a power cut at any moment leaves the old file or the new one, each whole. The folder
    itself is not synchronised: that would double the cost, and all it buys is that after a power cut
    it is more likely the new one. What a kill leaves beside the file, the next write removes.

    A new file gets the usual mode of new files (the umask says which). One that takes the place of
    another keeps that one's mode, and its owner and group where the system permits. Where `path` is a
    link, the file that it leads to is replaced, and the link stays.
    """
    with explained(path):
        place = destination(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):  # a folder may be written, and not listed
            _remove_left_over(place)
        with _part(place) as part:
            fill(part)
            with part.open("r+b") as complete:
                os.fsync(complete.fileno())
            _keep_access(place, part)
            part.replace(place)


def destination(path: Path) -> Path:
    """Return the file that a path leads to: itself, or, of a link, what is at its end.

    Links that lead nowhere, in a circle or to a folder are refused with an OSError.
    """
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
def _part(path: Path) -> Iterator[Path]:
    """The name of a new file beside `path`; gone at the end, if it has not taken its place.

    It is locked as long as it is written: a part without a lock was left by a process that is gone.
    """
    # What takes the place of a file is for this user alone until it has that file's mode.
    mode = 0o600 if path.exists() else 0o666
    while True:
        part = path.with_name(f"{_beginning(path)}{secrets.token_hex(8)}{path.suffix}")
        claim = open(part, "xb", opener=partial(os.open, mode=mode))  # noqa: SIM115 closed below
        locked = lock(claim, wait=True)
        if part.exists():
            break
        claim.close()  # taken for one left over, in the moment before it was locked
    if not locked:
        claim.close()  # where there are no locks, a file that is open may not be replaced either
    try:
        yield part
    finally:
        claim.close()
        with suppress(OSError):
            part.unlink()


def _keep_access(path: Path, part: Path) -> None:
    """Give what takes the place of a file its mode, owner and group, as far as the system permits."""
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
        except OSError:  # a group of others may do no more than everyone
            mode &= ~stat.S_IRWXG | (mode & stat.S_IRWXO) << 3
    with suppress(OSError):  # a file system without modes; until now it is for this user alone
        part.chmod(mode)


def _remove_left_over(path: Path) -> None:
    """Remove what writers of `path` that were killed have left beside it."""
    first, middle, last = _beginning(path), re.compile("[0-9a-f]{16}"), path.suffix
    for beside in os.listdir(path.parent):
        if not (beside.startswith(first) and beside.endswith(last)):
            continue
        if middle.fullmatch(beside, len(first), len(beside) - len(last)):
            with suppress(OSError), path.with_name(beside).open("rb") as part:
                if lock(part):
                    path.with_name(beside).unlink()


def _beginning(path: Path) -> str:
    """What the names of parts begin with: hidden, and not longer than a system allows."""
    return f".{path.stem[:100]}."


#: As in the safetensors library, which writes no longer ones.
LONGEST_HEADER = 100_000_000
DTYPES = {
    "BOOL": np.dtype(np.bool_),
    "U8": np.dtype("<u1"),
    "I8": np.dtype("<i1"),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "F16": np.dtype("<f2"),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "F32": np.dtype("<f4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F64": np.dtype("<f8"),
    "C64": np.dtype("<c8"),
}


class StoredArray(NamedTuple):
    """Type and shape of an array, and where its bytes are in the file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    size: int


class Stored(NamedTuple):
    """What the header says: texts by name, and arrays by name."""

    metadata: dict[str, str]
    arrays: dict[str, StoredArray]


def read_stored(file: FileIO, path: str | os.PathLike[str]) -> Stored:
    """Read the header of a file; ValueError unless it accounts for every byte of the file, once."""
    try:
        return _stored(file)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} is not an archive of driftwolfe, or is damaged") from error


def _stored(file: FileIO) -> Stored:
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(_exactly(file, 8), "little")
    if length > min(LONGEST_HEADER, size - 8):
        raise ValueError("the header is too long")
    header = json.loads(_exactly(file, length))
    metadata = header.pop("__metadata__", {})
    if not all(type(text) is str for text in metadata.values()):
        raise TypeError("metadata are texts")
    arrays, first = {}, 8 + length
    for name, each in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        start, end = each["data_offsets"]
        shape, dtype = tuple(each["shape"]), DTYPES[each["dtype"]]
        if not all(type(number) is int and number >= 0 for number in (start, end, *shape)):
            raise TypeError("places and shapes are whole numbers")
        needed = math.prod(shape) * dtype.itemsize
        if len(each) != 3 or first != 8 + length + start or end - start != needed:
            raise ValueError("arrays do not lie end to end")
        # NumPy makes no others, though without elements they would take no room.
        if len(shape) > 32 or math.prod(filter(None, shape)) * dtype.itemsize >= 1 << 62:
            raise ValueError("an array has too many axes, or too long ones")
        arrays[name] = StoredArray(dtype, shape, first, needed)
        first += needed
    if first != size:
        raise ValueError("the file is longer or shorter than its arrays")
    return Stored(metadata, arrays)


def _exactly(file: FileIO, size: int) -> bytes:
    content = b""
    while len(content) < size:
        more = file.read(size - len(content))
        if not more:
            raise ValueError("the file ends too early")
        content += more
    return content


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
    write_bytes(Path(path), content)


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


#: How a key of each type is told in JSON: a tag, and the key as text. Numbers are written in base
#: 16, which is exact, and says infinities and NaN as well.
_WRITE: dict[type, tuple[str, Callable[[Any], str]]] = {
    str: ("text", str),
    bool: ("bool", str),
    int: ("int", hex),
    float: ("float", float.hex),
    bytes: ("bytes", bytes.hex),
    type(None): ("none", lambda _: ""),
}
_READ: dict[str, Callable[[str], Hashable]] = {
    "text": str,
    "bool": {"True": True, "False": False}.__getitem__,
    "int": lambda text: int(text, 16),
    "float": float.fromhex,
    "bytes": bytes.fromhex,
    "none": lambda _: None,
}


#: Tuples in tuples in tuples: so deep and so large may one key be.
DEEPEST_KEY, LARGEST_KEY = 8, 10_000
#: Types of keys that hold no others and are equal to themselves.
_SIMPLE = {str, int, bool, bytes, type(None)}
_HOLDERS = (tuple, frozenset)


def check_keys(keys: Collection[Any], what: str) -> None:
    """Raise ValueError where a key could not be found again: where it is NaN, or holds NaN.

    Tuples and frozensets may hold others, 8 deep and 10,000 in all: to hash or compare a key takes
    time and stack for all of it. So this comes before either.

    >>> check_keys(["ann", 3, ("bob", 1.5)], "the id of one user")
    >>> check_keys([("bob", float("nan"))], "the id of one user")
    Traceback (most recent call last):
        ...
    ValueError: the id of one user is missing (NaN) or holds NaN; drop such rows or give them a name
    """
    if _SIMPLE.issuperset(map(type, keys)):
        return
    others = []
    for key in keys:
        if isinstance(key, _HOLDERS):
            _check_parts(key, what)
        elif type(key) not in _SIMPLE:
            others.append(key)
    try:
        others = list(set(others))
    except TypeError:  # which the caller finds out as well, and says in its own words
        return
    _refuse_missing(others, what)


def _check_parts(key: Any, what: str) -> None:
    level, seen = [key], 0
    for _ in range(DEEPEST_KEY + 1):
        holders = [part for part in level if isinstance(part, _HOLDERS)]
        _refuse_missing((part for part in level if not isinstance(part, _HOLDERS)), what)
        if not holders:
            return
        seen += sum(map(len, holders))
        if seen > LARGEST_KEY:
            raise ValueError(f"{what} must hold at most {LARGEST_KEY:,} parts")
        level = [part for holder in holders for part in holder]
    raise ValueError(f"{what} must not hold tuples more than {DEEPEST_KEY} deep")


def _refuse_missing(keys: Iterable[Any], what: str) -> None:
    if any(map(_is_missing, keys)):
        raise ValueError(
            f"{what} is missing (NaN) or holds NaN; drop such rows or give them a name"
        )


def _is_missing(key: Any) -> bool:
    try:
        return bool(key != key)
    except (TypeError, ArithmeticError):  # the NA of pandas is neither equal nor different
        return True
    except ValueError:  # an array, which is no key
        return False


def encode_keys(keys: Iterable[Any]) -> NDArray[np.uint8]:
    """Return keys as an array of bytes; `decode_keys` gives them back, types and order included.

    Keys are texts, whole numbers, floats, booleans, None, bytes, and tuples of these. NumPy's
    scalars become Python's. Anything else raises TypeError: an archive holds no code, so it could
    not be made again.

    >>> decode_keys(encode_keys(["a", 1, 1.0, True, None, (b"b", 2)]))
    ['a', 1, 1.0, True, None, (b'b', 2)]
    """
    try:
        text = json.dumps([_written(key) for key in keys], separators=(",", ":"))
    except RecursionError:
        raise ValueError(f"a key must not hold tuples more than {DEEPEST_KEY} deep") from None
    return np.frombuffer(text.encode("ascii"), dtype=np.uint8).copy()


def decode_keys(encoded: NDArray[np.uint8]) -> list[Any]:
    """Return the list of keys that `encode_keys` took, or raise ValueError for other bytes."""
    try:
        if encoded.dtype != np.uint8 or encoded.ndim != 1:
            raise TypeError("keys are a row of bytes")
        return [_read(item) for item in json.loads(encoded.tobytes())]
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise ValueError("these bytes are not keys written by encode_keys") from error


def plain_key(key: Any) -> Any:
    """Return the key as a Python object, where it is a NumPy scalar.

    >>> plain_key(np.int64(3))
    3
    """
    return key.item() if isinstance(key, np.generic) else key


def _written(key: Any) -> list[Any]:
    plain = plain_key(key)
    if type(plain) is tuple:
        return ["tuple", [_written(part) for part in plain]]
    # The exact type: an enumeration that is also an int would come back as a bare int.
    if type(plain) not in _WRITE:
        raise TypeError(
            "only str, int, float, bool, None, bytes and tuples of these can be saved as keys, "
            f"got {key!r} of type {type(key).__name__}"
        )
    tag, write = _WRITE[type(plain)]
    return [tag, write(plain)]


def _read(item: Any) -> Hashable:
    tag, content = item
    if tag == "tuple":
        return tuple(_read(part) for part in content)
    if not isinstance(content, str):
        raise TypeError("the content of a key is text")
    return _READ[tag](content)


#: Lists within lists: nothing of ours is deeper.
DEEPEST = 40


class Kind(NamedTuple):
    """How objects of one class are taken apart, and put together from what a file says.

    Attributes
    ----------
    of
        The class.
    parts
        Names of the attributes that make it up.
    make
        Makes one from these by name; it checks them, as they may come from anywhere.
    """

    of: type
    parts: tuple[str, ...]
    make: Callable[..., Any]


def array_names(written: Any) -> Iterator[str]:
    """The names of the arrays that JSON of ours speaks of, as often as it does."""
    left = [written]
    while left:  # a file may be nested as deeply as JSON allows
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
    """The names of the arrays that JSON of ours speaks of more than once."""
    return {name for name, times in Counter(array_names(written)).items() if times > 1}


class TreeWriter:
    """Turns values into JSON, and puts arrays aside.

    An array, or an object of a known kind, that appears twice is written once, and is one again
    when it is read. Tensors are written as arrays; a class whose ``SAVED_AS`` names a kind, as objects
    of that kind.

    Attributes
    ----------
    arrays
        By the names that the JSON has for them.
    """

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._names = {kind.of: name for name, kind in kinds.items()}
        self._kinds = kinds
        self.arrays: dict[str, NDArray[Any]] = {}
        self._seen: dict[int, tuple[Any, dict[str, Any]]] = {}

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
        if id(value) in self._seen:
            return self._seen[id(value)][1]
        if isinstance(value, np.ndarray) or hasattr(value, "__dlpack_device__"):
            array = value if isinstance(value, np.ndarray) else value.detach().cpu().numpy()
            name = str(len(self.arrays))
            # The order in memory is kept: sums come out the same to the last bit.
            turned = array.flags.f_contiguous and not array.flags.c_contiguous
            self.arrays[name] = array.T if turned else array
            return self._remember(value, {"turned" if turned else "array": name})
        name = self._names.get(type(value), "") or getattr(value, "SAVED_AS", "")
        if not name:
            raise TypeError(f"a {type(value).__name__} cannot be written to a file")
        parts = {part: self.write(getattr(value, part)) for part in self._kinds[name].parts}
        return self._remember(value, {name: parts, "number": len(self._seen)})

    def _remember(self, value: Any, written: dict[str, Any]) -> dict[str, Any]:
        # The value is kept, so that no other can have its id.
        self._seen[id(value)] = (value, written)
        return written


class TreeReader:
    """Turns what `TreeWriter` wrote into values again; anything else is refused with a ValueError.

    Parameters
    ----------
    kinds
        How objects are put together.
    arrays
        Arrays by name. They become parts of what is read, and are not copied.
    shared
        Names of those that are read more than once, or by several readers: these are copied, so that
        every reader has its own. None: all of them.
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
        kind = self._kinds[name]
        if set(content) != set(kind.parts) or not isinstance(number, int):
            raise ValueError(f"this archive holds a {name} that is not complete")
        if number in self._made:
            known, made = self._made[number]
            if known != name:
                raise ValueError("this archive holds one thing as two kinds")
            return made
        parts = {part: self.read(value, depth + 1) for part, value in content.items()}
        made = kind.make(**parts)
        self._made[number] = (name, made)
        return made


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
    saved_as = getattr(thing, "STATE_KEYS", {})
    keys = {name: saved_as.get(name, name) for name in state_names(thing)}
    if not isinstance(written, dict) or set(written) != set(keys.values()):
        raise ValueError(f"this archive does not hold the state of a {type(thing).__name__}")
    for name, key in keys.items():
        old = getattr(thing, name)
        if state_names(old):
            read_state(old, written[key], reader)
            continue
        new = reader.read(written[key])
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


__all__ = ["Archive", "read_archive", "write_archive"]

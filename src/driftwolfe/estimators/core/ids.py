"""Ids of users, items, classes and features: checked, numbered, read from pairs and frames, written to files."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice, repeat
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from driftwolfe.points import checks
from driftwolfe.state import Field
from driftwolfe.storage import require


class Ids:
    """Keys numbered 0, 1, 2, ... in order of appearance."""

    SAVED = Field(np.uint8, (None,))

    def __init__(self, names: Iterable[Hashable] = ()) -> None:
        self.numbers: dict[Any, int] = {}
        self.names: list[Any] = []
        self.add(names)

    def __deepcopy__(self, memo: Any) -> Self:
        copied = copy.copy(self)
        copied.numbers, copied.names = self.numbers.copy(), self.names.copy()  # keys never change
        return copied

    def __len__(self) -> int:
        return len(self.names)

    def saved(self) -> NDArray[np.uint8]:
        """Return what a file has of them."""
        return encode_keys(self.names)

    @classmethod
    def read(cls, encoded: NDArray[np.uint8]) -> Self:
        """Return the keys of a file, if no two are equal."""
        keys = decode_keys(encoded)
        require(len(keys) == len(set(keys)) and all(key == key for key in keys), "keys")
        return cls(keys)

    def find(self, keys: Collection[Hashable]) -> NDArray[np.int64]:
        """Return the number of each key; -1 for an unknown one."""
        return np.fromiter(map(self.numbers.get, keys, repeat(-1)), np.int64, len(keys))

    def number(self, keys: Sequence[Hashable]) -> tuple[NDArray[np.int64], list[Any]]:
        """Return the number that each key has or will have, and a list of the new keys."""
        numbers = self.find(keys)
        new: dict[Any, int] = {}
        for place in np.flatnonzero(numbers < 0).tolist():
            numbers[place] = new.setdefault(keys[place], len(self.names) + len(new))
        return numbers, list(new)

    def add(self, keys: Iterable[Hashable]) -> None:
        """Give the next numbers to keys that have none."""
        for key in keys:
            if self.numbers.setdefault(key, len(self.names)) == len(self.names):
                self.names.append(key)

    def remove(self, number: int) -> None:
        """Remove a key; the numbers of later ones fall by 1."""
        del self.numbers[self.names.pop(number)]
        for later, key in enumerate(self.names[number:], start=number):
            self.numbers[key] = later


#: How keys of each type are written in JSON: as a tag and a text. Numbers are in base 16, so exact.
_KEYS: dict[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]] = {
    "text": (str, str, str),
    "bool": (bool, str, {"True": True, "False": False}.__getitem__),
    "int": (int, hex, lambda text: int(text, 16)),
    "float": (float, float.hex, float.fromhex),
    "bytes": (bytes, bytes.hex, bytes.fromhex),
    "none": (type(None), lambda _: "", lambda _: None),
}
_TAGS = {kind: tag for tag, (kind, _, _) in _KEYS.items()}
#: How deep tuples in tuples may be, and how many parts one key may have.
DEEPEST_KEY, LARGEST_KEY = 8, 10_000
#: Keys that are encoded at a time: other threads wait.
_CHUNK = 2_000
#: Types of keys that hold no others and are equal to themselves.
SIMPLE = {str, int, bool, bytes, type(None)}
_HOLDERS = (tuple, frozenset)


def check_keys(keys: Collection[Any], what: str) -> None:
    """Raise ValueError for a key that is NaN, holds NaN, or takes too long to hash or compare."""
    if SIMPLE.issuperset(map(type, keys)):
        return
    parts = [key for key in keys if not isinstance(key, _HOLDERS)]
    for key in keys:
        if isinstance(key, _HOLDERS):
            held = list(islice(_parts(key, what), LARGEST_KEY + 1))
            if len(held) > LARGEST_KEY:
                raise ValueError(f"{what} must hold at most {LARGEST_KEY:,} parts")
            parts += held
    with suppress(TypeError):  # not hashable, which the caller says in its own words
        parts = list(set(parts))
    if any(map(is_missing, parts)):
        raise ValueError(
            f"{what} is missing (NaN) or holds NaN; drop such rows or give them a name"
        )


def check_labels(labels: Any, what: str) -> None:
    """Refuse labels that are NaN or hold NaN; NumPy would make text of it beside texts."""
    kind = getattr(getattr(labels, "dtype", None), "kind", "O")
    if kind in "fO" and isinstance(labels, Iterable) and getattr(labels, "ndim", 1) > 0:
        check_keys(list(labels), what)


def _parts(key: Any, what: str, depth: int = 1) -> Iterator[Any]:
    """Yield all that a tuple or frozenset holds, those in it and what they hold too."""
    if depth > DEEPEST_KEY:
        raise ValueError(f"{what} must not hold tuples more than {DEEPEST_KEY} deep")
    for part in key:
        yield part
        if isinstance(part, _HOLDERS):
            yield from _parts(part, what, depth + 1)


def is_missing(key: Any) -> bool:
    """Whether something stands for what is not there: NaN and its like; not None, which is a key."""
    try:
        return bool(key != key)
    except (TypeError, ArithmeticError):  # the NA of pandas is neither equal nor different
        return True
    except ValueError:  # an array, which is no key
        return False


def encode_keys(keys: Iterable[Any]) -> NDArray[np.uint8]:
    """Return keys as an array of bytes; TypeError for types that are not in the table above."""
    left, parts = iter(keys), []
    try:
        # Some at a time: as lists they take ten times the memory.
        while part := list(islice(left, _CHUNK)):
            if set(map(type, part)) == {str}:  # nearly always: the same, in a sixth of the time
                quoted = map(json.encoder.encode_basestring_ascii, part)
                parts.append('["text",' + '],["text",'.join(quoted) + "]")
            else:
                encoded = [_encoded(key) for key in part]
                parts.append(json.dumps(encoded, separators=(",", ":"))[1:-1])
    except RecursionError:
        raise ValueError(f"a key must not hold tuples more than {DEEPEST_KEY} deep") from None
    return np.frombuffer(f"[{','.join(parts)}]".encode("ascii"), dtype=np.uint8).copy()


def decode_keys(encoded: NDArray[np.uint8]) -> list[Any]:
    """Return the keys that `encode_keys` took, NumPy's scalars as Python's; ValueError for other bytes."""
    try:
        return [_decoded(item) for item in json.loads(encoded.tobytes())]
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise ValueError("these bytes are not keys written by encode_keys") from error


def plain_key(key: Any) -> Any:
    """Return NumPy's scalars as Python objects, and other keys as they are."""
    return key.item() if isinstance(key, np.generic) else key


def plain_keys(keys: Collection[Any], what: str) -> list[Any]:
    """Return keys that can be found again: checked, hashable, and plain, as NumPy's dates are not."""
    check_keys(keys, what)
    try:
        set(keys)
    except TypeError as error:
        raise TypeError(f"{what} must be hashable: {error}") from None
    return [plain_key(key) for key in keys]


def several(ids: Any, name: str) -> list[Any]:
    """Return ids or classes as a list; refuse a bare one: the letters of a text are no ids."""
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        raise TypeError(f"{name} must be a list, got {ids!r:.80}; for one, give [{ids!r:.80}]")
    return list(ids)


def _encoded(key: Any) -> list[Any]:
    plain = plain_key(key)
    if type(plain) is tuple:
        return ["tuple", [_encoded(part) for part in plain]]
    # The exact type: an enumeration that is also an int would come back as a bare int.
    if type(plain) not in _TAGS:
        raise TypeError(
            "only str, int, float, bool, None, bytes and tuples of these can be saved as keys, "
            f"got {key!r} of type {type(key).__name__}"
        )
    tag = _TAGS[type(plain)]
    return [tag, _KEYS[tag][1](plain)]


def _decoded(item: Any) -> Any:
    tag, content = item
    if tag == "tuple":
        return tuple(_decoded(part) for part in content)
    if not isinstance(content, str):
        raise TypeError("the content of a key is text")
    return _KEYS[tag][2](content)


def is_frame(X: Any) -> bool:
    """Whether X is a data frame, of any library."""
    kinds = "iloc", "__dataframe__", "__arrow_c_stream__"
    return any(hasattr(X, name) for name in kinds) and hasattr(X, "columns")


def frame(X: Any, what: str) -> tuple[Any, Any]:
    """Return a data frame of any library as narwhals sees it, and narwhals."""
    try:
        import narwhals.stable.v2 as narwhals
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "data frames need narwhals; install it with: pip install 'driftwolfe[estimators]'",
            name=error.name,
        ) from error
    try:
        return narwhals.from_native(X, eager_only=True), narwhals
    except TypeError:
        kinds = "a frame of pandas, polars or arrow, in memory"
        raise TypeError(f"{what} must be {kinds}, got {type(X).__name__}") from None
    except narwhals.exceptions.DuplicateError:
        raise ValueError("the frame names a feature twice") from None


def columns(pairs: Any) -> tuple[list[Any], list[Any]]:
    """Return the users and the items of pairs, or raise an error that says what is wrong with them."""
    if checks.has_masked_entries(pairs, depth=1):
        raise ValueError("pairs has masked entries; fill them in (with .filled) or leave them out")
    try:
        if isinstance(pairs, np.ndarray) or is_frame(pairs):
            table = pairs if isinstance(pairs, np.ndarray) else frame(pairs, "pairs")[0]
            if len(table.shape) != 2 or table.shape[1] != 2:
                raise ValueError(
                    f"pairs must have two columns, user and item: shape (n, 2), got {table.shape}"
                )
            users, items = (  # columns of a frame keep their types
                column.tolist() if isinstance(column, np.ndarray) else column.to_list()
                for column in (table[:, 0], table[:, 1])
            )
        elif hasattr(pairs, "tocsr"):  # to iterate over a malformed one reads foreign memory
            raise TypeError
        else:
            rows = list(pairs)
            if any(len(row) != 2 or isinstance(row, str | bytes) for row in rows):
                raise TypeError
            users, items = [row[0] for row in rows], [row[1] for row in rows]
    except (TypeError, KeyError, AttributeError):
        raise ValueError(
            "pairs must be a list of (user, item) pairs, an array, or a frame of pandas, polars or "
            "arrow of two columns"
        ) from None
    return plain_keys(users, "the id of one user"), plain_keys(items, "the id of one item")


def matrix_entries(matrix: Any) -> tuple[list[int], list[int], NDArray[np.float64]]:
    """Return rows, columns and values of the entries of a sparse matrix, row by row."""
    sound = checks.sound_sparse(matrix, "pairs")  # a malformed one reads foreign memory
    if not isinstance(getattr(sound, "data", None), np.ndarray) or len(sound.shape) != 2:
        raise ValueError("pairs must be a sparse matrix of users in rows and items in columns")
    rows = sound.tocsr()
    users = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    return users.tolist(), rows.indices.tolist(), np.asarray(rows.data, np.float64)


def single(pairs: Any) -> Any:
    """Return the pair if there is just one, of ids that need no check; else None. For speed."""
    if type(pairs) is np.ndarray:
        pairs = pairs.tolist() if pairs.shape == (1, 2) else None
    if type(pairs) is list and len(pairs) == 1:
        (pair,) = pairs
        if type(pair) in (tuple, list) and len(pair) == 2:
            return pair if type(pair[0]) in SIMPLE and type(pair[1]) in SIMPLE else None
    return None

"""Keys (labels, names, ids) as arrays of bytes, so that an archive can hold them."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

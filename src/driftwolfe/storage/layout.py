"""The layout of a safetensors file: what it says of its arrays, read before any of them is.

The file begins with the length of a JSON header in 8 bytes. The header has texts under
``__metadata__``, and for every array its type, shape, and place among the bytes that follow.
"""

from __future__ import annotations

import json
import math
import os
from io import FileIO
from typing import Any, NamedTuple

import numpy as np

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

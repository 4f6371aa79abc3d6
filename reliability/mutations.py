"""Mutations of files: of bytes, JSON, TOML and arrays."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np
import safetensors.numpy

from driftwolfe.storage import ENTRY, VERSION, digest, read_archive

#: Placeholders for text that `json.dumps` would not write.
DEEP, LONG, TWICE = "<deep>", "<long>", "<twice>"
#: Creates the canary file if any reader evaluates it.
CODE = "__import__('pathlib').Path('{canary}').touch()"

#: Replacements for values.
VALUES: tuple[Any, ...] = (
    *(None, True, False, [], {}, [[]], [0, 0, 0], [None], {"array": "0"}, {"turned": "0"}),
    *(0, 1, -1, 2, 3, 63, 2**31, 2**53, 2**62, 2**63, -(2**63), 10**6, 10**9, 10**12, 10**400),
    *(0.0, -0.5, 0.5, 1e-320, 1e-9, 1e9, 1e300, -1e300, math.nan, math.inf, -math.inf),
    *("", "0", "nan", "auto", "x" * 10_000, "../../../{canary}", "/etc/passwd", "a\0b", CODE),
    *({"list": []}, {"tuple": []}, {"float": "nan"}, {"float": "inf"}, {"array": "no such"}),
    *({"list": [0] * 1000}, {"tuple": [10**12, 10**12]}, DEEP, LONG),
)
#: Replacements for entries of arrays, where their type has them.
ENTRIES = (0, 1, -1, 2, 127, 10**9, 10**12, 2**62, 1e-320, 1e-9, 1e9, 1e200, 1e308, np.nan, np.inf)
TYPES = ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u1", "?")


def mutated_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    """The content cut off, with bits flipped, or with parts moved or random."""
    size = len(content)
    cut, other = (int(rng.integers(size + 1)) for _ in range(2))
    match rng.integers(6):
        case 0:
            return content[:cut]
        case 1:
            flipped = bytearray(content)
            for place in rng.integers(size, size=rng.integers(1, 9)):
                flipped[place] ^= 1 << int(rng.integers(8))
            return bytes(flipped)
        case 2:
            return content[:cut] + rng.bytes(int(rng.integers(1, 64))) + content[cut:]
        case 3:
            return content[:cut] + content[other:]
        case 4:
            length = int(rng.integers(1, 32))
            return content[:cut] + rng.bytes(length) + content[cut + length :]
        case _:
            return rng.bytes(int(rng.integers(200)))


# -- JSON ---------------------------------------------------------------------------------------


def mutated_tree(tree: Any, rng: np.random.Generator) -> Any:
    """A copy of plain data with one value replaced, removed, repeated, copied or renamed."""
    tree = json.loads(json.dumps(tree))
    places = list(_places(tree))
    holder, key = places[rng.integers(len(places))]
    other_holder, other_key = places[rng.integers(len(places))]
    match rng.integers(12):
        case 0:
            del holder[key]
        case 1:
            holder[key] = json.loads(json.dumps(other_holder[other_key]))
        case 2 if isinstance(holder, dict):
            holder[f"{key}s"] = holder.pop(key)
        case 2 | 3 if isinstance(holder[key], list):
            holder[key] = holder[key] * int(rng.choice([2, 1000]))
        case 3 | 4 | 5 if _is_number(holder[key]):
            holder[key] = _near(holder[key], rng)
        case 6 if isinstance(holder, dict):
            holder[f"{TWICE}{key}"] = VALUES[rng.integers(len(VALUES))]
        case _:
            holder[key] = VALUES[rng.integers(len(VALUES))]
    return tree


def json_text(tree: Any, canary: str) -> str:
    """JSON text, including repeated names and NaN."""
    text = json.dumps(tree).replace("{canary}", canary).replace(TWICE, "")
    text = text.replace(f'"{DEEP}"', "[" * 3000 + "]" * 3000)
    return text.replace(f'"{LONG}"', "9" * 5000)


def _places(tree: Any) -> Any:
    """All values inside, as pairs of container and key."""
    keys = tree.keys() if isinstance(tree, dict) else range(len(tree))
    for key in list(keys):
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from _places(tree[key])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _near(number: float, rng: np.random.Generator) -> float:
    """A plausible, wrong number."""
    near = (number + 1, number - 1, -number, 2 * number, number * 10**6, number + 0.5)
    return near[rng.integers(len(near))]


# -- TOML ---------------------------------------------------------------------------------------

_TOML_VALUES = (
    *[
        "0",
        "-1",
        "1e308",
        "nan",
        "inf",
        "true",
        '""',
        "[]",
        "{}",
        "[[1]]",
        "10000000000000",
        "1e12",
    ],
    *("1979-05-27", '"../../{canary}"', f'"{CODE}"', "[" * 3000 + "]" * 3000, "9" * 5000),
    *('["a", 1, true]', "{ name = 1 }", '"""', "0x7fffffffffffffff", "[1,2,3,4,5,6,7,8,9] "),
)


def mutated_toml(text: str, rng: np.random.Generator, canary: str) -> str:
    """TOML with one value, name or line replaced."""
    lines = text.splitlines()
    line = int(rng.integers(len(lines)))
    values = list(re.finditer(r'"[^"]*"|\d[\d.]*|\[[^\]]*\]|\b[a-z]+\b', lines[line]))
    match rng.integers(4):
        case 0:
            lines.insert(line, lines[rng.integers(len(lines))])
        case 1:
            del lines[line]
        case _ if values:
            found = values[rng.integers(len(values))]
            value = _TOML_VALUES[rng.integers(len(_TOML_VALUES))].replace("{canary}", canary)
            lines[line] = lines[line][: found.start()] + value + lines[line][found.end() :]
    return "\n".join(lines)


# -- archives -----------------------------------------------------------------------------------


def mutated_archive(path: Any, rng: np.random.Generator, canary: str) -> bytes:
    """An archive with a valid checksum and one to three faults."""
    if rng.random() < 0.1:
        return mutated_container(path.read_bytes(), rng)
    archive = read_archive(path)
    header = {"version": VERSION, "kind": archive.kind, "settings": archive.settings}
    arrays = dict(archive.arrays)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if rng.random() < 0.5 or not arrays:
            header = mutated_tree(header, rng)
        else:
            mutate_arrays(arrays, rng)
    return crafted(json_text(header, canary), arrays)


def crafted(text: str, arrays: dict[str, Any]) -> bytes:
    """An archive of any content with a valid checksum."""
    held = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return safetensors.numpy.save(held, {ENTRY: text, "sha256": digest(text, held)})


def mutated_container(content: bytes, rng: np.random.Generator) -> bytes:
    """An archive with a fault in its list of arrays, types, shapes and offsets."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    arrays = {name: each for name, each in header.items() if name != "__metadata__"}
    names = sorted(arrays)
    if rng.random() < 0.3 and names:
        arrays[names[rng.integers(len(names))]]["dtype"] = rng.choice(
            ["BF16", "F16", "F8_E5M2", "F8_E4M3", "F4", "C64", "I64", "U64", "BOOL", "O", "f8"]
        )
    elif names:
        arrays = mutated_tree(arrays, rng)
    text = json_text(arrays | {"__metadata__": header["__metadata__"]}, "").encode()
    length = len(text) if rng.random() < 0.9 else int(rng.choice([0, 2**40, 2**63, len(content)]))
    return length.to_bytes(8, "little") + text + content[8 + size :]


def mutate_arrays(arrays: dict[str, Any], rng: np.random.Generator) -> None:
    """Put one fault into named arrays; half of the time only into numbers."""
    names = sorted(arrays)
    name = names[rng.integers(len(names))]
    array = np.array(arrays[name])
    if rng.random() < 0.5:
        arrays[name] = _other_numbers(array, rng)
        return
    match rng.integers(9):
        case 0:
            del arrays[name]
        case 1:
            arrays[rng.choice([f"{name}x", "../{name}", "", "0", "a" * 1000])] = arrays.pop(name)
        case 2:
            arrays[name] = np.array(arrays[names[rng.integers(len(names))]])
        case 3:
            with np.errstate(all="ignore"):
                arrays[name] = array.astype(TYPES[rng.integers(len(TYPES))])
        case 4:
            arrays[name] = array.T if array.ndim > 1 else array[:, None]
        case 5:
            arrays[name] = array.ravel() if array.ndim != 1 else array.reshape(1, -1)
        case 6:
            arrays[name] = array[: rng.integers(len(array) + 1)] if array.ndim else array[None]
        case 7:
            arrays[name] = np.concatenate([array, array]) if array.ndim else array[None]
        case 8:
            arrays[name] = np.zeros(rng.integers(4, size=rng.integers(4)), array.dtype)


def _other_numbers(array: Any, rng: np.random.Generator) -> Any:
    """An array of the same type and shape with other numbers."""
    if not array.size or array.dtype.kind == "b":
        return array
    match rng.integers(4):
        case 0:
            return np.full_like(array, _entry(array.dtype, rng))
        case 1:
            return rng.permutation(array.ravel()).reshape(array.shape)
        case 2:
            factor = rng.choice([-1.0, 0.0, 0.5, 2.0, 1e-6, 1e6, 1e150, 1e300])
            with np.errstate(all="ignore"):
                return (array * factor).astype(array.dtype)
        case _:
            changed = array.copy()
            changed.flat[rng.integers(array.size)] = _entry(array.dtype, rng)
            return changed


def _entry(kind: Any, rng: np.random.Generator) -> Any:
    """A hostile number that fits the type."""
    value = ENTRIES[rng.integers(len(ENTRIES))]
    if np.dtype(kind).kind == "f":
        return value
    if np.dtype(kind).kind == "b":
        return bool(value > 0)
    limits = np.iinfo(kind)
    return int(min(max(value, limits.min), limits.max)) if math.isfinite(value) else 0

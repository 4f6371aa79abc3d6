"""Learners in files: what is written, and how it is read back."""

from __future__ import annotations

import inspect
import math
import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy

from driftwolfe import domains, learners
from driftwolfe.domains import Domain
from driftwolfe.ensemble.descent import GradientSum
from driftwolfe.ensemble.leaders import Leader
from driftwolfe.ensemble.list import Job
from driftwolfe.learners.base import Learner
from driftwolfe.oracles.frank_wolfe import Memory
from driftwolfe.points import checks
from driftwolfe.points.access import reads
from driftwolfe.points.devices import HOST, Device, device_named
from driftwolfe.points.factor_buffer import FactorBuffer
from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.product import ProductPoint
from driftwolfe.storage import (
    Archive,
    Header,
    Kind,
    TreeReader,
    TreeWriter,
    array_names,
    enough_memory,
    read_archive,
    read_state,
    require,
    shared_names,
    write_archive,
    write_state,
)

#: Entries of matrices have squares, and these have sums.
LARGEST_FACTOR = 1e152


class Mover:
    """Brings arrays that were read from a file to a device: what was one array is one there too."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._moved: dict[int, tuple[Any, Any]] = {}

    def __call__(self, array: Any) -> Any:
        """Return the array, there."""
        if self._device is HOST:
            return array
        if id(array) not in self._moved:
            self._moved[id(array)] = array, self._device.put(array)
        return self._moved[id(array)][1]

    def stored(self, sparse: Any) -> Any:
        """Return the sparse matrix, there."""
        if sparse is None or self._device is HOST:
            return sparse
        return self._device.canonical(sparse, sparse.shape)


def point_kinds(move: Mover) -> dict[str, Kind]:
    """The points that are not arrays, and what they are made of; once read, they are moved."""

    def factored(U: Any, s: Any, V: Any, sparse: Any, orthonormal: Any) -> FactoredMatrix:
        _check_factored(U, s, V, sparse, orthonormal)
        return FactoredMatrix._of(move(U), s, move(V), move.stored(sparse), orthonormal)

    def shelf(U: Any, V: Any, used: Any) -> FactorBuffer:
        _check_shelf(U, V, used)
        return FactorBuffer(move(U), move(V), used)

    return {
        "sparse": Kind(scipy.sparse.csr_array, ("shape", "indptr", "indices", "data"), _sparse),
        "factored": Kind(FactoredMatrix, ("U", "s", "V", "sparse", "orthonormal"), factored),
        "product": Kind(ProductPoint, ("parts",), _product),
        "shelf": Kind(FactorBuffer, ("U", "V", "used"), shelf),
    }


def is_point(value: Any) -> bool:
    """Whether a value that was read may be a point: numbers that are all finite."""
    if isinstance(value, ProductPoint):
        return all(map(is_point, value.parts))
    if isinstance(value, FactoredMatrix):
        return True
    return isinstance(value, np.ndarray) and value.dtype == np.float64 and _finite(value)


def _finite(*arrays: Any) -> bool:
    return all(np.isfinite(array).all() for array in arrays)


def _sparse(shape: Any, indptr: Any, indices: Any, data: Any) -> Any:
    whole = all(
        isinstance(part, np.ndarray) and part.dtype == np.int32 for part in (indptr, indices)
    )
    numbers = isinstance(data, np.ndarray) and data.dtype == np.float64 and _finite(data)
    if not (whole and numbers and _in_range(data)):
        raise ValueError("this archive holds a sparse matrix that is none")
    sizes = isinstance(shape, tuple) and len(shape) == 2 and all(type(n) is int for n in shape)
    if not (sizes and min(shape) >= 0 and max(shape) < 1 << 31 and indptr.size == shape[0] + 1):
        raise ValueError("this archive holds a sparse matrix that is none")
    try:
        stored = scipy.sparse.csr_array((data, indices, indptr), shape=shape)
        stored.check_format(full_check=True)
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        raise ValueError("this archive holds a sparse matrix that is none") from error
    if not stored.has_canonical_format:
        raise ValueError("this archive holds a sparse matrix that is none")
    return stored


def _check_factored(U: Any, s: Any, V: Any, sparse: Any, orthonormal: Any) -> None:
    arrays = all(isinstance(part, np.ndarray) and part.dtype == np.float64 for part in (U, s, V))
    fits = arrays and U.ndim == V.ndim == 2 and s.shape == (U.shape[1],) == (V.shape[1],)
    if not (fits and _finite(U, s, V) and isinstance(orthonormal, bool)):
        raise ValueError("this archive holds a factored matrix whose parts do not fit together")
    if not _in_range(U, s, V):
        raise ValueError("this archive holds a factored matrix beyond the range of numbers")
    stored = sparse is None or isinstance(sparse, scipy.sparse.csr_array)
    if not stored or (sparse is not None and sparse.shape != (U.shape[0], V.shape[0])):
        raise ValueError("this archive holds a factored matrix whose parts do not fit together")
    # Norms are read off s where the factors are orthonormal: a lie would make any point feasible.
    if orthonormal and not (_orthonormal(U) and _orthonormal(V)):
        raise ValueError("this archive holds orthonormal factors that are not orthonormal")


def _in_range(*factors: Any) -> bool:
    """Whether products of entries, one of each, stay far below what is infinite."""
    sizes = [float(np.abs(factor).max(initial=0.0)) for factor in factors]
    return max(sizes) <= LARGEST_FACTOR and math.prod(sizes) <= LARGEST_FACTOR


def _orthonormal(factor: Any) -> bool:
    if factor.size and np.abs(factor).max() > 2.0:  # whose squares might leave the range
        return False
    return np.allclose(factor.T @ factor, np.eye(factor.shape[1]), atol=1e-6)


def _product(parts: Any) -> ProductPoint:
    if not (isinstance(parts, tuple) and parts and all(map(is_point, parts))):
        raise ValueError("this archive holds a product of what are no points")
    return ProductPoint(parts)


def _check_shelf(U: Any, V: Any, used: Any) -> None:
    arrays = all(isinstance(part, np.ndarray) and part.dtype == np.float64 for part in (U, V))
    fits = arrays and U.ndim == V.ndim == 2 and U.shape[1] == V.shape[1]
    if not (fits and _finite(U, V) and type(used) is int and 0 <= used <= U.shape[1]):
        raise ValueError("this archive holds a shelf whose parts do not fit together")


def ensemble_kinds(device: Device = HOST) -> dict[str, Kind]:
    """Points, and what experts keep beside them; what is read goes to that device."""
    move = Mover(device)

    def gradient_sum(rows: Any, cols: Any, values: Any, rest: Any) -> GradientSum:
        _check_gradient_sum(rows, cols, values, rest)
        rows, cols, values = ([move(each) for each in part] for part in (rows, cols, values))
        return GradientSum(rows, cols, values, rest)

    sums = Kind(GradientSum, ("rows", "cols", "values", "rest"), gradient_sum)
    leader = ("epoch", "x", "anchor", "gradients", "rounds", "eta", "memory")
    return point_kinds(move) | {
        "gradient sum": sums,
        "job": Kind(Job, Job._fields, _job),
        "leader": Kind(Leader, leader, _leader),
        "memory": Kind(Memory, Memory._fields, _memory),
    }


def _check_gradient_sum(rows: Any, cols: Any, values: Any, rest: Any) -> None:
    kinds = ((rows, np.int64), (cols, np.int64), (values, np.float64))
    lists = all(
        isinstance(part, list)
        and all(isinstance(each, np.ndarray) and each.dtype == kind for each in part)
        for part, kind in kinds
    )
    require(lists and (rest is None or is_point(rest)), "sums of gradients")
    sizes = [[each.shape for each in part] for part, _ in kinds]
    require(sizes[0] == sizes[1] == sizes[2], "sums of gradients")
    require(all(len(size) == 1 for size in sizes[0]), "sums of gradients")
    require(all(map(is_point, values)), "sums of gradients")


def _job(x: Any, y: Any, calls: Any, running: Any) -> Job:
    fits = is_point(x) and is_point(y) and type(calls) is int and type(running) is bool
    require(fits and calls >= 0, "projections under way")
    return Job(x, y, calls, running)


def _leader(
    epoch: Any, x: Any, anchor: Any, gradients: Any, rounds: Any, eta: Any, memory: Any
) -> Leader:
    numbers = type(epoch) is int and type(rounds) is int and 0 <= rounds < epoch
    points = is_point(x) and is_point(anchor) and (gradients is None or is_point(gradients))
    require(numbers and points and type(eta) is float and type(memory) is Memory, "experts")
    require(math.isfinite(eta), "experts")
    return Leader(epoch, x, anchor, gradients, rounds, eta, memory)


def _memory(scalars: Any, hint: Any, shelf: Any, length: Any) -> Memory:
    three = scalars is None or (isinstance(scalars, tuple) and len(scalars) == 3)
    floats = [*(scalars or ()), length, *(() if hint is None else (hint,))] if three else [None]
    require(all(type(each) is float and math.isfinite(each) for each in floats), "memories")
    require(shelf is None or type(shelf) is FactorBuffer, "memories")
    return Memory(scalars, hint, shelf, length)


#: The kind of files that hold learners which are no part of the library; settings name the class.
OWN = "Learner"
#: Sets within sets.
DEEPEST_SET = 8
#: Numbers that the set of a learner of one's own may need: its state may hold no point.
SMALL = 1 << 16
#: Numbers that some sets may need beyond what the file holds: 128 MiB.
ALLOWANCE = 1 << 24


def save_learner(learner: Learner, path: str | os.PathLike[str]) -> None:
    """Write a learner to a file."""
    writer, name = TreeWriter(ensemble_kinds()), type(learner).__name__
    settings = learner_settings(learner, writer)
    if is_own(type(learner)):
        write_archive(path, OWN, {**settings, "class": name}, writer.arrays)
    else:
        write_archive(path, name, settings, writer.arrays)


def is_own(cls: type[Learner]) -> bool:
    """Whether a class is no part of the library, whatever its name is."""
    return cls is not getattr(learners, cls.__name__, None)


def held_class(header: Header) -> str:
    """Return the name of the learner's class in a file."""
    return str(header.settings.get("class") if header.kind == OWN else header.kind)[:40]


def load_as(
    cls: type[Learner], path: str | os.PathLike[str], domain: Domain | None, device: str | None
) -> Learner:
    """Read a learner of exactly this class, which may be a user's own."""

    def find(header: Header) -> type[Learner]:
        if held_class(header) != cls.__name__ or (header.kind == OWN) != is_own(cls):
            raise ValueError(f"{path} holds a {held_class(header)}, not this {cls.__name__}")
        return cls

    with enough_memory(path):
        return load_learner(path, find, domain, device)


@reads
def restored(learner: Learner, archive: Archive) -> Learner:
    """Return a learner made as the given one, in the state that an archive holds."""
    writer = TreeWriter(ensemble_kinds())
    made, held = learner_settings(learner, writer), archive.settings
    if held.get("learner") != type(learner).__name__:
        raise ValueError(f"it holds a {held.get('learner')}, not a {type(learner).__name__}")
    for name, what in (("domain", "another set"), ("arguments", "other arguments")):
        names = array_names(made[name])
        pairs = [(writer.arrays[each], archive.arrays.get(each)) for each in names]
        if made[name] != held.get(name) or not all(_equal(*pair) for pair in pairs):
            raise ValueError(f"its {type(learner).__name__} was made with {what}")
    copy = learner.clone()
    read_state(
        copy,
        _section(archive.settings, "state"),
        TreeReader(
            ensemble_kinds(learner.domain.device), archive.arrays, shared_names(archive.settings)
        ),
    )
    return copy


def load_learner(
    path: str | os.PathLike[str],
    find: Callable[[Header], type[Learner]],
    domain: Domain | None = None,
    device: str | None = None,
) -> Learner:
    """Read a learner; `find` says of which class, and `domain` is needed where the file does not have it."""

    def check(header: Header) -> set[str]:
        find(header)
        needed = needed_arrays(header)
        if domain is None and header.settings.get("domain") is None:
            raise ValueError(
                f"the set of {path} is one of your own and is not in the file: make it anew, and load "
                "with driftwolfe.load(path, domain=...)"
            )
        return needed

    archive = read_archive(path, check)
    cls = find(Header(archive.kind, archive.settings, {}))
    shared = shared_names(archive.settings)
    reader = TreeReader(ensemble_kinds(), archive.arrays, shared)
    arguments = _section(archive.settings, "arguments")
    given = {name: reader.read(value) for name, value in arguments.items()}
    if domain is not None and device is not None:
        raise ValueError("give domain or device, not both: a set knows where its points live")
    found = domain if domain is not None else _domain(archive, reader, device)
    if device not in (None, "auto") and _device(found) is not device_named(device):
        raise ValueError(
            f"{path} holds a {cls.__name__} on a {type(found).__name__}, which is for the cpu only; "
            "load it without device"
        )
    try:
        learner = cls(found, **given)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ValueError(
            f"{path} holds arguments that {cls.__name__} does not take: {_line(error)}"
        ) from error
    there = TreeReader(ensemble_kinds(found.device), archive.arrays, shared)
    read_state(learner, _section(archive.settings, "state"), there)
    return learner


def needed_arrays(header: Header) -> set[str]:
    """Return the names of the arrays that a learner in a file is made of, or refuse it unread."""
    for section in ("arguments", "state"):
        _section(header.settings, section)
    names = set(array_names(header.settings))
    if not names <= header.described.keys():
        raise ValueError("this archive speaks of arrays that it does not hold")
    return names


def learner_settings(learner: Learner, writer: TreeWriter) -> dict[str, Any]:
    """Return what a learner was made from, and its state, as JSON."""
    require_named_state(learner)
    given = {
        name: value
        for name, value in learner._arguments.items()
        if name != "domain" and value is not learner.domain
    }
    return {
        "domain": _written_domain(learner.domain, writer),
        "device": "auto" if learner.domain.stack_chosen else _device(learner.domain).name,
        "arguments": {name: _written(learner, name, given[name], writer) for name in given},
        "state": write_state(learner, writer),
    }


def _written(learner: Learner, name: str, value: Any, writer: TreeWriter) -> Any:
    try:
        return writer.write(value)
    except TypeError as error:
        raise TypeError(
            f"this {type(learner).__name__} was made with {name}={_line(repr(value))[:60]}, and {error}"
        ) from error


def _device(domain: Domain) -> Device:
    """Where the set's points live, or, if that is the host, where ensembles keep them."""
    return domain.stack_device if domain.device is HOST else domain.device


def require_named_state(learner: Learner) -> None:
    """Refuse a learner whose class does not say what its state is: it would go on with half of it."""
    cls = type(learner)
    if "STATE" not in cls.__dict__ and not cls.__module__.startswith("driftwolfe."):
        raise TypeError(
            f"{cls.__name__} does not say what its state is: list the names of the attributes that "
            "change in STATE, an empty tuple if there are none"
        )


def _written_domain(domain: Domain, writer: TreeWriter) -> Any:
    """A set as its name and arguments; None for one that cannot be written."""
    if type(domain) is not getattr(domains, type(domain).__name__, None):
        return None
    try:
        given = domain.arguments().items()
        written = {name: _written_argument(value, writer) for name, value in given}
    except (NotImplementedError, TypeError):  # functions; vertices that are no plain data
        return None
    nested = [each for value in written.values() for each in _nested(value)]
    return None if None in nested else {"kind": type(domain).__name__, "arguments": written}


def _written_argument(value: Any, writer: TreeWriter) -> Any:
    if isinstance(value, Domain):
        return {"set": _written_domain(value, writer)}
    if isinstance(value, tuple) and value and isinstance(value[0], Domain):
        return {"sets": [_written_domain(each, writer) for each in value]}
    return writer.write(value)


def _domain(archive: Archive, reader: TreeReader, device: str | None) -> Domain:
    written = archive.settings["domain"]
    held = sum(array.size for array in archive.arrays.values())
    room = _Room(held + (SMALL if archive.kind == OWN else 0))
    place = _place(archive.settings.get("device", "cpu")) if device is None else device
    return _read_domain(written, reader, room, place)


def _place(saved: Any) -> str:
    """The device that a learner was on, or the host, with a warning, where that is not here."""
    if not isinstance(saved, str):
        raise ValueError("this archive names no device")
    try:
        return saved if saved == "auto" else device_named(saved).name
    except ValueError as error:
        warnings.warn(f"loaded on the cpu: {_line(error)}", stacklevel=6)
        return "cpu"


class _Room:
    """Numbers that sets may still ask for: a point of theirs is in the file, so no more than it holds.

    Nothing is made of a set before it is known to fit.
    """

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, kind: str, arguments: Mapping[str, Any]) -> None:
        """Take what a set of that kind needs, or say that it is too large."""
        names = [name for name in ("n", "shape", "n_vertices") if name in arguments]
        sizes = [size for name in names for size in checks.shape(arguments[name])] or [0]
        if kind == "SpanningTreePolytope":  # equations between vertices, which the file has not
            needed = math.prod(sizes) ** 2 - ALLOWANCE
        elif arguments.get("representation") == "factored":  # factors may have no columns yet
            needed = sum(sizes) - ALLOWANCE
        else:
            square = kind in ("BirkhoffPolytope", "Spectrahedron")
            needed = math.prod(sizes) ** (2 if square else 1)
        self.left -= max(0, needed)
        if self.left < 0:
            raise ValueError(
                "this archive holds a set with larger points than any in it: if it is right, make the "
                "set anew, and load with driftwolfe.load(path, domain=...)"
            )


def _read_domain(
    written: Any, reader: TreeReader, room: _Room, device: str, depth: int = 0
) -> Domain:
    known = isinstance(written, dict) and set(written) == {"kind", "arguments"}
    if not known or depth > DEEPEST_SET:
        raise ValueError("this archive holds a set that is none")
    kind = getattr(domains, str(written["kind"]), None)
    if not (isinstance(kind, type) and issubclass(kind, Domain)) or kind is Domain:
        raise ValueError(
            f"this archive holds a set of an unknown kind, {str(written['kind'])[:40]!r}"
        )
    given: dict[str, Any] = {}
    for name, value in _section(written, "arguments").items():
        nested = [_read_domain(each, reader, room, device, depth + 1) for each in _nested(value)]
        plural = isinstance(value, dict) and "sets" in value
        given[name] = nested if plural else nested[0] if nested else reader.read(value)
    try:
        room.take(kind.__name__, given)
        if "device" in inspect.signature(kind).parameters:
            given["device"] = device
        return kind(**given)
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        raise ValueError(
            f"this archive holds arguments that {kind.__name__} does not take: {_line(error)}"
        ) from error


def _line(error: BaseException | str) -> str:
    """What an error says, in one short line."""
    return " ".join(str(error).split())[:200]


def _nested(value: Any) -> list[Any]:
    """The sets within an argument of a set."""
    if isinstance(value, dict) and set(value) == {"set"}:
        return [value["set"]]
    if isinstance(value, dict) and set(value) == {"sets"} and isinstance(value["sets"], list):
        return value["sets"]
    return []


def _equal(one: Any, other: Any) -> bool:
    return other is not None and one.dtype == other.dtype and np.array_equal(one, other)


def _section(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    section = settings.get(name)
    if not isinstance(section, dict):
        raise ValueError(f"this archive has no {name}")
    return section

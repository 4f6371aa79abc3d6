"""Learners in files: what is written, and how it is read back."""

from __future__ import annotations

import dataclasses
import inspect
import math
import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any, NamedTuple, cast

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe import domains, storage
from driftwolfe.domains import Domain
from driftwolfe.ensemble.descent import GradientSum
from driftwolfe.ensemble.leaders import Leader
from driftwolfe.ensemble.list import Job
from driftwolfe.ensemble.newton import NewtonSums
from driftwolfe.learners.base import Learner
from driftwolfe.learners.tickets import TICKETS, Tickets
from driftwolfe.oracles import Oracle
from driftwolfe.oracles.frank_wolfe import Memory
from driftwolfe.points import checks
from driftwolfe.points.access import reads
from driftwolfe.points.devices import HOST, Device, device_named
from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.ops import POINTS, FactorBuffer, ProductPoint
from driftwolfe.state import PLAIN, Field, Kind, Reader, Writer, array_names, check_fields, declared
from driftwolfe.storage import Archive, PathLike, one_line, refused, require

# -- points, and what experts keep beside them -------------------------------------------------------

#: Entries of matrices have squares, and these have sums.
LARGEST_FACTOR = 1e152
_ENTRIES = partial(Field, np.float64, least=-LARGEST_FACTOR, most=LARGEST_FACTOR)
_SPARSE = {
    "shape": Field(tuple, (2,), items=Field(int, least=0, below=1 << 31)),
    "indptr": Field(np.int32, (None,)),
    "indices": Field(np.int32, ("entries",)),
    "data": _ENTRIES(("entries",)),
}
_FACTORED = {
    "U": _ENTRIES(("m", "k")),
    "s": _ENTRIES(("k",)),
    "V": _ENTRIES(("n", "k")),
    "orthonormal": Field(bool),
}
_PRODUCT = {"parts": Field(tuple, items=Field(POINTS))}
_COLUMNS = Field(np.float64, (None, "k"))
_BUFFER = {"U": _COLUMNS, "V": _COLUMNS, "used": Field(int, least=0)}
_ORACLE = dict.fromkeys((field.name for field in dataclasses.fields(Oracle)), PLAIN)


def ensemble_kinds(device: Device = HOST) -> dict[str, Kind]:
    """How points that are not arrays, and parts of experts, are saved; arrays are read to a device."""
    moved: dict[int, tuple[Any, Any]] = {}

    def move(array: Any) -> Any:
        """Bring an array to the device; what was one array is one there too."""
        if id(array) not in moved:
            moved[id(array)] = array, device.put(array)
        return moved[id(array)][1]

    def sparse_matrix(shape: Any, indptr: Any, indices: Any, data: Any) -> Any:
        with refused("this archive holds a sparse matrix that is none"):
            stored = scipy.sparse.csr_array((data, indices, indptr), shape=shape)
            stored.check_format(full_check=True)
        require(stored.has_canonical_format, "sparse matrices")
        if stored.nnz == data.size:  # the check took views: matrices that shared arrays still do
            stored.indices, stored.data = indices, data
        return stored

    def factored(U: Any, s: Any, V: Any, sparse: Any, orthonormal: bool) -> FactoredMatrix:
        largest = [float(np.abs(factor).max(initial=0.0)) for factor in (U, s, V)]
        require(math.prod(largest) <= LARGEST_FACTOR, "factors beyond the range of numbers")
        if orthonormal:  # norms are read off s: a lie would make any point feasible
            require(max(largest[0], largest[2]) <= 2.0, "orthonormal factors")  # squares overflow
            for factor in (U, V):
                near = np.allclose(factor.T @ factor, np.eye(s.size), atol=1e-6)
                require(near, "orthonormal factors")
        if sparse is not None and device is not HOST:
            sparse = device.canonical(sparse, sparse.shape)
        return FactoredMatrix._of(move(U), s, move(V), sparse, orthonormal)

    def factor_buffer(U: Any, V: Any, used: int) -> FactorBuffer:
        require(used <= U.shape[1], "factors")
        return FactorBuffer(move(U), move(V), used)

    def gradient_sum(rows: Any, cols: Any, values: Any, rest: Any) -> GradientSum:
        sizes = [[each.size for each in part] for part in (rows, cols, values)]
        require(sizes[0] == sizes[1] == sizes[2], "sums of gradients")
        rows, cols, values = ([move(each) for each in part] for part in (rows, cols, values))
        return GradientSum(rows, cols, values, rest)

    def oracle(**given: Any) -> Oracle:
        with refused("this archive holds an oracle that is none"):
            return Oracle(**given)

    csr = scipy.sparse.csr_array
    stored = {"sparse": Field(csr, ("m", "n"), optional=True)}
    return {
        "sparse": Kind(csr, sparse_matrix, _SPARSE),
        "factored": Kind(FactoredMatrix, factored, _FACTORED | stored),
        "product": Kind(ProductPoint, None, _PRODUCT),
        "factor_buffer": Kind(FactorBuffer, factor_buffer, _BUFFER),
        "gradient sum": Kind(GradientSum, gradient_sum),
        "job": Kind(Job),
        "leader": Kind(Leader),
        "memory": Kind(Memory),
        "newton": Kind(NewtonSums),
        "oracle": Kind(Oracle, oracle, _ORACLE),
        "tickets": Kind(Tickets, Tickets.read, TICKETS),
    }


# -- learners --------------------------------------------------------------------------------------

#: The kind of files that hold learners of the user's own; settings name the class.
OWN = "Learner"
#: What every file of a learner says of it; the class and its module if it is of the user's own.
LEARNER = {
    "domain": Field(dict, optional=True),
    "device": Field(str),
    "arguments": Field(dict),
    "state": Field(dict),
    "class": Field(str, optional=True),
    "module": Field(str, optional=True),
}


def save_learner(learner: Learner, path: PathLike) -> None:
    """Write a learner to a file."""
    writer, cls = learner_writer(), type(learner)
    kind = cls.__name__ if _is_part(cls) else OWN
    storage.write_archive(path, kind, learner_settings(learner, writer), writer.arrays)


def learner_settings(learner: Learner, writer: Writer) -> dict[str, Any]:
    """Return the set, the arguments and the state of a learner as JSON."""
    require_declared_state(learner)
    cls, arguments = type(learner), dict[str, Any]()
    own = not _is_part(cls)
    for name, value in _arguments(learner).items():
        try:
            arguments[name] = writer.write(_described(value), f"arguments/{name}")
        except TypeError as error:
            shown = f"{cls.__name__} was made with {name}={one_line(repr(value))[:60]}"
            raise TypeError(f"this {shown}, and {error}") from error
    try:
        domain = writer.write(_described(learner.domain), "set/")
    except (NotImplementedError, TypeError):  # functions, own classes, odd vertices
        domain = None
    return {
        "domain": domain,
        "device": "auto" if learner.domain.stack_chosen else _device(learner.domain).name,
        "arguments": arguments,
        "state": writer.write_part(learner),
        "class": cls.__name__ if own else None,
        "module": cls.__module__ if own else None,
    }


def _arguments(learner: Learner) -> dict[str, Any]:
    """The arguments that a learner was made with, less its set."""
    given = learner._arguments.items()
    held = {name: v for name, v in given if name != "domain" and v is not learner.domain}
    for name, value in held.items():
        if isinstance(value, Oracle) and value == Oracle(value.method):
            held[name] = value.method  # so that both ways to say it are one
    return held


class Described(NamedTuple):
    """What a set, or a learner within another, is in a file."""

    kind: Annotated[str, Field(str)]
    arguments: Annotated[dict[str, Any], Field(dict)]
    module: Annotated[str | None, Field(str, optional=True)]  # of a set of the user's own class


def _described(value: Any) -> Any:
    """A value with sets and learners in it as they are described."""
    if type(value) in (list, tuple):
        return type(value)(map(_described, value))
    if not isinstance(value, Domain | Learner):
        return value
    cls, is_set = type(value), isinstance(value, Domain)
    own = cls is not getattr(domains, cls.__name__, None) if is_set else not _is_part(cls)
    # Inherited, the arguments of a set may not be all.
    if own and (not is_set or _is_part(cls) or "arguments" not in cls.__dict__):
        raise TypeError(f"a {cls.__name__} cannot be written to a file")
    given = value.arguments() if isinstance(value, Domain) else _arguments(value)
    described = {name: _described(each) for name, each in given.items()}
    return Described(cls.__name__, described, cls.__module__ if own else None)


def learner_writer() -> Writer:
    """Return what writes learners."""
    return Writer({**ensemble_kinds(), "made": Kind(Described)})


def require_declared_state(learner: Learner) -> None:
    """Refuse a learner whose class has methods and declares no state: half of it would be lost."""
    for cls in type(learner).__mro__:
        if _is_part(cls) or any(name in declared(cls) for name in inspect.get_annotations(cls)):
            return
        if any(inspect.isfunction(each) for each in vars(cls).values()):
            raise TypeError(
                f"{cls.__name__} does not say what its state is: annotate the attributes that change, as "
                "in `_x: State[Array]`, with State from driftwolfe.state; if none of its own does, "
                "`t: State[int]`, the rounds"
            )


def load_learner(
    path: PathLike, cls: type[Learner] | None, domain: Domain | None, device: str | None
) -> Learner:
    """Read a learner, of exactly that class if one is given, and on that set or device if given."""
    if domain is not None and device is not None:
        raise ValueError("give domain or device, not both: a set knows where its points live")

    def check(archive: Archive) -> None:
        if device is not None:  # whatever the file says
            archive.settings["device"] = device
        check_settings(archive, LEARNER, _held_class(archive, cls, path).__name__)
        if domain is None and archive.settings["domain"] is None:
            raise ValueError(
                f"the set of {path} is one of your own and is not in the file: make it anew, and load "
                "with driftwolfe.load(path, domain=...)"
            )

    with storage.enough_memory(path):
        archive = storage.read_archive(path, check)
        settings, held = archive.settings, _held_class(archive, cls, path)
        place = settings["device"]
        if domain is None and device is None and place != "auto":
            try:
                device_named(place)
            except ValueError as error:
                warnings.warn(f"loaded on the cpu: {one_line(error)}", stacklevel=3)
                place = "cpu"
        maker = _Maker(archive, place)
        reader = Reader({**ensemble_kinds(), "made": Kind(Described, maker)}, archive)
        if domain is None:
            domain = reader.read(settings["domain"])
            require(isinstance(domain, Domain), "sets")
        maker.domain = domain
        if device not in (None, "auto") and _device(domain) is not device_named(device):
            raise ValueError(
                f"{path} holds a {held.__name__} on a {type(domain).__name__}, which is for the cpu "
                "only; load it without device"
            )
        arguments = {name: reader.read(each) for name, each in settings["arguments"].items()}
        learner = maker.learner(held, arguments)
        Reader(ensemble_kinds(domain.device), archive).restore(learner)
        return learner


@reads
def restored(learner: Learner, archive: Archive) -> Learner:
    """Return a learner made as the given one, in the state that an archive holds."""
    writer, name = learner_writer(), type(learner).__name__
    made, held = learner_settings(learner, writer), archive.settings
    if held["learner"] != name:
        raise ValueError(f"it holds a {held['learner'][:40]}, not a {name}")
    for part, what in (("domain", "another set"), ("arguments", "other arguments")):
        names = array_names(made[part])
        pairs = [(writer.arrays[each], archive.arrays.get(each)) for each in names]
        same = all(b is not None and a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)
        if made[part] != held.get(part) or not same:
            raise ValueError(f"its {name} was made with {what}")
    copy = learner.clone()
    Reader(ensemble_kinds(learner.domain.device), archive).restore(copy)
    return copy


def check_settings(archive: Archive, fields: Mapping[str, Field], what: str) -> None:
    """Refuse an archive whose settings are not those, or refer to arrays that it does not hold."""
    check_fields(fields, archive.settings, what)
    if not archive.arrays.keys() >= set(array_names(archive.settings)):
        raise ValueError("this archive refers to arrays that it does not hold")


def _held_class(archive: Archive, cls: type[Learner] | None, path: PathLike) -> type[Learner]:
    """The class of the learner in a file: `cls`, or one that is imported already."""
    own = archive.kind == OWN
    name = str(archive.settings.get("class") if own else archive.kind)[:40]
    if cls is not None:
        if name != cls.__name__ or own == _is_part(cls):
            raise ValueError(f"{path} holds a {name}, not this {cls.__name__}")
        return cls
    if not own:
        return _of_library(name, f"{path} holds")
    if (found := _imported(Learner, name, archive.settings.get("module"))) is None:
        raise ValueError(
            f"{path} holds a {name}, a learner of your own: import the module that defines it first, "
            f"or load it with its class, {name}.load(path)"
        )
    return cast(type[Learner], found)


def _of_library(name: str, holds: str = "this archive holds") -> type[Learner]:
    """The learner of the library with that name."""
    found = (cls for cls in _subclasses(Learner, name) if _is_part(cls))
    cls: type[Learner] = next(found, Learner)
    if inspect.isabstract(cls):
        raise ValueError(f"{holds} a {name[:40]!r}, which is no learner to load")
    return cls


def _imported(base: type, name: str, module: Any) -> type | None:
    """The newest class of the user's own with that name, if it is imported; a file imports nothing."""
    found = [cls for cls in _subclasses(base, name) if not _is_part(cls)]
    return max(found, key=lambda cls: cls.__module__ == module, default=None)


def _subclasses(base: type, name: str) -> Iterator[Any]:
    """The imported classes of that name below one."""
    below: list[type] = base.__subclasses__()
    for cls in below:
        if cls.__name__ == name:
            yield cls
        yield from _subclasses(cls, name)


def _is_part(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == "driftwolfe"


def _device(domain: Domain) -> Device:
    """Where the set's points live, or, if that is the host, where ensembles keep them."""
    return domain.stack_device if domain.device is HOST else domain.device


# -- sets ------------------------------------------------------------------------------------------


#: What arguments that are gone had to be for a file of 0.1 to be resumed: their defaults.
GONE: dict[str, dict[str, Any]] = {
    "OnlineFrankWolfe": {"variant": "optimized"},
    "PAMO": {"accuracy": None},
    "POLD": {"weights": "hedge", "budget_split": "prior"},
    "SOOGD": {"tolerance_scale": 1.0},
    "TraceNormBall": {"lmo_tolerance": 1e-8},
}


def _still_taken(cls: type[Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments less those that are gone and had their default."""
    gone = GONE.get(cls.__name__, {})
    return {k: v for k, v in arguments.items() if k not in gone or v != gone[k]}


class _Maker:
    """Makes what a file describes; no set is larger than what the file holds: it holds points of theirs."""

    def __init__(self, archive: Archive, device: str) -> None:
        self._device = device  # where points are to live
        self.domain: Domain | None = None  # of the learners
        # Numbers that points of all sets may have together.
        self._room = sum(array.size for array in archive.arrays.values())
        if archive.kind == OWN:  # whose state may hold no point
            self._room += 1 << 16

    def __call__(self, kind: str, arguments: Any, module: str | None) -> Domain | Learner:
        """Return a set, or a learner within another."""
        name, cls = kind[:40], getattr(domains, kind, None)
        if module is not None:
            cls = _imported(Domain, kind, module)
            if cls is None:
                raise ValueError(
                    f"this archive holds a {name}, a set of your own: import the module that defines it "
                    "first, or load with driftwolfe.load(path, domain=...)"
                )
        if self.domain is not None and cls is None:
            return self.learner(_of_library(kind), arguments)
        if not (isinstance(cls, type) and issubclass(cls, Domain) and cls is not Domain):
            raise ValueError(f"this archive holds a set of an unknown kind, {name!r}")
        with refused(f"this archive holds arguments that {cls.__name__} does not take"):
            self._take_room(cls.__name__, arguments)
            if "device" in inspect.signature(cls).parameters:
                arguments["device"] = self._device
            return cls(**_still_taken(cls, arguments))

    def learner(self, cls: type[Learner], arguments: dict[str, Any]) -> Learner:
        """Return a learner on the set."""
        what = f"this archive holds arguments that {cls.__name__} does not take"
        with refused(what, "; load it with the version that wrote it, or make the learner anew"):
            return cls(cast(Domain, self.domain), **_still_taken(cls, arguments))

    def _take_room(self, kind: str, arguments: Mapping[str, Any]) -> None:
        """Refuse a set that is too large, before anything is made of it."""
        names = [name for name in ("n", "shape", "n_vertices") if name in arguments]
        sizes = [size for name in names for size in checks.shape(arguments[name])] or [0]
        factored = arguments.get("representation") == "factored"
        # Those of n that need n^2 numbers: matrices, or equations between vertices.
        square = kind in ("BirkhoffPolytope", "Spectrahedron", "SpanningTreePolytope")
        needed = sum(sizes) if factored else math.prod(sizes) ** (2 if square else 1)
        if factored or kind == "SpanningTreePolytope":
            needed -= 1 << 24  # 128 MiB: neither empty factors nor equations are in the file
        self._room -= max(0, needed)
        if self._room < 0:
            raise ValueError(
                "this archive holds a set with larger points than any in it: if it is right, make the "
                "set anew, and load with driftwolfe.load(path, domain=...)"
            )

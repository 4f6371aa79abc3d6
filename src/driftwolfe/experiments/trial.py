"""A trial (a learner, a stream, a seed), and its result as it is stored."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import fields, replace
from functools import lru_cache, partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from driftwolfe import contrib, learners, streams
from driftwolfe.domains import L1Ball
from driftwolfe.learners.base import Learner
from driftwolfe.oracles import Oracle
from driftwolfe.points import checks
from driftwolfe.streams import Stream
from driftwolfe.streams.datasets import RATINGS, ROWS, DataFile


class Source(NamedTuple):
    """Where a stream comes from."""

    make: Callable[..., Stream]  # of seed and rounds, and of a folder where there is a file
    file: DataFile | None = None  # what it is read from; None where it is made up
    order_within_stretches: bool = False  # whether the seed moves no round across a drift


#: The name of something of the user's own: a module and what it holds.
_OWN = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def is_own(name: Any) -> bool:
    """Whether a name is of the form package.module:name. Nothing is imported."""
    return isinstance(name, str) and len(name) < 200 and _OWN.fullmatch(name) is not None


def own(name: str) -> Any:
    """Import what a name of the user's own stands for; only for names that the user gave."""
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as missing:
        raise ValueError(
            f"{name}: there is no module {missing.name}; it must lie beside the file of the sweep, or be "
            "installed"
        ) from missing
    except AttributeError as missing:
        raise ValueError(f"{name}: {missing}") from missing


def _unknown(what: str, given: Any, known: Collection[str], form: str) -> ValueError:
    own = f"package.module:{form} for your own{checks.meant(given, known)}"
    return ValueError(f"unknown {what} {given[:40]!r}; there are {', '.join(known)}, and {own}")


class DataSet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stream by its name, one of `DATA_SETS` or ``package.module:function`` of seed and rounds."""

    name: str
    rounds: int | None = None  # of a shorter version with the same shape of drift; None: all of it

    def __post_init__(self) -> None:
        if self.name not in DATA_SETS and not is_own(self.name):
            raise _unknown("data", self.name, DATA_SETS, "function")
        if self.rounds is not None:
            # A stream is made whole before it is played.
            checks.count(self.rounds, "rounds", most=10_000_000)

    @lru_cache(maxsize=2)  # noqa: B019 (two data sets at most are kept)
    def load(self, seed: int, folder: str | Path | None = None) -> Stream:
        """Return the stream, its order decided by the seed; `folder` holds the real data."""
        options = {"data": folder} if self.source.file else {}
        stream = self.source.make(seed=seed, rounds=self.rounds, **options)
        if not (isinstance(stream, Stream) and stream.domain is not None):
            raise TypeError(f"{self.name} must return a Stream with its domain, got {stream!r}")
        return stream

    @property
    def source(self) -> Source:
        """Where it comes from; a function of the user's own is imported when it is called."""
        if is_own(self.name):
            return Source(lambda **options: own(self.name)(**options))
        return DATA_SETS[self.name]


def _jumping_target(seed: int, rounds: int | None) -> Stream:
    """Squared distance to a point of the L1 ball in 20 dimensions that jumps three times."""
    return streams.synthetic.piecewise_constant(L1Ball(20), rounds or 400, pieces=4, seed=seed)


def _random_drifts(make: Callable[..., Stream], seed: int, **options: Any) -> Stream:
    """Ratings whose sign changes in two random rounds, drawn by the seed, and not with the copies."""
    stream = streams.drift.random_flips(make(copies=(1, 1, 1), seed=seed, **options), 2, seed)
    return _named(stream, "random drifts")


#: Small enough that projections matter: in the ball of radius 100 the decisions of POLA, tuned on order
#: 1000, have trace norms of up to 36.
SMALL_RADIUS = 20.0


def _small_ball(make: Callable[..., Stream], **options: Any) -> Stream:
    """Labelled rows, and a ball that cuts decisions off."""
    return _named(make(radius=SMALL_RADIUS, **options), f"radius {SMALL_RADIUS:g}")


def _named(stream: Stream, variant: str) -> Stream:
    """The stream under its name and that of a variant; that it is a twin comes last."""
    name, bracket, twin = stream.name.partition(" (")
    return replace(stream, name=f"{name}, {variant}{bracket}{twin}")


def _and_twin(name: str, make: Sequence[Any], file: DataFile, **known: bool) -> dict[str, Source]:
    """A data set that is read from a file, and its synthetic twin."""
    real, twin = make
    return {name: Source(real, file, **known), f"{name}-twin": Source(twin, None, **known)}


_RATED = (streams.movielens_100k, streams.movielens_twin)
_LABELLED = (streams.shuttle, streams.shuttle_twin)
_MOVED = [partial(_random_drifts, make) for make in _RATED]
_SMALL = [partial(_small_ball, make) for make in _LABELLED]
DATA_SETS: dict[str, Source] = {
    **_and_twin("movielens-100k", _RATED, RATINGS, order_within_stretches=True),
    **_and_twin("movielens-100k-random-drifts", _MOVED, RATINGS),
    **_and_twin("shuttle", _LABELLED, ROWS),
    **_and_twin("shuttle-small-radius", _SMALL, ROWS),
    "jumping-target": Source(_jumping_target),
}


def keywords_of(learner: type[Learner]) -> frozenset[str]:
    """The keywords of a learner, and those of its oracle, which a trial names like any other."""
    own = frozenset(learner.__signature__.parameters)
    return own | {each.name for each in fields(Oracle)} if "oracle" in own else own


#: The learners that a trial can name.
METHODS: dict[str, type[Learner]] = {
    name: getattr(contrib if name in contrib.__all__ else learners, name)
    for name in sorted({*learners.__all__, *contrib.__all__} - {"Learner"})
}
FORMAT = "driftwolfe result 2"  # of result files

Option = float | int | str | bool | None
T = TypeVar("T")


class Trial(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run: checked, and the same on every machine, under any label."""

    method: str  # name of a learner's class; package.module:Class for one of the user's own
    data: DataSet
    c: float | None = None  # scale of the steps, see `step_options`; None: the learner's default
    options: dict[str, Option] = {}  # further keywords of the learner, and of its `Oracle`
    seed: int = 0  # of the order of the data
    taus: tuple[int, ...] = ()  # lengths of windows whose adaptive regret is measured
    label: str = ""  # name in tables and figures; by default the method's

    def __post_init__(self) -> None:
        if self.method not in list(METHODS) and not is_own(self.method):  # it may not be a text
            raise _unknown("method", self.method, METHODS, "Class")
        if not isinstance(self.data, DataSet):
            raise TypeError(f"data must be a DataSet, got {self.data!r}")
        if not isinstance(self.taus, tuple | list):
            raise TypeError(f"taus must be a list of whole numbers, got {self.taus!r}")
        # Numbers as they are read back from a file, so that 1 and 1.0 make one trial.
        numbers = {
            "c": None if self.c is None else checks.positive(self.c, "c"),
            "seed": checks.count(self.seed, "seed", least=0, most=2**63 - 1),
            "taus": tuple(checks.count(tau, "every one of taus") for tau in self.taus),
        }
        for name, value in numbers.items():
            msgspec.structs.force_setattr(self, name, value)
        for option, chosen in self.options.items():
            if not isinstance(chosen, Option):
                raise TypeError(f"option {option} must be a number, a text, true or false")
            if isinstance(chosen, float) and not math.isfinite(chosen):
                raise ValueError(f"option {option} must be finite, got {chosen!r}")
        if self.method in METHODS:
            self.check_options(keywords_of(METHODS[self.method]))

    def check_options(self, known: Collection[str]) -> None:
        """Refuse options that a learner with these keywords does not take."""
        if self.c is not None and "step_scale" not in known:
            raise ValueError(f"{self.method} has no steps that c could scale; leave c out")
        allowed = sorted(set(known) - {"domain", "horizon", "lipschitz", "step_scale"})
        for option in self.options:
            if option not in allowed:
                there = ", ".join(allowed) or "none"
                hint = checks.meant(option, allowed) or f"; there are {there}"
                raise ValueError(f"{self.method} has no option {option!r}{hint}")

    @property
    def title(self) -> str:
        return self.label or self.method.rpartition(":")[2]

    @property
    def runs_own_code(self) -> bool:
        return is_own(self.method) or is_own(self.data.name)

    @property
    def identity(self) -> str:
        """A digest of all that decides the outcome."""
        return hashlib.sha256(canonical(msgspec.structs.replace(self, label=""))).hexdigest()[:16]

    @property
    def name(self) -> str:
        """A readable name that no other trial has."""
        scale = "" if self.c is None else f"-c{short(self.c)}"
        method = self.method.rpartition(":")[2][:60]
        return f"{method}{scale}-seed{self.seed}-{self.identity}"


def canonical(record: Any) -> bytes:
    """The one JSON text of a record."""
    return msgspec.json.encode(record, order="sorted")


def short(number: float) -> str:
    """A number in as few characters as possible, such as 1e4 or 0.0625."""
    text = f"{number:g}"
    exponent = f"{number:.0e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    return exponent if float(exponent) == number and len(exponent) < len(text) else text


class StoredWeights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Expert weights before the first round (round 0) and after some others."""

    rounds: list[int]
    experts: list[str]  # see `Learner.expert_names`
    values: list[list[float | None]]  # by round, then by expert; None where it was not active


class AdaptiveRegret(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The largest regret over windows of `tau` rounds; it lies between value and value + gap."""

    tau: int
    value: float
    gap: float
    window: tuple[int, int]  # start of the worst one, counted from 0, and the round after its end


class Result(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a trial came to after some numbers of rounds, and the machine it ran on."""

    trial: Trial
    rounds: list[int]  # when curves were read, rising; they are of one length
    loss: list[float]  # cumulative
    seconds: list[float]  # of one thread, on updates: processor time, on a device by the clock
    lmo: list[int]  # oracle calls so far
    projection: list[int]
    gauge: list[int]
    membership: list[int] = []  # membership tests so far; empty for none
    products: list[int] = []  # matrix-vector products so far; empty for none, or not counted
    wall: float  # seconds by the clock, everything included
    drifts: list[int]  # rounds at which the truth changed abruptly
    stream: str  # name of the data
    adaptive: list[AdaptiveRegret] = []
    weights: StoredWeights | None = None  # where the learner has experts
    environment: dict[str, Any]  # the machine and the versions, see `doctor.facts`
    format: str = FORMAT

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise ValueError(f"format must be {FORMAT!r}, got {self.format[:40]!r}")
        optional = (self.membership or self.gauge, self.products or self.gauge)
        calls = (self.lmo, self.projection, self.gauge, *optional)
        lengths = {len(curve) for curve in (self.rounds, self.loss, self.seconds, *calls)}
        if len(lengths) > 1 or not self.rounds:
            raise ValueError("rounds and curves must be of one length, and not empty")
        if not all(a < b for a, b in pairwise((0, *self.rounds))):
            raise ValueError("rounds must rise, and start at 1 or later")
        numbers = [*self.loss, *self.seconds, self.wall]
        for found in self.adaptive:
            numbers += [found.value, found.gap]
        if self.weights is not None:
            rows, width = self.weights.values, len(self.weights.experts)
            if len(rows) != len(self.weights.rounds) or any(len(row) != width for row in rows):
                raise ValueError("weights must have one row per round and one entry per expert")
            numbers += [entry for row in rows for entry in row if entry is not None]
        if not all(map(math.isfinite, numbers)):
            raise ValueError("losses, seconds, weights and adaptive regret must be finite")

    def encode(self) -> bytes:
        """The content of its file."""
        return msgspec.json.format(msgspec.json.encode(self), indent=0) + b"\n"


def decode(content: bytes, kind: type[T], read: Callable[..., T] = msgspec.json.decode) -> T:
    """Read a record of that kind; `ValueError` where the content is not one."""
    try:
        return read(content, type=kind)
    except RecursionError as problem:
        raise ValueError("it is nested too deeply") from problem
    except (msgspec.MsgspecError, ValueError) as problem:
        # Cut, as a file may repeat what it likes.
        raise ValueError(str(problem)[:500]) from problem


def read_file(path: Path, kind: type[T], what: str, remedy: str = "", largest: int = 16 << 20) -> T:
    """Read a record from a JSON file; the error says that the file is not `what`, and the `remedy`."""
    try:
        if path.stat().st_size > largest:
            raise ValueError(f"more than {largest >> 20} MiB")
        return decode(path.read_bytes(), kind)
    except ValueError as problem:
        raise ValueError(f"{path} is not {what} ({problem}){remedy}") from problem

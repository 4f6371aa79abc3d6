"""A trial (a learner, a stream, a seed) and its result, as they are stored."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from driftwolfe import learners, streams
from driftwolfe.domains import L1Ball
from driftwolfe.points import checks
from driftwolfe.streams import Stream
from driftwolfe.streams.data_files import DataFile, Folder
from driftwolfe.streams.datasets import RATINGS, ROWS

#: A stream is made whole before it is played.
MOST_ROUNDS = 10_000_000


class Source(NamedTuple):
    """Where a stream comes from."""

    make: Callable[..., Stream]  # of seed and rounds, and of a folder where there is a file
    file: DataFile | None = None  # what it is read from; None where it is made up
    order_within_stretches: bool = False  # whether the seed moves no round across a drift


class DataSet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stream by its name, one of `DATA_SETS`.

    `rounds` is the length of a shorter version with the same shape of drift; None: all of it.

    >>> stream = DataSet(name="jumping-target", rounds=40).load(seed=0)
    >>> len(stream)
    40
    """

    name: str
    rounds: int | None = None

    def __post_init__(self) -> None:
        if self.name not in DATA_SETS:
            raise ValueError(f"unknown data {self.name[:40]!r}; there are {', '.join(DATA_SETS)}")
        if self.rounds is not None:
            checks.count(self.rounds, "rounds", most=MOST_ROUNDS)

    def load(self, seed: int, folder: Folder | None = None) -> Stream:
        """Return the stream, its order decided by the seed; `folder` holds the real data."""
        return _load(self.name, self.rounds, seed, None if folder is None else str(folder))


@lru_cache(maxsize=2)
def _load(name: str, rounds: int | None, seed: int, folder: str | None) -> Stream:
    source = DATA_SETS[name]
    options: dict[str, Any] = {"data": folder} if source.file else {}
    return source.make(seed=seed, rounds=rounds, **options)


def _jumping_target(seed: int, rounds: int | None) -> Stream:
    """Squared distance to a point of the L1 ball in 20 dimensions that jumps three times."""
    return streams.synthetic.piecewise_constant(
        L1Ball(20), rounds=rounds or 400, pieces=4, seed=seed
    )


#: Streams by name.
DATA_SETS: dict[str, Source] = {
    "movielens-100k": Source(streams.movielens_100k, RATINGS, order_within_stretches=True),
    "movielens-100k-twin": Source(streams.movielens_twin, order_within_stretches=True),
    "shuttle": Source(streams.shuttle, ROWS),
    "shuttle-twin": Source(streams.shuttle_twin),
    "jumping-target": Source(_jumping_target),
}

#: The learners that a trial can name.
METHODS: tuple[str, ...] = tuple(sorted(set(learners.__all__) - {"Learner"}))
#: Of result files.
FORMAT = "driftwolfe result 1"

Option = float | int | str | bool | None


class Trial(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run: small, checked, and the same on every machine.

    Two trials that differ only in their label are the same.

    >>> trial = Trial(method="POLD", data=DataSet(name="movielens-100k"), c=1e4, seed=3)
    >>> trial.name
    'POLD-c1e4-seed3-...'
    >>> Trial(method="POLDA", data=DataSet(name="shuttle"))
    Traceback (most recent call last):
        ...
    ValueError: unknown method 'POLDA'; there are Ader, BOGDIP, ...
    """

    method: str  # name of a learner's class
    data: DataSet
    c: float | None = None  # scale of the steps, see `step_options`; None: the learner's default
    options: dict[str, Option] = {}  # further keywords of the learner
    seed: int = 0  # of the order of the data
    first: int | None = None  # play only so many rounds; the horizon stays that of the stream
    limit: float | None = None  # processor seconds after which the run ends
    taus: tuple[int, ...] = ()  # lengths of windows whose adaptive regret is measured
    label: str = ""  # name in tables and figures; by default the method's

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"unknown method {self.method[:40]!r}; there are {', '.join(METHODS)}")
        if not isinstance(self.data, DataSet):
            raise TypeError(f"data must be a DataSet, got {self.data!r}")
        if not isinstance(self.taus, tuple | list):
            raise TypeError(f"taus must be a list of whole numbers, got {self.taus!r}")
        # Numbers as they are read back from a file, so that 1 and 1.0 make one trial.
        numbers = {
            "c": None if self.c is None else checks.positive(self.c, "c"),
            "limit": None if self.limit is None else checks.positive(self.limit, "limit"),
            "seed": checks.count(self.seed, "seed", least=0, most=math.inf),
            "first": None if self.first is None else checks.count(self.first, "first"),
            "taus": tuple(checks.count(tau, "every one of taus") for tau in self.taus),
        }
        for name, value in numbers.items():
            msgspec.structs.force_setattr(self, name, value)
        if self.seed >= 2**63:  # as large as file names and generators need it
            raise ValueError(f"seed must be less than 2^63, got {self.seed!r}")
        known = _keywords(self.method)
        if self.c is not None and "step_scale" not in known:
            raise ValueError(f"{self.method} has no steps that c could scale; leave c out")
        allowed = sorted(known - {"domain", "horizon", "lipschitz", "step_scale"})
        for option, chosen in self.options.items():
            if option not in allowed:
                there = ", ".join(allowed) or "none"
                raise ValueError(f"{self.method} has no option {option!r}; there are {there}")
            if not isinstance(chosen, Option):
                raise TypeError(f"option {option} must be a number, a text, true or false")
            if isinstance(chosen, float) and not math.isfinite(chosen):
                raise ValueError(f"option {option} must be finite, got {chosen!r}")

    @property
    def title(self) -> str:
        """Name in tables and figures."""
        return self.label or self.method

    @property
    def identity(self) -> str:
        """A digest of all that decides the outcome."""
        return hashlib.sha256(canonical(msgspec.structs.replace(self, label=""))).hexdigest()[:16]

    @property
    def name(self) -> str:
        """A readable name that no other trial has."""
        scale = "" if self.c is None else f"-c{short(self.c)}"
        return f"{self.method}{scale}-seed{self.seed}-{self.identity}"


@cache
def _keywords(method: str) -> frozenset[str]:
    return frozenset(inspect.signature(getattr(learners, method)).parameters)


class Weights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Expert weights before the first round (round 0) and after some others."""

    rounds: list[int]
    experts: list[str]  # see `Learner.expert_names`
    values: list[list[float | None]]  # by round, then by expert; None where it was not active


class AdaptiveRegret(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The largest regret over windows of `tau` rounds; it lies between value and value + gap.

    `window` holds the first round of the worst window, counted from 0, and the one after its last.
    """

    tau: int
    value: float
    gap: float
    window: tuple[int, int]


class Result(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The curves of a trial, read after some numbers of rounds, and the machine it ran on."""

    trial: Trial
    rounds: list[int]  # when curves were read, rising; the last is all that were played
    loss: list[float]  # cumulative
    seconds: list[float]  # processor seconds of one thread, spent on the learner's updates
    lmo: list[int]  # oracle calls so far
    projection: list[int]
    gauge: list[int]
    drifts: list[int]  # rounds at which the truth changed abruptly
    stream: str  # name of the data
    cut: bool = False  # whether the trial's time limit ended it
    adaptive: list[AdaptiveRegret] = []
    weights: Weights | None = None  # where the learner has experts
    membership: list[int] = []  # membership tests so far; empty for none
    wall: float  # seconds by the clock, everything included
    environment: dict[str, Any]  # the machine and the versions, see `machine.facts`
    format: str = FORMAT

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise ValueError(f"format must be {FORMAT!r}, got {self.format[:40]!r}")
        calls = (self.lmo, self.projection, self.gauge, self.membership or self.gauge)
        lengths = {len(curve) for curve in (self.rounds, self.loss, self.seconds, *calls)}
        if len(lengths) > 1 or not self.rounds:
            raise ValueError("rounds and curves must be of one length, and not empty")
        if not all(a < b for a, b in pairwise((0, *self.rounds))):
            raise ValueError("rounds must rise, and start at 1 or later")
        if not all(map(math.isfinite, (*self.loss, *self.seconds))):
            raise ValueError("curves must be finite")
        if self.weights is not None:
            rows, width = self.weights.values, len(self.weights.experts)
            if len(rows) != len(self.weights.rounds) or any(len(row) != width for row in rows):
                raise ValueError("weights must have one row per round and one entry per expert")
            if not all(math.isfinite(entry or 0.0) for row in rows for entry in row):
                raise ValueError("weights must be finite")
        measured = (number for found in self.adaptive for number in (found.value, found.gap))
        if not all(map(math.isfinite, (*measured, self.wall))):
            raise ValueError("adaptive regret and wall must be finite")

    @property
    def mean_loss(self) -> float:
        """Mean loss per round."""
        return self.loss[-1] / self.rounds[-1]

    def encode(self) -> bytes:
        """The content of its file."""
        return msgspec.json.format(msgspec.json.encode(self), indent=0) + b"\n"


def decode(content: bytes) -> Result:
    """Read the content of a result file; `ValueError` where it is not one."""
    try:
        return msgspec.json.decode(content, type=Result)
    except msgspec.MsgspecError as problem:
        raise ValueError(str(problem)[:500]) from problem
    except RecursionError as problem:
        raise ValueError("it is nested too deeply") from problem


def canonical(record: Any) -> bytes:
    """The one JSON text of a record."""
    return msgspec.json.encode(record, order="sorted")


def short(number: float) -> str:
    """A number in as few characters as possible.

    >>> short(1e4), short(0.1), short(0.0625), short(16.0)
    ('1e4', '0.1', '0.0625', '16')
    """
    text = f"{number:g}"
    exponent = f"{number:.0e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    return exponent if float(exponent) == number and len(exponent) < len(text) else text

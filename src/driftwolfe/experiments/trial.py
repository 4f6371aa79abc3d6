"""A trial: a learner, a stream, a seed; and what it left."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable
from functools import cache, lru_cache
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
    """Where a stream comes from.

    Attributes
    ----------
    make
        Makes it from a seed and a number of rounds, and from a folder where there is a file.
    file
        What it is read from; None where it is made up.
    order_within_stretches
        Whether the seed only changes the order of rounds between two drifts.
    """

    make: Callable[..., Stream]
    file: DataFile | None = None
    order_within_stretches: bool = False


class DataSet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stream by its name.

    Attributes
    ----------
    name
        One of `DATA_SETS`.
    rounds
        Length of a shorter version with the same shape of drift; None: all of it.

    Examples
    --------
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

    @property
    def order_within_stretches(self) -> bool:
        """Whether the seed only changes the order of rounds between two drifts."""
        return DATA_SETS[self.name].order_within_stretches

    def load(self, seed: int, folder: Folder | None = None) -> Stream:
        """Return the stream, its order decided by the seed; `folder` holds the real data."""
        return _load(self.name, self.rounds, seed, None if folder is None else str(folder))


@lru_cache(maxsize=2)
def _load(name: str, rounds: int | None, seed: int, folder: str | None) -> Stream:
    source = DATA_SETS[name]
    options: dict[str, Any] = {"seed": seed, "rounds": rounds}
    return source.make(**options, data=folder) if source.file else source.make(**options)


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
#: What a trial sets itself, so that its options must not.
_SET_BY_TRIAL = {"domain", "horizon", "lipschitz", "step_scale"}

#: No file name and no generator needs a larger seed.
_LARGEST_SEED = 2**63 - 1

Option = float | int | str | bool | None


class Trial(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one run is: small, checked, and the same on every machine.

    Attributes
    ----------
    method
        Name of a learner's class, such as ``"POLD"``.
    data
        The stream.
    c
        Scale of the step sizes as in the paper's experiments, see `step_options`; None: the
        learner's own.
    options
        Further keywords of the learner.
    seed
        Of the order of the data; 0, 1, ...
    first
        Play only so many rounds of the stream, whose horizon stays; None: all.
    limit
        Processor seconds after which a run ends wherever it is; None: no limit.
    taus
        Lengths of the windows whose adaptive regret is measured when the run has ended.
    label
        What it is called in tables and figures; the method's name unless given. Two trials that
        differ only in this are the same.

    Examples
    --------
    >>> trial = Trial(method="POLD", data=DataSet(name="movielens-100k"), c=1e4, seed=3)
    >>> trial.name
    'POLD-c1e4-seed3-...'
    >>> Trial(method="POLDA", data=DataSet(name="shuttle"))
    Traceback (most recent call last):
        ...
    ValueError: unknown method 'POLDA'; there are Ader, BOGDIP, ...
    """

    method: str
    data: DataSet
    c: float | None = None
    options: dict[str, Option] = {}
    seed: int = 0
    first: int | None = None
    limit: float | None = None
    taus: tuple[int, ...] = ()
    label: str = ""

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"unknown method {self.method[:40]!r}; there are {', '.join(METHODS)}")
        if not isinstance(self.data, DataSet):
            raise TypeError(f"data must be a DataSet, got {self.data!r}")
        # Numbers as they are read back from a file, so that 1 and 1.0 make one trial.
        for name in ("c", "limit"):
            if (number := getattr(self, name)) is not None:
                msgspec.structs.force_setattr(self, name, checks.positive(number, name))
        seed = checks.count(self.seed, "seed", least=0, most=math.inf)
        if seed > _LARGEST_SEED:
            raise ValueError(f"seed must be less than 2^63, got {self.seed!r}")
        msgspec.structs.force_setattr(self, "seed", seed)
        if self.first is not None:
            msgspec.structs.force_setattr(self, "first", checks.count(self.first, "first"))
        if not isinstance(self.taus, tuple | list):
            raise TypeError(f"taus must be a list of whole numbers, got {self.taus!r}")
        taus = tuple(checks.count(tau, "every one of taus") for tau in self.taus)
        msgspec.structs.force_setattr(self, "taus", taus)
        self._check_options()

    def _check_options(self) -> None:
        known = _keywords(self.method)
        if self.c is not None and "step_scale" not in known:
            raise ValueError(f"{self.method} has no steps that c could scale; leave c out")
        allowed = known - _SET_BY_TRIAL
        if unknown := self.options.keys() - allowed:
            raise ValueError(
                f"{self.method} has no option {sorted(unknown)[0]!r}; there are "
                f"{', '.join(sorted(allowed)) or 'none'}"
            )
        for name, value in self.options.items():
            if not isinstance(value, Option):
                raise TypeError(f"option {name} must be a number, a text, true or false")
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(f"option {name} must be finite, got {value!r}")

    @property
    def title(self) -> str:
        """What it is called in tables and figures."""
        return self.label or self.method

    @property
    def identity(self) -> str:
        """A digest of all that decides the outcome."""
        return hashlib.sha256(canonical(msgspec.structs.replace(self, label=""))).hexdigest()[:16]

    @property
    def name(self) -> str:
        """A name that people can read and that no other trial has."""
        scale = "" if self.c is None else f"-c{short(self.c)}"
        return f"{self.method}{scale}-seed{self.seed}-{self.identity}"


def learner_class(method: str) -> Any:
    """The learner of that name."""
    return getattr(learners, method)


@cache
def _keywords(method: str) -> frozenset[str]:
    """What the learner of that name can be told."""
    return frozenset(inspect.signature(learner_class(method)).parameters)


def canonical(record: Any) -> bytes:
    """The one JSON text of a record."""
    return msgspec.json.encode(record, order="sorted")


def short(number: float) -> str:
    """A number as briefly as it can be said.

    >>> short(1e4), short(0.1), short(0.0625), short(16.0)
    ('1e4', '0.1', '0.0625', '16')
    """
    text = f"{number:g}"
    exponent = f"{number:.0e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e")
    return exponent if float(exponent) == number and len(exponent) < len(text) else text

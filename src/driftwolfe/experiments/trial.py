"""`Trial`: one learner on one stream."""

from __future__ import annotations

import hashlib
import inspect
import math
from functools import cache
from typing import Any

import msgspec

from driftwolfe import learners
from driftwolfe.experiments.data_set import DataSet
from driftwolfe.points import checks

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

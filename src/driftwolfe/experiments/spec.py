"""`Spec`: a sweep as people write it down."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from driftwolfe.experiments.data_set import DataSet
from driftwolfe.experiments.trial import Option, Trial
from driftwolfe.streams.files import Folder

EXAMPLE = """\
title = "Which steps follow a jumping target?"
seeds = 3                                   # 0, 1, 2; or a list of them
data = { name = "jumping-target", rounds = 400 }
taus = [50]                                 # adaptive regret over all windows of 50 rounds

[[methods]]
method = "POLA"                             # any learner; c is its scale of steps
c = [0.5, 1, 2, 4]

[[methods]]
method = "POLA"
label = "POLA, cold start"
c = [0.5, 1, 2, 4]
options = { start = "origin" }              # any keyword of the learner; a list tries each

[[methods]]
method = "OGD"                              # no c: its own steps
"""
_LARGEST = 1 << 20
#: Of what is wrong, as a file may repeat what it likes.
LONGEST = 500
#: More trials than this are a mistake rather than a sweep.
_MOST_TRIALS = 100_000


class MethodSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One method and the values to try; a list for `c` or for an option means each of them."""

    method: str
    label: str = ""
    c: float | list[float] | None = None
    options: dict[str, Option | list[Option]] = {}
    first: int | None = None
    limit: float | None = None

    def __post_init__(self) -> None:
        for name, value in {"c": self.c, **self.options}.items():
            if value == []:
                raise ValueError(f"{name} of {self.method} is an empty list; give some values")

    @property
    def number(self) -> int:
        """How many combinations of values there are."""
        lists = [v for v in (self.c, *self.options.values()) if isinstance(v, list)]
        return math.prod(len(values) for values in lists)

    def settings(self) -> Iterator[dict[str, Any]]:
        """Every combination of values, as keywords of `Trial`."""
        scales = self.c if isinstance(self.c, list) else [self.c]
        values = [v if isinstance(v, list) else [v] for v in self.options.values()]
        for c, *chosen in itertools.product(scales, *values):
            options = dict(zip(self.options, chosen, strict=True))
            yield {"c": c, "options": options, "label": self._label(options)}

    def _label(self, options: dict[str, Any]) -> str:
        """The label, with the options that it must tell apart: all where no label is given."""
        told = [n for n, v in self.options.items() if isinstance(v, list) or not self.label]
        return ", ".join([self.label or self.method, *(f"{n}={options[n]}" for n in told)])


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sweep: methods, data and seeds, and so a list of trials."""

    methods: list[MethodSpec]
    data: str | DataSet
    title: str = "Sweep"
    seeds: int | list[int] = 1
    taus: tuple[int, ...] = ()

    def trials(self) -> list[Trial]:
        """Every method with every setting and every seed; the seeds turn slowest.

        So that a sweep that is stopped early has tried everything on some seeds.
        """
        data = DataSet(name=self.data) if isinstance(self.data, str) else self.data
        seeds = range(self.seeds) if isinstance(self.seeds, int) else self.seeds
        times = max(self.seeds, 0) if isinstance(self.seeds, int) else len(self.seeds)
        number = times * sum(method.number for method in self.methods)
        if number > _MOST_TRIALS:
            raise ValueError(f"{number:,} trials are more than {_MOST_TRIALS:,}; split the sweep")
        made = (
            Trial(
                method=method.method,
                data=data,
                seed=seed,
                first=method.first,
                limit=method.limit,
                taus=self.taus,
                **setting,
            )
            for seed in seeds
            for method in self.methods
            for setting in method.settings()
        )
        trials: dict[str, Trial] = {}
        for trial in made:
            trials.setdefault(trial.identity, trial)
        if not trials:
            raise ValueError("there is nothing to run: give at least one method and one seed")
        return list(trials.values())


def read_spec(path: Folder) -> Spec:
    """Read a sweep from a TOML file; errors say what is wrong and where."""
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(
            f"there is no file {file}; `driftwolfe sweep --example` prints one to start from"
        )
    if file.stat().st_size > _LARGEST:
        raise ValueError(f"{file} is too large to be the description of a sweep")
    return parse_spec(file.read_bytes(), str(file))


def parse_spec(content: bytes, name: str = "the sweep") -> Spec:
    """Read a sweep from TOML.

    >>> len(parse_spec(EXAMPLE.encode()).trials())
    27
    """
    try:
        spec = msgspec.toml.decode(content, type=Spec)
        spec.trials()
    except (msgspec.MsgspecError, ValueError, TypeError) as problem:
        raise ValueError(f"{name}: {str(problem)[:LONGEST]}") from problem
    except RecursionError as problem:
        raise ValueError(f"{name}: it is nested too deeply") from problem
    return spec

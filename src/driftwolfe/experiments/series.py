"""`Series`: trials that differ only in their seed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import msgspec
import numpy as np

from driftwolfe.experiments.data_set import DataSet
from driftwolfe.experiments.result import Result
from driftwolfe.experiments.trial import Trial, canonical
from driftwolfe.points.kinds import Array, Indices

Calls = Literal["lmo", "projection", "gauge", "membership"]
Curve = Literal["loss", "seconds"] | Calls
#: The oracles whose calls are counted.
CALLS: tuple[Calls, ...] = ("lmo", "projection", "gauge", "membership")


@dataclass(frozen=True)
class Spread:
    """A mean over seeds, and the standard deviation; 0 for a single one."""

    mean: float
    deviation: float


def spread(values: Iterable[float]) -> Spread:
    """The mean and the standard deviation of a sample.

    >>> spread([1.0, 2.0, 3.0])
    Spread(mean=2.0, deviation=1.0)
    """
    sample = np.array(list(values), dtype=float)
    return Spread(float(sample.mean()), float(sample.std(ddof=1)) if sample.size > 1 else 0.0)


@dataclass(frozen=True, eq=False)
class Series:
    """Results of one method with one setting, by rising seed.

    Attributes
    ----------
    results
        At least one; their trials differ only in seed and adaptive windows.
    """

    results: tuple[Result, ...]

    @property
    def trial(self) -> Trial:
        """The first trial: what all have in common."""
        return self.results[0].trial

    @property
    def title(self) -> str:
        """What it is called in tables and figures."""
        return self.trial.title

    @property
    def data(self) -> DataSet:
        """The data they ran on."""
        return self.trial.data

    @property
    def c(self) -> float | None:
        """The scale of the steps."""
        return self.trial.c

    @cached_property
    def rounds(self) -> Indices:
        """Rounds after which all of them were read.

        Where there are none, as time may run out before the first, the least number of rounds that
        were played.
        """
        common = set(self.results[0].rounds).intersection(*(r.rounds for r in self.results))
        least = min(result.rounds[-1] for result in self.results)
        return np.array(sorted(common) or [least], dtype=np.int64)

    @property
    def complete(self) -> bool:
        """Whether all played the whole stream: neither told to stop early nor out of time."""
        return self.trial.first is None and all(
            result.rounds[-1] == self.rounds[-1] and not result.cut for result in self.results
        )

    def curve(self, name: Curve) -> Array:
        """Cumulative numbers, from 0 before the first: a row a seed, a column for each of `rounds`."""
        rows = []
        for result in self.results:
            values = getattr(result, name) or [0] * len(result.rounds)
            rows.append(np.interp(self.rounds, [0, *result.rounds], [0, *values]))
        return np.array(rows)

    def total(self, name: Curve) -> Spread:
        """What it came to over all rounds that every seed has."""
        return spread(self.curve(name)[:, -1])

    @property
    def mean_loss(self) -> Spread:
        """Mean loss of a round."""
        return spread(self.curve("loss")[:, -1] / self.rounds[-1])


def group(results: Iterable[Result]) -> list[Series]:
    """Join results that differ only in their seed, in the order in which they came.

    A limit on time that did not end a run made no difference to it.
    """
    groups: dict[bytes, dict[int, Result]] = {}
    for result in results:
        trial = result.trial
        limit = trial.limit if result.cut else None
        alike = msgspec.structs.replace(trial, seed=0, taus=(), limit=limit, label=trial.title)
        groups.setdefault(canonical(alike), {})[result.trial.seed] = result
    return [Series(tuple(found[seed] for seed in sorted(found))) for found in groups.values()]

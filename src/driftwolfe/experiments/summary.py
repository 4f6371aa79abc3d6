"""Series over seeds, and their summaries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import msgspec
import numpy as np

from driftwolfe.experiments.result import Result
from driftwolfe.experiments.trial import DataSet, Trial, canonical
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


@dataclass(frozen=True)
class Summary:
    """The series of a sweep on one stream.

    Attributes
    ----------
    series
        All of them, in the order of the sweep.
    """

    series: tuple[Series, ...]

    @property
    def titles(self) -> list[str]:
        """The methods, in the order of the sweep."""
        return list(dict.fromkeys(series.title for series in self.series))

    @property
    def stream(self) -> str:
        """What the data are called."""
        return self.series[0].results[0].stream

    @property
    def name(self) -> str:
        """The data and how long they are."""
        rounds = max(int(series.rounds[-1]) for series in self.series)
        return f"{self.stream}, {rounds:,} rounds"

    @cached_property
    def chosen(self) -> dict[str, Series]:
        """For each method the series that stands for it.

        The one that played the most rounds; of those the one with the most seeds; of those the one
        with the least loss, which is how c is chosen.
        """
        return {title: min(self.of(title), key=_preference) for title in self.titles}

    def of(self, title: str) -> list[Series]:
        """All series of a method."""
        return [series for series in self.series if series.title == title]

    def tuning(self, title: str) -> list[Series]:
        """The series that its c was chosen from, by rising c.

        Of those told to play all rounds and those told to play fewer, the ones with more values of c.
        """
        by_length: dict[int | None, dict[float, Series]] = {}
        for series in self.of(title):
            if series.c is not None:
                tried = by_length.setdefault(series.trial.first, {})
                if series.c not in tried or _preference(series) < _preference(tried[series.c]):
                    tried[series.c] = series
        most = max(by_length.values(), key=len, default={})
        return [most[c] for c in sorted(most)]


def summarise(results: Iterable[Result]) -> list[Summary]:
    """One summary for each data set among the results."""
    by_data: dict[tuple[str, int | None], list[Result]] = {}
    for result in results:
        data = result.trial.data
        by_data.setdefault((data.name, data.rounds), []).append(result)
    return [Summary(tuple(group(found))) for found in by_data.values()]


def _preference(series: Series) -> tuple[int, int, float]:
    return -int(series.rounds[-1]), -len(series.results), series.mean_loss.mean

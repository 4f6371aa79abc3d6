"""`Summary`: many results, and which of them stand for each method."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from driftwolfe.experiments.result import Result
from driftwolfe.experiments.series import Series, group


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

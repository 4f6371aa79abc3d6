"""What figures and the report say about a summary."""

from __future__ import annotations

from collections.abc import Iterable

from driftwolfe.experiments.series import Series
from driftwolfe.experiments.summary import Summary

TWIN = "(synthetic twin)"
#: What oracle calls are called, by the name of their curve.
CALLS = {"lmo": "LMO", "projection": "projection", "gauge": "gauge", "membership": "membership"}


def label(series: Series) -> str:
    """The title, and how far it came where that is not the end."""
    if series.complete:
        return series.title
    return f"{series.title} (first {counted(int(series.rounds[-1]), 'round')})"


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "round"), counted(3000, "round")
    ('1 round', '3,000 rounds')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def length(summary: Summary) -> int:
    """The most rounds that a method played."""
    return max(int(series.rounds[-1]) for series in summary.chosen.values())


def drifts(summary: Summary) -> list[int]:
    """Rounds at which the truth changed abruptly, as far as anything was played."""
    return max((series.results[0].drifts for series in summary.chosen.values()), key=len)


def seeds(series: Iterable[Series]) -> str:
    """How many seeds stand behind the numbers."""
    counts = sorted({len(each.results) for each in series})
    if counts == [1]:
        return "one seed"
    if len(counts) == 1:
        return f"mean ± standard deviation over {counts[0]} seeds"
    return f"mean ± standard deviation over {counts[0]} to {counts[-1]} seeds"


def data_name(summary: Summary) -> str:
    """What the data are called; of a twin, what the real ones are called."""
    return summary.stream.removesuffix(TWIN).strip()


def heading(summary: Summary) -> str:
    """What was played, in a line."""
    return f"{data_name(summary)} · {counted(length(summary), 'round')}"


def notice(summary: Summary) -> str | None:
    """A warning that the data are made up, where they stand in for real ones."""
    if not summary.stream.endswith(TWIN):
        return None
    return f"Synthetic twin of {data_name(summary)}: made-up data, not the real ones."

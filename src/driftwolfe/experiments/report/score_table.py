"""The table of what each method came to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from driftwolfe.experiments.figures import words
from driftwolfe.experiments.figures.regret_dots import Regrets, measures
from driftwolfe.experiments.figures.style import Look, looks
from driftwolfe.experiments.numbers import number, spread_text
from driftwolfe.experiments.report.traces import dash
from driftwolfe.experiments.series import Calls, Series
from driftwolfe.experiments.summary import Summary
from driftwolfe.experiments.trial import short


@dataclass(frozen=True, slots=True)
class Row:
    """A method.

    Attributes
    ----------
    label
        What it is called, and how far it came.
    look
        How it is drawn in the charts.
    best
        Whether it has the least loss of those that played all rounds.
    cells
        Its numbers, as text.
    """

    label: str
    look: Look
    best: bool
    cells: list[str]

    @property
    def strokes(self) -> str:
        """The dash of its line."""
        return dash(self.look.dash).replace("px", "").replace("solid", "none")


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """Names of columns, and a row a method."""

    columns: list[str]
    rows: list[Row]


def score_table(summary: Summary, regrets: Sequence[Regrets]) -> ScoreTable:
    """All methods; columns in which nobody has anything are left out."""
    columns = {**_columns(), **_regret_columns(regrets)}
    kept = {
        name: value
        for name, value in columns.items()
        if any(value(series) != "" for series in summary.chosen.values())
    }
    style = looks(summary.titles)
    winner = best(summary)
    rows = [
        Row(
            words.label(series),
            style[title],
            series is winner,
            [value(series) or "–" for value in kept.values()],
        )
        for title, series in summary.chosen.items()
    ]
    return ScoreTable(list(kept), rows)


def best(summary: Summary) -> Series | None:
    """The method with the least loss of those that played all rounds; None where one is alone."""
    last = words.length(summary)
    whole = [series for series in summary.chosen.values() if series.rounds[-1] == last]
    return min(whole, key=lambda series: series.mean_loss.mean) if len(whole) > 1 else None


def _columns() -> dict[str, Callable[[Series], str]]:
    return {
        "c": lambda series: "" if series.c is None else short(series.c),
        "Seeds": lambda series: str(len(series.results)),
        "Rounds": lambda series: f"{series.rounds[-1]:,}",
        "Loss per round": lambda series: spread_text(series.mean_loss),
        "Cumulative loss": lambda series: spread_text(series.total("loss")),
        "Processor time (s)": lambda series: spread_text(series.total("seconds")),
        "LMO calls per round": lambda series: _calls(series, "lmo"),
        "Projections per round": lambda series: _calls(series, "projection"),
        "Gauge calls per round": lambda series: _calls(series, "gauge"),
        "Membership tests per round": lambda series: _calls(series, "membership"),
    }


def _calls(series: Series, kind: Calls) -> str:
    total = series.total(kind).mean
    return number(total / int(series.rounds[-1]), 3) if total else ""


def _regret_columns(regrets: Sequence[Regrets]) -> dict[str, Callable[[Series], str]]:
    def column(texts: dict[str, str]) -> Callable[[Series], str]:
        return lambda series: texts.get(series.title, "")

    return {
        measure: column({title: spread_text(value) for title, value in values.items()})
        for measure, values in measures(regrets).items()
    }

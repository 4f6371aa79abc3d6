"""The self-contained interactive report."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from driftwolfe.experiments import figure_style
from driftwolfe.experiments.charts import (
    Chart,
    call_chart,
    dash,
    panel_chart,
    regret_chart,
    scale_chart,
    weight_chart,
)
from driftwolfe.experiments.figure_style import LineStyle, extra, line_styles
from driftwolfe.experiments.figures import Regrets, measures
from driftwolfe.experiments.paper import Claim, claims
from driftwolfe.experiments.result import Result
from driftwolfe.experiments.summary import Calls, Series, Summary
from driftwolfe.experiments.tables import number, spread_text, tuning_notes
from driftwolfe.experiments.trial import short
from driftwolfe.storage import write_text
from driftwolfe.streams.datasets import RATINGS, ROWS


@dataclass(frozen=True, slots=True)
class Setting:
    """What the trials of a series had in common, as text.

    Attributes
    ----------
    title, method, c, options
        What was run.
    rounds
        What was played of what there is.
    seeds
        The orders of the data.
    limit
        On processor time.
    windows
        Lengths of the windows of adaptive regret.
    chosen
        Whether it stands for its method.
    """

    title: str
    method: str
    c: str
    options: str
    rounds: str
    seeds: str
    limit: str
    windows: str
    chosen: bool


def settings(summary: Summary) -> list[Setting]:
    """All series, in the order of the sweep."""
    chosen = list(summary.chosen.values())
    return [_setting(series, series in chosen) for series in summary.series]


def _setting(series: Series, chosen: bool) -> Setting:
    trial = series.trial
    windows = sorted({tau for result in series.results for tau in result.trial.taus})
    return Setting(
        title=series.title,
        method=trial.method,
        c="–" if trial.c is None else short(trial.c),
        options=", ".join(f"{name}={value}" for name, value in sorted(trial.options.items()))
        or "–",
        rounds=_rounds(series),
        seeds=", ".join(str(result.trial.seed) for result in series.results),
        limit="–" if trial.limit is None else f"{trial.limit:,g} s",
        windows=", ".join(f"{tau:,}" for tau in windows) or "–",
        chosen=chosen,
    )


def _rounds(series: Series) -> str:
    played = f"{series.rounds[-1]:,}"
    if any(result.cut for result in series.results):
        return f"{played} (out of time)"
    return played if series.trial.first is None else f"{played} (first only)"


_NAMES = {
    "cpu": "Processor",
    "cores": "Cores",
    "memory_gib": "Memory (GiB)",
    "system": "System",
    "python": "Python",
    "blas": "BLAS",
    "date": "Measured",
    "commit": "Commit",
}


def environments(summaries: Iterable[Summary]) -> list[dict[str, str]]:
    """Each environment once, as names and texts; they are the same if only the time differs."""
    found: dict[str, tuple[dict[str, Any], list[str], int]] = {}
    for result in _results(summaries):
        facts = {name: _in_order(value) for name, value in result.environment.items()}
        facts.pop("date", None)
        key = json.dumps(facts, sort_keys=True, default=str)
        _, dates, count = found.get(key, (facts, [], 0))
        dates.append(str(result.environment.get("date", "")))
        found[key] = facts, dates, count + 1
    return [_texts(facts, dates, count) for facts, dates, count in found.values()]


def _results(summaries: Iterable[Summary]) -> list[Result]:
    return [
        result for summary in summaries for series in summary.series for result in series.results
    ]


def _in_order(value: Any) -> Any:
    """Libraries in the order of their names, whatever the order that they were loaded in."""
    return sorted(value, key=_text) if isinstance(value, list) else value


def _texts(facts: dict[str, Any], dates: list[str], count: int) -> dict[str, str]:
    known = {name: value for name, value in facts.items() if value not in (None, "", [])}
    texts = {_NAMES.get(name, name): _text(value) for name, value in known.items()}
    first, last = min(dates)[:10], max(dates)[:10]
    if first:
        texts[_NAMES["date"]] = first if first == last else f"{first} to {last}"
    return {**texts, "Trials": f"{count:,}"}


def _text(value: Any) -> str:
    """A fact as people read it; libraries of linear algebra come as a list of small tables."""
    if isinstance(value, dict):
        parts = [str(value[name]) for name in ("internal_api", "version") if value.get(name)]
        threads = value.get("num_threads")
        return " ".join(parts) + ("" if threads is None else f" (threads: {threads})")
    if isinstance(value, list):
        return ", ".join(dict.fromkeys(_text(part) for part in value))
    return str(value)


@dataclass(frozen=True, slots=True)
class Row:
    """A method.

    Attributes
    ----------
    label
        What it is called, and how far it came.
    line_style
        How it is drawn in the charts.
    best
        Whether it has the least loss of those that played all rounds.
    cells
        Its numbers, as text.
    """

    label: str
    line_style: LineStyle
    best: bool
    cells: list[str]

    @property
    def strokes(self) -> str:
        """The dash of its line."""
        return dash(self.line_style.dash).replace("px", "").replace("solid", "none")


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
    style = line_styles(summary.titles)
    winner = best(summary)
    rows = [
        Row(
            figure_style.label(series),
            style[title],
            series is winner,
            [value(series) or "–" for value in kept.values()],
        )
        for title, series in summary.chosen.items()
    ]
    return ScoreTable(list(kept), rows)


def best(summary: Summary) -> Series | None:
    """The method with the least loss of those that played all rounds; None where one is alone."""
    last = figure_style.length(summary)
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


_REAL = {
    "movielens-100k": f"Real data: MovieLens 100K by GroupLens, file {RATINGS.path}, "
    f"from {RATINGS.source}; for research use, and not redistributed here.",
    "shuttle": f"Real data: Statlog (Shuttle) of the UCI Machine Learning Repository, CC BY 4.0, "
    f"file {ROWS.path}, from {ROWS.source}.",
}


@dataclass(frozen=True, slots=True)
class Section:
    """What the page says about a stream.

    Attributes
    ----------
    name
        What the data are called, and how long they are.
    abstract
        What was found, in a sentence.
    warning
        That the data are made up in place of real ones, where they are.
    data
        Where the data come from.
    scores
        What each method came to.
    charts
        Those that there is something for.
    notes
        How c was chosen, in sentences.
    claims
        The paper's claims that the methods allow to check.
    settings
        The parameters of all trials.
    """

    name: str
    abstract: str
    warning: str | None
    data: str
    scores: ScoreTable
    charts: list[Chart]
    notes: list[str]
    claims: list[Claim]
    settings: list[Setting]


def section(summary: Summary, regrets: Sequence[Regrets], points: int) -> Section:
    """Say all about a summary, with `points` on a curve at the most."""
    charts = [
        panel_chart(summary, points),
        call_chart(summary, points),
        weight_chart(summary, points),
        regret_chart(summary, regrets),
        scale_chart(summary),
    ]
    return Section(
        name=summary.name,
        abstract=_abstract(summary),
        warning=figure_style.notice(summary),
        data=_data(summary),
        scores=score_table(summary, regrets),
        charts=[chart for chart in charts if chart is not None],
        notes=tuning_notes(summary),
        claims=claims(summary),
        settings=settings(summary),
    )


def _abstract(summary: Summary) -> str:
    methods = figure_style.counted(len(summary.chosen), "method")
    played = f"{methods} on {figure_style.counted(figure_style.length(summary), 'round')} of {summary.stream}"
    changes = len(figure_style.drifts(summary))
    drift = f" with {figure_style.counted(changes, 'abrupt change')}" if changes else ""
    winner = best(summary)
    if winner is None:
        return f"{played}{drift}."
    loss = spread_text(winner.mean_loss)
    return f"{played}{drift}: {winner.title} has the least loss, {loss} a round."


def _data(summary: Summary) -> str:
    if figure_style.notice(summary):
        return f"No number below says anything about the real {figure_style.data_name(summary)}."
    return _REAL.get(
        summary.series[0].data.name, f"A stream made by this library: {summary.stream}."
    )


#: Characters that the data of all charts may take, and points on a curve, from fine to coarse.
DATA_LIMIT = 1_400_000
_POINTS = (400, 240, 120, 60, 30)


def write_report(
    summaries: Sequence[Summary],
    path: Path,
    *,
    regrets: Sequence[Sequence[Regrets]] = (),
    title: str = "Projection-free online learning in changing environments",
    notes: Sequence[str] = (),
    command: str | None = None,
) -> None:
    """Write an HTML page that needs nothing else: no network, no other files.

    Parameters
    ----------
    summaries
        At least one; each becomes a section.
    path
        The file, which is written whole or not at all.
    regrets
        What is known of regret, for each of the summaries; empty for nothing.
    title
        Of the page.
    notes
        Sentences that stand at the top.
    command
        What makes the results again, for a shell.
    """
    write_text(path, page(summaries, regrets, title, notes, command))


def page(
    summaries: Sequence[Summary],
    regrets: Sequence[Sequence[Regrets]],
    title: str,
    notes: Sequence[str],
    command: str | None,
) -> str:
    """The text of the page."""
    if not summaries:
        raise ValueError("a report needs at least one summary")
    known = regrets or [()] * len(summaries)
    if len(known) != len(summaries):
        raise ValueError(f"regrets must hold one list for each of {len(summaries)} summaries")
    plotly = extra("plotly.offline").get_plotlyjs()
    script = _asset("page.js")
    return _template().render(
        title=title,
        notes=notes,
        command=command,
        sections=_sections(summaries, known),
        environments=environments(summaries),
        style=_asset("page.css"),
        scripts=[plotly, script],
        digests=[_digest(plotly), _digest(script)],
    )


def _sections(summaries: Sequence[Summary], regrets: Sequence[Sequence[Regrets]]) -> list[Section]:
    """All sections, their curves as fine as the limit on data allows."""
    for points in _POINTS:
        found = [
            section(summary, rows, points) for summary, rows in zip(summaries, regrets, strict=True)
        ]
        if sum(len(chart.source) for each in found for chart in each.charts) <= DATA_LIMIT:
            break
    return found


def _template() -> Any:
    jinja = extra("jinja2")
    environment = jinja.Environment(
        autoescape=True, undefined=jinja.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_asset("page.html.jinja"))


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _digest(script: str) -> str:
    """What the page's security policy knows a script by; it runs no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


__all__ = ["write_report"]

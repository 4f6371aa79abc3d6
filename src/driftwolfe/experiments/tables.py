"""Results as tables: Markdown for people, CSV for programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from driftwolfe.experiments.cells import csv_cell, markdown_text
from driftwolfe.experiments.numbers import number, spread_text
from driftwolfe.experiments.regret_table import RegretRow
from driftwolfe.experiments.result import Result
from driftwolfe.experiments.series import CALLS, Calls, Series, Spread
from driftwolfe.experiments.summary import Summary
from driftwolfe.experiments.trial import short

_NAMES: dict[Calls, str] = {
    "lmo": "LMO",
    "projection": "projections",
    "gauge": "gauges",
    "membership": "membership tests",
}


def method_table(summary: Summary, regrets: Sequence[RegretRow] = ()) -> str:
    """One row for each method: loss, time, calls of oracles and regret, mean ± deviation."""
    series = list(summary.chosen.values())
    calls = [name for name in CALLS if any(each.curve(name).any() for each in series)]
    taus = sorted({tau for row in regrets for tau in row.adaptive})
    heads = ["method", "c", "seeds", "rounds", "loss a round", "cumulative loss", "seconds"]
    heads += [f"{_NAMES[name]} a round" for name in calls]
    heads += ["dynamic regret"] if any(row.dynamic for row in regrets) else []
    heads += [f"regret, worst {tau:,} rounds" for tau in taus]
    by_title = {row.title: row for row in regrets}
    rows = []
    for each in series:
        row = _figures(each, calls)
        found = by_title.get(each.title)
        if "dynamic regret" in heads:
            row.append(_told(found.dynamic if found else None))
        row += [_told(found.adaptive.get(tau) if found else None) for tau in taus]
        rows.append(row)
    return markdown(heads, rows)


def _figures(series: Series, calls: Sequence[Calls]) -> list[str]:
    played = int(series.rounds[-1])
    return [
        markdown_text(series.title),
        "" if series.c is None else short(series.c),
        str(len(series.results)),
        f"{played:,}",
        spread_text(series.mean_loss),
        spread_text(series.total("loss")),
        spread_text(series.total("seconds")),
        *(number(series.total(name).mean / played, 3) for name in calls),
    ]


def _told(value: Spread | None) -> str:
    return "–" if value is None else spread_text(value)


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown: the first column to the left, the others to the right.

    >>> print(markdown(["a", "b"], [["x", "1"]]))
    | a | b |
    | --- | ---: |
    | x | 1 |
    """
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def trial_table(results: Iterable[Result]) -> str:
    """One line of CSV for each trial."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for i, result in enumerate(results):
        row = _columns(result)
        if i == 0:
            writer.writerow(row)
        writer.writerow(map(csv_cell, row.values()))
    return text.getvalue()


def _columns(result: Result) -> dict[str, Any]:
    trial = result.trial
    return {
        "label": trial.title,
        "method": trial.method,
        "data": trial.data.name,
        "stream_rounds": trial.data.rounds,
        "c": trial.c,
        "options": msgspec.json.encode(trial.options, order="sorted").decode(),
        "seed": trial.seed,
        "first": trial.first,
        "limit": trial.limit,
        "rounds": result.rounds[-1],
        "cut": result.cut,
        "cumulative_loss": repr(result.loss[-1]),
        "processor_seconds": f"{result.seconds[-1]:.3f}",
        **{name: (getattr(result, name) or [0])[-1] for name in CALLS},
    }

"""Oracle calls."""

from __future__ import annotations

from dataclasses import replace

from driftwolfe.experiments.figures import words
from driftwolfe.experiments.figures.call_curves import calls
from driftwolfe.experiments.figures.style import CALL_DASHES, looks
from driftwolfe.experiments.numbers import number
from driftwolfe.experiments.report.chart import Chart, Json
from driftwolfe.experiments.report.grid import Cell, layout, round_axis, value_axis
from driftwolfe.experiments.report.traces import curve
from driftwolfe.experiments.summary import Summary


def call_chart(summary: Summary, points: int) -> Chart | None:
    """Calls of each oracle so far; None where no method called any."""
    traces = _traces(summary, points)
    if not traces:
        return None
    entries = sum(trace["showlegend"] for trace in traces)
    cell = Cell(
        "",
        round_axis(words.length(summary)),
        value_axis("oracle calls so far", logarithmic=True),
        height=300,
    )
    return Chart(
        name="calls",
        heading="Oracle calls",
        caption="Solid: linear minimisations (LMO); dashed: projections; dotted: "
        "gauge calls; dash-dotted: membership tests.",
        description=_description(summary),
        traces=traces,
        wide=layout([cell], 1, legend=-(-entries // 5)),
        narrow=layout([cell], 1, legend=-(-entries // 2)),
    )


def _traces(summary: Summary, points: int) -> list[Json]:
    style = looks(summary.titles)
    return [
        trace
        for title, series in summary.chosen.items()
        for kind, each in calls(series).items()
        for trace in curve(
            each.thinned(points),
            replace(style[title], dash=CALL_DASHES[kind]),
            f"{words.label(series)}: {words.CALLS[kind]}",
            0,
            listed=True,
            group=title,
            positive=True,
        )
    ]


def _description(summary: Summary) -> str:
    ends = [
        f"{words.label(series)} {number(float(each.mean[-1] / each.rounds[-1]), 3)} {words.CALLS[kind]}"
        for series in summary.chosen.values()
        for kind, each in calls(series).items()
    ]
    return f"Line chart of oracle calls over rounds. Calls per round: {', '.join(ends)}."

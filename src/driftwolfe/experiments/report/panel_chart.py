"""The three panels of the paper."""

from __future__ import annotations

from dataclasses import dataclass

from driftwolfe.experiments.figures import words
from driftwolfe.experiments.figures.band import Band, band, settled_range, spans_widely
from driftwolfe.experiments.figures.style import looks
from driftwolfe.experiments.numbers import number
from driftwolfe.experiments.report.chart import Chart, Json
from driftwolfe.experiments.report.grid import Cell, layout, round_axis, value_axis
from driftwolfe.experiments.report.traces import curve
from driftwolfe.experiments.summary import Summary


@dataclass(frozen=True, slots=True)
class _Panel:
    title: str
    unit: str
    bands: dict[str, Band]
    positive: bool = False


def panel_chart(summary: Summary, points: int) -> Chart:
    """Average loss, cumulative loss and run time, with `points` on a curve at the most."""
    panels = _panels(summary)
    wide, narrow = (_layout(summary, panels, columns) for columns in (3, 1))
    return Chart(
        name="panels",
        heading="Loss and run time",
        caption=f"Lines and bands: {words.seeds(summary.chosen.values())}. "
        + ("Dotted: abrupt changes. " if words.drifts(summary) else "")
        + "A click on a method hides it in all three panels; drag to zoom, double-click to go back.",
        description=_description(summary),
        traces=_traces(summary, panels, points),
        wide=wide,
        narrow=narrow,
    )


def _panels(summary: Summary) -> list[_Panel]:
    chosen = summary.chosen
    average = {title: band(series, "loss", average=True) for title, series in chosen.items()}
    total = {title: band(series, "loss") for title, series in chosen.items()}
    seconds = {title: band(series, "seconds") for title, series in chosen.items()}
    far_apart = spans_widely(float(each.mean[-1]) for each in seconds.values())
    return [
        _Panel("Average loss", "loss per round", average),
        _Panel("Cumulative loss", "loss", total),
        _Panel("Run time", "processor time (s)", seconds, far_apart),
    ]


def _layout(summary: Summary, panels: list[_Panel], columns: int) -> Json:
    last = words.length(summary)
    cells = [
        Cell(each.title, round_axis(last, 5), value_axis(each.unit, logarithmic=each.positive))
        for each in panels
    ]
    cells[0].y["range"] = list(settled_range(list(panels[0].bands.values())))
    rows = -(-len(summary.chosen) // (5 if columns > 1 else 2))
    return layout(cells, columns, legend=rows, drifts=words.drifts(summary))


def _traces(summary: Summary, panels: list[_Panel], points: int) -> list[Json]:
    style = looks(summary.titles)
    return [
        trace
        for place, panel in enumerate(panels)
        for title, each in panel.bands.items()
        for trace in curve(
            each.thinned(points),
            style[title],
            words.label(summary.chosen[title]),
            place,
            listed=place == 0,
            group=title,
            positive=panel.positive,
        )
    ]


def _description(summary: Summary) -> str:
    ends = ", ".join(
        f"{words.label(series)} {number(series.mean_loss.mean)} "
        f"in {number(series.total('seconds').mean, 3)} s"
        for series in summary.chosen.values()
    )
    return (
        f"Three line charts over {words.counted(words.length(summary), 'round')}: average loss, "
        f"cumulative loss and run time. At the end the average losses are: {ends}."
    )

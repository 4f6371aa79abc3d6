"""Regret."""

from __future__ import annotations

from collections.abc import Sequence

from driftwolfe.experiments.figures import words
from driftwolfe.experiments.figures.regret_dots import Regrets, measured, measures
from driftwolfe.experiments.figures.style import Look, looks
from driftwolfe.experiments.numbers import brief, spread_text
from driftwolfe.experiments.report.chart import Chart, Json, plain
from driftwolfe.experiments.report.grid import GREY, Cell, axis_names, layout
from driftwolfe.experiments.report.traces import MARKERS
from driftwolfe.experiments.series import Spread
from driftwolfe.experiments.summary import Summary

_COLUMNS = 4


def regret_chart(summary: Summary, regrets: Sequence[Regrets]) -> Chart | None:
    """Dynamic regret, and adaptive regret by length of window; None where none is known."""
    found = measures(regrets)
    if not found:
        return None
    titles = measured(regrets)
    style = {**looks(titles), **looks(summary.titles)}
    labels = {title: plain(name(summary, title)).replace(" (", "<br>(") for title in titles}
    traces = [
        _dot(labels[title], value, style[title], place)
        for place, values in enumerate(found.values())
        for title, value in values.items()
    ]
    return Chart(
        name="regret",
        heading="Regret",
        caption="Dots: mean over seeds; bars: one standard deviation. Dynamic regret: against the "
        "best fixed point of each stretch between drifts. Adaptive regret: the largest over windows "
        "of τ rounds; a lower bound where the trials did not look at all of them.",
        description=_description(summary, found),
        traces=traces,
        wide=_layout(list(found), list(labels.values()), min(_COLUMNS, len(found))),
        narrow=_layout(list(found), list(labels.values()), 1),
    )


def name(summary: Summary, title: str) -> str:
    """What a method is called, and how far it came."""
    known = summary.chosen.get(title)
    return title if known is None else words.label(known)


def _layout(names: list[str], labels: list[str], columns: int) -> Json:
    cells = [
        Cell(
            each.replace(", ", "\n") if columns > 1 else each,
            _across(),
            _methods(labels, named=place % columns == 0),
            height=30 * len(labels) + 20,
        )
        for place, each in enumerate(names)
    ]
    longest = max(len(line) for label in labels for line in label.split("<br>"))
    found = layout(cells, columns, legend=int(columns > 1), left=min(190, 7 * longest + 22))
    return {**found, "hovermode": "closest", "showlegend": False}


def _across() -> Json:
    return {
        "title": {"text": "regret (loss)", "standoff": 6},
        "rangemode": "tozero",
        "zeroline": True,
        "zerolinecolor": GREY,
        "nticks": 5,
        "showgrid": False,
    }


def _methods(labels: list[str], *, named: bool) -> Json:
    return {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": labels,
        "range": [len(labels) - 0.5, -0.5],
        "showticklabels": named,
        "showline": False,
        "ticks": "",
        "ticklabelstandoff": 6,
        "nticks": 0,
        "fixedrange": True,
    }


def _dot(label: str, value: Spread, look: Look, place: int) -> Json:
    x, y = axis_names(place)
    dot: Json = {
        "type": "scatter",
        "mode": "markers",
        "xaxis": x,
        "yaxis": y,
        "x": brief([value.mean]),
        "y": [label],
        "name": label,
        "showlegend": False,
        "marker": {"symbol": MARKERS[look.marker], "size": 9, "color": look.colour},
        "hovertemplate": f"%{{y}}: {spread_text(value)}<extra></extra>",
    }
    if value.deviation:
        dot["error_x"] = {"array": brief([value.deviation], 3), "thickness": 1.4, "width": 4}
    return dot


def _description(summary: Summary, found: dict[str, dict[str, Spread]]) -> str:
    parts = [
        f"{measure}: "
        + ", ".join(f"{name(summary, title)} {spread_text(value)}" for title, value in each.items())
        for measure, each in found.items()
    ]
    return f"Dot charts of regret. {'; '.join(parts)}."

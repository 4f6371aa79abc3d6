"""Interactive charts of the report."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

import numpy as np

from driftwolfe.experiments import figure_style
from driftwolfe.experiments.figure_style import (
    CALL_DASHES,
    Band,
    LineStyle,
    band,
    line_styles,
    settled_range,
    spans_widely,
)
from driftwolfe.experiments.figures import (
    ASLEEP,
    ExpertTable,
    Regrets,
    Tuning,
    calls,
    expert_tables,
    largest,
    measured,
    measures,
    tunings,
)
from driftwolfe.experiments.summary import Spread, Summary
from driftwolfe.experiments.tables import brief, number, spread_text

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Chart:
    """An interactive chart.

    Attributes
    ----------
    name
        Of its kind, such as ``"panels"``.
    heading
        Its title on the page.
    caption
        How it is to be read.
    description
        What it shows, for those who do not see it.
    traces
        What is drawn.
    wide, narrow
        Layouts for a desk and for a telephone.
    """

    name: str
    heading: str
    caption: str
    description: str
    traces: list[Json]
    wide: Json
    narrow: Json

    @property
    def source(self) -> str:
        """All that plotly needs, as text that may stand inside a script element."""
        return script_json({"traces": self.traces, "wide": self.wide, "narrow": self.narrow})


def script_json(content: Any) -> str:
    r"""JSON that can neither end a script element nor start a comment in it.

    >>> script_json("</script><!--")
    '"\\u003c/script\\u003e\\u003c!--"'
    """
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def plain(text: str) -> str:
    """A text that plotly shows as it stands: it reads some tags and entities.

    >>> plain("<b>POLD & co</b>")
    '&lt;b&gt;POLD &amp; co&lt;/b&gt;'
    """
    return html.escape(text, quote=False)


#: Pixels of a line's width.
WIDTH = 2
MARKERS = {
    "o": "circle",
    "s": "square",
    "^": "triangle-up",
    "D": "diamond",
    "v": "triangle-down",
    "P": "cross",
    "X": "x",
}


def dash(lengths: Sequence[float]) -> str:
    """A dash as plotly wants it.

    >>> dash(()), dash((4.0, 1.5))
    ('solid', '8px,3px')
    """
    return ",".join(f"{WIDTH * part:g}px" for part in lengths) or "solid"


def curve(
    band: Band,
    line_style: LineStyle,
    label: str,
    place: int,
    *,
    listed: bool,
    group: str,
    positive: bool,
) -> list[Json]:
    """A mean with a band of a deviation, in a cell; all of a group hide together.

    `listed`: whether it stands in the legend; `positive`: whether the axis is logarithmic.
    """
    x, y = axis_names(place)
    shared: Json = {"xaxis": x, "yaxis": y, "legendgroup": plain(group), "type": "scatter"}
    mean: Json = {
        **shared,
        "name": plain(label),
        "showlegend": listed,
        "mode": "lines",
        "x": band.rounds.tolist(),
        "y": brief(band.mean),
        "line": {"color": line_style.colour, "width": WIDTH, "dash": dash(line_style.dash)},
        "hovertemplate": "%{y:,.4~g}",
    }
    if not band.deviation.any():
        return [mean]
    mean["customdata"] = brief(band.deviation, 3)
    mean["hovertemplate"] = "%{y:,.4~g} ± %{customdata:,.2~g}"
    return [*_borders(band, line_style, shared, positive), mean]


def _borders(band: Band, line_style: LineStyle, shared: Json, positive: bool) -> list[Json]:
    """Two lines that are not seen, and the colour between them; coarser than the mean."""
    coarse = band.thinned(max(2, len(band.rounds) // 2))
    low = np.maximum(coarse.low, 0.1 * coarse.mean) if positive else coarse.low
    border: Json = {
        **shared,
        "showlegend": False,
        "hoverinfo": "skip",
        "mode": "lines",
        "x": coarse.rounds.tolist(),
        "line": {"width": 0, "color": line_style.colour},
    }
    fill = {"fill": "tonexty", "fillcolor": _faint(line_style.colour)}
    return [{**border, "y": brief(low, 5)}, {**border, **fill, "y": brief(coarse.high, 5)}]


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.18)"


_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
#: Grey that is seen on white and on black.
GREY = "#8a8f98"
#: Pixels between rows, above and below all of them, and of a row of the legend.
_BETWEEN, _ABOVE, _BELOW, _LEGEND = 74, 34, 48, 21
#: The share of the width between columns.
_GAP = 0.1


@dataclass(frozen=True, slots=True)
class Cell:
    """A pair of axes.

    Attributes
    ----------
    title
        What stands above it, in one or two lines.
    x, y
        Further settings of the axes.
    height
        In pixels.
    """

    title: str
    x: Json = field(default_factory=dict)
    y: Json = field(default_factory=dict)
    height: int = 260


def axis_names(place: int) -> tuple[str, str]:
    """What traces call the axes of a cell, counted from 0.

    >>> axis_names(0), axis_names(2)
    (('x', 'y'), ('x3', 'y3'))
    """
    number = "" if place == 0 else str(place + 1)
    return f"x{number}", f"y{number}"


def layout(
    cells: Sequence[Cell],
    columns: int,
    *,
    legend: int = 0,
    left: int = 62,
    drifts: Sequence[int] = (),
    over: bool = False,
) -> Json:
    """Lay cells out row by row.

    Parameters
    ----------
    cells
        The pairs of axes.
    columns
        How many stand side by side.
    legend
        Rows that the legend takes; 0 for none.
    left
        Pixels for the labels of the leftmost vertical axes.
    drifts
        Rounds to mark with dotted lines.
    over
        Whether those lie above what is drawn.
    """
    rows = [
        max(cell.height for cell in cells[at : at + columns])
        for at in range(0, len(cells), columns)
    ]
    inner = sum(rows) + _BETWEEN * (len(rows) - 1)
    top = _ABOVE + legend * _LEGEND
    found: Json = {
        "height": inner + top + _BELOW,
        "margin": {"l": left, "r": 22, "t": top, "b": _BELOW, "pad": 0},
        "font": {"family": _FONT, "size": 12},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hovermode": "x unified",
        "dragmode": "zoom",
        "uirevision": "kept",
        "showlegend": legend > 0,
        "legend": {
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1 + 26 / inner,
            "yanchor": "bottom",
            "tracegroupgap": 0,
            "bgcolor": "rgba(0,0,0,0)",
        },
        "annotations": [],
        "shapes": [],
    }
    ends = list(accumulate(row + _BETWEEN for row in rows))
    for place, cell in enumerate(cells):
        row, column = divmod(place, columns)
        upper = 1 - (ends[row] - rows[row] - _BETWEEN) / inner
        lower = max(0.0, upper - cell.height / inner)
        _add(found, place, cell, _span(column, columns), (lower, upper))
        found["shapes"] += [_drift(place, t, over) for t in drifts]
    return found


def _span(column: int, columns: int) -> tuple[float, float]:
    width = (1 - _GAP * (columns - 1)) / columns
    start = column * (width + _GAP)
    return start, min(1.0, start + width)


def _add(
    found: Json, place: int, cell: Cell, across: tuple[float, float], up: tuple[float, float]
) -> None:
    x, y = axis_names(place)
    found[f"xaxis{x[1:]}"] = {**_axis(across, y), **cell.x}
    found[f"yaxis{y[1:]}"] = {**_axis(up, x), **cell.y}
    if cell.title:
        found["annotations"].append(
            {
                "text": f"<b>{plain(cell.title)}</b>".replace("\n", "<br>"),
                "x": across[0],
                "y": up[1],
                "xref": "paper",
                "yref": "paper",
                "xanchor": "left",
                "yanchor": "bottom",
                "yshift": 4,
                "align": "left",
                "showarrow": False,
            }
        )


def _axis(domain: tuple[float, float], anchor: str) -> Json:
    return {
        "domain": [round(end, 5) for end in domain],
        "anchor": anchor,
        "zeroline": False,
        "showline": True,
        "linecolor": GREY,
        "gridcolor": "#e3e6ea",
        "separatethousands": True,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": GREY,
        "nticks": 7,
    }


def _drift(place: int, t: int, over: bool) -> Json:
    x, y = axis_names(place)
    return {
        "type": "line",
        "xref": x,
        "yref": f"{y} domain",
        "x0": t,
        "x1": t,
        "y0": 0,
        "y1": 1,
        "layer": "above" if over else "below",
        "line": {"color": GREY, "width": 1, "dash": "dot"},
    }


def round_axis(last: int, ticks: int = 7) -> dict[str, Any]:
    """A horizontal axis of rounds, with about so many ticks."""
    return {
        "nticks": ticks,
        "tickangle": 0,
        "spikethickness": 1,
        "spikecolor": GREY,
        "spikedash": "dot",
        "title": {"text": "round", "standoff": 6},
        "range": [0, last],
        "hoverformat": ",d",
        "tickformat": ",d",
        "unifiedhovertitle": {"text": "round %{x:,d}"},
    }


def value_axis(title: str, *, logarithmic: bool = False) -> dict[str, Any]:
    """A vertical axis."""
    scale: Json = {"type": "log", "dtick": 1, "tickformat": ","} if logarithmic else {}
    return {"title": {"text": title, "standoff": 6}, **scale}


def call_chart(summary: Summary, points: int) -> Chart | None:
    """Calls of each oracle so far; None where no method called any."""
    traces = _call_traces(summary, points)
    if not traces:
        return None
    entries = sum(trace["showlegend"] for trace in traces)
    cell = Cell(
        "",
        round_axis(figure_style.length(summary)),
        value_axis("oracle calls so far", logarithmic=True),
        height=300,
    )
    return Chart(
        name="calls",
        heading="Oracle calls",
        caption="Solid: linear minimisations (LMO); dashed: projections; dotted: "
        "gauge calls; dash-dotted: membership tests.",
        description=_call_description(summary),
        traces=traces,
        wide=layout([cell], 1, legend=-(-entries // 5)),
        narrow=layout([cell], 1, legend=-(-entries // 2)),
    )


def _call_traces(summary: Summary, points: int) -> list[Json]:
    style = line_styles(summary.titles)
    return [
        trace
        for title, series in summary.chosen.items()
        for kind, each in calls(series).items()
        for trace in curve(
            each.thinned(points),
            replace(style[title], dash=CALL_DASHES[kind]),
            f"{figure_style.label(series)}: {figure_style.CALLS[kind]}",
            0,
            listed=True,
            group=title,
            positive=True,
        )
    ]


def _call_description(summary: Summary) -> str:
    ends = [
        f"{figure_style.label(series)} {number(float(each.mean[-1] / each.rounds[-1]), 3)} "
        f"{figure_style.CALLS[kind]}"
        for series in summary.chosen.values()
        for kind, each in calls(series).items()
    ]
    return f"Line chart of oracle calls over rounds. Calls per round: {', '.join(ends)}."


@dataclass(frozen=True, slots=True)
class _Panel:
    title: str
    unit: str
    bands: dict[str, Band]
    positive: bool = False


def panel_chart(summary: Summary, points: int) -> Chart:
    """Average loss, cumulative loss and run time, with `points` on a curve at the most."""
    panels = _panels(summary)
    wide, narrow = (_panel_layout(summary, panels, columns) for columns in (3, 1))
    return Chart(
        name="panels",
        heading="Loss and run time",
        caption=f"Lines and bands: {figure_style.seeds(summary.chosen.values())}. "
        + ("Dotted: abrupt changes. " if figure_style.drifts(summary) else "")
        + "A click on a method hides it in all three panels; drag to zoom, double-click to go back.",
        description=_panel_description(summary),
        traces=_panel_traces(summary, panels, points),
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


def _panel_layout(summary: Summary, panels: list[_Panel], columns: int) -> Json:
    last = figure_style.length(summary)
    cells = [
        Cell(each.title, round_axis(last, 5), value_axis(each.unit, logarithmic=each.positive))
        for each in panels
    ]
    cells[0].y["range"] = list(settled_range(list(panels[0].bands.values())))
    rows = -(-len(summary.chosen) // (5 if columns > 1 else 2))
    return layout(cells, columns, legend=rows, drifts=figure_style.drifts(summary))


def _panel_traces(summary: Summary, panels: list[_Panel], points: int) -> list[Json]:
    style = line_styles(summary.titles)
    return [
        trace
        for place, panel in enumerate(panels)
        for title, each in panel.bands.items()
        for trace in curve(
            each.thinned(points),
            style[title],
            figure_style.label(summary.chosen[title]),
            place,
            listed=place == 0,
            group=title,
            positive=panel.positive,
        )
    ]


def _panel_description(summary: Summary) -> str:
    ends = ", ".join(
        f"{figure_style.label(series)} {number(series.mean_loss.mean)} "
        f"in {number(series.total('seconds').mean, 3)} s"
        for series in summary.chosen.values()
    )
    return (
        f"Three line charts over {figure_style.counted(figure_style.length(summary), 'round')}: average loss, "
        f"cumulative loss and run time. At the end the average losses are: {ends}."
    )


_COLUMNS = 4


def regret_chart(summary: Summary, regrets: Sequence[Regrets]) -> Chart | None:
    """Dynamic regret, and adaptive regret by length of window; None where none is known."""
    found = measures(regrets)
    if not found:
        return None
    titles = measured(regrets)
    style = {**line_styles(titles), **line_styles(summary.titles)}
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
        description=_regret_description(summary, found),
        traces=traces,
        wide=_regret_layout(list(found), list(labels.values()), min(_COLUMNS, len(found))),
        narrow=_regret_layout(list(found), list(labels.values()), 1),
    )


def name(summary: Summary, title: str) -> str:
    """What a method is called, and how far it came."""
    known = summary.chosen.get(title)
    return title if known is None else figure_style.label(known)


def _regret_layout(names: list[str], labels: list[str], columns: int) -> Json:
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


def _dot(label: str, value: Spread, line_style: LineStyle, place: int) -> Json:
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
        "marker": {"symbol": MARKERS[line_style.marker], "size": 9, "color": line_style.colour},
        "hovertemplate": f"%{{y}}: {spread_text(value)}<extra></extra>",
    }
    if value.deviation:
        dot["error_x"] = {"array": brief([value.deviation], 3), "thickness": 1.4, "width": 4}
    return dot


def _regret_description(summary: Summary, found: dict[str, dict[str, Spread]]) -> str:
    parts = [
        f"{measure}: "
        + ", ".join(f"{name(summary, title)} {spread_text(value)}" for title, value in each.items())
        for measure, each in found.items()
    ]
    return f"Dot charts of regret. {'; '.join(parts)}."


def scale_chart(summary: Summary) -> Chart | None:
    """Mean loss of a round by c; None where no method was run with several."""
    found = tunings(summary)
    if not found:
        return None
    style = line_styles(summary.titles)
    far_apart = spans_widely(loss.mean for each in found for loss in each.losses)
    across = {
        "title": {"text": "scale c of the step sizes", "standoff": 6},
        "type": "log",
        "exponentformat": "power",
        "dtick": 1,
        "unifiedhovertitle": {"text": "c = %{x:,~g}"},
    }
    up = value_axis("mean loss of a round", logarithmic=far_apart)
    cell = Cell("", across, up, height=300)
    return Chart(
        name="scales",
        heading="Sensitivity to c",
        caption="A ring marks the c that was chosen; hollow markers, that it was chosen on fewer "
        "rounds than the method was run on.",
        description=_scale_description(found),
        traces=[trace for each in found for trace in _scale_traces(each, style[each.title])],
        wide=layout([cell], 1, legend=-(-len(found) // 4)),
        narrow=layout([cell], 1, legend=len(found)),
    )


def _scale_traces(tuning: Tuning, line_style: LineStyle) -> list[Json]:
    shared: Json = {"type": "scatter", "legendgroup": plain(tuning.title)}
    hollow = "" if tuning.first is None else "-open"
    means = [loss.mean for loss in tuning.losses]
    line: Json = {
        **shared,
        "name": plain(tuning.label),
        "mode": "lines+markers",
        "x": tuning.scales,
        "y": brief(means),
        "line": {"color": line_style.colour, "width": WIDTH, "dash": dash(line_style.dash)},
        "marker": {
            "symbol": MARKERS[line_style.marker] + hollow,
            "size": 8,
            "color": line_style.colour,
        },
        "hovertemplate": "%{y:,.4~g}",
    }
    deviations = [loss.deviation for loss in tuning.losses]
    if any(deviations):
        line["error_y"] = {"array": brief(deviations, 3), "thickness": 1.2, "width": 3}
        line["hovertemplate"] = "%{y:,.4~g} ± %{error_y.array:,.2~g}"
    if tuning.chosen is None:
        return [line]
    ring: Json = {
        **shared,
        "mode": "markers",
        "showlegend": False,
        "hoverinfo": "skip",
        "x": [tuning.chosen],
        "y": brief([means[tuning.scales.index(tuning.chosen)]]),
        "marker": {"symbol": "circle-open", "size": 16, "color": line_style.colour},
    }
    return [line, ring]


def _scale_description(found: list[Tuning]) -> str:
    ranges = ", ".join(
        f"{each.label} {number(min(loss.mean for loss in each.losses))} to "
        f"{number(max(loss.mean for loss in each.losses))}"
        + ("" if each.chosen is None else f", chosen c = {each.chosen:,g}")
        for each in found
    )
    return f"Line chart of the mean loss of a round against c. Losses: {ranges}."


#: ColorBrewer's Blues, as in the static figure.
_BLUES = ("#f7fbff", "#deebf7", "#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#084594")
#: Pixels of an expert's row.
_ROW = 15


def weight_chart(summary: Summary, points: int) -> Chart | None:
    """A heat map for each method with experts; None where there are none."""
    tables = expert_tables(summary)
    if not tables:
        return None
    # The rounds are named in the caption: between maps there is no room.
    across = {**round_axis(figure_style.length(summary)), "showgrid": False, "title": None}
    cells = [
        Cell(figure_style.label(summary.chosen[title]), across, _rows(table), height=_height(table))
        for title, table in tables.items()
    ]
    found = layout(cells, 1, legend=1, left=96, drifts=figure_style.drifts(summary), over=True)
    found |= {"hovermode": "closest", "showlegend": False, "coloraxis": _colours(tables, found)}
    seeds = sorted({table.seed for table in tables.values()})
    return Chart(
        name="weights",
        heading="Expert weights",
        caption=f"Weights over rounds, seed {', '.join(map(str, seeds))}. Beige: the expert was not awake. "
        "Experts by rising step size, epoch or length of interval.",
        description=_weight_description(summary, tables),
        traces=[
            trace
            for place, table in enumerate(tables.values())
            for trace in _weight_traces(table.thinned(points), place)
        ],
        wide=found,
        narrow=found,
    )


def _height(table: ExpertTable) -> int:
    return max(70, min(_ROW * len(table.experts), 400))


def _rows(table: ExpertTable) -> Json:
    every = -(-_ROW * len(table.experts) // _height(table))
    return {
        "type": "category",
        "tickfont": {"size": 11},
        "dtick": every,
        "nticks": 0,
        "showgrid": False,
        "fixedrange": True,
    }


def _weight_traces(table: ExpertTable, place: int) -> list[Json]:
    x, y = axis_names(place)
    shared: Json = {
        "type": "heatmap",
        "xaxis": x,
        "yaxis": y,
        "x": table.rounds,
        "y": [plain(expert) for expert in table.experts],
        "hoverongaps": False,
    }
    weights: Json = {
        **shared,
        "z": [brief(row, 3) for row in table.values],
        "coloraxis": "coloraxis",
        "hovertemplate": "round %{x:,d}<br>%{y}<br>weight %{z:.3f}<extra></extra>",
    }
    asleep = np.isnan(table.values)
    if not asleep.any():
        return [weights]
    shade: Json = {
        **shared,
        "z": [[0 if sleeps else None for sleeps in row] for row in asleep.tolist()],
        "colorscale": [[0, ASLEEP], [1, ASLEEP]],
        "showscale": False,
        "hovertemplate": "round %{x:,d}<br>%{y}<br>not awake<extra></extra>",
    }
    return [weights, shade]


def _colours(tables: dict[str, ExpertTable], found: Json) -> Json:
    inner = found["height"] - found["margin"]["t"] - found["margin"]["b"]
    steps = np.linspace(0.0, 1.0, len(_BLUES)).round(4).tolist()
    return {
        "cmin": 0,
        "cmax": round(largest(tables.values()), 4),
        "colorscale": [[step, colour] for step, colour in zip(steps, _BLUES, strict=True)],
        "colorbar": {
            "orientation": "h",
            "title": {"text": "weight", "side": "right"},
            "thickness": 10,
            "len": 0.7,
            "x": 0,
            "xanchor": "left",
            "y": 1 + 24 / inner,
            "yanchor": "bottom",
            "nticks": 5,
            "tickangle": 0,
            "outlinewidth": 0,
        },
    }


def _weight_description(summary: Summary, tables: dict[str, ExpertTable]) -> str:
    parts = []
    for title, table in tables.items():
        last = np.nan_to_num(table.values[:, -1], nan=-1.0)
        best = table.experts[int(last.argmax())]
        label = figure_style.label(summary.chosen[title])
        parts.append(f"{label}, {best} with {last.max():.2f}")
    return (
        "Heat maps of the weight of each expert over rounds. "
        f"The heaviest experts at the end: {'; '.join(parts)}."
    )

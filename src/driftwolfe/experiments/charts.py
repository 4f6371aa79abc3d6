"""Interactive charts of the report, as plotly's JSON; what all have in common is in page.js."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from driftwolfe.experiments import chart_data
from driftwolfe.experiments.chart_data import Chart, Dot, Dots, ExpertTable, Line, Panel
from driftwolfe.experiments.figure_style import INACTIVE, MARKERS, evenly, largest_weight
from driftwolfe.experiments.summary import Summary
from driftwolfe.experiments.tables import RegretRow
from driftwolfe.terminal import spread_text

Json = dict[str, Any]
#: A title in HTML, a horizontal and a vertical axis of kinds that page.js knows, and the traces.
Cell = tuple[str, Json, Json, list[Json]]

WIDTH, _ROW = 2, 15  # pixels of a line's width and of an expert's row
#: Plotly's names of matplotlib's markers.
_SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x")
SYMBOLS = dict(zip(MARKERS, _SYMBOLS, strict=True))
#: A text that plotly shows unchanged: it reads some tags and entities.
plain = partial(html.escape, quote=False)


def all_charts(summary: Summary, regrets: Sequence[RegretRow], points: int) -> list[Json]:
    """Words and data for every chart that there is something for; at most `points` on a curve."""
    made = [
        _line_chart(summary, chart_data.loss_chart(summary), points),
        _line_chart(summary, chart_data.regret_curves(summary, regrets), points),
        _regret_chart(chart_data.regret_chart(summary, regrets)),
        _price_chart(chart_data.price_chart(summary)),
        _line_chart(summary, chart_data.call_chart(summary), points),
        _weight_chart(summary, chart_data.weight_chart(summary), points),
        _line_chart(summary, chart_data.scale_chart(summary), points),
    ]
    return [chart for chart in made if chart["panels"]]


def _page_chart(
    chart: Chart[Any],
    cells: Sequence[Cell],
    height: int,
    columns: int = 1,
    drifts: Sequence[int] = (),
    layer: str = "below",
    **options: Any,
) -> Json:
    """The chart: cells of that height in pixels, with dotted lines at `drifts`."""
    layout: Json = {"annotations": [], "shapes": [], **options}
    traces = []
    for place, (title, x_axis, y_axis, drawn) in enumerate(cells):
        x, y = axis_names(place).values()
        layout[f"xaxis{x[1:]}"], layout[f"yaxis{y[1:]}"] = x_axis, y_axis
        domain = {"xref": f"{x} domain", "yref": f"{y} domain"}
        layout["annotations"].append({"text": f"<b>{title}</b>", **domain})
        layout["shapes"] += [
            {**domain, "xref": x, "x0": t, "x1": t, "layer": layer} for t in drifts
        ]
        traces += [{**axis_names(place), **trace} for trace in drawn]
    source = {"traces": traces, "layout": layout, "columns": columns, "height": height}
    return {**chart._asdict(), "source": script_json(source)}


def script_json(content: Any) -> str:
    """JSON that can neither end a script element nor start a comment in it."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def brief(values: Iterable[Any], digits: int = 6) -> list[float | None]:
    """Numbers for a chart: rounded, so that they take little room; None for nan."""
    rounded = (float(f"{value:.{digits}g}") for value in values)
    return [None if math.isnan(v) else int(v) if v.is_integer() else v for v in rounded]


def dash(lengths: Sequence[float]) -> str:
    """A dash as plotly takes it."""
    return ",".join(f"{WIDTH * part:g}px" for part in lengths) or "solid"


def axis_names(place: int) -> Json:
    """The axes of a cell, counted from 0, as traces name them."""
    number = "" if place == 0 else str(place + 1)
    return {"xaxis": f"x{number}", "yaxis": f"y{number}"}


def _line_chart(summary: Summary, chart: Chart[Panel], points: int) -> Json:
    several, first = len(chart.panels) > 1, chart_data.rows(summary)[0]
    over_rounds = chart.name in ("panels", "regret-curves")
    rounds: Json = {"kind": "rounds", "range": [0, summary.length], "nticks": 5 if several else 7}
    cells = []
    for place, panel in enumerate(chart.panels):
        x = {"kind": "scales"} if panel.over_c else rounds
        y: Json = {"kind": "log" if panel.log else "linear", "title": {"text": panel.unit}}
        if panel.high is not None:
            y["range"] = [panel.low, panel.high]
        traces = [
            trace if not over_rounds or line.title in first else {**trace, "visible": "legendonly"}
            for line in panel.lines
            for trace in _line_traces(panel, line, points, place == 0)
        ]
        cells.append((plain(panel.title), x, y, traces))
    height, drifts = 260 if several else 300, summary.drifts if over_rounds else []
    return _page_chart(chart, cells, height, len(cells), drifts)


def _line_traces(panel: Panel, line: Line, points: int, listed: bool) -> list[Json]:
    """A mean with its band over rounds, or with error bars and a ring at the chosen c."""
    band = line.band if panel.over_c else line.band.thinned(points)
    colour = line.style.colour
    shared: Json = {"legendgroup": plain(line.title), "mode": "lines"}
    silent: Json = {**shared, "showlegend": False, "hoverinfo": "skip"}
    mean: Json = {
        **shared,
        "name": plain(line.label),
        "showlegend": listed,
        "x": band.x.tolist(),
        "y": brief(band.mean),
        "line": {
            "color": colour,
            "width": WIDTH * line.style.width,
            "dash": dash(line.style.dash),
        },
        "hovertemplate": "%{y:,.4~g}",
    }
    varies = band.deviation.any()
    if varies:
        mean["customdata"] = brief(band.deviation, 3)
        mean["hovertemplate"] = "%{y:,.4~g} ± %{customdata:,.2~g}"
    if panel.over_c:
        symbol = SYMBOLS[line.style.marker] + ("-open" if line.partial else "")
        mean |= {"mode": "lines+markers", "marker": {"symbol": symbol, "size": 8}}
        if varies:
            mean["error_y"] = {"array": mean["customdata"], "thickness": 1.2, "width": 3}
        if line.chosen is None:
            return [mean]
        x, y = [mean["x"][line.chosen]], [mean["y"][line.chosen]]
        marker = {"symbol": "circle-open", "size": 16, "color": colour}
        return [mean, {**silent, "x": x, "y": y, "mode": "markers", "marker": marker}]
    if not varies:
        return [mean]
    # Two lines that are not seen, and the colour between them; coarser than the mean.
    coarse = band.thinned(max(2, len(band.x) // 2))
    border: Json = {**silent, "x": coarse.x.tolist(), "line": {"width": 0, "color": colour}}
    red, green, blue = bytes.fromhex(colour[1:])
    fill = {"fill": "tonexty", "fillcolor": f"rgba({red},{green},{blue},0.18)"}
    low, high = (brief(edge, 5) for edge in coarse.edges(positive=panel.log))
    return [{**border, "y": low}, {**border, **fill, "y": high}, mean]


def _dot_trace(dot: Dot, x: Any, y: Any, error: str, told: str, listed: bool = False) -> Json:
    """A dot, with its deviation along the axis `error`."""
    name = plain(dot.label)
    symbol = SYMBOLS[dot.style.marker] + ("-open" if dot.style.width < 1.0 else "")
    trace: Json = {
        "mode": "markers",
        "x": [x],
        "y": [y],
        "name": name,
        "legendgroup": name,
        "showlegend": listed,
        "marker": {"symbol": symbol, "size": 10, "color": dot.style.colour},
        "hovertemplate": told,
    }
    if dot.value and dot.value.deviation:
        bar = {"array": brief([dot.value.deviation], 3), "thickness": 1.2, "width": 4}
        trace[f"error_{error}"] = bar
    return trace


def _price_chart(chart: Chart[Dots]) -> Json:
    cells = []
    for place, (unit, dots) in enumerate(chart.panels):
        traces = []
        for dot in dots:
            told = f"{spread_text(dot.value)} for %{{x:,.3~g}}"
            x, y = brief([dot.spent, dot.value.mean if dot.value else math.nan])
            traces.append(_dot_trace(dot, x, y, "y", told, place == 0))
        cost: Json = {"kind": "log", "title": {"text": unit}}
        if max(dot.spent for dot in dots) < 10.0 * min(dot.spent for dot in dots):
            cost["dtick"] = None  # powers of ten would leave the axis without a number
        loss: Json = {"kind": "linear", "title": {"text": "loss per round"}}
        cells.append(("", cost, loss, traces))
    return _page_chart(chart, cells, 260, max(1, len(cells)), hovermode="closest")


def _regret_chart(chart: Chart[Dots]) -> Json:
    cells, height = [], 0
    for measure, dots in chart.panels:
        labels = [plain(dot.label).replace(" (", "<br>(") for dot in dots]
        traces = []
        for label, dot in zip(labels, dots, strict=True):
            if dot.value:
                told = f"%{{y}}: {spread_text(dot.value)}<extra></extra>"
                (x,) = brief([dot.value.mean])
                traces.append(_dot_trace(dot, x, label, "x", told))
        methods = {"kind": "methods", "categoryarray": labels, "range": [len(labels) - 0.5, -0.5]}
        title = measure.replace(", ", "<br>")
        cells.append((title, {"kind": "regret"}, methods, traces))
        height = 30 * len(labels) + 20
    return _page_chart(chart, cells, height, min(4, len(cells)), hovermode="closest")


def _weight_chart(summary: Summary, chart: Chart[ExpertTable], points: int) -> Json:
    # The rounds are named in the caption: between maps there is no room.
    rounds = {"kind": "rounds", "range": [0, summary.length], "showgrid": False, "title": None}
    most = max((len(table.experts) for table in chart.panels), default=0)
    height = max(70, min(_ROW * most, 400))
    cells = []
    for table in chart.panels:
        experts = {"kind": "experts", "dtick": -(-_ROW * len(table.experts) // height)}
        cells.append((plain(table.label), rounds, experts, _weight_traces(table, points)))
    colours = {"cmin": 0, "cmax": round(largest_weight(table.values for table in chart.panels), 4)}
    options: Json = {"hovermode": "closest", "coloraxis": colours}
    return _page_chart(chart, cells, height, drifts=summary.drifts, layer="above", **options)


def _weight_traces(table: ExpertTable, points: int) -> list[Json]:
    """A map of the weights, and one of where experts were not active."""
    kept = evenly(len(table.rounds), points)
    values = table.values[:, kept]
    told = "round %{x:,d}<br>%{y}<br>"
    shared: Json = {
        "type": "heatmap",
        "x": table.rounds[kept].tolist(),
        "y": [plain(expert) for expert in table.experts],
        "hoverongaps": False,
    }
    weights: Json = {
        **shared,
        "z": [brief(row, 3) for row in values],
        "coloraxis": "coloraxis",
        "hovertemplate": told + "weight %{z:.3f}<extra></extra>",
    }
    inactive = np.isnan(values)
    if not inactive.any():
        return [weights]
    shade: Json = {
        **shared,
        "z": [brief(row) for row in np.where(inactive, 0.0, np.nan)],
        "colorscale": [[0, INACTIVE], [1, INACTIVE]],
        "showscale": False,
        "hovertemplate": told + "not active<extra></extra>",
    }
    return [weights, shade]

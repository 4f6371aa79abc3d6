"""Interactive charts of the report, as plotly's JSON."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from driftwolfe.experiments import chart_data
from driftwolfe.experiments.chart_data import Chart, ExpertTable, Line, Panel
from driftwolfe.experiments.figure_style import MARKERS, line_styles
from driftwolfe.experiments.figures import INACTIVE
from driftwolfe.experiments.summary import Summary
from driftwolfe.experiments.tables import RegretRow, spread_text

Json = dict[str, Any]

#: Pixels of a line's width and of an expert's row.
WIDTH, _ROW = 2, 15
#: Pixels between rows, above and below all of them, and of a row of the legend.
_BETWEEN, _ABOVE, _BELOW, _LEGEND = 74, 34, 48, 21
#: The share of the width between columns.
_GAP = 0.1
#: Plotly's names of matplotlib's markers.
_SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x")
SYMBOLS = dict(zip(MARKERS, _SYMBOLS, strict=True))
#: A text that plotly shows unchanged: it reads some tags and entities.
plain = partial(html.escape, quote=False)


def all_charts(summary: Summary, regrets: Sequence[RegretRow], points: int) -> list[Json]:
    """Words and data for every chart that there is something for; at most `points` on a curve.

    What all charts have in common is in page.js.
    """
    made = [
        _line_chart(summary, chart_data.loss_chart(summary), points),
        _line_chart(summary, chart_data.call_chart(summary), points),
        _weight_chart(summary, points),
        _regret_chart(summary, regrets),
        _line_chart(summary, chart_data.scale_chart(summary), points),
    ]
    return [chart for chart in made if chart is not None]


def _page_chart(chart: Chart, traces: list[Json], wide: Json, narrow: Json) -> Json:
    """A chart with a layout for a desk and one for a telephone."""
    source = script_json({"traces": traces, "wide": wide, "narrow": narrow})
    return {**chart._asdict(), "source": source}


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


class Cell(NamedTuple):
    """A pair of axes with their settings."""

    title: str  # in one or two lines
    x: Json  # with a kind that page.js knows
    y: Json
    height: int  # in pixels


def axis_names(place: int) -> Json:
    """The axes of a cell, counted from 0, as traces name them."""
    number = "" if place == 0 else str(place + 1)
    return {"xaxis": f"x{number}", "yaxis": f"y{number}"}


def layout(
    cells: Sequence[Cell],
    columns: int = 1,
    *,
    legend: int,
    left: int = 62,
    drifts: Sequence[int] = (),
    layer: str = "below",
) -> Json:
    """Lay cells out row by row.

    `legend` is its number of rows, `left` the pixels for labels of vertical axes; `drifts` are marked
    by dotted lines ``"above"`` or ``"below"`` the curves.
    """
    starts = range(0, len(cells), columns)
    rows = [max(cell.height for cell in cells[at : at + columns]) for at in starts]
    tops = [0, *accumulate(row + _BETWEEN for row in rows)]
    inner = tops[-1] - _BETWEEN
    above = _ABOVE + legend * _LEGEND
    found: Json = {
        "height": inner + above + _BELOW,
        "margin": {"l": left, "r": 22, "t": above, "b": _BELOW, "pad": 0},
        "showlegend": True,
        "legend": {"y": 1 + 26 / inner},
        "annotations": [],
        "shapes": [],
    }
    width = (1 - _GAP * (columns - 1)) / columns
    for place, cell in enumerate(cells):
        row, column = divmod(place, columns)
        start, upper = column * (width + _GAP), 1 - tops[row] / inner
        lower = max(0.0, upper - cell.height / inner)
        x, y = axis_names(place).values()
        across, up = [start, min(1.0, start + width)], [lower, upper]
        found[f"xaxis{x[1:]}"] = {"domain": across, "anchor": y, **cell.x}
        found[f"yaxis{y[1:]}"] = {"domain": up, "anchor": x, **cell.y}
        if cell.title:
            text = f"<b>{plain(cell.title)}</b>".replace("\n", "<br>")
            found["annotations"].append({"text": text, "x": start, "y": upper})
        found["shapes"] += [
            {"xref": x, "yref": f"{y} domain", "x0": t, "x1": t, "layer": layer} for t in drifts
        ]
    return found


def _rounds(summary: Summary, ticks: int = 7) -> Json:
    return {"kind": "rounds", "range": [0, summary.length], "nticks": ticks}


def _line_chart(summary: Summary, chart: Chart | None, points: int) -> Json | None:
    """Panels side by side, or below each other on a narrow screen."""
    if chart is None:
        return None
    panels = chart.panels
    several, over_c = len(panels) > 1, panels[0].over_c
    cells, traces = [], list[Json]()
    for place, panel in enumerate(panels):
        x = {"kind": "scales"} if over_c else _rounds(summary, 5 if several else 7)
        y: Json = {"kind": "log" if panel.log else "linear", "title": {"text": panel.unit}}
        if panel.high is not None:
            y["range"] = [panel.low, panel.high]
        cells.append(Cell(panel.title, x, y, 260 if several else 300))
        traces += [t for line in panel.lines for t in _line_traces(panel, line, points, place)]
    drifts = summary.drifts if several else ()
    # Labels over c are long.
    wide, narrow = (-(-len(panels[0].lines) // each) for each in ((4, 1) if over_c else (5, 2)))
    return _page_chart(
        chart,
        traces,
        wide=layout(cells, len(panels), legend=wide, drifts=drifts),
        narrow=layout(cells, legend=narrow, drifts=drifts),
    )


def _line_traces(panel: Panel, line: Line, points: int, place: int) -> list[Json]:
    """A mean with its band over rounds, or with error bars and a ring at the chosen c.

    All traces of a method hide together, and the first cell lists them.
    """
    band = line.band if panel.over_c else line.band.thinned(points)
    colour = line.style.colour
    shared: Json = {**axis_names(place), "legendgroup": plain(line.title), "mode": "lines"}
    silent: Json = {**shared, "showlegend": False, "hoverinfo": "skip"}
    mean: Json = {
        **shared,
        "name": plain(line.label),
        "showlegend": place == 0,
        "x": band.x.tolist(),
        "y": brief(band.mean),
        "line": {"color": colour, "width": WIDTH, "dash": dash(line.style.dash)},
        "hovertemplate": "%{y:,.4~g}",
    }
    varies = band.deviation.any()
    if varies:
        mean["customdata"] = brief(band.deviation, 3)
        mean["hovertemplate"] = "%{y:,.4~g} ± %{customdata:,.2~g}"
    if panel.over_c:
        symbol = SYMBOLS[line.style.marker] + ("-open" if line.partial else "")
        mean |= {"mode": "lines+markers", "marker": _marker(symbol, 8, colour)}
        if varies:
            mean["error_y"] = {"array": mean["customdata"], "thickness": 1.2, "width": 3}
        if line.chosen is None:
            return [mean]
        x, y = [mean["x"][line.chosen]], [mean["y"][line.chosen]]
        ring = {"mode": "markers", "marker": _marker("circle-open", 16, colour)}
        return [mean, {**silent, "x": x, "y": y, **ring}]
    if not varies:
        return [mean]
    # Two lines that are not seen, and the colour between them; coarser than the mean.
    coarse = band.thinned(max(2, len(band.x) // 2))
    border: Json = {**silent, "x": coarse.x.tolist(), "line": {"width": 0, "color": colour}}
    red, green, blue = bytes.fromhex(colour[1:])
    fill = {"fill": "tonexty", "fillcolor": f"rgba({red},{green},{blue},0.18)"}
    low = coarse.low(positive=panel.log)
    return [{**border, "y": brief(low, 5)}, {**border, **fill, "y": brief(coarse.high, 5)}, mean]


def _marker(symbol: str, size: int, colour: str) -> Json:
    return {"symbol": symbol, "size": size, "color": colour}


def _regret_chart(summary: Summary, regrets: Sequence[RegretRow]) -> Json | None:
    found, names = chart_data.regret_measures(summary, regrets)
    if not found:
        return None
    style = line_styles(summary.titles)
    labels = {title: plain(name).replace(" (", "<br>(") for title, name in names.items()}
    parts, traces = [], []
    for place, (measure, values) in enumerate(found.items()):
        told = [f"{names[title]} {spread_text(value)}" for title, value in values.items()]
        parts.append(f"{measure}: {', '.join(told)}")
        for title, value in values.items():
            dot: Json = {
                "mode": "markers",
                **axis_names(place),
                "x": brief([value.mean]),
                "y": [labels[title]],
                "name": labels[title],
                "showlegend": False,
                "marker": _marker(SYMBOLS[style[title].marker], 9, style[title].colour),
                "hovertemplate": f"%{{y}}: {spread_text(value)}<extra></extra>",
            }
            if value.deviation:
                bar = {"array": brief([value.deviation], 3), "thickness": 1.4, "width": 4}
                dot["error_x"] = bar
            traces.append(dot)
    chart = Chart(
        "regret",
        "Regret",
        "Dots: mean over seeds; bars: one standard deviation. Dynamic regret: against the "
        "best fixed point of each stretch between drifts. Adaptive regret: the largest over windows "
        "of τ rounds; a lower bound where the trials did not measure all of them.",
        f"Dot charts of regret. {'; '.join(parts)}.",
    )
    return _page_chart(
        chart,
        traces,
        wide=_regret_layout(list(found), list(labels.values()), min(4, len(found))),
        narrow=_regret_layout(list(found), list(labels.values()), 1),
    )


def _regret_layout(measures: list[str], labels: list[str], columns: int) -> Json:
    methods = {"kind": "methods", "categoryarray": labels, "range": [len(labels) - 0.5, -0.5]}
    cells = [
        Cell(
            measure.replace(", ", "\n") if columns > 1 else measure,
            {"kind": "regret"},
            {**methods, "showticklabels": place % columns == 0},
            height=30 * len(labels) + 20,
        )
        for place, measure in enumerate(measures)
    ]
    longest = max(len(line) for label in labels for line in label.split("<br>"))
    found = layout(cells, columns, legend=int(columns > 1), left=min(190, 7 * longest + 22))
    return {**found, "hovermode": "closest", "showlegend": False}


def _weight_chart(summary: Summary, points: int) -> Json | None:
    tables = chart_data.expert_tables(summary)
    if not tables:
        return None
    # The rounds are named in the caption: between maps there is no room.
    across = {**_rounds(summary), "showgrid": False, "title": None}
    cells, heaviest, traces = [], [], list[Json]()
    for place, table in enumerate(tables):
        height = max(70, min(_ROW * len(table.experts), 400))
        experts = {"kind": "experts", "dtick": -(-_ROW * len(table.experts) // height)}
        cells.append(Cell(table.label, across, experts, height))
        last = np.nan_to_num(table.values[:, -1], nan=-1.0)
        heaviest.append(f"{table.label}, {table.experts[last.argmax()]} with {last.max():.2f}")
        traces += _weight_traces(table.thinned(points), place)
    found = layout(cells, legend=1, left=96, drifts=summary.drifts, layer="above")
    inner = found["height"] - found["margin"]["t"] - found["margin"]["b"]
    largest = round(chart_data.largest_weight(tables), 4)
    colours = {"cmin": 0, "cmax": largest, "colorbar": {"y": 1 + 24 / inner}}
    found |= {"hovermode": "closest", "showlegend": False, "coloraxis": colours}
    chart = Chart(
        "weights",
        "Expert weights",
        f"Weights over rounds, {chart_data.seed_list(tables)}. Beige: the expert was not "
        "active. Experts by rising step size, epoch or length of interval.",
        "Heat maps of the weight of each expert over rounds. "
        f"The heaviest experts at the end: {'; '.join(heaviest)}.",
    )
    return _page_chart(chart, traces, wide=found, narrow=found)


def _weight_traces(table: ExpertTable, place: int) -> list[Json]:
    """A map of the weights, and one of where experts were not active."""
    shared: Json = {
        "type": "heatmap",
        **axis_names(place),
        "x": table.rounds.tolist(),
        "y": [plain(expert) for expert in table.experts],
        "hoverongaps": False,
    }
    told = "round %{x:,d}<br>%{y}<br>"
    weights: Json = {
        **shared,
        "z": [brief(row, 3) for row in table.values],
        "coloraxis": "coloraxis",
        "hovertemplate": told + "weight %{z:.3f}<extra></extra>",
    }
    inactive = np.isnan(table.values)
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

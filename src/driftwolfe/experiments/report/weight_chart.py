"""Expert weights."""

from __future__ import annotations

import numpy as np

from driftwolfe.experiments.figures import words
from driftwolfe.experiments.figures.expert_table import ExpertTable, largest
from driftwolfe.experiments.figures.weight_maps import ASLEEP, expert_tables
from driftwolfe.experiments.numbers import brief
from driftwolfe.experiments.report.chart import Chart, Json, plain
from driftwolfe.experiments.report.grid import Cell, axis_names, layout, round_axis
from driftwolfe.experiments.summary import Summary

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
    across = {**round_axis(words.length(summary)), "showgrid": False, "title": None}
    cells = [
        Cell(words.label(summary.chosen[title]), across, _rows(table), height=_height(table))
        for title, table in tables.items()
    ]
    found = layout(cells, 1, legend=1, left=96, drifts=words.drifts(summary), over=True)
    found |= {"hovermode": "closest", "showlegend": False, "coloraxis": _colours(tables, found)}
    seeds = sorted({table.seed for table in tables.values()})
    return Chart(
        name="weights",
        heading="Expert weights",
        caption=f"Weights over rounds, seed {', '.join(map(str, seeds))}. Beige: the expert was not awake. "
        "Experts by rising step size, epoch or length of interval.",
        description=_description(summary, tables),
        traces=[
            trace
            for place, table in enumerate(tables.values())
            for trace in _traces(table.thinned(points), place)
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


def _traces(table: ExpertTable, place: int) -> list[Json]:
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


def _description(summary: Summary, tables: dict[str, ExpertTable]) -> str:
    parts = []
    for title, table in tables.items():
        last = np.nan_to_num(table.values[:, -1], nan=-1.0)
        best = table.experts[int(last.argmax())]
        label = words.label(summary.chosen[title])
        parts.append(f"{label}, {best} with {last.max():.2f}")
    return (
        "Heat maps of the weight of each expert over rounds. "
        f"The heaviest experts at the end: {'; '.join(parts)}."
    )

"""`Cell`: one pair of axes, and how several are laid out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from driftwolfe.experiments.report.chart import Json, plain

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

"""Curves as plotly draws them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from driftwolfe.experiments.figures.band import Band
from driftwolfe.experiments.figures.style import Look
from driftwolfe.experiments.numbers import brief
from driftwolfe.experiments.report.chart import Json, plain
from driftwolfe.experiments.report.grid import axis_names

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
    band: Band, look: Look, label: str, place: int, *, listed: bool, group: str, positive: bool
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
        "line": {"color": look.colour, "width": WIDTH, "dash": dash(look.dash)},
        "hovertemplate": "%{y:,.4~g}",
    }
    if not band.deviation.any():
        return [mean]
    mean["customdata"] = brief(band.deviation, 3)
    mean["hovertemplate"] = "%{y:,.4~g} ± %{customdata:,.2~g}"
    return [*_borders(band, look, shared, positive), mean]


def _borders(band: Band, look: Look, shared: Json, positive: bool) -> list[Json]:
    """Two lines that are not seen, and the colour between them; coarser than the mean."""
    coarse = band.thinned(max(2, len(band.rounds) // 2))
    low = np.maximum(coarse.low, 0.1 * coarse.mean) if positive else coarse.low
    border: Json = {
        **shared,
        "showlegend": False,
        "hoverinfo": "skip",
        "mode": "lines",
        "x": coarse.rounds.tolist(),
        "line": {"width": 0, "color": look.colour},
    }
    fill = {"fill": "tonexty", "fillcolor": _faint(look.colour)}
    return [{**border, "y": brief(low, 5)}, {**border, **fill, "y": brief(coarse.high, 5)}]


def _faint(colour: str) -> str:
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.18)"

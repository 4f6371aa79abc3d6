"""Curves, and the marks on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from driftwolfe.experiments.figures.band import Band
from driftwolfe.experiments.figures.canvas import FAINT
from driftwolfe.experiments.figures.style import Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Markers on a curve.
_MARKS = 6


def draw_band(axis: Axes, band: Band, look: Look, place: int, **line: Any) -> None:
    """A line with a few markers and its band; `place` keeps the markers of methods apart."""
    step = max(1, len(band.rounds) // _MARKS)
    start = min((place * step) // _MARKS % step, len(band.rounds) - 1)
    style: dict[str, Any] = {
        "color": look.colour,
        "linestyle": stroke(look.dash),
        "marker": look.marker,
        "markevery": slice(start, None, step),
        "markeredgewidth": 0.0,
    }
    axis.plot(band.rounds, band.mean, **{**style, **line})
    if band.deviation.any():
        low = band.low if axis.get_yscale() == "linear" else _above_zero(band)
        axis.fill_between(band.rounds, low, band.high, color=look.colour, alpha=0.18, linewidth=0.0)


def _above_zero(band: Band) -> Any:
    """The lower border where the axis has no room for zero."""
    return np.maximum(band.low, 0.1 * band.mean)


def mark_end(axis: Axes, band: Band, look: Look) -> None:
    """Say that a curve was ended before the stream."""
    axis.plot(
        band.rounds[-1:], band.mean[-1:], "x", color=look.colour, markersize=6, markeredgewidth=1.4
    )


def mark_drifts(axis: Axes, rounds: Iterable[int], **line: Any) -> None:
    """Thin dotted lines where the truth changes at once."""
    for t in rounds:
        axis.axvline(
            t, **{"color": FAINT, "linestyle": ":", "linewidth": 0.7, "zorder": 0.5, **line}
        )


def stroke(dash: Sequence[float]) -> Any:
    """A dash as matplotlib wants it."""
    return (0, tuple(dash)) if dash else "-"

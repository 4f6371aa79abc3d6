"""Legends that stand for all panels of a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from driftwolfe.experiments.figures.canvas import FAINT, literal
from driftwolfe.experiments.figures.extras import extra
from driftwolfe.experiments.figures.marks import stroke
from driftwolfe.experiments.figures.style import Look

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

#: Inches of a legend's row.
_ROW = 0.165


def key(look: Look, text: str, **line: Any) -> Line2D:
    """A legend's entry for a method."""
    style: dict[str, Any] = {
        "color": look.colour,
        "linestyle": stroke(look.dash),
        "marker": look.marker,
        "markeredgewidth": 0.0,
        "label": literal(text),
    }
    entry: Line2D = extra("matplotlib.lines").Line2D([], [], **{**style, **line})
    return entry


def drift_key() -> Line2D:
    """A legend's entry for the drifts."""
    entry: Line2D = extra("matplotlib.lines").Line2D(
        [], [], color=FAINT, linestyle=":", linewidth=0.9, label="abrupt change"
    )
    return entry


def legend_below(figure: Figure, entries: Sequence[Line2D]) -> None:
    """One legend for all panels, which become no smaller for it."""
    rows = 1
    while rows < len(entries) and _legend_width(entries, rows) > figure.get_figwidth():
        rows += 1
    figure.set_figheight(figure.get_figheight() + _ROW * rows)
    figure.legend(
        handles=list(entries),
        loc="outside lower center",
        ncols=-(-len(entries) // rows),
        handlelength=3.2,
        columnspacing=1.4,
    )


def legend_beside(figure: Figure, entries: Sequence[Line2D]) -> None:
    """One legend to the right, and the figure at least as high as that."""
    lines = sum(str(entry.get_label()).count("\n") + 1 for entry in entries)
    figure.set_figheight(max(figure.get_figheight(), _ROW * (lines + 2)))
    figure.legend(handles=list(entries), loc="outside right upper", handlelength=3.2)


def _legend_width(entries: Sequence[Line2D], rows: int) -> float:
    """About how many inches it takes with so many rows, filled column by column."""
    lengths = [len(str(entry.get_label())) for entry in entries]
    columns = [lengths[start : start + rows] for start in range(0, len(lengths), rows)]
    return sum(0.062 * max(column) + 0.62 for column in columns)


def in_two_lines(text: str) -> str:
    """A label with what is in brackets below it."""
    return text.replace(" (", "\n(")

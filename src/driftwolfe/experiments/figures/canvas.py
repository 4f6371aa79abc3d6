"""The sheet that figures are drawn on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from driftwolfe.experiments.figures import words
from driftwolfe.experiments.figures.extras import extra
from driftwolfe.experiments.summary import Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Width of a page's text, in inches.
WIDTH = 7.0
INK, FAINT, WARNING = "#222222", "#8c8c8c", "#a33c00"
_SETTINGS = {
    "font.family": "DejaVu Sans",
    "font.size": 7.5,
    "axes.titlesize": 8.0,
    "axes.labelsize": 7.5,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.5,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#666666",
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.6,
    "figure.constrained_layout.h_pad": 0.04,
    "figure.constrained_layout.w_pad": 0.04,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.hashsalt": "driftwolfe",
}


@contextmanager
def print_style() -> Iterator[None]:
    """Fonts, lines and colours for print, within a ``with`` block or a decorated function."""
    with extra("matplotlib").rc_context(_SETTINGS):
        yield


def sheet(summary: Summary, shown: str, height: float, width: float = WIDTH) -> Figure:
    """An empty figure that says what is `shown`, and whether the data are made up."""
    figure: Figure = extra("matplotlib.figure").Figure(
        figsize=(width, height), dpi=100, layout="constrained"
    )
    heading = wrap(f"{words.heading(summary)} · {shown}", int(width / 0.064))
    warning = wrap(words.notice(summary) or "", int(width / 0.073))
    # Blank lines hold the place of the warning, which has a colour of its own.
    lines = literal("\n".join([*heading, *(" " for _ in warning)]))
    title = figure.suptitle(lines, x=0.01, ha="left", va="top", fontsize=7.5, color="#444444")
    if warning:
        _write_warning(figure, title, "\n".join(warning))
    return figure


def _write_warning(figure: Figure, title: Any, warning: str) -> None:
    note = extra("matplotlib.text").Annotation(
        literal(warning),
        xy=(0.0, 0.0),
        xycoords=title,
        va="bottom",
        fontsize=7.5,
        fontweight="bold",
        color=WARNING,
    )
    note.set_in_layout(False)
    figure.add_artist(note)


def literal(text: str) -> str:
    """A text that matplotlib shows as it stands.

    A dollar sign would start maths, and a legend leaves out what starts with an underscore.
    """
    return ("\u200a" if text.startswith("_") else "") + text.replace("$", r"\$")

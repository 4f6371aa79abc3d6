"""The sheet that figures are drawn on."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any

from driftwolfe.experiments.figures import words
from driftwolfe.experiments.figures.extras import extra
from driftwolfe.experiments.figures.print_style import FAINT, INK, WARNING, WIDTH, print_style
from driftwolfe.experiments.summary import Summary
from driftwolfe.terminal import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FAINT", "INK", "WARNING", "WIDTH", "literal", "print_style", "sheet"]


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

    A dollar sign would start maths, a legend leaves out what starts with an underscore, and letters
    that are commands have no place in an SVG file.
    """
    return ("\u200a" if text.startswith("_") else "") + printable(text).replace("$", r"\$")

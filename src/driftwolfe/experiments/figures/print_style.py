"""Fonts, lines and colours of all figures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from driftwolfe.experiments.figures.extras import extra

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

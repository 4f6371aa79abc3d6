"""Style of the figures of these pages, and saving them reproducibly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from driftwolfe.experiments.figure import AMBER, BLUE, GREEN, ORANGE, PINK, SKY, line_styles
from driftwolfe.plot import colours

__all__ = [  # colours of what is no method; those of methods are `colours([...])`
    "AMBER",
    "BLUE",
    "FAINT",
    "GREEN",
    "HERE",
    "INK",
    "ORANGE",
    "PAPER",
    "PINK",
    "SKY",
    "SOFT",
    "arrow",
    "canvas",
    "colours",
    "line_styles",
    "save",
]  # fmt: skip

HERE = Path(__file__).parent
PAPER, INK, SOFT, FAINT = "#fdfdfb", "#222222", "#666666", "#d9d9d4"
matplotlib.rcParams.update(
    {
        "svg.hashsalt": "driftwolfe",
        "svg.fonttype": "path",
        "font.family": "DejaVu Sans",
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.facecolor": PAPER,
        "axes.edgecolor": SOFT,
        "xtick.color": SOFT,
        "ytick.color": SOFT,
        "axes.labelcolor": SOFT,
    }
)


def canvas(width: float, height: float) -> Figure:
    """An empty figure with a light background, readable on light and dark pages."""
    return Figure(figsize=(width, height), layout="constrained", facecolor=PAPER)


def save(figure: Figure, name: str, folder: Path = HERE) -> None:
    """Write the figure as SVG, without a date."""
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})


def arrow(axis: Any, start: Any, end: Any, colour: str, **more: Any) -> None:
    """An arrow from one point to another."""
    style = {"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0, "lw": 1.6} | more
    axis.annotate("", xy=tuple(end), xytext=tuple(start), arrowprops=style)

"""The ratios as a picture: where each lies, and where it must lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.ratio import Ratio
from benchmarks.table import limit_text, number
from driftwolfe.storage import write

#: Colours that people see apart whatever their eyes; shapes say the same again.
LOOKS = {
    True: {"color": "#0072B2", "marker": "o", "label": "limit kept"},
    False: {"color": "#D55E00", "marker": "D", "label": "limit missed"},
    None: {"color": "#888888", "marker": "o", "label": "shown, no limit", "facecolors": "white"},
}
LIMIT = {"color": "black", "marker": "|"}
LINE_HEIGHT = 0.25
TITLES = {
    "floor": "theirs / ours: to the right of the bar is good",
    "ceiling": "ours / theirs: to the left of the bar is good",
}


def plot(ratios: Sequence[Ratio], facts: Mapping[str, Any], folder: Path) -> None:
    """Write results.png and results.svg."""
    sides = {
        "floor": [ratio for ratio in ratios if ratio.at_most is None],
        "ceiling": [ratio for ratio in ratios if ratio.at_most is not None],
    }
    panels = {side: _lines(each) for side, each in sides.items() if each}
    if not panels:
        return
    heights = [len(lines) + 2 for lines in panels.values()]
    figure, axes = plt.subplots(
        len(panels),
        figsize=(10, LINE_HEIGHT * sum(heights) + 1.4),
        height_ratios=heights,
        squeeze=False,
        layout="constrained",
    )
    for axis, (side, lines) in zip(axes[:, 0], panels.items(), strict=True):
        _draw(axis, lines)
        axis.set_title(TITLES[side], loc="left", fontsize=10)
        _beside(axis, -1, 34, "ratio", "#666666")
        _beside(axis, -1, 74, "limit", "#666666")
    figure.legend(handles=_legend(), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    figure.suptitle(_heading(facts), fontsize=9, color="#444444")
    for ending in ("png", "svg"):
        metadata = {"Date": None} if ending == "svg" else {}
        write(
            folder / f"results.{ending}",
            lambda part, metadata=metadata: figure.savefig(part, dpi=150, metadata=metadata),
        )
    plt.close(figure)


def _lines(ratios: Sequence[Ratio]) -> list[Ratio | str]:
    """The ratios, each row under its name."""
    lines: list[Ratio | str] = []
    for ratio in ratios:
        if not lines or lines[-1].row != ratio.row:
            lines.append(ratio.row.replace("_", " "))
        lines.append(ratio)
    return lines


def _draw(axis, lines: Sequence[Ratio | str]) -> None:
    for y, line in enumerate(lines):
        if not isinstance(line, str):
            _draw_ratio(axis, y, line)
    axis.set_xscale("log")
    axis.set_yticks(range(len(lines)), [_label(line) for line in lines], fontsize=8)
    for tick, line in zip(axis.get_yticklabels(), lines, strict=True):
        tick.set_fontweight("bold" if isinstance(line, str) else "normal")
    axis.set_ylim(len(lines) - 0.4, -0.6)
    least, most = axis.get_xlim()
    parts = (1.0, 2.0, 5.0) if most < 2000 * least else (1.0,)
    axis.xaxis.set_major_locator(LogLocator(subs=parts))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.grid(axis="x", which="major", color="#dddddd", linewidth=0.6)
    axis.axvline(1.0, color="#999999", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.tick_params(axis="y", length=0)
    axis.tick_params(axis="x", labelsize=8)
    axis.spines[["top", "right", "left"]].set_visible(False)


def _draw_ratio(axis, y: int, ratio: Ratio) -> None:
    looks = LOOKS[ratio.holds]
    if ratio.limit is not None:
        axis.plot(
            [ratio.limit, ratio.ratio], [y, y], color=looks["color"], linewidth=1.5, alpha=0.5
        )
        axis.scatter(ratio.limit, y, s=70, linewidths=1.8, zorder=3, **LIMIT)
    face = looks.get("facecolors", looks["color"])
    axis.scatter(
        ratio.ratio,
        y,
        s=30,
        marker=looks["marker"],
        facecolors=face,
        edgecolors=looks["color"],
        zorder=4,
    )
    colour = looks["color"] if ratio.holds is False else "#222222"
    _beside(axis, y, 34, number(ratio.ratio), colour)
    _beside(axis, y, 74, limit_text(ratio).replace(">=", "≥").replace("<=", "≤"), colour)


def _beside(axis, y: int, offset: float, text: str, colour: str) -> None:
    """Write beside the panel, right-aligned."""
    axis.annotate(
        text,
        (1.0, y),
        xycoords=("axes fraction", "data"),
        xytext=(offset, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        fontsize=8,
        color=colour,
    )


def _label(line: Ratio | str) -> str:
    return line if isinstance(line, str) else line.name


def _legend() -> list[Line2D]:
    shown = [
        Line2D(
            [],
            [],
            linestyle="none",
            marker=looks["marker"],
            color=looks["color"],
            markerfacecolor=looks.get("facecolors", looks["color"]),
            label=looks["label"],
        )
        for looks in LOOKS.values()
    ]
    return [*shown, Line2D([], [], linestyle="none", markersize=10, label="limit", **LIMIT)]


def _heading(facts: Mapping[str, Any]) -> str:
    parts = (
        f"driftwolfe {facts['driftwolfe']}",
        f"commit {facts['commit']}" if facts["commit"] else None,
        f"{facts['cpu']}, {facts['cores']} cores",
        f"numpy {facts['numpy']}, scipy {facts['scipy']}",
        facts["date"][:10],
    )
    return " · ".join(part for part in parts if part)

"""The figures: time against its floor, host against device, PyTorch against CuPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from benchmarks.gpu.store import Results
from benchmarks.gpu.summary import GAMES, number
from driftwolfe.experiments.figure_style import COLOURS, FAINT, INK, WIDTH, count_axis, print_style
from driftwolfe.storage import write

BLUE, ORANGE = COLOURS[:2]
PALE = "#c9c9c9"
LIBRARIES = {"torch": ("PyTorch", BLUE), "cupy": ("CuPy", ORANGE)}
METADATA: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None}}
#: Inches that two bars and the space beside them take.
LINE = 0.3


def draw(results: Results, folder: Path) -> None:
    """Write all figures that there are results for."""
    for name, (section, _, make) in FIGURES.items():
        if section in results:
            _save(make(results[section]), folder / "figures", name)


@print_style()
def _save(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure as PNG and SVG, each whole or not at all."""
    for ending, metadata in METADATA.items():
        write(
            folder / f"{name}.{ending}",
            lambda part, metadata=metadata: figure.savefig(part, metadata=metadata),
        )


def _sheet(found: Mapping[str, Any], title: str, height: float) -> Figure:
    figure = Figure(figsize=(WIDTH, height), dpi=200, layout="constrained")
    heading = f"{title} · {found['made']['device']}"
    figure.suptitle(heading, x=0.01, ha="left", va="top", fontsize=7.5, color="#444444")
    return figure


@print_style()
def floors(found: Mapping[str, Any]) -> Figure:
    """Device time by kind of work, beside the least that memory allows."""
    kinds = list(dict.fromkeys(kind for game in found["games"].values() for kind in game["kinds"]))
    lines = len(kinds) + 1
    figure = _sheet(
        found, "milliseconds a projection, and the least that memory allows", LINE * lines + 0.9
    )
    axes = figure.subplots(1, len(GAMES), sharey=True)
    for axis, (name, title) in zip(axes, GAMES.items(), strict=True):
        game = found["games"][name]
        parts = [game["kinds"].get(kind, {"device_ms": 0.0, "floor_ms": 0.0}) for kind in kinds]
        floor = [part["floor_ms"] for part in parts]
        took = [*(part["device_ms"] for part in parts), game["wall_ms"]]
        _paired(axis, [took, [*floor, sum(floor)]], [BLUE, PALE], ["time", "floor"])
        axis.set_title(title, loc="left")
        axis.set_xlim(0.0, 1.22 * max(took))
    axes[0].set_yticks(range(lines), [*kinds, "all, by the wall clock"])
    axes[0].set_ylim(lines - 0.4, -0.6)
    _legend(figure, axes[0])
    return figure


@print_style()
def crossover(found: Mapping[str, Any]) -> Figure:
    """Host and device over size: single projections, and rounds of vectors where they are there."""
    panels = [("projections", f"one projection to rank {found['rank']}", "side length m = n")]
    if found["rounds"]:
        panels.append(("rounds", "a round of POLD on the l1 ball", "length of vectors d"))
    figure = _sheet(found, "milliseconds, two cores of the host against the device", 3.0)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (key, title, label) in zip(axes, panels, strict=True):
        _lines(axis, found[key])
        axis.set(xlabel=label, ylabel="milliseconds")
        axis.set_title(title, loc="left")
    return figure


def _lines(axis: Axes, points: Sequence[Mapping[str, float]]) -> None:
    """Two lines, each with its name at its end."""
    axis.set(xscale="log", yscale="log")
    sizes = [point["size"] for point in points]
    looks = {"host_ms": ("two cores", ORANGE, "s"), "device_ms": ("device", BLUE, "o")}
    for column, (name, colour, marker) in looks.items():
        values = [point[column] for point in points]
        axis.plot(sizes, values, color=colour, marker=marker, markeredgewidth=0.0)
        place = {"xytext": (6, 0), "textcoords": "offset points", "va": "center"}
        axis.annotate(name, (sizes[-1], values[-1]), color=colour, fontweight="bold", **place)
    axis.set_xlim(right=max(sizes) * (max(sizes) / min(sizes)) ** 0.3)
    axis.set_xticks(sizes, [f"{size:,}" for size in sizes], rotation=45, ha="right")
    axis.xaxis.set_minor_locator(NullLocator())
    count_axis(axis, "y")


@print_style()
def libraries(found: Mapping[str, Any]) -> Figure:
    """Every primitive by both libraries."""
    rows, names = found["milliseconds"], list(found["versions"])
    figure = _sheet(found, "milliseconds, median of 15", LINE * len(rows) + 0.9)
    axis = figure.subplots()
    values = [[row[name] for row in rows] for name in names]
    titles = [f"{LIBRARIES[name][0]} {found['versions'][name]}" for name in names]
    _paired(axis, values, [LIBRARIES[name][1] for name in names], titles)
    axis.set_xscale("log")
    axis.set_xlim(0.6 * np.min(values), 2.0 * np.max(values))
    count_axis(axis, "x")
    axis.set_yticks(range(len(rows)), [row["name"] for row in rows])
    axis.set_ylim(len(rows) - 0.4, -0.6)
    _legend(figure, axis)
    return figure


def _paired(
    axis: Axes, values: Sequence[Sequence[float]], colours: Sequence[str], labels: Sequence[str]
) -> None:
    """Horizontal bars, those of one line below each other, each with its number."""
    height = 0.8 / len(values)
    for i, (each, colour, label) in enumerate(zip(values, colours, labels, strict=True)):
        places = np.arange(len(each)) - 0.4 + height * (i + 0.5)
        bars = axis.barh(places, each, 0.9 * height, color=colour, label=label)
        texts = [number(value) for value in each]
        axis.bar_label(bars, texts, padding=2, fontsize=6, color=INK)
    axis.grid(axis="y", visible=False)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_color(FAINT)


def _legend(figure: Figure, axis: Axes) -> None:
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=len(labels))


#: Every figure's section, title and function.
FIGURES: dict[str, tuple[str, str, Callable[[Mapping[str, Any]], Figure]]] = {
    "floors": ("kernels", "Time against the least that memory allows", floors),
    "crossover": ("crossover", "Two cores against the device", crossover),
    "libraries": ("libraries", "PyTorch against CuPy", libraries),
}

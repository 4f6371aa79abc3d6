"""The figures, and the pages around them: summary.md and a first README.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from benchmarks.gpu.tables import GAMES, SECTIONS, Results, part
from benchmarks.output import new_figure, save_figure
from benchmarks.output import short_number as number
from driftwolfe.experiments.figure import COLOURS, FAINT, INK, count_axis, print_style
from driftwolfe.storage import write_text

BLUE, ORANGE = COLOURS[:2]
PALE = "#c9c9c9"
LIBRARIES = {"torch": ("PyTorch", BLUE), "cupy": ("CuPy", ORANGE)}
#: Inches per pair of bars.
LINE = 0.3


def draw(results: Results, folder: Path) -> None:
    """Write every figure that has results."""
    for name, (section, _, make) in FIGURES.items():
        if section in results:
            with print_style():
                save_figure(make(results[section]), folder / "figures", name)


def _sheet(found: Mapping[str, Any], title: str, height: float) -> Figure:
    return new_figure(f"{title} · {found['made']['device']}", height)


@print_style()
def floors(found: Mapping[str, Any]) -> Figure:
    """Device time by kind of work, beside its floor."""
    kinds = list(dict.fromkeys(kind for game in found["games"].values() for kind in game["kinds"]))
    lines = len(kinds) + 1
    figure = _sheet(
        found, "milliseconds per projection, and the floor of memory bandwidth", LINE * lines + 0.9
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
    """Host and device over size: single projections, and rounds on vectors."""
    panels = (
        ("projections", f"one projection to rank {found['rank']}", "side length m = n"),
        ("rounds", "one round of POLD on the l1 ball", "length of vectors d"),
    )
    figure = _sheet(found, "milliseconds, two cores of the host against the device", 3.0)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (key, title, label) in zip(axes, panels, strict=True):
        _lines(axis, found[key])
        axis.set(xlabel=label, ylabel="milliseconds")
        axis.set_title(title, loc="left")
    return figure


def _lines(axis: Axes, points: Sequence[Mapping[str, float]]) -> None:
    """Two lines, labelled at their ends."""
    axis.set(xscale="log", yscale="log")
    sizes = [point["size"] for point in points]
    styles = {"host_ms": ("two cores", ORANGE, "s"), "device_ms": ("device", BLUE, "o")}
    for column, (name, colour, marker) in styles.items():
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
    """Every primitive in both libraries."""
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
    """Grouped horizontal bars with their numbers."""
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


#: Section, title and function of every figure.
FIGURES: dict[str, tuple[str, str, Callable[[Mapping[str, Any]], Figure]]] = {
    "floors": ("kernels", "Time against the floor of memory bandwidth", floors),
    "crossover": ("crossover", "Two cores against the device", crossover),
    "libraries": ("libraries", "PyTorch against CuPy", libraries),
}


HEAD = """# What a GPU brings: all numbers

Made by `python -m benchmarks.gpu` and its option `--draw`; all numbers are in results.json. Times are
medians, from an idle device to an idle device. A floor is the time to read and write the bytes that an
operation must move, at the speed at which the device copies its memory.
"""
README = """# What a GPU brings

Measured on {devices} by

```
python -m benchmarks.gpu
python -m benchmarks.gpu --draw
```

`results.json` holds all numbers, [summary.md](summary.md) all tables.

{figures}
"""


def write_pages(results: Results, folder: Path) -> None:
    """Write summary.md, and README.md only if there is none, since people edit it."""
    parts = [part(section, results) for section in SECTIONS if section in results]
    write_text(folder / "summary.md", "\n".join([HEAD, *parts]))
    page = folder / "README.md"
    if not page.exists():
        write_text(page, _readme(results))


def _readme(results: Results) -> str:
    devices = sorted({section["made"]["device"] for section in results.values()})
    shown = [
        f"![{title}](figures/{name}.png)"
        for name, (section, title, _) in FIGURES.items()
        if section in results
    ]
    return README.format(devices=" and ".join(devices), figures="\n".join(shown)).rstrip() + "\n"

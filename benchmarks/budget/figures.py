"""The figures: regret over linear minimisations, and regret between its bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.budget.store import Record
from benchmarks.budget.streams import SETS
from driftwolfe.experiments.figure_style import (
    FAINT,
    INK,
    WIDTH,
    LineStyle,
    count_axis,
    line_styles,
    print_style,
    stroke,
)
from driftwolfe.storage import write

LEARNERS = ("POLD", "POLA", "BOGD_IP", "OneOracleAder", "OnlineFrankWolfe")
LOOKS = line_styles(LEARNERS)
PANELS = {
    "static_regret": "against the best fixed point",
    "dynamic_regret": "against the moving truth",
    "window_regret": "worst window",
}
#: Lines of the games on ratings, and what they are called.
RATED: dict[str, tuple[Any, str]] = {
    "own c": (":", "corrective, c = D/G"),
    "corrective": ("-", "method corrective, c = 1e4"),
    "block": ("--", "method block, c = 1e4"),
    "one a round": ("-", ""),
}
#: Where games with fewer calls are drawn: the axis has no room for none.
FEWEST = 20
METADATA: dict[str, dict[str, Any]] = {"png": {"Software": None}, "svg": {"Date": None}}


def draw(records: Sequence[Record], folder: Path, sets: Iterable[str] = SETS) -> None:
    """Write all figures that there are records for."""
    for name in sets:
        mine = [each for each in records if each.get("part") == "sets" and each["stream"] == name]
        if mine:
            save(regret_panels(name, mine), folder / "figures", name.replace(" ", "-"))
    rated = [each for each in records if each.get("part") == "ratings"]
    save(rating_panels(rated), folder / "figures", "movielens")
    bounded = [each for each in records if each.get("part") == "bounds"]
    save(bound_panels(bounded), folder / "figures", "bounds")


@print_style()
def save(figure: Figure, folder: Path, name: str) -> None:
    """Write a figure as PNG and SVG, each whole or not at all."""
    figure.get_layout_engine().execute(figure)
    figure.set_layout_engine("none")  # all has found its place
    for ending, metadata in METADATA.items():
        write(
            folder / f"{name}.{ending}",
            lambda part, metadata=metadata: figure.savefig(part, metadata=metadata),
        )


@print_style()
def regret_panels(name: str, records: Sequence[Record]) -> Figure:
    """Three regrets over the linear minimisations that were made in all."""
    rounds, seeds = records[0]["rounds"], len({record["seed"] for record in records})
    many = f" · mean of {seeds} seeds, bars from least to most" if seeds > 1 else ""
    title = f"{SETS[name]} · {rounds:,} rounds{many}"
    figure = _sheet(title, 3.1)
    axes = figure.subplots(1, 3)
    for axis, (column, words) in zip(axes, PANELS.items(), strict=True):
        axis.set_xscale("log")
        if column != "static_regret":
            axis.set_yscale("log")
        for learner in LEARNERS:
            mine = [record for record in records if record["learner"] == learner]
            _draw_learner(axis, mine, column, LOOKS[learner])
        axis.set_title(words, loc="left")
        axis.set_xlabel("linear minimisations in all")
        _thousands(axis)
        count_axis(axis, "y")
    axes[0].axhline(0.0, color=FAINT, linewidth=0.8, zorder=0.9)
    axes[0].set_ylabel("regret")
    _label_ends(axes[-1], records, "window_regret")
    shown = {record["kind"] for record in records}
    figure.legend(
        handles=_kinds(shown), loc="outside lower left", ncols=len(shown), handlelength=2.2
    )
    return figure


def _draw_learner(axis: Axes, records: Sequence[Record], column: str, look: LineStyle) -> None:
    """Lines over budgets; what has no calls to show is a level line."""
    within = _points(records, ("budget", "one a round"), column)
    free = _points(records, ("unlimited",), column)
    ink: dict[str, Any] = {"color": look.colour, "marker": look.marker, "markeredgewidth": 0.0}
    if within:
        axis.plot(*_xy(within), **ink)
        for x, _, low, high in within:
            axis.plot([x, x], [low, high], color=look.colour, linewidth=0.7)
    if free:
        axis.plot(*_xy([*within[-1:], *free]), color=look.colour, linestyle=":", linewidth=0.9)
        hollow = {"markerfacecolor": "white", "markeredgewidth": 1.0, "markersize": 4.5}
        axis.plot(*_xy(free), **{**ink, **hollow}, linestyle="none")
    if even := _points(records, ("even",), column):
        axis.plot(*_xy(even), **ink, linestyle=stroke((3.0, 1.5)), linewidth=0.9, markersize=2.5)
    certified = _points(records, ("certified",), column)
    if certified and column != "static_regret":
        x, y = _xy(certified)
        axis.plot(
            np.maximum(x, FEWEST), y, "x", color=look.colour, markersize=3.5, markeredgewidth=0.9
        )
    for _, level, _, _ in _points(records, ("exact",), column):
        axis.axhline(level, color=look.colour, linewidth=0.6, linestyle=(0, (1, 3)), zorder=0.8)


def _points(records: Sequence[Record], kinds: Sequence[str], column: str) -> list[tuple]:
    """Calls, and mean, least and largest regret over seeds, by budget."""
    found: dict[Any, list[Record]] = {}
    for record in records:
        if record["kind"] in kinds:
            found.setdefault(record["budget"] or np.inf, []).append(record)
    points = []
    for _, each in sorted(found.items()):
        values = [record[column] for record in each]
        calls = float(np.mean([record["lmo_calls"] for record in each]))
        points.append((calls, float(np.mean(values)), min(values), max(values)))
    return points


def _xy(points: Sequence[tuple]) -> tuple[list[float], list[float]]:
    return [point[0] for point in points], [point[1] for point in points]


def _label_ends(axis: Axes, records: Sequence[Record], column: str) -> None:
    """Names beside the panel, as high as their lines end, and moved apart where they would meet."""
    ends = {}
    for learner in LEARNERS:
        mine = [record for record in records if record["learner"] == learner]
        points = _points(mine, ("unlimited",), column) or _points(
            mine, ("budget", "one a round"), column
        )
        if points:
            ends[learner] = points[-1][:2]
    _label_beside(axis, {name: (end, LOOKS[name].colour) for name, end in ends.items()})


def _label_beside(axis: Axes, ends: Mapping[str, tuple[tuple[float, float], str]]) -> None:
    """Write each name beside the panel, at the height of its point, in its colour."""
    axis.figure.get_layout_engine().execute(axis.figure)
    into = axis.transAxes.inverted()
    places = {
        name: into.transform(axis.transData.transform(end)) for name, (end, _) in ends.items()
    }
    order = sorted(places, key=lambda name: places[name][1])
    levels = _apart([places[name][1] for name in order], 0.075)
    for name, level in zip(order, levels, strict=True):
        colour = ends[name][1]
        axis.annotate(
            name,
            xy=tuple(places[name]),
            xytext=(1.05, level),
            xycoords="axes fraction",
            textcoords="axes fraction",
            va="center",
            color=colour,
            fontweight="bold",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.4, "relpos": (0, 0.5)},
        )


def _apart(levels: Sequence[float], least: float) -> list[float]:
    """Rising numbers, moved so that neighbours are at least so far apart and all stay below 1."""
    moved: list[float] = []
    for level in levels:
        moved.append(max(level, moved[-1] + least) if moved else level)
    for i in reversed(range(len(moved))):
        moved[i] = min(moved[i], (moved[i + 1] - least) if i + 1 < len(moved) else 1.0)
    return moved


def _kinds(shown: set[str]) -> list[Line2D]:
    ink: dict[str, Any] = {"color": INK, "markeredgewidth": 0.0}
    keys = {
        "budget": Line2D([], [], **ink, marker="o", label="within a budget"),
        "even": Line2D(
            [],
            [],
            **ink,
            marker="o",
            markersize=2.5,
            linestyle=stroke((3.0, 1.5)),
            linewidth=0.9,
            label="even schedule",
        ),
        "unlimited": Line2D(
            [], [], color=INK, marker="o", markerfacecolor="white", linestyle=":", label="no limit"
        ),
        "certified": Line2D(
            [],
            [],
            color=INK,
            marker="x",
            linestyle="none",
            label="certified tuning",
        ),
        "exact": Line2D(
            [], [], color=INK, linestyle=(0, (1, 3)), linewidth=0.6, label="exact projections"
        ),
    }
    return [line for kind, line in keys.items() if kind in shown]


def _thousands(axis: Axes) -> None:
    """Powers of ten, as short as they can be."""
    axis.xaxis.set_major_locator(LogLocator())
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value / 1000:g}k" if value >= 1000 else f"{value:g}")
    )


def _sheet(title: str, height: float) -> Figure:
    figure = Figure(figsize=(WIDTH, height), dpi=200, layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", va="top", fontsize=7.5, color="#444444")
    return figure


@print_style()
def rating_panels(records: Sequence[Record]) -> Figure:
    """Loss a rating over linear minimisations and over seconds."""
    rounds = records[0]["rounds"]
    figure = _sheet(f"{records[0]['stream']} · {rounds:,} rounds of 100 ratings", 3.1)
    axes = figure.subplots(1, 2, sharey=True)
    columns = {"lmo_calls": "linear minimisations in all", "seconds": "seconds"}
    for axis, (column, words) in zip(axes, columns.items(), strict=True):
        axis.set_xscale("log")
        ends = {}
        for learner in LEARNERS:
            for kind in RATED:
                end = _draw_rated(axis, records, learner, kind, column)
                ends.update({learner: (end, LOOKS[learner].colour)} if end else {})
        for level in (each["loss_a_rating"] for each in records if each["kind"] == "zero"):
            axis.axhline(level, color=INK, linewidth=0.8, zorder=0.9)
            if column == "seconds":
                ends["learning nothing"] = ((axis.get_xlim()[1], level), INK)
        axis.set_xlabel(words)
        _thousands(axis)
    axes[0].set_ylabel("loss a rating")
    _label_beside(axes[-1], ends)
    handles = [Line2D([], [], color=INK, linestyle=s, label=w) for s, w in RATED.values() if w]
    hollow: dict[str, Any] = {"marker": "o", "markerfacecolor": "white", "linestyle": "none"}
    handles.append(Line2D([], [], color=INK, **hollow, label="block, no limit"))
    figure.legend(handles=handles, loc="outside lower left", ncols=len(handles), handlelength=2.4)
    return figure


def _draw_rated(
    axis: Axes, records: Sequence[Record], learner: str, kind: str, column: str
) -> tuple[float, float] | None:
    """A line over budgets; return its end."""
    mine = [each for each in records if each["learner"] == learner and each["kind"] == kind]
    mine.sort(key=lambda each: each["budget"] or np.inf)
    if not mine:
        return None
    look = LOOKS[learner]
    x, y = [each[column] for each in mine], [each["loss_a_rating"] for each in mine]
    ink: dict[str, Any] = {"color": look.colour, "marker": look.marker}
    axis.plot(x, y, **ink, linestyle=RATED[kind][0], markeredgewidth=0.0)
    if mine[-1]["budget"] is None:
        axis.plot(x[-1:], y[-1:], **ink, markerfacecolor="white", markersize=4.5)
    return x[-1], y[-1]


@print_style()
def bound_panels(records: Sequence[Record]) -> Figure:
    """Regret over rounds, between what no learner can beat and what each is sure of."""
    title = (
        "an oracle that resists · G = R = 1 · b linear minimisations a round · markers: measured"
    )
    figure = _sheet(title, 3.2)
    # The panel with names beside it comes last.
    budgets = sorted({record["budget"] for record in records}, key=lambda b: (b == 1.0, b))
    axes = figure.subplots(1, len(budgets), sharey=True, squeeze=False, width_ratios=[1, 1, 1.5])[0]
    for axis, budget in zip(axes, budgets, strict=True):
        axis.set(xscale="log", yscale="log", xlabel="rounds T")
        axis.set_title(f"b = {budget:g}", loc="left")
        ends = _draw_bounds(axis, [record for record in records if record["budget"] == budget])
        _thousands(axis)
        count_axis(axis, "y")
    axes[0].set_ylabel("static regret / T$^{3/4}$")
    _label_beside(axes[-1], ends)
    return figure


def _draw_bounds(axis: Axes, records: Sequence[Record]) -> dict[str, Any]:
    """Draw the games of one budget; return what to write at which line's end."""
    ends: dict[str, Any] = {}
    titles = list(dict.fromkeys(record["title"] for record in records))
    for title in titles:
        mine = sorted((r for r in records if r["title"] == title), key=lambda r: r["rounds"])
        T, look = np.array([each["rounds"] for each in mine]), LOOKS[mine[0]["learner"]]
        scaled = {
            column: np.array([each[column] for each in mine]) / T**0.75
            for column in ("bound", "static_regret", "guarantee")
        }
        even = mine[0]["kind"] == "even"
        axis.plot(T, scaled["bound"], color=look.colour, linestyle="--" if even else "-", lw=0.9)
        face = "white" if even else look.colour
        dots: dict[str, Any] = {"marker": look.marker, "markerfacecolor": face, "ms": 3.2}
        axis.plot(T, scaled["static_regret"], color=look.colour, linestyle="none", mew=0.6, **dots)
        ends[f"bound of {title}"] = ((T[-1], scaled["bound"][-1]), look.colour)
    axis.plot(T, scaled["guarantee"], color=INK, linewidth=1.4)
    ends["no learner does better"] = ((T[-1], scaled["guarantee"][-1]), INK)
    return ends

"""summary.md and the figures: regret over LMO calls, and regret between its bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.budget.games import TITLES, ZERO, Record
from benchmarks.budget.streams import SETS
from benchmarks.output import markdown, new_figure, save_figure, short_number
from driftwolfe.experiments.figure import (
    FAINT,
    INK,
    LineStyle,
    count_axis,
    line_styles,
    print_style,
)

# -- tables; every row has a unique name, so that pages can quote it -----------------------------------

#: Order of the rows of one learner.
KINDS = (
    "one a round",
    "budget",
    "corrective",
    "own c",
    "block",
    "cached",
    "unlimited",
    "exact",
    "even",
    "certified",
)

HEAD = """# Regret against linear minimisations: all numbers

Made by `python -m benchmarks.budget`; every game is in results.json. What the rows mean and show:
[README.md](README.md). Mean ± standard deviation of three seeds; without ±, one seed.
"""


def summary(records: Sequence[Record]) -> str:
    """All tables of summary.md."""
    parts = [HEAD]
    for name, words in SETS.items():
        chosen = _part(records, "sets", name)
        if chosen:
            parts += [f"## {name.capitalize()}: {words}", _set_table(name, chosen)]
    parts += ["## MovieLens 100K", _rating_table(_part(records, "ratings"))]
    parts += ["## Known vertices tried first", _lazy_table(_part(records, "lazy"))]
    parts += ["## Against the resisting oracle", _bound_table(_part(records, "bounds"))]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def describe(record: Record) -> str:
    """A learner and its options in words."""
    kind, budget, options = record["kind"], record["budget"], record["options"]
    words = [record["learner"]]
    if kind == "zero":
        return record["learner"]
    if kind == "lazy":
        return f"{words[0]}, {options['cache']} known vertices"
    words += [kind] if kind in ("corrective", "block", "even", "certified", "own c") else []
    words += [f"{options['cache'] or 'no'} cached vertices"] if kind == "cached" else []
    words += ["exact projections"] if kind == "exact" else []
    words += [f"{budget:g} per round"] if budget else ["no limit"] if kind != "exact" else []
    return ", ".join(words)


def grouped(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Records by setting, in the order of the tables."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(describe(record), []).append(record)
    return dict(sorted(found.items(), key=lambda item: _order(item[1][0])))


def _order(record: Record) -> tuple[int, int, float]:
    kind, budget = record["kind"], record["budget"]
    place = KINDS.index(kind) if kind in KINDS else 0
    return [*TITLES, ZERO].index(record["learner"]), place, budget or math.inf


def _part(records: Iterable[Record], part: str, stream: str | None = None) -> list[Record]:
    chosen = [record for record in records if record.get("part") == part]
    return [record for record in chosen if stream in (None, record["stream"])]


def _set_table(name: str, records: Sequence[Record]) -> str:
    head = ["game", "LMO calls", "most in one round", "static regret", "dynamic regret"]
    rows = [[*head, "worst window", "seconds"]]
    for words, each in grouped(records).items():
        row = [f"{name}: {words}", _mean(each, "lmo_calls")]
        row.append(f"{max(record['worst_round'] for record in each):,}")
        regrets = ("static_regret", "dynamic_regret", "window_regret")
        row += [_spread(each, column) for column in regrets]
        rows.append([*row, short_number(np.mean([record["seconds"] for record in each]))])
    return markdown(rows)


def _rating_table(records: Sequence[Record]) -> str:
    rows = [["game", "loss per rating", "LMO calls", "most in one round", "seconds"]]
    for words, (record,) in grouped(records).items():
        row = [f"MovieLens: {words}", f"{record['loss_a_rating']:.3f}"]
        row += [f"{record['lmo_calls']:,}", f"{record['worst_round']:,}"]
        rows.append([*row, short_number(record["seconds"])])
    return markdown(rows)


def _lazy_table(records: Sequence[Record]) -> str:
    rows = [["game", "rounds", "seeds", "LMO calls", "dynamic regret", "seconds"]]
    for name in SETS:
        mine = [record for record in records if record["stream"] == name]
        for words, each in grouped(mine).items():
            row = [f"{name}: {words}", f"{each[0]['rounds']:,}", str(len(each))]
            row += [_mean(each, "lmo_calls"), _spread(each, "dynamic_regret")]
            rows.append([*row, short_number(np.mean([record["seconds"] for record in each]))])
    return markdown(rows)


def _bound_table(records: Sequence[Record]) -> str:
    rows = [["game", "LMO calls", "lower bound", "regret", "upper bound", "regret / lower bound"]]
    for record in records:
        name = f"b = {record['budget']:g}, T = {record['rounds']:,}: {record['title']}"
        row = [name, f"{record['lmo_calls']:,}"]
        row += [short_number(record[c]) for c in ("guarantee", "static_regret", "bound")]
        rows.append([*row, f"{record['static_regret'] / record['guarantee']:.3f}"])
    return markdown(rows)


def _mean(records: Sequence[Record], column: str) -> str:
    return f"{np.mean([record[column] for record in records]):,.0f}"


def _spread(records: Sequence[Record], column: str) -> str:
    values = np.array([record[column] for record in records])
    digits = 0 if abs(values.mean()) >= 1000 else 1
    mean = f"{values.mean():,.{digits}f}"
    return mean if values.size == 1 else f"{mean} ± {values.std(ddof=1):,.{digits}f}"


# -- figures ------------------------------------------------------------------------------------------

LEARNERS = ("POLAR", "POLD", "POLA", "BOGD_IP", "OneOracleAder", "OnlineFrankWolfe")
STYLES = line_styles(LEARNERS)
PANELS = {
    "static_regret": "against the best fixed point",
    "dynamic_regret": "against the moving truth",
    "window_regret": "worst window",
}
#: Line style and label of the games on ratings, by kind.
RATED: dict[str, tuple[Any, str]] = {
    "own c": (":", "corrective, c = D/G"),
    "corrective": ("-", "method corrective, c = 1e4"),
    "block": ("--", "method block, c = 1e4"),
    "one a round": ("-", ""),
}
#: Games with fewer calls are drawn here: a logarithmic axis has no zero.
FEWEST = 20


def draw(records: Sequence[Record], folder: Path, sets: Iterable[str] = SETS) -> None:
    """Write every figure that has records."""
    for name in sets:
        mine = [each for each in records if each.get("part") == "sets" and each["stream"] == name]
        if mine:
            _save(regret_panels(name, mine), folder, name.replace(" ", "-"))
    rated = [each for each in records if each.get("part") == "ratings"]
    _save(rating_panels(rated), folder, "movielens")
    bounded = [each for each in records if each.get("part") == "bounds"]
    _save(bound_panels(bounded), folder, "bounds")


@print_style()
def _save(figure: Figure, folder: Path, name: str) -> None:
    figure.get_layout_engine().execute(figure)
    figure.set_layout_engine("none")  # all positions are final
    save_figure(figure, folder / "figures", name)


@print_style()
def regret_panels(name: str, records: Sequence[Record]) -> Figure:
    """Three kinds of regret over the total number of LMO calls."""
    rounds, seeds = records[0]["rounds"], len({record["seed"] for record in records})
    many = f" · mean of {seeds} seeds, bars from minimum to maximum" if seeds > 1 else ""
    figure = new_figure(f"{SETS[name]} · {rounds:,} rounds{many}", 3.1)
    axes = figure.subplots(1, 3)
    for axis, (column, words) in zip(axes, PANELS.items(), strict=True):
        axis.set_xscale("log")
        if column != "static_regret":
            axis.set_yscale("log")
        for learner in LEARNERS:
            mine = [record for record in records if record["learner"] == learner]
            _draw_learner(axis, mine, column, STYLES[learner])
        axis.set_title(words, loc="left")
        axis.set_xlabel("LMO calls in total")
        _thousands(axis)
        count_axis(axis, "y")
    axes[0].axhline(0.0, color=FAINT, linewidth=0.8, zorder=0.9)
    axes[0].set_ylabel("regret")
    _label_ends(axes[-1], records, "window_regret")
    keys = _kinds({record["kind"] for record in records})
    figure.legend(handles=keys, loc="outside lower left", ncols=len(keys), handlelength=2.2)
    return figure


def _draw_learner(axis: Axes, records: Sequence[Record], column: str, style: LineStyle) -> None:
    """Lines over budgets; exact projections, which make no calls, are level lines."""
    within = _points(records, ("budget", "one a round"), column)
    free = _points(records, ("unlimited",), column)
    ink: dict[str, Any] = {"color": style.colour, "marker": style.marker, "markeredgewidth": 0.0}
    if within:
        axis.plot(*_xy(within), **ink)
        for x, _, low, high in within:
            axis.plot([x, x], [low, high], color=style.colour, linewidth=0.7)
    if free:
        axis.plot(*_xy([*within[-1:], *free]), color=style.colour, linestyle=":", linewidth=0.9)
        hollow = {"markerfacecolor": "white", "markeredgewidth": 1.0, "markersize": 4.5}
        axis.plot(*_xy(free), **{**ink, **hollow}, linestyle="none")
    if even := _points(records, ("even",), column):
        axis.plot(*_xy(even), **ink, linestyle=(0, (3.0, 1.5)), linewidth=0.9, markersize=2.5)
    certified = _points(records, ("certified",), column)
    if certified and column != "static_regret":
        x, y = _xy(certified)
        axis.plot(
            np.maximum(x, FEWEST), y, "x", color=style.colour, markersize=3.5, markeredgewidth=0.9
        )
    for _, level, _, _ in _points(records, ("exact",), column):
        axis.axhline(level, color=style.colour, linewidth=0.6, linestyle=(0, (1, 3)), zorder=0.8)


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
    """Write learners beside the panel where their lines end."""
    ends = {}
    for learner in LEARNERS:
        mine = [record for record in records if record["learner"] == learner]
        points = _points(mine, ("unlimited",), column) or _points(
            mine, ("budget", "one a round"), column
        )
        if points:
            ends[learner] = points[-1][:2]
    _label_beside(axis, {name: (end, STYLES[name].colour) for name, end in ends.items()})


def _label_beside(axis: Axes, ends: Mapping[str, tuple[tuple[float, float], str]]) -> None:
    """Write each name beside the panel at the height of its point, moved apart if they overlap."""
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
    """Sorted numbers, moved so that neighbours differ by at least `least` and none exceeds 1."""
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
            linestyle=(0, (3.0, 1.5)),
            linewidth=0.9,
            label="even schedule",
        ),
        "unlimited": Line2D(
            [], [], color=INK, marker="o", markerfacecolor="white", linestyle=":", label="no limit"
        ),
        "certified": Line2D(
            [], [], color=INK, marker="x", linestyle="none", label="certified tuning"
        ),
        "exact": Line2D(
            [], [], color=INK, linestyle=(0, (1, 3)), linewidth=0.6, label="exact projections"
        ),
    }
    return [line for kind, line in keys.items() if kind in shown]


def _thousands(axis: Axes) -> None:
    """Label powers of ten as 10, 100, 1k, ..."""
    axis.xaxis.set_major_locator(LogLocator())
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value / 1000:g}k" if value >= 1000 else f"{value:g}")
    )


@print_style()
def rating_panels(records: Sequence[Record]) -> Figure:
    """Loss per rating over LMO calls and over seconds."""
    rounds = records[0]["rounds"]
    figure = new_figure(f"{records[0]['stream']} · {rounds:,} rounds of 100 ratings", 3.1)
    axes = figure.subplots(1, 2, sharey=True)
    columns = {"lmo_calls": "LMO calls in total", "seconds": "seconds"}
    for axis, (column, words) in zip(axes, columns.items(), strict=True):
        axis.set_xscale("log")
        ends = {}
        for learner in LEARNERS:
            for kind in RATED:
                end = _draw_rated(axis, records, learner, kind, column)
                ends.update({learner: (end, STYLES[learner].colour)} if end else {})
        for level in (each["loss_a_rating"] for each in records if each["kind"] == "zero"):
            axis.axhline(level, color=INK, linewidth=0.8, zorder=0.9)
            if column == "seconds":
                ends["learning nothing"] = ((axis.get_xlim()[1], level), INK)
        axis.set_xlabel(words)
        _thousands(axis)
    axes[0].set_ylabel("loss per rating")
    _label_beside(axes[-1], ends)
    handles = [Line2D([], [], color=INK, linestyle=s, label=w) for s, w in RATED.values() if w]
    hollow: dict[str, Any] = {"marker": "o", "markerfacecolor": "white", "linestyle": "none"}
    handles.append(Line2D([], [], color=INK, **hollow, label="block, no limit"))
    figure.legend(handles=handles, loc="outside lower left", ncols=len(handles), handlelength=2.4)
    return figure


def _draw_rated(
    axis: Axes, records: Sequence[Record], learner: str, kind: str, column: str
) -> tuple[float, float] | None:
    """Draw a line over budgets; return its end."""
    mine = [each for each in records if each["learner"] == learner and each["kind"] == kind]
    mine.sort(key=lambda each: each["budget"] or np.inf)
    if not mine:
        return None
    style = STYLES[learner]
    x, y = [each[column] for each in mine], [each["loss_a_rating"] for each in mine]
    ink: dict[str, Any] = {"color": style.colour, "marker": style.marker}
    axis.plot(x, y, **ink, linestyle=RATED[kind][0], markeredgewidth=0.0)
    if mine[-1]["budget"] is None:
        axis.plot(x[-1:], y[-1:], **ink, markerfacecolor="white", markersize=4.5)
    return x[-1], y[-1]


@print_style()
def bound_panels(records: Sequence[Record]) -> Figure:
    """Regret over rounds, between the lower bound and each learner's own bound."""
    title = "resisting oracle · G = R = 1 · b LMO calls per round · markers: measured"
    figure = new_figure(title, 3.2)
    # The panel with labels comes last.
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
    """Draw the games of one budget; return the labels of the lines' ends."""
    ends: dict[str, Any] = {}
    titles = list(dict.fromkeys(record["title"] for record in records))
    for title in titles:
        mine = sorted((r for r in records if r["title"] == title), key=lambda r: r["rounds"])
        T, style = np.array([each["rounds"] for each in mine]), STYLES[mine[0]["learner"]]
        scaled = {
            column: np.array([each[column] for each in mine]) / T**0.75
            for column in ("bound", "static_regret", "guarantee")
        }
        even = mine[0]["kind"] == "even"
        axis.plot(T, scaled["bound"], color=style.colour, linestyle="--" if even else "-", lw=0.9)
        face = "white" if even else style.colour
        dots: dict[str, Any] = {"marker": style.marker, "markerfacecolor": face, "ms": 3.2}
        axis.plot(T, scaled["static_regret"], color=style.colour, linestyle="none", mew=0.6, **dots)
        ends[f"bound of {title}"] = ((T[-1], scaled["bound"][-1]), style.colour)
    axis.plot(T, scaled["guarantee"], color=INK, linewidth=1.4)
    ends["lower bound"] = ((T[-1], scaled["guarantee"][-1]), INK)
    return ends

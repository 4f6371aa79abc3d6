"""Figures of results for print, by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from driftwolfe.experiments import chart_data
from driftwolfe.experiments import figure_style as fs
from driftwolfe.experiments.chart_data import Line, Panel
from driftwolfe.experiments.figure_style import FAINT, INK, LineStyle, extra, literal, print_style
from driftwolfe.experiments.summary import CALLS, Summary
from driftwolfe.experiments.tables import RegretRow
from driftwolfe.terminal import counted, spread_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_all", "panels", "save"]

FORMATS = ("png", "pdf", "svg")
_COLUMNS = 3  # panels of regrets side by side
_ROW = 0.125  # inches of an expert's row
#: Marks the chosen c, and a c that was chosen on fewer rounds.
_RING: dict[str, Any] = {"markersize": 8.5, "markerfacecolor": "none", "markeredgewidth": 1.0}
_HOLLOW: dict[str, Any] = {"markerfacecolor": "white", "markeredgewidth": 1.0}


@print_style()
def panels(*summaries: Summary, name: str = "", rest: bool = False) -> Figure | None:
    """Average loss, cumulative loss and run time against rounds, with a band of one deviation.

    A row of panels for each summary with its first methods, see `chart_data.rows`; or rows with the
    `rest` of them; None where there is none.

    Parameters
    ----------
    summaries, name, rest
        The trials of a sweep, summed up; the name of the figure, such as "Figure 1"; and whom it shows.
    """
    chosen = slice(1, None) if rest else slice(1)
    found = [(each, row) for each in summaries for row in chart_data.rows(each)[chosen]]
    if not found:
        return None
    shown_seeds = chart_data.seeds(summary.chosen[title] for summary, row in found for title in row)
    name = f"{name}, continued" if name and rest else name
    figure = _sheet(summaries, shown_seeds, 2.3 * len(found), name=name)
    axes = figure.subplots(len(found), 3, squeeze=False)
    entries: dict[str, Any] = {}
    for (summary, row), line_of_axes in zip(found, axes, strict=True):
        panels = chart_data.loss_chart(summary, row).panels
        for axis, panel in zip(line_of_axes, panels, strict=True):
            fs.mark_drifts(axis, summary.drifts)
            axis.grid(visible=False, axis="x")  # changes are marked there
            _draw_panel(axis, summary, panel, x_ticks=4)
            for line in panel.lines:
                entries.setdefault(line.label, fs.key(line.style, line.label))
        if rest or len(found) > 1:
            untuned = all(summary.chosen[title].untuned for title in row)
            kind = (": untuned, c = D/G" if untuned else ": other methods") if rest else ""
            above = f"{literal(summary.data_name + kind)}\n{line_of_axes[0].get_title(loc='left')}"
            line_of_axes[0].set_title(above, loc="left", fontweight="bold")
    if any(summary.drifts for summary in summaries):
        dotted = fs.key(LineStyle(FAINT, (), ""), "abrupt change", linestyle=":", linewidth=0.9)
        entries["abrupt change"] = dotted
    fs.legend_below(figure, list(entries.values()))
    return figure


@print_style()
def prices(summary: Summary) -> Figure | None:
    """Loss per round against seconds, matrix-vector products and LMO calls; None where none is known."""
    chart = chart_data.price_chart(summary)
    if not chart.panels:
        return None
    figure = _sheet([summary], chart.shown, 2.5)
    axes = figure.subplots(1, len(chart.panels), sharey=True, squeeze=False)[0]
    entries: dict[str, Any] = {}
    for axis, (unit, dots) in zip(axes, chart.panels, strict=True):
        axis.set_xscale("log")
        for dot in dots:
            untuned = dot.style.width < 1.0
            look = {"linestyle": "none", "markersize": 5.5, **(_HOLLOW if untuned else {})}
            loss, error = dot.value or (np.nan, 0.0)
            bar: dict[str, Any] = {"yerr": error or None, "elinewidth": 0.8}
            axis.errorbar(dot.spent, loss, **bar, **fs.pen(dot.style, **look))
            entries.setdefault(dot.label, fs.key(dot.style, dot.label, **look))
        axis.margins(x=0.12)
        axis.set_xlabel(unit)
        fs.count_axis(axis, "x", 5)
        fs.count_axis(axis, "y", 5)
    axes[0].set_ylabel("loss per round")
    fs.legend_below(figure, list(entries.values()))
    return figure


@print_style()
def regret_curves(summary: Summary, regrets: Sequence[RegretRow]) -> Figure | None:
    """Dynamic regret up to each round; None where it is not known."""
    chart = chart_data.regret_curves(summary, regrets)
    if not chart.panels:
        return None
    figure = _sheet([summary], chart.shown, 3.0)
    axis, (panel,), first = figure.subplots(), chart.panels, chart_data.rows(summary)[0]
    kept = [line for line in panel.lines if line.title in first] or panel.lines[: chart_data.MOST]
    fs.mark_drifts(axis, summary.drifts)
    _draw_panel(axis, summary, panel._replace(lines=kept))
    fs.legend_beside(figure, [fs.key(line.style, line.label) for line in kept])
    return figure


@print_style()
def oracle_calls(summary: Summary) -> Figure | None:
    """Calls of each oracle up to each round, logarithmic; None where no method called any."""
    chart = chart_data.call_chart(summary)
    if not chart.panels:
        return None
    figure = _sheet([summary], chart.shown, 2.7)
    _draw_panel(figure.subplots(), summary, chart.panels[0], y_ticks=8)
    lines = chart.panels[0].lines
    styles = {line.title: line.style for line in lines}
    entries = [
        fs.key(style, summary.chosen[title].label, linestyle="none", markersize=5)
        for title, style in styles.items()
    ]
    dashes = {line.style.dash for line in lines}
    for oracle in CALLS.values():
        if oracle.dash in dashes:
            entries.append(fs.key(LineStyle(INK, oracle.dash, ""), f"{oracle.label} calls"))
    fs.legend_beside(figure, entries)
    return figure


@print_style()
def sensitivity(summary: Summary) -> Figure | None:
    """Mean loss per round against c; None where no method was run with several c."""
    chart = chart_data.scale_chart(summary)
    if not chart.panels:
        return None
    figure = _sheet([summary], chart.shown, 2.7)
    _draw_panel(figure.subplots(), summary, chart.panels[0], x_ticks=8)
    lines = chart.panels[0].lines
    entries = [
        fs.key(line.style, line.label, **(_HOLLOW if line.partial else {})) for line in lines
    ]
    if any(line.chosen is not None for line in lines):
        entries.append(fs.key(LineStyle(INK, (), "o"), "chosen c", linestyle="none", **_RING))
    fs.legend_beside(figure, entries)
    return figure


@print_style()
def regret(summary: Summary, regrets: Sequence[RegretRow]) -> Figure | None:
    """Dynamic regret, and adaptive regret for each length of window; None where none is known."""
    chart = chart_data.regret_chart(summary, regrets)
    found = chart.panels
    if not found:
        return None
    names = [literal(dot.label.replace(" (", "\n(")) for dot in found[0][1]]
    columns = min(_COLUMNS, len(found))
    lines = -(-len(found) // columns)
    height = lines * (0.22 * len(names) + 0.75) + 0.4
    figure = _sheet([summary], chart.shown, height, fs.WIDTH * (columns + 1) / (_COLUMNS + 1))
    axes = figure.subplots(lines, columns, sharey=True, squeeze=False)
    for axis, (measure, dots) in zip(axes.flat, found, strict=False):
        for place, dot in enumerate(dots):
            if dot.value:
                bars: dict[str, Any] = {"xerr": dot.value.deviation or None, "elinewidth": 1.0}
                look = fs.pen(dot.style, capsize=2.5, markersize=3.6, markeredgewidth=0.8)
                axis.errorbar(dot.value.mean, place, **bars, **look)
                at: dict[str, Any] = {"transform": axis.get_yaxis_transform(), "va": "center"}
                axis.text(1.03, place, spread_text(dot.value), **at, fontsize=7.0, color=INK)
        axis.axvline(0.0, color=FAINT, linewidth=0.7)
        axis.margins(x=0.08)
        axis.set_xlabel("regret (loss)")
        fs.count_axis(axis, "x", 2)
        axis.grid(axis="x", visible=False)
        axis.tick_params(axis="y", length=0)
        axis.spines["left"].set_visible(False)
        axis.set_title(measure.replace(", ", "\n"), loc="left")
    for axis in axes.flat[len(found) :]:
        axis.set_visible(False)
    for axis in axes[:, 0]:
        axis.set_yticks(range(len(names)), names)
        axis.set_ylim(len(names) - 0.5, -0.5)
    return figure


@print_style()
def weights(summary: Summary) -> Figure | None:
    """A heat map of weights in the first seed for each method with experts; None where none has any."""
    chart = chart_data.weight_chart(summary)
    tables = chart.panels
    if not tables:
        return None
    columns = 1 if len(tables) <= 3 else 2
    heights = [max(4, min(len(table.experts), 2 * fs.NAMED)) for table in tables]
    rows = [max(heights[start : start + columns]) for start in range(0, len(heights), columns)]
    figure = _sheet([summary], chart.shown, _ROW * sum(rows) + 0.36 * len(rows) + 0.8)
    axes = list(figure.subplots(len(rows), columns, height_ratios=rows, squeeze=False).flat)
    for axis in axes[len(tables) :]:
        axis.remove()
    axes = axes[: len(tables)]
    largest = fs.largest_weight(table.values for table in tables)
    for place, (axis, table) in enumerate(zip(axes, tables, strict=True)):
        image = fs.weight_map(axis, table.experts, table.rounds, table.values, largest)
        axis.set_title(literal(table.label), loc="left", pad=3)
        fs.mark_drifts(axis, summary.drifts, color=INK, zorder=3)
        axis.set_xlim(0, summary.length)
        fs.count_axis(axis, "x", 4)
        if place < len(axes) - columns:
            axis.tick_params(labelbottom=False)
        else:
            axis.set_xlabel("round")
    shrink = min(1.0, 1.8 / figure.get_figheight())
    bar = figure.colorbar(image, ax=axes, shrink=shrink, pad=0.015, aspect=16)
    bar.set_label("weight of the expert")
    bar.outline.set_visible(False)
    if any(np.isnan(table.values).any() for table in tables):
        inactive = extra("matplotlib.patches").Patch(color=fs.INACTIVE, label="expert not active")
        figure.legend(handles=[inactive], loc="outside lower right")
    return figure


def draw_all(summary: Summary, regrets: Sequence[RegretRow], folder: Path) -> list[Path]:
    """Draw and write every figure of a summary but `panels`; return the paths of their files.

    Parameters
    ----------
    summary, regrets
        The trials of a sweep, summed up, and known regrets of its methods; empty for none.
    folder
        Where the files go.
    """
    figures = {
        "prices": prices(summary),
        "oracle-calls": oracle_calls(summary),
        "sensitivity": sensitivity(summary),
        "weights": weights(summary),
        "regret": regret(summary, regrets),
        "regret-over-rounds": regret_curves(summary, regrets),
    }
    return [p for name, drawn in figures.items() if drawn for p in save(drawn, folder, name)]


@print_style()
def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG, PDF and SVG, always with the same bytes; return their paths.

    Parameters
    ----------
    figure, folder, name
        The figure, and where to: the files are ``folder/name.png`` and so on.
    """
    paths = [folder / f"{name}.{ending}" for ending in FORMATS]
    for path in paths:
        fs.save(figure, path, dpi=200)
    return paths


def _sheet(
    summaries: Sequence[Summary], shown: str, height: float, width: float = fs.WIDTH, name: str = ""
) -> Figure:
    """An empty figure that says what is `shown` and of which data."""
    figure: Figure = extra("matplotlib.figure").Figure(
        figsize=(width, height), dpi=100, layout="constrained"
    )
    data = (f"{each.data_name} · {counted(each.length, 'round')}" for each in summaries)
    parts = [*filter(None, [name]), *dict.fromkeys(data), shown]
    heading = wrap(" · ".join(parts), int(width / 0.064))
    notices = dict.fromkeys(each.notice for each in summaries if each.notice)
    heading += [line for notice in notices for line in wrap(notice, int(width / 0.064))]
    colour = fs.WARNING if notices else "#444444"
    place: dict[str, Any] = {"x": 0.01, "ha": "left", "va": "top"}
    figure.suptitle(literal("\n".join(heading)), fontsize=7.5, color=colour, **place)
    return figure


def _draw_panel(
    axis: Axes, summary: Summary, panel: Panel, *, x_ticks: int = 5, y_ticks: int = 5
) -> None:
    axis.set_title(panel.title, loc="left", fontweight="bold")
    axis.set_xscale("log" if panel.over_c else "linear")
    axis.set_yscale("log" if panel.log else "linear")
    for line in panel.lines:
        if panel.over_c:
            _draw_scales(axis, line)
        else:
            fs.draw_band(axis, line.band, line.style, list(summary.chosen).index(line.title))
            if not summary.chosen[line.title].complete:  # a cross at an early end
                end = line.band.x[-1], line.band.mean[-1]
                axis.plot(*end, "x", color=line.style.colour, markersize=6, markeredgewidth=1.4)
    axis.set_xlabel("scale c of the step sizes" if panel.over_c else "round")
    axis.set_ylabel(panel.unit)
    if not panel.over_c:
        axis.set_xlim(0, summary.length)
    fs.count_axis(axis, "x", x_ticks)
    fs.count_axis(axis, "y", y_ticks)
    axis.set_ylim(panel.low, panel.high)


def _draw_scales(axis: Axes, line: Line) -> None:
    """A line with error bars, and a ring at the chosen c."""
    band = line.band
    marker = _HOLLOW if line.partial else {"markeredgewidth": 0.8}
    bars: dict[str, Any] = {"yerr": band.deviation, "capsize": 1.8, "elinewidth": 0.8}
    axis.errorbar(band.x, band.mean, **bars, **fs.pen(line.style, markersize=4.2, **marker))
    if line.chosen is not None:
        x, y = band.x[line.chosen], band.mean[line.chosen]
        axis.plot(x, y, "o", color=line.style.colour, zorder=4, **_RING)

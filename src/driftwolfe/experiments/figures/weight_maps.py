"""The figure of expert weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from driftwolfe.experiments.figures import words
from driftwolfe.experiments.figures.canvas import INK, literal, print_style, sheet
from driftwolfe.experiments.figures.expert_table import ExpertTable, expert_table, largest
from driftwolfe.experiments.figures.extras import extra
from driftwolfe.experiments.figures.marks import mark_drifts
from driftwolfe.experiments.figures.ticks import count_axis
from driftwolfe.experiments.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: White to dark blue: lighter is less, to every eye and in grey.
COLOURS = "Blues"
ASLEEP = "#e3ddd3"
#: Inches of a row, and rows that are named at the most.
_ROW, _NAMED = 0.125, 13
_SINGLE_COLUMN = 3


@print_style()
def weights(summary: Summary) -> Figure | None:
    """A heat map for each method with experts: weight by expert and round, of the first seed.

    None where no method has experts.

    Parameters
    ----------
    summary
        The trials of a sweep, summed up.
    """
    tables = expert_tables(summary)
    if not tables:
        return None
    figure, axes = _grid(summary, list(tables.values()))
    most = largest(tables.values())
    for axis, (title, table) in zip(axes, tables.items(), strict=True):
        image = _draw(axis, table, most)
        axis.set_title(literal(words.label(summary.chosen[title])), loc="left", pad=3)
        mark_drifts(axis, words.drifts(summary), color=INK, zorder=3)
        axis.set_xlim(0, words.length(summary))
        count_axis(axis, "x", 4)
    bar = figure.colorbar(
        image, ax=axes, shrink=min(1.0, 1.8 / figure.get_figheight()), pad=0.015, aspect=16
    )
    bar.set_label("weight of the expert")
    bar.outline.set_visible(False)
    if any(np.isnan(table.values).any() for table in tables.values()):
        asleep = extra("matplotlib.patches").Patch(color=ASLEEP, label="expert not awake")
        figure.legend(handles=[asleep], loc="outside lower right")
    return figure


def _grid(summary: Summary, tables: list[ExpertTable]) -> tuple[Figure, list[Axes]]:
    """Axes as high as their tables need, in two columns where there are many."""
    columns = 1 if len(tables) <= _SINGLE_COLUMN else 2
    heights = [max(4, min(len(table.experts), 2 * _NAMED)) for table in tables]
    rows = [max(heights[start : start + columns]) for start in range(0, len(heights), columns)]
    seeds = sorted({table.seed for table in tables})
    shown = f"expert weights of seed {', '.join(map(str, seeds))}"
    figure = sheet(summary, shown, _ROW * sum(rows) + 0.36 * len(rows) + 0.8)
    axes = list(figure.subplots(len(rows), columns, height_ratios=rows, squeeze=False).ravel())
    for axis in axes[len(tables) :]:
        axis.remove()
    kept = axes[: len(tables)]
    for axis in kept[:-columns]:
        axis.tick_params(labelbottom=False)
    for axis in kept[-columns:]:
        axis.set_xlabel("round")
    return figure, kept


def expert_tables(summary: Summary) -> dict[str, ExpertTable]:
    """The methods with experts."""
    found = {title: expert_table(series) for title, series in summary.chosen.items()}
    return {title: table for title, table in found.items() if table is not None}


def _draw(axis: Axes, table: ExpertTable, most: float) -> Any:
    """The map; beige where an expert sleeps."""
    count = len(table.experts)
    colours = extra("matplotlib").colormaps[COLOURS].with_extremes(bad=ASLEEP)
    image = axis.pcolormesh(
        table.edges,
        np.arange(count + 1) - 0.5,
        np.ma.masked_invalid(table.values),
        cmap=colours,
        vmin=0.0,
        vmax=most,
        rasterized=True,
    )
    axis.grid(False)
    every = -(-count // _NAMED)
    named = range(0, count, every)
    axis.set_yticks(list(named), [literal(table.experts[place]) for place in named])
    axis.tick_params(axis="y", length=0)
    axis.spines[:].set_visible(False)
    return image

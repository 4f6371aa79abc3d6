"""Figures of results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftwolfe.experiments import figure_style
from driftwolfe.experiments.figure_style import (
    Band,
    band,
    count_axis,
    draw_band,
    drift_key,
    key,
    legend_below,
    line_styles,
    mark_drifts,
    mark_end,
    print_style,
    settled_range,
    sheet,
    spans_widely,
)
from driftwolfe.experiments.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
from typing import TYPE_CHECKING, Any

from driftwolfe.experiments.figure_style import (
    CALL_DASHES,
    INK,
    LineStyle,
    in_two_lines,
    legend_beside,
    stroke,
)
from driftwolfe.experiments.summary import CALLS, Calls, Series

if TYPE_CHECKING:
    from matplotlib.figure import Figure
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from driftwolfe.experiments.figure_style import FAINT, WIDTH, literal
from driftwolfe.experiments.summary import Spread
from driftwolfe.experiments.tables import spread_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from driftwolfe.experiments.figure_style import evenly, extra
from driftwolfe.points.kinds import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from driftwolfe.storage import write

if TYPE_CHECKING:
    from matplotlib.figure import Figure
from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any


@print_style()
def panels(summary: Summary) -> Figure:
    """Average loss, cumulative loss and run time against rounds, with a band of one deviation.

    The first panel leaves out what only the first twentieth of the rounds would need; the third is
    logarithmic where the slowest method takes more than 20 times as long as the fastest.

    Parameters
    ----------
    summary
        The trials of a sweep, summed up.
    """
    chosen = summary.chosen
    figure = sheet(summary, figure_style.seeds(chosen.values()), 2.4)
    average, total, time = figure.subplots(1, 3)
    losses = {title: band(series, "loss", average=True) for title, series in chosen.items()}
    seconds = {title: band(series, "seconds") for title, series in chosen.items()}
    if spans_widely(float(each.mean[-1]) for each in seconds.values()):
        time.set_yscale("log")
    _draw_panel(average, summary, losses, "Average loss", "loss per round")
    average.set_ylim(settled_range(list(losses.values())))
    cumulative = {title: band(series, "loss") for title, series in chosen.items()}
    _draw_panel(total, summary, cumulative, "Cumulative loss", "loss")
    _draw_panel(time, summary, seconds, "Run time", "processor time (s)")
    if time.get_yscale() == "log":  # the first rounds of all would take half of it
        time.set_ylim(
            bottom=min(float(each.mean[len(each.mean) // 50]) for each in seconds.values())
        )
    style = line_styles(summary.titles)
    entries = [key(style[title], figure_style.label(series)) for title, series in chosen.items()]
    legend_below(figure, [*entries, *([drift_key()] if figure_style.drifts(summary) else [])])
    return figure


def _draw_panel(axis: Axes, summary: Summary, bands: dict[str, Band], name: str, unit: str) -> None:
    style = line_styles(summary.titles)
    mark_drifts(axis, figure_style.drifts(summary))
    for place, (title, each) in enumerate(bands.items()):
        draw_band(axis, each, style[title], place)
        if not summary.chosen[title].complete:
            mark_end(axis, each, style[title])
    axis.set_title(name, loc="left", fontweight="bold")
    axis.set_xlabel("round")
    axis.set_ylabel(unit)
    axis.set_xlim(0, figure_style.length(summary))
    axis.grid(visible=False, axis="x")  # changes are marked there
    count_axis(axis, "x", 4)
    count_axis(axis, "y")


@print_style()
def oracle_calls(summary: Summary) -> Figure | None:
    """Calls of each oracle up to each round, logarithmic; the dash says which oracle.

    None where no method called any.

    Parameters
    ----------
    summary
        The trials of a sweep, summed up.
    """
    used = {title: calls(series) for title, series in summary.chosen.items()}
    kinds = [kind for kind in CALLS if any(kind in each for each in used.values())]
    if not kinds:
        return None
    style = line_styles(summary.titles)
    figure = sheet(summary, figure_style.seeds(summary.chosen.values()), 2.7)
    axis = figure.subplots()
    axis.set_yscale("log")
    for place, (title, each) in enumerate(used.items()):
        for kind, curve in each.items():
            draw_band(axis, curve, style[title], place, linestyle=stroke(CALL_DASHES[kind]))
            if not summary.chosen[title].complete:
                mark_end(axis, curve, style[title])
    axis.set_xlabel("round")
    axis.set_ylabel("oracle calls so far")
    axis.set_xlim(0, figure_style.length(summary))
    count_axis(axis, "x")
    count_axis(axis, "y", 8)
    legend_beside(figure, _entries(summary, used, kinds))
    return figure


def calls(series: Series) -> dict[Calls, Band]:
    """The kinds of calls that a method makes."""
    found = {kind: band(series, kind) for kind in CALLS}
    return {kind: curve for kind, curve in found.items() if curve.mean[-1] > 0}


def _entries(summary: Summary, used: dict[str, Any], kinds: list[Calls]) -> list[Any]:
    style = line_styles(summary.titles)
    methods = [
        key(
            style[title],
            in_two_lines(figure_style.label(summary.chosen[title])),
            linestyle="none",
            markersize=5,
        )
        for title, each in used.items()
        if each
    ]
    lines = [
        key(LineStyle(INK, CALL_DASHES[kind], ""), f"{figure_style.CALLS[kind]} calls")
        for kind in kinds
    ]
    return [*methods, *lines]


_COLUMNS = 4


class Regrets(Protocol):
    """What is known of a method's regret; `RegretRow` is one."""

    @property
    def title(self) -> str:
        """The method."""

    @property
    def dynamic(self) -> Spread | None:
        """Its dynamic regret, where the comparators are known."""

    @property
    def adaptive(self) -> Mapping[int, Spread]:
        """Its adaptive regret by the length of the windows."""


@print_style()
def regret(summary: Summary, regrets: Sequence[Regrets]) -> Figure | None:
    """Dynamic regret, and adaptive regret for each length of window; None where none is known.

    Parameters
    ----------
    summary
        The trials of a sweep, summed up.
    regrets
        What is known of the regret of its methods.
    """
    found = measures(regrets)
    if not found:
        return None
    style = line_styles(summary.titles)
    titles = measured(regrets)
    columns = min(_COLUMNS, len(found))
    lines = -(-len(found) // columns)
    figure = sheet(
        summary,
        figure_style.seeds(summary.chosen.values()),
        height=lines * (0.22 * len(titles) + 0.75) + 0.4,
        width=WIDTH * (columns + 1) / (_COLUMNS + 1),
    )
    axes = figure.subplots(lines, columns, sharey=True, squeeze=False)
    for axis, (name, values) in zip(axes.flat, found.items(), strict=False):
        _draw_regret(axis, titles, values, {**line_styles(titles), **style})
        axis.set_title(name.replace(", ", "\n"), loc="left")
    for axis in list(axes.flat)[len(found) :]:
        axis.set_visible(False)
    for axis in axes[:, 0]:
        axis.set_yticks(range(len(titles)), [_name(summary, title) for title in titles])
        axis.set_ylim(len(titles) - 0.5, -0.5)
    return figure


def _name(summary: Summary, title: str) -> str:
    known = summary.chosen.get(title)
    return literal(title if known is None else in_two_lines(figure_style.label(known)))


def measured(regrets: Sequence[Regrets]) -> list[str]:
    """The methods of which any regret is known."""
    return [row.title for row in regrets if row.dynamic is not None or row.adaptive]


def measures(regrets: Sequence[Regrets]) -> dict[str, dict[str, Spread]]:
    """What is known, by measure and then by method."""
    found: dict[str, dict[str, Spread]] = {}
    dynamic = {row.title: row.dynamic for row in regrets if row.dynamic is not None}
    if dynamic:
        found["Dynamic regret"] = dynamic
    for tau in sorted({tau for row in regrets for tau in row.adaptive}):
        name = f"Adaptive regret, τ = {tau:,}"
        found[name] = {row.title: row.adaptive[tau] for row in regrets if tau in row.adaptive}
    return found


def _draw_regret(
    axis: Axes, titles: list[str], values: dict[str, Spread], style: Mapping[str, LineStyle]
) -> None:
    highs = [abs(value.mean) + value.deviation for value in values.values()]
    for place, title in enumerate(titles):
        if title not in values:
            continue
        line_style, value = style[title], values[title]
        bars: dict[str, Any] = {"xerr": value.deviation} if value.deviation else {}
        axis.errorbar(
            value.mean,
            place,
            color=line_style.colour,
            marker=line_style.marker,
            markersize=3.6,
            markeredgewidth=0.8,
            capsize=2.5,
            elinewidth=1.0,
            **bars,
        )
        _write(axis, place, value, max(highs))
    axis.axvline(0.0, color=FAINT, linewidth=0.7)
    axis.margins(x=0.12)
    axis.set_xlabel("regret (loss)")
    count_axis(axis, "x", 3)
    axis.grid(axis="x", visible=False)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)


def _write(axis: Axes, place: int, value: Spread, high: float) -> None:
    """The number, on the side of the dot where there is room for it."""
    left = value.mean - value.deviation > 0.6 * high
    side = -1 if left else 1
    axis.annotate(
        spread_text(value),
        (value.mean + side * value.deviation, place),
        (side * 5, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="center",
        fontsize=7.0,
        color=INK,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
    )


@dataclass(frozen=True, slots=True)
class Tuning:
    """The loss of a method by c.

    Attributes
    ----------
    title
        The method.
    scales, losses
        Values of c, rising, and the mean loss of a round with each.
    chosen
        The c that it was run with; None where that is none of them.
    first
        On how many rounds it was tuned, where that are fewer than it was run on, else None.
    """

    title: str
    scales: list[float]
    losses: list[Spread]
    chosen: float | None
    first: int | None

    @property
    def label(self) -> str:
        """What the legend says."""
        if self.first is None:
            return self.title
        return f"{self.title} (tuned on the first {figure_style.counted(self.first, 'round')})"


@print_style()
def sensitivity(summary: Summary) -> Figure | None:
    """Mean loss of a round against c; None where no method was run with several c.

    A ring marks the c that was chosen; hollow markers, that it was chosen on fewer rounds than the
    method was run on.

    Parameters
    ----------
    summary
        The trials of a sweep, summed up.
    """
    found = tunings(summary)
    if not found:
        return None
    style = line_styles(summary.titles)
    figure = sheet(
        summary,
        figure_style.seeds(series for each in found for series in summary.tuning(each.title)),
        2.7,
    )
    axis = figure.subplots()
    axis.set_xscale("log")
    if spans_widely(loss.mean for tuning in found for loss in tuning.losses):
        axis.set_yscale("log")
    for tuning in found:
        _draw_scale(axis, tuning, style[tuning.title])
    axis.set_xlabel("scale c of the step sizes")
    axis.set_ylabel("mean loss of a round")
    count_axis(axis, "x", 8)
    count_axis(axis, "y")
    entries = [key(style[each.title], in_two_lines(each.label), **_face(each)) for each in found]
    if any(each.chosen is not None for each in found):
        entries.append(key(LineStyle(INK, (), "o"), "chosen c", linestyle="none", **_RING))
    legend_beside(figure, entries)
    return figure


def tunings(summary: Summary) -> list[Tuning]:
    """The methods that were run with several c."""
    found = []
    for title, chosen in summary.chosen.items():
        tried = summary.tuning(title)
        if len(tried) < 2:
            continue
        scales = [series.c or 0.0 for series in tried]
        played = max(int(series.rounds[-1]) for series in tried)
        found.append(
            Tuning(
                title,
                scales,
                [series.mean_loss for series in tried],
                chosen.c if chosen.c in scales else None,
                played if played < chosen.rounds[-1] else None,
            )
        )
    return found


_RING: dict[str, Any] = {"markersize": 8.5, "markerfacecolor": "none", "markeredgewidth": 1.0}


def _face(tuning: Tuning) -> dict[str, Any]:
    """Hollow where the rounds were fewer."""
    hollow = tuning.first is not None
    return {"markerfacecolor": "white", "markeredgewidth": 1.0} if hollow else {}


def _draw_scale(axis: Axes, tuning: Tuning, line_style: LineStyle) -> None:
    means = np.array([loss.mean for loss in tuning.losses])
    axis.errorbar(
        tuning.scales,
        means,
        yerr=[loss.deviation for loss in tuning.losses],
        color=line_style.colour,
        linestyle=stroke(line_style.dash),
        marker=line_style.marker,
        markersize=4.2,
        capsize=1.8,
        elinewidth=0.8,
        **{"markeredgewidth": 0.8, **_face(tuning)},
    )
    if tuning.chosen is not None:
        at = tuning.scales.index(tuning.chosen)
        axis.plot(tuning.chosen, means[at], "o", color=line_style.colour, zorder=4, **_RING)


@dataclass(frozen=True, slots=True, eq=False)
class ExpertTable:
    """Weights of the first seed.

    Attributes
    ----------
    seed
        Which that is.
    rounds
        When the weights were looked at.
    experts
        Names by rising step size, epoch or length.
    values
        A row an expert, a column for each of `rounds`; nan where it was not awake.
    """

    seed: int
    rounds: list[int]
    experts: list[str]
    values: Array

    def thinned(self, most: int) -> ExpertTable:
        """The same at `most` rounds at the most, the first and the last among them."""
        kept = evenly(len(self.rounds), most)
        rounds = [self.rounds[place] for place in kept]
        return ExpertTable(self.seed, rounds, self.experts, self.values[:, kept])

    @property
    def edges(self) -> Array:
        """Borders between the looks, half-way, one more than there are looks."""
        at = np.array(self.rounds, dtype=float)
        if len(at) == 1:
            return np.array([at[0] - 0.5, at[0] + 0.5])
        return np.concatenate([at[:1], (at[1:] + at[:-1]) / 2.0, at[-1:]])


def expert_table(series: Series) -> ExpertTable | None:
    """The experts' weights in the first result; None where there are none."""
    result = series.results[0]
    weights = result.weights
    if weights is None or not weights.experts or not weights.rounds:
        return None
    order = sorted(range(len(weights.experts)), key=lambda place: size(weights.experts[place]))
    values = np.array(weights.values, dtype=float).T[order]
    names = [weights.experts[place] for place in order]
    return ExpertTable(result.trial.seed, weights.rounds, names, values)


def largest(tables: Iterable[ExpertTable]) -> float:
    """The largest weight where several experts are awake: a lone one always has weight 1."""
    contested = [table.values[:, (~np.isnan(table.values)).sum(axis=0) > 1] for table in tables]
    return max((float(np.nanmax(values)) for values in contested if values.size), default=1.0)


def size(expert: str) -> float:
    """The number in an expert's name; 0 where there is none.

    >>> size("η = 0.0145"), size("γ = 1,024"), size("64 rounds"), size("η = 2e-05")
    (0.0145, 1024.0, 64.0, 2e-05)
    """
    number = re.search(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?", expert)
    return float(number.group().replace(",", "")) if number else 0.0


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
        image = _draw_weights(axis, table, most)
        axis.set_title(literal(figure_style.label(summary.chosen[title])), loc="left", pad=3)
        mark_drifts(axis, figure_style.drifts(summary), color=INK, zorder=3)
        axis.set_xlim(0, figure_style.length(summary))
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


def _draw_weights(axis: Axes, table: ExpertTable, most: float) -> Any:
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


#: Formats, and the metadata without which files would differ from run to run.
FORMATS: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None},
    "svg": {"Date": None},
}
_DOTS_PER_INCH = 200


@print_style()
def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG, PDF and SVG, each whole or not at all; return their paths.

    The same figure always gives the same bytes.

    Parameters
    ----------
    figure
        The figure.
    folder, name
        Where to: the files are ``folder/name.png`` and so on.
    """
    paths = []
    for ending, metadata in FORMATS.items():
        path = folder / f"{name}.{ending}"
        write(path, _filler(figure, metadata))
        paths.append(path)
    return paths


def _filler(figure: Figure, metadata: dict[str, Any]) -> Callable[[Path], None]:
    return lambda part: figure.savefig(part, dpi=_DOTS_PER_INCH, metadata=metadata)


def draw_all(summary: Summary, regrets: Sequence[Regrets], folder: Path) -> list[Path]:
    """Draw and write every figure that there is something for; return the paths of their files.

    Parameters
    ----------
    summary
        The trials of a sweep, summed up.
    regrets
        What is known of the regret of its methods; empty for nothing.
    folder
        Where the files go.
    """
    figures = {
        "panels": panels(summary),
        "oracle-calls": oracle_calls(summary),
        "sensitivity": sensitivity(summary),
        "weights": weights(summary),
        "regret": regret(summary, regrets),
    }
    written: list[Path] = []
    for name, figure in figures.items():
        if figure is not None:
            written += save(figure, folder, name)
    return written


__all__ = [
    "FORMATS",
    "Regrets",
    "draw_all",
    "oracle_calls",
    "panels",
    "regret",
    "save",
    "sensitivity",
    "weights",
]
_MODULES = {
    "FORMATS": "files",
    "Regrets": "regret_dots",
    "draw_all": "files",
    "oracle_calls": "call_curves",
    "panels": "loss_panels",
    "regret": "regret_dots",
    "save": "files",
    "sensitivity": "scale_dots",
    "weights": "weight_maps",
}


def __getattr__(name: str) -> _Any:
    if name in _MODULES:
        return getattr(_import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

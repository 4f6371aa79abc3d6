"""Figures drawn for print, by matplotlib, which is imported only when something is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from textwrap import wrap
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from driftwolfe.experiments.figure import FAINT, INK, Figure, Line, LineStyle, Panel
from driftwolfe.storage import write
from driftwolfe.terminal import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet
    from matplotlib.lines import Line2D

WIDTH = 7.0  # of a page's text, in inches
#: Formats, and the metadata without which files would differ from run to run.
METADATA = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
WARNING = "#a33c00"
INACTIVE = "#e3ddd3"  # of experts
_ROW = 0.165  # inches of a legend's row
_MARKS = 6  # markers on a curve
_NAMED = 13  # experts that a map names at most
_WIDEST = 3  # panels with names that a page is wide enough for
_HOLLOW: dict[str, Any] = {"markerfacecolor": "white", "markeredgewidth": 1.0}
_RING: dict[str, Any] = {"markersize": 8.5, "markerfacecolor": "none", "markeredgewidth": 1.0}


def extra(module: str) -> ModuleType:
    """Import a module of an extra dependency; where it is missing, say how to get it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        needed = f"this needs {(missing.name or module).partition('.')[0]}"
        raise ImportError(f"{needed}: pip install 'driftwolfe[experiments]'") from missing


@contextmanager
def print_style() -> Iterator[None]:
    """Fonts, lines and colours for print, within a ``with`` block or a decorated function."""
    with extra("matplotlib").rc_context(fname=Path(__file__).with_name("figures.mplstyle")):
        yield


@print_style()
def draw(figure: Figure) -> Sheet:
    """Draw a figure, with its heading and one legend for all panels."""
    columns, panels = figure.columns, figure.panels
    several = len(panels) > 1 and columns > 1
    named = panels[0].y.names
    rows = -(-len(panels) // columns)
    ratios = np.ones(rows)
    if panels[0].weights:
        heights = [expert_rows(panel) for panel in panels]
        ratios = np.array([max(heights[i * columns : (i + 1) * columns]) for i in range(rows)])
        height = 0.125 * ratios.sum() + 0.36 * rows + 0.8
    else:
        height = rows * (0.22 * len(named) + 0.75) + 0.4 if named else rows * figure.height
    dots = panels[0].form == "dots"
    width = WIDTH * (columns + 1) / (_WIDEST + 1) if dots and named else WIDTH
    sheet = _sheet(figure, width, height)
    grid: dict[str, Any] = {"sharey": dots, "height_ratios": ratios, "squeeze": False}
    axes = list(sheet.subplots(rows, columns, **grid).flat)
    for axis in axes[len(panels) :]:
        axis.remove()
    for place, (axis, panel) in enumerate(zip(axes, panels, strict=False)):
        image = draw_panel(axis, panel, figure.largest_weight)
        if several and panel.form == "bands":
            axis.grid(visible=False, axis="x")  # changes are marked there
        if dots and place % columns:
            axis.set_ylabel("")
        if panel.weights and place < len(panels) - columns:
            axis.tick_params(labelbottom=False)
            axis.set_xlabel("")
    if panels[0].weights:
        draw_colour_bar(image, axes[: len(panels)])
        if any(np.isnan(panel.weights.values).any() for panel in panels if panel.weights):
            patch = extra("matplotlib.patches").Patch(color=INACTIVE, label="expert not active")
            sheet.legend(handles=[patch], loc="outside lower right")
    elif not named:
        (_legend_below if several or dots else _legend_beside)(sheet, _entries(figure))
    return sheet


def _sheet(figure: Figure, width: float, height: float) -> Sheet:
    """An empty figure with its heading."""
    sheet: Sheet = extra("matplotlib.figure").Figure(
        figsize=(width, height), dpi=100, layout="constrained"
    )
    letters = int(width / 0.064)
    heading = [*wrap(" · ".join(figure.heading), letters), *wrap(figure.warning, letters)]
    colour = WARNING if figure.warning else "#444444"
    place: dict[str, Any] = {"x": 0.01, "ha": "left", "va": "top"}
    sheet.suptitle(literal("\n".join(heading)), fontsize=7.5, color=colour, **place)
    return sheet


def draw_panel(axis: Axes, panel: Panel, largest: float | None = None, **options: Any) -> Any:
    """Draw a panel; return the image of its weights, whose darkest colour is that of the `largest`."""
    if panel.title:
        bold = panel.form == "bands" and not panel.weights
        font: dict[str, Any] = {"fontweight": "bold" if bold else "normal"}
        axis.set_title(literal(panel.title), loc="left", pad=3 if panel.weights else None, **font)
    if panel.x.log:
        axis.set_xscale("log")
    if panel.y.log:
        axis.set_yscale("log")
    image = _draw_weights(axis, panel, largest) if panel.weights else None
    mark: dict[str, Any] = {"color": FAINT, "zorder": 0.5}
    if panel.weights:
        mark = {"color": INK, "zorder": 3}
    for t in panel.drifts:
        axis.axvline(t, linestyle=":", linewidth=0.7, **mark)
    draw_line = _draw_band if panel.form == "bands" else _draw_marks
    for place, line in enumerate(line for line in panel.lines if not line.hidden):
        draw_line(axis, panel, line, place, **options)
    axis.set_xlabel(panel.x.title)
    axis.set_ylabel(panel.y.title)
    if panel.x.high is not None:
        axis.set_xlim(panel.x.low, panel.x.high)
    count_axis(axis, "x", panel.x.ticks)
    if names := panel.y.names:
        axis.tick_params(axis="y", length=0)
    else:
        count_axis(axis, "y", panel.y.ticks)
        if panel.y.low is not None:
            axis.set_ylim(panel.y.low, panel.y.high)
    if panel.form == "dots":
        axis.margins(x=0.08 if names else 0.12)
    if panel.form == "dots" and names:
        axis.axvline(0.0, color=FAINT, linewidth=0.7)
        axis.grid(axis="x", visible=False)
        axis.spines["left"].set_visible(False)
        axis.set_yticks(range(len(names)), [literal(n.replace(" (", "\n(")) for n in names])
        axis.set_ylim(len(names) - 0.5, -0.5)
    return image


def _draw_band(axis: Axes, panel: Panel, line: Line, place: int, **options: Any) -> None:
    """The mean, with a few markers apart from those of lines in other places, and the deviation."""
    band, colour = line.band, line.style.colour
    step = max(1, len(band.x) // _MARKS)
    marks = slice(place * step // _MARKS % step, None, step)
    pen = _pen(line.style, markeredgewidth=0.0, markevery=marks, label=literal(line.label))
    axis.plot(band.x, band.mean, **pen, **options)
    if band.deviation.any():
        edges = band.edges(positive=panel.y.log)
        axis.fill_between(band.x, *edges, color=colour, alpha=0.18, linewidth=0.0)
    if line.ended:
        axis.plot(band.x[-1], band.mean[-1], "x", color=colour, markersize=6, markeredgewidth=1.4)


def _draw_marks(axis: Axes, panel: Panel, line: Line, place: int) -> None:
    """Markers with error bars; a ring at the chosen c, or the value at the end of a named row."""
    band, named, joined = line.band, bool(panel.y.names), panel.form == "bars"
    x, y = (band.mean, band.x) if named else (band.x, band.mean)
    error: dict[str, Any] = {
        "xerr" if named else "yerr": band.deviation if band.deviation.any() else None
    }
    marker = _HOLLOW if line.hollow and not named else {"markeredgewidth": 0.8}
    bars: dict[str, Any] = {"markersize": 5.5, "elinewidth": 0.8, "linestyle": "none"}
    if joined or named:
        bars = {"markersize": 4.2, "elinewidth": 0.8, "capsize": 1.8}
    axis.errorbar(x, y, **error, **_pen(line.style, **marker, **bars))
    if line.chosen is not None:
        at = band.x[line.chosen], band.mean[line.chosen]
        axis.plot(*at, "o", color=line.style.colour, zorder=4, **_RING)
    if named:
        beside: dict[str, Any] = {"transform": axis.get_yaxis_transform(), "va": "center"}
        axis.text(1.03, band.x[0], line.value, **beside, fontsize=7.0, color=INK)


def expert_rows(panel: Panel) -> int:
    """How many rows high a map of weights is."""
    return max(4, min(len(panel.y.names), 2 * _NAMED))


def _draw_weights(axis: Axes, panel: Panel, largest: float | None) -> Any:
    """A map of weights by expert and round; beige where an expert is not active."""
    assert panel.weights is not None
    rounds, values = panel.weights.rounds, panel.weights.values
    if len(rounds) == 1:
        edges = rounds[0] + np.array([-0.5, 0.5])
    else:
        edges = np.concatenate([rounds[:1], (rounds[1:] + rounds[:-1]) / 2.0, rounds[-1:]])
    # White to dark blue: lighter is less, to every eye and in grey.
    colours = extra("matplotlib").colormaps["Blues"].with_extremes(bad=INACTIVE)
    experts = panel.y.names
    weights, rows = np.ma.masked_invalid(values), np.arange(len(experts) + 1) - 0.5
    most = largest or panel.weights.largest or 1.0
    options: dict[str, Any] = {"cmap": colours, "vmin": 0.0, "vmax": most, "rasterized": True}
    image = axis.pcolormesh(edges, rows, weights, **options)
    axis.grid(False)
    named = range(0, len(experts), -(-len(experts) // _NAMED))
    axis.set_yticks(list(named), [literal(experts[place]) for place in named])
    axis.spines[:].set_visible(False)
    return image


def draw_colour_bar(image: Any, axes: Sequence[Axes]) -> None:
    """A bar of colours for maps of weights."""
    sheet: Any = axes[0].get_figure()
    shrink = min(1.0, 1.8 / sheet.get_figheight())
    bar = sheet.colorbar(image, ax=list(axes), shrink=shrink, pad=0.015, aspect=16)
    bar.set_label("weight of the expert")
    bar.outline.set_visible(False)


def _pen(style: LineStyle, **more: Any) -> dict[str, Any]:
    """A line style as matplotlib takes it, and further options."""
    dash = (0, style.dash) if style.dash else "-"
    width = 1.2 * style.width  # as in figures.mplstyle
    pen = {"color": style.colour, "linestyle": dash, "marker": style.marker}
    return {**pen, "linewidth": width, **more}


def _entries(figure: Figure) -> list[Line2D]:
    """A legend's entries: one for each label, or those that the figure gives."""
    lines = [line for panel in figure.panels for line in panel.lines if not line.hidden]
    if figure.key:
        return [_entry(style, label, markersize=5) for label, style in figure.key]
    dots: dict[str, Any] = {}
    if figure.panels[0].form == "dots":
        dots = {"linestyle": "none", "markersize": 5.5}
    labels = {line.label: line for line in reversed(lines)}  # the first line of each
    found = [
        _entry(labels[label].style, label, **dots, **(_HOLLOW if labels[label].hollow else {}))
        for label in dict.fromkeys(line.label for line in lines)
    ]
    if figure.columns > 1 and any(panel.drifts for panel in figure.panels):
        found.append(_entry(LineStyle(FAINT, (1.0, 1.65), "", 0.75), "abrupt change"))
    if any(line.chosen is not None for line in lines):
        found.append(_entry(LineStyle(INK, (), "o"), "chosen c", linestyle="none", **_RING))
    return found


def _entry(style: LineStyle, text: str, **line: Any) -> Line2D:
    options = _pen(style, label=literal(text), **{"markeredgewidth": 0.0, **line})
    entry: Line2D = extra("matplotlib.lines").Line2D([], [], **options)
    return entry


def _legend_below(sheet: Sheet, entries: Sequence[Line2D]) -> None:
    """One legend for all panels, which become no smaller for it."""
    lengths = [len(str(entry.get_label())) for entry in entries]
    for rows in range(1, len(entries) + 1):
        longest = [max(lengths[start : start + rows]) for start in range(0, len(lengths), rows)]
        if sum(0.062 * length + 0.62 for length in longest) <= sheet.get_figwidth():  # in inches
            break
    sheet.set_figheight(sheet.get_figheight() + _ROW * rows)
    options: dict[str, Any] = {"loc": "outside lower center", "ncols": -(-len(entries) // rows)}
    sheet.legend(handles=list(entries), handlelength=3.2, columnspacing=1.4, **options)


def _legend_beside(sheet: Sheet, entries: Sequence[Line2D]) -> None:
    """One legend to the right, what is in brackets on a line of its own; the figure may grow."""
    labels = [str(entry.get_label()).replace(" (", "\n(") for entry in entries]
    for entry, label in zip(entries, labels, strict=True):
        entry.set_label(label)
    lines = 2 + len(labels) + "".join(labels).count("\n")
    sheet.set_figheight(max(sheet.get_figheight(), _ROW * lines))
    sheet.legend(handles=list(entries), loc="outside right upper", handlelength=3.2)


def save(figure: Sheet, path: Path, **options: Any) -> None:
    """Write a figure in the format of the file's name, always with the same bytes.

    A PNG has a palette of 256 colours, which no eye tells from all of them, and a third of the size.
    """
    kind = path.suffix.removeprefix(".").lower()

    def fill(part: Path) -> None:
        figure.savefig(part, format=kind, metadata=METADATA[kind], **options)
        if kind == "png":
            image = extra("PIL.Image").open(part).convert("RGB")
            image.quantize(256, method=1, kmeans=2, dither=0).save(part, kind, optimize=True)

    write(path, fill)


def literal(text: str) -> str:
    """A text that matplotlib shows unchanged, also with a dollar sign or an underscore first."""
    return ("\u200a" if text.startswith("_") else "") + printable(text).replace("$", r"\$")


def count_axis(axis: Axes, which: str, ticks: int = 5) -> None:
    """Thousands separators, and not too many ticks."""
    ticker = extra("matplotlib.ticker")
    chosen = axis.xaxis if which == "x" else axis.yaxis

    def with_shared_decimals(value: float, _: int) -> str:
        decimals = [f"{tick:.10f}".rstrip("0").split(".")[1] for tick in chosen.get_majorticklocs()]
        return f"{value:,.{max(map(len, decimals))}f}"

    if chosen.get_scale() == "linear":
        chosen.set_major_locator(ticker.MaxNLocator(ticks, steps=[1, 2, 2.5, 5, 10]))
        chosen.set_major_formatter(ticker.FuncFormatter(with_shared_decimals))
    else:
        low, high = chosen.get_view_interval()
        parts = (1.0, 2.0, 5.0) if high < 100.0 * low else (1.0,)
        chosen.set_major_locator(ticker.LogLocator(subs=parts, numticks=ticks + 2))
        chosen.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.10g}"))
        chosen.set_minor_formatter(ticker.NullFormatter())

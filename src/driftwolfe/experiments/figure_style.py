"""The style of figures: colours, marks, ticks, words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from types import ModuleType
from typing import TYPE_CHECKING

from driftwolfe.experiments.summary import Series, Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from driftwolfe.experiments.summary import Curve
from driftwolfe.points.kinds import Array, Indices

if TYPE_CHECKING:
    from matplotlib.axes import Axes
from textwrap import wrap
from typing import TYPE_CHECKING

from driftwolfe.terminal import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


def extra(module: str) -> ModuleType:
    """Import a module of an extra dependency; where it is missing, say how to get it.

    >>> extra("no_such_package.part")
    Traceback (most recent call last):
        ...
    ImportError: this needs no_such_package: pip install 'driftwolfe[experiments]'
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        package = (missing.name or module).partition(".")[0]
        raise ImportError(
            f"this needs {package}: pip install 'driftwolfe[experiments]'"
        ) from missing


TWIN = "(synthetic twin)"
#: What oracle calls are called, by the name of their curve.
CALLS = {"lmo": "LMO", "projection": "projection", "gauge": "gauge", "membership": "membership"}


def label(series: Series) -> str:
    """The title, and how far it came where that is not the end."""
    if series.complete:
        return series.title
    return f"{series.title} (first {counted(int(series.rounds[-1]), 'round')})"


def counted(number: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "round"), counted(3000, "round")
    ('1 round', '3,000 rounds')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def length(summary: Summary) -> int:
    """The most rounds that a method played."""
    return max(int(series.rounds[-1]) for series in summary.chosen.values())


def drifts(summary: Summary) -> list[int]:
    """Rounds at which the truth changed abruptly, as far as anything was played."""
    return max((series.results[0].drifts for series in summary.chosen.values()), key=len)


def seeds(series: Iterable[Series]) -> str:
    """How many seeds stand behind the numbers."""
    counts = sorted({len(each.results) for each in series})
    if counts == [1]:
        return "one seed"
    if len(counts) == 1:
        return f"mean ± standard deviation over {counts[0]} seeds"
    return f"mean ± standard deviation over {counts[0]} to {counts[-1]} seeds"


def data_name(summary: Summary) -> str:
    """What the data are called; of a twin, what the real ones are called."""
    return summary.stream.removesuffix(TWIN).strip()


def figure_heading(summary: Summary) -> str:
    """What was played, in a line."""
    return f"{data_name(summary)} · {counted(length(summary), 'round')}"


def notice(summary: Summary) -> str | None:
    """A warning that the data are made up, where they stand in for real ones."""
    if not summary.stream.endswith(TWIN):
        return None
    return f"Synthetic twin of {data_name(summary)}: made-up data, not the real ones."


#: Width of a page's text, in inches.
WIDTH = 7.0
INK, FAINT, WARNING = "#222222", "#8c8c8c", "#a33c00"
_SETTINGS = {
    "font.family": "DejaVu Sans",
    "font.size": 7.5,
    "axes.titlesize": 8.0,
    "axes.labelsize": 7.5,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.5,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#666666",
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.6,
    "figure.constrained_layout.h_pad": 0.04,
    "figure.constrained_layout.w_pad": 0.04,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.hashsalt": "driftwolfe",
}


@contextmanager
def print_style() -> Iterator[None]:
    """Fonts, lines and colours for print, within a ``with`` block or a decorated function."""
    with extra("matplotlib").rc_context(_SETTINGS):
        yield


@dataclass(frozen=True, slots=True)
class LineStyle:
    """A colour, a dash and a marker; any two of them tell methods apart, in grey as well.

    Attributes
    ----------
    colour
        As ``#rrggbb``.
    dash
        Lengths of strokes and gaps in units of the line's width; empty for a solid line.
    marker
        As matplotlib names it.
    """

    colour: str
    dash: tuple[float, ...]
    marker: str


#: Okabe and Ito's colours without black and yellow, which a dark and a white page swallow, and a grey.
COLOURS = ("#0072B2", "#D55E00", "#767676", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES: tuple[tuple[float, ...], ...] = (
    (),
    (7.0, 1.6),
    (1.0, 1.3),
    (4.5, 1.4, 1.0, 1.4),
    (3.2, 1.4),
    (4.5, 1.3, 1.0, 1.3, 1.0, 1.3),
    (1.8, 1.8),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
KNOWN = ("POLD", "POLA", "BOGD_IP", "Multi-OCG", "Ader", "PAMO", "PAMO, exact gauge")
#: Line styles where they stand for the kind of oracle call.
CALL_DASHES: dict[str, tuple[float, ...]] = {
    "lmo": (),
    "projection": (4.0, 1.6),
    "gauge": (1.0, 1.3),
    "membership": (4.0, 1.3, 1.0, 1.3),
}


def line_styles(titles: Iterable[str]) -> dict[str, LineStyle]:
    """Give each title a line_style; the paper's methods always have their own.

    Others take, by the alphabet, what is left: first colours that nothing else has, then other dashes.

    >>> found = looks(["POLD", "OGD", "BOGDIP"])
    >>> found["POLD"].colour, found["BOGDIP"].colour
    ('#0072B2', '#767676')
    >>> found["OGD"] == looks(["OGD", "POLD", "BOGDIP"])["OGD"]
    True
    """
    wanted = list(dict.fromkeys(titles))
    found: dict[str, LineStyle] = {}
    for title in wanted:
        line_style = _FIXED.get(_plain(title))
        if line_style is not None and line_style not in found.values():
            found[title] = line_style
    for title in sorted(set(wanted) - found.keys()):
        found[title] = _spare(found.values())
    return {title: found[title] for title in wanted}


def _plain(title: str) -> str:
    """The letters and digits: ``BOGDIP`` and ``BOGD_IP`` are the same method."""
    return "".join(letter for letter in title.lower() if letter.isalnum())


def _candidates() -> Iterator[LineStyle]:
    for turn, start in product(range(len(MARKERS)), range(len(COLOURS))):
        yield LineStyle(
            COLOURS[start],
            DASHES[(start + turn) % len(DASHES)],
            MARKERS[(start + 2 * turn) % len(MARKERS)],
        )


def _spare(taken: Iterable[LineStyle]) -> LineStyle:
    used = set(taken)
    free = [line_style for line_style in _candidates() if line_style not in used]
    colours = {line_style.colour for line_style in used}
    fresh = [line_style for line_style in free if line_style.colour not in colours]
    everything = list(_candidates())
    return (fresh or free or everything[len(used) % len(everything) :])[0]


_FIXED = {
    _plain(title): LineStyle(colour, dash, marker)
    for title, colour, dash, marker in zip(KNOWN, COLOURS, DASHES, MARKERS, strict=True)
}


def count_axis(axis: Axes, which: str, ticks: int = 5) -> None:
    """Thousands separators, and not too many ticks."""
    ticker = extra("matplotlib.ticker")
    chosen = axis.xaxis if which == "x" else axis.yaxis
    if chosen.get_scale() == "linear":
        chosen.set_major_locator(ticker.MaxNLocator(ticks, steps=[1, 2, 2.5, 5, 10]))
        chosen.set_major_formatter(
            ticker.FuncFormatter(lambda value, _: alike(value, chosen.get_majorticklocs()))
        )
    else:
        low, high = chosen.get_view_interval()
        parts = (1.0, 2.0, 5.0) if high < 100.0 * low else (1.0,)
        chosen.set_major_locator(ticker.LogLocator(subs=parts, numticks=ticks + 2))
        chosen.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.10g}"))
        chosen.set_minor_formatter(ticker.NullFormatter())


def alike(value: float, ticks: Iterable[float]) -> str:
    """A tick's number with as many decimals as all the ticks need.

    >>> alike(1.0, [0.8, 1.0, 1.2]), alike(1000.0, [0.0, 1000.0])
    ('1.0', '1,000')
    """
    texts = [f"{tick:.10f}".rstrip("0") for tick in ticks]
    return f"{value:,.{max(len(text.partition('.')[2]) for text in texts)}f}"


#: The part of the rounds whose averages are still noise.
EARLY = 0.05
#: The ratio from which an axis is logarithmic.
WIDE = 20.0


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """A mean and what surrounds it by a standard deviation.

    Attributes
    ----------
    rounds
        Where it was read.
    mean, deviation
        Over seeds, an entry for each of `rounds`.
    """

    rounds: Indices
    mean: Array
    deviation: Array

    @property
    def low(self) -> Array:
        """The mean less the deviation."""
        return self.mean - self.deviation

    @property
    def high(self) -> Array:
        """The mean and the deviation."""
        return self.mean + self.deviation

    def thinned(self, most: int) -> Band:
        """The same at `most` rounds at the most, the first and the last among them."""
        kept = evenly(len(self.rounds), most)
        return Band(self.rounds[kept], self.mean[kept], self.deviation[kept])


def band(series: Series, curve: Curve, *, average: bool = False) -> Band:
    """A cumulative curve, or its average over the rounds up to each."""
    values = series.curve(curve)
    if average:
        values = values / series.rounds
    several = len(values) > 1
    deviation = values.std(axis=0, ddof=1) if several else np.zeros(values.shape[1])
    return Band(series.rounds, values.mean(axis=0), deviation)


def evenly(size: int, most: int) -> Indices:
    """Up to `most` of the places 0, ..., size - 1, both ends among them.

    >>> evenly(10, 4).tolist(), evenly(3, 4).tolist()
    ([0, 3, 6, 9], [0, 1, 2])
    """
    if size <= most:
        return np.arange(size)
    return np.linspace(0, size - 1, most).round().astype(np.int64)


def settled_range(bands: Sequence[Band]) -> tuple[float, float]:
    """A range that holds the bands but for their first rounds, which are noise.

    Curves that do not outlive those are held whole, from their middle on.
    """
    last = max(int(each.rounds[-1]) for each in bands)
    lows, highs = [], []
    for each in bands:
        kept = each.rounds >= min(EARLY * last, 0.5 * each.rounds[-1])
        lows.append(float(each.low[kept].min()))
        highs.append(float(each.high[kept].max()))
    low, high = min(lows), max(highs)
    margin = 0.04 * (high - low) or 0.04 * abs(high) or 1.0
    return low - margin, high + margin


def spans_widely(values: Iterable[float]) -> bool:
    """Whether positive values lie so far apart that only a logarithmic axis shows them all."""
    found = list(values)
    return bool(found) and min(found) > 0.0 and max(found) > WIDE * min(found)


#: Markers on a curve.
_MARKS = 6


def draw_band(axis: Axes, band: Band, line_style: LineStyle, place: int, **line: Any) -> None:
    """A line with a few markers and its band; `place` keeps the markers of methods apart."""
    step = max(1, len(band.rounds) // _MARKS)
    start = min((place * step) // _MARKS % step, len(band.rounds) - 1)
    style: dict[str, Any] = {
        "color": line_style.colour,
        "linestyle": stroke(line_style.dash),
        "marker": line_style.marker,
        "markevery": slice(start, None, step),
        "markeredgewidth": 0.0,
    }
    axis.plot(band.rounds, band.mean, **{**style, **line})
    if band.deviation.any():
        low = band.low if axis.get_yscale() == "linear" else _above_zero(band)
        axis.fill_between(
            band.rounds, low, band.high, color=line_style.colour, alpha=0.18, linewidth=0.0
        )


def _above_zero(band: Band) -> Any:
    """The lower border where the axis has no room for zero."""
    return np.maximum(band.low, 0.1 * band.mean)


def mark_end(axis: Axes, band: Band, line_style: LineStyle) -> None:
    """Say that a curve was ended before the stream."""
    axis.plot(
        band.rounds[-1:],
        band.mean[-1:],
        "x",
        color=line_style.colour,
        markersize=6,
        markeredgewidth=1.4,
    )


def mark_drifts(axis: Axes, rounds: Iterable[int], **line: Any) -> None:
    """Thin dotted lines where the truth changes at once."""
    for t in rounds:
        axis.axvline(
            t, **{"color": FAINT, "linestyle": ":", "linewidth": 0.7, "zorder": 0.5, **line}
        )


def stroke(dash: Sequence[float]) -> Any:
    """A dash as matplotlib wants it."""
    return (0, tuple(dash)) if dash else "-"


__all__ = ["FAINT", "INK", "WARNING", "WIDTH", "literal", "print_style", "sheet"]


def sheet(summary: Summary, shown: str, height: float, width: float = WIDTH) -> Figure:
    """An empty figure that says what is `shown`, and whether the data are made up."""
    figure: Figure = extra("matplotlib.figure").Figure(
        figsize=(width, height), dpi=100, layout="constrained"
    )
    heading = wrap(f"{figure_heading(summary)} · {shown}", int(width / 0.064))
    warning = wrap(notice(summary) or "", int(width / 0.073))
    # Blank lines hold the place of the warning, which has a colour of its own.
    lines = literal("\n".join([*heading, *(" " for _ in warning)]))
    title = figure.suptitle(lines, x=0.01, ha="left", va="top", fontsize=7.5, color="#444444")
    if warning:
        _write_warning(figure, title, "\n".join(warning))
    return figure


def _write_warning(figure: Figure, title: Any, warning: str) -> None:
    note = extra("matplotlib.text").Annotation(
        literal(warning),
        xy=(0.0, 0.0),
        xycoords=title,
        va="bottom",
        fontsize=7.5,
        fontweight="bold",
        color=WARNING,
    )
    note.set_in_layout(False)
    figure.add_artist(note)


def literal(text: str) -> str:
    """A text that matplotlib shows as it stands.

    A dollar sign would start maths, a legend leaves out what starts with an underscore, and letters
    that are commands have no place in an SVG file.
    """
    return ("\u200a" if text.startswith("_") else "") + printable(text).replace("$", r"\$")


#: Inches of a legend's row.
_ROW = 0.165


def key(line_style: LineStyle, text: str, **line: Any) -> Line2D:
    """A legend's entry for a method."""
    style: dict[str, Any] = {
        "color": line_style.colour,
        "linestyle": stroke(line_style.dash),
        "marker": line_style.marker,
        "markeredgewidth": 0.0,
        "label": literal(text),
    }
    entry: Line2D = extra("matplotlib.lines").Line2D([], [], **{**style, **line})
    return entry


def drift_key() -> Line2D:
    """A legend's entry for the drifts."""
    entry: Line2D = extra("matplotlib.lines").Line2D(
        [], [], color=FAINT, linestyle=":", linewidth=0.9, label="abrupt change"
    )
    return entry


def legend_below(figure: Figure, entries: Sequence[Line2D]) -> None:
    """One legend for all panels, which become no smaller for it."""
    rows = 1
    while rows < len(entries) and _legend_width(entries, rows) > figure.get_figwidth():
        rows += 1
    figure.set_figheight(figure.get_figheight() + _ROW * rows)
    figure.legend(
        handles=list(entries),
        loc="outside lower center",
        ncols=-(-len(entries) // rows),
        handlelength=3.2,
        columnspacing=1.4,
    )


def legend_beside(figure: Figure, entries: Sequence[Line2D]) -> None:
    """One legend to the right, and the figure at least as high as that."""
    lines = sum(str(entry.get_label()).count("\n") + 1 for entry in entries)
    figure.set_figheight(max(figure.get_figheight(), _ROW * (lines + 2)))
    figure.legend(handles=list(entries), loc="outside right upper", handlelength=3.2)


def _legend_width(entries: Sequence[Line2D], rows: int) -> float:
    """About how many inches it takes with so many rows, filled column by column."""
    lengths = [len(str(entry.get_label())) for entry in entries]
    columns = [lengths[start : start + rows] for start in range(0, len(lengths), rows)]
    return sum(0.062 * max(column) + 0.62 for column in columns)


def in_two_lines(text: str) -> str:
    """A label with what is in brackets below it."""
    return text.replace(" (", "\n(")

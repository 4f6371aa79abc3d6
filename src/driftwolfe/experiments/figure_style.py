"""The style of figures; needs matplotlib alone, and only when something is drawn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from driftwolfe.points.kinds import Array, Indices
from driftwolfe.storage import write
from driftwolfe.terminal import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

WIDTH = 7.0  # of a page's text, in inches
#: Formats, and the metadata without which files would differ from run to run.
METADATA = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
INK, FAINT, WARNING = "#222222", "#8c8c8c", "#a33c00"
INACTIVE = "#e3ddd3"  # of experts
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
BLUE, ORANGE, GREY, GREEN, PINK, AMBER, SKY = COLOURS
#: The colour of a method in all figures, those that are shown first before others; methods that share one
#: differ in dash and marker.
METHODS = {
    "POLAR": BLUE,
    "POLA": ORANGE,
    "POLD": SKY,
    "BOGD_IP": GREY,
    "Multi-OCG": GREEN,
    "Ader": PINK,
    "PAMO": AMBER,
    "OGD": PINK,
    **dict.fromkeys(("OnlineFrankWolfe", "SAOL", "OneProjectionSAOL"), GREEN),
    **dict.fromkeys(("OneProjectionAder", "OneOracleAder"), AMBER),
    **dict.fromkeys(("TraceNormClassifier", "TraceNormRegressor", "MatrixCompleter"), BLUE),
    **dict.fromkeys(("Recommender", "AdaptiveIntervals"), BLUE),
}
#: The end of the label of a method with the steps of its theory, c = D/G; its lines are thin.
UNTUNED = ", untuned"
_ROW = 0.165  # inches of a legend's row
_MARKS = 6  # markers on a curve
NAMED = 13  # experts that a map names at most


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


@dataclass(frozen=True, slots=True)
class LineStyle:
    """A colour, a dash and a marker; any two of them tell methods apart, in grey as well."""

    colour: str  # as #rrggbb
    dash: tuple[float, ...]  # strokes and gaps in units of the line's width; empty for solid
    marker: str  # as matplotlib names it
    width: float = 1.0  # in units of a line's width


def line_styles(titles: Iterable[str]) -> dict[str, LineStyle]:
    """A line style for each title: variants of a method share its colour, those untuned are thin.

    Those of `METHODS` look the same in all figures, others take what is left.
    """
    wanted = list(dict.fromkeys(titles))
    families: dict[str, LineStyle] = {}
    for name in sorted(set(map(family, wanted)), key=lambda name: (rank(name), name)):
        free = [style for style in _CANDIDATES if style not in families.values()]
        colours = {style.colour for style in families.values()}
        fresh = [style for style in free if style.colour not in colours]
        unused = (fresh or free or _CANDIDATES[len(families) % len(_CANDIDATES) :])[0]
        fixed = _FIXED.get(_plain(name), unused)
        families[name] = unused if fixed in families.values() else fixed
    found: dict[str, LineStyle] = {}
    taken = set(families.values())
    for title in sorted(wanted, key=lambda title: (title.endswith(UNTUNED), title)):
        own = families[family(title)]
        if title != family(title):
            alike = [style for style in _CANDIDATES if style.colour == own.colour]
            own = next((style for style in alike if style not in taken), own)
            taken.add(own)
        found[title] = replace(own, width=0.55) if title.endswith(UNTUNED) else own
    return {title: found[title] for title in wanted}


def family(title: str) -> str:
    """The method that a title is a variant of: what stands before a comma or a bracket."""
    return re.split(r",| \(", title)[0] or title


def rank(title: str) -> int:
    """The place of a title's method among `METHODS`; others come after them."""
    name = _plain(family(title))
    return list(_FIXED).index(name) if name in _FIXED else len(_FIXED)


def _plain(title: str) -> str:
    """The letters and digits: ``BOGDIP`` and ``BOGD_IP`` are the same method."""
    return "".join(letter for letter in title.lower() if letter.isalnum())


#: Seven colours, dashes and markers in every combination of two.
_CANDIDATES = [
    LineStyle(COLOURS[i], DASHES[(i + shift) % 7], MARKERS[(i + 2 * shift) % 7])
    for shift, i in product(range(7), range(7))
]
_FIXED: dict[str, LineStyle] = {}
for _name, _colour in METHODS.items():
    _alike = [style for style in _CANDIDATES if style.colour == _colour]
    _FIXED[_plain(_name)] = next(style for style in _alike if style not in _FIXED.values())


class Band(NamedTuple):
    """A mean over seeds and its standard deviation at each of `x`: rounds, or values of c."""

    x: Array | Indices
    mean: Array
    deviation: Array

    @classmethod
    def of(cls, x: Array | Indices, values: Array) -> Band:
        """Of rows of values, one for each seed."""
        deviation = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1])
        return cls(x, values.mean(axis=0), deviation)

    def edges(self, *, positive: bool = False) -> tuple[Array, Array]:
        """The mean less the deviation, above zero for a logarithmic axis, and their sum."""
        low, high = self.mean - self.deviation, self.mean + self.deviation
        return np.maximum(low, 0.1 * self.mean) if positive else low, high

    def thinned(self, most: int) -> Band:
        kept = evenly(len(self.x), most)
        return Band(self.x[kept], self.mean[kept], self.deviation[kept])


def evenly(size: int, most: int) -> Indices:
    """Up to `most` of the places 0, ..., size - 1, both ends among them."""
    return np.linspace(0, size - 1, min(size, most)).round().astype(np.int64)


def settled_range(bands: Sequence[Band]) -> tuple[float, float]:
    """A range that holds the bands but for their first rounds, or the first half of short ones."""
    last = max(int(each.x[-1]) for each in bands)
    # The averages of the first twentieth of the rounds are still noise.
    settled = [
        np.array(each.edges())[:, each.x >= min(0.05 * last, 0.5 * each.x[-1])] for each in bands
    ]
    low = min(float(edges.min()) for edges in settled)
    high = max(float(edges.max()) for edges in settled)
    margin = 0.04 * (high - low) or 0.04 * abs(high) or 1.0
    return low - margin, high + margin


def save(figure: Figure, path: Path, **options: Any) -> None:
    """Write a figure in the format of the file's name, always with the same bytes.

    A PNG has a palette of 256 colours, which no eye tells from all of them, and a third of the size.
    """
    kind = path.suffix.removeprefix(".")

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


def mark_drifts(axis: Axes, rounds: Iterable[int], **line: Any) -> None:
    """Thin dotted lines at abrupt changes."""
    style = {"color": FAINT, "linestyle": ":", "linewidth": 0.7, "zorder": 0.5, **line}
    for t in rounds:
        axis.axvline(t, **style)


def pen(style: LineStyle, **more: Any) -> dict[str, Any]:
    """A line style as matplotlib takes it, and further options."""
    dash = (0, style.dash) if style.dash else "-"
    width = 1.2 * style.width  # as in figures.mplstyle
    look = {"color": style.colour, "linestyle": dash, "marker": style.marker}
    return {**look, "linewidth": width, **more}


def draw_band(axis: Axes, band: Band, style: LineStyle, place: int, **options: Any) -> None:
    """The mean, with a few markers apart from those of lines in other places, and the deviation."""
    step = max(1, len(band.x) // _MARKS)
    marks = slice(place * step // _MARKS % step, None, step)
    axis.plot(band.x, band.mean, **pen(style, markeredgewidth=0.0, markevery=marks, **options))
    if band.deviation.any():
        edges = band.edges(positive=axis.get_yscale() == "log")
        axis.fill_between(band.x, *edges, color=style.colour, alpha=0.18, linewidth=0.0)


def key(style: LineStyle, text: str, **line: Any) -> Line2D:
    """A legend's entry for a method."""
    options = pen(style, label=literal(text), **{"markeredgewidth": 0.0, **line})
    entry: Line2D = extra("matplotlib.lines").Line2D([], [], **options)
    return entry


def legend_below(figure: Figure, entries: Sequence[Line2D]) -> None:
    """One legend for all panels, which become no smaller for it."""
    lengths = [len(str(entry.get_label())) for entry in entries]
    for rows in range(1, len(entries) + 1):
        longest = [max(lengths[start : start + rows]) for start in range(0, len(lengths), rows)]
        if sum(0.062 * length + 0.62 for length in longest) <= figure.get_figwidth():  # in inches
            break
    figure.set_figheight(figure.get_figheight() + _ROW * rows)
    options: dict[str, Any] = {"loc": "outside lower center", "ncols": -(-len(entries) // rows)}
    figure.legend(handles=list(entries), handlelength=3.2, columnspacing=1.4, **options)


def legend_beside(figure: Figure, entries: Sequence[Line2D]) -> None:
    """One legend to the right, what is in brackets on a line of its own; the figure may grow."""
    labels = [str(entry.get_label()).replace(" (", "\n(") for entry in entries]
    for entry, label in zip(entries, labels, strict=True):
        entry.set_label(label)
    lines = 2 + len(labels) + "".join(labels).count("\n")
    figure.set_figheight(max(figure.get_figheight(), _ROW * lines))
    figure.legend(handles=list(entries), loc="outside right upper", handlelength=3.2)


def expert_size(expert: str) -> float:
    """The number in an expert's name, such as 1024 in "γ = 1,024"; 0 where there is none."""
    number = re.search(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?", expert)
    return float(number.group().replace(",", "")) if number else 0.0


def largest_weight(tables: Iterable[Array]) -> float:
    """The largest weight where several experts are active: a single one always has weight 1."""
    contested = [values[:, (~np.isnan(values)).sum(axis=0) > 1] for values in tables]
    return max((float(np.nanmax(values)) for values in contested if values.size), default=1.0)


def weight_map(
    axis: Axes, experts: Sequence[str], rounds: Indices, values: Array, largest: float
) -> Any:
    """A map of weights by expert and round; beige where an expert is not active, which is nan."""
    if len(rounds) == 1:
        edges = rounds[0] + np.array([-0.5, 0.5])
    else:
        edges = np.concatenate([rounds[:1], (rounds[1:] + rounds[:-1]) / 2.0, rounds[-1:]])
    # White to dark blue: lighter is less, to every eye and in grey.
    colours = extra("matplotlib").colormaps["Blues"].with_extremes(bad=INACTIVE)
    weights, rows = np.ma.masked_invalid(values), np.arange(len(experts) + 1) - 0.5
    options: dict[str, Any] = {"cmap": colours, "vmin": 0.0, "vmax": largest, "rasterized": True}
    image = axis.pcolormesh(edges, rows, weights, **options)
    axis.grid(False)
    named = range(0, len(experts), -(-len(experts) // NAMED))
    axis.set_yticks(list(named), [literal(experts[place]) for place in named])
    axis.tick_params(axis="y", length=0)
    axis.spines[:].set_visible(False)
    return image

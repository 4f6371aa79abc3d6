"""The model of a figure, the style of its lines, and its drawing for print; page.js draws it in the report.

Matplotlib is imported only when something is drawn.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import chain, product
from pathlib import Path
from textwrap import wrap
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from driftwolfe.points.kinds import Array, Indices
from driftwolfe.storage import write
from driftwolfe.terminal import number, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet
    from matplotlib.lines import Line2D

# -- the model -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Band:
    """A mean over seeds and its standard deviation at each of `x`: rounds, values of c, or a cost."""

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


@dataclass(frozen=True)
class Line:
    """A line of a method, or its dot."""

    method: str  # those of one method are hidden together
    label: str  # in a legend
    style: LineStyle
    band: Band
    chosen: int | None = None  # the place of a ring: the c that the method was run with
    hollow: bool = False  # whether markers are: no c was chosen
    hidden: bool = False  # not drawn in print, and in the report only after a click in the legend
    value: str = ""  # of a dot, in words


@dataclass(frozen=True)
class Axis:
    """An axis of a panel."""

    title: str
    kind: Literal["number", "rounds", "scales", "experts"] = "number"
    log: bool = False
    low: float | None = None  # where it starts and ends; None: at the last point
    high: float | None = None
    ticks: int = 5  # in print, about
    names: Sequence[str] = ()  # of the rows of a map, from below


@dataclass(frozen=True)
class ExpertWeights:
    """Weights by expert, then by round; nan where an expert was not active."""

    rounds: Indices
    values: Array

    @property
    def largest(self) -> float:
        """The largest where several experts are active: a single one always has weight 1."""
        contested = self.values[:, (~np.isnan(self.values)).sum(axis=0) > 1]
        return float(np.nanmax(contested)) if contested.size else 0.0


@dataclass(frozen=True)
class Panel:
    """Lines that have their axes in common, or a map of weights."""

    title: str
    x: Axis
    y: Axis
    lines: Sequence[Line] = ()
    form: Literal["bands", "bars", "dots"] = "bands"  # how lines show their deviation
    drifts: Sequence[int] = ()
    weights: ExpertWeights | None = None

    @property
    def description(self) -> str:
        """What it shows at the end, for those who do not see it."""
        ends = [f"{ln.label} {ln.value or number(float(ln.band.mean[-1]))}" for ln in self.lines]
        if self.weights is not None:
            last = np.nan_to_num(self.weights.values[:, -1], nan=-1.0)
            ends = [f"most weight has {self.y.names[int(last.argmax())]}, {last.max():.2f}"]
        title = " ".join(self.title.split()) or f"{self.y.title} against {self.x.title}"
        return f"{title}: {', '.join(ends)}"


@dataclass(frozen=True)
class Figure:
    """Panels side by side, the words around them, and how large they are in print."""

    name: str  # of its file
    heading: Sequence[str]  # which data and seeds
    panels: Sequence[Panel]
    warning: str = ""
    columns: int = 1
    height: float = 2.7  # of a row of panels in print, in inches

    @property
    def description(self) -> str:
        return f"At the end: {'; '.join(panel.description for panel in self.panels)}."

    @property
    def largest_weight(self) -> float:
        return max((each.weights.largest for each in self.panels if each.weights), default=0) or 1.0

    def page_json(self, points: int) -> str:
        """The figure as page.js takes it, with at most `points` on a line.

        The JSON can neither end a script element nor start a comment in it.
        """

        def plain(part: Any) -> Any:
            if isinstance(part, np.ndarray):
                return brief(part) if part.ndim == 1 else list(part.round(3))
            if not isinstance(part, Band | ExpertWeights):
                return vars(part)
            along, *_ = vars(part).values()
            kept = evenly(len(along), points)
            return {name: values[..., kept] for name, values in vars(part).items()}

        content = {"panels": self.panels, "largest": round(self.largest_weight, 4)}
        text = json.dumps(content, default=plain, separators=(",", ":"), allow_nan=False)
        for sign in "<>&":
            text = text.replace(sign, f"\\u{ord(sign):04x}")
        return text


def brief(values: Iterable[Any]) -> list[float | None]:
    """Numbers for the report: six digits, so that they take little room; None for nan."""
    rounded = (float(f"{value:.6g}") for value in values)
    return [None if math.isnan(v) else int(v) if v.is_integer() else v for v in rounded]


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


def expert_size(expert: str) -> float:
    """The number in an expert's name, such as 1024 in "γ = 1,024"; 0 where there is none, inf for "all rows"."""
    found = re.search(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?", expert)
    if found is None:
        return math.inf if expert == "all rows" else 0.0
    return float(found[0].replace(",", ""))


def weights_panel(
    title: str,
    x: Axis,
    rounds: Indices,
    weights: Sequence[Mapping[str, float | None]],
    drifts: Sequence[int] = (),
    missing: float = math.nan,
) -> Panel:
    """A map of weights by expert, in each of some rounds: experts from the smallest, see `expert_size`."""
    names = sorted(dict.fromkeys(chain(*weights)), key=expert_size)
    values = np.array(
        [[each.get(name, missing) for each in weights] for name in names], dtype=float
    )
    y = Axis("", "experts", names=names)
    return Panel(title, x, y, drifts=drifts, weights=ExpertWeights(rounds, values))


# -- the style of lines ----------------------------------------------------------------------------

INK, FAINT = "#222222", "#8c8c8c"
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
#: The colour of a method in all figures, those that are shown first before others; methods of one colour
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


@dataclass(frozen=True)
class LineStyle:
    """A colour, a dash and a marker; any two of them tell methods apart, in grey as well."""

    colour: str  # as #rrggbb
    dash: tuple[float, ...]  # strokes and gaps in units of the line's width; empty for solid
    marker: str  # as matplotlib names it
    width: float = 1.0  # in units of a line's width


def line_styles(titles: Iterable[str]) -> dict[str, LineStyle]:
    """A line style for each title: variants of a method have its colour, those untuned are thin.

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
    found, taken = dict[str, LineStyle](), set(families.values())
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

# -- drawing for print -----------------------------------------------------------------------------

WIDTH = 7.0  # of a page's text, in inches
#: Formats, and the metadata without which files would differ from run to run.
METADATA = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
WARNING = "#a33c00"
INACTIVE = "#e3ddd3"  # of experts
_ROW = 0.165  # inches of a legend's row
_MARKS = 6  # markers on a curve
_NAMED = 13  # experts that a map names at most
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
    maps, dots = bool(panels[0].weights), panels[0].form == "dots"
    several = len(panels) > 1 and columns > 1
    rows = -(-len(panels) // columns)
    ratios, height = np.ones(rows), rows * figure.height
    if maps:
        heights = [expert_rows(panel) for panel in panels]
        ratios = np.array([max(heights[i * columns : (i + 1) * columns]) for i in range(rows)])
        height = 0.125 * ratios.sum() + 0.36 * rows + 0.8
    options: dict[str, Any] = {"figsize": (WIDTH, height), "dpi": 100, "layout": "constrained"}
    sheet: Sheet = extra("matplotlib.figure").Figure(**options)
    letters = int(WIDTH / 0.064)
    heading = [*wrap(" · ".join(figure.heading), letters), *wrap(figure.warning, letters)]
    options = {"fontsize": 7.5, "color": WARNING if figure.warning else "#444444"}
    sheet.suptitle(literal("\n".join(heading)), x=0.01, ha="left", va="top", **options)
    options = {"sharey": dots, "height_ratios": ratios, "squeeze": False}
    axes = list(sheet.subplots(rows, columns, **options).flat)
    for axis in axes[len(panels) :]:
        axis.remove()
    for place, (axis, panel) in enumerate(zip(axes, panels, strict=False)):
        image = draw_panel(axis, panel, figure.largest_weight)
        if several and panel.form == "bands":
            axis.grid(visible=False, axis="x")  # changes are marked there
        if dots and place % columns:
            axis.set_ylabel("")
        if maps and place < len(panels) - columns:
            axis.tick_params(labelbottom=False)
            axis.set_xlabel("")
    if maps:
        draw_colour_bar(image, axes[: len(panels)])
        if any(np.isnan(panel.weights.values).any() for panel in panels if panel.weights):
            patch = extra("matplotlib.patches").Patch(color=INACTIVE, label="expert not active")
            sheet.legend(handles=[patch], loc="outside lower right")
    else:
        _legend(sheet, _entries(figure), beside=not (several or dots))
    return sheet


def draw_panel(axis: Axes, panel: Panel, largest: float | None = None, **options: Any) -> Any:
    """Draw a panel; return the image of its weights, whose darkest colour is that of the `largest`."""
    maps = bool(panel.weights)
    if panel.title:
        weight = "bold" if panel.form == "bands" and not maps else "normal"
        pad = 3 if maps else None
        axis.set_title(literal(panel.title), loc="left", pad=pad, fontweight=weight)
    if panel.x.log:
        axis.set_xscale("log")
    if panel.y.log:
        axis.set_yscale("log")
    image = _draw_weights(axis, panel, largest) if maps else None
    for t in panel.drifts:
        mark: dict[str, Any] = {"color": INK if maps else FAINT, "zorder": 3 if maps else 0.5}
        axis.axvline(t, linestyle=":", linewidth=0.7, **mark)
    draw_line = _draw_band if panel.form == "bands" else _draw_marks
    for place, line in enumerate(line for line in panel.lines if not line.hidden):
        draw_line(axis, panel, line, place, **options)
    axis.set_xlabel(panel.x.title)
    axis.set_ylabel(panel.y.title)
    if panel.x.high is not None:
        axis.set_xlim(panel.x.low, panel.x.high)
    count_axis(axis, "x", panel.x.ticks)
    if panel.y.names:
        axis.tick_params(axis="y", length=0)
    else:
        count_axis(axis, "y", panel.y.ticks)
        if panel.y.low is not None:
            axis.set_ylim(panel.y.low, panel.y.high)
    if panel.form == "dots":
        axis.margins(x=0.12)
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


def _draw_marks(axis: Axes, panel: Panel, line: Line, place: int) -> None:
    """Markers with error bars; a ring at the chosen c."""
    band, marker = line.band, _HOLLOW if line.hollow else {"markeredgewidth": 0.8}
    bars: dict[str, Any] = {"markersize": 4.2, "capsize": 1.8}
    if panel.form == "dots":
        bars = {"markersize": 5.5, "linestyle": "none"}
    if band.deviation.any():
        bars["yerr"] = band.deviation
    axis.errorbar(band.x, band.mean, elinewidth=0.8, **_pen(line.style, **marker, **bars))
    if line.chosen is not None:
        at = band.x[line.chosen], band.mean[line.chosen]
        axis.plot(*at, "o", color=line.style.colour, zorder=4, **_RING)


def expert_rows(panel: Panel) -> int:
    """How many rows high a map of weights is."""
    return max(4, min(len(panel.y.names), 2 * _NAMED))


def _draw_weights(axis: Axes, panel: Panel, largest: float | None) -> Any:
    """A map of weights by expert and round; beige where an expert is not active."""
    assert panel.weights is not None
    rounds, experts = panel.weights.rounds, panel.y.names
    edges = np.concatenate([rounds[:1], (rounds[1:] + rounds[:-1]) / 2.0, rounds[-1:]])
    if len(rounds) == 1:
        edges = rounds[0] + np.array([-0.5, 0.5])
    # White to dark blue: lighter is less, to every eye and in grey.
    colours = extra("matplotlib").colormaps["Blues"].with_extremes(bad=INACTIVE)
    weights, rows = np.ma.masked_invalid(panel.weights.values), np.arange(len(experts) + 1) - 0.5
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
    dash, width = (0, style.dash) if style.dash else "-", 1.2 * style.width  # see figures.mplstyle
    pen = {"color": style.colour, "linestyle": dash, "marker": style.marker, "linewidth": width}
    return pen | more


def _entries(figure: Figure) -> list[Line2D]:
    """A legend's entries: one for each label."""
    lines = [line for panel in figure.panels for line in panel.lines if not line.hidden]
    alone = figure.panels[0].form == "dots"
    dots: dict[str, Any] = {"linestyle": "none", "markersize": 5.5} if alone else {}
    first: dict[str, Line] = {}  # of each label
    for line in lines:
        first.setdefault(line.label, line)
    found = [
        _entry(line.style, label, **dots, **(_HOLLOW if line.hollow else {}))
        for label, line in first.items()
    ]
    if figure.columns > 1 and any(panel.drifts for panel in figure.panels):
        found.append(_entry(LineStyle(FAINT, (1.0, 1.65), "", 0.75), "abrupt change"))
    if any(line.chosen is not None for line in lines):
        found.append(_entry(LineStyle(INK, (), "o"), "chosen c", linestyle="none", **_RING))
    return found


def _entry(style: LineStyle, text: str, **line: Any) -> Line2D:
    options = _pen(style, label=literal(text), **{"markeredgewidth": 0.0, **line})
    made: Line2D = extra("matplotlib.lines").Line2D([], [], **options)
    return made


def _legend(sheet: Sheet, entries: Sequence[Line2D], beside: bool) -> None:
    """One legend, below panels that become no smaller for it, or to the right: the figure grows."""
    options: dict[str, Any] = {"handles": list(entries), "handlelength": 3.2}
    labels = [str(entry.get_label()) for entry in entries]
    if beside:  # what is in brackets has a line of its own
        labels = [label.replace(" (", "\n(") for label in labels]
        rows = 2 + len(labels) + "".join(labels).count("\n")
        sheet.set_figheight(max(sheet.get_figheight(), _ROW * rows))
        sheet.legend(labels=labels, loc="outside right upper", **options)
        return
    for rows in range(1, len(entries) + 1):
        longest = [max(map(len, labels[i : i + rows])) for i in range(0, len(labels), rows)]
        if sum(0.062 * length + 0.62 for length in longest) <= sheet.get_figwidth():  # in inches
            break
    sheet.set_figheight(sheet.get_figheight() + _ROW * rows)
    options |= {"loc": "outside lower center", "ncols": -(-len(entries) // rows)}
    sheet.legend(columnspacing=1.4, **options)


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

"""The style of figures; needs matplotlib alone, and only when something is drawn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from driftwolfe.storage import write
from driftwolfe.terminal import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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

"""The model of a figure: what `drawing` draws for print and page.js in the report; and the style of its lines."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import numpy as np

from driftwolfe.points.kinds import Array, Indices
from driftwolfe.terminal import number


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

    def thinned(self, most: int) -> Band:
        kept = evenly(len(self.x), most)
        return Band(self.x[kept], self.mean[kept], self.deviation[kept])


@dataclass(frozen=True)
class Line:
    """A line of a method, or its dot."""

    method: str  # those of one method are hidden together
    label: str  # in a legend
    style: LineStyle
    band: Band
    chosen: int | None = None  # the place of a ring: the c that the method was run with
    hollow: bool = False  # whether markers are: c was chosen on fewer rounds, or not at all
    ended: bool = False  # whether a cross marks an early end
    hidden: bool = False  # not drawn in print, and in the report only after a click in the legend
    value: str = ""  # of a dot, in words


@dataclass(frozen=True)
class Axis:
    """An axis of a panel."""

    title: str
    kind: Literal["number", "rounds", "scales", "regret", "methods", "experts"] = "number"
    log: bool = False
    low: float | None = None  # where it starts and ends; None: at the last point
    high: float | None = None
    ticks: int = 5  # in print, about
    names: Sequence[str] = ()  # of rows, from the first


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

    def thinned(self, most: int) -> ExpertWeights:
        kept = evenly(len(self.rounds), most)
        return ExpertWeights(self.rounds[kept], self.values[:, kept].round(3))


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
    key: Sequence[tuple[str, LineStyle]] = ()  # a legend in place of one entry for each label

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
        thin = [
            replace(
                panel,
                lines=[replace(line, band=line.band.thinned(points)) for line in panel.lines],
                weights=panel.weights and panel.weights.thinned(points),
            )
            for panel in self.panels
        ]
        content = {"panels": thin, "largest": round(self.largest_weight, 4)}
        text = json.dumps(content, default=_as_json, separators=(",", ":"), allow_nan=False)
        for sign in "<>&":
            text = text.replace(sign, f"\\u{ord(sign):04x}")
        return text


def _as_json(part: Any) -> Any:
    """A part of a figure as JSON takes it."""
    if not isinstance(part, np.ndarray):
        return part.item() if isinstance(part, np.generic) else vars(part)
    return brief(part) if part.ndim == 1 else list(part)


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
    """The number in an expert's name, such as 1024 in "γ = 1,024"; 0 where there is none."""
    number = re.search(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?", expert)
    return float(number.group().replace(",", "")) if number else 0.0


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

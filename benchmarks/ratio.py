"""`Ratio`: two measurements of one run with a limit on their quotient; the table and the plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from benchmarks.output import save_figure


@dataclass(frozen=True, slots=True)
class Ratio:
    """Two measurements and the limit on their quotient.

    Attributes
    ----------
    row, name
        The row of the budget, and what is compared in it.
    ours, theirs
        Medians, in `unit`.
    at_least
        Floor of theirs / ours: how many times better we are.
    at_most
        Ceiling of ours / theirs: how much worse we may be. With neither, theirs / ours is shown.
    unit
        Of `ours` and `theirs`: ``"s"``, ``"loss"``, ``"ratings"`` or ``"GiB"``.
    threads
        Threads of our side; BLAS has one in every row.
    note
        How it was measured, where the name does not say so.
    timings
        Every single measurement, by contestant.
    """

    row: str
    name: str
    ours: float
    theirs: float
    at_least: float | None = None
    at_most: float | None = None
    unit: str = "s"
    threads: int = 1
    note: str = ""
    timings: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.at_least is not None and self.at_most is not None:
            raise ValueError("a ratio has a floor or a ceiling, not both")

    @property
    def ratio(self) -> float:
        """Theirs / ours, or ours / theirs under a ceiling."""
        if self.at_most is None:
            return self.theirs / self.ours
        return self.ours / self.theirs

    @property
    def limit(self) -> float | None:
        """The floor or the ceiling."""
        return self.at_most if self.at_least is None else self.at_least

    @property
    def holds(self) -> bool | None:
        """Whether the limit is met; None where there is none."""
        if self.at_least is not None:
            return self.ratio >= self.at_least
        return None if self.at_most is None else self.ratio <= self.at_most

    def relaxed(self, share: float) -> Ratio:
        """The same ratio; a limit on time asks for only this share."""
        if self.unit != "s":
            return self
        floor = None if self.at_least is None else share * self.at_least
        ceiling = None if self.at_most is None else self.at_most / share
        return replace(self, at_least=floor, at_most=ceiling)

    @property
    def complaint(self) -> str:
        """One sentence about a missed limit."""
        side = "below its floor" if self.at_most is None else "above its ceiling"
        return f"{self.row}: {self.name}: {self.ratio:.4g} is {side} of {self.limit:.4g}."

    def as_record(self) -> dict[str, Any]:
        """Plain data for results.json."""
        return asdict(self) | {"ratio": self.ratio, "limit": self.limit, "holds": self.holds}


# -- the table -------------------------------------------------------------------------------------

HEAD = ("row", "what", "ours", "theirs", "ratio", "limit", "threads", "verdict")
VERDICTS = {True: "ok", False: "MISSED", None: "shown"}


def as_table(ratios: Sequence[Ratio]) -> str:
    """A Markdown table with one aligned line per ratio."""
    lines = [HEAD, *(_cells(ratio) for ratio in ratios)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    rule = ["-" * width for width in widths]
    return "\n".join(_line(line, widths) for line in (lines[0], rule, *lines[1:]))


def as_notes(ratios: Sequence[Ratio]) -> str:
    """How each ratio was measured, one line per note."""
    return "\n".join(f"{each.row}: {each.name}: {each.note}" for each in ratios if each.note)


def limit_text(ratio: Ratio) -> str:
    """The limit with its direction."""
    if ratio.limit is None:
        return ""
    return f"{'>=' if ratio.at_most is None else '<='} {ratio.limit:.4g}"


def number(value: float) -> str:
    """Four digits, or all before the decimal point."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def quantity(value: float, unit: str) -> str:
    """A number with a unit of suitable size."""
    if unit == "s":
        for size, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
            if value >= size:
                return f"{number(value / size)} {name}"
    return f"{number(value)} {unit}"


def _cells(ratio: Ratio) -> tuple[str, ...]:
    return (
        ratio.row,
        ratio.name,
        quantity(ratio.ours, ratio.unit),
        quantity(ratio.theirs, ratio.unit),
        number(ratio.ratio),
        limit_text(ratio),
        str(ratio.threads),
        VERDICTS[ratio.holds],
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    left = [cells[i].ljust(widths[i]) for i in (0, 1)]
    right = [cells[i].rjust(widths[i]) for i in range(2, len(HEAD))]
    return f"| {' | '.join((*left, *right))} |"


# -- the plot --------------------------------------------------------------------------------------

#: Colours that colour-blind readers can tell apart; markers repeat the distinction.
STYLES = {
    True: {"color": "#0072B2", "marker": "o", "markerfacecolor": "#0072B2"},
    False: {"color": "#D55E00", "marker": "D", "markerfacecolor": "#D55E00"},
    None: {"color": "#888888", "marker": "o", "markerfacecolor": "white"},
}
LABELS = {True: "limit met", False: "limit missed", None: "shown, no limit"}
LIMIT = {"color": "black", "marker": "|", "linestyle": "none", "markersize": 9}
LINE_HEIGHT = 0.25


def plot(ratios: Sequence[Ratio], facts: Mapping[str, Any], folder: Path) -> None:
    """Write results.png: every ratio with its limit."""
    sides = {
        "theirs / ours: right of the bar is good": [r for r in ratios if r.at_most is None],
        "ours / theirs: left of the bar is good": [r for r in ratios if r.at_most is not None],
    }
    panels = {title: _lines(each) for title, each in sides.items() if each}
    if not panels:
        return
    heights = [len(lines) + 2 for lines in panels.values()]
    figure = Figure(figsize=(10, LINE_HEIGHT * sum(heights) + 1.4), layout="constrained")
    axes = figure.subplots(len(panels), height_ratios=heights, squeeze=False)[:, 0]
    for axis, (title, lines) in zip(axes, panels.items(), strict=True):
        _draw(axis, lines)
        axis.set_title(title, loc="left", fontsize=10)
        _beside(axis, -1, 34, "ratio", "#666666")
        _beside(axis, -1, 74, "limit", "#666666")
    kinds = [Line2D([], [], linestyle="none", label=LABELS[k], **STYLES[k]) for k in STYLES]
    handles = [*kinds, Line2D([], [], label="limit", **LIMIT)]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    figure.suptitle(_heading(facts), fontsize=9, color="#444444")
    save_figure(figure, folder, "results", dpi=150)


def _lines(ratios: Sequence[Ratio]) -> list[Ratio | str]:
    """The ratios, each row under its name."""
    lines: list[Ratio | str] = []
    for ratio in ratios:
        if not lines or lines[-1].row != ratio.row:
            lines.append(ratio.row.replace("_", " "))
        lines.append(ratio)
    return lines


def _draw(axis, lines: Sequence[Ratio | str]) -> None:
    for y, line in enumerate(lines):
        if isinstance(line, Ratio):
            _draw_ratio(axis, y, line)
    axis.set_xscale("log")
    labels = [line.name if isinstance(line, Ratio) else line for line in lines]
    axis.set_yticks(range(len(lines)), labels, fontsize=8)
    for tick, line in zip(axis.get_yticklabels(), lines, strict=True):
        tick.set_fontweight("bold" if isinstance(line, str) else "normal")
    axis.set_ylim(len(lines) - 0.4, -0.6)
    least, most = axis.get_xlim()
    parts = (1.0, 2.0, 5.0) if most < 2000 * least else (1.0,)
    axis.xaxis.set_major_locator(LogLocator(subs=parts))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.grid(axis="x", which="major", color="#dddddd", linewidth=0.6)
    axis.axvline(1.0, color="#999999", linewidth=0.8)
    axis.set_axisbelow(True)
    axis.tick_params(axis="y", length=0)
    axis.tick_params(axis="x", labelsize=8)
    axis.spines[["top", "right", "left"]].set_visible(False)


def _draw_ratio(axis, y: int, ratio: Ratio) -> None:
    style = STYLES[ratio.holds]
    if ratio.limit is not None:
        ends = [ratio.limit, ratio.ratio]
        axis.plot(ends, [y, y], color=style["color"], linewidth=1.5, alpha=0.5)
        axis.plot(ratio.limit, y, markeredgewidth=1.8, zorder=3, **LIMIT)
    axis.plot(ratio.ratio, y, markersize=5.5, linestyle="none", zorder=4, **style)
    colour = style["color"] if ratio.holds is False else "#222222"
    _beside(axis, y, 34, number(ratio.ratio), colour)
    _beside(axis, y, 74, limit_text(ratio).replace(">=", "≥").replace("<=", "≤"), colour)


def _beside(axis, y: int, offset: float, text: str, colour: str) -> None:
    """Write right of the panel, right-aligned."""
    axis.annotate(
        text,
        (1.0, y),
        xycoords=("axes fraction", "data"),
        xytext=(offset, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        fontsize=8,
        color=colour,
    )


def _heading(facts: Mapping[str, Any]) -> str:
    parts = (
        f"driftwolfe {facts['driftwolfe']}",
        f"commit {facts['commit']}" if facts["commit"] else None,
        f"{facts['cpu']}, {facts['cores']} cores",
        f"numpy {facts['numpy']}, scipy {facts['scipy']}",
        facts["date"][:10],
    )
    return " · ".join(part for part in parts if part)

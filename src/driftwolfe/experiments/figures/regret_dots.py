"""The figure of regret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from driftwolfe.experiments.figures import words
from driftwolfe.experiments.figures.canvas import FAINT, INK, WIDTH, literal, print_style, sheet
from driftwolfe.experiments.figures.legend import in_two_lines
from driftwolfe.experiments.figures.style import Look, looks
from driftwolfe.experiments.figures.ticks import count_axis
from driftwolfe.experiments.numbers import spread_text
from driftwolfe.experiments.series import Spread
from driftwolfe.experiments.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
    style = looks(summary.titles)
    titles = measured(regrets)
    columns = min(_COLUMNS, len(found))
    lines = -(-len(found) // columns)
    figure = sheet(
        summary,
        words.seeds(summary.chosen.values()),
        height=lines * (0.22 * len(titles) + 0.75) + 0.4,
        width=WIDTH * (columns + 1) / (_COLUMNS + 1),
    )
    axes = figure.subplots(lines, columns, sharey=True, squeeze=False)
    for axis, (name, values) in zip(axes.flat, found.items(), strict=False):
        _draw(axis, titles, values, {**looks(titles), **style})
        axis.set_title(name.replace(", ", "\n"), loc="left")
    for axis in list(axes.flat)[len(found) :]:
        axis.set_visible(False)
    for axis in axes[:, 0]:
        axis.set_yticks(range(len(titles)), [_name(summary, title) for title in titles])
        axis.set_ylim(len(titles) - 0.5, -0.5)
    return figure


def _name(summary: Summary, title: str) -> str:
    known = summary.chosen.get(title)
    return literal(title if known is None else in_two_lines(words.label(known)))


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


def _draw(
    axis: Axes, titles: list[str], values: dict[str, Spread], style: Mapping[str, Look]
) -> None:
    highs = [abs(value.mean) + value.deviation for value in values.values()]
    for place, title in enumerate(titles):
        if title not in values:
            continue
        look, value = style[title], values[title]
        bars: dict[str, Any] = {"xerr": value.deviation} if value.deviation else {}
        axis.errorbar(
            value.mean,
            place,
            color=look.colour,
            marker=look.marker,
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

"""The figure of oracle calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from driftwolfe.experiments.figures import words
from driftwolfe.experiments.figures.band import Band, band
from driftwolfe.experiments.figures.canvas import INK, print_style, sheet
from driftwolfe.experiments.figures.legend import in_two_lines, key, legend_beside
from driftwolfe.experiments.figures.marks import draw_band, mark_end, stroke
from driftwolfe.experiments.figures.style import CALL_DASHES, Look, looks
from driftwolfe.experiments.figures.ticks import count_axis
from driftwolfe.experiments.series import CALLS, Calls, Series
from driftwolfe.experiments.summary import Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    style = looks(summary.titles)
    figure = sheet(summary, words.seeds(summary.chosen.values()), 2.7)
    axis = figure.subplots()
    axis.set_yscale("log")
    for place, (title, each) in enumerate(used.items()):
        for kind, curve in each.items():
            draw_band(axis, curve, style[title], place, linestyle=stroke(CALL_DASHES[kind]))
            if not summary.chosen[title].complete:
                mark_end(axis, curve, style[title])
    axis.set_xlabel("round")
    axis.set_ylabel("oracle calls so far")
    axis.set_xlim(0, words.length(summary))
    count_axis(axis, "x")
    count_axis(axis, "y", 8)
    legend_beside(figure, _entries(summary, used, kinds))
    return figure


def calls(series: Series) -> dict[Calls, Band]:
    """The kinds of calls that a method makes."""
    found = {kind: band(series, kind) for kind in CALLS}
    return {kind: curve for kind, curve in found.items() if curve.mean[-1] > 0}


def _entries(summary: Summary, used: dict[str, Any], kinds: list[Calls]) -> list[Any]:
    style = looks(summary.titles)
    methods = [
        key(
            style[title],
            in_two_lines(words.label(summary.chosen[title])),
            linestyle="none",
            markersize=5,
        )
        for title, each in used.items()
        if each
    ]
    lines = [key(Look(INK, CALL_DASHES[kind], ""), f"{words.CALLS[kind]} calls") for kind in kinds]
    return [*methods, *lines]

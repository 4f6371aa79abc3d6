"""The three-panel figure of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftwolfe.experiments.figures import words
from driftwolfe.experiments.figures.band import Band, band, settled_range, spans_widely
from driftwolfe.experiments.figures.canvas import print_style, sheet
from driftwolfe.experiments.figures.legend import drift_key, key, legend_below
from driftwolfe.experiments.figures.marks import draw_band, mark_drifts, mark_end
from driftwolfe.experiments.figures.style import looks
from driftwolfe.experiments.figures.ticks import count_axis
from driftwolfe.experiments.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    figure = sheet(summary, words.seeds(chosen.values()), 2.4)
    average, total, time = figure.subplots(1, 3)
    losses = {title: band(series, "loss", average=True) for title, series in chosen.items()}
    seconds = {title: band(series, "seconds") for title, series in chosen.items()}
    if spans_widely(float(each.mean[-1]) for each in seconds.values()):
        time.set_yscale("log")
    _draw(average, summary, losses, "Average loss", "loss per round")
    average.set_ylim(settled_range(list(losses.values())))
    cumulative = {title: band(series, "loss") for title, series in chosen.items()}
    _draw(total, summary, cumulative, "Cumulative loss", "loss")
    _draw(time, summary, seconds, "Run time", "processor time (s)")
    if time.get_yscale() == "log":  # the first rounds of all would take half of it
        time.set_ylim(
            bottom=min(float(each.mean[len(each.mean) // 50]) for each in seconds.values())
        )
    style = looks(summary.titles)
    entries = [key(style[title], words.label(series)) for title, series in chosen.items()]
    legend_below(figure, [*entries, *([drift_key()] if words.drifts(summary) else [])])
    return figure


def _draw(axis: Axes, summary: Summary, bands: dict[str, Band], name: str, unit: str) -> None:
    style = looks(summary.titles)
    mark_drifts(axis, words.drifts(summary))
    for place, (title, each) in enumerate(bands.items()):
        draw_band(axis, each, style[title], place)
        if not summary.chosen[title].complete:
            mark_end(axis, each, style[title])
    axis.set_title(name, loc="left", fontweight="bold")
    axis.set_xlabel("round")
    axis.set_ylabel(unit)
    axis.set_xlim(0, words.length(summary))
    axis.grid(visible=False, axis="x")  # changes are marked there
    count_axis(axis, "x", 4)
    count_axis(axis, "y")

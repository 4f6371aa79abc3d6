"""The figure of how the loss depends on c."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from driftwolfe.experiments.figures import words
from driftwolfe.experiments.figures.band import spans_widely
from driftwolfe.experiments.figures.canvas import INK, print_style, sheet
from driftwolfe.experiments.figures.legend import in_two_lines, key, legend_beside
from driftwolfe.experiments.figures.marks import stroke
from driftwolfe.experiments.figures.style import Look, looks
from driftwolfe.experiments.figures.ticks import count_axis
from driftwolfe.experiments.series import Spread
from driftwolfe.experiments.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Tuning:
    """The loss of a method by c.

    Attributes
    ----------
    title
        The method.
    scales, losses
        Values of c, rising, and the mean loss of a round with each.
    chosen
        The c that it was run with; None where that is none of them.
    first
        On how many rounds it was tuned, where that are fewer than it was run on, else None.
    """

    title: str
    scales: list[float]
    losses: list[Spread]
    chosen: float | None
    first: int | None

    @property
    def label(self) -> str:
        """What the legend says."""
        if self.first is None:
            return self.title
        return f"{self.title} (tuned on the first {words.counted(self.first, 'round')})"


@print_style()
def sensitivity(summary: Summary) -> Figure | None:
    """Mean loss of a round against c; None where no method was run with several c.

    A ring marks the c that was chosen; hollow markers, that it was chosen on fewer rounds than the
    method was run on.

    Parameters
    ----------
    summary
        The trials of a sweep, summed up.
    """
    found = tunings(summary)
    if not found:
        return None
    style = looks(summary.titles)
    figure = sheet(
        summary, words.seeds(series for each in found for series in summary.tuning(each.title)), 2.7
    )
    axis = figure.subplots()
    axis.set_xscale("log")
    if spans_widely(loss.mean for tuning in found for loss in tuning.losses):
        axis.set_yscale("log")
    for tuning in found:
        _draw(axis, tuning, style[tuning.title])
    axis.set_xlabel("scale c of the step sizes")
    axis.set_ylabel("mean loss of a round")
    count_axis(axis, "x", 8)
    count_axis(axis, "y")
    entries = [key(style[each.title], in_two_lines(each.label), **_face(each)) for each in found]
    if any(each.chosen is not None for each in found):
        entries.append(key(Look(INK, (), "o"), "chosen c", linestyle="none", **_RING))
    legend_beside(figure, entries)
    return figure


def tunings(summary: Summary) -> list[Tuning]:
    """The methods that were run with several c."""
    found = []
    for title, chosen in summary.chosen.items():
        tried = summary.tuning(title)
        if len(tried) < 2:
            continue
        scales = [series.c or 0.0 for series in tried]
        played = max(int(series.rounds[-1]) for series in tried)
        found.append(
            Tuning(
                title,
                scales,
                [series.mean_loss for series in tried],
                chosen.c if chosen.c in scales else None,
                played if played < chosen.rounds[-1] else None,
            )
        )
    return found


_RING: dict[str, Any] = {"markersize": 8.5, "markerfacecolor": "none", "markeredgewidth": 1.0}


def _face(tuning: Tuning) -> dict[str, Any]:
    """Hollow where the rounds were fewer."""
    hollow = tuning.first is not None
    return {"markerfacecolor": "white", "markeredgewidth": 1.0} if hollow else {}


def _draw(axis: Axes, tuning: Tuning, look: Look) -> None:
    means = np.array([loss.mean for loss in tuning.losses])
    axis.errorbar(
        tuning.scales,
        means,
        yerr=[loss.deviation for loss in tuning.losses],
        color=look.colour,
        linestyle=stroke(look.dash),
        marker=look.marker,
        markersize=4.2,
        capsize=1.8,
        elinewidth=0.8,
        **{"markeredgewidth": 0.8, **_face(tuning)},
    )
    if tuning.chosen is not None:
        at = tuning.scales.index(tuning.chosen)
        axis.plot(tuning.chosen, means[at], "o", color=look.colour, zorder=4, **_RING)

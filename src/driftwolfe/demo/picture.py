"""The demo's picture: where each learner looks, and the regret that comes of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from driftwolfe.demo.runs import Run
from driftwolfe.experiments.figures.extras import extra
from driftwolfe.experiments.figures.print_style import FAINT, INK, WIDTH, print_style
from driftwolfe.experiments.figures.style import Look, looks
from driftwolfe.experiments.figures.ticks import count_axis
from driftwolfe.storage.files import write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEIGHT = 5.2
_DOTS_PER_INCH = 200
#: Shares of the page around the panels (the right one is for names and numbers), and between them.
_ROOM: dict[str, Any] = {"left": 0.07, "right": 0.87, "top": 0.855, "bottom": 0.08, "hspace": 0.26}
_GREY = "#555555"
_KNOWS = {
    "OGD": "told the number of rounds and the steepest loss; projects",
    "POLA": "told neither; only minimises linear functions",
}


@print_style()
def picture(runs: tuple[Run, Run]) -> Figure:
    """Draw a map of weights for each learner, and the growth of their regrets."""
    figure: Figure = extra("matplotlib.figure").Figure(figsize=(WIDTH, _HEIGHT), dpi=100)
    grid = figure.add_gridspec(3, 1, height_ratios=[1, 1, 1.1], **_ROOM)
    look = looks(run.name for run in runs)
    axes = [figure.add_subplot(grid[i]) for i in range(3)]
    for axis, run in zip(axes, runs, strict=False):
        _draw_map(axis, run, look[run.name])
    _draw_regrets(axes[2], runs, look)
    _head(figure, runs)
    return figure


@print_style()
def save(figure: Figure, path: Path) -> None:
    """Write a picture as PNG, whole or not at all; the same picture gives the same bytes."""
    write(
        path,
        lambda part: figure.savefig(
            part, format="png", dpi=_DOTS_PER_INCH, metadata={"Software": None}
        ),
    )


def _head(figure: Figure, runs: tuple[Run, Run]) -> None:
    hunt = runs[0].hunt
    told = (
        f"{hunt.domain.shape[0]} places, {len(hunt.losses):,} rounds, {len(hunt.jumps)} jumps, noisy "
        "sightings. Frames: where the target is. Shades: where a learner puts its weight."
    )
    heading = "A target that jumps, and two learners after it"
    figure.text(0.012, 0.982, heading, fontsize=11, fontweight="bold", va="top")
    figure.text(0.012, 0.938, told, fontsize=8, color=_GREY, va="top")


def _draw_map(axis: Axes, run: Run, look: Look) -> None:
    """The weights as shades of the learner's colour, and the target's way as a frame."""
    rounds, places = run.weights.shape
    shades = extra("matplotlib.colors").LinearSegmentedColormap.from_list(
        run.name, ["#ffffff", look.colour]
    )
    axis.imshow(
        run.weights.T,
        cmap=shades,
        vmin=0.0,
        vmax=1.0,
        aspect="auto",
        origin="lower",
        interpolation="nearest",
        extent=(0, rounds, 0.5, places + 0.5),
    )
    starts = [0, *run.hunt.jumps]
    for start, end in zip(starts, [*starts[1:], rounds], strict=True):
        place = int(run.hunt.places[start]) + 1
        axis.add_patch(
            extra("matplotlib.patches").Rectangle(
                (start, place - 0.5),
                end - start,
                1.0,
                fill=False,
                edgecolor=INK,
                linewidth=0.8,
                zorder=3,
                clip_on=False,
            )
        )
    _mark_jumps(axis, run)
    _tidy_map(axis, run, look)


def _tidy_map(axis: Axes, run: Run, look: Look) -> None:
    rounds, places = run.weights.shape
    axis.set(xlim=(0, rounds), ylim=(0.5, places + 0.5), ylabel="place")
    axis.set_yticks(range(1, places + 1))
    axis.grid(visible=False)
    axis.tick_params(length=0)
    axis.tick_params(axis="x", labelbottom=False)
    for spine in axis.spines.values():
        spine.set_visible(False)
    name = axis.annotate(
        run.name,
        (0, 1),
        xytext=(0, 4),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=9,
        fontweight="bold",
        color=look.colour,
    )
    axis.annotate(
        _KNOWS.get(run.name, ""),
        (1, 0),
        xytext=(6, 2.4),
        xycoords=name,
        textcoords="offset points",
        color=_GREY,
    )
    beside: dict[str, Any] = {"transform": axis.transAxes, "va": "center"}
    share = f"{100 * run.on_target.mean():.0f} %"
    axis.text(1.015, 0.62, share, fontsize=15, fontweight="bold", color=look.colour, **beside)
    axis.text(1.015, 0.38, "of the weight\non the target", fontsize=7, color=_GREY, **beside)


def _draw_regrets(axis: Axes, runs: tuple[Run, Run], look: dict[str, Look]) -> None:
    rounds = len(runs[0].history)
    _mark_jumps(axis, runs[0])
    for run in runs:
        curve = np.concatenate([[0.0], np.cumsum(run.excess)])
        axis.plot(np.arange(rounds + 1), curve, color=look[run.name].colour, linewidth=1.5)
    axis.set(xlim=(0, rounds), xlabel="round; the target jumps at the dotted lines")
    axis.set_title("Regret against the target, up to each round", loc="left", pad=4)
    axis.grid(visible=False, axis="x")
    count_axis(axis, "x", 10)
    count_axis(axis, "y")
    _name_ends(axis, runs, look)


def _name_ends(axis: Axes, runs: tuple[Run, Run], look: dict[str, Look]) -> None:
    """Names and regrets beside the ends of the curves, kept apart where those are close."""
    low, high = sorted(runs, key=lambda run: run.regret)
    bottom, top = axis.get_ylim()
    close = high.regret - low.regret < 0.1 * (top - bottom)
    for run, where in ((low, "top"), (high, "bottom")):
        axis.annotate(
            f"{run.name} {run.regret:.0f}",
            (len(run.history), run.regret),
            xytext=(5, 0),
            textcoords="offset points",
            fontsize=9,
            fontweight="bold",
            color=look[run.name].colour,
            va=where if close else "center",
            annotation_clip=False,
        )


def _mark_jumps(axis: Axes, run: Run) -> None:
    for jump in run.hunt.jumps:
        axis.axvline(jump, color=FAINT, linestyle=":", linewidth=0.7, zorder=0.5)

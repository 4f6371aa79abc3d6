"""`driftwolfe demo`: a target that jumps, followed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from driftwolfe.domains import Simplex
from driftwolfe.experiments.figure_style import (
    FAINT,
    INK,
    WIDTH,
    LineStyle,
    count_axis,
    extra,
    line_styles,
    print_style,
)
from driftwolfe.game import History, play
from driftwolfe.learners import OGD, POLA, Learner
from driftwolfe.losses import LinearLoss
from driftwolfe.points.kinds import Array, Indices
from driftwolfe.regret import dynamic_regret
from driftwolfe.storage import write
from driftwolfe.terminal import Terminal

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
from driftwolfe.terminal import table

PLACES, ROUNDS = 8, 1000
#: Rounds before the first jump, and between jumps.
CALM, STAY = 300, 100
#: Standard deviation of a sighting; the target itself is 1.
NOISE = 0.4
#: A jump leads at least so many places away, so that it is seen in a chart.
_FAR = 2


@dataclass(frozen=True, eq=False)
class Hunt:
    """A target's places, and the losses that tell of them.

    Attributes
    ----------
    domain
        Weights over the places.
    losses
        One a round: 1 less what the weights catch of a noisy sighting.
    places
        Where the target is in each round.
    jumps
        Rounds in which it is somewhere else than in the round before.
    """

    domain: Simplex
    losses: list[LinearLoss]
    places: Indices
    jumps: list[int]

    @cached_property
    def targets(self) -> Array:
        """All weight on the target, one row a round: the comparators."""
        return np.eye(self.domain.shape[0])[self.places]

    @cached_property
    def steepest(self) -> float:
        """The largest gradient norm of all rounds: G."""
        return max(float(np.linalg.norm(np.asarray(loss.g))) for loss in self.losses)


def hunt(seed: int = 0, rounds: int = ROUNDS) -> Hunt:
    """Hide a target: calm at first, then a jump every 100 rounds.

    >>> made = hunt(seed=0)
    >>> len(made.losses), made.jumps
    (1000, [300, 400, 500, 600, 700, 800, 900])
    """
    rng = np.random.default_rng(seed)
    jumps = list(range(CALM, rounds, STAY))
    places = np.empty(rounds, dtype=np.int64)
    last = -_FAR
    for start in [0, *jumps]:
        last = int(rng.choice([i for i in range(PLACES) if abs(i - last) >= _FAR]))
        places[start:] = last
    sightings = np.eye(PLACES)[places] + NOISE * rng.standard_normal((rounds, PLACES))
    losses = [LinearLoss(-sighting, constant=1.0) for sighting in sightings]
    return Hunt(Simplex(PLACES), losses, places, jumps)


#: Steps that OGD might have taken, in units of the one that its theory gives.
HINDSIGHT = (0.5, 1, 2, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True, eq=False)
class Run:
    """A learner's game.

    Attributes
    ----------
    name
        Of the learner.
    hunt
        What it played.
    history
        What happened, with the decisions.
    """

    name: str
    hunt: Hunt
    history: History

    @cached_property
    def weights(self) -> Array:
        """The decisions, one row a round."""
        return np.array(self.history.decisions)

    @cached_property
    def on_target(self) -> Array:
        """In each round, the weight on the target's place."""
        return np.asarray((self.weights * self.hunt.targets).sum(axis=1))

    @cached_property
    def excess(self) -> Array:
        """In each round, the loss above that of all weight on the target."""
        best = [f.value(u) for f, u in zip(self.hunt.losses, self.hunt.targets, strict=True)]
        return self.history.losses - np.array(best)

    @cached_property
    def regret(self) -> float:
        """Against the moving target."""
        return float(dynamic_regret(self.history, self.hunt.targets))

    @cached_property
    def worst_window(self) -> float:
        """The largest regret against the target on any window as long as it stays in a place."""
        sums = np.concatenate([[0.0], np.cumsum(self.excess)])
        return float((sums[STAY:] - sums[:-STAY]).max())

    @cached_property
    def catches(self) -> Indices:
        """For each jump, the rounds until half the weight is on the target; -1 for not before the next."""
        ends = [*self.hunt.jumps[1:], len(self.history)]
        waits = []
        for start, end in zip(self.hunt.jumps, ends, strict=True):
            caught = np.flatnonzero(self.on_target[start:end] >= 0.5)
            waits.append(int(caught[0]) if caught.size else -1)
        return np.array(waits, dtype=np.int64)


def play_both(hunt: Hunt) -> tuple[Run, Run]:
    """Play OGD and POLA; OGD is told more."""
    for learner in _learners(hunt):  # compiled code is loaded before the clock starts
        play(learner, hunt.losses[:4], progress=False)
    first, second = (
        Run(
            type(learner).__name__,
            hunt,
            play(learner, hunt.losses, record_decisions=True, progress=False),
        )
        for learner in _learners(hunt)
    )
    return first, second


def _learners(hunt: Hunt) -> tuple[Learner, Learner]:
    """OGD with the step of its theory; POLA, which asks for linear minimisations alone."""
    ogd = OGD(hunt.domain, horizon=len(hunt.losses), lipschitz=hunt.steepest)
    return ogd, POLA(hunt.domain, method="corrective")


def best_in_hindsight(hunt: Hunt) -> tuple[float, float]:
    """Which multiple of its step would have served OGD best, and its regret with that."""
    usual = 2.0 * hunt.domain.radius / hunt.steepest
    found = []
    for times in HINDSIGHT:
        learner = OGD(hunt.domain, horizon=len(hunt.losses), step_scale=times * usual)
        history = play(learner, hunt.losses, progress=False)
        found.append((float(dynamic_regret(history, hunt.targets)), times))
    regret, times = min(found)
    return times, regret


#: Letters for rising weight, and for a target that is missed: with Unicode, and without.
SHADES = {True: " ░▒▓█", False: " .:+#"}
MISSED = {True: "○", False: "o"}
#: Weights from which on each shade but the first is used.
_LEVELS = (0.1, 0.3, 0.55, 0.8)
_MARGIN = 2
_COLOURS = {"OGD": "38;5;32", "POLA": "38;5;166"}
_ALARM = "1;31"


def legend(terminal: Terminal) -> str:
    """What the letters mean."""
    shades, missed = SHADES[terminal.unicode], MISSED[terminal.unicode]
    return (
        f"{shades[1:]} weight on a place, from little to all; {missed} the target, "
        "where less than half the weight is on it"
    )


def chart(run: Run, terminal: Terminal) -> list[str]:
    """A row for each place, a column for some rounds, and an axis with a mark at each jump."""
    columns = terminal.width - _MARGIN - 2
    shades, missed = SHADES[terminal.unicode], MISSED[terminal.unicode]
    edges = np.linspace(0, len(run.history), columns + 1).astype(int)
    weights = np.array([run.weights[a:b].mean(axis=0) for a, b in pairwise(edges)])
    lost = _lost(run.hunt.places, weights, edges)
    lines = []
    for place in reversed(range(weights.shape[1])):
        cells = [shades[level] for level in np.digitize(weights[:, place], _LEVELS)]
        row = "".join(
            terminal.paint(missed, _ALARM)
            if lost[i] == place
            else _tinted(cell, run.name, terminal)
            for i, cell in enumerate(cells)
        )
        lines.append(f"{place + 1:{_MARGIN}d} {row}".rstrip())
    return [*lines, *_axis(run, edges, terminal)]


def _lost(places: Indices, weights: Array, edges: Indices) -> list[int]:
    """For each column the target's place, if less than half the weight is there; else -1.

    In a column with a jump that is where the target is longer.
    """
    found = []
    for i, row in enumerate(weights):
        place = int(np.bincount(places[edges[i] : edges[i + 1]]).argmax())
        found.append(place if row[place] < 0.5 else -1)
    return found


def _tinted(cell: str, name: str, terminal: Terminal) -> str:
    return cell if cell == " " else terminal.paint(cell, _COLOURS.get(name, "0"))


def _axis(run: Run, edges: Indices, terminal: Terminal) -> list[str]:
    """A line with a mark at each jump, and under it the first round, the first jump and the last round."""
    line, mark = ("─", "┴") if terminal.unicode else ("-", "+")
    columns = len(edges) - 1
    marks = [int(np.searchsorted(edges, jump, side="right")) - 1 for jump in run.hunt.jumps]
    axis = "".join(mark if i in marks else line for i in range(columns))
    numbers = [" "] * columns
    last = str(len(run.history))
    for place, text in ((0, "1"), (marks[0], str(run.hunt.jumps[0])), (columns - len(last), last)):
        numbers[place : place + len(text)] = text
    margin = " " * (_MARGIN + 1)
    return [margin + axis, margin + "".join(numbers)]


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
    line_style = line_styles(run.name for run in runs)
    axes = [figure.add_subplot(grid[i]) for i in range(3)]
    for axis, run in zip(axes, runs, strict=False):
        _draw_map(axis, run, line_style[run.name])
    _draw_regrets(axes[2], runs, line_style)
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


def _draw_map(axis: Axes, run: Run, line_style: LineStyle) -> None:
    """The weights as shades of the learner's colour, and the target's way as a frame."""
    rounds, places = run.weights.shape
    shades = extra("matplotlib.colors").LinearSegmentedColormap.from_list(
        run.name, ["#ffffff", line_style.colour]
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
    _tidy_map(axis, run, line_style)


def _tidy_map(axis: Axes, run: Run, line_style: LineStyle) -> None:
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
        color=line_style.colour,
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
    axis.text(1.015, 0.62, share, fontsize=15, fontweight="bold", color=line_style.colour, **beside)
    axis.text(1.015, 0.38, "of the weight\non the target", fontsize=7, color=_GREY, **beside)


def _draw_regrets(axis: Axes, runs: tuple[Run, Run], line_style: dict[str, LineStyle]) -> None:
    rounds = len(runs[0].history)
    _mark_jumps(axis, runs[0])
    for run in runs:
        curve = np.concatenate([[0.0], np.cumsum(run.excess)])
        axis.plot(np.arange(rounds + 1), curve, color=line_style[run.name].colour, linewidth=1.5)
    axis.set(xlim=(0, rounds), xlabel="round; the target jumps at the dotted lines")
    axis.set_title("Regret against the target, up to each round", loc="left", pad=4)
    axis.grid(visible=False, axis="x")
    count_axis(axis, "x", 10)
    count_axis(axis, "y")
    _name_ends(axis, runs, line_style)


def _name_ends(axis: Axes, runs: tuple[Run, Run], line_style: dict[str, LineStyle]) -> None:
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
            color=line_style[run.name].colour,
            va=where if close else "center",
            annotation_clip=False,
        )


def _mark_jumps(axis: Axes, run: Run) -> None:
    for jump in run.hunt.jumps:
        axis.axvline(jump, color=FAINT, linestyle=":", linewidth=0.7, zorder=0.5)


def problem(hunt: Hunt) -> str:
    """What is played."""
    return (
        f"A target hides in one of {hunt.domain.shape[0]} places and jumps {len(hunt.jumps)} times in "
        f"{len(hunt.losses):,} rounds. Each round a learner spreads its weight over the places and "
        "then sees a noisy sighting; its loss is 1 less what it caught."
    )


def knowledge() -> str:
    """What each learner is told, and what it may do."""
    return (
        "OGD is told the number of rounds and the steepest loss, takes the step that its theory "
        "gives for them, and projects. POLA is told neither, and only minimises linear functions."
    )


def measures(runs: tuple[Run, Run]) -> list[str]:
    """The table: a row for each measure, a column for each learner."""
    rows = {
        "mean loss": [f"{run.history.losses.mean():.3f}" for run in runs],
        "weight on the target": [f"{100 * run.on_target.mean():.0f} %" for run in runs],
        "regret against the target": [f"{run.regret:.1f}" for run in runs],
        f"regret, worst {STAY} rounds": [f"{run.worst_window:.1f}" for run in runs],
        "linear minimisations": [f"{run.history.lmo.sum():,}" for run in runs],
        "projections": [f"{run.history.projection.sum():,}" for run in runs],
        "seconds": [f"{run.history.seconds.sum():.2f}" for run in runs],
    }
    return table(["", *(run.name for run in runs)], [[name, *row] for name, row in rows.items()])


def findings(runs: tuple[Run, Run]) -> str:
    """Two sentences: how soon each learner found the target again, and what that came to."""
    one, two = runs
    return (
        f"After a jump {one.name} {_wait(one)} until half its weight is on the target, "
        f"{two.name} {_wait(two)} (median of {len(one.hunt.jumps)} jumps). "
        f"{two.name}'s regret is {_against(two.regret, one.regret)} {one.name}'s, with "
        f"{_calls(two)} in place of {_calls(one)}."
    )


def hindsight(name: str, times: float, regret: float) -> str:
    """What a step that nobody knows before would have done."""
    if times == 1:
        return f"No other step that was tried would have given {name} a lower regret."
    return (
        f"A step {times:g} times as large would have given {name} a regret of {regret:.1f}; "
        "which step is best is known only afterwards."
    )


def _wait(run: Run) -> str:
    """How long a learner took, and how often it was too long."""
    never = int((run.catches < 0).sum())
    waits = np.where(run.catches < 0, np.inf, run.catches)
    median = float(np.median(waits))
    if not np.isfinite(median):
        return f"mostly takes longer than the target stays ({never} times)"
    missed = f" ({never} times it came too late)" if never else ""
    return f"takes {median:.0f} rounds{missed}"


def _against(value: float, other: float) -> str:
    """One number against another, in words.

    >>> _against(30.0, 100.0), _against(150.0, 100.0), _against(100.2, 100.0)
    ('70 % below', '50 % above', 'the same as')
    """
    if not other > 0:
        return "above" if value > other else "below" if value < other else "the same as"
    share = round(100 * (value / other - 1))
    return "the same as" if not share else f"{abs(share)} % {'above' if share > 0 else 'below'}"


def _calls(run: Run) -> str:
    """The oracle calls of a game."""
    counts = {"linear minimisations": run.history.lmo, "projections": run.history.projection}
    made = [f"{calls.sum():,} {name}" for name, calls in counts.items() if calls.any()]
    return " and ".join(made) or "no oracle calls"


def show(terminal: Terminal, out: Path | None, seed: int = 0) -> None:
    """Play the demo, print it, and write its picture.

    Parameters
    ----------
    terminal
        Where it is printed.
    out
        Where the picture goes, a PNG; None for no picture.
    seed
        Of the target's way and of the noise.
    """
    if out is not None and out.suffix.lower() != ".png":
        raise ValueError(f"the picture is a PNG: its name must end in .png, got {out}")
    made = hunt(seed)
    terminal.tell(problem(made))
    terminal.tell(knowledge())
    runs = play_both(made)
    _print_results(terminal, made, runs)
    if out is not None:
        terminal.say()
        _draw(terminal, runs, out)


def _print_results(terminal: Terminal, made: Hunt, runs: tuple[Run, Run]) -> None:
    for run in runs:
        terminal.say()
        terminal.say(terminal.paint(f"{run.name}, places by rounds", "1"))
        for line in chart(run, terminal):
            terminal.say(line)
    terminal.tell(legend(terminal))
    terminal.say()
    for line in measures(runs):
        terminal.say(line)
    terminal.say()
    terminal.tell(findings(runs))
    terminal.tell(hindsight(runs[0].name, *best_in_hindsight(made)))


def _draw(terminal: Terminal, runs: tuple[Run, Run], out: Path) -> None:
    """Write the picture, or say what it needs."""
    try:
        figure = picture(runs)
    except ImportError:
        terminal.tell(
            "no picture: it needs matplotlib, which pip install 'driftwolfe[plot]' brings"
        )
        return
    save(figure, out)
    terminal.say(f"picture: {out}")


__all__ = ["show"]

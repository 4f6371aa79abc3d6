"""`driftwolfe demo`: two learners follow a target that jumps."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from driftwolfe.domains import Simplex
from driftwolfe.experiments import figure
from driftwolfe.experiments.figure import Axis, Band, ExpertWeights, Line, Panel, line_styles
from driftwolfe.game import History, play
from driftwolfe.learners import OGD, POLAR, Learner
from driftwolfe.losses import LinearLoss
from driftwolfe.points.kinds import Array, interpreted
from driftwolfe.streams import Stream
from driftwolfe.terminal import Terminal, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Sheet

PLACES, ROUNDS = 8, 1000
CALM, STAY = 300, 100  # rounds before the first jump, and between jumps
NOISE = 0.4  # standard deviation of a sighting; the target itself is 1
_FAR = 2  # places that a jump leads away, at least, so that a chart shows it
#: Step sizes tried for OGD in hindsight, in units of the one that its theory gives.
HINDSIGHT = (1, 4, 16, 32, 64)
#: With Unicode and without: letters for rising weight, for a missed target, for an axis and its marks.
LETTERS = {True: (" ░▒▓█", "○", "─", "┴"), False: (" .:+#", "o", "-", "+")}


def show(terminal: Terminal, out: Path | None, seed: int = 0) -> None:
    """Play the demo, print it, and write its picture to `out`, a PNG; None for no picture."""
    if out is not None and out.suffix.lower() != ".png":
        raise ValueError(f"the picture is a PNG: its name must end in .png, got {out}")
    stream = hunt(seed)
    terminal.tell(
        f"A target hides in one of {PLACES} places and jumps {len(stream.drifts)} times in "
        f"{len(stream):,} rounds. Each round a learner spreads its weight over the places and "
        "then sees a noisy sighting; its loss is 1 less what it caught."
    )
    terminal.tell(
        "POLAR is told nothing more, and only minimises linear functions. OGD is told the number of "
        "rounds and the steepest loss, takes the step size that its theory gives for them, and projects."
    )
    runs = play_both(stream)
    for run in runs:
        title = terminal.paint(f"{run.name}, places by rounds", "1")
        terminal.say("\n".join(["", title, *chart(run, terminal)]))
    shades, missed, *_ = LETTERS[terminal.unicode]
    terminal.tell(
        f"{shades[1:]} weight on a place, from little to all; {missed} the target, "
        "where less than half the weight is on it"
    )
    terminal.say("\n".join(["", *measures(runs), ""]))
    terminal.tell(findings(runs))
    times, regret = best_in_hindsight(stream)
    terminal.tell(
        f"A step {times:g} times as large would have given OGD a regret of {regret:.1f}; "
        "which step is best is known only afterwards."
    )
    if out is None:
        return
    terminal.say()
    try:
        sheet = picture(runs)
    except ImportError:
        remedy = "it needs matplotlib, which pip install 'driftwolfe[plot]' brings"
        terminal.tell(f"no picture: {remedy}")
        return
    with figure.print_style():
        figure.save(sheet, out, dpi=200)
    terminal.say(f"picture: {out}")


def hunt(seed: int = 0, rounds: int = ROUNDS) -> Stream:
    """Return losses, 1 less what the weights catch of a target that stays for a while, then jumps."""
    rng = np.random.default_rng(seed)
    jumps = tuple(range(CALM, rounds, STAY))
    places = np.empty(rounds, dtype=np.int64)
    last = -_FAR
    for start in (0, *jumps):
        last = int(rng.choice([i for i in range(PLACES) if abs(i - last) >= _FAR]))
        places[start:] = last
    targets = np.eye(PLACES)[places]
    sightings = targets + NOISE * rng.standard_normal((rounds, PLACES))
    losses = [LinearLoss(-sighting, constant=1.0) for sighting in sightings]
    steepest = float(np.linalg.norm(sightings, axis=1).max())
    return Stream(losses, "hunt", steepest, list(targets), Simplex(PLACES), jumps)


def excess(history: History, stream: Stream) -> Array:
    """Return by how much the loss of each round is above that of all weight on the target."""
    targets = stream.comparators or []
    return history.losses - [loss.value(u) for loss, u in zip(stream, targets, strict=True)]


class PlayedGame:
    """The game of one learner, and its measures; arrays have an entry per round."""

    def __init__(self, name: str, stream: Stream, history: History) -> None:
        self.name, self.stream, self.history = name, stream, history
        self.weights, self.targets = np.array(history.decisions), np.array(stream.comparators)
        self.on_target: Array = (self.weights * self.targets).sum(axis=1)
        self.excess = excess(history, stream)
        self.regret = float(self.excess.sum())
        # The largest regret against the target on any window of `STAY` rounds:
        sums = np.concatenate([[0.0], np.cumsum(self.excess)])
        self.worst_window = float((sums[STAY:] - sums[:-STAY]).max())
        # For each jump, the rounds until half the weight is on the target, or until the next jump:
        self.waits = []
        for start, end in pairwise([*stream.drifts, len(history)]):
            caught = np.flatnonzero(self.on_target[start:end] >= 0.5)
            self.waits.append(int(caught[0]) if caught.size else end - start)


def learners(stream: Stream) -> dict[str, Learner]:
    """Make POLAR, which only minimises linear functions, and OGD with the step size of its theory."""
    polar = POLAR(Simplex(PLACES), oracle="corrective")
    ogd = OGD(Simplex(PLACES), horizon=len(stream), lipschitz=stream.lipschitz)
    return {"POLAR": polar, "OGD": ogd}


def play_both(stream: Stream) -> list[PlayedGame]:
    """Play POLAR and OGD."""
    with interpreted():  # in 8 dimensions, compiling takes longer than all rounds
        return [
            PlayedGame(name, stream, play(learner, stream, record_decisions=True, progress=False))
            for name, learner in learners(stream).items()
        ]


def best_in_hindsight(stream: Stream) -> tuple[float, float]:
    """Return the multiple of its step size that would have served OGD best, and its regret with it."""
    domain, found = Simplex(PLACES), []
    for times in HINDSIGHT:
        step_scale = times * 2.0 * domain.radius / stream.lipschitz
        with interpreted():
            learner = OGD(domain, horizon=len(stream), step_scale=step_scale)
            history = play(learner, stream, progress=False)
        found.append((times, float(excess(history, stream).sum())))
    return min(found, key=lambda each: each[1])


def chart(run: PlayedGame, terminal: Terminal) -> list[str]:
    """Draw a row for each place, a column for some rounds, and an axis with a mark at each jump."""
    columns = terminal.width - 4
    shades, missed, line, mark = LETTERS[terminal.unicode]
    edges = np.linspace(0, len(run.history), columns + 1).astype(int)
    weights = np.add.reduceat(run.weights, edges[:-1]) / np.diff(edges)[:, None]
    # The nearest of the 256 colours that terminals know: 16 and three digits in base six.
    parts = bytes.fromhex(line_styles([run.name])[run.name].colour[1:])
    red, green, blue = (max(0, round((part - 55) / 40)) for part in parts)
    colour = f"38;5;{16 + 36 * red + 6 * green + blue}"
    painted = [terminal.paint(shade, colour) for shade in shades[1:]]
    letters = np.array([" ", *painted], dtype=object)
    cells = letters[np.digitize(weights.T, (0.1, 0.3, 0.55, 0.8))]
    # In a column with a jump, the target is where it stays longer.
    targets = np.add.reduceat(run.targets, edges[:-1]).argmax(axis=1)
    lost = np.flatnonzero(weights[np.arange(columns), targets] < 0.5)
    cells[targets[lost], lost] = terminal.paint(missed, "1;31")  # bold red
    rows = [f"{i + 1:2d} {''.join(cells[i])}".rstrip() for i in reversed(range(PLACES))]
    jumps, last = run.stream.drifts, str(len(run.history))
    marks = [int(np.searchsorted(edges, jump, side="right")) - 1 for jump in jumps]
    axis = "".join(mark if i in marks else line for i in range(columns))
    numbers = "1".ljust(marks[0]) + str(jumps[0])
    return [*rows, f"   {axis}", f"   {numbers.ljust(columns - len(last))}{last}"]


def measures(runs: list[PlayedGame]) -> list[str]:
    """Return the table: a row for each measure, a column for each learner."""
    rows = {
        "mean loss": [f"{run.history.losses.mean():.3f}" for run in runs],
        "weight on the target": [f"{100 * run.on_target.mean():.0f} %" for run in runs],
        "regret against the target": [f"{run.regret:.1f}" for run in runs],
        f"regret, worst {STAY} rounds": [f"{run.worst_window:.1f}" for run in runs],
        "linear minimisations": [f"{run.history.lmo.sum():,}" for run in runs],
        "projections": [f"{run.history.projection.sum():,}" for run in runs],
    }
    return table(["", *(run.name for run in runs)], [[name, *row] for name, row in rows.items()])


def findings(runs: list[PlayedGame]) -> str:
    """Say how soon each learner found the target again, and compare their regrets and calls."""
    polar, ogd = runs
    return (
        f"After a jump POLAR takes {np.median(polar.waits):.0f} rounds until half its weight is on the "
        f"target, OGD takes {np.median(ogd.waits):.0f} rounds (median of {len(ogd.waits)} jumps). "
        f"POLAR's regret is {100 * polar.regret / ogd.regret:.0f} % of OGD's, with "
        f"{polar.history.lmo.sum():,} linear minimisations in place of "
        f"{ogd.history.projection.sum():,} projections."
    )


@figure.print_style()
def picture(runs: list[PlayedGame]) -> Sheet:
    """Draw a map of weights for each learner, with frames around the target, and the growth of their regrets."""
    styles, stream = line_styles(run.name for run in runs), runs[0].stream
    size: dict[str, Any] = {"figsize": (figure.WIDTH, 5.2), "dpi": 100}
    sheet: Sheet = figure.extra("matplotlib.figure").Figure(layout="constrained", **size)
    sheet.suptitle(
        f"A target in {PLACES} places, {len(stream):,} rounds, {len(stream.drifts)} jumps, noisy sightings\n"
        "Frames: where the target is. Shades: where a learner puts its weight.",
        x=0.01,
        ha="left",
    )
    *maps, regrets = sheet.subplots(3, 1, sharex=True)
    rounds = Axis("", low=0, high=len(stream), ticks=10)
    played, places = np.arange(1, len(stream) + 1), [str(place + 1) for place in range(PLACES)]
    rectangle = figure.extra("matplotlib.patches").Rectangle
    frame = {
        "fill": False,
        "edgecolor": figure.INK,
        "linewidth": 0.8,
        "clip_on": False,
        "zorder": 3,
    }
    lines = []
    for axis, run in zip(maps, runs, strict=True):
        title = f"{run.name}: {100 * run.on_target.mean():.0f} % of its weight is on the target"
        shades = ExpertWeights(played, run.weights.T)
        panel = Panel(title, rounds, Axis("place", names=places), weights=shades)
        figure.draw_panel(axis, panel, 1.0)
        for start, end in pairwise([0, *stream.drifts, len(stream)]):
            corner = (start, run.targets[start].argmax() - 0.5)
            axis.add_patch(rectangle(corner, end - start, 1.0, **frame))
        curve = Band.of(played, np.cumsum(run.excess)[None])
        lines.append(Line(run.name, f"{run.name}: {run.regret:.0f}", styles[run.name], curve))
    below = replace(rounds, title="round; the target jumps at the dotted lines")
    title = "Regret against the target, up to each round"
    figure.draw_panel(regrets, Panel(title, below, Axis(""), lines, drifts=stream.drifts))
    regrets.legend()
    return sheet

"""`driftwolfe demo`: two learners follow a target that jumps."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from driftwolfe.domains import Simplex
from driftwolfe.game import History, play
from driftwolfe.learners import OGD, POLAR, Learner
from driftwolfe.losses import LinearLoss
from driftwolfe.points.kinds import Array, interpreted
from driftwolfe.streams import Stream
from driftwolfe.terminal import Terminal, table

PLACES, ROUNDS = 8, 1000
CALM, STAY = 300, 100  # rounds before the first jump, and between jumps
NOISE = 0.4  # standard deviation of a sighting; the target itself is 1
_FAR = 2  # places that a jump leads away, at least, so that a chart shows it
#: Step sizes tried for OGD in hindsight, in units of the one that its theory gives.
HINDSIGHT = (1, 4, 16, 32, 64)
#: With Unicode and without: letters for rising weight, for a missed target, for an axis and its marks.
LETTERS = {True: (" ░▒▓█", "○", "─", "┴"), False: (" .:+#", "o", "-", "+")}


def show(terminal: Terminal) -> None:
    """Play the demo, and print it."""
    stream = hunt()
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
        terminal.say("\n".join(["", f"{run.name}, places by rounds", *chart(run, terminal)]))
    shades, missed, *_ = LETTERS[terminal.unicode]
    terminal.tell(
        f"{shades[1:]} weight on a place, from little to all; {missed} the target, "
        "where less than half the weight is on it"
    )
    terminal.say("\n".join(["", *measures(runs), ""]))
    times, regret = best_in_hindsight(stream)
    terminal.tell(
        f"A step {times:g} times as large would have given OGD a regret of {regret:.1f}; "
        "which step is best is known only afterwards."
    )


def hunt(seed: int = 0) -> Stream:
    """Return losses, 1 less what the weights catch of a target that stays for a while, then jumps."""
    rng = np.random.default_rng(seed)
    jumps = tuple(range(CALM, ROUNDS, STAY))
    places = np.empty(ROUNDS, dtype=np.int64)
    last = -_FAR
    for start in (0, *jumps):
        last = int(rng.choice([i for i in range(PLACES) if abs(i - last) >= _FAR]))
        places[start:] = last
    targets = np.eye(PLACES)[places]
    sightings = targets + NOISE * rng.standard_normal((ROUNDS, PLACES))
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
    cells = np.array([*shades])[np.digitize(weights.T, (0.1, 0.3, 0.55, 0.8))]
    # In a column with a jump, the target is where it stays longer.
    targets = np.add.reduceat(run.targets, edges[:-1]).argmax(axis=1)
    lost = np.flatnonzero(weights[np.arange(columns), targets] < 0.5)
    cells[targets[lost], lost] = missed
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
        "rounds until found again": [f"{np.median(run.waits):.0f}" for run in runs],
        "linear minimisations": [f"{run.history.lmo.sum():,}" for run in runs],
        "projections": [f"{run.history.projection.sum():,}" for run in runs],
    }
    return table(["", *(run.name for run in runs)], [[name, *row] for name, row in rows.items()])

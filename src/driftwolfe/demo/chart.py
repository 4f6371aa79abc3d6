"""The demo's chart: where a learner looks, over time, in letters."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from driftwolfe.demo.runs import Run
from driftwolfe.points.kinds import Array, Indices
from driftwolfe.terminal import Terminal

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

"""The demo from beginning to end."""

from __future__ import annotations

from pathlib import Path

from driftwolfe.demo import words
from driftwolfe.demo.chart import chart, legend
from driftwolfe.demo.hunt import Hunt, hunt
from driftwolfe.demo.runs import Run, best_in_hindsight, play_both
from driftwolfe.terminal import Terminal


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
    terminal.tell(words.problem(made))
    terminal.tell(words.knowledge())
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
    for line in words.measures(runs):
        terminal.say(line)
    terminal.say()
    terminal.tell(words.findings(runs))
    terminal.tell(words.hindsight(runs[0].name, *best_in_hindsight(made)))


def _draw(terminal: Terminal, runs: tuple[Run, Run], out: Path) -> None:
    """Write the picture, or say what it needs."""
    from driftwolfe.demo.picture import picture, save

    try:
        figure = picture(runs)
    except ImportError:
        terminal.tell(
            "no picture: it needs matplotlib, which pip install 'driftwolfe[plot]' brings"
        )
        return
    save(figure, out)
    terminal.say(f"picture: {out}")

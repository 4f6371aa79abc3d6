"""Kills: games and sweeps ended with SIGKILL at random moments, and run again to their end.

    python -m reliability.crash [--kills 100] [--seed 0]

Half of the kills come by the clock, half within the writing of a file: when half of it is written,
when all is, when it is synchronised, when it is in its place. After each, every file must be whole.
Now and then the next run is killed too; then one goes to its end, which must be that of a run that
was never disturbed: histories to the last bit, every trial once. The seed fixes which writes are
killed; the clock cannot be fixed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

from reliability.victims import VICTIMS, Command, Victim

#: How often what was killed is killed again before it may end.
AGAIN = 0.3
#: Kills of the command line, of a hundred: each takes seconds.
COMMANDS = 4

FAULTS = ("ended otherwise", "torn", "lost", "doubled", "left")
HEADS = ("kills", "aimed at a write", "parts left by kills", "runs to the end")
TITLES = {
    "ended otherwise": "ended otherwise",
    "torn": "files torn",
    "lost": "trials lost",
    "doubled": "trials doubled",
    "left": "parts left at the end",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill, print the table, return 1 where something went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, metavar="N", help="default: 100")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="default: 0")
    options = parser.parse_args(arguments)
    started, random = time.perf_counter(), Random(options.seed)
    rows: dict[str, Counter[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for victim, kills in _shares(Path(folder), options.kills):
            rows[victim.name] = assault(victim, kills, random)
    print(as_table(rows))
    print(f"\nMade by `python -m reliability.crash --kills {options.kills}` in ", end="")
    print(f"{time.perf_counter() - started:.0f} seconds.")
    return int(any(row[fault] for row in rows.values() for fault in FAULTS))


def _shares(folder: Path, kills: int) -> list[tuple[Victim, int]]:
    """What to kill, and how often: the command line only where there is time for it."""
    commands = kills * COMMANDS // 100
    rest = kills - commands
    shares = [rest // len(VICTIMS)] * len(VICTIMS)
    shares[0] += rest - sum(shares)
    victims = [make(folder / str(i)) for i, make in enumerate(VICTIMS)]
    found = list(zip(victims, shares, strict=True))
    return [*found, (Command(folder / "command"), commands)] if commands else found


def assault(victim: Victim, kills: int, random: Random) -> Counter[str]:
    """Kill so many times, and count what comes of it."""
    row: Counter[str] = Counter()
    while row["kills"] < kills:
        while True:
            within = victim.aimed and random.random() < 0.5
            killed = victim.kill(within, random)
            row["kills"] += killed
            row["aimed at a write"] += killed and within
            row["torn"] += victim.torn()
            if not killed or row["kills"] == kills or random.random() > AGAIN:
                break
        row["parts left by kills"] += victim.parts()
        row["runs to the end"] += 1
        try:
            row.update(victim.finish())
        except ValueError as problem:  # a file that is not whole is refused
            print(f"{victim.name}: {problem}", file=sys.stderr)
            row["ended otherwise"] += 1
        victim.clear()
    return row


def as_table(rows: dict[str, Counter[str]]) -> str:
    """The counts as a table in Markdown."""
    heads = ["", *HEADS, *(TITLES[fault] for fault in FAULTS)]
    lines = [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
    total: Counter[str] = sum(rows.values(), Counter())
    for name, row in (*rows.items(), ("**all**", total)):
        counts = [str(row[head]) for head in (*HEADS, *FAULTS)]
        lines.append(f"| {name} | {' | '.join(counts)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

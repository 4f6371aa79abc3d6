"""Hostile files: mutations of every kind of file that driftwolfe reads, each loaded in a pen.

    python -m reliability.fuzz [--mutations 10000]

Three in four mutations have a right checksum, as an attacker can compute it. Allowed are a refusal
(ValueError or OSError, one sentence, said by driftwolfe) and an object that then goes on soundly for
20 rounds: finite, feasible, or refusing. Not allowed are other exceptions, crashes, more than 1 GiB,
more than 5 seconds of processor time, and a trace of any code in the file having run.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from reliability.children import same_copy
from reliability.specimens import SPECIMENS

#: Seconds by the clock after which a pen that does not answer is ended.
PATIENCE = 60.0
VERDICTS = ("refused", "sound", "refused later", "fault")


class Outcome(NamedTuple):
    """What came of one mutation."""

    specimen: str
    number: int
    verdict: str
    told: str


class Process:
    """A pen in a process of its own, started anew where it was killed."""

    def __init__(self) -> None:
        self._pen: subprocess.Popen[str] | None = None

    def ask(self, specimen: str, number: int) -> Outcome:
        """Have one mutation loaded."""
        pen = self._ready()
        assert pen.stdin is not None
        pen.stdin.write(f"{specimen} {number}\n")
        pen.stdin.flush()
        if answer := _line(pen):
            return Outcome(specimen, number, *json.loads(answer))
        self._pen = None
        return Outcome(specimen, number, "fault", f"the process ended with {pen.wait()}")

    def end(self) -> None:
        """End the process."""
        if self._pen is not None:
            assert self._pen.stdin is not None and self._pen.stdout is not None
            self._pen.stdin.close()
            self._pen.wait()
            self._pen.stdout.close()

    def _ready(self) -> subprocess.Popen[str]:
        if self._pen is None:
            alone = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
            self._pen = subprocess.Popen(
                [sys.executable, "-m", "reliability.pen"],
                cwd=Path(__file__).parent.parent,
                env=same_copy(**alone),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            if _line(self._pen).strip() != "ready":
                raise RuntimeError("the pen does not start: run python -m reliability.pen")
        return self._pen


def _line(pen: subprocess.Popen[str]) -> str:
    """The next line that the pen answers; nothing where it ended or had to be ended."""
    assert pen.stdout is not None
    timer = threading.Timer(PATIENCE, pen.kill)
    timer.start()
    try:
        return pen.stdout.readline()
    finally:
        timer.cancel()


def run(mutations: int, processes: int = 2, first: int = 0) -> list[Outcome]:
    """Load that many mutations, spread evenly over the specimens."""
    numbers = [(SPECIMENS[k % len(SPECIMENS)].name, first + k) for k in range(mutations)]

    def part(start: int) -> list[Outcome]:
        process = Process()
        try:
            return [process.ask(*each) for each in numbers[start::processes]]
        finally:
            process.end()

    with ThreadPoolExecutor(processes) as pool:
        return [outcome for done in pool.map(part, range(processes)) for outcome in done]


def table(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes by kind of file, as Markdown."""
    counts: dict[str, Counter[str]] = {}
    for specimen in SPECIMENS:
        counts.setdefault(specimen.name.partition(":")[0], Counter())
    for outcome in outcomes:
        counts[outcome.specimen.partition(":")[0]][outcome.verdict] += 1
    counts["all"] = sum(counts.values(), Counter())
    lines = [f"| file | mutations | {' | '.join(VERDICTS)} |", "|---|" + "---:|" * 5]
    for name, found in counts.items():
        columns = [f"{found[verdict]:,}" for verdict in VERDICTS]
        lines.append(f"| {name} | {found.total():,} | {' | '.join(columns)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print the table and the faults; 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m reliability.fuzz", description=__doc__)
    parser.add_argument("--mutations", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutation")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args(arguments)
    outcomes = run(given.mutations, given.processes, given.first)
    print(table(outcomes))
    faults = [outcome for outcome in outcomes if outcome.verdict == "fault"]
    for fault in faults:
        print(f'- python -m reliability.pen "{fault.specimen}" {fault.number}: {fault.told}')
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

"""Hostile files: mutations of every kind of file that driftwolfe reads, loaded with limits.

    python -m reliability.fuzz [--mutations 10000]
    python -m reliability.fuzz --show "game" 17      # one mutation again, with its traceback

Three in four mutations have a valid checksum, since an attacker can compute one. Allowed are a refusal
(a ValueError or OSError of one sentence, raised by driftwolfe) and an object that works for 20 rounds:
finite, feasible, or refusing. Not allowed are other exceptions, crashes, more than 1 GiB of memory,
more than 5 seconds of processor time, and any sign that code in the file was run.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from reliability.children import same_copy
from reliability.specimens import SPECIMENS, Specimen

#: Wall-clock seconds after which a worker that does not answer, or start (it may have to compile), is killed.
PATIENCE, START = 60.0, 600.0
#: Bytes beyond what a worker has when it is ready, and processor seconds per file.
MEMORY, SECONDS = 1 << 30, 5.0
#: Most characters of a refusal.
LONGEST = 2000
VERDICTS = ("refused", "sound", "refused later", "fault")


class Outcome(NamedTuple):
    """The verdict on one mutation."""

    specimen: str
    number: int
    verdict: str
    message: str


# -- the worker process, which loads the files ---------------------------------------------------------


class TooLongError(BaseException):
    """No `except` of the code under test can catch it."""


def _too_long(*_: Any) -> None:
    raise TooLongError


class Loader:
    """Makes mutations in a folder, loads them and judges the result.

    A mutation depends on its number alone, so that any of them can be made again.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.canary = folder / "canary"
        self._originals: dict[str, Path] = {}

    def check(self, specimen: Specimen) -> None:
        """Load and use the unchanged file; this also compiles what it needs."""
        specimen.use(specimen.load(self._original(specimen)))

    def outcome(self, specimen: Specimen, number: int, show: bool = False) -> tuple[str, str]:
        """The verdict on one mutation, and the message."""
        original = self._original(specimen)
        rng = np.random.default_rng([number, *specimen.name.encode()])
        path = self.folder / "mutated" / specimen.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(specimen.mutation(original, rng, str(self.canary)))
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            return self._judge(specimen, path, show)
        except TooLongError:
            return "fault", "it took too long"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            path.unlink(missing_ok=True)

    def _original(self, specimen: Specimen) -> Path:
        if specimen.name not in self._originals:
            path = self.folder / specimen.name.replace(":", "") / specimen.file
            path.parent.mkdir(parents=True)
            specimen.make(path)
            self._originals[specimen.name] = path
        return self._originals[specimen.name]

    def _judge(self, specimen: Specimen, path: Path, show: bool) -> tuple[str, str]:
        stage = "refused"
        try:
            loaded = specimen.load(path)
            stage = "refused later"
            specimen.use(loaded)
        except Exception as error:
            if show:
                traceback.print_exc()
            fault = _fault(error)
            return ("fault", f"{stage}: {fault}") if fault else (stage, str(error))
        if self.canary.exists():
            return "fault", "code in the file was run"
        return "sound", ""


def _fault(error: Exception) -> str:
    """What is wrong with an exception; nothing if it is one sentence raised by driftwolfe."""
    message = str(error)
    if not isinstance(error, ValueError | OSError):
        return f"{type(error).__name__}: {message}"[:300]
    frame = traceback.extract_tb(error.__traceback__)[-1]
    if "driftwolfe" not in Path(frame.filename).parts:
        return f"{type(error).__name__} from {Path(frame.filename).name}: {message}"[:300]
    if not 10 <= len(message) <= LONGEST or "\n" in message.strip():
        return f"not one sentence: {message!r}"[:300]
    return ""


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def work(only: tuple[str, int] | None = None) -> None:
    """Answer lines "specimen number" on stdin with JSON lines, or show one mutation."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, _too_long)
    by_name = {specimen.name: specimen for specimen in SPECIMENS}
    with tempfile.TemporaryDirectory() as folder:
        loader = Loader(Path(folder))
        for specimen in SPECIMENS if only is None else [by_name[only[0]]]:
            loader.check(specimen)
        _limit_memory()
        if only is not None:
            print(*loader.outcome(by_name[only[0]], only[1], show=True))
            return
        answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # nothing else that is printed is an answer
        print("ready", file=answers, flush=True)
        for line in sys.stdin:
            name, _, number = line.strip().rpartition(" ")
            print(json.dumps(loader.outcome(by_name[name], int(number))), file=answers, flush=True)


# -- the command, which starts workers -----------------------------------------------------------------


class Worker:
    """A worker process, restarted after it was killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def ask(self, specimen: str, number: int) -> Outcome:
        """Load one mutation."""
        process = self._ready()
        assert process.stdin is not None
        process.stdin.write(f"{specimen} {number}\n")
        process.stdin.flush()
        if answer := _line(process):
            return Outcome(specimen, number, *json.loads(answer))
        self._process = None
        return Outcome(specimen, number, "fault", f"the process ended with {process.wait()}")

    def end(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None and self._process.stdout is not None
            self._process.stdin.close()
            self._process.wait()
            self._process.stdout.close()

    def _ready(self) -> subprocess.Popen[str]:
        if self._process is None:
            one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
            self._process = subprocess.Popen(
                [sys.executable, "-m", "reliability.fuzz", "--worker"],
                cwd=Path(__file__).parent.parent,
                env=same_copy(**one_thread),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            if _line(self._process, START).strip() != "ready":
                raise RuntimeError("no worker: run python -m reliability.fuzz --worker to see why")
        return self._process


def _line(process: subprocess.Popen[str], patience: float = PATIENCE) -> str:
    """The next line of a worker; nothing if it ended or had to be killed."""
    assert process.stdout is not None
    timer = threading.Timer(patience, process.kill)
    timer.start()
    try:
        return process.stdout.readline()
    finally:
        timer.cancel()


def run(mutations: int, processes: int = 2, first: int = 0) -> list[Outcome]:
    """Load that many mutations, spread evenly over the specimens."""
    numbers = [(SPECIMENS[k % len(SPECIMENS)].name, first + k) for k in range(mutations)]

    def part(start: int) -> list[Outcome]:
        worker = Worker()
        try:
            return [worker.ask(*each) for each in numbers[start::processes]]
        finally:
            worker.end()

    with ThreadPoolExecutor(processes) as pool:
        return [outcome for done in pool.map(part, range(processes)) for outcome in done]


def table(outcomes: Sequence[Outcome]) -> str:
    """A Markdown table of the outcomes by kind of file."""
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
    """Print the table and the faults; return 1 if there are any."""
    parser = argparse.ArgumentParser(
        prog="python -m reliability.fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--mutations", type=int, default=10_000, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first one")
    parser.add_argument("--processes", type=int, default=2, metavar="N")
    parser.add_argument("--show", nargs=2, metavar=("FILE", "N"), help="load one mutation here")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.worker or given.show:
        work((given.show[0], int(given.show[1])) if given.show else None)
        return 0
    outcomes = run(given.mutations, given.processes, given.first)
    print(table(outcomes))
    faults = [outcome for outcome in outcomes if outcome.verdict == "fault"]
    for fault in faults:
        print(f'- python -m reliability.fuzz --show "{fault.specimen}" {fault.number}:', end=" ")
        print(fault.message)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

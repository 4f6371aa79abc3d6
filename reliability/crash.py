"""Kills: games and sweeps ended with SIGKILL at random moments, then resumed to their end.

    python -m reliability.crash [--kills 100] [--seed 0]

Half of the kills come at a random time, half while a file is written: half written, written,
synchronised, or just put in place. After each kill every file must be complete. Some runs are killed
again; then one runs to its end, which must equal that of an undisturbed run: bit-identical histories,
every trial once. The seed fixes which writes are hit; the time cannot be fixed.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import redirect_stderr
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np

import driftwolfe as dw
from driftwolfe.experiments.running import run_trial
from driftwolfe.experiments.sweep import Store, run_sweep
from driftwolfe.experiments.trial import DataSet, Result, Trial
from driftwolfe.losses import AbsoluteEntries, SquaredDistance
from driftwolfe.storage import read_archive
from reliability.children import same_copy

# -- killing a process ---------------------------------------------------------------------------------

#: Stages of a write at which it can be cut off.
STAGES = ("half written", "written", "synchronised", "in its place")


def kill_by_clock(run: Callable[[], Any], longest: float, random: Random) -> bool:
    """Start a run and kill it within `longest` seconds; False if it ended first."""
    child = start(run)
    time.sleep(random.uniform(0.0, longest))
    os.kill(child, signal.SIGKILL)
    return ended(child) == -signal.SIGKILL


def kill_in_a_write(run: Callable[[], Any], writes: int, random: Random) -> bool:
    """Start a run that is killed during one of its first writes; False if it made fewer."""
    number, stage = random.randint(1, writes), random.choice(STAGES)

    def deadly() -> None:
        arm(number, stage)
        run()

    return ended(start(deadly)) == -signal.SIGKILL


def start(run: Callable[[], Any]) -> int:
    """Run in a fork of this process, which starts at once; return its process id."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        errors = os.dup(2)
        os.dup2(silence, 2)
        try:
            run()
            status = 0
        except BaseException:
            os.write(errors, traceback.format_exc().encode())
    finally:
        os._exit(status)  # no clean-up of the parent's objects
    raise AssertionError  # never reached


def ended(child: int) -> int:
    """Wait for a run; return its exit status, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def arm(number: int, stage: str) -> None:
    """Kill this process during a write, by patching what `storage.write` calls."""
    synchronise, put = os.fsync, Path.replace
    left = number

    def die_at(here: str) -> None:
        nonlocal left
        left -= here == stage
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def write_bytes(path: Path, content: bytes) -> int:
        with path.open("wb") as part:
            part.write(content[: len(content) // 2])
            part.flush()
            die_at("half written")
            part.write(content[len(content) // 2 :])
        die_at("written")
        return len(content)

    def fsync(handle: int) -> None:
        synchronise(handle)
        die_at("synchronised")

    def replace(path: Path, target: Path) -> Path:
        placed = put(path, target)
        die_at("in its place")
        return placed

    Path.write_bytes, os.fsync, Path.replace = write_bytes, fsync, replace  # type: ignore


# -- what is killed ------------------------------------------------------------------------------------

PART = re.compile(r"\..*\.driftwolfe-[0-9a-f]{16}(\.\w+)?")
ENDINGS = {".png": b"IEND\xaeB`\x82", ".pdf": b"%%EOF\n", ".svg": b"</svg>\n", ".html": b"</html>"}


class Victim:
    """A run that writes files and resumes from them; `aimed`: it can be killed during a write."""

    name: str
    aimed = True

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.prepare()
        started = time.perf_counter()
        self.run()
        self.seconds = time.perf_counter() - started
        self.writes = self.count_writes()
        self.clear()

    def prepare(self) -> None:
        """Compute the result of an undisturbed run."""

    def run(self) -> Any:
        """Run to the end, from the files that exist."""
        raise NotImplementedError

    def count_writes(self) -> int:
        """Number of files that a whole run writes."""
        raise NotImplementedError

    def kill(self, within: bool, random: Random) -> bool:
        """Run and kill, during a write or at a random time; False if the run ended first."""
        if within:
            return kill_in_a_write(self.run, self.writes, random)
        return kill_by_clock(self.run, 1.2 * self.seconds, random)

    def torn(self) -> int:
        """Number of incomplete files."""
        return sum(not whole(path) for path in self.files() if not PART.fullmatch(path.name))

    def parts(self) -> int:
        """Number of temporary files."""
        return sum(bool(PART.fullmatch(path.name)) for path in self.files())

    def files(self) -> list[Path]:
        return [path for path in self.folder.rglob("*") if path.is_file() and path.name != ".lock"]

    def finish(self) -> dict[str, int]:
        """Run to the end and count the differences from an undisturbed run."""
        raise NotImplementedError

    def clear(self) -> None:
        shutil.rmtree(self.folder)


def whole(path: Path) -> bool:
    """Whether a file is complete, as far as its format shows."""
    content = path.read_bytes()
    try:
        if path.suffix == ".safetensors":
            read_archive(path)
        elif path.suffix == ".json":
            msgspec.json.decode(content)
    except ValueError:
        return False
    return bool(content) and content.endswith(ENDINGS.get(path.suffix, b""))


class Game(Victim):
    """A learner on vectors with a checkpoint after every round."""

    name = "game, vectors"
    every = 1

    def prepare(self) -> None:
        self.losses = self.make_losses(np.random.default_rng(0))
        self.expected = fingerprint(*self.play())

    def make_learner(self) -> dw.Learner:
        return dw.POLA(dw.L1Ball(10), oracle="halfspace")

    def make_losses(self, rng: np.random.Generator) -> list[Any]:
        return [SquaredDistance(rng.standard_normal(10)) for _ in range(60)]

    def play(self, path: Path | None = None) -> tuple[dw.History, dw.Learner]:
        learner = self.make_learner()
        history = dw.play(learner, self.losses, checkpoint=path, every=self.every)
        return history, learner

    def run(self) -> tuple[dw.History, dw.Learner]:
        return self.play(self.path)

    @property
    def path(self) -> Path:
        return self.folder / "game.safetensors"

    def count_writes(self) -> int:
        return -(-len(self.losses) // self.every)

    def finish(self) -> dict[str, int]:
        """The history must equal that of the undisturbed game bit for bit."""
        other = fingerprint(*self.run()) != self.expected
        return {"ended otherwise": int(other), "torn": self.torn(), "left": self.parts()}


class FactoredGame(Game):
    """A learner on factored matrices with a checkpoint every four rounds."""

    name = "game, factored matrices"
    every = 4

    def make_learner(self) -> dw.Learner:
        ball = dw.TraceNormBall((12, 10), radius=6.0, representation="factored")
        return dw.learners.MultiOCG(ball, max_inner=2)

    def make_losses(self, rng: np.random.Generator) -> list[Any]:
        places = [(rng.integers(0, 12, 6), rng.integers(0, 10, 6)) for _ in range(40)]
        return [AbsoluteEntries(*place, rng.standard_normal(6)) for place in places]


def fingerprint(history: dw.History, learner: dw.Learner) -> list[bytes]:
    """A history without its seconds, and the learner's state, as bytes."""
    x, calls = learner.decision, history.oracle_calls.values()
    weights = [] if learner.expert_weights is None else [learner.expert_weights]
    dense = x.toarray() if hasattr(x, "toarray") else x
    return [array.tobytes() for array in (history.losses, *calls, dense, *weights)]


class Here(ThreadPoolExecutor):
    """Runs trials one after the other in this process, and notes each before it starts."""

    def __init__(self, notes: Path) -> None:
        super().__init__(1)
        self.notes = notes

    def submit(self, call: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        return super().submit(self._run, call, *arguments)

    def _run(self, call: Callable[..., Any], trial: bytes, *others: Any) -> Any:
        with self.notes.open("a") as notes:
            notes.write(f"{msgspec.json.decode(trial, type=Trial).name}\n")
        return call(trial, *others)


def outcome(result: Result) -> dict[str, Any]:
    """A result without times, environment and trial."""
    plain = msgspec.json.decode(result.encode())
    left_out = {"trial", "seconds", "wall", "environment"}
    return {name: plain[name] for name in plain.keys() - left_out}


class Sweep(Victim):
    """Short trials, one file each."""

    name = "sweep"
    rounds = 30

    def prepare(self) -> None:
        data = DataSet(name="jumping-target", rounds=self.rounds)
        self.trials = [
            Trial(method=method, data=data, seed=seed)
            for seed in range(3)
            for method in ("OGD", "POLA", "POLD")
        ]
        self.expected = {trial.name: outcome(run_trial(trial)) for trial in self.trials}
        self.notes = self.folder.with_suffix(".notes")

    @property
    def store(self) -> Store:
        return Store(self.folder)

    def run(self) -> None:
        self.store.add("Killed", self.trials)
        with redirect_stderr(io.StringIO()):  # progress
            run_sweep(self.store, lambda: Here(self.notes))

    def count_writes(self) -> int:
        return 1 + len(self.trials)

    def finish(self) -> dict[str, int]:
        """Every trial must have one result, and none with a result may run again."""
        torn = self.torn()
        before = {path: path.stat() for path in self.folder.glob("trials/[!.]*")}
        self.notes.unlink(missing_ok=True)
        self.run()
        again = self.notes.read_text().split() if self.notes.exists() else []
        had = {path.stem for path in before}
        changed = [path for path, stat in before.items() if _stamp(path.stat()) != _stamp(stat)]
        found = self._compared()
        found["doubled"] += len(had & set(again)) + len(again) - len(set(again)) + len(changed)
        return found | {"torn": torn + self.torn(), "left": self.parts()}

    def _compared(self) -> dict[str, int]:
        results = {result.trial.name: outcome(result) for result in self.store.results}
        extra = len(list(self.folder.glob("trials/[!.]*"))) - len(results)
        other = sum(self.expected[name] != each for name, each in results.items())
        lost = len(self.expected) - len(results)
        return {"ended otherwise": other, "lost": lost, "doubled": extra}


def _stamp(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_mtime_ns, stat.st_ino


class Command(Sweep):
    """``driftwolfe sweep`` with worker processes, tables, figures and report."""

    name = "`driftwolfe sweep`"
    aimed = False
    rounds = 400

    def run(self) -> None:
        with self._started() as running:
            _, errors = running.communicate()
        if running.returncode:
            raise RuntimeError(errors.decode())

    def kill(self, within: bool, random: Random) -> bool:
        """Kill the command and its workers at a random time."""
        with self._started() as running:
            time.sleep(random.uniform(0.1, 1.0) * self.seconds)
            os.killpg(running.pid, signal.SIGKILL)
            running.communicate()
        return running.returncode == -signal.SIGKILL

    def _started(self) -> subprocess.Popen[bytes]:
        spec = self.folder.with_suffix(".toml")
        spec.write_text(
            f'title = "Killed"\nseeds = 3\ndata = {{ name = "jumping-target", rounds = '
            f"{self.rounds} }}\n"
            + "".join(f'[[methods]]\nmethod = "{m}"\n' for m in ("OGD", "POLA", "POLD"))
        )
        command = [sys.executable, "-m", "driftwolfe.cli", "sweep", str(spec), "--out"]
        return subprocess.Popen(
            [*command, str(self.folder), "--jobs", "1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=same_copy(),
        )


# -- the command ---------------------------------------------------------------------------------------

#: Probability that a killed run is killed again before it may end.
AGAIN = 0.3
VICTIMS: tuple[Callable[[Path], Victim], ...] = (Game, FactoredGame, Sweep)
#: Kills of the command line per hundred: each takes seconds.
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
    """Kill, print the table, return 1 if something went wrong."""
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
    """What to kill and how often; the command line only for many kills."""
    commands = kills * COMMANDS // 100
    rest = kills - commands
    shares = [rest // len(VICTIMS)] * len(VICTIMS)
    shares[0] += rest - sum(shares)
    victims = [make(folder / str(i)) for i, make in enumerate(VICTIMS)]
    found = list(zip(victims, shares, strict=True))
    return [*found, (Command(folder / "command"), commands)] if commands else found


def assault(victim: Victim, kills: int, random: Random) -> Counter[str]:
    """Kill `kills` times and count the consequences."""
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
        except ValueError as problem:  # an incomplete file is refused
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

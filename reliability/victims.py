"""What is killed: games with checkpoints, sweeps, and a sweep from the command line.

Each can be run, knows what an undisturbed run ends with, and tells what a kill has left.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import redirect_stderr
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np

import driftwolfe as dw
from driftwolfe.experiments.run_trial import run_trial
from driftwolfe.experiments.store import Store
from driftwolfe.experiments.sweep import run_sweep
from driftwolfe.experiments.trial import DataSet, Result, Trial
from driftwolfe.losses import AbsoluteEntries, SquaredDistance
from driftwolfe.storage import read_archive
from reliability.children import same_copy
from reliability.killing import kill_by_clock, kill_in_a_write

PART = re.compile(r"\..*\.[0-9a-f]{16}(\.\w+)?")
ENDINGS = {".png": b"IEND\xaeB`\x82", ".pdf": b"%%EOF\n", ".svg": b"</svg>\n", ".html": b"</html>"}


class Victim:
    """Something that writes files, and goes on from them when it is run again.

    Attributes
    ----------
    name
        What the table calls it.
    folder
        Where it writes.
    aimed
        Whether it can be killed within a write.
    """

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
        """Find out what an undisturbed run ends with."""

    def run(self) -> Any:
        """Run to the end, from what is there."""
        raise NotImplementedError

    def count_writes(self) -> int:
        """How often a run from the beginning writes a file."""
        raise NotImplementedError

    def kill(self, within: bool, random: Random) -> bool:
        """Run and kill, within a write or by the clock; False where the end was quicker."""
        if within:
            return kill_in_a_write(self.run, self.writes, random)
        return kill_by_clock(self.run, 1.2 * self.seconds, random)

    def torn(self) -> int:
        """Files that are not whole."""
        return sum(not whole(path) for path in self.files() if not PART.fullmatch(path.name))

    def parts(self) -> int:
        """Files that were begun and are no file yet."""
        return sum(bool(PART.fullmatch(path.name)) for path in self.files())

    def files(self) -> list[Path]:
        """All that lies in the folder."""
        return [path for path in self.folder.rglob("*") if path.is_file() and path.name != ".lock"]

    def finish(self) -> dict[str, int]:
        """Run to the end, and count what is not as it would have been."""
        raise NotImplementedError

    def clear(self) -> None:
        """Remove all that was written."""
        shutil.rmtree(self.folder)


def whole(path: Path) -> bool:
    """Whether a file is complete, as far as its ending tells."""
    content = path.read_bytes()
    try:
        if path.suffix == ".safetensors":
            read_archive(path)
        elif path.suffix == ".json":
            msgspec.json.decode(content)
    except ValueError:
        return False
    return bool(content) and content.endswith(ENDINGS.get(path.suffix, b""))


# -- games -----------------------------------------------------------------------------------------


class Game(Victim):
    """A learner on vectors that is written down after every round, with all that is recorded."""

    name = "game, vectors"
    every = 1

    def prepare(self) -> None:
        """Play without a file."""
        self.losses = self.make_losses(np.random.default_rng(0))
        self.expected = told(*self.play())

    def make_learner(self) -> dw.Learner:
        """The learner, at its start."""
        return dw.POLA(dw.L1Ball(10), method="halfspace")

    def make_losses(self, rng: np.random.Generator) -> list[Any]:
        """The losses."""
        return [SquaredDistance(rng.standard_normal(10)) for _ in range(60)]

    def play(self, path: Path | None = None) -> tuple[dw.History, dw.Learner]:
        """Play to the end."""
        learner = self.make_learner()
        options: dict[str, Any] = {"record_decisions": True, "record_weights": True}
        history = dw.play(learner, self.losses, checkpoint=path, every=self.every, **options)
        return history, learner

    def run(self) -> tuple[dw.History, dw.Learner]:
        """Play to the end, from the file."""
        return self.play(self.path)

    @property
    def path(self) -> Path:
        """The checkpoint."""
        return self.folder / "game.safetensors"

    def count_writes(self) -> int:
        """One for each round, or for some."""
        return -(-len(self.losses) // self.every)

    def finish(self) -> dict[str, int]:
        """The history must be that of the undisturbed game, to the last bit."""
        other = told(*self.run()) != self.expected
        return {"ended otherwise": int(other), "torn": self.torn(), "left": self.parts()}


class FactoredGame(Game):
    """A learner on large matrices, which keeps more, and is written down now and then."""

    name = "game, factored matrices"
    every = 4

    def make_learner(self) -> dw.Learner:
        """One whose experts share what they hold."""
        ball = dw.TraceNormBall((12, 10), radius=6.0, representation="factored")
        return dw.MultiOCG(ball, max_inner=2)

    def make_losses(self, rng: np.random.Generator) -> list[Any]:
        """Entries of a matrix."""
        places = [(rng.integers(0, 12, 6), rng.integers(0, 10, 6)) for _ in range(40)]
        return [AbsoluteEntries(*place, rng.standard_normal(6)) for place in places]


def told(history: dw.History, learner: dw.Learner) -> list[bytes]:
    """A history but for its seconds, and where the learner is, as bytes."""
    points = [*history.decisions, learner.decision]
    dense = [x.toarray() if hasattr(x, "toarray") else x for x in points]
    calls = history.oracle_calls.values()
    weights = [] if learner.expert_weights is None else [*history.weights, learner.expert_weights]
    return [array.tobytes() for array in (history.losses, *calls, *dense, *weights)]


# -- sweeps ----------------------------------------------------------------------------------------


class Here(ThreadPoolExecutor):
    """Runs trials one after the other in this process, and notes each before it begins."""

    def __init__(self, notes: Path) -> None:
        super().__init__(1)
        self.notes = notes

    def submit(self, call: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        """Run a trial when those before it are done."""
        return super().submit(self._run, call, *arguments)

    def _run(self, call: Callable[..., Any], trial: bytes, *others: Any) -> Any:
        with self.notes.open("a") as notes:
            notes.write(f"{msgspec.json.decode(trial, type=Trial).name}\n")
        return call(trial, *others)


def outcome(result: Result) -> dict[str, Any]:
    """All of a result but what clocks tell, where it was run, and what its trial is called."""
    plain = msgspec.json.decode(result.encode())
    told = {"trial", "seconds", "wall", "environment"}
    return {name: plain[name] for name in plain.keys() - told}


class Sweep(Victim):
    """Short trials, each of which becomes a file."""

    name = "sweep"
    rounds = 30

    def prepare(self) -> None:
        """Run every trial by itself."""
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
        """The sweep's folder."""
        return Store(self.folder)

    def run(self) -> None:
        """Run what is missing."""
        self.store.add("Killed", self.trials)
        with redirect_stderr(io.StringIO()):  # how far it is
            run_sweep(self.store, lambda: Here(self.notes))

    def count_writes(self) -> int:
        """The list, and a result for each."""
        return 1 + len(self.trials)

    def finish(self) -> dict[str, int]:
        """Every trial has one result, and none was run again that had one."""
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
    """``driftwolfe sweep`` as a user starts it: worker processes, tables, figures, report."""

    name = "`driftwolfe sweep`"
    aimed = False
    rounds = 400

    def run(self) -> None:
        """Run the command to its end."""
        with self._started() as running:
            _, errors = running.communicate()
        if running.returncode:
            raise RuntimeError(errors.decode())

    def kill(self, within: bool, random: Random) -> bool:
        """Kill the command and its workers; nobody can tell when it writes."""
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


VICTIMS: tuple[Callable[[Path], Victim], ...] = (Game, FactoredGame, Sweep)

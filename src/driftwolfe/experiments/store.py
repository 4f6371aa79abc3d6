"""`Store`: a folder with the results of a sweep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from driftwolfe import storage
from driftwolfe.experiments.result import Result, decode
from driftwolfe.experiments.trial import Trial
from driftwolfe.streams.data_files import Folder

#: No result is longer: what is, is not one. A list of very many trials may be.
_LARGEST, _LARGEST_PLAN = 16 << 20, 256 << 20


class SweepPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a sweep is to run, and what it is called."""

    title: str
    trials: list[Trial]


class Store:
    """One file for each finished trial, written whole or not at all, and the list of all trials.

    Parameters
    ----------
    folder
        Where they lie; made when the first is written.

    Examples
    --------
    >>> import tempfile
    >>> from driftwolfe.experiments.trial import DataSet
    >>> trial = Trial(method="OGD", data=DataSet(name="jumping-target"))
    >>> store = Store(tempfile.mkdtemp())
    >>> store.add("steps", [trial])
    >>> len(store.trials), len(store.missing), store.results
    (1, 1, [])
    """

    def __init__(self, folder: Folder) -> None:
        self.folder = Path(folder)

    @property
    def title(self) -> str:
        """What the sweep is called."""
        return self._plan().title

    @property
    def trials(self) -> list[Trial]:
        """All that are to be run, in order."""
        return self._plan().trials

    @property
    def missing(self) -> list[Trial]:
        """Those without a result."""
        return [trial for trial in self.trials if not self.path(trial).exists()]

    @property
    def results(self) -> list[Result]:
        """Those of finished trials, in order."""
        return [self.read(trial) for trial in self.trials if self.path(trial).exists()]

    @property
    def failures(self) -> dict[str, str]:
        """What went wrong in trials that were tried last, by their names."""
        found = ((self._failure(trial), trial) for trial in self.missing)
        return {trial.name: _line(path) for path, trial in found if path.exists()}

    def add(self, title: str, trials: Iterable[Trial]) -> None:
        """Add trials to the list; those that it holds already stay as they are."""
        old = self._plan() if self._plan_path.exists() else SweepPlan(title, [])
        known = {trial.identity: trial for trial in old.trials}
        for trial in trials:
            known.setdefault(trial.identity, trial)
        plan = SweepPlan(old.title, list(known.values()))
        if plan != old or not self._plan_path.exists():
            content = msgspec.json.format(msgspec.json.encode(plan), indent=1)
            storage.write_bytes(self._plan_path, content + b"\n")

    def path(self, trial: Trial) -> Path:
        """Where the result of a trial lies."""
        return self.folder / "trials" / f"{trial.name}.json"

    def read(self, trial: Trial) -> Result:
        """Return a trial's result, under the label that it has in the list."""
        path = self.path(trial)
        try:
            result = decode(_content(path))
        except ValueError as problem:
            raise ValueError(
                f"{path} is not a result ({problem}); delete it, and the sweep runs its trial again"
            ) from problem
        if result.trial.identity != trial.identity:
            raise ValueError(
                f"{path} holds the result of another trial; delete it, and the sweep runs it again"
            )
        return msgspec.structs.replace(result, trial=trial)

    def write(self, result: Result) -> None:
        """Keep a result."""
        storage.write_bytes(self.path(result.trial), result.encode())
        self._failure(result.trial).unlink(missing_ok=True)

    def fail(self, trial: Trial, why: str) -> None:
        """Note that a trial could not be run; it stays missing."""
        storage.write_text(self._failure(trial), why + "\n")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from running a sweep in the same folder; ends with the process."""
        path = self.folder / ".lock"
        with storage.explained(path):
            self.folder.mkdir(parents=True, exist_ok=True)
            held = path.open("w")
        with held:
            try:
                import fcntl
            except ImportError:  # no such locks on this system
                yield
                return
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(
                    f"another sweep is running in {self.folder}; wait for it, or choose another "
                    "folder with --out"
                ) from None
            yield

    @property
    def _plan_path(self) -> Path:
        return self.folder / "sweep.json"

    def _plan(self) -> SweepPlan:
        path = self._plan_path
        if not path.exists():
            raise FileNotFoundError(
                f"{self.folder} holds no sweep: there is no {path.name}; "
                "`driftwolfe sweep SPEC --out DIR` makes one"
            )
        try:
            return msgspec.json.decode(_content(path, _LARGEST_PLAN), type=SweepPlan)
        except (msgspec.MsgspecError, ValueError, RecursionError) as problem:
            raise ValueError(f"{path} is not the list of a sweep ({problem})") from problem

    def _failure(self, trial: Trial) -> Path:
        return self.folder / "failures" / f"{trial.name}.txt"


def _content(path: Path, largest: int = _LARGEST) -> bytes:
    if path.stat().st_size > largest:
        raise ValueError(f"more than {largest >> 20} MiB")
    return path.read_bytes()


def _line(path: Path) -> str:
    return " ".join(path.read_text(encoding="utf-8", errors="replace").split())

"""`Store`: a folder with the trials of a sweep and their results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from driftwolfe import storage
from driftwolfe.experiments.trial import Result, Trial, decode
from driftwolfe.streams.data_files import Folder

#: Largest files that are read: a result, and the list of very many trials.
_LARGEST_RESULT, _LARGEST_LIST = 16 << 20, 256 << 20


class TrialList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of ``sweep.json``: the title of a sweep and all of its trials."""

    title: str
    trials: list[Trial]


class Store:
    """One file for each finished trial, written whole or not at all, and the list of all trials.

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
        self._list = self.folder / "sweep.json"

    @property
    def title(self) -> str:
        """The title of the sweep."""
        return self._read_list().title

    @property
    def trials(self) -> list[Trial]:
        """All trials, in order."""
        return self._read_list().trials

    @property
    def missing(self) -> list[Trial]:
        """Trials without a result."""
        return [trial for trial in self.trials if not self.path(trial).exists()]

    @property
    def results(self) -> list[Result]:
        """Results of finished trials, in order."""
        return [self.read(trial) for trial in self.trials if self.path(trial).exists()]

    @property
    def failures(self) -> dict[str, str]:
        """What went wrong in trials without a result that were tried, by their names."""
        found = {trial.name: self._failure(trial) for trial in self.missing}
        return {
            name: " ".join(path.read_text(encoding="utf-8", errors="replace").split())
            for name, path in found.items()
            if path.exists()
        }

    def add(self, title: str, trials: Iterable[Trial]) -> None:
        """Add trials to the list; the title and the trials that it holds already stay."""
        old = self._read_list() if self._list.exists() else None
        known = {trial.identity: trial for trial in (old.trials if old else [])}
        for trial in trials:
            known.setdefault(trial.identity, trial)
        new = TrialList(old.title if old else title, list(known.values()))
        if new != old:
            content = msgspec.json.format(msgspec.json.encode(new), indent=1)
            storage.write_bytes(self._list, content + b"\n")

    def path(self, trial: Trial) -> Path:
        """Where the result of a trial lies."""
        return self.folder / "trials" / f"{trial.name}.json"

    def read(self, trial: Trial) -> Result:
        """Return a trial's result, under the label that the trial has in the list."""
        path = self.path(trial)
        try:
            result = decode(_content(path, _LARGEST_RESULT))
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

    def _read_list(self) -> TrialList:
        if not self._list.exists():
            raise FileNotFoundError(
                f"{self.folder} holds no sweep: there is no {self._list.name}; "
                "`driftwolfe sweep SPEC --out DIR` makes one"
            )
        try:
            return msgspec.json.decode(_content(self._list, _LARGEST_LIST), type=TrialList)
        except (msgspec.MsgspecError, ValueError, RecursionError) as problem:
            raise ValueError(f"{self._list} is not the list of a sweep ({problem})") from problem

    def _failure(self, trial: Trial) -> Path:
        return self.folder / "failures" / f"{trial.name}.txt"


def _content(path: Path, largest: int) -> bytes:
    if path.stat().st_size > largest:
        raise ValueError(f"more than {largest >> 20} MiB")
    return path.read_bytes()

"""Sweeps: what to run, the folder that keeps the results, running them, and their progress."""

from __future__ import annotations

import itertools
import lzma
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
from tqdm import tqdm

from driftwolfe import storage
from driftwolfe.experiments.running import learner_class, run_trials
from driftwolfe.experiments.trial import (
    DataSet,
    Option,
    Result,
    Trial,
    decode,
    is_own,
    own,
    read_file,
    short,
)
from driftwolfe.points import checks
from driftwolfe.streams.datasets import Folder
from driftwolfe.terminal import printable

EXAMPLE = files(__package__).joinpath("example.toml").read_text(encoding="utf-8")
_MOST_TRIALS = 100_000  # more are a mistake rather than a sweep
_MOST_PACKED = 1 << 30  # bytes of packed results, unpacked


class MethodSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One method and the values to try; a list for `c` or for an option means each of them."""

    method: str
    label: str = ""
    c: float | list[float] | None = None
    options: dict[str, Option | list[Option]] = {}

    def __post_init__(self) -> None:
        for name, value in {"c": self.c, **self.options}.items():
            if value == []:
                raise ValueError(f"{name} of {self.method} is an empty list; give some values")

    @property
    def values(self) -> list[list[Any]]:  # of c, and of each option
        return [v if isinstance(v, list) else [v] for v in (self.c, *self.options.values())]

    def settings(self) -> Iterator[dict[str, Any]]:
        """Every combination of values, as keywords of `Trial`."""
        # The label names the options that have several values; without one, all options.
        named = [n for n, v in self.options.items() if isinstance(v, list) or not self.label]
        for c, *chosen in itertools.product(*self.values):
            options = dict(zip(self.options, chosen, strict=True))
            parts = [self.label or self.method, *(f"{name}={options[name]}" for name in named)]
            yield {"method": self.method, "label": ", ".join(parts), "c": c, "options": options}


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sweep: methods, data and seeds, and so a list of trials."""

    methods: list[MethodSpec]
    data: str | DataSet
    title: str = "Sweep"
    seeds: int | list[int] = 1
    taus: tuple[int, ...] = ()

    def trials(self) -> list[Trial]:
        """Every setting for the first seed, then for the next: stopped early, some seeds have all."""
        data = DataSet(name=self.data) if isinstance(self.data, str) else self.data
        seeds = range(self.seeds) if isinstance(self.seeds, int) else self.seeds
        # Not len(seeds), which cannot be larger than a machine word.
        times = max(self.seeds, 0) if isinstance(self.seeds, int) else len(self.seeds)
        number = times * sum(math.prod(map(len, method.values)) for method in self.methods)
        if number > _MOST_TRIALS:
            raise ValueError(f"{number:,} trials are more than {_MOST_TRIALS:,}; split the sweep")
        trials: dict[str, Trial] = {}
        for seed, method in itertools.product(seeds, self.methods):
            for setting in method.settings():
                trial = Trial(data=data, seed=seed, taus=self.taus, **setting)
                trials.setdefault(trial.identity, trial)
        if not trials:
            raise ValueError("there is nothing to run: give at least one method and one seed")
        return list(trials.values())


def read_spec(path: Folder) -> Spec:
    """Read a sweep from a TOML file; errors say what is wrong and where.

    Learners and streams of the user's own that it names are imported, also from beside the file.
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(
            f"there is no file {file}; `driftwolfe sweep --example` prints one to start from"
        )
    if file.stat().st_size > 1 << 20:
        raise ValueError(f"{file} is too large to be the description of a sweep")
    spec = parse_spec(file.read_bytes(), str(file))
    if any(trial.runs_own_code for trial in spec.trials()):
        # As Python does for a script; workers inherit it.
        sys.path.insert(0, str(file.parent.absolute()))
        try:
            for trial in spec.trials():
                learner_class(trial)
                if is_own(trial.data.name):
                    own(trial.data.name)
        except ValueError as problem:
            raise ValueError(f"{file}: {problem}") from problem
    return spec


def parse_spec(content: bytes, name: str = "the sweep") -> Spec:
    """Read a sweep from TOML; errors start with its name."""
    try:
        spec = decode(content, Spec, msgspec.toml.decode)
        spec.trials()
    except (ValueError, TypeError) as problem:
        raise ValueError(f"{name}: {_with_hint(str(problem))[:500]}") from problem
    return spec


def _with_hint(problem: str) -> str:
    """A message of msgspec about an unknown key, with the keys that may be meant."""
    found = re.search(r"unknown field `(.*?)`(?: - at `(.*)`)?", problem)
    if found is None:
        return problem
    key, place = found[1], found[2] or "$"
    kinds: dict[str, type[msgspec.Struct]] = {"$": Spec, "$.data": DataSet}
    kind = kinds.get(place, MethodSpec)
    known = [field.name for field in msgspec.structs.fields(kind)]
    there, where = ", ".join(known), "" if place == "$" else f" in {place.removeprefix('$.')}"
    return f"unknown key `{key}`{where}{checks.meant(key, known) or f'; there are {there}'}"


class TrialList(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of ``sweep.json``: the title of a sweep and all of its trials."""

    title: str
    trials: list[Trial]


class Store:
    """The results of a sweep, each written whole or not at all, and the list of all trials.

    A finished trial is a file of its own; `pack` moves all of them into one small file. Both are read.
    """

    def __init__(self, folder: Folder) -> None:
        self.folder = Path(folder)
        self._list = self.folder / "sweep.json"

    @property
    def title(self) -> str:
        return self._read_list().title

    @property
    def trials(self) -> list[Trial]:
        return self._read_list().trials

    @property
    def missing(self) -> list[Trial]:
        return [trial for trial in self.trials if not self.done(trial)]

    @property
    def results(self) -> list[Result]:
        return [self.read(trial) for trial in self.trials if self.done(trial)]

    @property
    def tuning(self) -> Store:
        """The trials that chose c for those of an experiment; their folder need not exist."""
        return Store(self.folder / "tuning")

    @property
    def failures(self) -> dict[str, str]:
        """What went wrong in trials without a result that were tried, by their names."""
        return {
            trial.name: " ".join(path.read_text(encoding="utf-8", errors="replace").split())
            for trial in self.missing
            if (path := self._failure(trial)).exists()
        }

    def add(self, title: str, trials: Iterable[Trial]) -> None:
        """Add trials to the list; the title and the trials that it holds already stay."""
        old = self._read_list() if self._list.exists() else TrialList(title, [])
        known: dict[str, Trial] = {}
        for trial in (*old.trials, *trials):
            known.setdefault(trial.identity, trial)
        new = TrialList(old.title, list(known.values()))
        if new != old or not self._list.exists():
            content = msgspec.json.format(msgspec.json.encode(new), indent=1)
            storage.write_bytes(self._list, content + b"\n")

    def path(self, trial: Trial) -> Path:
        return self.folder / "trials" / f"{trial.name}.json"

    @property
    def packed_path(self) -> Path:
        """The file of packed results; an experiment has one, with those of its tuning."""
        above = self.folder.parent
        tuning = self.folder == Store(above).tuning.folder and (above / self._list.name).exists()
        return (above if tuning else self.folder) / "trials.jsonl.xz"

    def done(self, trial: Trial) -> bool:
        """Whether there is a result of the trial."""
        return self.path(trial).exists() or trial.identity in self._packed

    def read(self, trial: Trial) -> Result:
        """Return a trial's result, under the label that the trial has in the list."""
        path, remedy = self.path(trial), "; delete it, and the sweep runs its trial again"
        result = self._packed.get(trial.identity)
        if result is None or path.exists():  # a file is newer
            result = read_file(path, Result, "a result", remedy)
        if result.trial.identity != trial.identity:
            raise ValueError(f"{path} holds the result of another trial{remedy}")
        return msgspec.structs.replace(result, trial=trial)

    def write(self, result: Result) -> None:
        storage.write_bytes(self.path(result.trial), result.encode())
        self._failure(result.trial).unlink(missing_ok=True)

    def pack(self) -> Path:
        """Move all results, those of its tuning too, into one small file, and return its path."""
        stores = [self, *([self.tuning] if self.tuning.folder.exists() else [])]
        with ExitStack() as held:
            for store in stores:
                held.enter_context(store.locked())
            read = {r.trial.identity: r for store in stores for r in store.results}
            storage.write_bytes(self.packed_path, packed((self._packed | read).values()))
            for store in stores:
                for trial in store.trials:
                    store.path(trial).unlink(missing_ok=True)
                with suppress(OSError):  # it does not exist, or there is something else in it
                    (store.folder / "trials").rmdir()
            self.__dict__.pop("_packed", None)
        return self.packed_path

    @cached_property
    def _packed(self) -> dict[str, Result]:
        """Packed results, by the identity of their trial."""
        found = read_packed(self.packed_path) if self.packed_path.exists() else []
        return {result.trial.identity: result for result in found}

    def fail(self, trial: Trial, why: str) -> None:
        storage.write_text(self._failure(trial), why + "\n")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from running a sweep in the same folder; ends with the process."""
        path = self.folder / ".lock"
        with storage.explained(path):
            self.folder.mkdir(parents=True, exist_ok=True)
            held = path.open("w")
        with held:
            if os.name == "posix" and not storage.lock(held):
                raise ValueError(
                    f"another sweep is running in {self.folder}; wait for it, or choose another "
                    "folder with --out"
                )
            yield

    def _read_list(self) -> TrialList:
        if not self._list.exists():
            none = f"{self.folder} holds no sweep: there is no {self._list.name}"
            problem = none if self.folder.exists() else f"there is no folder {self.folder}"
            raise FileNotFoundError(f"{problem}; `driftwolfe sweep SPEC --out DIR` makes one")
        return read_file(self._list, TrialList, "the list of a sweep", largest=256 << 20)

    def _failure(self, trial: Trial) -> Path:
        return self.folder / "failures" / f"{trial.name}.txt"


def packed(results: Iterable[Result]) -> bytes:
    """The content of a file of packed results: a line of JSON for each, by LZMA, with a SHA-256 sum."""
    lines = [msgspec.json.encode(result) for result in results]
    return lzma.compress(b"\n".join(lines), check=lzma.CHECK_SHA256)


def read_packed(path: Path) -> list[Result]:
    """Read a file of packed results."""
    try:
        unpacked = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=256 << 20)
        content = unpacked.decompress(path.read_bytes(), _MOST_PACKED)
        if not unpacked.eof or unpacked.unused_data:
            raise ValueError("it is cut off, or too long")
        return [decode(line, Result) for line in content.splitlines()]
    except (ValueError, EOFError, lzma.LZMAError) as problem:
        remedy = "delete it, and the sweep runs its trials again"
        raise ValueError(
            f"{path} is not a file of packed results ({problem}); {remedy}"
        ) from problem


def run_sweep(
    store: Store,
    make_executor: Callable[[], Executor],
    folder: str | None = None,
    device: str = "cpu",
    before: Sequence[Store] = (),
    trusted: Collection[Trial] = (),
) -> int:
    """Run the trials of a store that have no result, with `run_trials`; return how many failed.

    Those of the stores `before` it come first. Code of the user's own runs for `trusted` trials only: the
    list of a folder, which may come from anywhere, starts none.
    """
    failed, stores = 0, [*before, store]
    with ExitStack() as held:
        for each in stores:
            held.enter_context(each.locked())
        homes = {trial.identity: each for each in stores for trial in each.missing}
        missing = [trial for each in stores for trial in each.missing]
        known = {trial.identity for trial in trusted}
        for trial in missing:
            if trial.runs_own_code and trial.identity not in known:
                raise ValueError(
                    f"{store.folder} lists {trial.method} on {trial.data.name}, which would run code that "
                    "the sweep does not name; name it there, or choose another folder with --out"
                )
        if not missing:
            return 0
        _ = [each.results for each in stores]  # a spoilt one is told before any trial runs
        running = closing(run_trials(make_executor, missing, folder, device))
        total = sum(len(each.trials) for each in stores)
        shown: dict[str, Any] = {"total": total, "initial": total - len(missing), "unit": "trial"}
        # In a log a line now and then.
        shown["mininterval"] = 0.1 if sys.stderr.isatty() else 30.0
        with tqdm(**shown) as progress, running as outcomes:
            for trial, result, problem in outcomes:
                if result is None:
                    failed += 1
                    homes[trial.identity].fail(trial, problem)
                    progress.write(printable(f"{describe(trial)} failed: {problem}"), sys.stderr)
                else:
                    homes[trial.identity].write(result)
                    progress.update()
    return failed


def describe(trial: Trial) -> str:
    """A trial in a few words."""
    scale = "" if trial.c is None else f", c = {short(trial.c)}"
    return f"{trial.title}{scale}, seed {trial.seed}"


def status(store: Store) -> str:
    """Progress of a sweep and its failures, in a few lines."""
    number, left = (Counter(t.title for t in trials) for trials in (store.trials, store.missing))
    done = f"{number.total() - left.total()} of {number.total()} trials done"
    lines = [f"{store.title}: {done} in {store.folder}"]
    lines += [f"  {title}: {n - left[title]} of {n}" for title, n in number.items()]
    lines += [f"failed: {name}: {problem}" for name, problem in store.failures.items()]
    return "\n".join(lines)

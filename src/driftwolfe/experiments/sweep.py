"""Sweeps over learners, values, seeds and streams: what to run, running it, and its progress."""

from __future__ import annotations

import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any, TextIO

import msgspec

from driftwolfe.experiments.executors import run_trials
from driftwolfe.experiments.store import Store
from driftwolfe.experiments.trial import DataSet, Option, Result, Trial, short
from driftwolfe.streams.data_files import Folder
from driftwolfe.terminal import printable, show

#: A sweep to start from.
EXAMPLE = files(__package__).joinpath("example.toml").read_text(encoding="utf-8")
_LARGEST_SPEC = 1 << 20
#: Characters of an error message, as a file may repeat what it likes.
LONGEST = 500
#: More trials than this are a mistake rather than a sweep.
_MOST_TRIALS = 100_000
#: Seconds between lines of the log where there is no terminal.
_QUIET_FOR = 30.0


class MethodSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One method and the values to try; a list for `c` or for an option means each of them."""

    method: str
    label: str = ""
    c: float | list[float] | None = None
    options: dict[str, Option | list[Option]] = {}
    first: int | None = None
    limit: float | None = None

    def __post_init__(self) -> None:
        for name, value in {"c": self.c, **self.options}.items():
            if value == []:
                raise ValueError(f"{name} of {self.method} is an empty list; give some values")

    @property
    def values(self) -> list[list[Any]]:
        """The values of c, and those of each option."""
        return [v if isinstance(v, list) else [v] for v in (self.c, *self.options.values())]

    def settings(self) -> Iterator[dict[str, Any]]:
        """Every combination of values, as keywords of `Trial`.

        The label names the options that have several values; without one, all options.
        """
        named = [n for n, v in self.options.items() if isinstance(v, list) or not self.label]
        for c, *chosen in itertools.product(*self.values):
            options = dict(zip(self.options, chosen, strict=True))
            told = [self.label or self.method, *(f"{name}={options[name]}" for name in named)]
            changed = {"label": ", ".join(told), "c": c, "options": options}
            yield {**msgspec.structs.asdict(self), **changed}


class Spec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sweep: methods, data and seeds, and so a list of trials."""

    methods: list[MethodSpec]
    data: str | DataSet
    title: str = "Sweep"
    seeds: int | list[int] = 1
    taus: tuple[int, ...] = ()

    def trials(self) -> list[Trial]:
        """Every method with every setting for the first seed, then for the next, and so on.

        So a sweep that is stopped early has tried everything on some seeds.
        """
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
    """Read a sweep from a TOML file; errors say what is wrong and where."""
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(
            f"there is no file {file}; `driftwolfe sweep --example` prints one to start from"
        )
    if file.stat().st_size > _LARGEST_SPEC:
        raise ValueError(f"{file} is too large to be the description of a sweep")
    return parse_spec(file.read_bytes(), str(file))


def parse_spec(content: bytes, name: str = "the sweep") -> Spec:
    """Read a sweep from TOML.

    >>> len(parse_spec(EXAMPLE.encode()).trials())
    27
    """
    try:
        spec = msgspec.toml.decode(content, type=Spec)
        spec.trials()
    except (msgspec.MsgspecError, ValueError, TypeError) as problem:
        raise ValueError(f"{name}: {str(problem)[:LONGEST]}") from problem
    except RecursionError as problem:
        raise ValueError(f"{name}: it is nested too deeply") from problem
    return spec


def run_sweep(
    store: Store, make_executor: Callable[[], Executor], folder: str | None = None
) -> int:
    """Run the trials of a store that have no result; return how many failed.

    A result is written when its trial ends, so that a sweep that was stopped or killed resumes.
    Trials that failed are tried again the next time. For the arguments see `run_trials`.
    """
    failed = 0
    with store.locked():
        missing = store.missing
        if not missing:
            return 0
        with (
            Progress(store, len(store.trials)) as progress,
            closing(run_trials(make_executor, missing, folder)) as outcomes,
        ):
            for trial, result, problem in outcomes:
                if result is None:
                    failed += 1
                    store.fail(trial, problem)
                else:
                    store.write(result)
                progress.step(trial, result, problem)
    return failed


class Progress:
    """Progress of a sweep: a live line on a terminal, else a line of log now and then."""

    def __init__(self, store: Store, total: int, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self.done, self.total = total - len(store.missing), total
        self.best: dict[str, Result] = {}
        for result in store.results:
            self._compare(result)
        self._bar: Any = None
        self._said = time.monotonic()

    def __enter__(self) -> Progress:
        if self.stream.isatty():
            from tqdm import tqdm

            self._bar = tqdm(
                total=self.total, initial=self.done, unit="trial", leave=False, file=self.stream
            )
        else:
            self._say(f"{self.done} of {self.total} trials done, {self.total - self.done} to run")
        return self

    def __exit__(self, *problem: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def step(self, trial: Trial, result: Result | None, problem: str) -> None:
        """Count a trial that has ended."""
        self.done += 1
        if result is None:
            self._say(f"{describe(trial)} failed: {problem}")
        else:
            self._compare(result)
        best = list(self.best.values())
        latest = f"best: {_told(best[-1])}" if best else "no result yet"
        if self._bar is not None:
            self._bar.update()
            self._bar.set_postfix_str(printable(latest))
        elif time.monotonic() - self._said > _QUIET_FOR or self.done == self.total:
            self._say(f"{self.done} of {self.total} trials done; {latest}")

    def _compare(self, result: Result) -> None:
        key = result.stream
        self.best[key] = min(self.best.get(key, result), result, key=_rank)

    def _say(self, line: str) -> None:
        if self._bar is not None:
            self._bar.write(printable(line), file=self.stream)
        else:
            show(line, self.stream)
            self._said = time.monotonic()


def describe(trial: Trial) -> str:
    """A trial in a few words."""
    scale = "" if trial.c is None else f", c = {short(trial.c)}"
    return f"{trial.title}{scale}, seed {trial.seed}"


def status(store: Store) -> str:
    """Progress of a sweep, its best trials and its failures, in a few lines."""
    trials, missing, results = store.trials, store.missing, store.results
    done = f"{len(trials) - len(missing)} of {len(trials)} trials done"
    lines = [f"{store.title}: {done} in {store.folder}"]
    for title in dict.fromkeys(trial.title for trial in trials):
        number = sum(trial.title == title for trial in trials)
        left = sum(trial.title == title for trial in missing)
        lines.append(f"  {title}: {number - left} of {number}")
    for stream in dict.fromkeys(result.stream for result in results):
        best = min((result for result in results if result.stream == stream), key=_rank)
        lines.append(f"best on {stream}: {_told(best)}")
    lines += [f"failed: {name}: {problem}" for name, problem in store.failures.items()]
    return "\n".join(lines)


def _told(result: Result) -> str:
    return f"{describe(result.trial)}, loss {result.mean_loss:.4g} per round"


def _rank(result: Result) -> tuple[int, float]:
    """Most rounds first, then least loss."""
    return -result.rounds[-1], result.mean_loss

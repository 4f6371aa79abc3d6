"""Running what a sweep still lacks."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from typing import Any, TextIO

from driftwolfe.experiments.result import Result
from driftwolfe.experiments.store import Store
from driftwolfe.experiments.trial import Trial, short
from driftwolfe.experiments.workers import Workers
from driftwolfe.terminal import printable, show

#: Seconds between lines of the log where there is no terminal.
_QUIET_FOR = 30.0


def run_sweep(store: Store, workers: Workers, folder: str | None = None) -> int:
    """Run the trials of a store that have no result; return how many failed.

    A result is written when its trial ends, so that a sweep that is stopped, or killed, goes on
    where it was. Trials that failed are tried again the next time.

    Parameters
    ----------
    store
        The list of trials and their results.
    workers
        Where to run.
    folder
        Holds the real data, on the workers.
    """
    with store.locked():
        missing = store.missing
        if not missing:
            return 0
        failed = 0
        with (
            Progress(store, len(store.trials)) as progress,
            closing(workers.run(missing, folder)) as outcomes,
        ):
            for outcome in outcomes:
                if outcome.result is None:
                    failed += 1
                    store.fail(outcome.trial, outcome.problem)
                else:
                    store.write(outcome.result)
                progress.step(outcome.trial, outcome.result, outcome.problem)
        return failed


class Progress:
    """How a sweep gets on: a live line on a terminal, else a line of log now and then.

    Parameters
    ----------
    store
        What is there already counts as done.
    total
        Number of trials.
    stream
        Where to tell.
    """

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
        """One trial has ended."""
        self.done += 1
        if result is None:
            self._write(f"{describe(trial)} failed: {problem}")
        else:
            self._compare(result)
        if self._bar is not None:
            self._bar.update()
            self._bar.set_postfix_str(printable(self._told()))
        elif time.monotonic() - self._said > _QUIET_FOR or self.done == self.total:
            self._say(f"{self.done} of {self.total} trials done; {self._told()}")

    def _compare(self, result: Result) -> None:
        key = result.stream
        self.best[key] = min(self.best.get(key, result), result, key=_rank)

    def _told(self) -> str:
        if not self.best:
            return "no result yet"
        result = list(self.best.values())[-1]
        return f"best: {describe(result.trial)}, loss {result.mean_loss:.4g} a round"

    def _write(self, line: str) -> None:
        if self._bar is not None:
            self._bar.write(printable(line), file=self.stream)
        else:
            self._say(line)

    def _say(self, line: str) -> None:
        show(line, self.stream)
        self._said = time.monotonic()


def describe(trial: Trial) -> str:
    """A trial in a few words."""
    scale = "" if trial.c is None else f", c = {short(trial.c)}"
    return f"{trial.title}{scale}, seed {trial.seed}"


def status(store: Store) -> str:
    """How far a sweep is, and what went wrong, in a few lines."""
    trials, missing = store.trials, store.missing
    lines = [
        f"{store.title}: {len(trials) - len(missing)} of {len(trials)} trials done in {store.folder}"
    ]
    for title in dict.fromkeys(trial.title for trial in trials):
        of_it = [trial for trial in trials if trial.title == title]
        left = sum(trial.title == title for trial in missing)
        lines.append(f"  {title}: {len(of_it) - left} of {len(of_it)}")
    results = store.results
    for stream in dict.fromkeys(result.stream for result in results):
        best = min((result for result in results if result.stream == stream), key=_rank)
        lines.append(f"best on {stream}: {describe(best.trial)}, loss {best.mean_loss:.4g} a round")
    for name, problem in store.failures.items():
        lines.append(f"failed: {name}: {problem}")
    return "\n".join(lines)


def _rank(result: Result) -> tuple[int, float]:
    """Most rounds first, then least loss."""
    return -result.rounds[-1], result.mean_loss

"""What each command does."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from driftwolfe.terminal import show

if TYPE_CHECKING:
    from driftwolfe.experiments.store import Store
    from driftwolfe.experiments.workers import Workers


def demo(options: argparse.Namespace) -> int:
    """Print the demo and write its picture."""
    from driftwolfe.demo import show
    from driftwolfe.terminal import Terminal

    show(Terminal.of(), None if options.no_picture else options.out, options.seed)
    return 0


def doctor(options: argparse.Namespace) -> int:
    """Print what is installed, found and working."""
    from driftwolfe.doctor import examine
    from driftwolfe.terminal import Terminal

    return examine(Terminal.of(), options.data)


def reproduce(options: argparse.Namespace) -> int:
    """Run an experiment of the paper and publish what it found."""
    from driftwolfe.experiments.paper import reproduce as paper
    from driftwolfe.experiments.paper.presets import experiment
    from driftwolfe.experiments.store import Store

    chosen = experiment(options.experiment, options.preset, options.seeds)
    store = Store(options.out or Path("results") / f"{chosen.name}-{options.preset}")
    command = f"driftwolfe reproduce {options.experiment} --preset {options.preset}"
    if options.seeds:
        command += f" --seeds {options.seeds}"
    try:
        failed = paper.reproduce(chosen, store, _workers(options), _folder(options), _say)
    except KeyboardInterrupt:
        return _interrupted(store)
    return _finish(store, failed, command)


def sweep(options: argparse.Namespace) -> int:
    """Run the trials of a TOML file and publish what they found."""
    from driftwolfe.experiments.spec import EXAMPLE, read_spec
    from driftwolfe.experiments.store import Store
    from driftwolfe.experiments.sweep import run_sweep

    if options.example:
        print(EXAMPLE, end="")
        return 0
    if options.spec is None:
        raise ValueError("say which sweep to run, or print an example of one with --example")
    spec = read_spec(options.spec)
    store = Store(options.out or Path("results") / Path(options.spec).stem)
    store.add(spec.title, spec.trials())
    try:
        failed = run_sweep(store, _workers(options), _folder(options))
    except KeyboardInterrupt:
        return _interrupted(store)
    return _finish(store, failed, f"driftwolfe sweep {shlex.quote(Path(options.spec).name)}")


def _workers(options: argparse.Namespace) -> Workers:
    if options.scheduler:
        from driftwolfe.experiments.dask_workers import DaskWorkers

        return DaskWorkers(options.scheduler)
    from driftwolfe.experiments.local_workers import LocalWorkers

    return LocalWorkers(options.jobs)


def _folder(options: argparse.Namespace) -> str | None:
    """The folder of the data, by a name that holds for processes elsewhere on this machine too."""
    return None if options.data is None else os.path.abspath(options.data)


def _finish(store: Store, failed: int, command: str) -> int:
    """Draw what is there, print the table, say where things lie and what failed."""
    from driftwolfe.experiments.publish import publish
    from driftwolfe.experiments.sweep import status

    if not store.results:
        show(status(store), sys.stderr)
        return 1
    written = publish(store, command)
    show(written[0].read_text(encoding="utf-8"))
    show("written:")
    for path in written:
        if path.suffix not in (".pdf", ".svg"):
            show(f"  {path}")
    if failed:
        show(status(store), sys.stderr)
    return 1 if failed else 0


def _interrupted(store: Store) -> int:
    done = len(store.trials) - len(store.missing)
    again = shlex.join(["driftwolfe", *sys.argv[1:]])
    _say(f"stopped: {done} of {len(store.trials)} trials are done and kept in {store.folder}")
    _say(f"go on where it was with: {again}")
    return 130


def status(options: argparse.Namespace) -> int:
    """Tell how far a sweep is."""
    from driftwolfe.experiments import sweep
    from driftwolfe.experiments.store import Store

    show(sweep.status(Store(options.folder)))
    return 0


def report(options: argparse.Namespace) -> int:
    """Draw what a sweep has found so far."""
    from driftwolfe.experiments.publish import publish
    from driftwolfe.experiments.store import Store

    for path in publish(Store(options.folder)):
        show(str(path))
    return 0


def claims(options: argparse.Namespace) -> int:
    """Hold the paper's claims against results."""
    from driftwolfe.experiments.paper.claims import claims
    from driftwolfe.experiments.store import Store
    from driftwolfe.experiments.summary import summarise

    for summary in summarise(Store(options.folder).results):
        found = [str(claim) for claim in claims(summary)]
        show(f"{summary.name}:")
        show("\n".join(found or ["no claim of the paper is about these methods"]))
    return 0


def overview(options: argparse.Namespace) -> int:
    """Put several results into one table."""
    from driftwolfe.experiments.overview import overview
    from driftwolfe.terminal import Terminal

    terminal = Terminal.of()
    for line in overview(options.places):
        terminal.say(line)
    return 0


def oracles(options: argparse.Namespace) -> int:
    """Measure the infeasible projections."""
    from tqdm import tqdm

    from driftwolfe.experiments.oracle_table import as_markdown, oracle_table

    quiet = not sys.stderr.isatty()
    rows = list(
        tqdm(oracle_table(options.repeats), unit="row", total=20, disable=quiet, leave=False)
    )
    print(as_markdown(rows))
    return 0


def _say(sentence: str) -> None:
    show(sentence, sys.stderr)

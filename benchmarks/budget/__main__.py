"""The command `python -m benchmarks.budget`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from benchmarks import ROOT
from benchmarks.budget.games import Record, Store, plan
from benchmarks.budget.report import draw, summary
from benchmarks.budget.streams import SETS
from benchmarks.measure import threads
from driftwolfe import doctor
from driftwolfe.storage import write_text

#: Folders for results, by `--short`.
FOLDERS = {True: ROOT / "build" / "budget-short", False: ROOT / "docs" / "results" / "budget"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Play what is missing, then write records, tables and figures."""
    options = _parser().parse_args(arguments)
    folder = options.out or FOLDERS[options.short]
    store = Store(folder)
    if options.again:
        store.forget(options.again)
    try:
        records = _measure(store, options.short)
    except FileNotFoundError as missing:
        print(f"{missing}\nset DRIFTWOLFE_DATA, and run the same command again", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; the same command resumes after the last finished game", file=sys.stderr)
        return 130
    write_text(folder / "summary.md", summary(records))
    draw(records, folder, ["vectors"] if options.short else SETS)
    print(f"{len(records)} records, summary.md and figures are in {folder}")
    return 0


def _measure(store: Store, short: bool) -> list[Record]:
    games = list(plan(short))
    with threads(1):
        for game in tqdm(games, unit="game", disable=None, leave=False):
            store.get(game.key, lambda game=game: game.play(store))
    minima = [key for key in store.records if key.startswith("minima-")]
    return store.close([*(game.key for game in games), *sorted(minima)], doctor.facts())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.budget",
        description="Measure regret against the number of LMO calls: games with and without budgets "
        "on synthetic streams, on MovieLens 100K and against an adversarial oracle. Writes "
        "results.json, summary.md and figures. Can be stopped and resumed.",
        epilog="Takes half an hour. MovieLens 100K is found through DRIFTWOLFE_DATA.",
    )
    parser.add_argument("--short", action="store_true", help="seconds, on synthetic data only")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="folder for results (default: docs/results/budget; with --short build/budget-short)",
    )
    parser.add_argument(
        "--again",
        metavar="TEXT",
        help="replay the games whose names in results.json contain this text, such as flows",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

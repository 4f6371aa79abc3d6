"""The command: `python -m benchmarks.budget`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from benchmarks.budget import figures
from benchmarks.budget.plan import plan
from benchmarks.budget.store import Record, Store
from benchmarks.budget.streams import SETS
from benchmarks.budget.summary import summary
from benchmarks.measure import threads
from driftwolfe.experiments import run_trial
from driftwolfe.storage import write_text

ROOT = Path(__file__).parents[2]
#: Where results go, the short ones and the others.
FOLDERS = {True: ROOT / "build" / "budget-short", False: ROOT / "docs" / "results" / "budget"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Play what has not been played, then write records, tables and figures."""
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
        print("stopped; the same command goes on after the last finished game", file=sys.stderr)
        return 130
    write_text(folder / "summary.md", summary(records))
    figures.draw(records, folder, ["vectors"] if options.short else SETS)
    print(f"{len(records)} records, summary.md and figures are in {folder}")
    return 0


def _measure(store: Store, short: bool) -> list[Record]:
    games = list(plan(short))
    with threads(1):
        for game in tqdm(games, unit="game", disable=None, leave=False):
            store.get(game.key, lambda game=game: game.play(store))
    minima = [key for key in store.records if key.startswith("minima-")]
    return store.close([*(game.key for game in games), *sorted(minima)], run_trial.facts())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.budget",
        description="Regret against linear minimisations: games within budgets and without, on "
        "made-up streams and on MovieLens 100K, and against an oracle that resists. Writes "
        "results.json, summary.md and figures. May be stopped, and goes on where it was.",
        epilog="Half an hour. MovieLens 100K is found through DRIFTWOLFE_DATA.",
    )
    parser.add_argument("--short", action="store_true", help="seconds, on made-up data only")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="where results go (default: docs/results/budget; with --short build/budget-short)",
    )
    parser.add_argument(
        "--again",
        metavar="TEXT",
        help="play those games anew whose names in results.json hold this text, such as flows",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""The command `python -m benchmarks.gpu`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

from benchmarks import ROOT
from benchmarks.gpu.tables import SECTIONS, part
from benchmarks.measure import Skipped
from driftwolfe.points.devices import device_named

#: Folders for results, by `short`.
FOLDERS = {True: ROOT / "build" / "gpu-short", False: ROOT / "docs" / "results" / "gpu"}
#: The module that measures each section, by a function of the section's name.
MODULES = {
    "bandwidth": "floors",
    "libraries": "libraries",
    "stream": "games",
    "learning": "learning",
    "kernels": "floors",
    "projection": "games",
    "movielens": "games",
    "crossover": "crossover",
    "auto": "crossover",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the sections, or draw what was measured."""
    options = _parser().parse_args(arguments)
    short = options.short or options.device == "torch"  # PyTorch on the host is only for tests
    folder = options.out or FOLDERS[short]
    if options.draw:
        return _draw(folder)
    try:
        device_named(options.device)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    for section in options.sections or SECTIONS:
        _measure(section, options.device, short, folder)
    print(f"results.json is in {folder}; --draw makes tables and figures of it")
    return 0


def _measure(section: str, device: str, short: bool, folder: Path) -> None:
    """Measure a section, store its result at once, or each that it yields, and print its tables."""
    from benchmarks.gpu import setting  # needs PyTorch, which drawing does not

    where = setting.Setting(device, short)
    measure = getattr(import_module(f"benchmarks.gpu.{MODULES[section]}"), section)
    try:
        found = measure(where, setting.read_results(folder))
        for result in found if isinstance(found, Iterator) else [found]:
            made = {"made": where.facts(), **result}
            results = setting.add_result(folder, section, made)
    except Skipped as reason:
        print(f"skipped {section}: {reason}\n", flush=True)
        return
    print(part(section, results), flush=True)


def _draw(folder: Path) -> int:
    """Write tables, figures and pages."""
    from benchmarks.gpu import figures  # needs matplotlib, which measuring does not

    path = folder / "results.json"
    if not path.exists():
        print(f"there is no results.json in {folder}; measure first", file=sys.stderr)
        return 2
    results = json.loads(path.read_text())
    figures.draw(results, folder)
    figures.write_pages(results, folder)
    print(f"summary.md and figures are in {folder}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu",
        description="Measure on a GPU: the large stream, time against the floor of memory bandwidth, "
        "a projection against two cores, and PyTorch against CuPy. Every section is written to "
        "results.json as it ends; other sections there stay.",
        epilog="Takes some minutes on an H200. MovieLens 100K is found through DRIFTWOLFE_DATA.",
    )
    parser.add_argument(
        "--sections",
        nargs="+",
        choices=SECTIONS,
        metavar="SECTION",
        help=f"what to measure (default: all): {', '.join(SECTIONS)}",
    )
    parser.add_argument(
        "--device",
        choices=("cuda", "torch"),
        default="cuda",
        help="a GPU, or PyTorch on the host, which is always short (default: cuda)",
    )
    parser.add_argument("--short", action="store_true", help="tiny sizes, to check that it works")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="folder for results (default: docs/results/gpu; short ones build/gpu-short)",
    )
    parser.add_argument(
        "--draw",
        action="store_true",
        help="measure nothing: make summary.md and figures from results.json",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

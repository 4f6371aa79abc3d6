"""The command: `python -m benchmarks.gpu`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks import ROOT
from benchmarks.gpu import store
from benchmarks.gpu.summary import SECTIONS, part
from benchmarks.skipped import Skipped
from driftwolfe.points.devices import device_named

#: Where results go, the short ones and the others.
FOLDERS = {True: ROOT / "build" / "gpu-short", False: ROOT / "docs" / "results" / "gpu"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the sections that were asked for, or draw what has been measured."""
    options = _parser().parse_args(arguments)
    short = options.short or options.device == "torch"  # PyTorch on the host is there for tests
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
    """Measure a section, write its result down at once, and print its tables."""
    from benchmarks.gpu.setting import Setting  # PyTorch is needed here, not for drawing

    setting = Setting(device, short)
    measure = import_module(f"benchmarks.gpu.{section}").measure
    try:
        result = measure(setting, store.read(folder))
    except Skipped as reason:
        print(f"skipped {section}: {reason}\n", flush=True)
        return
    results = store.add(folder, section, {"made": setting.facts(), **result})
    print(part(section, results), flush=True)


def _draw(folder: Path) -> int:
    """Write tables, figures and the page that shows them."""
    from benchmarks.gpu import figures, pages  # matplotlib is needed here, not for measuring

    results = store.read(folder)
    if not results:
        print(f"there is no results.json in {folder}; measure first", file=sys.stderr)
        return 2
    figures.draw(results, folder)
    pages.write(results, folder)
    print(f"summary.md and figures are in {folder}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu",
        description="What a GPU brings: the large stream, time against the least that memory "
        "allows, a projection against two cores, and PyTorch against CuPy. Every section is "
        "written to results.json as it ends; sections that are there and not asked for stay.",
        epilog="Some minutes on an H200. MovieLens 100K is found through DRIFTWOLFE_DATA.",
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
    parser.add_argument("--short", action="store_true", help="tiny sizes, to see that it works")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="where results go (default: docs/results/gpu; short ones build/gpu-short)",
    )
    parser.add_argument(
        "--draw",
        action="store_true",
        help="measure nothing: make summary.md and figures of results.json",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

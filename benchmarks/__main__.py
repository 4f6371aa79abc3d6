"""The command `python -m benchmarks`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import long
from benchmarks.measure import Skipped
from benchmarks.output import write_json
from benchmarks.ratio import Ratio, as_notes, as_table, plot
from benchmarks.rows import ROWS
from driftwolfe import doctor

RESULTS = Path(__file__).parent / "results"
#: Share of a limit on time that the short variant asks for: it runs beside other work.
LEEWAY = 0.75


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write; return 1 where a limit is missed."""
    options = _parser().parse_args(arguments)
    if options.list:
        print("\n".join(f"{name:20}{measure.__doc__}" for name, measure in ROWS.items()))
        return 0
    if options.long:
        return _long(options.long)
    started = doctor.facts((*doctor.PACKAGES, "river"))
    ratios, skipped, seconds = _measure(options.rows, options.short)
    print(as_table(ratios), as_notes(ratios), sep="\n\n")
    for name, reason in skipped.items():
        print(f"skipped {name}: {reason}")
    content = {
        "machine": started,
        "variant": "short" if options.short else "full",
        "seconds": seconds,
        "skipped": skipped,
        "ratios": [ratio.as_record() for ratio in ratios],
    }
    write_json(options.out / "results.json", content)
    plot(ratios, started, options.out)
    missed = [ratio for ratio in ratios if ratio.holds is False]
    for ratio in missed:
        print(ratio.complaint, file=sys.stderr)
    return 1 if missed else 0


def _measure(names: Sequence[str], short: bool):
    """Measure the rows one after the other; skip those that lack something, with the reason."""
    ratios: list[Ratio] = []
    skipped: dict[str, str] = {}
    seconds: dict[str, float] = {}
    for name in names:
        print(f"{name} ...", end=" ", file=sys.stderr, flush=True)
        started = time.perf_counter()
        try:
            measured = ROWS[name](short)
            ratios += [ratio.relaxed(LEEWAY) for ratio in measured] if short else measured
        except Skipped as reason:
            skipped[name] = str(reason)
        seconds[name] = round(time.perf_counter() - started, 1)
        print(f"{seconds[name]:.0f} s", file=sys.stderr)
    return ratios, skipped, seconds


def _long(name: str) -> int:
    try:
        long.run(name)
    except Skipped as reason:
        print(f"{name}: {reason}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "stopped; the same command resumes at the last multiple of 50 rounds", file=sys.stderr
        )
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure speed against peers: ratios within one run, contestants in turns, "
        "medians. Prints a table, writes results.json and results.png, and exits with "
        "status 1 if a ratio misses its limit. Close other programs first.",
        epilog="Real data is found through DRIFTWOLFE_DATA; rows that need it are skipped without. "
        "What each row measures, and its limits: benchmarks/README.md.",
    )
    parser.add_argument("--short", action="store_true", help="minutes instead of half an hour")
    parser.add_argument(
        "--rows",
        nargs="+",
        choices=ROWS,
        default=list(ROWS),
        metavar="NAME",
        help=f"only these rows: {', '.join(ROWS)}",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=RESULTS,
        metavar="FOLDER",
        help="folder for results (default: benchmarks/results)",
    )
    parser.add_argument("--list", action="store_true", help="list the rows and exit")
    parser.add_argument(
        "--long",
        choices=long.contestants(),
        metavar="CONTESTANT",
        help="instead play whole games of an hour and more and store their losses in "
        "benchmarks/results/long.json, which the rows read; can be stopped and resumed: "
        f"{', '.join(long.contestants())}",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

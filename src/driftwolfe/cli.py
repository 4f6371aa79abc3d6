"""The command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except (ValueError, OSError) as problem:
        print(f"driftwolfe: {problem}", file=sys.stderr)
        return 2
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="driftwolfe",
        description="Projection-free online learning in changing environments.",
        epilog="Start with `driftwolfe oracles`: how many linear minimisations each way of "
        "projecting infeasibly needs, on five sets.",
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    oracles = commands.add_parser(
        "oracles",
        help="measure the infeasible projections",
        description="Measure every method of infeasible projection on five sets: linear "
        "minimisations, milliseconds on one thread, and how far the answer is from the true "
        "projection P(y). Takes seconds.",
    )
    oracles.add_argument(
        "--repeats", type=_positive, default=3, metavar="N", help="runs per row (default: 3)"
    )
    oracles.set_defaults(run=_oracles)
    return parser


def _oracles(options: argparse.Namespace) -> int:
    from tqdm import tqdm

    from driftwolfe.experiments.oracle_table import as_markdown, oracle_table

    quiet = not sys.stderr.isatty()
    rows = list(
        tqdm(oracle_table(options.repeats), unit="row", total=20, disable=quiet, leave=False)
    )
    print(as_markdown(rows))
    return 0


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number >= 1, got {text!r}")
    return number


if __name__ == "__main__":
    sys.exit(main())

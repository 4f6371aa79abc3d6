"""The command line."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from driftwolfe.terminal import show

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from driftwolfe.experiments.store import Store
from typing import TYPE_CHECKING, NoReturn

from driftwolfe import __version__
from driftwolfe.terminal import printable

if TYPE_CHECKING:
    Subcommands = argparse._SubParsersAction[argparse.ArgumentParser]
from collections.abc import Sequence


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
    from driftwolfe.experiments import paper as paper
    from driftwolfe.experiments.paper import experiment
    from driftwolfe.experiments.store import Store

    chosen = experiment(options.experiment, options.preset, options.seeds)
    store = Store(options.out or Path("results") / f"{chosen.name}-{options.preset}")
    command = f"driftwolfe reproduce {options.experiment} --preset {options.preset}"
    if options.seeds:
        command += f" --seeds {options.seeds}"
    try:
        failed = paper.reproduce(chosen, store, _executor(options), _folder(options), _say)
    except KeyboardInterrupt:
        return _interrupted(store)
    return _finish(store, failed, command)


def sweep(options: argparse.Namespace) -> int:
    """Run the trials of a TOML file and publish what they found."""
    from driftwolfe.experiments.store import Store
    from driftwolfe.experiments.sweep import EXAMPLE, read_spec, run_sweep

    if options.example:
        print(EXAMPLE, end="")
        return 0
    if options.spec is None:
        raise ValueError("say which sweep to run, or print an example of one with --example")
    spec = read_spec(options.spec)
    store = Store(options.out or Path("results") / Path(options.spec).stem)
    store.add(spec.title, spec.trials())
    try:
        failed = run_sweep(store, _executor(options), _folder(options))
    except KeyboardInterrupt:
        return _interrupted(store)
    return _finish(store, failed, f"driftwolfe sweep {shlex.quote(Path(options.spec).name)}")


def _executor(options: argparse.Namespace) -> Callable[[], Executor]:
    """What makes the executor that trials run on."""
    from driftwolfe.experiments.executors import DaskExecutor, ProcessExecutor

    if options.scheduler:
        return lambda: DaskExecutor(options.scheduler)
    return lambda: ProcessExecutor(options.jobs)


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
    from driftwolfe.experiments.paper import claims
    from driftwolfe.experiments.store import Store
    from driftwolfe.experiments.summary import summarise

    for summary in summarise(Store(options.folder).results):
        found = [str(claim) for claim in claims(summary)]
        show(f"{summary.name}:")
        show("\n".join(found or ["no claim of the paper is about these methods"]))
    return 0


def overview(options: argparse.Namespace) -> int:
    """Put several results into one table."""
    from driftwolfe.experiments.publish import overview
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


_EPILOG = """\
start here:
  driftwolfe demo                            a drifting target, in seconds
  driftwolfe doctor                          what is installed, found and working
  driftwolfe reproduce classification        the paper's second experiment, in a minute
  driftwolfe reproduce matrix-completion     its first, in minutes
  driftwolfe sweep --example > sweep.toml    a sweep of your own: edit, then
  driftwolfe sweep sweep.toml                run it; stopped or killed, it goes on where it was
  driftwolfe oracles                         what infeasible projections cost

`driftwolfe COMMAND --help` tells more about each.
"""
_DEMO = """\
A target hides in one of eight places and jumps; each round tells a little about where it is. OGD,
with the step that its theory gives for so many rounds, loses it at every jump. POLA, which runs
learners on all time scales and needs no step, follows. Prints where each looks, what it lost and
what it asked of the set, and writes a picture. Takes seconds and needs no data.

Nothing is arranged against OGD but its step: a far larger one, known only afterwards, serves it
better, as is printed too; and Ader, which projects for many steps at once, also follows drift.
"""
_DOCTOR = """\
Print what a question or a bug report needs: versions, threads, compiled code, the data of the
paper's experiments, folders to write to, the extras and what is missing for them; play a short game
and hold it to its theorem. The last line says that all is well, or what to do first. Nothing is
downloaded. The exit status is 1 only where something that the core needs is broken.
"""
_REPRODUCE = """\
Run an experiment of the paper: choose c for every method, play every order of the data, and write
tables, figures (PNG, PDF, SVG) and an interactive report.

presets:
  quick   minutes on two cores: a short stream, two orders of the data (default)
  short   matrix completion only: 300 rounds, where Ader can play all; half an hour and more
  paper   the full setting; matrix completion takes about two hours

The real data are looked for in --data, else in $DRIFTWOLFE_DATA, else in the cache, else they are
downloaded and checked by SHA-256; where that is not possible (or $DRIFTWOLFE_OFFLINE is set), a
synthetic twin of the same shape takes their place, and every figure says so.
"""
_SWEEP = """\
Run every combination of methods, values and seeds that a TOML file describes. Each finished trial
is one file in the folder --out, so that a sweep that is stopped goes on where it was: run the same
command again. `driftwolfe status DIR` tells how far it is, `driftwolfe report DIR` draws what is
there.
"""
_ON_CLUSTER = """\
on a cluster:
  dask scheduler                                           on one machine
  dask worker tcp://HOST:8786 --nworkers auto --nthreads 1 on as many as you like
  driftwolfe sweep sweep.toml --scheduler tcp://HOST:8786
"""


class _Parser(argparse.ArgumentParser):
    """Repeats what it does not understand, but for what a terminal would obey."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and end."""
        super().error(printable(message))


def make_parser() -> argparse.ArgumentParser:
    """What the command line understands."""
    parser: argparse.ArgumentParser = _Parser(
        prog="driftwolfe",
        description="Projection-free online learning in changing environments: constraints by "
        "linear minimisation, regret that follows drift.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"driftwolfe {__version__}")
    subcommands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_demo(subcommands)
    _add_doctor(subcommands)
    _add_reproduce(subcommands)
    _add_sweep(subcommands)
    _add_readers(subcommands)
    _add_oracles(subcommands)
    return parser


def _add_demo(subcommands: Subcommands) -> None:
    command = subcommands.add_parser(
        "demo",
        help="see a drifting target lost and followed",
        description=_DEMO,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    picture = Path("results", "demo.png")
    command.add_argument(
        "--out", metavar="FILE", type=Path, default=picture, help=f"a PNG (default: {picture})"
    )
    command.add_argument(
        "--seed", type=_natural, default=0, metavar="N", help="another way and noise (default: 0)"
    )
    command.add_argument("--no-picture", action="store_true", help="only print")
    command.set_defaults(run=demo)


def _add_doctor(subcommands: Subcommands) -> None:
    command = subcommands.add_parser(
        "doctor",
        help="tell what is installed, found and working",
        description=_DOCTOR,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("--data", metavar="DIR", help="folder with the real data")
    command.set_defaults(run=doctor)


def _add_reproduce(subcommands: Subcommands) -> None:
    command = subcommands.add_parser(
        "reproduce",
        help="run an experiment of the paper",
        description=_REPRODUCE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("experiment", choices=("matrix-completion", "classification"))
    command.add_argument(
        "--preset", choices=("quick", "short", "paper"), default="quick", help="default: quick"
    )
    command.add_argument(
        "--seeds", type=_positive, metavar="N", help="orders of the data (default: the preset's)"
    )
    _add_running(command, "results/EXPERIMENT-PRESET")
    command.set_defaults(run=reproduce)


def _add_sweep(subcommands: Subcommands) -> None:
    command = subcommands.add_parser(
        "sweep",
        help="run trials of your own, resumable",
        description=_SWEEP,
        epilog=_ON_CLUSTER,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("spec", nargs="?", metavar="SPEC", help="a TOML file")
    command.add_argument("--example", action="store_true", help="print an example of one and end")
    _add_running(command, "results/NAME-OF-SPEC")
    command.set_defaults(run=sweep)


def _add_running(command: argparse.ArgumentParser, out: str) -> None:
    """What all commands that run trials can be told."""
    command.add_argument("--data", metavar="DIR", help="folder with the real data")
    command.add_argument(
        "--out", metavar="DIR", type=Path, help=f"folder for results (default: {out})"
    )
    command.add_argument(
        "--jobs", type=_positive, metavar="N", help="processes (default: as many as cores)"
    )
    command.add_argument(
        "--scheduler", metavar="ADDRESS", help="run on the Dask cluster of tcp://HOST:PORT"
    )


def _add_readers(subcommands: Subcommands) -> None:
    for name, run, told, more in (
        (
            "status",
            status,
            "tell how far a sweep is",
            "Trials done, best so far, failures.",
        ),
        (
            "report",
            report,
            "draw what a sweep has found so far",
            "Write summary.md, trials.csv, figures/ and report.html into the folder of a sweep.",
        ),
        (
            "claims",
            claims,
            "hold the paper's claims against results",
            "Print each claim of the paper that the results in a folder can tell about, what was "
            "measured, and whether it held.",
        ),
    ):
        command = subcommands.add_parser(name, help=told, description=more)
        command.add_argument("folder", metavar="DIR", help="folder of a sweep or of an experiment")
        command.set_defaults(run=run)
    command = subcommands.add_parser(
        "overview",
        help="put several results into one table",
        description="Print the methods of several sweeps or experiments in one table, and which "
        "reports and pictures to open.",
    )
    command.add_argument(
        "places", metavar="PATH", type=Path, nargs="+", help="folder of a sweep, or a picture"
    )
    command.set_defaults(run=overview)


def _add_oracles(subcommands: Subcommands) -> None:
    command = subcommands.add_parser(
        "oracles",
        help="measure the infeasible projections",
        description="Measure every method of infeasible projection on five sets: linear "
        "minimisations, milliseconds on one thread, and how far the answer is from the true "
        "projection P(y). Takes seconds.",
    )
    command.add_argument(
        "--repeats", type=_positive, default=3, metavar="N", help="runs per row (default: 3)"
    )
    command.set_defaults(run=oracles)


def _natural(text: str) -> int:
    return _positive(text, least=0)


def _positive(text: str, least: int = 1) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"must be a whole number >= {least}, got {text!r}")
    return number


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status."""
    options = make_parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except ImportError as problem:
        print(
            f"driftwolfe: {problem.name or problem} is missing; "
            "pip install 'driftwolfe[experiments]' brings what experiments need",
            file=sys.stderr,
        )
        return 2
    except (ValueError, FileNotFoundError) as problem:
        show(f"driftwolfe: {problem}", sys.stderr)
        return 2
    except MemoryError:
        show("driftwolfe: there is not enough memory for that; ask for less", sys.stderr)
        return 1
    except BrokenPipeError:  # a reader such as `head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as problem:  # such as a full disk: what was asked for was right
        show(f"driftwolfe: {problem}", sys.stderr)
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())

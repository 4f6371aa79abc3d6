"""The command line: `driftwolfe COMMAND`."""

from __future__ import annotations

import argparse
import inspect
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from driftwolfe import __version__
from driftwolfe.terminal import Terminal, printable, show

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from driftwolfe.experiments.store import Store

Command = Callable[[argparse.Namespace], int]

_EPILOG = """\
start here:
  driftwolfe demo                            a drifting target, in seconds
  driftwolfe doctor                          what is installed, found and working
  driftwolfe reproduce classification        the paper's second experiment, in a minute
  driftwolfe reproduce matrix-completion     its first, in minutes
  driftwolfe sweep --example > sweep.toml    a sweep of your own: edit this file, then
  driftwolfe sweep sweep.toml                run it; run it again to resume
  driftwolfe oracles                         what infeasible projections cost

`driftwolfe COMMAND --help` explains each command.
"""
_ON_CLUSTER = """\
on a cluster:
  dask scheduler                                           on one machine
  dask worker tcp://HOST:8786 --nworkers auto --nthreads 1 on as many as you like
  driftwolfe sweep sweep.toml --scheduler tcp://HOST:8786
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status."""
    options = make_parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    except ImportError as problem:
        show(
            f"driftwolfe: {problem.name or problem} is missing; "
            "pip install 'driftwolfe[experiments]' brings what experiments need",
            sys.stderr,
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


class _Parser(argparse.ArgumentParser):
    """A parser whose errors repeat no control characters to the terminal."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands and their options."""
    parser: argparse.ArgumentParser = _Parser(
        prog="driftwolfe",
        description="Projection-free online learning in changing environments: constraints by "
        "linear minimisation, regret that follows drift.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"driftwolfe {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(name: str, run: Command, epilog: str = "") -> argparse.ArgumentParser:
        """Add a command; its docstring is its help."""
        summary, _, description = (inspect.getdoc(run) or "").partition("\n\n")
        command: argparse.ArgumentParser = commands.add_parser(
            name,
            help=summary[:1].lower() + summary[1:].rstrip("."),
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.set_defaults(run=run)
        return command

    picture = Path("results", "demo.png")
    demo = add("demo", run_demo)
    demo.add_argument(
        "--out", metavar="FILE", type=Path, default=picture, help=f"a PNG (default: {picture})"
    )
    demo.add_argument(
        "--seed", type=_natural, default=0, metavar="N", help="of jumps and noise (default: 0)"
    )
    demo.add_argument("--no-picture", action="store_true", help="only print")

    doctor = add("doctor", run_doctor)
    doctor.add_argument("--data", metavar="DIR", help="folder with the real data")

    reproduce = add("reproduce", run_reproduce)
    reproduce.add_argument("experiment", choices=("matrix-completion", "classification"))
    reproduce.add_argument(
        "--preset", choices=("quick", "short", "paper"), default="quick", help="default: quick"
    )
    reproduce.add_argument(
        "--seeds", type=_positive, metavar="N", help="orders of the data (default: the preset's)"
    )
    _add_running(reproduce, "results/EXPERIMENT-PRESET")

    sweep = add("sweep", run_sweep, _ON_CLUSTER)
    sweep.add_argument("spec", nargs="?", metavar="SPEC", help="a TOML file")
    sweep.add_argument("--example", action="store_true", help="print an example of one and end")
    _add_running(sweep, "results/NAME-OF-SPEC")

    for name, run in (("status", run_status), ("report", run_report), ("claims", run_claims)):
        reader = add(name, run)
        reader.add_argument("folder", metavar="DIR", help="folder of a sweep or of an experiment")

    overview = add("overview", run_overview)
    overview.add_argument(
        "places", metavar="PATH", type=Path, nargs="+", help="folder of a sweep, or a picture"
    )

    oracles = add("oracles", run_oracles)
    oracles.add_argument(
        "--repeats", type=_positive, default=3, metavar="N", help="runs per row (default: 3)"
    )
    return parser


def _add_running(command: argparse.ArgumentParser, out: str) -> None:
    """Options of the commands that run trials."""
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


def _positive(text: str, least: int = 1) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"must be a whole number >= {least}, got {text!r}")
    return number


def _natural(text: str) -> int:
    return _positive(text, least=0)


def run_demo(options: argparse.Namespace) -> int:
    """See a drifting target lost and followed.

    A target hides in one of eight places and jumps; each round gives a noisy hint of where it is. OGD,
    with the step size that its theory gives for so many rounds, loses it at every jump. POLA, which runs
    learners on all time scales and needs no step size, follows. Prints where each puts its weight, what
    it lost and how many oracle calls it made, and writes a picture. Takes seconds and needs no data.

    OGD is handicapped only by its step size: a far larger one, known only in hindsight, serves it
    better, and is printed too. Ader, which projects for many step sizes at once, also follows drift.
    """
    from driftwolfe.demo import show

    show(Terminal.of(), None if options.no_picture else options.out, options.seed)
    return 0


def run_doctor(options: argparse.Namespace) -> int:
    """Check what is installed, found and working.

    Print what a question or a bug report needs: versions, threads, compiled code, the data of the
    paper's experiments, folders to write to, the extras and what is missing for them; play a short game
    and compare its regret with the theorem. The last line says that all is well, or what to do first.
    Nothing is downloaded. The exit status is 1 only where something that the core needs is broken.
    """
    from driftwolfe.doctor import examine

    return examine(Terminal.of(), options.data)


def run_reproduce(options: argparse.Namespace) -> int:
    """Run an experiment of the paper.

    Run an experiment of the paper: tune c for every method, play every order of the data, and write
    tables, figures (PNG, PDF, SVG) and an interactive report.

    presets:
      quick   minutes on two cores: a short stream, two orders of the data (default)
      short   matrix completion only: 300 rounds, where Ader can play all; half an hour and more
      paper   the full setting; matrix completion takes about two hours

    The real data are read from --data, else from $DRIFTWOLFE_DATA, else from the cache, else they are
    downloaded and checked by SHA-256. If that fails, or $DRIFTWOLFE_OFFLINE forbids it, a synthetic twin
    of the same shape takes their place, and every figure says so.
    """
    from driftwolfe.experiments.paper import experiment, reproduce
    from driftwolfe.experiments.store import Store

    chosen = experiment(options.experiment, options.preset, options.seeds)
    store = Store(options.out or Path("results") / f"{chosen.name}-{options.preset}")
    command = f"driftwolfe reproduce {options.experiment} --preset {options.preset}"
    if options.seeds:
        command += f" --seeds {options.seeds}"
    executor, data = _executor(options), _data_folder(options)
    return _finish(store, command, lambda: reproduce(chosen, store, executor, data, _note))


def run_sweep(options: argparse.Namespace) -> int:
    """Run trials of your own, resumable.

    Run every combination of methods, values and seeds that a TOML file describes. Each finished trial is
    one file in the folder --out. A sweep that was stopped resumes when the same command is run again.
    `driftwolfe status DIR` shows its progress, `driftwolfe report DIR` draws the results so far.
    """
    from driftwolfe.experiments import sweep
    from driftwolfe.experiments.store import Store

    if options.example:
        print(sweep.EXAMPLE, end="")
        return 0
    if options.spec is None:
        raise ValueError("say which sweep to run, or print an example of one with --example")
    spec = sweep.read_spec(options.spec)
    store = Store(options.out or Path("results") / Path(options.spec).stem)
    store.add(spec.title, spec.trials())
    command = f"driftwolfe sweep {shlex.quote(Path(options.spec).name)}"
    executor, data = _executor(options), _data_folder(options)
    return _finish(store, command, lambda: sweep.run_sweep(store, executor, data))


def _executor(options: argparse.Namespace) -> Callable[[], Executor]:
    """Return a function that makes the executor of the trials."""
    from driftwolfe.experiments.executors import DaskExecutor, ProcessExecutor

    if options.scheduler:
        return lambda: DaskExecutor(options.scheduler)
    return lambda: ProcessExecutor(options.jobs)


def _data_folder(options: argparse.Namespace) -> str | None:
    """The folder of the data, absolute: workers may run elsewhere on this machine."""
    return None if options.data is None else os.path.abspath(options.data)


def _finish(store: Store, command: str, run: Callable[[], int]) -> int:
    """Run trials, draw their results, print the table, and say what was written and what failed."""
    try:
        failed = run()
    except KeyboardInterrupt:
        done = len(store.trials) - len(store.missing)
        _note(f"stopped: {done} of {len(store.trials)} trials are done and kept in {store.folder}")
        _note(f"resume with: {shlex.join(['driftwolfe', *sys.argv[1:]])}")
        return 130
    from driftwolfe.experiments.publish import publish
    from driftwolfe.experiments.sweep import status

    if store.results:
        written = publish(store, command)
        show(written[0].read_text(encoding="utf-8"))
        show("written:")
        for path in written:
            if path.suffix not in (".pdf", ".svg"):
                show(f"  {path}")
    if failed or not store.results:
        _note(status(store))
        return 1
    return 0


def _note(sentence: str) -> None:
    show(sentence, sys.stderr)


def run_status(options: argparse.Namespace) -> int:
    """Show the progress of a sweep.

    Prints trials done, the best so far, and failures.
    """
    from driftwolfe.experiments.store import Store
    from driftwolfe.experiments.sweep import status

    show(status(Store(options.folder)))
    return 0


def run_report(options: argparse.Namespace) -> int:
    """Draw the results of a sweep so far.

    Writes summary.md, trials.csv, figures/ and report.html into the folder of the sweep.
    """
    from driftwolfe.experiments.publish import publish
    from driftwolfe.experiments.store import Store

    for path in publish(Store(options.folder)):
        show(str(path))
    return 0


def run_claims(options: argparse.Namespace) -> int:
    """Compare results with the claims of the paper.

    Prints each claim of the paper that the results in a folder can decide, what was measured, and
    whether it held.
    """
    from driftwolfe.experiments.paper import claims
    from driftwolfe.experiments.store import Store
    from driftwolfe.experiments.summary import summarise

    for summary in summarise(Store(options.folder).results):
        found = [str(claim) for claim in claims(summary)]
        show(f"{summary.name}:")
        show("\n".join(found or ["no claim of the paper is about these methods"]))
    return 0


def run_overview(options: argparse.Namespace) -> int:
    """Put several results into one table.

    Prints the methods of several sweeps or experiments, and which reports and pictures to open.
    """
    from driftwolfe.experiments.publish import overview

    terminal = Terminal.of()
    for line in overview(options.places):
        terminal.say(line)
    return 0


def run_oracles(options: argparse.Namespace) -> int:
    """Measure the infeasible projections.

    Runs every method of infeasible projection on five sets and prints its linear minimisations,
    its milliseconds on one thread, and how far the answer is from the true projection P(y). Takes
    seconds.
    """
    from tqdm import tqdm

    from driftwolfe.experiments.oracle_table import as_markdown, oracle_table

    hidden = not sys.stderr.isatty()
    rows = tqdm(oracle_table(options.repeats), unit="row", total=20, disable=hidden, leave=False)
    print(as_markdown(list(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

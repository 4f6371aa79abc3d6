"""The command line: `driftwolfe COMMAND`."""

from __future__ import annotations

import argparse
import inspect
import os
import shlex
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from driftwolfe import __version__
from driftwolfe.terminal import Output, Terminal, printable, show

if TYPE_CHECKING:
    from driftwolfe.experiments.sweep import Store

#: Runs a command; returns its exit status, None for 0.
Command = Callable[[argparse.Namespace], int | None]

#: Exit statuses, one for each kind of failure.
STATUSES = {
    0: "all went well",
    1: "a trial failed, or a check of the doctor",
    2: "the command, or a file that it reads, is wrong",
    3: "a file, a folder or data are missing",
    4: "a package is missing",
    5: "not enough memory or disk, no permission, no connection",
    130: "stopped by Ctrl-C; what is done is kept",
}
_FAILED, _WRONG, _MISSING, _NO_PACKAGE, _NO_RESOURCE, _STOPPED = list(STATUSES)[1:]
_EXPERIMENTS = "is missing; pip install 'driftwolfe[experiments]' brings what experiments need"

_EPILOG = """\
start here:
  driftwolfe demo                            a drifting target, in seconds
  driftwolfe doctor                          what is installed, found and working
  driftwolfe warmup                          compile now what the first use would compile
  driftwolfe reproduce classification        the paper's second experiment, in a minute
  driftwolfe reproduce matrix-completion     its first, in minutes
  driftwolfe sweep --example > sweep.toml    a sweep of your own: edit this file, then
  driftwolfe sweep sweep.toml                run it; run it again to resume

`driftwolfe COMMAND --help` explains each command.

exit status:
""" + "".join(f"  {status:<5}{meaning}\n" for status, meaning in STATUSES.items())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status."""
    for name in ("stdout", "stderr"):  # None where the caller has closed it
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 until the process ends
    options = make_parser().parse_args(arguments)
    try:
        with Output.of_command():
            return options.run(options) or 0
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return _STOPPED
    except BrokenPipeError:  # a reader such as `head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except ImportError as problem:
        message, status = f"{problem.name or problem} {_EXPERIMENTS}", _NO_PACKAGE
    except MemoryError:
        message, status = "there is not enough memory for that; ask for less", _NO_RESOURCE
    except (OSError, ValueError) as problem:
        message, status = str(problem), _WRONG
        if isinstance(problem, OSError):  # such as a full disk: what was asked for was right
            status = _MISSING if isinstance(problem, FileNotFoundError) else _NO_RESOURCE
    show(f"driftwolfe: {message}", sys.stderr)
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
    for function, run in globals().items():
        if not function.startswith("run_"):
            continue
        name = function.removeprefix("run_")
        summary, _, description = (inspect.getdoc(run) or "").partition("\n\n")
        command = commands.add_parser(
            name,
            help=summary[:1].lower() + summary[1:].rstrip("."),
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.set_defaults(run=run)
        for option, settings in _OPTIONS[function]:
            command.add_argument(option, **settings)
    return parser


#: The options of each command, ``run_NAME``, in the order of the help.
_OPTIONS: dict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)


def _option(name: str, **settings: Any) -> Callable[[Command], Command]:
    """Give a command an option; several are listed in the order of their decorators."""

    def add(run: Command) -> Command:
        _OPTIONS[run.__name__].insert(0, (name, settings))
        return run

    return add


def _natural(text: str, least: int = 0) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"must be a whole number >= {least}, got {text!r}")
    return int(text)


_positive = partial(_natural, least=1)
_DATA = _option("--data", metavar="DIR", help="folder with the real data")
_JOBS = _option("--jobs", type=_positive, metavar="N", help="processes (default: as many as cores)")
_SCHEDULER = _option("--scheduler", metavar="ADDRESS", help="Dask cluster, as tcp://HOST:PORT")
_FOLDER = _option("folder", metavar="DIR", help="folder of a sweep or of an experiment")
_RESULTS = "folder for results (default: results/%s)"
_PICTURE = Path("results", "demo.png")
_PRESETS = ("quick", "paper", "one-projection", "small-radius")
_PACK = "then move the files of all trials into one small file"


@_option("--out", metavar="FILE", type=Path, default=_PICTURE, help=f"a PNG (default: {_PICTURE})")
@_option("--seed", type=_natural, default=0, metavar="N", help="of jumps and noise (default: 0)")
@_option("--no-picture", action="store_true", help="only print")
def run_demo(options: argparse.Namespace) -> None:
    """See a drifting target lost and followed.

    A target hides in one of eight places and jumps; each round gives a noisy hint of where it is. POLAR,
    which runs learners on all time scales and needs no step size, follows. OGD, with the step size that
    its theory gives for so many rounds, loses it at every jump. Prints where each puts its weight, what
    it lost and how many oracle calls it made, and writes a picture. Takes seconds and needs no data.

    OGD is handicapped only by its step size: a far larger one, known only in hindsight, serves it
    better, and is printed too. Ader, which projects for many step sizes at once, also follows drift.
    """
    from driftwolfe.demo import show

    show(Terminal.of(), None if options.no_picture else options.out, options.seed)


def run_doctor(options: argparse.Namespace) -> int:
    """Check what is installed, found and working.

    Print what a question or a bug report needs: versions, threads, compiled code, the data of the
    paper's experiments, the extras and what is missing for them; play a short game and compare its regret
    with the theorem. The last line says that all is well, or what to do first. Nothing is downloaded.
    The exit status is 1 only where something that the core needs is broken.
    """
    from driftwolfe.doctor import examine

    return examine(Terminal.of())


@_option("names", nargs="*", metavar="NAME", help="learners, or an estimator (default: all)")
def run_warmup(options: argparse.Namespace) -> None:
    """Compile ahead of the first use.

    Compile the loops of learners and estimators into the cache: for images, CI, and machines that start many
    processes. NAME is one of: learners, TraceNormClassifier, TraceNormRegressor, MatrixCompleter, Recommender
    (river's classes use the loops of these). Takes up to half a minute; what is in the cache is not compiled
    again. Code is for this kind of processor, this version of Python, and this copy of the package.
    """
    from driftwolfe.doctor import warm_up

    print(f"{warm_up(options.names)} compiled loops are ready")


@_option("experiment", choices=("matrix-completion", "classification"))
@_option("--preset", choices=_PRESETS, default="quick", help="default: quick")
@_option("--seeds", type=_positive, metavar="N", help="orders of the data (default: the preset's)")
@_option("--only", nargs="+", metavar="METHOD", default=(), help="methods by their labels")
@_option("--device", default="cpu", help="where matrices live: cpu (default) or cuda")
@_DATA
@_option("--out", metavar="DIR", type=Path, help=_RESULTS % "EXPERIMENT-PRESET")
@_JOBS
@_SCHEDULER
def run_reproduce(options: argparse.Namespace) -> int:
    """Run an experiment of the paper.

    Tune c for every method, play every order of the data, and write tables, figures (PNG, PDF, SVG)
    and an interactive report.

    presets of matrix-completion, and how long they take on two cores:
      quick            two to four minutes: 600 rounds, two orders of the data (default)
      paper            a day: the full setting
      one-projection   hours: POLD against learners that project once per round

    presets of classification:
      quick            a minute or two: 435 rounds, two orders of the data (default)
      paper            50 minutes: the full setting
      small-radius     35 minutes: the full setting in a ball that is small enough to project onto

    Before it starts it says how many trials there are and how long they take.

    The real data are read from --data, else from $DRIFTWOLFE_DATA, else from the cache, else they are
    downloaded and checked by SHA-256. If that fails, or $DRIFTWOLFE_OFFLINE forbids it, a synthetic twin
    of the same shape takes their place, and every figure says so.
    """
    from driftwolfe.experiments import paper, sweep

    chosen = paper.experiment(options.experiment, options.preset, options.seeds, options.only)
    store = sweep.Store(options.out or Path("results") / f"{options.experiment}-{options.preset}")
    command = f"driftwolfe reproduce {options.experiment} --preset {options.preset}"
    if options.seeds:
        command += f" --seeds {options.seeds}"
    say = Terminal.of(sys.stderr).tell
    run = partial(paper.reproduce, chosen, say=say, device=options.device)
    return _run_trials(options, store, command, run)


@_option("spec", nargs="?", metavar="SPEC", help="a TOML file")
@_option("--example", action="store_true", help="print an example of one and end")
@_DATA
@_option("--out", metavar="DIR", type=Path, help=_RESULTS % "NAME-OF-SPEC")
@_JOBS
@_SCHEDULER
def run_sweep(options: argparse.Namespace) -> int:
    """Run trials of your own, resumable.

    Run every combination of methods, values and seeds that a TOML file describes. Each finished trial is
    one file in the folder --out. A sweep that was stopped resumes when the same command is run again.
    `driftwolfe status DIR` shows its progress, `driftwolfe report DIR` draws the results so far.

    on a cluster:
      dask scheduler                                           on one machine
      dask worker tcp://HOST:8786 --nworkers auto --nthreads 1 on as many as you like
      driftwolfe sweep sweep.toml --scheduler tcp://HOST:8786
    """
    from driftwolfe.experiments import sweep

    if options.example:
        print(sweep.EXAMPLE, end="")
        return 0
    if options.spec is None:
        raise ValueError("say which sweep to run, or print an example of one with --example")
    spec = sweep.read_spec(options.spec)
    store = sweep.Store(options.out or Path("results") / Path(options.spec).stem)
    store.add(spec.title, spec.trials())
    command = f"driftwolfe sweep {shlex.quote(Path(options.spec).name)}"
    return _run_trials(options, store, command, partial(sweep.run_sweep, trusted=spec.trials()))


def _run_trials(
    options: argparse.Namespace, store: Store, command: str, run: Callable[..., int]
) -> int:
    """Run trials, draw their results, print the table, and say what was written and what failed."""
    from driftwolfe.experiments import report, running, sweep

    executor: Callable[[], Any] = partial(running.ProcessExecutor, options.jobs)
    if options.scheduler:
        executor = partial(running.DaskExecutor, options.scheduler)
    # Absolute: workers may run elsewhere on this machine.
    data = None if options.data is None else os.path.abspath(options.data)
    try:
        failed = run(store, executor, data)
    except KeyboardInterrupt:
        done = len(store.trials) - len(store.missing)
        again = shlex.join(["driftwolfe", *sys.argv[1:]])
        kept = f"{done} of {len(store.trials)} trials are done and kept in {store.folder}"
        show(f"stopped: {kept}\nresume with: {again}", sys.stderr)
        return _STOPPED
    if store.results:
        written = report.publish(store, command)
        shown = [f"  {path}" for path in written if path.suffix not in (".pdf", ".svg")]
        Terminal.of().say("\n".join([*report.in_brief(store), "written:", *shown]))
    if failed or not store.results:
        show(sweep.status(store), sys.stderr)
        return _FAILED
    return 0


@_FOLDER
def run_status(options: argparse.Namespace) -> None:
    """Show the progress of a sweep.

    Prints how many trials of each method are done, and failures.
    """
    from driftwolfe.experiments import sweep

    show(sweep.status(sweep.Store(options.folder)))


@_FOLDER
@_option("--pack", action="store_true", help=_PACK)
def run_report(options: argparse.Namespace) -> None:
    """Draw the results of a sweep so far.

    Writes summary.md, figures/ and report.html into the folder of the sweep. With --pack all finished
    trials, those that chose c too, become one file, trials.jsonl.xz. All commands read it as they read the
    files, and a sweep resumes from it.
    """
    from driftwolfe.experiments import report, sweep

    store = sweep.Store(options.folder)
    written = report.publish(store)
    show("\n".join(map(str, [*written, *([store.pack()] if options.pack else [])])))


@_FOLDER
def run_claims(options: argparse.Namespace) -> None:
    """Compare results with the claims of the paper.

    Prints each claim of the paper that results of `driftwolfe reproduce` can decide, what was measured,
    and whether it held.
    """
    from driftwolfe.experiments import paper, summary, sweep

    store, terminal = sweep.Store(options.folder), Terminal.of()
    for each in summary.summaries(store):
        found, missing = paper.claims(each, store.title)
        words = [f'({numeral}) "{text}."' for numeral, text in paper.quotes(found).items()]
        none = missing or "the paper makes no claim about these results"
        for line in (f"{each.name}:", *words, *(map(str, found) if found else [none])):
            terminal.tell(line, "     ")


@_option("places", metavar="PATH", type=Path, nargs="+", help="folder of sweeps, or a picture")
def run_overview(options: argparse.Namespace) -> None:
    """Put several results into one table.

    Prints the methods of several sweeps or experiments, and which reports and pictures to open. A folder
    that holds no sweep itself, such as results, stands for the sweeps and pictures in it.
    """
    from driftwolfe.experiments.report import overview

    Terminal.of().say("\n".join(overview(options.places)))


if __name__ == "__main__":
    sys.exit(main())

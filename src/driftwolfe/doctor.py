"""The machine: what is installed, found and working there, facts about it, and compiling ahead."""

from __future__ import annotations

import os
import platform
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module, metadata
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from threadpoolctl import threadpool_info

from driftwolfe import __version__
from driftwolfe.points import checks
from driftwolfe.points.devices import HOST, Device, best_device
from driftwolfe.streams import datasets
from driftwolfe.streams.datasets import RATINGS, ROWS, Folder
from driftwolfe.terminal import Terminal

if TYPE_CHECKING:
    from packaging.requirements import Requirement

#: The extras that users install, and what each is for.
EXTRAS = {
    "plot": "pictures of driftwolfe demo and of the examples",
    "estimators": "estimators of scikit-learn",
    "river": "estimators of river",
    "onnx": "recommenders as ONNX files",
    "experiments": "driftwolfe reproduce, sweep, report",
    "sets": "sets from models and graphs",
    "gpu": "large matrices on a GPU",
    "jax": "losses written in JAX",
    "distributed": "sweeps on a Dask cluster",
}
ROUNDS, DIMENSION = 256, 20  # of the self-test
#: ANSI codes: green, yellow, bold red.
_COLOURS = {"ok": "32", "note": "33", "broken": "1;31"}
_REINSTALL = "pip install --force-reinstall driftwolfe"
_NUMBA_CACHE = "set NUMBA_CACHE_DIR to a folder that you can write to"


class Finding(NamedTuple):
    """One line of the report: what was examined, what was found, and what to do about it.

    "note": something that not everybody needs is missing; "broken": the core does not work.
    """

    name: str
    text: str
    state: Literal["ok", "note", "broken"] = "ok"
    remedy: str = ""


def examine(terminal: Terminal, data: Folder | None = None) -> int:
    """Examine everything and print it; return 1 if the core is broken, else 0."""
    python, system = platform.python_version(), f"{platform.system()} {platform.machine()}"
    terminal.tell(f"driftwolfe {__version__}, Python {python}, {system}")
    sections: dict[str, Callable[[], Iterable[Finding]]] = {
        "core": core,
        "threads": threads,
        "does it work": lambda: [compiled_code(), self_test()],
        "data of the paper's experiments": lambda: data_sets(data),
        "folders": folders,
        "extras": extras,
    }
    findings: list[Finding] = []
    for title, section in sections.items():
        terminal.say("\n" + terminal.paint(title, "1"))
        try:
            found = list(section())
        except Exception as problem:  # the doctor itself must not fail
            text = f"{type(problem).__name__}: {problem}"
            found = [Finding(title, text, "broken", _REINSTALL)]
        for finding in found:
            terminal.say("\n".join(_lines(terminal, finding)))
        findings += found
    terminal.say()
    terminal.tell(verdict(findings))
    return int(any(finding.state == "broken" for finding in findings))


def verdict(findings: Sequence[Finding]) -> str:
    """Return one line: all is well, or what to do first."""
    first = {each.state: each for each in reversed(findings) if each.remedy}
    if broken := first.get("broken"):
        return f"The core is broken. First, for {broken.name}: {broken.remedy}"
    if missing := first.get("note"):
        return f"The core works. First of what is missing, {missing.name}: {missing.remedy}"
    return "All is well. See it at work: driftwolfe demo"


def _lines(terminal: Terminal, finding: Finding) -> list[str]:
    """A finding, and its remedy on a line of its own."""
    state = f"  {finding.state:7}"
    indent = " " * (29 if terminal.width >= 72 else 11)
    lines = terminal.lines(f"{state}{finding.name:20}{finding.text}", indent)
    lines[0] = terminal.paint(state, _COLOURS[finding.state]) + lines[0].removeprefix(state)
    if finding.remedy:
        lines += terminal.lines(f"{indent}-> {finding.remedy}", f"{indent}   ")
    return lines


def requirements(extra: str = "") -> list[Requirement]:
    """Return the packages that the installed driftwolfe asks for: the core's, or those of an extra."""
    from packaging.requirements import Requirement

    found = []
    for each in map(Requirement, metadata.requires("driftwolfe") or []):
        wanted = each.marker.evaluate({"extra": extra}) if each.marker else not extra
        if wanted and each.name == "driftwolfe":  # an extra within an extra
            found += [inner for name in sorted(each.extras) for inner in requirements(name)]
        elif wanted:
            found.append(each)
    return found


def fault(needed: Requirement) -> str:
    """Return what is wrong with a package here; empty if nothing is."""
    try:
        version = metadata.version(needed.name)
    except metadata.PackageNotFoundError:
        return f"{needed.name} is missing"
    if needed.specifier.contains(version, prereleases=True):
        return ""
    return f"{needed.name} is {version}, but must be {needed.specifier}"


def core() -> Iterator[Finding]:
    """Examine each package of the core: installed, new enough, importable."""
    for needed in requirements():
        name, text = needed.name, fault(needed)
        remedy = f"pip install --upgrade '{name}{needed.specifier}'"
        if not text:
            try:
                import_module(name)
            except Exception as problem:  # a broken package may raise anything
                text = f"cannot be imported: {problem}"
                remedy = f"pip install --force-reinstall {name}"
        broken = Finding(name, text, "broken", remedy)
        yield broken if text else Finding(name, metadata.version(name))


def extras() -> Iterator[Finding]:
    """Say of each extra what it is for and what is missing for it, and whether PyTorch finds a GPU."""
    for name, use in EXTRAS.items():
        needed = requirements(name)
        if faults := list(filter(None, map(fault, needed))):
            remedy = f"pip install 'driftwolfe[{name}]'"
            yield Finding(name, f"for {use}; {', '.join(faults)}", "note", remedy)
        else:
            versions = ", ".join(f"{each.name} {metadata.version(each.name)}" for each in needed)
            yield Finding(name, f"for {use}; {versions}")
    found = gpu_model(best_device())
    yield Finding("GPU", found or 'none that PyTorch finds; device="cuda" is refused')


def threads() -> Iterator[Finding]:
    """Count cores, threads of each BLAS, and threads of experts."""
    from driftwolfe.ensemble.threads import threads as threads_of_experts

    number, cores = threads_of_experts(), os.cpu_count() or 1  # which loads every BLAS there is
    if hasattr(os, "sched_getaffinity"):  # the cores that this process may use
        cores = len(os.sched_getaffinity(0))
    yield Finding("cores", str(cores))
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    found = {f"{p['internal_api']} {p['version']}, threads: {p['num_threads']}" for p in pools}
    yield from (Finding("BLAS", text) for text in sorted(found))
    if number > cores:
        remedy = f"set OPENBLAS_NUM_THREADS={cores}, or call driftwolfe.set_threads({cores})"
        yield Finding("threads of experts", f"{number}, more than cores", "note", remedy)
    else:
        yield Finding("threads of experts", f"{number}, on large matrices")


def compiled_code() -> Finding:
    """Load compiled loops; say whether they are cached, and where."""
    name = "compiled code"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there is no cache is said below
            from driftwolfe.domains import set_kernels

            stats = set_kernels.nearest_rows.ready().stats
    except AttributeError:  # plain Python in place of compiled functions
        text = "numba does not compile: all is slow"
        return Finding(name, text, "note", "unset NUMBA_DISABLE_JIT")
    except Exception as problem:  # numba raises many kinds
        text = f"cannot be loaded: {' '.join(str(problem).split())}"
        return Finding(name, text, "broken", _NUMBA_CACHE)
    if stats.cache_path is None:
        text = "compiled in every process: no folder can be written"
        return Finding(name, text, "note", _NUMBA_CACHE)
    return Finding(name, f"kept in {stats.cache_path}")


def self_test() -> Finding:
    """Play POLA on an L1 ball after a target that jumps once; compare its regret with its bound."""
    from driftwolfe import POLA, L1Ball, play, regret, streams

    learner = POLA(ball := L1Ball(DIMENSION))
    stream = streams.synthetic.piecewise_constant(ball, ROUNDS, pieces=2, seed=0)
    history = play(learner, stream, record_decisions=True, progress=False)
    points = stream.comparators or []
    suffered = regret.dynamic_regret(history, points)
    bound = learner.bound(path_length=regret.path_length(points))
    text = f"POLA, {ROUNDS} rounds on an L1 ball: regret {suffered:.1f}, bound {bound:.0f}"
    if suffered <= bound and all(map(ball.contains, history.decisions)):
        return Finding("self-test", text)
    return Finding("self-test", f"{text}: this must not be", "broken", _REINSTALL)


def data_sets(folder: Folder | None = None) -> Iterator[Finding]:
    """Say whether the real data are here, as published; nothing is downloaded."""
    named = datasets.named_folder(folder)
    place = named.absolute() if named else datasets.cache_folder()
    into = place or "the cache (none: this user has no home)"
    for name, file in (("MovieLens 100K", RATINGS), ("Shuttle", ROWS)):
        text = f"{file.path} not found in {into}"
        if path := file.find(folder):
            try:
                file.read(folder)
                yield Finding(name, f"{path}, as published")
            except (OSError, ValueError) as problem:
                remedy = f"get {file.path} again from {file.source}"
                yield Finding(name, str(problem), "note", remedy)
        elif named or datasets.offline():
            yield Finding(name, text, "note", f"put {file.path} from {file.source} into {into}")
        else:
            yield Finding(name, f"{text}; driftwolfe reproduce downloads it", "note")


def folders() -> Iterator[Finding]:
    """Try to write where the cache and the results are, or would be made."""
    cache = f"set {datasets.CACHE_VARIABLE} to a folder that you can write to"
    results = "run it in a folder that you can write to, or give --out"
    places = [("cache", datasets.cache_folder(), cache), ("results", Path("results"), results)]
    for name, folder, remedy in places:
        if folder is None:
            yield Finding(name, "this user has no home folder", "note", remedy)
            continue
        folder = folder.absolute()
        try:
            place = next(path for path in (folder, *folder.parents) if path.exists())
            with tempfile.TemporaryFile(dir=place) as file:
                file.write(b"driftwolfe")
        except OSError as problem:
            text = f"{folder} cannot be written: {problem.strerror or problem}"
            yield Finding(name, text, "note", remedy)
        else:
            yield Finding(name, f"{folder}" + ("" if folder.exists() else ", made when needed"))


# -- compiling ahead -------------------------------------------------------------------------------

_ALARM, _SHARED = "estimators.alarm_kernels", "estimators.core.shared_kernels"
#: The modules of compiled loops, by what uses them.
MODULES = {
    "learners": ("domains.set_kernels", "ensemble.expert_kernels", "points.kernels"),
    "TraceNormClassifier": ("estimators.classifier_kernels", _SHARED, _ALARM),
    "TraceNormRegressor": ("estimators.regressor_kernels", _SHARED, _ALARM),
    "MatrixCompleter": ("estimators.completer_kernels", _ALARM),
    "Recommender": ("estimators.recommender_kernels", _ALARM),
}


def warm_up(names: Sequence[str] = ()) -> int:
    """Compile the loops that these use, all by default, or find them in the cache; return how many there are."""
    from tqdm import tqdm

    from driftwolfe.points.compiling import announcement  # brings numba

    for name in names:
        checks.one_of(name, "NAME", MODULES)
    modules = dict.fromkeys(module for name in names or MODULES for module in MODULES[name])
    found = [vars(import_module(f"driftwolfe.{module}")).values() for module in modules]
    loops = [loop for loop in chain(*found) if hasattr(loop, "ready")]
    announcement.announced = True
    for loop in tqdm(loops, "compiling", unit="loop", leave=False, disable=None):
        loop.ready()
    return len(loops)


# -- facts that are stored with results ------------------------------------------------------------

#: The packages whose versions are stored.
PACKAGES = ("driftwolfe", "numpy", "scipy", "numba")


def facts(packages: Iterable[str] = PACKAGES, device: Device = HOST) -> dict[str, Any]:
    """The machine, versions of packages, BLAS threads, time and commit; None where not known."""
    memory, versions = None, dict.fromkeys((*packages, *([] if device is HOST else ["torch"])))
    with suppress(AttributeError, ValueError, OSError):
        memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    for name in versions:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return {
        "cpu": cpu_model(),
        "device": device.name,
        "gpu": gpu_model(device),
        "cores": os.cpu_count(),
        "memory_gib": memory,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **versions,
        "blas": [
            {key: pool.get(key) for key in ("internal_api", "version", "num_threads")}
            for pool in sorted(threadpool_info(), key=lambda pool: str(pool.get("version")))
        ],
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
    }


def cpu_model() -> str:
    """The name of the processor, as far as the system tells it."""
    for line in _output("lscpu").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "Model name":
            return value.strip()
    return platform.processor() or platform.machine()


def gpu_model(device: Device) -> str | None:
    """The name of a GPU; None for other devices."""
    if not device.name.startswith("cuda"):
        return None
    return str(device.xp.cuda.get_device_name(device.place))


def commit() -> str | None:
    """The commit of the checkout, with a plus sign where files differ from it; None outside one."""
    name = _output("git", "rev-parse", "--short", "HEAD").strip()
    # Without a lock that a commit made meanwhile would trip over.
    changed = _output("git", "--no-optional-locks", "status", "--porcelain").strip()
    return name + ("+" if changed else "") or None


def _output(*command: str) -> str:
    """What a command prints, run in the folder of this file; nothing if it fails."""
    folder = Path(__file__).resolve().parent
    with suppress(OSError):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else ""
    return ""

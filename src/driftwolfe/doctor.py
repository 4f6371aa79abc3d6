"""`driftwolfe doctor`: what is installed, found and working."""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Literal

import numpy as np

from driftwolfe import __version__
from driftwolfe.streams import data_files
from driftwolfe.streams.data_files import ENVIRONMENT_VARIABLE, OFFLINE_VARIABLE, DataFile, Folder
from driftwolfe.streams.datasets import RATINGS, ROWS
from driftwolfe.terminal import Terminal

#: "ok"; "note": something that not everybody needs is missing; "broken": the core does not work.
State = Literal["ok", "note", "broken"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report.

    Attributes
    ----------
    name
        What was looked at.
    told
        What was found.
    state
        How it is.
    remedy
        What to do about it; empty where nothing needs to be done.
    """

    name: str
    told: str
    state: State = "ok"
    remedy: str = ""


#: What the tests of the report look for.
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def threads() -> list[Finding]:
    """Cores, BLAS and the threads of experts."""
    from driftwolfe.ensemble.threads import threads as of_experts

    number = of_experts()  # loads every BLAS there is
    cores = _cores()
    found = [Finding("cores", str(cores)), *_blas()]
    if number > cores:
        remedy = f"set OPENBLAS_NUM_THREADS={cores}, or call driftwolfe.set_threads({cores})"
        return [*found, Finding("threads of experts", f"{number}, more than cores", "note", remedy)]
    return [*found, Finding("threads of experts", f"{number}, on large matrices")]


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _blas() -> list[Finding]:
    from threadpoolctl import threadpool_info

    pools = [pool for pool in threadpool_info() if pool.get("user_api") == "blas"]
    told = {f"{_blas_name(pool)}, {_counted(pool['num_threads'])}" for pool in pools}
    return [Finding("BLAS", text) for text in sorted(told)] or [Finding("BLAS", "none is known")]


def _blas_name(pool: dict[str, Any]) -> str:
    return f"{pool.get('internal_api', 'unknown')} {pool.get('version') or ''}".strip()


def _counted(threads: int) -> str:
    return f"{threads} thread" + ("" if threads == 1 else "s")


def compiled_code() -> Finding:
    """Load compiled loops; say whether they were kept from before, and where they are kept."""
    name = "compiled code"
    began = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it is not cached is said below
            from driftwolfe.domains import set_kernels

        seconds = time.perf_counter() - began
        stats = set_kernels.nearest_rows.stats
        kept, fresh = sum(stats.cache_hits.values()), sum(stats.cache_misses.values())
        place = stats.cache_path
    except AttributeError:  # plain Python in place of compiled functions
        remedy = "unset NUMBA_DISABLE_JIT"
        return Finding(name, "numba does not compile: all is slow", "note", remedy)
    except Exception as problem:  # numba raises many kinds
        remedy = "set NUMBA_CACHE_DIR to a folder that you can write to"
        return Finding(
            name, f"cannot be loaded: {' '.join(str(problem).split())}", "broken", remedy
        )
    if place is None:
        told = f"compiled now ({seconds:.0f} s) and in every process: no folder can be written"
        return Finding(name, told, "note", "set NUMBA_CACHE_DIR to a folder that you can write to")
    if kept and not fresh:
        return Finding(name, f"kept in {place}")
    return Finding(name, f"compiled now ({seconds:.0f} s) and kept in {place} for the next time")


def gpu() -> Finding:
    """Whether PyTorch finds a GPU; most users need none."""
    from driftwolfe.points.devices import HOST, best_device

    if best_device() is HOST:
        return Finding("GPU", 'none that PyTorch finds; device="cuda" is refused')
    import torch

    return Finding("GPU", torch.cuda.get_device_name())


def browser() -> Finding:
    """Whether the tests of the report have a browser; users need none."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        return Finding("browser", f"none of {', '.join(BROWSERS)}; its tests are skipped")
    return Finding("browser", found)


#: Packages of the core and their least versions, as `pyproject.toml` has them.
CORE = {
    "numpy": "2.0",
    "scipy": "1.13",
    "numba": "0.60",
    "safetensors": "0.4",
    "threadpoolctl": "3.5",
    "tqdm": "4.66",
}


@dataclass(frozen=True, slots=True)
class Extra:
    """What an extra is for, its packages and their least versions, and the extra within it."""

    use: str
    packages: dict[str, str]
    within: str = ""


#: The extras that users install.
EXTRAS = {
    "plot": Extra("pictures of driftwolfe demo and of the examples", {"matplotlib": "3.8"}),
    "estimators": Extra("estimators of scikit-learn", {"scikit-learn": "1.6"}),
    "river": Extra("estimators of river", {"river": "0.22", "pandas": "2.2"}, "estimators"),
    "experiments": Extra(
        "driftwolfe reproduce, sweep, report",
        {"msgspec": "0.19", "plotly": "7.0", "jinja2": "3.1"},
        "plot",
    ),
    "gpu": Extra("large matrices on a GPU", {"torch": "2.6"}),
    "distributed": Extra("sweeps on a Dask cluster", {"distributed": "2024.8"}, "experiments"),
}


def core() -> list[Finding]:
    """A finding for each package of the core: there, new enough, and importable."""
    return [_examined(name, least) for name, least in CORE.items()]


def _examined(name: str, least: str) -> Finding:
    if told := fault(name, least):
        return Finding(name, told, "broken", f"pip install --upgrade '{name}>={least}'")
    try:
        import_module(name)
    except Exception as problem:  # a broken package may raise anything
        told = f"cannot be imported: {problem}"
        return Finding(name, told, "broken", f"pip install --force-reinstall {name}")
    return Finding(name, version(name) or "")


def extras() -> list[Finding]:
    """A finding for each extra: what it is for, and what is missing for it."""
    return [_extra(name) for name in EXTRAS]


def _extra(name: str) -> Finding:
    needed = _packages(name)
    use = f"for {EXTRAS[name].use}"
    faults = [told for each, least in needed.items() if (told := fault(each, least))]
    if faults:
        remedy = f"pip install 'driftwolfe[{name}]'"
        return Finding(name, f"{use}; {', '.join(faults)}", "note", remedy)
    own = ", ".join(f"{each} {version(each)}" for each in EXTRAS[name].packages)
    return Finding(name, f"{use}; {own}")


def _packages(name: str) -> dict[str, str]:
    """The packages of an extra and of those within it."""
    extra = EXTRAS[name]
    return {**(_packages(extra.within) if extra.within else {}), **extra.packages}


def fault(package: str, least: str) -> str:
    """What is wrong with a package here; empty if nothing is.

    >>> fault("numpy", "1.0"), fault("no-such-package", "1.0")
    ('', 'no-such-package is missing')
    """
    found = version(package)
    if found is None:
        return f"{package} is missing"
    return f"{package} {found} is older than {least}" if _numbers(found) < _numbers(least) else ""


def version(package: str) -> str | None:
    """The installed version of a package, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers that a version starts with, without zeros at its end.

    >>> _numbers("2.10.0rc1") > _numbers("2.9"), _numbers("2.0") == _numbers("2")
    (True, True)
    """
    found = re.match(r"\d+(?:\.\d+)*", text)
    numbers = [int(part) for part in found[0].split(".")] if found else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


DATA = {"MovieLens 100K": RATINGS, "Shuttle": ROWS}
RESULTS = Path("results")


def data_sets(folder: Folder | None = None) -> list[Finding]:
    """Whether the real data are here, and as published; nothing is downloaded."""
    return [_data(name, file, folder) for name, file in DATA.items()]


def _data(name: str, file: DataFile, folder: Folder | None) -> Finding:
    named = folder if folder is not None else os.environ.get(ENVIRONMENT_VARIABLE)
    found = file.find(folder)
    if found is None:
        told = f"{file.path} not found; looked in {_looked(named)}"
        if not named and os.environ.get(OFFLINE_VARIABLE, "") in ("", "0"):
            return Finding(name, f"{told}; driftwolfe reproduce downloads it", "note")
        into = f"into {Path(named).absolute()}" if named else "into the cache folder"
        return Finding(name, told, "note", f"put {file.path} from {file.source} {into}")
    try:
        file.read(folder)
    except (OSError, ValueError) as problem:
        return Finding(name, str(problem), "note", f"get {file.path} again from {file.source}")
    return Finding(name, f"{found}, as published")


def _looked(named: Folder | None) -> str:
    if named:
        return f"{Path(named).absolute()} only, as --data or {ENVIRONMENT_VARIABLE} says"
    return f"the cache folder {data_files.default_folder() or '(none: this user has no home)'}"


def folders() -> list[Finding]:
    """Whether the cache and the results can be written."""
    kept = data_files.default_folder()
    other = f"set {data_files.VARIABLE} to a folder that you can write to"
    found = (
        Finding("cache", "this user has no home folder", "note", other)
        if kept is None
        else _writable("cache", kept, other)
    )
    here = "run it in a folder that you can write to, or give --out"
    return [found, _writable("results", RESULTS.absolute(), here)]


def _writable(name: str, folder: Path, remedy: str) -> Finding:
    """Write a file without a name where the folder is, or would be made."""
    place = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"driftwolfe")
    except OSError as problem:
        why = problem.strerror or str(problem)
        return Finding(name, f"{folder} cannot be written: {why}", "note", remedy)
    return Finding(name, f"{folder}" + ("" if folder.exists() else ", made when needed"))


ROUNDS, PLACES = 256, 20


def self_test() -> Finding:
    """Play POLA on an L1 ball after a target that jumps once; hold its regret to its bound."""
    name = "self-test"
    try:
        regret, bound, feasible = _played()
    except Exception as problem:  # whatever is broken here may raise anything
        return Finding(name, f"{type(problem).__name__}: {problem}", "broken", _REMEDY)
    told = f"POLA, {ROUNDS} rounds on an L1 ball: regret {regret:.1f}, bound {bound:.0f}"
    if not (feasible and regret <= bound):
        return Finding(name, f"{told}: this must not be", "broken", _REMEDY)
    return Finding(name, told)


_REMEDY = "pip install --force-reinstall driftwolfe"


def _played() -> tuple[float, float, bool]:
    """The regret, its bound, and whether every point played was in the set."""
    from driftwolfe.domains import L1Ball
    from driftwolfe.game import play
    from driftwolfe.learners import POLA
    from driftwolfe.losses import SquaredDistance
    from driftwolfe.regret import dynamic_regret, path_length

    ball, rng = L1Ball(PLACES), np.random.default_rng(0)
    targets = np.eye(PLACES)[np.arange(ROUNDS) * 2 // ROUNDS]
    losses = [SquaredDistance(target + 0.1 * rng.standard_normal(PLACES)) for target in targets]
    learner = POLA(ball)
    history = play(learner, losses, record_decisions=True, progress=False)
    regret = float(dynamic_regret(history, targets))
    inside = all(ball.contains(point) for point in history.decisions)
    return regret, learner.bound(path_length=path_length(list(targets))), inside


#: ANSI codes: green, yellow, bold red.
_COLOURS = {"ok": "32", "note": "33", "broken": "1;31"}
_NAME, _STATE = 20, 7
#: Columns from which on what was found has a column of its own.
_WIDE = 72

Section = tuple[str, Callable[[], Sequence[Finding]]]


def examine(terminal: Terminal, data: Folder | None = None) -> int:
    """Look at everything and print it; return 1 where the core is broken, else 0.

    Parameters
    ----------
    terminal
        Where it is printed.
    data
        The folder of the real data, if it is not the one of the environment.
    """
    terminal.tell(
        f"driftwolfe {__version__}, Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}"
    )
    found: list[Finding] = []
    for title, look in _sections(data):
        terminal.say()
        terminal.say(terminal.paint(title, "1"))
        for each in _seen(title, look):
            found.append(each)
            _print(terminal, each)
    terminal.say()
    terminal.tell(verdict(found))
    return int(any(each.state == "broken" for each in found))


def _sections(data: Folder | None) -> list[Section]:
    return [
        ("core", core),
        ("threads", threads),
        ("does it work", lambda: [compiled_code(), self_test()]),
        ("data of the paper's experiments", lambda: data_sets(data)),
        ("folders", folders),
        ("extras", lambda: [*extras(), gpu()]),
        ("for developers of driftwolfe", lambda: [browser()]),
    ]


def _seen(title: str, look: Callable[[], Sequence[Finding]]) -> Sequence[Finding]:
    """What a part of the visit finds; where it fails, that is the finding."""
    try:
        return look()
    except Exception as problem:  # the doctor must not fall ill
        told = f"{type(problem).__name__}: {problem}"
        return [Finding(title, told, "broken", "pip install --force-reinstall driftwolfe")]


def verdict(found: Sequence[Finding]) -> str:
    """One line: all well, or what to do first.

    >>> verdict([Finding("numpy", "2.0"), Finding("river", "missing", "note", "pip install x")])
    'The core works. First of what is missing, river: pip install x'
    """
    first = {each.state: each for each in reversed(found) if each.remedy}
    if broken := first.get("broken"):
        return f"The core is broken. First, for {broken.name}: {broken.remedy}"
    if missing := first.get("note"):
        return f"The core works. First of what is missing, {missing.name}: {missing.remedy}"
    return "All is well. See it at work: driftwolfe demo"


def _print(terminal: Terminal, found: Finding) -> None:
    """A finding on a line, its remedy on another."""
    state = f"  {found.state:{_STATE}}"
    indent = " " * (len(state) + (_NAME if terminal.width >= _WIDE else 2))
    lines = terminal.lines(f"{state}{found.name:{_NAME}}{found.told}", indent)
    painted = terminal.paint(state, _COLOURS[found.state])
    terminal.say(painted + lines[0].removeprefix(state))
    for line in lines[1:]:
        terminal.say(line)
    if found.remedy:
        terminal.tell(f"{indent}-> {found.remedy}", f"{indent}   ")


__all__ = ["examine"]

"""Does the suite notice small faults? Draws mutants of the library and runs the tests that belong to each.

    python -m reliability.mutants [MODULE ...] [--sample 40] [--seed 0] [--processes 1]

A module is a file or folder below `src/driftwolfe`, such as `regret/measures` or `oracles`; without
any, mutants are drawn from all of `TESTS`. Another seed draws a fresh set. Works on a copy, in
`build/mutants`. Mutants that lived are shown as diffs: write a test that fails on each, unless it
computes the same (another name for a tie, a limit never reached).
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from queue import SimpleQueue
from random import Random
from typing import Any, NamedTuple

from reliability.code_mutants import Mutant, difference, mutants, sample

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src/driftwolfe")
#: The parts of the library that mutants are drawn from, and their tests beside those named after the
#: module, which run first; the longest name that fits counts. Doctests of the module itself are always
#: run, last: alone, pytest would load some modules over functions of the same name.
TESTS = {
    "bounds": (
        "test_theory.py",
        "learners/test_formulas.py",
        "learners/test_exact_bounds.py",
        "learners/test_window_bounds.py",
        "learners/test_bounds_hold.py",
    ),
    "comparison": (),
    "contrib": (
        "learners",
        "contracts/test_declared_limits.py",
        "contracts/test_saved_learners.py",
        "contracts/test_learner_contract.py",
        "contracts/test_hostile_input.py",
    ),
    "domains": ("domains", "contracts/test_domain_contract.py"),
    "ensemble": (
        "ensemble",
        "learners",
        "contracts/test_declared_limits.py",
        "contracts/test_saved_learners.py",
    ),
    "estimators": (
        "estimators",
        "contracts/test_estimator_contract.py",
        "contracts/test_interrupts.py",
        "contracts/test_refused_values.py",
        "storage/test_declared.py",
    ),
    "evaluate": (),
    "experiments/paper": (),
    "experiments/running": (
        "experiments/test_trial_run.py",
        "experiments/test_executors.py",
    ),
    "experiments/summary": ("experiments/test_tables.py",),
    "experiments/sweep": (),
    "experiments/trial": (),
    "game": ("test_checkpoint.py",),
    "learners/ahead": ("learners/test_running_ahead.py", "clusters/test_sum_loss.py"),
    "learners": (
        "learners/test_independent.py",
        "learners/test_exact_bounds.py",
        "contracts/test_saved_learners.py",
        "contracts/test_declared_limits.py",
        "learners",
        "contracts/test_learner_contract.py",
        "contracts/test_hostile_input.py",
    ),
    "losses": ("losses", "contracts/test_hostile_input.py"),
    "oracles": ("oracles", "contracts/test_oracle_contract.py"),
    "points": ("points",),
    "points/checks": ("points", "contracts/test_refused_values.py"),
    "points/kernels": ("points", "losses"),
    "regret": ("regret",),
    "reference": ("learners/test_reference.py", "learners/test_polar.py"),
    "state": (
        "storage",
        "estimators/test_completer_archive.py",
        "contracts/test_declared_limits.py",
    ),
    "storage": ("storage", "test_checkpoint.py"),
    "streams": ("streams",),
}
#: For all of them, right after those named after the module.
EVERYWHERE = (
    "contracts/test_signatures.py",
    "contracts/test_docstrings.py",
    "contracts/test_fingerprints.py",
)
#: Seconds for a mutant beyond three times what the tests take without one.
PATIENCE = 60.0
KILLED, LIVED, TIMED_OUT = "killed", "LIVED", "timed out"


class Drawn(NamedTuple):
    """A mutant of a file, given below the folder of the sources."""

    path: Path
    mutant: Mutant


class Outcome(NamedTuple):
    """What the tests said."""

    drawn: Drawn
    verdict: str
    seconds: float


class Copy:
    """A copy of the sources and tests in which one mutant at a time is tested."""

    def __init__(self, folder: Path, root: Path = ROOT) -> None:
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        folders = ("src", "tests", "benchmarks", "reliability", "docs")
        for name in (*folders, "pyproject.toml", "conftest.py"):
            if (root / name).is_dir():
                shutil.copytree(
                    root / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
                )
            elif (root / name).exists():
                shutil.copy(root / name, folder / name)
        # Python takes a file of the same size and second for unchanged: every change gets a second of its own.
        self._second = int(time.time())

    def test(self, drawn: Drawn, tests: Sequence[str], patience: float) -> Outcome:
        """Run the tests against one mutant."""
        path = self.folder / drawn.path
        kept = path.read_text(encoding="utf-8")
        try:
            self._write(path, drawn.mutant.source)
            started = time.monotonic()
            verdict = self.run([*tests, str(drawn.path)], patience)
            return Outcome(drawn, verdict, time.monotonic() - started)
        finally:
            self._write(path, kept)

    def run(self, tests: Sequence[str], patience: float = 3600.0) -> str:
        """Run tests as they stand; return whether they killed what is there."""
        command = [sys.executable, "-m", "pytest", "-x", "-m", "not slow and not gpu", *tests]
        environment = os.environ | {
            "PYTHONPATH": str(self.folder / "src"),
            "NUMBA_CACHE_DIR": str(self.folder / "numba"),
        }
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            self.told, _ = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # what the tests have started as well
            process.communicate()
            return TIMED_OUT
        return KILLED if process.returncode else LIVED

    def _write(self, path: Path, source: str) -> None:
        path.write_text(source, encoding="utf-8")
        self._second += 1
        os.utime(path, (self._second, self._second))


def files(modules: Sequence[str], root: Path = ROOT) -> list[Path]:
    """Return the files of modules and folders, below the root."""
    found = []
    for module in modules:
        place = root / PACKAGE / module.removesuffix(".py")
        if place.is_dir():
            found += sorted(place.rglob("*.py"))
        elif place.with_suffix(".py").exists():
            found.append(place.with_suffix(".py"))
        else:
            raise SystemExit(
                f"there is no {PACKAGE / module}; name a file or folder below {PACKAGE}"
            )
    return [path.relative_to(root) for path in dict.fromkeys(found)]


def relevant_tests(path: Path, root: Path = ROOT) -> tuple[str, ...]:
    """Return the tests that belong to a file: those named after it, then those of its part."""
    module = path.relative_to(PACKAGE).with_suffix("")
    fitting = [name for name in TESTS if module.is_relative_to(name)]
    if not fitting:
        raise SystemExit(
            f"no tests are known for {module.as_posix()}; add a line to TESTS in {__name__}"
        )
    folder = Path("tests") / module.parent
    own = sorted((root / folder).glob(f"test_{module.name}*.py"))
    found = [path.relative_to(root).as_posix() for path in own]
    if (root / "tests" / EVERYWHERE[0]).exists():
        found += [f"tests/{name}" for name in EVERYWHERE]
    found += [f"tests/{name}" for name in TESTS[max(fitting, key=len)]]
    return tuple(found or [folder.as_posix()])


def once(tests: Sequence[str]) -> tuple[str, ...]:
    """Return these tests without files of folders that are among them, in one order."""
    return tuple(sorted(t for t in tests if not set(map(str, Path(t).parents)) & set(tests)))


def draw(paths: Sequence[Path], number: int, seed: int, root: Path = ROOT) -> list[Drawn]:
    """Return that many mutants of the files, every line being as likely as any other."""
    random = Random(seed)
    sources = {path: (root / path).read_text(encoding="utf-8") for path in paths}
    found = {path: mutants(source) for path, source in sources.items()}
    lines = [path for path in paths for _ in {mutant.line for mutant in found[path]}]
    chosen = random.sample(lines, min(number, len(lines)))
    return [
        Drawn(path, mutant)
        for path in paths
        for mutant in sample(found[path], chosen.count(path), random)
    ]


def measure(drawn: Sequence[Drawn], copies: Sequence[Copy]) -> Iterator[Outcome]:
    """Test mutants, as many at a time as there are copies, and yield what the tests said as they end."""
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def patience(tests: Sequence[str], changed: Sequence[str]) -> float:
        """Seconds to wait for a mutant; none where the tests fail without any."""
        copy, started = free.get(), time.monotonic()
        try:
            if copy.run([*tests, *changed]) != LIVED:
                failed.append(copy.told)
                return 0.0
            return PATIENCE + 3.0 * (time.monotonic() - started)
        finally:
            free.put(copy)

    def one(each: Drawn, limit: float) -> Outcome:
        copy = free.get()
        try:
            return copy.test(each, relevant_tests(each.path, copies[0].folder), limit)
        finally:
            free.put(copy)

    failed: list[str] = []
    belonging: dict[tuple[str, ...], list[Drawn]] = {}
    for each in drawn:
        belonging.setdefault(once(relevant_tests(each.path, copies[0].folder)), []).append(each)
    with ThreadPoolExecutor(len(copies)) as pool:
        without: dict[Future[Any], tuple[str, ...]] = {
            pool.submit(patience, tests, sorted({str(each.path) for each in own})): tests
            for tests, own in sorted(belonging.items(), key=lambda item: -len(item[1]))
        }
        running: set[Future[Any]] = set(without)
        try:
            while running:
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    tests = without.get(future)
                    if tests is None:
                        yield future.result()
                    elif limit := future.result():
                        running |= {pool.submit(one, each, limit) for each in belonging[tests]}
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    if failed:
        raise SystemExit("tests fail without any mutant:\n" + "\n".join(failed))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m reliability.mutants", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "modules", nargs="*", metavar="MODULE", help="files or folders below the package"
    )
    parser.add_argument("--sample", type=int, default=40, help="mutants to draw (default 40)")
    parser.add_argument("--seed", type=int, default=0, help="which set is drawn (default 0)")
    parser.add_argument(
        "--processes", type=int, default=1, help="tests to run at a time (default 1)"
    )
    told = parser.parse_args(arguments)
    drawn = draw(files(told.modules or list(TESTS)), told.sample, told.seed)
    copies = [Copy(ROOT / "build" / "mutants" / str(k)) for k in range(told.processes)]
    lived = []
    for number, outcome in enumerate(measure(drawn, copies), start=1):
        (path, mutant), verdict, seconds = outcome
        place = f"{path.relative_to(PACKAGE)}:{mutant.line}"
        print(
            f"{number:3}/{len(drawn)} {verdict:9} {seconds:4.0f} s  {place} {mutant.what}",
            flush=True,
        )
        if verdict == LIVED:
            lived.append(outcome.drawn)
            print(
                difference((ROOT / path).read_text(encoding="utf-8"), mutant, str(path)), flush=True
            )
    died, share = len(drawn) - len(lived), 1.0 - len(lived) / max(len(drawn), 1)
    print(f"\nkilled {died} of {len(drawn)} ({share:.0%})")


if __name__ == "__main__":
    main()

"""Does the suite notice small faults? Draws mutants of the library and runs the tests that execute them.

    python -m reliability.mutants [MODULE ...] [--sample 40] [--seed 0] [--processes 1]

A module is a file or folder below `src/driftwolfe`, such as `regret/measures` or `oracles`; without any,
mutants are drawn from all. Another seed draws a fresh set. Works on copies, in `build/mutants`. First, all
quick tests are run once, to note which lines each executes (`executed.py`); that is kept until a source or a
test changes. Mutants that lived are shown as diffs: write a test that fails on each, unless it computes the
same (another name for a tie, a limit never reached).
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from random import Random
from typing import NamedTuple

from reliability.code_mutants import Mutant, difference, mutants, sample
from reliability.executed import LIBRARY, Executed

ROOT = Path(__file__).parents[1]
WORK = ROOT / "build" / "mutants"
#: What a copy has.
FOLDERS = ("src", "tests", "benchmarks", "reliability", "docs")
FILES = ("pyproject.toml", "conftest.py")
#: What asks for signatures executes no line.
SIGNATURES = "tests/contracts/test_signatures.py"
#: Seconds of the first tests of a mutant, and of all of them; those to wait for compiled loops.
FIRST, LONGEST, PATIENCE = 10.0, 300.0, 120.0
KILLED, LIVED, TIMED_OUT = "killed", "LIVED", "timed out"


class Drawn(NamedTuple):
    """A mutant of a file, given below the folder of the sources."""

    path: Path
    mutant: Mutant


class Outcome(NamedTuple):
    """What the tests said, and how many execute the mutant."""

    drawn: Drawn
    verdict: str
    seconds: float
    tests: int


class Copy:
    """A copy of the sources and tests in which one mutant at a time is tested."""

    def __init__(self, folder: Path, root: Path = ROOT) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        for name in (*FOLDERS, *FILES):
            if (root / name).is_dir():
                ignore = shutil.ignore_patterns("__pycache__")
                shutil.rmtree(folder / name, ignore_errors=True)
                shutil.copytree(root / name, folder / name, ignore=ignore)
            elif (root / name).exists():
                shutil.copy(root / name, folder / name)
        # Python takes a file of the same size and second for unchanged: every change gets a second of its own.
        self._second = int(time.time())

    def test(self, drawn: Drawn, tests: Sequence[str], executed: Executed) -> Outcome:
        """Run the tests against one mutant: a few, then those that are left."""
        path, started, verdict = self.folder / drawn.path, time.monotonic(), LIVED
        kept = path.read_text(encoding="utf-8")
        try:
            self._write(path, drawn.mutant.source)
            for some, expected in parts(tests, executed.seconds):
                verdict = self.run(some, PATIENCE + 4.0 * expected)
                if verdict != LIVED:
                    break
        finally:
            self._write(path, kept)
        return Outcome(drawn, verdict, time.monotonic() - started, len(tests))

    def run(self, tests: Sequence[str], patience: float) -> str:
        """Run tests as they stand; return whether they killed what is there."""
        # Doctests alone would load some modules over functions of the same name.
        last = sorted(tests, key=lambda test: test.startswith("src/"))
        command = [sys.executable, "-m", "pytest", "-x", "-m", "not slow and not gpu", *last]
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return KILLED if process.wait(timeout=patience) else LIVED
        except subprocess.TimeoutExpired:
            return TIMED_OUT
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what the tests have started as well
            process.wait()

    def environment(self) -> dict[str, str]:
        """Variables by which Python finds this copy; it has compiled loops of its own."""
        return os.environ | {
            "PYTHONPATH": str(self.folder / "src"),
            "NUMBA_CACHE_DIR": str(self.folder / "numba"),
        }

    def executed(self, processes: int) -> Executed:
        """Return what each quick test executes, from an earlier run where nothing has changed since."""
        digest = hashlib.sha256()
        for path in sorted(
            path for name in ("src", "tests") for path in (self.folder / name).rglob("*.py")
        ):
            digest.update(path.read_bytes())
        folder = self.folder.parent / f"executed-{digest.hexdigest()[:16]}"
        if not folder.exists():
            print("noting what each test executes: as long as all tests take", flush=True)
            new = folder.with_name("executed-new")
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir(parents=True)
            environment = self.environment() | {"EXECUTED": str(new)}
            here = (str(ROOT / "reliability" / "children_of_tests"), str(ROOT))
            environment["PYTHONPATH"] = os.pathsep.join([environment["PYTHONPATH"], *here])
            side_by_side = ["-n", str(processes)] if processes > 1 else []
            command = [sys.executable, "-m", "pytest", "-p", "reliability.executed", *side_by_side]
            command += ["-m", "not slow and not gpu"]
            with open(folder.with_suffix(".log"), "w", encoding="utf-8") as log:
                subprocess.run(command, cwd=self.folder, env=environment, stdout=log, check=False)
            if not Executed(new).seconds:
                raise SystemExit(
                    f"no test passed without any mutant; see {folder.with_suffix('.log')}"
                )
            new.rename(folder)
        return Executed(folder)

    def _write(self, path: Path, source: str) -> None:
        path.write_text(source, encoding="utf-8")
        self._second += 1
        os.utime(path, (self._second, self._second))


def parts(tests: Sequence[str], seconds: dict[str, float]) -> Iterator[tuple[list[str], float]]:
    """Yield the tests that take `FIRST` seconds, then those up to `LONGEST`, each with their seconds."""
    left = list(tests)
    for limit in (FIRST, LONGEST):
        some, spent = [], 0.0
        while left and (spent + seconds[left[0]] <= limit or not some):
            spent += seconds[left[0]]
            some.append(left.pop(0))
        if some:
            yield some, spent


def files(modules: Sequence[str], root: Path = ROOT) -> list[Path]:
    """Return the files of modules and folders, below the root."""
    found = []
    for module in modules:
        place = root / LIBRARY / module.removesuffix(".py")
        if place.is_dir():
            found += sorted(place.rglob("*.py"))
        elif place.with_suffix(".py").exists():
            found.append(place.with_suffix(".py"))
        else:
            raise SystemExit(
                f"there is no {LIBRARY / module}; name a file or folder below {LIBRARY}"
            )
    return [path.relative_to(root) for path in dict.fromkeys(found)]


def belonging(drawn: Drawn, executed: Executed, root: Path = ROOT) -> list[str]:
    """Return the tests that execute a mutant, those that may notice it soonest first."""
    path, line = drawn.path, drawn.mutant.line
    source = (root / path).read_text(encoding="utf-8")
    statements = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)]
    own = [each for each in statements if each.lineno <= line <= (each.end_lineno or 0)]
    last = max(own, key=lambda each: each.lineno)  # the innermost
    end = last.body[0].lineno - 1 if hasattr(last, "body") else last.end_lineno or line
    found = executed.tests(path, range(last.lineno, end + 1))
    if loops := users(path, root):
        found = found.union(executed.tests(path), *map(executed.tests, loops))
    found = found | {test for test in executed.seconds if test.startswith(SIGNATURES)}
    by_file: dict[str, list[str]] = defaultdict(list)
    for test in sorted(found, key=lambda test: (executed.seconds[test], test)):
        by_file[test.partition("::")[0]].append(test)
    named = f"test_{path.stem}"
    order = sorted(by_file, key=lambda file: (not Path(file).stem.startswith(named), file))
    turns = [(k, file, test) for file in order for k, test in enumerate(by_file[file])]
    # One of each file, then one more, then twice as many each time.
    return [
        test
        for _, _, test in sorted(
            turns, key=lambda turn: (turn[0].bit_length(), order.index(turn[1]))
        )
    ]


def users(path: Path, root: Path) -> set[Path]:
    """Return the files that use compiled loops of this one, themselves or by other loops."""
    texts = {
        file.relative_to(root): file.read_text(encoding="utf-8")
        for file in (root / LIBRARY).rglob("*.py")
    }
    compiled = {
        file for file, text in texts.items() if re.search(r"^@\w*jit\b", text, re.MULTILINE)
    }
    found, fresh = set[Path](), {path} & compiled
    while fresh:
        names = "|".join(file.stem for file in fresh)
        using = {file for file, text in texts.items() if re.search(rf"\b({names})\b", text)}
        fresh = using & compiled - found - {path}
        found |= using - {path}
    return found


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


def measure(
    drawn: Sequence[Drawn], copies: Sequence[Copy], executed: Executed, root: Path = ROOT
) -> Iterator[Outcome]:
    """Test mutants, as many at a time as there are copies, and yield what the tests said as they end."""
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def one(each: Drawn) -> Outcome:
        copy = free.get()
        try:
            return copy.test(each, belonging(each, executed, root), executed)
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as pool:
        try:
            for future in as_completed([pool.submit(one, each) for each in drawn]):
                yield future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


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
    drawn = draw(files(told.modules or [""]), told.sample, told.seed)
    copies = [Copy(WORK / str(k)) for k in range(told.processes)]
    executed = copies[0].executed(told.processes)
    lived = []
    for number, outcome in enumerate(measure(drawn, copies, executed), start=1):
        (path, mutant), verdict, seconds, tests = outcome
        place = f"{path.relative_to(LIBRARY)}:{mutant.line}"
        print(
            f"{number:3}/{len(drawn)} {verdict:9} {seconds:4.0f} s  {place} {mutant.what}, "
            f"executed by {tests} tests",
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

"""Tests under other rounding: a subset with other BLAS kernels and more BLAS threads.

    python -m reliability.rounding [--quick] [--jobs 2]

OpenBLAS has kernels for many processors, which add the same numbers in different orders;
`OPENBLAS_CORETYPE` chooses among those that this machine can run. `NUMBA_CPU_NAME=generic` compiles
loops without this processor's special instructions, and a second BLAS thread splits sums in two.
Each setting runs the tests in its own processes. A test that passes in one and fails in another
depends on rounding, or the library does.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent

#: Kernels by family of processors, the most different first.
CORE_TYPES = {
    "x86": (
        *("Prescott", "Haswell", "SkylakeX", "Nehalem", "Sandybridge", "Zen"),
        *("Cooperlake", "Sapphirerapids"),
    ),
    "arm": (
        *("ARMV8", "THUNDERX2T99", "NEOVERSEV1", "CORTEXA57", "NEOVERSEN1", "NEOVERSEN2"),
        *("CORTEXA53", "TSV110", "A64FX"),
    ),
}
#: Kernels of the quick run.
FEW = 2

#: Tests and `-k` expression of the full run, and of the quick one, where rounding decides.
ALL = (
    ["tests/contracts", "tests/oracles", "tests/learners", "tests/ensemble", "tests/domains"],
    "",
)
FEW_TESTS = (
    [
        "tests/oracles/test_infeasible_projection.py",
        "tests/points/test_rounding.py",
        "tests/learners/test_rounding_noise.py",
        "tests/learners/test_units.py",
        "tests/learners/test_devices.py",
        "tests/contracts/test_hostile_input.py",
        "tests/contracts/test_fingerprints.py",
    ],
    "factored or test_infeasible_projection.py or rounding or fingerprints or same_losses",
)

#: Run in a child process, which dies if this processor lacks an instruction.
PROBE = """
import json, numpy as np, scipy.linalg
from threadpoolctl import threadpool_info
for kind in (np.float64, np.float32):
    a = np.random.default_rng(0).standard_normal((150, 130)).astype(kind)
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    assert abs((u * s) @ vt - a).max() < 1e-3
    q, r = np.linalg.qr(a)
    np.linalg.eigh(a.T @ a), scipy.linalg.cho_factor(a.T @ a + np.eye(130)), a @ a[0], a[0] @ a[1]
found = [each for each in threadpool_info() if each["internal_api"] == "openblas"]
print(json.dumps([each["architecture"] for each in found]))
"""


class Setting(NamedTuple):
    """Environment variables of one run of the tests."""

    name: str
    environment: dict[str, str]


class Outcome(NamedTuple):
    """Results of one run."""

    name: str
    passed: int
    failed: int
    skipped: int
    seconds: float
    failures: list[str]

    @property
    def good(self) -> bool:
        """Whether tests ran and none failed."""
        return self.failed == 0 and self.passed > 0


def kernels(core_type: str | None = None) -> list[str]:
    """The kernels that a child process really uses; none if it dies."""
    asked = {} if core_type is None else {"OPENBLAS_CORETYPE": core_type}
    command = [sys.executable, "-c", PROBE]
    done = subprocess.run(
        command, env=os.environ | asked, capture_output=True, text=True, check=False
    )
    names: list[str] = json.loads(done.stdout) if done.returncode == 0 else []
    return [name.lower() for name in names]


def offered(core_types: Sequence[str]) -> tuple[list[str], list[str]]:
    """The kernels that this machine can run besides its own, and those that it cannot."""
    own = set(kernels())
    can, cannot = [], []
    for name in core_types:
        found = kernels(name)
        if found and set(found) == {name.lower()}:
            if own != {name.lower()}:
                can.append(name)
        else:
            cannot.append(name)
    return can, cannot


def family() -> str:
    """The family of this processor: a key of `CORE_TYPES`."""
    return "arm" if platform.machine().lower() in ("aarch64", "arm64") else "x86"


def settings(core_types: Sequence[str], quick: bool = False) -> list[Setting]:
    """The runs to make; the quick one omits the setting of `make test`."""
    plain = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "DRIFTWOLFE_BLAS_THREADS": "1"}
    return [
        *([] if quick else [Setting("as it is", plain)]),
        *(Setting(f"kernels {name}", plain | {"OPENBLAS_CORETYPE": name}) for name in core_types),
        # numba caches by the name of the processor, so that these do not mix.
        Setting("numba generic", plain | {"NUMBA_CPU_NAME": "generic"}),
        Setting(
            "2 BLAS threads", plain | {"OPENBLAS_NUM_THREADS": "2", "DRIFTWOLFE_BLAS_THREADS": "2"}
        ),
    ]


def run(setting: Setting, tests: Sequence[str], chosen: str = "", jobs: int = 0) -> Outcome:
    """Run tests under a setting and count the results."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-n", str(jobs), "-m", "not slow and not gpu"]
        command += [f"--junitxml={report}", *(["-k", chosen] if chosen else []), *tests]
        start = time.perf_counter()
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | setting.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.perf_counter() - start
        if not report.exists():
            why = (done.stdout + done.stderr).strip().splitlines()[-1:]
            text = f"pytest ended with {done.returncode}: {' '.join(why)}"
            return Outcome(setting.name, 0, 1, 0, seconds, [text])
        return counted(setting.name, report, seconds, done.returncode)


def counted(name: str, report: Path, seconds: float, status: int) -> Outcome:
    """Read pytest's report; a bad exit status without a failed test counts as a failure."""
    cases = ElementTree.parse(report).getroot().findall(".//testcase")
    skipped = sum(case.find("skipped") is not None for case in cases)
    failures = [
        f"{case.get('classname')}::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    passed = len(cases) - skipped - len(failures)
    if status != 0 and not failures:
        failures = [f"pytest ended with {status}"]
    return Outcome(name, passed, len(failures), skipped, seconds, failures)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every setting, print one line each, and return 0 if no test failed."""
    parser = argparse.ArgumentParser(prog="python -m reliability.rounding")
    parser.add_argument("--quick", action="store_true", help="fewer tests and two kinds of kernels")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="test processes")
    given = parser.parse_args(arguments)
    wanted = CORE_TYPES[family()]
    can, cannot = offered(wanted)
    taken = can[:FEW] if given.quick else can
    tests, chosen = FEW_TESTS if given.quick else ALL
    print(f"{'setting':<24}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}", flush=True)
    outcomes = []
    for setting in settings(taken, given.quick):
        found = run(setting, tests, chosen, given.jobs)
        outcomes.append(found)
        counts = f"{found.passed:>8}{found.failed:>8}{found.skipped:>9}{found.seconds:>9.0f}"
        print(f"{found.name:<24}{counts}", flush=True)
    for found in outcomes:
        for failure in found.failures:
            print(f"{found.name}: {failure}")
    print(f"This machine's own kernels: {', '.join(sorted(set(kernels()))) or 'no OpenBLAS'}.")
    print(f"Also run: {', '.join(taken) or 'none'}.")
    print(f"Available, not run: {', '.join(name for name in can if name not in taken) or 'none'}.")
    print(f"Not available here: {', '.join(cannot) or 'none'}.")
    return 0 if all(found.good for found in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())

"""Starting: the import, the first use of a compiled kernel, and the next from the cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import ROOT
from benchmarks.measure import medians
from benchmarks.ratio import Ratio

ROW = "startup"
IMPORT = "import driftwolfe"
PEERS = "import numpy, scipy.sparse"
#: A game that needs the compiled kernels, small enough that nothing else takes time.
KERNELS = """
ball = driftwolfe.TraceNormBall((300, 300), 10.0, representation="factored")
learner = driftwolfe.POLD(ball, horizon=4, lipschitz=1.0)
for t in range(4):
    learner.update(driftwolfe.losses.AbsoluteEntries([t, 1], [2, t], [1.0, 3.0]))
"""
#: Seconds; a machine of many users may take three times as long in the short variant.
IMPORT_BUDGET, COMPILE_BUDGET, ALLOWANCE = 0.5, 5.0, {True: 3.0, False: 1.0}
REPEATS = {True: 5, False: 11}


def measure(short: bool) -> list[Ratio]:
    """Fresh interpreters in turns, then one with nothing compiled and several with all in cache."""
    imports = _imports(REPEATS[short])
    first, later = _compiling(3)
    middle = medians(imports)
    games = medians({"later": later})
    allowed = ALLOWANCE[short]
    return [
        _against_budget("import", middle["driftwolfe"], IMPORT_BUDGET, allowed, imports),
        Ratio(
            ROW,
            "import, against numpy and scipy.sparse",
            middle["driftwolfe"],
            middle["numpy and scipy.sparse"],
            note="fresh interpreters, in turns",
        ),
        _against_budget("first use, compiling", first, COMPILE_BUDGET, allowed, {"first": [first]}),
        Ratio(
            ROW,
            "use from the cache, against the first",
            games["later"],
            first,
            note="four rounds of POLD on 300 x 300, import not counted",
            timings={"later": later},
        ),
    ]


def _against_budget(name, ours, budget, allowed, timings):
    return Ratio(
        ROW,
        f"{name}, share of {budget:g} s",
        ours,
        budget,
        at_most=allowed,
        note="seconds, as the budget names them" + ("; three times allowed" * (allowed > 1)),
        timings=timings,
    )


def _imports(repeats):
    jobs = {"driftwolfe": IMPORT, "numpy and scipy.sparse": PEERS}
    for code in jobs.values():
        _seconds_in_child("", code)
    timings = {name: [] for name in jobs}
    for _ in range(repeats):
        for name, code in jobs.items():
            timings[name].append(_seconds_in_child("", code))
    return timings


def _compiling(repeats):
    """The first game with an empty cache, and later ones with what it left there."""
    with tempfile.TemporaryDirectory() as folder:
        cache = {"NUMBA_CACHE_DIR": str(Path(folder))}
        first, *later = (_seconds_in_child(IMPORT, KERNELS, cache) for _ in range(repeats + 1))
    return first, later


def _seconds_in_child(before, timed, environment=None):
    """Seconds that `timed` takes in a fresh interpreter, after `before`."""
    code = (
        f"{before}\nimport time\nstarted = time.perf_counter()\n{timed}\n"
        "print(time.perf_counter() - started)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | (environment or {}),
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)

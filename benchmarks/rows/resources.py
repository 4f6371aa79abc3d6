"""Time and memory: growth on the large matrix, import, compilation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

from benchmarks import ROOT
from benchmarks.large_matrix import HORIZON, PER_ROUND, SHAPE, fixed_rank_projection
from benchmarks.measure import medians, race, threads
from benchmarks.ratio import Ratio

MEMORY_GIB = 8.0
#: Rank of the projections that the ratios are measured on, and ratings in one block of BOGD_IP.
RANK, BLOCK_RATINGS = 60, 31 * PER_ROUND
#: Side lengths and ratings of the short variant, divided by this.
SMALLER = 10
REPEATS = {True: 5, False: 7}
#: Games of the full variant: learner and rounds; every expert of POLD projects twice in 62.
GAMES = {"BOGD_IP": HORIZON, "POLD": 62}


def scale(short: bool) -> list[Ratio]:
    """Growth of a projection's time on the large matrix, and peak memory of whole games."""
    with threads(1):
        ratios = _growth(SMALLER if short else 1, REPEATS[short])
    if short:
        return ratios
    return [*ratios, *(_memory(name, rounds) for name, rounds in GAMES.items())]


def _growth(smaller: int, repeats: int) -> list[Ratio]:
    m, n = (size // smaller for size in SHAPE)
    ratings = BLOCK_RATINGS // smaller
    jobs = {
        "one": fixed_rank_projection((m, n), ratings, RANK),
        "ratings twice": fixed_rank_projection((m, n), 2 * ratings, RANK),
        "sides twice": fixed_rank_projection((2 * m, 2 * n), ratings, RANK),
    }
    timings = race(jobs, repeats)
    middle = medians(timings)
    note = f"one projection to rank {RANK}; once: {m:,} x {n:,}, {ratings:,} ratings"
    return [
        Ratio(
            "scale",
            f"{name} as many" if name == "ratings twice" else f"{name} as long",
            middle[name],
            middle["one"],
            at_most=2.3,
            note=note,
            timings=timings,
        )
        for name in ("ratings twice", "sides twice")
    ]


def _memory(name: str, rounds: int) -> Ratio:
    """Play in a fresh process and read its peak memory."""
    command = [sys.executable, "-m", "benchmarks.large_matrix", name, str(rounds)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    played = json.loads(done.stdout)
    return Ratio(
        "scale",
        f"peak memory of {name}, {rounds:,} rounds of {PER_ROUND:,}",
        played["peak_gib"],
        MEMORY_GIB,
        at_most=1,
        unit="GiB",
        note=f"{played['seconds']:,.0f} s in all, mean loss per rating {played['mean_loss']:.3f} "
        f"(zero: {played['mean_rating']:.3f}), rank {played['rank']} at the end",
    )


IMPORT = "import driftwolfe"
PEERS = "import numpy, scipy.sparse"
#: A tiny game that needs the compiled kernels.
KERNELS = """
ball = driftwolfe.TraceNormBall((300, 300), 10.0, representation="factored")
learner = driftwolfe.POLD(ball, horizon=4, lipschitz=1.0)
for t in range(4):
    learner.update(driftwolfe.losses.AbsoluteEntries([t, 1], [2, t], [1.0, 3.0]))
"""
#: Seconds; the short variant allows three times as long, since machines may be shared.
IMPORT_BUDGET, COMPILE_BUDGET, ALLOWANCE = 0.5, 5.0, {True: 3.0, False: 1.0}
STARTS = {True: 5, False: 11}


def startup(short: bool) -> list[Ratio]:
    """Import time, the first use of compiled kernels, and the next from the cache."""
    imports = _imports(STARTS[short])
    first, later = _compiling(3)
    middle = medians(imports)
    games = medians({"later": later})
    allowed = ALLOWANCE[short]
    return [
        _against_budget("import", middle["driftwolfe"], IMPORT_BUDGET, allowed, imports),
        Ratio(
            "startup",
            "import, against numpy and scipy.sparse",
            middle["driftwolfe"],
            middle["numpy and scipy.sparse"],
            note="fresh interpreters, in turns",
        ),
        _against_budget("first use, compiling", first, COMPILE_BUDGET, allowed, {"first": [first]}),
        Ratio(
            "startup",
            "use from the cache, against the first",
            games["later"],
            first,
            note="four rounds of POLD on 300 x 300, import not counted",
            timings={"later": later},
        ),
    ]


def _against_budget(name, ours, budget, allowed, timings):
    return Ratio(
        "startup",
        f"{name}, share of {budget:g} s",
        ours,
        budget,
        at_most=allowed,
        note="a limit in seconds" + ("; three times allowed" * (allowed > 1)),
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
        cache = {"NUMBA_CACHE_DIR": folder}
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

"""As a user has it: the first use with nothing compiled, and BLAS threads that nobody has set."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from benchmarks import ROOT
from benchmarks.measure import medians
from benchmarks.ratio import Ratio

#: Variables that a plain shell does not have.
SETTINGS = ("_NUM_THREADS", "NUMBA_", "DRIFTWOLFE_BLAS")

DATA = """
import numpy as np
rng = np.random.default_rng(0)
X = rng.standard_normal((100, 5))
labels, targets = (X[:, 0] > 0.0).astype(int), X @ np.arange(5.0)
pairs = [(f"u{a}", f"i{b}") for a, b in rng.integers(0, 30, (100, 2))]
dicts = [{f"f{j}": value for j, value in enumerate(row)} for row in X.tolist()]
from driftwolfe.estimators import """
#: The first use of every estimator: a hundred rows, then an answer.
ESTIMATORS = {
    "TraceNormClassifier": "().partial_fit(X, labels, classes=[0, 1]).predict(X)",
    "TraceNormRegressor": "().partial_fit(X, targets).predict(X)",
    "MatrixCompleter": "().partial_fit(pairs, targets).predict(pairs)",
    "MatrixCompletionRegressor": "().fit(pairs, targets).predict(pairs)",
    "Recommender": "().partial_fit(pairs).recommend('u1', 3)",
    "AdaptiveIntervals": "(MatrixCompleter()).partial_fit(pairs, targets).predict_interval(pairs)",
    "AdaptiveSets": "(GaussianNB())\nfor _ in range(2): model.partial_fit(X, labels, classes=[0, 1])\n"
    "model.predict_set(X)",
    "RiverTraceNormClassifier": "()\nfor x, y in zip(dicts, labels): model.learn_one(x, y)\n"
    "model.predict_proba_one(x)",
    "RiverTraceNormRegressor": "()\nfor x, y in zip(dicts, targets): model.learn_one(x, y)\n"
    "model.predict_one(x)",
    "RiverMatrixCompleter": "()\nfor pair, y in zip(pairs, targets): model.learn_one(*pair, y)\n"
    "model.predict_one(*pair)",
    "RiverRecommender": "()\nfor pair in pairs: model.learn_one(*pair)\nmodel.rank('u1', ['i1', 'i2'])",
}
ENTRIES = "dw.losses.AbsoluteEntries(rng.integers(0, 40, 9), rng.integers(0, 40, 9), np.ones(9))"
#: Sets by name: the set, a loss, and processor seconds.
SETS = {
    "a simplex": ("dw.Simplex(10)", "dw.losses.SquaredDistance(rng.dirichlet(np.ones(10)))", 4.0),
    "a trace-norm ball": ("dw.TraceNormBall((60, 40), radius=10.0)", ENTRIES, 4.0),
    "a large trace-norm ball": ("dw.TraceNormBall((900, 600), radius=10.0)", ENTRIES, 5.0),
}
LEARNERS = ("POLAR", "POLA", "POLD")
#: A loop that numba compiles, without us; and its processor seconds where the classifier takes the 7.5 of its
#: budget. Where it takes longer, on a slower machine or in a slow hour of this one, so may first uses. (A loop in
#: plain Python was two times quicker on one machine than on another that compiled as fast.)
YARDSTICK = """import numba, numpy as np

@numba.njit
def loop(x, y, n):
    best, total = 0.0, np.empty((n, n))
    for i in range(n):
        for j in range(i + 1):
            dot = 0.0
            for k in range(x.shape[1]):
                dot += x[i, k] * y[j, k]
            total[i, j] = total[j, i] = np.exp(-dot) / (1.0 + abs(dot))
            best = max(best, total[i, j])
    while n > 1 and total[0, n - 1] >= best:
        n -= 1
    return best, total, n

loop(np.ones((3, 2)), np.ones((3, 2)), 3)"""
PACE = 1.36
#: Processor seconds.
ESTIMATOR_BUDGET = 6.0
#: Gaps, alarms and quicker loops made more to compile; 7.5 seconds were measured.
BUDGETS = {"TraceNormClassifier": 7.5, "TraceNormRegressor": 7.5}


def first_uses() -> Iterator[tuple[str, str, float]]:
    """What is used, the program, and its budget."""
    for name, use in ESTIMATORS.items():
        imported = "\nfrom sklearn.naive_bayes import GaussianNB"
        models = {"AdaptiveIntervals": ", MatrixCompleter", "AdaptiveSets": imported}
        extra = models.get(name, "")
        yield name, f"{DATA}{name}{extra}\nmodel = {name}{use}", BUDGETS.get(name, ESTIMATOR_BUDGET)
    for name in LEARNERS:
        for kind, (domain, loss, budget) in SETS.items():
            horizon = ", horizon=40" if name == "POLD" else ""
            program = (
                "import numpy as np, driftwolfe as dw\nrng = np.random.default_rng(0)\n"
                f"learner = dw.{name}({domain}{horizon})\n"
                f"for t in range(40): learner.update({loss})\nlearner.decision"
            )
            yield f"{name} on {kind}", program, budget


def cold(short: bool) -> list[Ratio]:
    """Processor time of import, first fit and first answer, with an empty cache of compiled code."""
    found = []
    for name, program, budget in first_uses():
        runs = [_at_usual_pace(program) for _ in range(1 if short else 3)]
        found.append(
            Ratio(
                *("cold", f"{name}, share of {budget:g} s", medians({"": runs})[""], budget),
                at_most=1.0,
                note="processor seconds of a fresh process with an empty cache, and no settings, up to its answer; "
                "on a machine slower than that of the budgets, over how much slower numba compiles another loop",
                timings={"first": runs},
            )
        )
    return found


def plain_shell(**more: str) -> dict[str, str]:
    """The environment without settings of threads or compilation, but for those given."""
    kept = {k: v for k, v in os.environ.items() if not any(word in k for word in SETTINGS)}
    return kept | more


def _at_usual_pace(program: str) -> float:
    """The processor time of a program, as if numba took no longer than usual to compile a loop of its own."""
    before = _processor_seconds(YARDSTICK)
    seconds = _processor_seconds(program)
    return seconds / max(1.0, 0.5 * (before + _processor_seconds(YARDSTICK)) / PACE)


def _processor_seconds(program: str) -> float:
    """Processor time of a program up to its last line, the start of Python included, its exit not."""
    clock = "\nimport time\nprint(time.process_time())"
    with tempfile.TemporaryDirectory() as folder:
        return float(_child(program + clock, plain_shell(NUMBA_CACHE_DIR=folder)))


def _child(program: str, environment: Mapping[str, str]) -> str:
    command = [sys.executable, "-W", "ignore", "-c", program]
    return subprocess.run(
        command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout


#: Programs that play the same rows twice and time the second pass.
STREAMS = {
    "classifier, one row per call": DATA.replace("(100, 5)", "(ROWS, 10)").replace("5.0", "10.0")
    + """RiverTraceNormClassifier as Model
def play():
    model = Model()
    for x, y in zip(dicts, labels.tolist()):
        model.predict_proba_one(x)
        model.learn_one(x, y)""",
    "regressor, batches of 20": DATA.replace("(100, 5)", "(ROWS, 10)").replace("5.0", "10.0")
    + """TraceNormRegressor as Model
def play():
    model = Model()
    for k in range(0, ROWS, 20):
        model.partial_fit(X[k : k + 20], targets[k : k + 20])
        model.predict(X[k : k + 20])""",
    "POLAR on a simplex of 2,000": """
import numpy as np, driftwolfe as dw
rng = np.random.default_rng(0)
losses = [dw.losses.SquaredDistance(rng.dirichlet(np.ones(2000))) for _ in range(ROWS // 4)]
def play():
    learner = dw.POLAR(dw.Simplex(2000))
    for loss in losses: learner.update(loss)""",
    "POLAR on matrices of 40 x 30": """
import numpy as np, driftwolfe as dw
rng = np.random.default_rng(0)
losses = [dw.losses.SquaredDistance(rng.standard_normal((40, 30))) for _ in range(ROWS // 8)]
def play():
    learner = dw.POLAR(dw.TraceNormBall((40, 30), radius=5.0))
    for loss in losses: learner.update(loss)""",
}
TIMED = """
import time
play()
wall, processor = time.perf_counter(), time.process_time()
play()
print(time.perf_counter() - wall, time.process_time() - processor)"""
PINNED = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
#: The short variant relaxes limits on time, as other work slows it; not that of 2 here.
STRICT = {True: 0.75, False: 1.0}
#: How much more time a plain shell may take than one that pins BLAS to one thread.
IDLE, BUSY = 1.3, 2.0


def plain(short: bool) -> list[Ratio]:
    """Wall and processor time without any setting of BLAS threads, against one thread."""
    found = []
    for name, program in STREAMS.items():
        program = program.replace("ROWS", "600" if short else "2000") + TIMED
        with _busy_process():
            found += _against_pinned(name, program, 3, "busy", BUSY * STRICT[short])
        if not short:
            found += _against_pinned(name, program, 5, "idle", IDLE)
    return found


def _against_pinned(name, program, repeats, setting, limit):
    times = {shell: [] for shell in ("plain", "pinned")}
    for _ in range(repeats):
        times["plain"].append([*map(float, _child(program, plain_shell()).split())])
        times["pinned"].append([*map(float, _child(program, plain_shell(**PINNED)).split())])
    for k, clock in enumerate(("wall", "processor")):
        timings = {shell: [run[k] for run in runs] for shell, runs in times.items()}
        middle = medians(timings)
        beside = "beside a busy process" if setting == "busy" else "on an idle machine"
        note = f"{beside}; no variables set, against OPENBLAS_NUM_THREADS=1"
        what = f"{name}, {setting}, {clock} time"
        yield Ratio(
            *("plain", what, middle["plain"], middle["pinned"]),
            at_most=limit,
            note=note,
            timings=timings,
        )


@contextmanager
def _busy_process():
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    time.sleep(0.2)
    try:
        yield
    finally:
        busy.kill()
        busy.wait()

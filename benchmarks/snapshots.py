"""What snapshots cost the thread that learns: `python -m benchmarks.snapshots`, two minutes.

Every model first learns a stream in which all its users or groups occur. Then it goes on learning, and every tenth
of a second a snapshot is taken and takes the place of the one before, as for readers. Printed are the milliseconds
of one, the share of the time that ten per second take, the least time of a copy by way of bytes, and how many
megabytes these have.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import driftwolfe as dw
from benchmarks.measure import seconds
from driftwolfe.estimators import (
    AdaptiveIntervals,
    MatrixCompleter,
    Recommender,
    RiverTraceNormRegressor,
)

ITEMS, FEATURES, PIECE = 5_000, 200, 20
#: How a model is made, how it learns rows, and how many at first; the users of rows are given.
Case = tuple[Callable[[], Any], Callable[[Any, list[str]], Any], int]
RNG = np.random.default_rng(0)


def _pairs(users: list[str]) -> list[tuple[str, str]]:
    """Each user with an item, popular ones more often."""
    items = (ITEMS * RNG.random(len(users)) ** 3).astype(int)
    return [(user, f"item {item}") for user, item in zip(users, items.tolist(), strict=True)]


def _rows(model: Any, users: list[str]) -> None:
    for x in RNG.normal(size=(len(users), FEATURES)):
        model.learn_one(dict(enumerate(x.tolist())), x[0])


def cases(users: int) -> dict[str, Case]:
    """The models."""
    return {
        "`Recommender`": (Recommender, lambda m, u: m.partial_fit(_pairs(u)), 5 * users),
        "`MatrixCompleter`": (
            MatrixCompleter,
            lambda m, u: m.partial_fit(_pairs(u), RNG.integers(1, 6, len(u)).astype(float)),
            2 * users,
        ),
        "`AdaptiveIntervals`, users as groups": (
            AdaptiveIntervals,
            lambda m, u: m.observe(np.zeros(len(u)), RNG.normal(size=len(u)), u),
            users,
        ),
        "`RiverTraceNormRegressor`, 200 features": (RiverTraceNormRegressor, _rows, 1_000),
        "`POLAR`, 1,000 numbers": (
            lambda: dw.POLAR(dw.L1Ball(1_000)),
            lambda m, u: m.update(dw.losses.LinearLoss(RNG.normal(size=1_000))),
            100,
        ),
    }


def line(name: str, case: Case, users: int, duration: float) -> str:
    """A row of the table."""
    make, learn, count = case
    model, names = make(), [f"user {k}" for k in range(users)]
    for first in range(0, count, 10_000):
        learn(model, [names[k % users] for k in range(first, min(count, first + 10_000))])
    learn(model, names[:PIECE])  # compiles what is left
    taken, kept, begin = [], [model.snapshot()], time.perf_counter()
    while (now := time.perf_counter()) < begin + duration:
        learn(model, [names[k] for k in RNG.integers(0, users, PIECE)])
        if now >= begin + 0.1 * (len(taken) + 1):
            taken.append(seconds(lambda: kept.__setitem__(0, model.snapshot())))
    content = model.to_bytes()
    by_bytes = min(seconds(lambda: dw.from_bytes(model.to_bytes())) for _ in range(3))
    middle, worst, bytes_ms = (
        f"{1e3 * each:.1f}" for each in (statistics.median(taken), max(taken), by_bytes)
    )
    share = f"{1e3 * statistics.fmean(taken):.1f} %"  # ten per second, of a thousand milliseconds
    return f"| {name} | {middle} | {worst} | {share} | {bytes_ms} | {len(content) / 1e6:.1f} |"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=5.0, help="of learning with snapshots")
    given = parser.parse_args()
    print("| model | snapshot (ms) | worst | ten per second | by bytes (ms) | MB |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, case in cases(given.users).items():
        print(line(name, case, given.users, given.seconds), flush=True)


if __name__ == "__main__":
    main()

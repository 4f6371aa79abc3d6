"""POLD on MovieLens 100K with two threads against one."""

from __future__ import annotations

import os

import driftwolfe as dw
from benchmarks.data import movielens
from benchmarks.measure import medians, race, threads
from benchmarks.ratio import Ratio
from benchmarks.rows.matrix_completion import pold
from benchmarks.skipped import Skipped

ROW = "threads"
#: Rounds a stretch, and how many: experts run ahead in one, and the slowest has blocks of 54.
ROUNDS = {True: 300, False: 500}
STRETCHES = {True: 3, False: 6}


def measure(short: bool) -> list[Ratio]:
    """Both play the same stretches in turns."""
    if (os.cpu_count() or 1) < 2:
        raise Skipped("needs two cores")
    rounds, stretches = ROUNDS[short], STRETCHES[short]
    jobs = {name: _player(count, rounds) for name, count in (("one", 1), ("two", 2))}
    timings = race(jobs, stretches, warm_up=False)
    middle = medians(timings)
    return [
        Ratio(
            ROW,
            f"POLD, {rounds} rounds, two threads against one",
            middle["two"],
            middle["one"],
            at_least=1.5,
            threads=2,
            note=f"median of {stretches} stretches by `play`, which lets experts run ahead; "
            "BLAS has one thread in both",
            timings=timings,
        )
    ]


def _player(count, rounds):
    """A job that plays the next rounds with so many threads, after a few by another learner."""
    learner, stream = pold(), movielens()
    starts = iter(range(0, len(stream), rounds))
    with threads(count):
        dw.play(pold(), stream[:20], progress=False)

    def play():
        start = next(starts)
        with threads(count):
            dw.play(learner, stream[start : start + rounds], keep_losses=False, progress=False)

    return play

"""One game on the large matrix, in a process of its own: `python -m benchmarks.scale_game`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks import large_matrix
from benchmarks.measure import threads

STATUS = Path("/proc/self/status")
LEARNERS = {"BOGD_IP": large_matrix.bogd_ip, "POLD": large_matrix.pold}


def play(name: str, rounds: int) -> dict:
    """Play that many rounds; what it took."""
    learner, total, ratings = LEARNERS[name](), 0.0, 0.0
    started = time.perf_counter()
    for loss in large_matrix.stream(rounds=rounds):
        total += learner.update(loss)
        ratings += float(np.abs(loss.targets).sum())
    looked_at = rounds * large_matrix.PER_ROUND
    return {
        "peak_gib": peak_gib(),
        "seconds": time.perf_counter() - started,
        "mean_loss": total / looked_at,
        "mean_rating": ratings / looked_at,
        "rank": learner.decision.rank,
    }


def peak_gib() -> float:
    """The largest memory of this process, from Linux; getrusage would count the parent's too."""
    told = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
    return int(told["VmHWM"].split()[0]) / 2**20


if __name__ == "__main__":
    with threads(1):
        print(json.dumps(play(sys.argv[1], int(sys.argv[2]))))

"""Ensembles on vectors: time a round, its growth, and a plain loop beside it."""

from __future__ import annotations

import numpy as np

import driftwolfe as dw
from benchmarks.measure import medians, race, stretch, threads
from benchmarks.ratio import Ratio
from benchmarks.reference import pola, pold
from benchmarks.reference.bogd_ip import BOGDIP
from benchmarks.reference.projections import exactly, on_l1_ball, on_simplex

ROW = "vectors"
HORIZON = 1000
SETS = {
    "L1 ball": (dw.L1Ball, on_l1_ball),
    "simplex": (dw.Simplex, on_simplex),
}
#: Times faster than the loop, by dimension: long vectors cost both the same arithmetic.
FLOORS = {10: 1.5, 100: 1.5, 1000: 1.5, 10_000: 1.5}
#: Rounds a stretch, and how many after the one that warms up; POLA ends with 9 or 10 experts.
ROUNDS = 32
STRETCHES = {True: 10, False: 20}


def measure(short: bool) -> list[Ratio]:
    """POLD and POLA on both sets in every dimension."""
    dimensions = (10, 1000) if short else tuple(FLOORS)
    with threads(1):
        return [
            ratio
            for name in ("POLD", "POLA")
            for shown in SETS
            for ratio in _by_dimension(name, shown, dimensions, STRETCHES[short])
        ]


def _by_dimension(name, shown, dimensions, stretches):
    ratios, before = [], None
    for d in dimensions:
        timings = _race(name, shown, d, stretches)
        middle = {each: value / ROUNDS for each, value in medians(timings).items()}
        ours = middle["ours"]
        growth = "" if before is None else f"; {ours / before[1]:.2f} times the time of {before[0]}"
        before = (d, ours)
        ratios.append(
            Ratio(
                ROW,
                f"{name}, {shown}, d = {d:,}",
                ours,
                middle["loop"],
                at_least=FLOORS[d],
                note=f"a round, against objects in a loop{growth}",
                timings=timings,
            )
        )
    return ratios


def _race(name, shown, d, stretches):
    """Time both learners, which must play the same, on a target that jumps every 50 rounds."""
    rounds = ROUNDS * (stretches + 1)
    losses = _losses(d, rounds)
    ours, theirs = _learners(name, *SETS[shown], d)
    timings = race(
        {
            "ours": stretch(ours.update, losses, ROUNDS),
            "loop": stretch(theirs.update, losses, ROUNDS),
        },
        stretches,
    )
    apart = float(np.abs(ours.decision - theirs.decision).max())
    if apart > 1e-8:
        raise AssertionError(f"the loop is not the same learner: decisions differ by {apart:g}")
    return timings


def _learners(name, domain, nearest, d):
    domain, project = domain(d), exactly(nearest)
    if name == "POLA":
        return dw.POLA(domain, step_scale=1.0), pola.POLA(domain.origin(), 1.0, project)
    steps = pold.experiment_steps(HORIZON)
    experts = [BOGDIP(domain.origin(), h, 1.0, project) for h in steps]
    ours = dw.POLD(domain, horizon=HORIZON, step_scale=1.0, grid="experiment")
    return ours, pold.POLD(experts, HORIZON)


def _losses(d, rounds):
    rng = np.random.default_rng(d)
    noise = 0.3 * rng.standard_normal((rounds, d)) / np.sqrt(d)
    noise[np.arange(rounds), np.arange(rounds) // 50 % d] += 1.0
    return [dw.losses.SquaredDistance(target) for target in noise]

"""Bandit feedback beside PyNOL's PBGD: loss and time per round on the same streams.

PyNOL is no dependency: ``pip install --target FOLDER --no-deps pynol-xzp autograd multiprocess dill`` and
run with that folder on the path; without it, only the library's learners are measured.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import driftwolfe as dw
from driftwolfe.points.kinds import Array

DIMENSION, LIPSCHITZ = 10, 1.0


def streams(domain: dw.Domain, rounds: int) -> dict[str, list[Array]]:
    """Points to be near to: one, one that jumps four times, and one that wanders."""
    rng = np.random.default_rng(0)
    drawn = [0.7 * domain.lmo(rng.standard_normal(domain.shape)) for _ in range(5)]
    jumps = [drawn[5 * t // rounds] + 0.3 * domain.origin() for t in range(rounds)]
    turn = [np.cos(2 * np.pi * t / rounds) for t in range(rounds)]
    wander = [jumps[0] * (0.5 + 0.5 * c) + jumps[-1] * (0.5 - 0.5 * c) for c in turn]
    return {"fixed": [jumps[0]] * rounds, "five pieces": jumps, "drifting": wander}


class Distance:
    """The distance from a point: convex and 1-Lipschitz."""

    def __init__(self, center: Array) -> None:
        self.center = center

    def value(self, x: Array) -> float:
        return float(np.linalg.norm(x - self.center))


def ours(domain: dw.Domain, learner: Any, points: int) -> Callable[..., tuple[float, float]]:
    def run(centers: Sequence[Array], seed: int) -> tuple[float, float]:
        player = dw.contrib.Bandit(domain, learner, points, len(centers), LIPSCHITZ, seed=seed)
        started, total = time.process_time(), 0.0
        for center in centers:
            total += player.update(Distance(center))
        return total / len(centers), (time.process_time() - started) / len(centers)

    return run


def theirs(points: int) -> Callable[..., tuple[float, float]] | None:
    """PBGD on the ball, with its own constants; None without PyNOL. Its simplex has no inside to explore."""
    try:
        sets = importlib.import_module("pynol.environment.domain")
        models = importlib.import_module("pynol.learner.models.dynamic.pbgd")
        environment = importlib.import_module("pynol.environment.environment").Environment
    except ImportError:
        return None
    cls = models.PBGDOnePoint if points == 1 else models.PBGDTwoPoint
    bound = {"C": 2.0} if points == 1 else {"L_lipschitz": LIPSCHITZ}

    def run(centers: Sequence[Array], seed: int) -> tuple[float, float]:
        start = np.zeros(
            DIMENSION
        )  # it draws directions from the system's randomness, not from a seed
        player = cls(sets.Ball(DIMENSION), T=len(centers), prior=start, **bound)
        started, total = time.process_time(), 0.0
        for center in centers:
            env = environment(func=Distance(center).value, full_info=False)
            total += float(player.opt(env)[1])
        return total / len(centers), (time.process_time() - started) / len(centers)

    return run


def routes(side: int = 4) -> dw.FlowPolytope:
    """Streets that lead east or south."""
    places = [(i, j) for i in range(side) for j in range(side)]
    south = [((i, j), (i + 1, j)) for i, j in places if i + 1 < side]
    east = [((i, j), (i, j + 1)) for i, j in places if j + 1 < side]
    return dw.FlowPolytope(south + east, (0, 0), (side - 1, side - 1))


def times(domain: dw.Domain, rounds: int, pieces: int) -> list[Array]:
    """Minutes per street, around means that change from piece to piece."""
    rng = np.random.default_rng(1)
    means = rng.random((pieces, *domain.shape))
    drawn = [means[pieces * t // rounds] for t in range(rounds)]
    return [mean + 0.2 * rng.standard_normal(mean.shape) for mean in drawn]


def combinatorial_ucb(domain: dw.Domain, costs: Sequence[Array], seed: int) -> float:
    """CUCB: the best vertex for the lowest costs that are still plausible."""
    counts, sums, total = np.zeros(domain.shape), np.zeros(domain.shape), 0.0
    for t, cost in enumerate(costs, start=1):
        known = np.maximum(counts, 1.0)
        hopes = np.where(counts > 0, sums / known - np.sqrt(1.5 * np.log(t) / known), -10.0)
        vertex = domain.lmo(hopes)
        counts, sums = counts + vertex, sums + vertex * cost
        total += float(cost @ vertex)
    return total / len(costs)


def semi_bandit(learner: Any, **options: Any) -> Callable[..., float]:
    def run(domain: dw.Domain, costs: Sequence[Array], seed: int) -> float:
        player = dw.contrib.SemiBandit(domain, learner, len(costs), seed=seed, **options)
        return float(np.mean([player.update(cost) for cost in costs]))

    return run


def all_costs_seen(domain: dw.Domain, costs: Sequence[Array], seed: int) -> float:
    player = dw.POLA(domain)
    return float(np.mean([player.update(dw.losses.LinearLoss(cost)) for cost in costs]))


def components(rounds: int, seeds: int) -> None:
    """Print the costs of routes, where the streets on them are timed."""
    domain = routes()
    print("| routes, 4 x 4 | one truth | four in turn |")
    print("| --- | ---: | ---: |")
    players: dict[str, Callable[..., float]] = {
        "`SemiBandit(POLA)`": semi_bandit(dw.POLA),
        "`SemiBandit(POLA, exploration=0.02)`": semi_bandit(dw.POLA, exploration=0.02),
        "`SemiBandit(POLD, exploration=0.02)`": semi_bandit(dw.POLD, exploration=0.02),
        "CUCB": combinatorial_ucb,
        "`POLA`, all streets timed": all_costs_seen,
    }
    streams = [times(domain, rounds, pieces) for pieces in (1, 4)]
    best = []
    for costs, pieces in zip(streams, (1, 4), strict=True):
        sums = [np.sum(part, axis=0) for part in np.array_split(costs, pieces)]
        best.append(sum(float(s @ domain.lmo(s)) for s in sums) / rounds)
    print(f"| best route of each piece | {best[0]:.3f} | {best[1]:.3f} |")
    for name, run in players.items():
        cells = [np.mean([run(domain, costs, seed) for seed in range(seeds)]) for costs in streams]
        print(f"| {name} | {cells[0]:.3f} | {cells[1]:.3f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--components", action="store_true", help="semi-bandit feedback instead")
    given = parser.parse_args()
    if given.components:
        components(given.rounds, given.seeds)
        return
    print("| set, points | learner | fixed | five pieces | drifting | µs of processor per round |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for name, domain in (("ball", dw.L2Ball(DIMENSION)), ("simplex", dw.Simplex(DIMENSION))):
        for points in (1, 2):
            players = {"PBGD (PyNOL)": theirs(points) if name == "ball" else None}
            for learner in (dw.Ader, dw.POLD, dw.POLA, dw.POLAR):
                players[f"`Bandit({learner.__name__})`"] = ours(domain, learner, points)
            for which, run in players.items():
                if run is None:
                    continue
                means, times = [], []
                for centers in streams(domain, given.rounds).values():
                    found = [run(centers, seed) for seed in range(given.seeds)]
                    means.append(np.mean([mean for mean, _ in found]))
                    times += [seconds for _, seconds in found]
                cells = " | ".join(f"{mean:.3f}" for mean in means)
                print(
                    f"| {name}, {points} | {which} | {cells} | {1e6 * min(times):,.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()

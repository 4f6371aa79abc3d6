"""Streams whose truth jumps, on three sets, and the windows for adaptive regret."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from scipy.spatial import Delaunay

import driftwolfe as dw
from driftwolfe.losses import LinearLoss, SquaredDistance, SquaredEntries
from driftwolfe.streams.drift import Stream, steepest

#: Rounds, and pieces with one truth each.
ROUNDS, PIECES = 2000, 4
#: Length of the windows, and the distance between their starts.
WINDOW, EVERY = 250, 25


@dataclass(frozen=True)
class Size:
    """Rounds of a stream, and length and spacing of the windows."""

    rounds: int = ROUNDS
    window: int = WINDOW
    every: int = EVERY


SHORT = Size(rounds=16, window=4, every=4)


def vectors(rounds: int, seed: int) -> Stream:
    """Noisy observations of a vector with 5 of 50 coordinates, in the l1 ball."""
    rng, order = np.random.default_rng(seed), _pieces(rounds)
    truths = [_sparse(rng) for _ in range(PIECES)]
    losses = [SquaredDistance(truths[p] + 0.1 * rng.standard_normal(50)) for p in order]
    return _stream("vectors", losses, [truths[p] for p in order], dw.L1Ball(50), order)


def slow_vectors(rounds: int, seed: int) -> Stream:
    """The same, but the truth moves from one such vector to the next in a straight line."""
    rng = np.random.default_rng(seed)
    corners = np.array([_sparse(rng) for _ in range(PIECES + 1)])
    places = np.linspace(0.0, PIECES, rounds)
    truths = list(
        np.array([np.interp(places, range(PIECES + 1), column) for column in corners.T]).T
    )
    losses = [SquaredDistance(truth + 0.1 * rng.standard_normal(50)) for truth in truths]
    return _stream("slow vectors", losses, truths, dw.L1Ball(50), [0] * rounds)


def matrices(rounds: int, seed: int) -> Stream:
    """Noisy observations of 50 entries of a 30 x 20 matrix of rank 2, in the trace-norm ball."""
    rng, shape, rank = np.random.default_rng(seed), (30, 20), 2
    ball = dw.TraceNormBall(shape, 30.0, representation="dense")
    truths = []
    for _ in range(PIECES):
        left = np.linalg.qr(rng.standard_normal((shape[0], rank)))[0]
        right = np.linalg.qr(rng.standard_normal((shape[1], rank)))[0]
        truths.append((left * (30.0 * rng.dirichlet(np.full(rank, 5.0)))) @ right.T)
    order, losses = _pieces(rounds), []
    for piece in order:
        rows, cols = np.divmod(rng.choice(600, 50, replace=False), shape[1])
        seen = truths[piece][rows, cols] + 0.5 * rng.standard_normal(50)
        losses.append(SquaredEntries(rows, cols, seen, shape))
    return _stream("matrices", losses, [truths[p] for p in order], ball, order)


def flows(rounds: int, seed: int) -> Stream:
    """Noisy travel times on the roads of a town; some roads are slow for a while."""
    rng = np.random.default_rng(seed)
    town, miles = _town(rng)
    usual = miles * rng.uniform(1.4, 3.2, miles.size)
    means = []
    for _ in range(PIECES):
        slow = usual.copy()
        slow[rng.choice(miles.size, miles.size // 8, replace=False)] += 6.0
        means.append(slow)
    order = _pieces(rounds)
    losses = [LinearLoss(means[p] * rng.lognormal(0.0, 0.3, miles.size)) for p in order]
    quickest = [town.lmo(mean) for mean in means]
    return _stream("flows", losses, [quickest[p] for p in order], town, order)


STREAMS: dict[str, Callable[[int, int], Stream]] = {
    "vectors": vectors,
    "matrices": matrices,
    "flows": flows,
    "slow vectors": slow_vectors,
}
#: The sets in words, for headings.
SETS = {
    "vectors": "l1 ball, 50 coordinates",
    "matrices": "trace-norm ball, 30 x 20",
    "flows": "flows on a road network",
    "slow vectors": "l1 ball, 50 coordinates, slow drift",
}


def windows(stream: Stream, size: Size) -> list[tuple[int, int]]:
    """The whole game first, then the windows."""
    starts = range(0, len(stream) - size.window + 1, size.every)
    return [(0, len(stream)), *((start, start + size.window) for start in starts)]


def _sparse(rng: np.random.Generator) -> np.ndarray:
    """A vector with five entries and l1 norm 1."""
    vector = np.zeros(50)
    where = rng.choice(50, 5, replace=False)
    vector[where] = rng.dirichlet(np.ones(5)) * rng.choice((-1.0, 1.0), 5)
    return vector


def _pieces(rounds: int) -> list[int]:
    return [t * PIECES // rounds for t in range(rounds)]


def _stream(name, losses, truths, domain, order) -> Stream:
    drifts = tuple(t for t, (a, b) in enumerate(pairwise(order), start=1) if a != b)
    return Stream(losses, name, steepest(losses, domain), truths, domain, drifts)


def _town(rng: np.random.Generator) -> tuple[dw.FlowPolytope, np.ndarray]:
    """A perturbed 14 x 7 grid of junctions with eastward roads between neighbours; road lengths."""
    grid = np.stack(np.meshgrid(np.arange(14.0), np.arange(7.0)), axis=-1).reshape(-1, 2)
    places = np.vstack([[(-1.2, 3.0), (14.2, 3.0)], grid + rng.uniform(-0.32, 0.32, grid.shape)])
    sides = {pair for corner in Delaunay(places).simplices for pair in combinations(corner, 2)}
    roads = sorted({tuple(sorted(pair, key=lambda place: places[place, 0])) for pair in sides})
    miles = {pair: float(np.linalg.norm(places[pair[0]] - places[pair[1]])) for pair in roads}
    roads = [pair for pair in roads if miles[pair] < 1.9]
    return dw.FlowPolytope(roads, source=0, target=1), np.array([miles[pair] for pair in roads])

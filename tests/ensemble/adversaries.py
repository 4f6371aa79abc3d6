"""Losses of experts that are made to hurt, all in [0, 1]."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from driftwolfe.ensemble import GeometricCover, Interval, SleepingMeta

#: (round, weights of the experts, randomness) -> losses of the experts
Adversary = Callable[[int, np.ndarray, np.random.Generator], np.ndarray]


def uniform(t: int, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.random(weights.size)


def coin_flips(t: int, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 2, weights.size).astype(float)


def hits_the_heaviest(t: int, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (weights == weights.max()).astype(float)


def hits_the_heavy_half(t: int, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (weights > np.median(weights)).astype(float)


def changes_its_favourite(t: int, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    losses = np.ones(weights.size)
    losses[-1 - (t // 100) % weights.size] = 0.0
    return losses


def favours_the_last(t: int, weights: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    losses = np.ones(weights.size)
    losses[-1] = 0.0
    return losses


ADVERSARIES: list[Adversary] = [
    uniform,
    coin_flips,
    hits_the_heaviest,
    hits_the_heavy_half,
    changes_its_favourite,
    favours_the_last,
]


def play_on_cover(
    meta: SleepingMeta, cover: GeometricCover, adversary: Adversary, rounds: int, scale: float
) -> list[tuple[Interval, int, float]]:
    """Play a meta whose combined loss is the weighted mean.

    Returns, for every interval and every round of it, the interval, the round, and the regret
    against its expert since the start.
    """
    rng = np.random.default_rng(0)
    intervals: list[Interval] = []
    regrets = np.zeros(0)
    records = []
    for t in range(1, rounds + 1):
        ended = [position for position, interval in enumerate(intervals) if interval.end < t]
        meta.remove(ended)
        intervals = [interval for interval in intervals if interval.end >= t]
        regrets = np.delete(regrets, ended)
        lengths: Sequence[int] = cover.starting(t)
        meta.add(lengths)
        intervals += [Interval(t, t + length - 1) for length in lengths]
        regrets = np.concatenate((regrets, np.zeros(len(lengths))))

        weights = meta.weights
        losses = scale * adversary(t, weights, rng)
        meta.update(weights @ losses, losses)
        regrets = regrets + (weights @ losses - losses)
        records += [(i, t, float(r)) for i, r in zip(intervals, regrets, strict=True)]
    return records

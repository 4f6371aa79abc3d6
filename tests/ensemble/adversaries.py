"""Losses of experts that are made to hurt, all in [0, 1], and a game of experts that come and go."""

import numpy as np

from driftwolfe.ensemble import GeometricCover

#: (round, weights of the experts, randomness) -> losses of the experts.
ADVERSARIES = {
    "uniform": lambda t, w, rng: rng.random(w.size),
    "coins": lambda t, w, rng: 1.0 * rng.integers(0, 2, w.size),
    "the heaviest": lambda t, w, rng: 1.0 * (w == w.max()),
    "the heavy half": lambda t, w, rng: 1.0 * (w > np.median(w)),
    "all but one": lambda t, w, rng: 1.0 * (np.arange(w.size)[::-1] != t // 100 % w.size),
    "all but the last": lambda t, w, rng: 1.0 * (np.arange(w.size) < w.size - 1),
}


def play_on_cover(meta, rule, rounds, seed=0):
    """Play sleeping weights whose combined loss is the weighted mean.

    `rule` takes the round, weights, regrets, lengths of intervals and randomness, and returns losses. Yields each
    round, its intervals, the regrets against their experts since the start, the losses, and what these were ahead.
    """
    rng, cover, intervals, regrets = np.random.default_rng(seed), GeometricCover(), [], np.zeros(0)
    for t in range(1, rounds + 1):
        stay = [i for i, interval in enumerate(intervals) if interval[1] >= t]
        for name in meta.COLUMNS:
            setattr(meta, name, getattr(meta, name)[stay])
        new = cover.starting(t)
        meta.add(new)
        intervals = [intervals[i] for i in stay] + [(t, t + n - 1) for n in new]
        regrets = np.append(regrets[stay], np.zeros(len(new)))
        weights, lengths = meta.weights, np.array([end - start + 1 for start, end in intervals])
        losses = rule(t, weights, regrets, lengths, rng)
        meta.update(float(weights @ losses), losses)
        regrets = regrets + (float(weights @ losses) - losses)
        yield t, intervals, regrets, losses, float(weights @ losses) - losses

"""Synthetic twins: made-up data of the shape of MovieLens 100K and of Shuttle."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from driftwolfe.losses.inputs import Indices
from driftwolfe.points.kinds import Array

#: Users and films, from 0, and their ratings.
Ratings: TypeAlias = tuple[Indices, Indices, Array]
#: Rows of features, and their classes from 0.
Table: TypeAlias = tuple[Array, NDArray[np.intp]]

USERS_AND_FILMS = (943, 1682)
CLASSES_AND_FEATURES = (7, 9)
#: For each class of Shuttle: rows; means of features 1, 3 and 5; their deviations; their correlation.
_CLASSES = (
    (34_108, (44, 85, 39), (5.5, 8.7, 14.0), 0.6),
    (37, (55, 79, -12), (11.5, 2.4, 31.0), 0.0),
    (132, (54, 90, 26), (18.0, 12.6, 23.0), 0.5),
    (6_748, (55, 87, 22), (0.5, 8.9, 26.0), 0.3),
    (2_458, (87, 90, 5), (10.9, 9.7, 46.0), 0.9),
    (6, (65, 83, 30), (11.0, 10.7, 8.5), 0.5),
    (11, (37, 92, 31), (0.1, 15.0, 5.6), 0.3),
)
#: The values of each feature that are scaled to -1 and to 1.
_LEAST = np.array([27, -4821, 21, -3939, -188, -13839, -48, -353, -356])
_LARGEST = np.array([126, 5075, 149, 3830, 436, 13148, 105, 270, 266])


def synthetic_ratings() -> Ratings:
    """Return ratings as those of MovieLens 100K, the same every time."""
    rng = np.random.Generator(np.random.PCG64(100_000))
    m, n = USERS_AND_FILMS
    popularity = 1.15 * np.log(rng.gamma(0.5, size=n) + 0.005)
    tastes = rng.standard_normal((m, 5)) @ rng.standard_normal((5, n))
    # At least 20 ratings of every user; a few users give hundreds.
    shares = np.cumsum(rng.gamma(0.75, size=m))
    marks = np.round(shares / shares[-1] * (100_000 - 20 * m)).astype(np.intp)
    counts = 20 + np.diff(marks, prepend=0)
    # Users watch what is popular and what is to their taste.
    users, films = _pairs(counts, popularity + 0.4 * tastes, rng)
    liking = 0.1 * popularity + rng.normal(0.0, 0.5, n)
    scores = rng.normal(0.0, 0.45, m)[users] + liking[films] + 0.28 * tastes[users, films]
    # Skewed to the left, like the ratings: more are far below the mean than far above it.
    scores -= rng.gamma(1.0, 0.86, users.size)
    scores += 3.55 - scores.mean()
    return users, films, np.clip(np.round(scores), 1.0, 5.0)


def _pairs(counts: Indices, weights: Array, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Different films for each user, drawn by the logarithms of their weights, in the order of time."""
    # The largest of logarithms plus Gumbel noise are draws without replacement.
    ranking = np.argsort(-(weights + rng.gumbel(size=weights.shape)), axis=1)
    chosen = np.arange(weights.shape[1]) < counts[:, None]
    users, films = np.nonzero(chosen)[0], ranking[chosen]
    # As in the real file, a third of the users are there at the start; the others join later.
    joined = 1.3 * np.maximum(0.0, users / counts.size - 0.3)
    order = np.argsort(joined + (1.0 - joined) * rng.random(users.size))
    return users[order], films[order]


def synthetic_table() -> Table:
    """Return rows as those of Shuttle, the same every time."""
    rng = np.random.Generator(np.random.PCG64(43_500))
    counts, means, deviations, correlations = zip(*_CLASSES, strict=True)
    labels = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    shared = np.array(correlations)[labels, None]
    noise = np.sqrt(shared) * rng.standard_normal((labels.size, 1))
    noise = noise + np.sqrt(1.0 - shared) * rng.standard_normal((labels.size, 3))
    gaussian = np.array(means)[labels] + np.array(deviations)[labels] * noise
    raw = np.empty((labels.size, CLASSES_AND_FEATURES[1]))
    raw[:, :6:2] = gaussian
    raw[:, 1:6:2] = rng.normal(0.0, (2.0, 2.0, 13.0), (labels.size, 3))
    raw[:, 1:6:2] += 0.2 * rng.standard_cauchy((labels.size, 3))
    first, third, fifth = gaussian.T
    raw[:, 6:] = np.stack([third - first, third - fifth, first - fifth], axis=1)
    features = -1.0 + 2.0 * (np.round(raw) - _LEAST) / (_LARGEST - _LEAST)
    return np.clip(features, -1.0, 1.0), labels

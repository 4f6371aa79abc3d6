"""MovieLens 100K rating by rating: four streams, two of them with drift."""

from __future__ import annotations

import io
from functools import cache
from typing import NamedTuple

import numpy as np

from benchmarks.skipped import Skipped
from driftwolfe.streams.datasets import RATINGS

#: Where the last stream changes its sign.
FLIPS = (55_555, 83_333)


class RatingStream(NamedTuple):
    """Pairs of user and film, their ratings, and where all tastes turn round."""

    name: str
    pairs: np.ndarray
    ratings: np.ndarray
    flips: tuple[int, ...] = ()


@cache
def rating_streams() -> dict[str, RatingStream]:
    """The streams by name, or `Skipped`."""
    pairs, ratings, times = _published()
    count, order = ratings.size, np.argsort(times, kind="stable")
    signs = np.ones(count)
    signs[slice(*FLIPS)] = -1.0
    streams = (
        RatingStream("time order", pairs[order], ratings[order]),
        RatingStream("file order", pairs, ratings),
        RatingStream(
            "three copies, the middle one negated",
            np.tile(pairs, (3, 1)),
            np.concatenate([ratings, -ratings, ratings]),
            (count, 2 * count),
        ),
        RatingStream("one pass, flipped twice", pairs, signs * ratings, FLIPS),
    )
    return {stream.name: stream for stream in streams}


def _published():
    try:
        content = RATINGS.read()
    except FileNotFoundError:
        raise Skipped("needs the data of movielens_100k: set DRIFTWOLFE_DATA") from None
    users, films, stars, times = np.loadtxt(io.BytesIO(content), dtype=np.int64).T
    return np.stack([users, films], axis=1), stars.astype(np.float64), times

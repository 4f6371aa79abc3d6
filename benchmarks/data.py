"""Real data: the paper's streams, MovieLens rating by rating, and recovery after a change."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

import driftwolfe as dw
from benchmarks.measure import Skipped
from driftwolfe.streams.datasets import RATINGS, DataFile

#: The files beside the ratings that say who the users and what the films are.
PEOPLE = replace(
    RATINGS,
    path="ml-100k/u.user",
    size=22_628,
    sha256="f120e114da2e8cf314fd28f99417c94ae9ddf1cb6db8ce0e4b5995d40e90e62c",
    member="ml-100k/u.user",
)
FILMS = replace(
    RATINGS,
    path="ml-100k/u.item",
    size=236_344,
    sha256="553841ebc7de3a0fd0d6b62a204ea30c1e651aacfb2814c7a6584ac52f2c5701",
    member="ml-100k/u.item",
)

#: Where the stream "one pass, flipped twice" changes its sign.
FLIPS = (55_555, 83_333)
#: The error before a change is the mean over BEFORE ratings; it has recovered when the mean over
#: WINDOW ratings is at most ALLOWED times that.
BEFORE, WINDOW, ALLOWED = 5_000, 500, 1.1


@cache
def movielens() -> dw.streams.Stream:
    """MovieLens 100K in the paper's setting, or `Skipped`."""
    return _load(dw.streams.movielens_100k)


@cache
def shuttle() -> dw.streams.Stream:
    """Shuttle in the paper's setting, or `Skipped`."""
    return _load(dw.streams.shuttle)


def _load(load: Callable[[], dw.streams.Stream]) -> dw.streams.Stream:
    try:
        return load()
    except FileNotFoundError:
        raise Skipped(f"needs the data of {load.__name__}: set DRIFTWOLFE_DATA") from None


class RatingStream(NamedTuple):
    """Pairs of user and film, their ratings, and the ratings at which the sign flips."""

    name: str
    pairs: np.ndarray
    ratings: np.ndarray
    flips: tuple[int, ...] = ()


@cache
def rating_streams() -> dict[str, RatingStream]:
    """Four streams of single MovieLens ratings by name, two of them with drift; or `Skipped`."""
    try:
        content = RATINGS.read()
    except FileNotFoundError:
        raise Skipped("needs the data of movielens_100k: set DRIFTWOLFE_DATA") from None
    users, films, stars, times = np.loadtxt(io.BytesIO(content), dtype=np.int64).T
    pairs, ratings = np.stack([users, films], axis=1), stars.astype(np.float64)
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


@cache
def side_features() -> tuple[dict[int, list[float]], dict[int, list[float]]]:
    """Features of MovieLens users (age, sex, occupation) and films (year, genres), or `Skipped`."""
    try:
        people, films = (_table(each) for each in (PEOPLE, FILMS))
    except FileNotFoundError:
        raise Skipped(f"needs {PEOPLE.path} and {FILMS.path}: set DRIFTWOLFE_DATA") from None
    jobs = sorted({job for _, _, _, job, _ in people})
    users = {
        int(user): [
            (int(age) - 35) / 15,
            1.0 if sex == "F" else -1.0,
            *(float(job == j) for j in jobs),
        ]
        for user, age, sex, job, _ in people
    }
    items = {
        int(film): [(int(date[-4:]) - 1990) / 10 if date else np.nan, *map(float, genres[1:])]
        for film, _, date, _, _, *genres in films
    }
    return users, items


def _table(file: DataFile) -> list[list[str]]:
    return [line.split("|") for line in file.read().decode("latin-1").splitlines()]


def recovery(errors: np.ndarray, change: int, end: int | None = None) -> int | None:
    """Ratings after a change until the mean error of the last 500 is within 10 % of that before.

    All 500 come after the change. None: not before `end`, where the next change is.
    """
    level = errors[max(change - BEFORE, 0) : change].mean()
    sums = np.concatenate([[0.0], np.cumsum(errors[change:end])])
    recovered = np.flatnonzero(sums[WINDOW:] - sums[:-WINDOW] <= ALLOWED * level * WINDOW)
    return int(recovered[0]) + WINDOW if recovered.size else None


def recoveries(errors: np.ndarray, changes: tuple[int, ...]) -> list[int | None]:
    """`recovery` after each of several changes, up to the next."""
    return [recovery(errors, change, end) for change, end in pairwise((*changes, None))]

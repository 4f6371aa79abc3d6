"""MovieLens 100K as a stream."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from driftwolfe.domains import TraceNormBall
from driftwolfe.losses import AbsoluteEntries
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.losses.inputs import Indices, batch_of_numbers
from driftwolfe.points.kinds import Array
from driftwolfe.streams.files import DataFile, Folder
from driftwolfe.streams.length import rows_played
from driftwolfe.streams.matrix_completion import matrix_completion
from driftwolfe.streams.stream import Stream, steepest

RATINGS = DataFile(
    path="ml-100k/u.data",
    size=1_979_173,
    sha256="06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
    source="https://grouplens.org/datasets/movielens/100k/",
    url="https://files.grouplens.org/datasets/movielens/ml-100k.zip",
    member="ml-100k/u.data",
)
#: Users and films.
SHAPE = (943, 1682)

#: Users and films, from 0, and their ratings.
Ratings: TypeAlias = tuple[Indices, Indices, Array]


def movielens_100k(
    data: Folder | None = None,
    per_round: int = 100,
    copies: Sequence[float] = (1, -1, 1),
    loss: Callable[..., EntryLoss] = AbsoluteEntries,
    seed: int | np.random.Generator | None = None,
    radius: float = 1e4,
    rounds: int | None = None,
) -> Stream:
    """Return MovieLens 100K as the paper plays it: 3,000 rounds of 100 ratings, the middle third negated.

    943 users by 1,682 films, ratings 1 to 5, in the publisher's order unless shuffled.

    Parameters
    ----------
    data
        The folder that holds ``ml-100k/u.data`` or ``ml-100k/u.data.gz``; if not given, the one that
        the environment variable DRIFTWOLFE_DATA names; if that is not set either, the user's cache
        (see `driftwolfe.streams.cache`), into which the file is downloaded from its publisher where it
        is missing. DRIFTWOLFE_OFFLINE=1 forbids that.
    per_round, copies, loss, seed
        As in `matrix_completion`.
    radius
        Of the trace-norm ball that becomes the stream's `domain`.
    rounds
        Length of a shorter stream with the same drift, a multiple of the number of copies: each copy
        then holds only the first ratings of the file. None for all of them.

    Raises
    ------
    FileNotFoundError
        Where a folder is named that does not hold the file.
    DataUnavailable
        Where the file is neither on this machine nor to be downloaded; `movielens_twin` makes up
        ratings of the same shape.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> dw.streams.movielens_100k("/nowhere")
    Traceback (most recent call last):
        ...
    FileNotFoundError: neither ml-100k/u.data nor ml-100k/u.data.gz is in /nowhere; ...

    References
    ----------
    Harper, Konstan (2015), The MovieLens datasets: history and context, ACM TiiS 5(4).
    """
    ratings = _parse(RATINGS.read(data))
    return ratings_stream(ratings, "MovieLens 100K", rounds, per_round, copies, loss, seed, radius)


def _parse(content: bytes) -> Ratings:
    """Rows of ``user film stars time``, whole numbers, users and films counted from 1."""
    limits = np.array([[1, SHAPE[0]], [1, SHAPE[1]], [1, 5], [0, 2**62]])
    try:
        if not content.strip():
            raise ValueError("it is empty")
        table = np.loadtxt(io.BytesIO(content), dtype=np.int64, ndmin=2)
        if table.shape[1] != len(limits):
            raise ValueError(f"it has {table.shape[1]} columns")
        if not ((table >= limits[:, 0]) & (table <= limits[:, 1])).all():
            raise ValueError("a number is out of range")
    except (ValueError, OverflowError) as error:
        told = " ".join(str(error).split())[:100]
        raise ValueError(
            f"the MovieLens file does not hold rows of user, film, stars and time: {told}"
        ) from error
    users, films, stars, _ = table.T
    return users - 1, films - 1, stars.astype(np.float64)


def ratings_stream(
    ratings: Ratings,
    name: str,
    rounds: int | None,
    per_round: int,
    copies: Sequence[float],
    loss: Callable[..., EntryLoss],
    seed: int | np.random.Generator | None,
    radius: float,
) -> Stream:
    """Return ratings of that many users and films, real or made up, as `movielens_100k` plays them."""
    ball = TraceNormBall(SHAPE, radius)
    number = batch_of_numbers(copies, "copies").size
    kept = rows_played(len(ratings[0]), per_round, rounds, number)
    rows, cols, values = (column[:kept] for column in ratings)
    stream = matrix_completion(rows, cols, values, SHAPE, per_round, copies, loss, seed)
    bound = steepest(stream.losses, ball)
    return replace(stream, name=name, lipschitz=bound, domain=ball)

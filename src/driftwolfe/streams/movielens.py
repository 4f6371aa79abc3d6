"""MovieLens 100K as a stream."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from driftwolfe.domains import TraceNormBall
from driftwolfe.losses import AbsoluteEntries
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.streams.files import DataFile, Folder
from driftwolfe.streams.matrix_completion import matrix_completion
from driftwolfe.streams.stream import Stream, steepest

RATINGS = DataFile(
    path="ml-100k/u.data",
    size=1_979_173,
    sha256="06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
    source="https://grouplens.org/datasets/movielens/100k/",
)
SHAPE = (943, 1682)


def movielens_100k(
    data: Folder | None = None,
    per_round: int = 100,
    copies: Sequence[float] = (1, -1, 1),
    loss: Callable[..., EntryLoss] = AbsoluteEntries,
    seed: int | np.random.Generator | None = None,
    radius: float = 1e4,
) -> Stream:
    """Return MovieLens 100K as the paper plays it: 3,000 rounds of 100 ratings, the middle third negated.

    943 users by 1,682 films, ratings 1 to 5, in the publisher's order unless shuffled.

    Parameters
    ----------
    data
        The folder that holds ``ml-100k/u.data`` or ``ml-100k/u.data.gz``; if not given, the one that
        the environment variable DRIFTWOLFE_DATA names.
    per_round, copies, loss, seed
        As in `matrix_completion`.
    radius
        Of the trace-norm ball that becomes the stream's `domain`.

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
    ball = TraceNormBall(SHAPE, radius)
    users, films, ratings, _ = np.loadtxt(io.BytesIO(RATINGS.read(data)), dtype=np.int64).T
    stream = matrix_completion(users - 1, films - 1, ratings, SHAPE, per_round, copies, loss, seed)
    bound = steepest(stream.losses, ball)
    return replace(stream, name="MovieLens 100K", lipschitz=bound, domain=ball)

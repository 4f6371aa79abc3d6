"""`DataSet`: which stream a trial is played on."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from driftwolfe import streams
from driftwolfe.domains import L1Ball
from driftwolfe.points import checks
from driftwolfe.streams import Stream
from driftwolfe.streams.files import DataFile, Folder
from driftwolfe.streams.movielens import RATINGS
from driftwolfe.streams.shuttle import ROWS

#: A stream is made whole before it is played.
MOST_ROUNDS = 10_000_000


class Source(NamedTuple):
    """Where a stream comes from.

    Attributes
    ----------
    make
        Makes it from a seed and a number of rounds, and from a folder where there is a file.
    file
        What it is read from; None where it is made up.
    order_within_stretches
        Whether the seed only changes the order of rounds between two drifts.
    """

    make: Callable[..., Stream]
    file: DataFile | None = None
    order_within_stretches: bool = False


class DataSet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A stream by its name.

    Attributes
    ----------
    name
        One of `DATA_SETS`.
    rounds
        Length of a shorter version with the same shape of drift; None: all of it.

    Examples
    --------
    >>> stream = DataSet(name="jumping-target", rounds=40).load(seed=0)
    >>> len(stream)
    40
    """

    name: str
    rounds: int | None = None

    def __post_init__(self) -> None:
        if self.name not in DATA_SETS:
            raise ValueError(f"unknown data {self.name[:40]!r}; there are {', '.join(DATA_SETS)}")
        if self.rounds is not None:
            checks.count(self.rounds, "rounds", most=MOST_ROUNDS)

    @property
    def order_within_stretches(self) -> bool:
        """Whether the seed only changes the order of rounds between two drifts."""
        return DATA_SETS[self.name].order_within_stretches

    def load(self, seed: int, folder: Folder | None = None) -> Stream:
        """Return the stream, its order decided by the seed; `folder` holds the real data."""
        return _load(self.name, self.rounds, seed, None if folder is None else str(folder))


@lru_cache(maxsize=2)
def _load(name: str, rounds: int | None, seed: int, folder: str | None) -> Stream:
    source = DATA_SETS[name]
    options: dict[str, Any] = {"seed": seed, "rounds": rounds}
    return source.make(**options, data=folder) if source.file else source.make(**options)


def _jumping_target(seed: int, rounds: int | None) -> Stream:
    """Squared distance to a point of the L1 ball in 20 dimensions that jumps three times."""
    return streams.synthetic.piecewise_constant(
        L1Ball(20), rounds=rounds or 400, pieces=4, seed=seed
    )


#: Streams by name.
DATA_SETS: dict[str, Source] = {
    "movielens-100k": Source(streams.movielens_100k, RATINGS, order_within_stretches=True),
    "movielens-100k-twin": Source(streams.movielens_twin, order_within_stretches=True),
    "shuttle": Source(streams.shuttle, ROWS),
    "shuttle-twin": Source(streams.shuttle_twin),
    "jumping-target": Source(_jumping_target),
}

"""Epochs of doubling length, for learners that need a horizon and are given none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

#: Rounds of the first epoch where the horizon is not known.
FIRST_EPOCH = 64


class Epoch(NamedTuple):
    """Some consecutive rounds that are played with the parameters for a horizon."""

    start: int  # rounds played before it
    horizon: int  # T of its parameters
    rounds: int  # rounds played in it so far


def epochs(horizon: int | None, t: int) -> Iterator[Epoch]:
    """Yield the epochs of the first t rounds, and the one that the next round belongs to.

    A known horizon makes a single epoch, which may be played beyond it. Otherwise epochs have 64, 128,
    256, ... rounds, each with the parameters of its own length.

    >>> [tuple(epoch) for epoch in epochs(None, 100)]
    [(0, 64, 64), (64, 128, 36)]
    """
    start, length = 0, horizon or FIRST_EPOCH
    while horizon is None and t - start >= length:
        yield Epoch(start, length, length)
        start, length = start + length, 2 * length
    yield Epoch(start, length, t - start)


def over_epochs(horizon: int | None, t: int, bound: Callable[[Epoch], float]) -> float:
    """Return the sum of the bounds on the epochs that have been played, or begun, in t rounds."""
    return sum((bound(epoch) for epoch in epochs(horizon, t) if epoch.rounds), 0.0)


def current_epoch(horizon: int | None, t: int) -> Epoch:
    """Return the epoch that the round after t rounds belongs to; it starts there if it has no rounds."""
    *_, epoch = epochs(horizon, t)
    return epoch

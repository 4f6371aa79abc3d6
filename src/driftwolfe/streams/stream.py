"""`Stream`: losses with the set and the comparators they were made for."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import overload

from driftwolfe.domains import Domain
from driftwolfe.losses import Loss
from driftwolfe.losses.base import Ball
from driftwolfe.points import checks
from driftwolfe.points.kinds import Point


def rounds_of(rows: int, per_round: int) -> int:
    """Return how many rounds so many rows make, the last of which holds what is left.

    >>> rounds_of(25, per_round=10)
    3
    """
    return -(-rows // checks.count(per_round, "per_round"))


def rows_played(rows: int, per_round: int, rounds: int | None, copies: int = 1) -> int:
    """Return how many rows every copy holds, so that all copies together make `rounds` rounds.

    >>> rows_played(1000, per_round=10, rounds=30, copies=3)
    100
    >>> rows_played(1000, per_round=10, rounds=None, copies=3)
    1000
    >>> rows_played(1000, per_round=10, rounds=31, copies=3)
    Traceback (most recent call last):
        ...
    ValueError: rounds must be a multiple of the 3 copies, at most 300, got 31
    """
    if rows < 1:
        raise ValueError("there are no rows to play: the file is empty")
    most = copies * rounds_of(rows, per_round)
    wanted = most if rounds is None else checks.count(rounds, "rounds")
    if wanted > most or wanted % copies:
        kind = "" if copies == 1 else f"a multiple of the {copies} copies, "
        raise ValueError(f"rounds must be {kind}at most {most}, got {rounds}")
    return min(rows, wanted // copies * per_round)


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """Losses, one a round, with the comparators to measure a learner against.

    It is a sequence: ``play(learner, stream)`` works, and a slice is a stream again.

    Attributes
    ----------
    losses
        The losses :math:`f_t`.
    name
        What it is called in tables and figures.
    lipschitz
        A bound on the gradient norms, over `domain` where the stream has one, else everywhere;
        infinite where there is none.
    comparators
        The true comparators :math:`u_t`, one a round; None for real data, where nobody knows them.
    domain
        A set that the stream was made for.
    drifts
        The rounds, counted from 0, before which the truth changes at once, as far as they are known:
        round t is one if the truth of round t is another than that of round t - 1.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> stream = dw.streams.synthetic.linear_signs(dw.L1Ball(2), rounds=6, changes=2, seed=0)
    >>> len(stream), stream.name, stream.lipschitz
    (6, 'linear signs', 1.0)
    >>> history = dw.play(dw.OGD(stream.domain, horizon=6, lipschitz=stream.lipschitz), stream)
    >>> len(stream[2:4].comparators)
    2
    >>> stream.drifts, stream[1:].drifts
    ((2, 4), (1, 3))
    """

    losses: Sequence[Loss]
    name: str
    lipschitz: float
    comparators: Sequence[Point] | None = None
    domain: Domain | None = None
    drifts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.comparators is not None and len(self.comparators) != len(self.losses):
            raise ValueError(
                f"comparators must hold one point for each of {len(self.losses)} losses, "
                f"got {len(self.comparators)}"
            )
        marks = (0, *self.drifts, len(self.losses))
        if self.drifts and not all(a < b for a, b in pairwise(marks)):
            raise ValueError(
                f"drifts must be rounds from 1 to {len(self.losses) - 1} in rising order, "
                f"got {self.drifts}"
            )

    def __len__(self) -> int:
        return len(self.losses)

    def __iter__(self) -> Iterator[Loss]:
        return iter(self.losses)

    @overload
    def __getitem__(self, index: int) -> Loss: ...

    @overload
    def __getitem__(self, index: slice) -> Stream: ...

    def __getitem__(self, index: int | slice) -> Loss | Stream:
        if not isinstance(index, slice):
            return self.losses[index]
        kept = None if self.comparators is None else self.comparators[index]
        pieces = [bisect_right(self.drifts, t) for t in range(len(self))[index]]
        return replace(self, losses=self.losses[index], comparators=kept, drifts=boundaries(pieces))

    def __repr__(self) -> str:
        return f"Stream({self.name!r}, {len(self)} rounds, lipschitz={self.lipschitz:g})"


def boundaries(pieces: Iterable[object]) -> tuple[int, ...]:
    """Return the places whose element is another than the one before.

    >>> boundaries([1, 1, -1, -1, -1, 1])
    (2, 5)
    """
    return tuple(t for t, (a, b) in enumerate(pairwise(pieces), start=1) if a != b)


class _Everywhere:
    """The whole space as a ball."""

    center: Point | None = None
    radius = math.inf


def steepest(losses: Iterable[Loss], domain: Ball | None = None) -> float:
    """Return a bound on all gradient norms over the set, or everywhere; infinite if there is none.

    >>> from driftwolfe.losses import AbsoluteEntries, SquaredEntries
    >>> steepest([AbsoluteEntries([0, 1], [0, 0], [1.0, 2.0])]) == math.sqrt(2)
    True
    >>> steepest([SquaredEntries([0], [0], [1.0])])
    inf
    """
    ball = _Everywhere() if domain is None else domain
    bounds = [loss.lipschitz(ball) for loss in losses]
    return max((math.inf if bound is None else bound for bound in bounds), default=0.0)

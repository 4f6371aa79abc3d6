"""`Stream`: a sequence of losses with its true comparators and its drifts."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import overload

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.losses import Loss
from driftwolfe.losses.base import Ball
from driftwolfe.points.kinds import Point

Seed = int | np.random.Generator | None


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A sequence of losses, one per round, with the comparators to measure a learner against.

    ``play(learner, stream)`` plays it; a slice is a stream again.

    Attributes
    ----------
    losses, name
        The losses :math:`f_t`, and the name of the stream in tables and figures.
    lipschitz
        A bound on the gradient norms, over `domain` if there is one, else everywhere; infinite if
        none is known.
    comparators
        The true comparators :math:`u_t`, one per round; None for real data, where they are unknown.
    domain
        A set that the stream was made for.
    drifts
        Known rounds, counted from 0, whose truth differs abruptly from that of the round before.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> stream = dw.streams.synthetic.linear_signs(dw.L1Ball(2), rounds=6, changes=2, seed=0)
    >>> stream, len(stream[2:4].comparators)
    (Stream('linear signs', 6 rounds, lipschitz=1), 2)
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
        comparators = None if self.comparators is None else self.comparators[index]
        # Number the pieces between drifts: where the number changes in the slice, it drifts.
        pieces = [bisect_right(self.drifts, t) for t in range(len(self))[index]]
        return replace(
            self, losses=self.losses[index], comparators=comparators, drifts=change_points(pieces)
        )

    def __repr__(self) -> str:
        return f"Stream({self.name!r}, {len(self)} rounds, lipschitz={self.lipschitz:g})"


def change_points(values: Iterable[object]) -> tuple[int, ...]:
    """Return the indices of values that differ from the one before."""
    return tuple(t for t, (a, b) in enumerate(pairwise(values), start=1) if a != b)


def steepest(losses: Iterable[Loss], domain: Ball | None = None) -> float:
    """Return a bound on all gradient norms, over a set or everywhere; infinite if there is none."""
    ball: Ball = SimpleNamespace(center=None, radius=math.inf) if domain is None else domain
    bounds = [loss.lipschitz(ball) for loss in losses]
    return max((math.inf if bound is None else bound for bound in bounds), default=0.0)

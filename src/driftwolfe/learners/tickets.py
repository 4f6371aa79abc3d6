"""Tickets: decisions whose losses come later."""

from __future__ import annotations

import copy
import secrets
from bisect import bisect_left
from dataclasses import dataclass, field
from operator import lt
from typing import Any, NamedTuple, Self

import numpy as np

from driftwolfe.points.kinds import Array, Point
from driftwolfe.points.ops import POINTS
from driftwolfe.state import Field
from driftwolfe.storage import require

#: Open tickets with decisions that are no arrays: a file holds the parts of each by name.
MOST_OPEN = 30_000
#: What tickets are in files.
TICKETS = {
    "asked": Field(int, least=0, below=1 << 62),
    "labels": Field(np.int64, (None, 3), least=0),
    "distinct": Field((np.float64, list), items=Field(POINTS)),
    "excess": Field(float),
    "positive": Field(float, least=0.0),
    "largest": Field(float, least=0.0),
}


class Ticket(NamedTuple):
    """A decision to play now, whose loss may come at any later time; from `Learner.ask`.

    Attributes
    ----------
    number
        0 for the learner's first ticket, then 1, 2, ...; it may stand for the ticket.
    decision
        The point to play.
    key
        What ties it to the learner that was asked, its later copies and its files; no other takes it.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> learner = dw.OGD(dw.L2Ball(1), horizon=4, lipschitz=1.0)
    >>> first, second = learner.ask(), learner.ask()
    >>> learner.update(dw.losses.LinearLoss([1.0]), second), [each.number for each in learner.tickets]
    (0.0, [0])
    """

    number: int
    decision: Point
    key: int


@dataclass(eq=False)
class Tickets:
    """The open tickets of a learner, and what delays have cost it.

    Of each late loss, `excess` sums its value at the ticket's decision less that at the decision when
    it came; `positive` sums the positive ones of these differences, and `largest` is the largest.
    """

    asked: int = 0
    numbers: list[int] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    excess: float = 0.0
    positive: float = 0.0
    largest: float = 0.0

    @classmethod
    def read(cls, labels: Array, distinct: Any, **counts: Any) -> Self:
        """Return the tickets that a file holds."""
        numbers, keys, places = labels.T.tolist()
        require(max(places, default=-1) < len(distinct), "tickets")
        points = [copy.copy(point) for point in distinct]  # no rows of an array that others keep
        tickets = cls(numbers=numbers, keys=keys, points=[points[k] for k in places], **counts)
        in_order = all(map(lt, (-1, *numbers), (*numbers, tickets.asked)))
        require(in_order, "tickets")
        fits = tickets.largest <= tickets.positive
        fits = fits and tickets.excess <= tickets.positive * (1 + 1e-9)
        require(fits, "costs of delays")
        return tickets

    @property
    def distinct(self) -> Array | list[Point]:
        """The decisions, those that several tickets share once; one array if they are arrays."""
        points = list({id(point): point for point in self.points}.values())
        return np.stack(points) if points and all(map(_stacks, points)) else points

    @property
    def labels(self) -> Array:
        """Number, key and place among the distinct decisions of each."""
        places: dict[int, int] = {}
        rows = [places.setdefault(id(point), len(places)) for point in self.points]
        return np.column_stack((self.numbers, self.keys, rows)).astype(np.int64)

    def add(self, decision: Point) -> Ticket:
        """Open a ticket; what the user does to its decision changes nothing here."""
        if len(self.points) >= MOST_OPEN and not (_stacks(decision) and _stacks(self.points[0])):
            raise ValueError(
                f"{MOST_OPEN:,} tickets are open, the most for decisions that are no plain arrays: give "
                "some of them their losses, learner.update(loss, ticket)"
            )
        ticket = Ticket(self.asked, copy.copy(decision), secrets.randbits(62))
        self.numbers.append(ticket.number)
        self.keys.append(ticket.key)
        self.points.append(decision)
        self.asked += 1
        return ticket

    def copies(self) -> list[Ticket]:
        """The open tickets, oldest first."""
        points = map(copy.copy, self.points)
        return list(map(Ticket, self.numbers, points, self.keys))

    def find(self, ticket: Any) -> int:
        """The place of an open ticket, which may be given as its number."""
        number = ticket.number if isinstance(ticket, Ticket) else ticket
        if type(number) is not int:
            raise TypeError(
                "ticket must be what learner.ask() returned, or its number, got "
                f"{type(ticket).__name__}"
            )
        place = bisect_left(self.numbers, number)
        if number in self.numbers[place : place + 1]:
            if isinstance(ticket, Ticket) and ticket.key != self.keys[place]:
                raise ValueError(
                    f"this ticket {number} is of another learner: give its loss to the one that was asked"
                )
            return place
        if 0 <= number < self.asked:
            raise ValueError(f"ticket {number} has been used: each takes one loss")
        raise ValueError(
            f"this learner has given out no ticket {number}, only {self.asked}; ask it for one with "
            "learner.ask()"
        )

    def close(self, place: int, excess: float) -> None:
        """Use a ticket up."""
        del self.numbers[place], self.keys[place], self.points[place]
        self.excess += excess
        self.positive += max(excess, 0.0)
        self.largest = max(self.largest, excess)

    def cost(self, tau: int | None) -> float:
        """What delays add to a bound on the regret: so far, or on any tau losses in a row."""
        return self.excess if tau is None else min(self.positive, tau * self.largest)


def _stacks(point: Any) -> bool:
    """Whether it can be a row of an array in a file, and comes back bit-identically."""
    return type(point) is np.ndarray and point.flags.c_contiguous

"""Tickets: decisions whose losses come later."""

from __future__ import annotations

import copy
import secrets
from dataclasses import dataclass, field
from operator import lt
from typing import Any, NamedTuple, Self

import numpy as np

from driftwolfe.points.kinds import Array, Indices, Point
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
    open: dict[int, Ticket] = field(default_factory=dict)  # by number, oldest first
    excess: float = 0.0
    positive: float = 0.0
    largest: float = 0.0

    @classmethod
    def read(cls, labels: Array, distinct: Any, **counts: Any) -> Self:
        """Return the tickets that a file holds."""
        numbers, keys, places = labels.T.tolist()
        require(max(places, default=-1) < len(distinct), "tickets")
        points = [copy.copy(distinct[k]) for k in places]  # no rows of an array that others keep
        tickets = cls(
            open=dict(zip(numbers, map(Ticket, numbers, points, keys), strict=True)), **counts
        )
        in_order = all(map(lt, (-1, *numbers), (*numbers, tickets.asked)))
        require(in_order, "tickets")
        fits = tickets.largest <= tickets.positive
        fits = fits and tickets.excess <= tickets.positive * (1 + 1e-9)
        require(fits, "costs of delays")
        return tickets

    @property
    def points(self) -> list[Point]:
        return [each.decision for each in self.open.values()]

    @property
    def distinct(self) -> Array | list[Point]:
        """Their decisions in a file; one array if they are arrays."""
        points = self.points
        return np.stack(points) if points and all(map(_stacks, points)) else points

    @property
    def labels(self) -> Indices:
        """Number, key and place among the decisions of each."""
        rows = [(each.number, each.key, row) for row, each in enumerate(self.open.values())]
        return np.array(rows, np.int64).reshape(-1, 3)

    def add(self, decision: Point) -> Ticket:
        """Open a ticket; what the user does to its decision changes nothing here."""
        if len(self.open) >= MOST_OPEN and not all(map(_stacks, (decision, self.points[0]))):
            raise ValueError(
                f"{MOST_OPEN:,} tickets are open, the most for decisions that are no plain arrays: give "
                "some of them their losses, learner.update(loss, ticket)"
            )
        ticket = Ticket(self.asked, decision, secrets.randbits(62))
        self.open[ticket.number] = ticket
        self.asked += 1
        return _copied(ticket)

    def copies(self) -> list[Ticket]:
        """The open tickets, oldest first."""
        return list(map(_copied, self.open.values()))

    def find(self, ticket: Any) -> Ticket:
        """The open ticket that is given, or whose number is."""
        number = ticket.number if isinstance(ticket, Ticket) else ticket
        if type(number) is not int:
            raise TypeError(
                "ticket must be what learner.ask() returned, or its number, got "
                f"{type(ticket).__name__}"
            )
        if number in self.open:
            if isinstance(ticket, Ticket) and ticket.key != self.open[number].key:
                raise ValueError(
                    f"this ticket {number} is of another learner: give its loss to the one that was asked"
                )
            return self.open[number]
        if 0 <= number < self.asked:
            raise ValueError(f"ticket {number} has been used: each takes one loss")
        raise ValueError(
            f"this learner has given out no ticket {number}, only {self.asked}; ask it for one with "
            "learner.ask()"
        )

    def close(self, ticket: Ticket, excess: float) -> None:
        del self.open[ticket.number]
        self.excess += excess
        self.positive += max(excess, 0.0)
        self.largest = max(self.largest, excess)

    def cost(self, tau: int | None) -> float:
        """What delays add to a bound on the regret: so far, or on any tau losses in a row."""
        return self.excess if tau is None else min(self.positive, tau * self.largest)


def _copied(ticket: Ticket) -> Ticket:
    return ticket._replace(decision=copy.copy(ticket.decision))


def _stacks(point: Any) -> bool:
    """Whether it can be a row of an array in a file, and comes back bit-identically."""
    return type(point) is np.ndarray and point.flags.c_contiguous

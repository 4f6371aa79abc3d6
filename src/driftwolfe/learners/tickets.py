"""Tickets: decisions whose losses come later."""

from __future__ import annotations

import copy
from bisect import bisect_left
from dataclasses import dataclass, field
from operator import lt
from typing import Annotated, Any, NamedTuple

from driftwolfe.points.kinds import Point
from driftwolfe.points.ops import POINTS
from driftwolfe.state import Count, Field, Size
from driftwolfe.storage import require


class Ticket(NamedTuple):
    """A decision to play now, whose loss may come at any later time; from `Learner.ask`.

    Attributes
    ----------
    number
        0 for the learner's first ticket, then 1, 2, ...; it may stand for the ticket.
    decision
        The point to play.

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


_NUMBERS = Field(list, ("open",), items=Field(int, least=0))
_POINTS = Field(list, ("open",), items=Field(POINTS))


@dataclass(eq=False)
class Tickets:
    """The open tickets of a learner, and what delays have cost it.

    Of each late loss, `excess` sums its value at the ticket's decision less that at the decision when
    it came; `positive` sums the positive ones of these differences, and `largest` is the largest.
    """

    asked: Count = 0
    numbers: Annotated[list[int], _NUMBERS] = field(default_factory=list)
    points: Annotated[list[Point], _POINTS] = field(default_factory=list)
    excess: Annotated[float, Field(float)] = 0.0
    positive: Size = 0.0
    largest: Size = 0.0

    def __post_init__(self) -> None:
        in_order = all(map(lt, (-1, *self.numbers), (*self.numbers, self.asked)))
        require(in_order and len(self.numbers) == len(self.points), "tickets")
        fits = self.largest <= self.positive and self.excess <= self.positive * (1 + 1e-9)
        require(fits, "costs of delays")

    def add(self, decision: Point) -> Ticket:
        """Open a ticket; what the user does to its decision changes nothing here."""
        self.numbers.append(self.asked)
        self.points.append(decision)
        self.asked += 1
        return Ticket(self.asked - 1, copy.copy(decision))

    def copies(self) -> list[Ticket]:
        """The open tickets, oldest first."""
        return [
            Ticket(*pair) for pair in zip(self.numbers, map(copy.copy, self.points), strict=True)
        ]

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
            return place
        if 0 <= number < self.asked:
            raise ValueError(f"ticket {number} has been used: each takes one loss")
        raise ValueError(
            f"this learner has given out no ticket {number}, only {self.asked}; ask it for one with "
            "learner.ask()"
        )

    def close(self, place: int, excess: float) -> None:
        """Use a ticket up."""
        del self.numbers[place], self.points[place]
        self.excess += excess
        self.positive += max(excess, 0.0)
        self.largest = max(self.largest, excess)

    def cost(self, tau: int | None) -> float:
        """What delays add to a bound on the regret: so far, or on any tau losses in a row."""
        return self.excess if tau is None else min(self.positive, tau * self.largest)
